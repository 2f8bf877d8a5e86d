//! PEM: base64 between `-----BEGIN X-----` and `-----END X-----`, read as Go's `encoding/pem` reads it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it says it holds, as `CERTIFICATE`.
    pub label: String,
    /// Lines of the form `Key: value` at its head.
    pub has_headers: bool,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// The blocks of a text, in order; what is no block is passed over.
pub fn blocks(text: &[u8]) -> impl Iterator<Item = Block> {
    let text = String::from_utf8_lossy(text).into_owned();
    let mut rest = 0;
    std::iter::from_fn(move || {
        let (block, next) = next_block(&text, rest)?;
        rest = next;
        Some(block)
    })
}

/// The first block at or after `from`, and where the text goes on after it.
pub fn first(text: &[u8]) -> Option<(Block, usize)> {
    // positions in lossily read text would be wrong; what is no UTF-8 is no PEM either
    next_block(std::str::from_utf8(text).ok()?, 0)
}

fn next_block(text: &str, from: usize) -> Option<(Block, usize)> {
    let mut at = from;
    loop {
        let begin = at
            + text[at..].match_indices(BEGIN).map(|(i, _)| i).find(|i| {
                let start = at + i;
                start == 0 || text.as_bytes()[start - 1] == b'\n'
            })?;
        let line_end = begin + text[begin..].find('\n').unwrap_or(text.len() - begin);
        at = line_end;
        let Some(label) = text[begin + BEGIN.len()..line_end].trim_end().strip_suffix(DASHES) else { continue };
        let end_line = format!("-----END {label}-----");
        let Some(end) = text[line_end..].find(&format!("\n{end_line}")).map(|i| line_end + i) else { continue };
        let after = end + 1 + end_line.len();
        let is_line_end = text[after..].bytes().find(|b| !matches!(b, b' ' | b'\t' | b'\r')).is_none_or(|b| b == b'\n');
        if !is_line_end {
            continue;
        }
        let body: &str = &text[line_end.min(end)..end];
        let (headers, body): (Vec<&str>, Vec<&str>) = body.lines().partition(|line| line.contains(':'));
        let packed: String = body.concat().chars().filter(|c| !c.is_ascii_whitespace()).collect();
        let Ok(bytes) = STANDARD.decode(packed) else { continue };
        let next = after + text[after..].find('\n').map_or(text.len() - after, |i| i + 1);
        return Some((Block { label: label.to_owned(), has_headers: !headers.is_empty(), bytes }, next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_text() {
        let text = b"hello\n-----BEGIN A-----\nAQID\n-----END A-----\n-----BEGIN B C-----\nK: v\n\nBAU=\n-----END B C-----\nrest";
        let found: Vec<(String, bool, Vec<u8>)> = blocks(text).map(|b| (b.label, b.has_headers, b.bytes)).collect();
        assert_eq!(found, [("A".to_owned(), false, vec![1, 2, 3]), ("B C".to_owned(), true, vec![4, 5])]);
        for bad in [
            "",
            "-----BEGIN A-----",
            "-----BEGIN A-----\n*\n-----END A-----",
            "x-----BEGIN A-----\nAQID\n-----END A-----",
        ] {
            assert_eq!(blocks(bad.as_bytes()).count(), 0, "{bad}");
        }
        assert_eq!(first(&text[6..]).unwrap().1, 39);
    }
}
