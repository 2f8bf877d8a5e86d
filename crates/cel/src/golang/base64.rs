//! Base64 as Go's `encoding/base64` reads it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Reads base64; line breaks do not matter.
///
/// # Errors
/// Go's text when the text is none.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    let bare: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    STANDARD.decode(&bare).map_err(|why| {
        let at = match why {
            base64::DecodeError::InvalidByte(at, _) => at,
            base64::DecodeError::InvalidLastSymbol { offset, .. } => offset,
            base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => bare.len(),
        };
        format!("illegal base64 data at input byte {at}")
    })
}
