//! What quoted texts and numbers stand for.

use crate::ast::Constant;
use crate::lexer::Token;
use std::sync::Arc;

/// The constant that a word stands for; `is_negative` says that a minus sign stands before it.
///
/// # Errors
/// What is wrong with the word.
pub(crate) fn constant(token: Token, text: &str, is_negative: bool) -> Result<Constant, &'static str> {
    Ok(match token {
        Token::Int => Constant::Int(int(text, is_negative).ok_or("invalid int literal")?),
        Token::Uint => Constant::Uint(uint(text).ok_or("invalid uint literal")?),
        Token::Float => {
            let value: f64 = text.parse().ok().filter(|v: &f64| v.is_finite()).ok_or("invalid double literal")?;
            Constant::Double(if is_negative { -value } else { value })
        }
        Token::String => Constant::String(Arc::from(unquoted(text)?)),
        Token::Bytes => Constant::Bytes(unquoted_bytes(text.get(1..).unwrap_or_default())?.into()),
        Token::True => Constant::Bool(true),
        Token::False => Constant::Bool(false),
        _ => Constant::Null,
    })
}

fn int(text: &str, is_negative: bool) -> Option<i64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if is_negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

fn uint(text: &str) -> Option<u64> {
    let text = text.get(..text.len().checked_sub(1)?)?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The text between quotes, and whether its backslashes are escapes.
fn inner(text: &str) -> (String, bool) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (text, raw) = match text.strip_prefix(['r', 'R']) {
        Some(rest) => (rest, true),
        None => (text.as_str(), false),
    };
    let width = if text.len() >= 6 && (text.starts_with("'''") || text.starts_with("\"\"\"")) { 3 } else { 1 };
    let inner = text.get(width..text.len().saturating_sub(width)).unwrap_or_default();
    (inner.to_owned(), !raw && inner.contains('\\'))
}

fn unquoted(text: &str) -> Result<String, &'static str> {
    let (inner, has_escapes) = inner(text);
    if !has_escapes {
        return Ok(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        if c == '\\' {
            match escape(&mut rest)? {
                Escape::Plain(c) => out.push(c),
                Escape::Code(code) | Escape::Unicode(code) => {
                    out.push(char::from_u32(code).ok_or("invalid unicode code point")?);
                }
            }
        } else {
            out.push(c);
        }
    }
    Ok(out)
}

fn unquoted_bytes(text: &str) -> Result<Vec<u8>, &'static str> {
    let (inner, has_escapes) = inner(text);
    if !has_escapes {
        return Ok(inner.into_bytes());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        if c == '\\' {
            match escape(&mut rest)? {
                Escape::Plain(c) => push_char(&mut out, c),
                Escape::Code(code) => out.push(u8::try_from(code).unwrap_or_default()),
                Escape::Unicode(_) => return Err("unable to unescape string"),
            }
        } else {
            push_char(&mut out, c);
        }
    }
    Ok(out)
}

fn push_char(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

enum Escape {
    Plain(char),
    /// A number that in text means a code point and in bytes a byte.
    Code(u32),
    Unicode(u32),
}

fn escape(rest: &mut std::str::Chars<'_>) -> Result<Escape, &'static str> {
    let c = rest.next().ok_or("unable to unescape string, found '\\' as last character")?;
    let mut digits = |count: usize, radix: u32, first: u32| {
        (0..count).try_fold(first, |value, _| {
            let digit = rest.next()?.to_digit(radix)?;
            value.checked_mul(radix)?.checked_add(digit)
        })
    };
    Ok(match c {
        'a' => Escape::Plain('\u{7}'),
        'b' => Escape::Plain('\u{8}'),
        'f' => Escape::Plain('\u{c}'),
        'n' => Escape::Plain('\n'),
        'r' => Escape::Plain('\r'),
        't' => Escape::Plain('\t'),
        'v' => Escape::Plain('\u{b}'),
        '\\' | '\'' | '"' | '`' | '?' => Escape::Plain(c),
        'x' | 'X' => Escape::Code(digits(2, 16, 0).ok_or("unable to unescape string")?),
        'u' => Escape::Unicode(digits(4, 16, 0).ok_or("unable to unescape string")?),
        'U' => Escape::Unicode(digits(8, 16, 0).ok_or("invalid unicode code point")?),
        '0'..='3' => {
            let first = c.to_digit(8).unwrap_or_default();
            Escape::Code(digits(2, 8, first).ok_or("unable to unescape octal sequence in string")?)
        }
        _ => return Err("unable to unescape string"),
    })
}
