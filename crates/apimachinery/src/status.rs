//! `Status`: what the API answers instead of an object, and the error type of everything that can refuse a request.
//!
//! Follows: apimachinery/pkg/api/errors (v0.35). Clients match on code, reason, details and message alike.

use crate::field::{ErrorList, aggregate};
use crate::{GroupKind, GroupResource, Str, Value, json};
use std::fmt;

/// One cause in the details of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    /// A machine-readable reason, such as `FieldValueInvalid`.
    pub reason: Str,
    /// The message.
    pub message: String,
    /// The field it is about, if any.
    pub field: String,
}

/// What a [`Status`] is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// Its group.
    pub group: Str,
    /// Its kind, or (in most errors) its resource.
    pub kind: Str,
    /// Its uid.
    pub uid: Str,
    /// Several causes.
    pub causes: Vec<Cause>,
    /// After how many seconds to try again; 0 for none.
    pub retry_after_seconds: i32,
}

/// The answer to a request that has no object to show: mostly a failure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`; may be empty.
    pub reason: Str,
    /// For people; some clients match on it.
    pub message: String,
    /// What it is about.
    pub details: Option<Box<Details>>,
    /// Whether it is `Success` (else `Failure`).
    pub is_success: bool,
    /// List metadata: a fresh continue token beside `Expired`.
    pub continue_token: String,
}

/// The result of whatever may be refused with a [`Status`].
pub type Result<T, E = Box<Status>> = std::result::Result<T, E>;

impl Status {
    /// A failure with code, reason and message.
    pub fn failure(code: u16, reason: &str, message: impl Into<String>) -> Status {
        Status { code, reason: Str::new(reason), message: message.into(), ..Status::default() }
    }

    /// A success about an object (what DELETE answers).
    pub fn success(details: Option<Details>) -> Status {
        Status { code: 200, is_success: true, details: details.map(Box::new), ..Status::default() }
    }

    /// With details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Status {
        self.details = Some(Box::new(details));
        self
    }

    /// With one more cause.
    #[must_use]
    pub fn with_cause(mut self, reason: &str, message: impl Into<String>, field: impl Into<String>) -> Status {
        let cause = Cause { reason: Str::new(reason), message: message.into(), field: field.into() };
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    fn about(code: u16, reason: &str, resource: &GroupResource, name: &str, message: String) -> Status {
        Status::failure(code, reason, message).with_details(Details {
            name: name.to_owned(),
            group: resource.group.clone(),
            kind: resource.resource.clone(),
            ..Details::default()
        })
    }

    /// 404: there is no such object.
    pub fn not_found(resource: &GroupResource, name: &str) -> Status {
        Status::about(404, "NotFound", resource, name, format!("{resource} {} not found", quote(name)))
    }

    /// 404: there is no such path.
    pub fn not_found_path() -> Status {
        Status::failure(404, "NotFound", "the server could not find the requested resource")
            .with_details(Details::default())
    }

    /// 409: an object of this name is there already.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Status {
        Status::about(409, "AlreadyExists", resource, name, format!("{resource} {} already exists", quote(name)))
    }

    /// 409: no free name was found for a generateName.
    pub fn generate_name_conflict(resource: &GroupResource, name: &str, retry_after_seconds: i32) -> Status {
        let message = format!(
            "{resource} {} already exists, the server was not able to generate a unique name for the object",
            quote(name)
        );
        let mut status = Status::about(409, "AlreadyExists", resource, name, message);
        status.details.get_or_insert_default().retry_after_seconds = retry_after_seconds;
        status
    }

    /// 401.
    pub fn unauthorized() -> Status {
        Status::failure(401, "Unauthorized", "Unauthorized")
    }

    /// 403.
    pub fn forbidden(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Status {
        let message = if resource.resource.is_empty() && resource.group.is_empty() {
            format!("forbidden: {why}")
        } else if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} {} is forbidden: {why}", quote(name))
        };
        Status::about(403, "Forbidden", resource, name, message)
    }

    /// 409: the object changed meanwhile, or the change is at odds with it.
    pub fn conflict(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Status {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", quote(name));
        Status::about(409, "Conflict", resource, name, message)
    }

    /// 409 with upstream's text for a stale resourceVersion.
    pub fn stale(resource: &GroupResource, name: &str) -> Status {
        Status::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 410: the version asked for is compacted.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::failure(410, "Expired", message)
    }

    /// 422: every error that validation found.
    pub fn invalid(kind: &GroupKind, name: &str, errors: &ErrorList) -> Status {
        let message = if errors.is_empty() {
            format!("{kind} {} is invalid", quote(name))
        } else {
            format!("{kind} {} is invalid: {}", quote(name), aggregate(errors))
        };
        let causes = errors
            .iter()
            .map(|e| Cause { reason: Str::new(e.kind.reason()), message: e.body(), field: e.field.clone() })
            .collect();
        Status::failure(422, "Invalid", message).with_details(Details {
            name: name.to_owned(),
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            causes,
            ..Details::default()
        })
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::failure(400, "BadRequest", message)
    }

    /// 405: no such verb on this resource.
    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Status {
        let message = format!("{action} is not supported on resources of kind {}", quote(&resource.to_string()));
        Status::about(405, "MethodNotAllowed", resource, "", message)
    }

    /// 405 without a resource.
    pub fn method_not_allowed() -> Status {
        Status::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_details(Details::default())
    }

    /// 406.
    pub fn not_acceptable(message: impl Into<String>) -> Status {
        Status::failure(406, "NotAcceptable", message)
    }

    /// 415.
    pub fn unsupported_media_type(message: impl Into<String>) -> Status {
        Status::failure(415, "UnsupportedMediaType", message)
    }

    /// 413.
    pub fn too_large(message: impl Into<String>) -> Status {
        Status::failure(413, "RequestEntityTooLarge", format!("Request entity too large: {}", message.into()))
    }

    /// 429.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: i32) -> Status {
        Status::failure(429, "TooManyRequests", message)
            .with_details(Details { retry_after_seconds, ..Details::default() })
    }

    /// 500 with reason InternalError.
    pub fn internal(why: impl fmt::Display) -> Status {
        Status::failure(500, "InternalError", format!("Internal error occurred: {why}")).with_cause(
            "",
            why.to_string(),
            "",
        )
    }

    /// 500 without a reason: what upstream makes of an error that is no Status.
    pub fn plain_error(message: impl Into<String>) -> Status {
        Status::failure(500, "", message)
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>) -> Status {
        Status::failure(503, "ServiceUnavailable", message)
    }

    /// 504: not done in time; a write may or may not have happened.
    pub fn timeout(message: impl Into<String>, retry_after_seconds: i32) -> Status {
        Status::failure(504, "Timeout", format!("Timeout: {}", message.into()))
            .with_details(Details { retry_after_seconds, ..Details::default() })
    }

    /// 500 ServerTimeout: try again soon.
    pub fn server_timeout(resource: &GroupResource, operation: &str, retry_after_seconds: i32) -> Status {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        let mut status = Status::about(500, "ServerTimeout", resource, operation, message);
        status.details.get_or_insert_default().retry_after_seconds = retry_after_seconds;
        status
    }

    /// Whether the reason is `reason`.
    pub fn is(&self, reason: &str) -> bool {
        self.reason == reason
    }

    /// The object on the wire.
    pub fn to_value(&self) -> Value {
        let mut metadata = Value::object();
        if !self.continue_token.is_empty() {
            metadata.set("continue", self.continue_token.as_str());
        }
        let mut value = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata,
            "status": if self.is_success { "Success" } else { "Failure" },
        });
        if !self.message.is_empty() {
            value.set("message", self.message.as_str());
        }
        if !self.reason.is_empty() {
            value.set("reason", self.reason.as_str());
        }
        if let Some(details) = &self.details {
            value.set("details", details.to_value());
        }
        if self.code != 0 && !(self.is_success && self.code == 200 && self.details.is_some()) {
            value.set("code", i64::from(self.code));
        }
        value
    }

    /// Reads a `Status` object; what is missing stays empty.
    pub fn from_value(value: &Value) -> Status {
        let details = &value["details"];
        Status {
            code: value["code"].as_i64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
            reason: Str::new(value["reason"].str_or_empty()),
            message: value["message"].str_or_empty().to_owned(),
            details: details.as_object().map(|_| Box::new(Details::from_value(details))),
            is_success: value["status"].as_str() == Some("Success"),
            continue_token: value["metadata"]["continue"].str_or_empty().to_owned(),
        }
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut value = Value::object();
        for (key, text) in
            [("name", self.name.as_str()), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !text.is_empty() {
                value.set(key, text);
            }
        }
        if !self.causes.is_empty() {
            value.set("causes", self.causes.iter().map(Cause::to_value).collect::<Value>());
        }
        if self.retry_after_seconds != 0 {
            value.set("retryAfterSeconds", self.retry_after_seconds);
        }
        value
    }

    fn from_value(value: &Value) -> Details {
        Details {
            name: value["name"].str_or_empty().to_owned(),
            group: Str::new(value["group"].str_or_empty()),
            kind: Str::new(value["kind"].str_or_empty()),
            uid: Str::new(value["uid"].str_or_empty()),
            causes: value["causes"]
                .items()
                .iter()
                .map(|cause| Cause {
                    reason: Str::new(cause["reason"].str_or_empty()),
                    message: cause["message"].str_or_empty().to_owned(),
                    field: cause["field"].str_or_empty().to_owned(),
                })
                .collect(),
            retry_after_seconds: value["retryAfterSeconds"]
                .as_i64()
                .and_then(|s| i32::try_from(s).ok())
                .unwrap_or_default(),
        }
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut value = Value::object();
        for (key, text) in [("reason", self.reason.as_str()), ("message", &self.message), ("field", &self.field)] {
            if !text.is_empty() {
                value.set(key, text);
            }
        }
        value
    }
}

fn quote(text: &str) -> String {
    crate::field::go_quote(text)
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() { write!(f, "{} {}", self.code, self.reason) } else { f.write_str(&self.message) }
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{FieldError, Path};
    use expect_test::expect;

    #[test]
    fn on_the_wire() {
        let pods = GroupResource::new("", "pods");
        expect![[r#"{"apiVersion":"v1","code":404,"details":{"kind":"pods","name":"x"},"kind":"Status","message":"pods \"x\" not found","metadata":{},"reason":"NotFound","status":"Failure"}"#]]
        .assert_eq(&Status::not_found(&pods, "x").to_value().to_json_string());
        let errors =
            vec![FieldError::required(&Path::new("spec").child("a"), ""), FieldError::forbidden(&Path::new("b"), "no")];
        let invalid = Status::invalid(&GroupKind::new("apps", "Deployment"), "d", &errors);
        expect![[r#"{"apiVersion":"v1","code":422,"details":{"causes":[{"field":"spec.a","message":"Required value","reason":"FieldValueRequired"},{"field":"b","message":"Forbidden: no","reason":"FieldValueForbidden"}],"group":"apps","kind":"Deployment","name":"d"},"kind":"Status","message":"Deployment.apps \"d\" is invalid: [spec.a: Required value, b: Forbidden: no]","metadata":{},"reason":"Invalid","status":"Failure"}"#]]
        .assert_eq(&invalid.to_value().to_json_string());
        assert_eq!(Status::from_value(&invalid.to_value()), invalid);
    }
}
