//! Query strings.

use std::borrow::Cow;

/// The decoded pairs of a raw query, in order. Pairs whose escapes are broken are left out, as Go does.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    query.split('&').filter(|part| !part.is_empty() && !part.contains(';')).filter_map(|part| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        Some((decode(key, true)?, decode(value, true)?))
    })
}

/// Resolves percent escapes (and `+`, in queries). `None` when one is broken or the result is no UTF-8.
pub(crate) fn decode(text: &str, is_query: bool) -> Option<Cow<'_, str>> {
    let needs = |b: u8| b == b'%' || (is_query && b == b'+');
    if !text.bytes().any(needs) {
        return Some(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                out.push(u8::try_from(high * 16 + low).unwrap_or_default());
            }
            b'+' if is_query => out.push(b' '),
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let got: Vec<_> = pairs("a=b%20c+d&e&%zz=1&f=%C3%A9").collect();
        assert_eq!(got, [("a".into(), "b c d".into()), ("e".into(), "".into()), ("f".into(), "é".into())]);
        assert_eq!(decode("a+b%2F", false).as_deref(), Some("a+b/"));
    }
}
