//! What to say of a text that does not follow the grammar. Other implementations of the language read with a
//! generated parser that goes on after a fault; this follows the same decisions, so that it finds the same faults.

use crate::lexer::{Token, Word};
use crate::source::{Fault, Source};

/// How many faults are looked for; the text is not read on after so many.
pub const SYNTAX_FAULTS_MAX: usize = 30;

/// How deep this reads into a text; deeper parts are not looked at.
const DEPTH_MAX: usize = 250;

/// Finds out where words do not follow the grammar.
#[must_use]
pub fn explain(source: &Source, words: &[Word]) -> Vec<Fault> {
    let mut reader =
        Reader { source, words, at: 0, follows: Vec::new(), is_recovering: false, last_stop: None, faults: Vec::new() };
    reader.start();
    reader.faults
}

/// A set of kinds of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Set(u64);

impl Set {
    const EMPTY: Self = Self(0);

    const fn of(tokens: &[Token]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < tokens.len() {
            bits |= 1 << tokens[index] as u64;
            index += 1;
        }
        Self(bits)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn has(self, token: Token) -> bool {
        self.0 & (1 << token as u64) != 0
    }

    fn shown(self) -> String {
        let names: Vec<&str> = Token::ALL.iter().filter(|token| self.has(**token)).map(|token| token.shown()).collect();
        match names.as_slice() {
            [one] => (*one).to_owned(),
            _ => format!("{{{}}}", names.join(", ")),
        }
    }
}

const FIRST_OF_PRIMARY: Set = Set::of(&[
    Token::LeftBracket,
    Token::LeftBrace,
    Token::LeftParen,
    Token::Dot,
    Token::Minus,
    Token::True,
    Token::False,
    Token::Null,
    Token::Float,
    Token::Int,
    Token::Uint,
    Token::String,
    Token::Bytes,
    Token::Ident,
]);
const FIRST_OF_EXPR: Set = FIRST_OF_PRIMARY.and(Set::of(&[Token::Exclam]));
const FIRST_OF_ELEMENT: Set = FIRST_OF_EXPR.and(Set::of(&[Token::Question]));
const NAMES: Set = Set::of(&[Token::Ident, Token::EscapedIdent]);
const FIRST_OF_FIELD: Set = NAMES.and(Set::of(&[Token::Question]));
const RELATIONS: Set = Set::of(&[
    Token::Equals,
    Token::NotEquals,
    Token::In,
    Token::Less,
    Token::LessEquals,
    Token::GreaterEquals,
    Token::Greater,
]);
const SUMS: Set = Set::of(&[Token::Plus, Token::Minus]);
const PRODUCTS: Set = Set::of(&[Token::Star, Token::Slash, Token::Percent]);
const STEPS: Set = Set::of(&[Token::Dot, Token::LeftBracket]);

/// Why a rule cannot go on.
enum Stop {
    /// A word stands where it cannot.
    Mismatch(Set),
    /// No way of reading on fits the words from here, up to one that many ahead.
    NoWay(usize),
}

type Rule = Result<(), Stop>;

/// What may follow the rule that is being read, in the rule that asked for it.
#[derive(Clone, Copy)]
struct Follow {
    set: Set,
    /// Whether the asking rule may end there.
    may_end: bool,
}

struct Reader<'s> {
    source: &'s Source,
    words: &'s [Word],
    at: usize,
    follows: Vec<Follow>,
    /// Between a fault and the next word that fits; nothing is reported there.
    is_recovering: bool,
    /// Where reading last stopped.
    last_stop: Option<usize>,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn word(&self, ahead: usize) -> Word {
        let end = Word { token: Token::End, start: 0, end: 0 };
        self.words.get(self.at + ahead).or_else(|| self.words.last()).copied().unwrap_or(end)
    }

    fn token(&self, ahead: usize) -> Token {
        self.word(ahead).token
    }

    fn shown(&self, word: Word) -> String {
        if word.token == Token::End { "<EOF>".to_owned() } else { escaped(&self.source.text(word.start, word.end)) }
    }

    fn report(&mut self, ahead: usize, text: String) {
        if !self.is_recovering {
            self.is_recovering = true;
            let place = self.source.place(self.word(ahead).start);
            self.faults.push(Fault { place, text: format!("Syntax error: {text}") });
        }
    }

    fn advance(&mut self) {
        if self.at + 1 < self.words.len() {
            self.at += 1;
        }
    }

    /// Drops the word here if the next one is what was expected.
    fn drop_extra(&mut self, expected: Set) -> bool {
        if !expected.has(self.token(1)) || self.token(0) == Token::End {
            return false;
        }
        let text = format!("extraneous input '{}' expecting {}", self.shown(self.word(0)), expected.shown());
        self.report(0, text);
        self.advance();
        self.is_recovering = false;
        true
    }

    /// Before a choice: one of some words must stand here.
    fn sync(&mut self, expected: Set) -> Rule {
        if self.is_recovering || expected.has(self.token(0)) || self.drop_extra(expected) {
            return Ok(());
        }
        Err(Stop::Mismatch(expected))
    }

    /// What may follow here, by the rules that are being read.
    fn follow(&self, set: Set, may_end: bool) -> Set {
        let mut all = set;
        let mut goes_on = may_end;
        for follow in self.follows.iter().rev() {
            if !goes_on {
                break;
            }
            all = all.and(follow.set);
            goes_on = follow.may_end;
        }
        all
    }

    /// Takes a word, or what makes up for it. `after` is what follows the word within its rule.
    fn take(&mut self, token: Token, after: Set, may_end: bool) -> Rule {
        if self.token(0) == token {
            self.advance();
            self.is_recovering = false;
            return Ok(());
        }
        let expected = Set::of(&[token]);
        if self.drop_extra(expected) {
            self.advance();
            return Ok(());
        }
        if self.follow(after, may_end).has(self.token(0)) {
            let text = format!("missing {} at '{}'", expected.shown(), self.shown(self.word(0)));
            self.report(0, text);
            return Ok(());
        }
        Err(Stop::Mismatch(expected))
    }

    fn take_if(&mut self, token: Token) -> bool {
        let is_here = self.token(0) == token;
        if is_here {
            self.advance();
            self.is_recovering = false;
        }
        is_here
    }

    /// Reads a rule; where it cannot go on, reading resumes at what may follow.
    fn rule(&mut self, set: Set, may_end: bool, how: impl FnOnce(&mut Self) -> Rule) {
        if self.follows.len() / 8 > DEPTH_MAX || self.faults.len() >= SYNTAX_FAULTS_MAX {
            self.at = self.words.len().saturating_sub(1);
            self.is_recovering = true;
            return;
        }
        self.follows.push(Follow { set, may_end });
        if let Err(stop) = how(self) {
            self.complain(&stop);
            self.resume();
        }
        self.follows.pop();
    }

    fn complain(&mut self, stop: &Stop) {
        match stop {
            Stop::Mismatch(expected) => {
                let text = format!("mismatched input '{}' expecting {}", self.shown(self.word(0)), expected.shown());
                self.report(0, text);
            }
            Stop::NoWay(ahead) => {
                let offending = self.word(*ahead);
                if *ahead == 1
                    && self.token(0) == Token::Dot
                    && matches!(offending.token, Token::True | Token::False | Token::Null)
                {
                    let text = format!("mismatched input '{}' expecting IDENTIFIER", self.shown(offending));
                    return self.report(1, text);
                }
                let input = self.input(*ahead);
                self.report(*ahead, format!("no viable alternative at input '{input}'"));
            }
        }
    }

    /// The words from here up to one ahead, with the space between them. What is no word is left out.
    fn input(&self, ahead: usize) -> String {
        let mut input = String::new();
        let mut end = self.word(0).start;
        for ahead in 0..=ahead {
            let word = self.word(ahead);
            input.extend(self.source.text(end, word.start).chars().filter(|c| c.is_ascii_whitespace()));
            input.push_str(&self.source.text(word.start, word.end));
            end = word.end;
        }
        escaped(&input)
    }

    fn resume(&mut self) {
        if self.last_stop == Some(self.at) {
            self.advance();
        }
        self.last_stop = Some(self.at);
        let stops = self.follows.iter().fold(Set::EMPTY, |all, follow| all.and(follow.set));
        self.skip_to(stops);
    }

    fn skip_to(&mut self, stops: Set) {
        while self.token(0) != Token::End && !stops.has(self.token(0)) {
            self.advance();
        }
    }

    fn start(&mut self) {
        self.rule(Set::EMPTY, true, |r| {
            r.expr(Set::of(&[Token::End]), false);
            if r.token(0) == Token::End { Ok(()) } else { r.take(Token::End, Set::EMPTY, false) }
        });
    }

    fn expr(&mut self, follow: Set, may_end: bool) {
        self.rule(follow, may_end, |r| {
            r.logic(Token::Or, Set::of(&[Token::Question]), true);
            if r.take_if(Token::Question) {
                r.logic(Token::Or, Set::of(&[Token::Colon]), false);
                r.take(Token::Colon, FIRST_OF_EXPR, false)?;
                r.expr(Set::EMPTY, true);
            }
            Ok(())
        });
    }

    fn logic(&mut self, operator: Token, follow: Set, may_end: bool) {
        self.rule(follow, may_end, |r| {
            loop {
                let own = Set::of(&[operator]);
                if operator == Token::Or {
                    r.logic(Token::And, own, true)
                } else {
                    r.relation(own)
                }
                if !r.take_if(operator) {
                    return Ok(());
                }
            }
        });
    }

    fn relation(&mut self, follow: Set) {
        self.rule(follow, true, |r| {
            r.calc(1, RELATIONS);
            while RELATIONS.has(r.token(0)) {
                r.take_if(r.token(0));
                r.rule(RELATIONS, true, |r| {
                    r.calc(1, RELATIONS);
                    Ok(())
                });
            }
            Ok(())
        });
    }

    fn calc(&mut self, tightness: u8, follow: Set) {
        let operators = SUMS.and(PRODUCTS);
        self.rule(follow, true, |r| {
            r.unary(operators);
            loop {
                let token = r.token(0);
                if PRODUCTS.has(token) {
                    r.take_if(token);
                    r.rule(operators, true, |r| {
                        r.unary(operators);
                        Ok(())
                    });
                } else if tightness == 1 && SUMS.has(token) {
                    r.take_if(token);
                    r.calc(2, operators);
                } else {
                    return Ok(());
                }
            }
        });
    }

    fn unary(&mut self, follow: Set) {
        self.rule(follow, true, |r| {
            r.sync(FIRST_OF_EXPR)?;
            match r.token(0) {
                Token::Exclam => {
                    while r.take_if(Token::Exclam) {
                        let expected = FIRST_OF_EXPR;
                        if !expected.has(r.token(0)) {
                            let text =
                                format!("extraneous input '{}' expecting {}", r.shown(r.word(0)), expected.shown());
                            r.report(0, text);
                            let stops = r.follows.iter().fold(expected, |all, follow| all.and(follow.set));
                            r.skip_to(stops);
                        }
                    }
                }
                Token::Minus => r.minuses()?,
                _ => {}
            }
            r.member();
            Ok(())
        });
    }

    /// Minus signs, but for one that belongs to a number.
    fn minuses(&mut self) -> Rule {
        while self.token(0) == Token::Minus {
            if !FIRST_OF_PRIMARY.has(self.token(1)) {
                return Err(Stop::NoWay(1));
            }
            self.take_if(Token::Minus);
        }
        Ok(())
    }

    fn member(&mut self) {
        self.rule(Set::EMPTY, true, |r| {
            r.primary();
            loop {
                match r.token(0) {
                    Token::Dot => {
                        if !matches!(r.token(1), Token::Question | Token::Ident | Token::EscapedIdent) {
                            return Err(Stop::NoWay(1));
                        }
                        r.take_if(Token::Dot);
                        r.take_if(Token::Question);
                        let is_call = r.token(0) == Token::Ident && r.token(1) == Token::LeftParen;
                        r.rule(STEPS, true, Self::name);
                        if is_call {
                            r.args()?;
                        }
                    }
                    Token::LeftBracket => {
                        r.take_if(Token::LeftBracket);
                        r.sync(FIRST_OF_ELEMENT)?;
                        r.take_if(Token::Question);
                        r.expr(Set::of(&[Token::RightBracket]), false);
                        r.take(Token::RightBracket, STEPS, true)?;
                    }
                    _ => return Ok(()),
                }
            }
        });
    }

    fn name(&mut self) -> Rule {
        self.sync(NAMES)?;
        let _ = self.take_if(Token::Ident) || self.take_if(Token::EscapedIdent);
        Ok(())
    }

    /// What stands between the parentheses of a call, with them.
    fn args(&mut self) -> Rule {
        self.take_if(Token::LeftParen);
        let close = Set::of(&[Token::RightParen]);
        self.sync(FIRST_OF_EXPR.and(close))?;
        if FIRST_OF_EXPR.has(self.token(0)) {
            self.rule(close, false, |r| {
                loop {
                    r.expr(Set::of(&[Token::Comma]), true);
                    if !r.take_if(Token::Comma) {
                        return Ok(());
                    }
                }
            });
        }
        self.take(Token::RightParen, STEPS, true)
    }

    fn primary(&mut self) {
        self.rule(STEPS, true, |r| {
            r.sync(FIRST_OF_PRIMARY)?;
            match r.token(0) {
                Token::LeftParen => {
                    r.take_if(Token::LeftParen);
                    r.expr(Set::of(&[Token::RightParen]), false);
                    r.take(Token::RightParen, Set::EMPTY, true)
                }
                Token::LeftBracket => r.collection(Token::RightBracket, FIRST_OF_ELEMENT, |r| {
                    r.element(Set::of(&[Token::Comma]), true);
                    Ok(())
                }),
                Token::LeftBrace => r.collection(Token::RightBrace, FIRST_OF_ELEMENT, |r| {
                    r.element(Set::of(&[Token::Colon]), false);
                    r.take(Token::Colon, FIRST_OF_EXPR, false)?;
                    r.expr(Set::of(&[Token::Comma]), true);
                    Ok(())
                }),
                Token::Dot | Token::Ident => r.named(),
                _ => {
                    r.take_if(Token::Minus);
                    r.advance();
                    r.is_recovering = false;
                    Ok(())
                }
            }
        });
    }

    /// Elements between brackets or braces, with them.
    fn collection(&mut self, close: Token, first: Set, mut one: impl FnMut(&mut Self) -> Rule) -> Rule {
        self.take_if(self.token(0));
        let ends = Set::of(&[Token::Comma, close]);
        self.sync(first.and(ends))?;
        if first.has(self.token(0)) {
            self.rule(ends, false, |r| {
                loop {
                    one(r)?;
                    if r.token(0) != Token::Comma || !first.has(r.token(1)) {
                        return Ok(());
                    }
                    r.take_if(Token::Comma);
                }
            });
        }
        self.sync(ends)?;
        self.take_if(Token::Comma);
        self.take(close, Set::EMPTY, true)
    }

    fn element(&mut self, follow: Set, may_end: bool) {
        self.rule(follow, may_end, |r| {
            r.sync(FIRST_OF_ELEMENT)?;
            r.take_if(Token::Question);
            r.expr(Set::EMPTY, true);
            Ok(())
        });
    }

    /// A name, a call, or an object of a named type.
    fn named(&mut self) -> Rule {
        let dot = usize::from(self.token(0) == Token::Dot);
        if self.token(dot) != Token::Ident {
            return Err(Stop::NoWay(dot));
        }
        let mut ahead = dot + 1;
        while self.token(ahead) == Token::Dot && self.token(ahead + 1) == Token::Ident {
            ahead += 2;
        }
        let words = if self.token(ahead) == Token::LeftBrace { ahead } else { dot + 1 };
        (0..words).for_each(|_| self.advance());
        self.is_recovering = false;
        match self.token(0) {
            Token::LeftBrace if self.token(0) == Token::LeftBrace && words == ahead => {
                self.collection(Token::RightBrace, FIRST_OF_FIELD, |r| {
                    r.rule(Set::of(&[Token::Colon]), false, |r| {
                        r.sync(FIRST_OF_FIELD)?;
                        r.take_if(Token::Question);
                        r.rule(Set::EMPTY, true, Self::name);
                        Ok(())
                    });
                    r.take(Token::Colon, FIRST_OF_EXPR, false)?;
                    r.expr(Set::of(&[Token::Comma]), true);
                    Ok(())
                })
            }
            Token::LeftParen => self.args(),
            _ => Ok(()),
        }
    }
}

/// A text with its line breaks and tabs written out.
fn escaped(text: &str) -> String {
    text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

#[cfg(test)]
mod tests {
    use crate::parser::parse;
    use crate::source::Source;

    fn faults(text: &str) -> Vec<String> {
        match parse(&Source::new(text)) {
            Ok(_) => Vec::new(),
            Err(faults) => faults.to_string().lines().filter(|l| l.starts_with("ERROR")).map(str::to_owned).collect(),
        }
    }

    const EXPR: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
                        BYTES, IDENTIFIER}";

    #[test]
    fn the_same_faults_are_found() {
        for (text, wanted) in [
            (
                "*@a | b",
                vec![
                    "1:1: Syntax error: extraneous input '*' expecting EXPR",
                    "1:2: Syntax error: token recognition error at: '@'",
                    "1:5: Syntax error: token recognition error at: '| '",
                    "1:7: Syntax error: extraneous input 'b' expecting <EOF>",
                ],
            ),
            ("TestAllTypes(){}", vec!["1:15: Syntax error: mismatched input '{' expecting <EOF>"]),
            ("1 + 2\n3 +", vec!["2:1: Syntax error: mismatched input '3' expecting <EOF>"]),
            (
                "1 + +",
                vec![
                    "1:5: Syntax error: mismatched input '+' expecting EXPR",
                    "1:6: Syntax error: mismatched input '<EOF>' expecting EXPR",
                ],
            ),
            ("{\"a\": 1}.\"a\"", vec!["1:10: Syntax error: no viable alternative at input '.\"a\"'"]),
            (
                "in",
                vec![
                    "1:1: Syntax error: mismatched input 'in' expecting EXPR",
                    "1:3: Syntax error: mismatched input '<EOF>' expecting EXPR",
                ],
            ),
            (
                "func{{a}}",
                vec![
                    "1:6: Syntax error: extraneous input '{' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
                    "1:8: Syntax error: mismatched input '}' expecting ':'",
                    "1:9: Syntax error: extraneous input '}' expecting <EOF>",
                ],
            ),
            (
                "msg{:a}",
                vec![
                    "1:5: Syntax error: extraneous input ':' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
                    "1:7: Syntax error: mismatched input '}' expecting ':'",
                ],
            ),
            ("{a}", vec!["1:3: Syntax error: mismatched input '}' expecting ':'"]),
            ("ind[a{b}]", vec!["1:8: Syntax error: mismatched input '}' expecting ':'"]),
            (
                "--",
                vec![
                    "1:3: Syntax error: no viable alternative at input '-'",
                    "1:3: Syntax error: mismatched input '<EOF>' expecting EXPR",
                ],
            ),
            (
                "?",
                vec![
                    "1:1: Syntax error: mismatched input '?' expecting EXPR",
                    "1:2: Syntax error: mismatched input '<EOF>' expecting EXPR",
                ],
            ),
            ("self.", vec!["1:6: Syntax error: no viable alternative at input '.'"]),
            ("a.?.", vec!["1:4: Syntax error: mismatched input '.' expecting {IDENTIFIER, ESC_IDENTIFIER}"]),
            ("f(1", vec!["1:4: Syntax error: missing ')' at '<EOF>'"]),
            ("[1 2]", vec!["1:4: Syntax error: extraneous input '2' expecting {']', ','}"]),
        ] {
            let wanted: Vec<String> =
                wanted.into_iter().map(|line| format!("ERROR: <input>:{}", line.replace("EXPR", EXPR))).collect();
            assert_eq!(faults(text), wanted, "{text}");
        }
    }
}
