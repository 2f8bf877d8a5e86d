//! The review APIs and token requests as functions over objects: what is wrong with a question, and the answer to it.
//!
//! The caller decodes the body, records managed fields, calls the `validate` of the kind, runs validating admission,
//! then asks for the answer. Nothing is stored.

mod access;
mod rules;
mod selectors;
mod token;
mod token_request;

pub use access::{AccessReview, answer as answer_access_review, validate as validate_access_review};
pub use rules::answer as answer_rules_review;
pub use token::{answer as answer_token_review, validate as validate_token_review};
pub use token_request::{
    TOKEN_LIFETIME_SECONDS_MAX, TOKEN_LIFETIME_SECONDS_MIN, TokenRequest, TokenRequests, TokenResponse,
};

use crate::user;
use jiff::Timestamp;
use pintle_apimachinery::{Value, json, time};
use pintle_kinds::UserInfo;

/// The answer to a `SelfSubjectReview`: who the request is from. What the question said is not looked at.
pub fn answer_self_subject_review(user: &UserInfo, now: Timestamp) -> Value {
    json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "SelfSubjectReview",
        "metadata": {"creationTimestamp": time::time_value(now)},
        "status": user::review_status(user),
    })
}
