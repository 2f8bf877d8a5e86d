//! Bytes in quotes, as Go's `%q` writes them.

use pintle_apimachinery::field::go_quote;
use std::fmt::Write;

/// Bytes in quotes; what is no text is escaped byte by byte.
#[must_use]
pub fn quoted_bytes(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        let quoted = go_quote(chunk.valid());
        out.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}
