//! The words of an expression. Where no word begins, the characters up to the one that fits nothing are skipped and
//! reported, and reading goes on.

use crate::source::{Fault, Source};

/// A kind of word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the word it is named after; see `Token::shown`")]
pub enum Token {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Exclam,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
    EscapedIdent,
    End,
}

impl Token {
    /// All kinds, in order.
    pub const ALL: [Self; 36] = [
        Self::Equals,
        Self::NotEquals,
        Self::In,
        Self::Less,
        Self::LessEquals,
        Self::GreaterEquals,
        Self::Greater,
        Self::And,
        Self::Or,
        Self::LeftBracket,
        Self::RightBracket,
        Self::LeftBrace,
        Self::RightBrace,
        Self::LeftParen,
        Self::RightParen,
        Self::Dot,
        Self::Comma,
        Self::Minus,
        Self::Exclam,
        Self::Question,
        Self::Colon,
        Self::Plus,
        Self::Star,
        Self::Slash,
        Self::Percent,
        Self::True,
        Self::False,
        Self::Null,
        Self::Float,
        Self::Int,
        Self::Uint,
        Self::String,
        Self::Bytes,
        Self::Ident,
        Self::EscapedIdent,
        Self::End,
    ];

    /// How the word is called where faults list what could have stood there.
    #[must_use]
    pub fn shown(self) -> &'static str {
        match self {
            Self::Equals => "'=='",
            Self::NotEquals => "'!='",
            Self::In => "'in'",
            Self::Less => "'<'",
            Self::LessEquals => "'<='",
            Self::GreaterEquals => "'>='",
            Self::Greater => "'>'",
            Self::And => "'&&'",
            Self::Or => "'||'",
            Self::LeftBracket => "'['",
            Self::RightBracket => "']'",
            Self::LeftBrace => "'{'",
            Self::RightBrace => "'}'",
            Self::LeftParen => "'('",
            Self::RightParen => "')'",
            Self::Dot => "'.'",
            Self::Comma => "','",
            Self::Minus => "'-'",
            Self::Exclam => "'!'",
            Self::Question => "'?'",
            Self::Colon => "':'",
            Self::Plus => "'+'",
            Self::Star => "'*'",
            Self::Slash => "'/'",
            Self::Percent => "'%'",
            Self::True => "'true'",
            Self::False => "'false'",
            Self::Null => "'null'",
            Self::Float => "NUM_FLOAT",
            Self::Int => "NUM_INT",
            Self::Uint => "NUM_UINT",
            Self::String => "STRING",
            Self::Bytes => "BYTES",
            Self::Ident => "IDENTIFIER",
            Self::EscapedIdent => "ESC_IDENTIFIER",
            Self::End => "<EOF>",
        }
    }
}

/// A word and where it stands, in code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Its kind.
    pub token: Token,
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// Splits a source into words; the last is [`Token::End`].
#[must_use]
pub fn words(source: &Source) -> (Vec<Word>, Vec<Fault>) {
    let points = source.points();
    let mut words = Vec::with_capacity(points.len() / 3 + 1);
    let mut faults = Vec::new();
    let mut at = 0;
    while at < points.len() {
        let rest = points.get(at..).unwrap_or_default();
        match word(rest) {
            Match::Space(length) => at += length,
            Match::Word(token, length) => {
                words.push(Word { token, start: at, end: at + length });
                at += length;
            }
            Match::Nothing(length) => {
                let end = (at + length + 1).min(points.len());
                let text = format!("Syntax error: token recognition error at: '{}'", source.text(at, end));
                faults.push(Fault { place: source.place(at), text });
                at = end;
            }
        }
    }
    words.push(Word { token: Token::End, start: points.len(), end: points.len() });
    (words, faults)
}

enum Match {
    Space(usize),
    Word(Token, usize),
    /// No word begins here; so many characters could have been part of one.
    Nothing(usize),
}

fn word(rest: &[char]) -> Match {
    let first = rest.first().copied().unwrap_or_default();
    match first {
        '\t' | ' ' | '\r' | '\n' | '\u{c}' => {
            Match::Space(run(rest, |c| matches!(c, '\t' | ' ' | '\r' | '\n' | '\u{c}')))
        }
        '/' if rest.get(1) == Some(&'/') => Match::Space(run(rest, |c| c != '\n')),
        '0'..='9' => number(rest),
        '.' if rest.get(1).is_some_and(char::is_ascii_digit) => {
            Match::Word(Token::Float, exponent(rest, 1 + run(tail(rest, 1), |c| c.is_ascii_digit())))
        }
        '"' | '\'' => quoted(rest, 0, Token::String),
        '`' => escaped_ident(rest),
        'a'..='z' | 'A'..='Z' | '_' => prefixed_or_ident(rest),
        _ => operator(rest),
    }
}

fn tail(rest: &[char], from: usize) -> &[char] {
    rest.get(from..).unwrap_or_default()
}

fn run(rest: &[char], keep: impl Fn(char) -> bool) -> usize {
    rest.iter().take_while(|c| keep(**c)).count()
}

fn operator(rest: &[char]) -> Match {
    let second = rest.get(1).copied();
    let (token, length) = match (rest.first().copied().unwrap_or_default(), second) {
        ('=', Some('=')) => (Token::Equals, 2),
        ('!', Some('=')) => (Token::NotEquals, 2),
        ('<', Some('=')) => (Token::LessEquals, 2),
        ('>', Some('=')) => (Token::GreaterEquals, 2),
        ('&', Some('&')) => (Token::And, 2),
        ('|', Some('|')) => (Token::Or, 2),
        ('<', _) => (Token::Less, 1),
        ('>', _) => (Token::Greater, 1),
        ('[', _) => (Token::LeftBracket, 1),
        (']', _) => (Token::RightBracket, 1),
        ('{', _) => (Token::LeftBrace, 1),
        ('}', _) => (Token::RightBrace, 1),
        ('(', _) => (Token::LeftParen, 1),
        (')', _) => (Token::RightParen, 1),
        ('.', _) => (Token::Dot, 1),
        (',', _) => (Token::Comma, 1),
        ('-', _) => (Token::Minus, 1),
        ('!', _) => (Token::Exclam, 1),
        ('?', _) => (Token::Question, 1),
        (':', _) => (Token::Colon, 1),
        ('+', _) => (Token::Plus, 1),
        ('*', _) => (Token::Star, 1),
        ('/', _) => (Token::Slash, 1),
        ('%', _) => (Token::Percent, 1),
        ('=' | '&' | '|', _) => return Match::Nothing(1),
        _ => return Match::Nothing(0),
    };
    Match::Word(token, length)
}

fn number(rest: &[char]) -> Match {
    if rest.first() == Some(&'0') && rest.get(1) == Some(&'x') {
        let digits = run(tail(rest, 2), |c| c.is_ascii_hexdigit());
        if digits > 0 {
            return unsigned(rest, 2 + digits);
        }
    }
    let whole = run(rest, |c| c.is_ascii_digit());
    let fraction = match rest.get(whole) {
        Some('.') => run(tail(rest, whole + 1), |c| c.is_ascii_digit()),
        _ => 0,
    };
    let length = if fraction > 0 { whole + 1 + fraction } else { whole };
    let end = exponent(rest, length);
    if end > whole { Match::Word(Token::Float, end) } else { unsigned(rest, whole) }
}

fn unsigned(rest: &[char], length: usize) -> Match {
    match rest.get(length) {
        Some('u' | 'U') => Match::Word(Token::Uint, length + 1),
        _ => Match::Word(Token::Int, length),
    }
}

fn exponent(rest: &[char], length: usize) -> usize {
    if !matches!(rest.get(length), Some('e' | 'E')) {
        return length;
    }
    let sign = usize::from(matches!(rest.get(length + 1), Some('+' | '-')));
    match run(tail(rest, length + 1 + sign), |c| c.is_ascii_digit()) {
        0 => length,
        digits => length + 1 + sign + digits,
    }
}

fn prefixed_or_ident(rest: &[char]) -> Match {
    let raw = |at: usize| matches!(rest.get(at), Some('r' | 'R'));
    let quote = |at: usize| matches!(rest.get(at), Some('"' | '\''));
    let (prefix, token) = match rest.first() {
        Some('b' | 'B') if quote(1) => (1, Token::Bytes),
        Some('b' | 'B') if raw(1) && quote(2) => (2, Token::Bytes),
        Some('r' | 'R') if quote(1) => (1, Token::String),
        _ => (0, Token::Ident),
    };
    if prefix > 0
        && let Match::Word(token, length) = quoted(rest, prefix, token)
    {
        return Match::Word(token, length);
    }
    let length = run(rest, |c| c.is_ascii_alphanumeric() || c == '_');
    let text: String = rest.iter().take(length.min(6)).collect();
    let token = match text.as_str() {
        "in" => Token::In,
        "true" => Token::True,
        "false" => Token::False,
        "null" => Token::Null,
        _ => Token::Ident,
    };
    Match::Word(token, length)
}

fn escaped_ident(rest: &[char]) -> Match {
    let inner = run(tail(rest, 1), |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' '));
    if inner > 0 && rest.get(1 + inner) == Some(&'`') {
        Match::Word(Token::EscapedIdent, inner + 2)
    } else {
        Match::Nothing(1 + inner)
    }
}

/// Reads a quoted text whose opening quote stands at `at`; what comes before it are its prefixes.
fn quoted(rest: &[char], at: usize, token: Token) -> Match {
    let raw = rest.get(..at).unwrap_or_default().iter().any(|c| matches!(c, 'r' | 'R'));
    let quote = rest.get(at).copied().unwrap_or_default();
    let is_triple = rest.get(at + 1) == Some(&quote) && rest.get(at + 2) == Some(&quote);
    if is_triple {
        match triple(rest, at + 3, quote, raw) {
            Ok(end) => return Match::Word(token, end),
            // The two first quotes alone are an empty text.
            Err(_) => return Match::Word(token, at + 2),
        }
    }
    match single(rest, at + 1, quote, raw) {
        Ok(end) => Match::Word(token, end),
        Err(failed) => Match::Nothing(failed),
    }
}

fn single(rest: &[char], mut at: usize, quote: char, raw: bool) -> Result<usize, usize> {
    loop {
        match rest.get(at) {
            Some(c) if *c == quote => return Ok(at + 1),
            None | Some('\n' | '\r') => return Err(at),
            Some('\\') if !raw => at = escape(rest, at)?,
            Some(_) => at += 1,
        }
    }
}

fn triple(rest: &[char], mut at: usize, quote: char, raw: bool) -> Result<usize, usize> {
    loop {
        match rest.get(at) {
            Some(c) if *c == quote && rest.get(at + 1) == Some(&quote) && rest.get(at + 2) == Some(&quote) => {
                return Ok(at + 3);
            }
            None => return Err(at),
            Some('\\') if !raw => at = escape(rest, at)?,
            Some(_) => at += 1,
        }
    }
}

/// The end of the escape that begins at `at`, or where it stops being one.
fn escape(rest: &[char], at: usize) -> Result<usize, usize> {
    let digits = |from: usize, count: usize, is_digit: fn(char) -> bool| {
        let found = run(tail(rest, from), is_digit).min(count);
        if found == count { Ok(from + count) } else { Err(from + found) }
    };
    match rest.get(at + 1) {
        Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(at + 2),
        Some('x' | 'X') => digits(at + 2, 2, |c| c.is_ascii_hexdigit()),
        Some('u') => digits(at + 2, 4, |c| c.is_ascii_hexdigit()),
        Some('U') => digits(at + 2, 8, |c| c.is_ascii_hexdigit()),
        Some('0'..='3') => digits(at + 2, 2, |c| ('0'..='7').contains(&c)),
        _ => Err(at + 1),
    }
}
