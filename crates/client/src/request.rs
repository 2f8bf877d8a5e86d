//! A request before it is sent: verb, what it is about, parameters and body.

use crate::error::{Error, Result};
use bytes::Bytes;
use http::Method;
use pintle_apimachinery::Str;
use serde::Serialize;

/// What a request does, in the words of access rules and audit logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads many.
    List,
    /// Follows the changes of one or many.
    Watch,
    /// Makes an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes parts of an object.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes many.
    DeleteCollection,
}

impl Verb {
    /// The verb as rules spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }

    /// The HTTP method.
    pub fn method(self) -> Method {
        match self {
            Verb::Get | Verb::List | Verb::Watch => Method::GET,
            Verb::Create => Method::POST,
            Verb::Update => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete | Verb::DeleteCollection => Method::DELETE,
        }
    }
}

/// A request to the API.
#[derive(Clone, Debug)]
pub struct Request {
    /// What it does.
    pub verb: Verb,
    /// The path without the server's prefix, such as `/api/v1/namespaces/default/pods`. Segments are encoded.
    pub path: String,
    /// Parameters, not yet encoded, in order.
    pub query: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
    /// Media type of the body.
    pub content_type: &'static str,
    /// Media types that the answer may have.
    pub accept: &'static str,
    /// For messages: the resource's group, name and the object's name.
    pub about: (Str, Str, Str),
}

/// Media type of JSON.
pub(crate) const JSON: &str = "application/json";

impl Request {
    /// A request without parameters and body.
    pub fn new(verb: Verb, path: impl Into<String>) -> Request {
        Request {
            verb,
            path: path.into(),
            query: Vec::new(),
            body: Bytes::new(),
            content_type: JSON,
            accept: JSON,
            about: Default::default(),
        }
    }

    /// With a parameter; empty values are left out.
    #[must_use]
    pub fn param(mut self, key: &'static str, value: impl Into<String>) -> Request {
        self.set_param(key, value);
        self
    }

    /// Adds a parameter; empty values are left out.
    pub fn set_param(&mut self, key: &'static str, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.query.push((key, value));
        }
    }

    /// With a JSON body.
    ///
    /// # Errors
    /// [`Error::Encode`] when `body` has no JSON form.
    pub fn json(mut self, what: &'static str, body: &(impl Serialize + ?Sized)) -> Result<Request> {
        let bytes = serde_json::to_vec(body).map_err(|source| Error::Encode { what, source })?;
        self.body = Bytes::from(bytes);
        Ok(self)
    }

    /// Whether the answer is to hold metadata alone.
    pub(crate) fn is_about_metadata(&self) -> bool {
        self.accept.contains("as=PartialObjectMetadata")
    }

    /// Path and parameters as they go on the wire.
    pub fn path_and_query(&self) -> String {
        let mut text = self.path.clone();
        let mut separator = if text.contains('?') { '&' } else { '?' };
        for (key, value) in &self.query {
            text.push(separator);
            text.push_str(key);
            text.push('=');
            encode_into(&mut text, value, is_plain_in_query);
            separator = '&';
        }
        text
    }
}

/// Appends a path segment, encoded.
pub(crate) fn push_segment(path: &mut String, segment: &str) {
    path.push('/');
    encode_into(path, segment, is_plain_in_segment);
}

fn is_plain_in_segment(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)
}

fn is_plain_in_query(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!()*,:@/".contains(&byte)
}

fn encode_into(out: &mut String, text: &str, is_plain: fn(u8) -> bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding() {
        let mut path = String::new();
        push_segment(&mut path, "system:node a/b%");
        assert_eq!(path, "/system:node%20a%2Fb%25");
        let request = Request::new(Verb::List, "/api/v1/pods")
            .param("labelSelector", "a in (b,c),!d")
            .param("fieldSelector", "")
            .param("continue", "x+y=");
        assert_eq!(request.path_and_query(), "/api/v1/pods?labelSelector=a%20in%20(b,c),!d&continue=x%2By%3D");
    }
}
