//! Continue tokens of paged lists: version and next key, as upstream encodes them.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::value::parse;
use pintle_apimachinery::{Status, json};
use pintle_storage::{Key, Revision};

/// Reads what Go's decoder reads: bits that no byte takes may be set.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone),
);

/// What upstream writes into its tokens.
const VERSION: &str = "meta.k8s.io/v1";

/// The token that goes on behind the key `last` at `revision`.
pub(crate) fn encode(revision: Revision, last: &Key, prefix: &Key) -> String {
    token(i64::try_from(revision.get()).unwrap_or(i64::MAX), &format!("{}\0", relative(last, prefix)))
}

/// The token that goes on at `start`, in whatever state there is then.
pub(crate) fn encode_inconsistent(start: &Key, prefix: &Key) -> String {
    token(-1, relative(start, prefix))
}

fn relative<'k>(key: &'k Key, prefix: &Key) -> &'k str {
    key.strip_prefix(prefix.as_str()).unwrap_or_default()
}

fn token(revision: i64, start: &str) -> String {
    URL_SAFE_NO_PAD.encode(json!({"v": VERSION, "rv": revision, "start": start}).to_json())
}

/// Version (`None` for whatever there is) and first key of a token.
///
/// # Errors
/// 400 in upstream's words.
pub(crate) fn decode(token: &str, prefix: &Key) -> Result<(Option<Revision>, Key)> {
    let bad = |why: String| {
        Box::new(Status::bad_request(format!("invalid continue token: continue key is not valid: {why}")))
    };
    let bytes = LENIENT.decode(token).map_err(|why| bad(base64_fault(token, &why)))?;
    if let Some(first) = bytes.first().filter(|byte| !byte.is_ascii()) {
        // Go looks at bytes, not at characters
        let shown = go_quote(char::from(*first).encode_utf8(&mut [0; 4]));
        let shown = shown.trim_matches('"');
        return Err(bad(format!("invalid character '{shown}' looking for beginning of value")));
    }
    let value = parse(&bytes).map_err(|why| bad(why.message))?;
    if value["v"].as_str() != Some(VERSION) {
        return Err(bad(format!("server does not recognize this encoded version {}", value["v"].str_or_empty())));
    }
    let revision = value["rv"].as_i64().unwrap_or_default();
    if revision == 0 {
        return Err(bad(format!("incorrect encoded start resourceVersion (version {VERSION})")));
    }
    let start = value["start"].str_or_empty();
    if start.is_empty() {
        return Err(bad(format!("encoded start key empty (version {VERSION})")));
    }
    let is_inside = start.split('/').all(|part| part != ".." && part != ".");
    if !is_inside {
        return Err(bad(start.to_string()));
    }
    let revision = u64::try_from(revision).ok().and_then(Revision::new);
    Ok((revision, Key::new(format!("{prefix}{}", start.trim_start_matches('/')))))
}

fn base64_fault(token: &str, why: &base64::DecodeError) -> String {
    use base64::DecodeError;
    let at = match why {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. } => *at,
        DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => token.len(),
    };
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip() {
        let prefix = Key::new("/registry/pods/");
        let token = encode(Revision::new(5).unwrap(), &Key::new("/registry/pods/a/b"), &prefix);
        let (revision, start) = decode(&token, &prefix).unwrap();
        assert_eq!((revision, start.as_str()), (Revision::new(5), "/registry/pods/a/b\0"));
        let inconsistent = encode_inconsistent(&start, &prefix);
        assert_eq!(decode(&inconsistent, &prefix).unwrap(), (None, start));
    }

    #[test]
    fn faults() {
        let prefix = Key::new("/registry/pods/");
        assert_eq!(
            decode("!!!", &prefix).unwrap_err().message,
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"
        );
        assert!(decode("bm90IGpzb24", &prefix).unwrap_err().message.ends_with("(expecting 'u')"));
    }
}
