//! From the text of a command line to operations with jumps.

use super::words::{Token, Word, tokens};

/// Operations that a script may have. A longer script is not understood: it is an unknown command.
const OPS_MAX: usize = 10_000;

/// Depth of loops in loops. A deeper script is not understood.
const DEPTH_MAX: usize = 16;

/// Why a text is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not understood: {0}")]
pub struct ParseError(pub String);

impl ParseError {
    pub(super) fn new(what: impl Into<String>) -> ParseError {
        ParseError(what.into())
    }
}

/// A compiled script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub(super) ops: Vec<Op>,
    /// How many `for` loops there are: each has a slot for what it has still to go through.
    pub(super) n_slots: usize,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Run a command; sets the status.
    Run(Command),
    /// Set a variable; the status becomes 0.
    Set(String, Word),
    /// Go on elsewhere.
    Jump(usize),
    /// Go on elsewhere if the status is (not) 0.
    JumpIf { is_success: bool, to: usize },
    /// Begin a `for` loop over these words.
    ForBegin { slot: usize, words: Vec<Word> },
    /// Take the next word of a `for` loop, or leave the loop.
    ForNext { slot: usize, name: String, end: usize },
}

/// A simple command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    /// What it prints goes to standard error.
    pub(super) is_to_stderr: bool,
    /// What it prints goes into a file.
    pub(super) is_silent: bool,
    pub(super) is_negated: bool,
    /// The words are one command, as given by a container's `command`: no assignments, nothing is expanded.
    pub(super) is_exact: bool,
}

impl Script {
    /// Compiles the text after `sh -c`.
    ///
    /// # Errors
    /// [`ParseError`] for anything but simple commands, `;`, `&&`, `||`, `while`, `until`, `for` and `if`.
    pub fn parse(text: &str) -> Result<Script, ParseError> {
        let mut parser = Parser { tokens: tokens(text)?, position: 0, ops: Vec::new(), n_slots: 0, loops: Vec::new() };
        parser.list(&[])?;
        if parser.position < parser.tokens.len() {
            return Err(ParseError::new("it goes on after its end"));
        }
        Ok(Script { ops: parser.ops, n_slots: parser.n_slots })
    }

    /// One command with its arguments, as they are.
    pub fn of_command(words: &[String]) -> Script {
        let words = words.iter().map(|word| Word::literal(word)).collect();
        let command = Command { words, is_to_stderr: false, is_silent: false, is_negated: false, is_exact: true };
        Script { ops: vec![Op::Run(command)], n_slots: 0 }
    }
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
    ops: Vec<Op>,
    n_slots: usize,
    /// The loops around the current place.
    loops: Vec<Loop>,
}

struct Loop {
    /// Where `continue` goes.
    start: usize,
    /// The jumps of `break`, which do not know yet where the loop ends.
    breaks: Vec<usize>,
}

impl Parser {
    fn keyword(&self) -> Option<&str> {
        match self.tokens.get(self.position)? {
            Token::Word(word) => word.as_keyword(),
            Token::Operator(_) => None,
        }
    }

    fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = self.keyword() == Some(keyword);
        self.position += usize::from(found);
        found
    }

    fn expect_keyword(&mut self, keyword: &str) -> Result<(), ParseError> {
        if self.take_keyword(keyword) { Ok(()) } else { Err(ParseError::new(format!("{keyword:?} is missing"))) }
    }

    fn operator(&self) -> Option<&'static str> {
        match self.tokens.get(self.position)? {
            Token::Operator(operator) => Some(operator),
            Token::Word(_) => None,
        }
    }

    fn push(&mut self, op: Op) -> Result<usize, ParseError> {
        if self.ops.len() >= OPS_MAX {
            return Err(ParseError::new(format!("it has more than {OPS_MAX} operations")));
        }
        self.ops.push(op);
        Ok(self.ops.len() - 1)
    }

    /// Makes the jump at `op` lead to the next operation.
    fn land(&mut self, op: usize) {
        let here = self.ops.len();
        match &mut self.ops[op] {
            Op::Jump(to) | Op::JumpIf { to, .. } | Op::ForNext { end: to, .. } => *to = here,
            Op::Run(_) | Op::Set(..) | Op::ForBegin { .. } => {}
        }
    }

    /// Commands one after the other, up to one of these keywords.
    fn list(&mut self, ends: &[&str]) -> Result<(), ParseError> {
        loop {
            while matches!(self.operator(), Some(";" | "&")) {
                self.position += 1;
            }
            if self.position >= self.tokens.len() || self.keyword().is_some_and(|word| ends.contains(&word)) {
                return Ok(());
            }
            self.and_or()?;
            match self.operator() {
                Some(";" | "&") | None => {}
                Some(other) => return Err(ParseError::new(format!("{other:?} in this place"))),
            }
        }
    }

    fn and_or(&mut self) -> Result<(), ParseError> {
        self.command()?;
        while let Some(operator @ ("&&" | "||")) = self.operator() {
            self.position += 1;
            let skip = self.push(Op::JumpIf { is_success: operator == "||", to: 0 })?;
            self.command()?;
            self.land(skip);
        }
        Ok(())
    }

    fn command(&mut self) -> Result<(), ParseError> {
        if self.loops.len() > DEPTH_MAX {
            return Err(ParseError::new(format!("loops are nested more than {DEPTH_MAX} deep")));
        }
        match self.keyword() {
            Some("while") => self.while_loop(true),
            Some("until") => self.while_loop(false),
            Some("for") => self.for_loop(),
            Some("if") => self.if_command(),
            Some(word @ ("do" | "done" | "then" | "else" | "elif" | "fi" | "case" | "function" | "{" | "}")) => {
                Err(ParseError::new(format!("{word:?} in this place")))
            }
            _ => self.simple(),
        }
    }

    fn while_loop(&mut self, runs_while_success: bool) -> Result<(), ParseError> {
        self.position += 1;
        let start = self.ops.len();
        self.list(&["do"])?;
        self.expect_keyword("do")?;
        let leave = self.push(Op::JumpIf { is_success: !runs_while_success, to: 0 })?;
        self.body(start)?;
        self.land(leave);
        Ok(())
    }

    /// The commands of a loop up to `done`, and the jump back to `start`. Leaves the `break`s behind the loop.
    fn body(&mut self, start: usize) -> Result<(), ParseError> {
        self.loops.push(Loop { start, breaks: Vec::new() });
        self.list(&["done"])?;
        self.expect_keyword("done")?;
        self.push(Op::Jump(start))?;
        for jump in self.loops.pop().map(|ended| ended.breaks).unwrap_or_default() {
            self.land(jump);
        }
        Ok(())
    }

    fn for_loop(&mut self) -> Result<(), ParseError> {
        self.position += 1;
        let Some(Token::Word(word)) = self.tokens.get(self.position) else {
            return Err(ParseError::new("\"for\" without a name"));
        };
        let name = word.as_keyword().ok_or_else(|| ParseError::new("\"for\" without a name"))?.to_owned();
        self.position += 1;
        self.expect_keyword("in")?;
        let mut words = Vec::new();
        while let Some(Token::Word(word)) = self.tokens.get(self.position) {
            words.push(word.clone());
            self.position += 1;
        }
        while self.operator() == Some(";") {
            self.position += 1;
        }
        self.expect_keyword("do")?;
        let slot = self.n_slots;
        self.n_slots += 1;
        self.push(Op::ForBegin { slot, words })?;
        let next = self.push(Op::ForNext { slot, name, end: 0 })?;
        self.body(next)?;
        self.land(next);
        Ok(())
    }

    fn if_command(&mut self) -> Result<(), ParseError> {
        self.position += 1;
        let mut to_end = Vec::new();
        loop {
            self.list(&["then"])?;
            self.expect_keyword("then")?;
            let skip = self.push(Op::JumpIf { is_success: false, to: 0 })?;
            self.list(&["elif", "else", "fi"])?;
            to_end.push(self.push(Op::Jump(0))?);
            self.land(skip);
            if !self.take_keyword("elif") {
                break;
            }
        }
        if self.take_keyword("else") {
            self.list(&["fi"])?;
        }
        self.expect_keyword("fi")?;
        for jump in to_end {
            self.land(jump);
        }
        Ok(())
    }

    fn simple(&mut self) -> Result<(), ParseError> {
        let is_negated = self.take_keyword("!");
        let (mut words, mut is_to_stderr, mut is_silent) = (Vec::<Word>::new(), false, false);
        loop {
            match self.tokens.get(self.position) {
                Some(Token::Word(word)) => words.push(word.clone()),
                Some(Token::Operator("2>&1" | "2>" | "<")) => self.skip_target(),
                Some(Token::Operator(">&2")) => is_to_stderr = true,
                Some(Token::Operator(">" | ">>" | "&>")) => {
                    self.skip_target();
                    is_silent = true;
                }
                _ => break,
            }
            self.position += 1;
        }
        if words.is_empty() {
            return Err(ParseError::new("a command is missing"));
        }
        while let [word, ..] = words.as_slice() {
            let Some((name, value)) = word.as_assignment() else { break };
            self.push(Op::Set(name, value))?;
            words.remove(0);
        }
        match words.first().and_then(Word::as_keyword) {
            None if words.is_empty() => {}
            Some("break") => {
                let jump = self.push(Op::Jump(0))?;
                let around = self.loops.last_mut().ok_or_else(|| ParseError::new("\"break\" outside a loop"))?;
                around.breaks.push(jump);
            }
            Some("continue") => {
                let around = self.loops.last().ok_or_else(|| ParseError::new("\"continue\" outside a loop"))?;
                self.push(Op::Jump(around.start))?;
            }
            _ => {
                let command = Command { words, is_to_stderr, is_silent, is_negated, is_exact: false };
                self.push(Op::Run(command))?;
            }
        }
        Ok(())
    }

    /// The file of a redirection; `2>&1` has none.
    fn skip_target(&mut self) {
        let has_target = self.operator() != Some("2>&1");
        self.position += usize::from(has_target && matches!(self.tokens.get(self.position + 1), Some(Token::Word(_))));
    }
}
