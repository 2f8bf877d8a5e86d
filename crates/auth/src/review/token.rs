//! `TokenReview`: whose token is this?

use crate::authn::{Authenticator, RequestParts};
use crate::user;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Str, Value, json};

/// What is wrong with the question.
///
/// # Errors
/// 400 when there is no token.
pub fn validate(object: &Value) -> Result<()> {
    if object["spec"]["token"].str_or_empty().is_empty() {
        return Err(Box::new(Status::bad_request("token is required for TokenReview in authentication")));
    }
    Ok(())
}

/// Answers the question: sets the object's `status`.
///
/// # Errors
/// 500 when an authenticator answers for audiences that nobody asked about.
pub async fn answer(object: &mut Value, authenticator: &Authenticator) -> Result<()> {
    let spec = &object["spec"];
    let asked: Vec<Str> = spec["audiences"].items().iter().map(|v| Str::new(v.str_or_empty())).collect();
    let audiences = if asked.is_empty() { authenticator.api_audiences().to_vec() } else { asked };
    let mut headers = HeaderMap::new();
    // what cannot stand in a header is nobody's token, which is what no header says, too
    if let Ok(value) = HeaderValue::from_str(&format!("Bearer {}", spec["token"].str_or_empty())) {
        headers.insert(AUTHORIZATION, value);
    }
    let request = RequestParts { headers: &headers, peer: None };
    let mut status = json!({"user": {}});
    match authenticator.authenticate_for(&request, &audiences).await {
        Ok(Some(found)) => {
            if !found.audiences.is_empty() && !found.audiences.iter().any(|audience| audiences.contains(audience)) {
                return Err(Box::new(Status::plain_error("error validating audience")));
            }
            status.set("authenticated", true);
            status.set("user", user::to_value(&found.user));
            if !found.audiences.is_empty() {
                status.set("audiences", found.audiences);
            }
        }
        Ok(None) => {}
        Err(error) => status.set("error", error.to_string()),
    }
    object.set("status", status);
    Ok(())
}
