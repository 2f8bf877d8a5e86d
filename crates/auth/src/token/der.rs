//! Just enough DER to take keys apart and to put them together again.

/// Tag of an INTEGER.
pub(super) const INTEGER: u8 = 0x02;
/// Tag of a BIT STRING.
pub(super) const BIT_STRING: u8 = 0x03;
/// Tag of an OCTET STRING.
pub(super) const OCTET_STRING: u8 = 0x04;
/// Tag of an OBJECT IDENTIFIER.
pub(super) const OID: u8 = 0x06;
/// Tag of a SEQUENCE.
pub(super) const SEQUENCE: u8 = 0x30;

/// The next element: its tag, its content, and what follows it. `None` when there is none or it is malformed.
pub(super) fn next(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let n_bytes = usize::from(first & 0x7f);
        if n_bytes == 0 || n_bytes > 4 || rest.len() < n_bytes {
            return None;
        }
        let (len_bytes, rest) = rest.split_at(n_bytes);
        (len_bytes.iter().fold(0usize, |len, &b| (len << 8) | usize::from(b)), rest)
    };
    if rest.len() < len {
        return None;
    }
    let (content, rest) = rest.split_at(len);
    Some((tag, content, rest))
}

/// The content of the next element, which must have this tag, and what follows it.
pub(super) fn expect(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = next(input)?;
    (found == tag).then_some((content, rest))
}

/// An element of this tag whose content is the parts one after the other.
pub(super) fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    if len < 0x80 {
        out.push(u8::try_from(len).unwrap_or_default());
    } else {
        let bytes = len.to_be_bytes();
        let skip = bytes.iter().take_while(|&&b| b == 0).count();
        out.push(0x80 | u8::try_from(bytes.len() - skip).unwrap_or_default());
        out.extend_from_slice(&bytes[skip..]);
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

/// The magnitude of a positive INTEGER: its content without leading zeros.
pub(super) fn magnitude(content: &[u8]) -> &[u8] {
    let skip = content.iter().take_while(|&&b| b == 0).count();
    &content[skip..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_round_trip() {
        for len in [0usize, 1, 127, 128, 255, 256, 70_000] {
            let content = vec![7u8; len];
            let encoded = element(OCTET_STRING, &[&content, b""]);
            assert_eq!(next(&encoded), Some((OCTET_STRING, content.as_slice(), &b""[..])));
        }
        for bad in [&b""[..], &[0x30], &[0x30, 5, 1], &[0x30, 0x80], &[0x30, 0x85, 1, 1, 1, 1, 1]] {
            assert_eq!(next(bad), None);
        }
        assert_eq!(magnitude(&[0, 0, 1, 0]), &[1, 0]);
    }
}
