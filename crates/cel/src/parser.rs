//! Reads an expression into a tree. A text that does not follow the grammar is left to [`crate::syntax`], which finds
//! out what to say about it.

use crate::ast::{Ast, Call, Constant, Element, Entry, Expr, FieldInit, Kind, NodeId, Select, Struct};
use crate::lexer::{Token, Word, words};
use crate::literal::constant;
use crate::macros;
use crate::source::{Fault, Faults, Place, Source};
use crate::syntax;
use compact_str::{CompactString, format_compact};

/// The longest expression, in code points.
pub const EXPRESSION_LENGTH_MAX: usize = 100_000;

/// How deep an expression may nest.
pub const DEPTH_MAX: u32 = 250;

/// Words that may not be used as names.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Reads an expression.
///
/// # Errors
/// What is wrong with it.
pub fn parse(source: &Source) -> Result<Ast, Faults> {
    parse_with(source, false)
}

/// Reads an expression, which may give names to values with `cel.bind` if `has_bind` says so.
///
/// # Errors
/// What is wrong with it.
pub fn parse_with(source: &Source, has_bind: bool) -> Result<Ast, Faults> {
    let length = source.points().len();
    if length > EXPRESSION_LENGTH_MAX {
        let text = format!("expression code point size exceeds limit: size: {length}, limit {EXPRESSION_LENGTH_MAX}");
        return Err(Faults::new(source.clone(), vec![Fault { place: Place::NOWHERE, text }]));
    }
    let (words, faults) = words(source);
    let mut parser = Parser { has_bind, ..Parser::new(source, words, faults) };
    let stopped = match parser.start() {
        Ok(root) if parser.faults.is_empty() => {
            return Ok(Ast { root, offsets: parser.offsets });
        }
        Ok(_) => None,
        Err(stop) => Some(stop),
    };
    let mut faults = parser.faults;
    match stopped {
        Some(Stop::Syntax) => faults.extend(syntax::explain(source, &parser.words)),
        Some(Stop::Depth(text)) => faults.push(Fault { place: Place::NOWHERE, text }),
        None => {}
    }
    Err(Faults::new(source.clone(), faults))
}

enum Stop {
    /// The words do not follow the grammar.
    Syntax,
    /// The expression nests too deep.
    Depth(String),
}

type Parsed = Result<(Expr, u32), Stop>;

/// The rules of the grammar that can nest; each has a depth of its own.
#[derive(Clone, Copy)]
enum Rule {
    Expr,
    Relation,
    Calc,
    Member,
}

/// Reads words into nodes, and makes the nodes that macros stand for.
#[derive(Debug)]
pub struct Parser<'s> {
    source: &'s Source,
    words: Vec<Word>,
    at: usize,
    offsets: Vec<u32>,
    faults: Vec<Fault>,
    depths: [u32; 4],
    has_bind: bool,
}

impl<'s> Parser<'s> {
    fn new(source: &'s Source, words: Vec<Word>, faults: Vec<Fault>) -> Self {
        Self { source, words, at: 0, offsets: vec![0], faults, depths: [0; 4], has_bind: false }
    }

    /// A new node's number.
    pub fn id(&mut self, offset: usize) -> NodeId {
        let id = self.offsets.len();
        self.offsets.push(u32::try_from(offset).unwrap_or(u32::MAX));
        NodeId::try_from(id).unwrap_or(NodeId::MAX)
    }

    /// Where a node stands.
    #[must_use]
    pub fn offset(&self, id: NodeId) -> usize {
        self.offsets.get(id as usize).copied().unwrap_or_default() as usize
    }

    /// Notes a fault and stands something in for the node.
    pub fn fault(&mut self, offset: usize, text: impl Into<String>) -> Expr {
        self.faults.push(Fault { place: self.source.place(offset), text: text.into() });
        Expr { id: self.id(offset), kind: Kind::Broken }
    }

    fn word(&self) -> Word {
        let end = Word { token: Token::End, start: 0, end: 0 };
        self.words.get(self.at).or_else(|| self.words.last()).copied().unwrap_or(end)
    }

    fn token(&self) -> Token {
        self.word().token
    }

    fn token_after(&self, ahead: usize) -> Token {
        self.words.get(self.at + ahead).map_or(Token::End, |word| word.token)
    }

    fn take(&mut self) -> Word {
        let word = self.word();
        self.at += 1;
        word
    }

    fn take_if(&mut self, token: Token) -> Option<Word> {
        (self.token() == token).then(|| self.take())
    }

    fn expect(&mut self, token: Token) -> Result<Word, Stop> {
        self.take_if(token).ok_or(Stop::Syntax)
    }

    fn text(&self, word: Word) -> CompactString {
        self.source.points().get(word.start..word.end).unwrap_or_default().iter().collect()
    }

    fn enter(&mut self, rule: Rule) -> Result<(), Stop> {
        let Some(depth) = self.depths.get_mut(rule as usize) else { return Ok(()) };
        *depth += 1;
        if *depth > DEPTH_MAX {
            return Err(Stop::Depth(format!("expression recursion limit exceeded: {DEPTH_MAX}")));
        }
        Ok(())
    }

    fn leave(&mut self, rule: Rule, times: u32) {
        if let Some(depth) = self.depths.get_mut(rule as usize) {
            *depth -= times;
        }
    }

    fn start(&mut self) -> Result<Expr, Stop> {
        let (root, height) = self.expr()?;
        self.expect(Token::End)?;
        if height > DEPTH_MAX {
            return Err(Stop::Depth("max recursion depth exceeded".to_owned()));
        }
        Ok(root)
    }

    fn expr(&mut self) -> Parsed {
        self.enter(Rule::Expr)?;
        let (condition, mut height) = self.logic(Token::Or)?;
        let mut out = condition;
        if let Some(question) = self.take_if(Token::Question) {
            let (yes, yes_height) = self.logic(Token::Or)?;
            self.expect(Token::Colon)?;
            let (no, no_height) = self.expr()?;
            height = 1 + height.max(yes_height).max(no_height);
            out = self.call(question.start, "_?_:_", vec![out, yes, no]);
        }
        self.leave(Rule::Expr, 1);
        Ok((out, height))
    }

    /// Terms joined by `||`, or by `&&` within them. Long chains become balanced trees.
    fn logic(&mut self, operator: Token) -> Parsed {
        let (first, mut height) = self.logic_term(operator)?;
        if self.token() != operator {
            return Ok((first, height));
        }
        let mut terms = vec![first];
        let mut ids = Vec::new();
        while let Some(word) = self.take_if(operator) {
            let (term, term_height) = self.logic_term(operator)?;
            height = height.max(term_height);
            ids.push(self.id(word.start));
            terms.push(term);
        }
        let name = if operator == Token::Or { "_||_" } else { "_&&_" };
        Ok((balanced(name, terms, &ids), height))
    }

    fn logic_term(&mut self, operator: Token) -> Parsed {
        if operator == Token::Or { self.logic(Token::And) } else { self.relation() }
    }

    fn relation(&mut self) -> Parsed {
        self.enter(Rule::Relation)?;
        let mut entered = 1;
        let (mut left, mut height) = self.calc(1)?;
        while let Some(name) = relation_name(self.token()) {
            let word = self.take();
            self.enter(Rule::Relation)?;
            entered += 1;
            self.enter(Rule::Relation)?;
            let (right, right_height) = self.calc(1)?;
            self.leave(Rule::Relation, 1);
            height = 1 + height.max(right_height);
            left = self.call(word.start, name, vec![left, right]);
        }
        self.leave(Rule::Relation, entered);
        Ok((left, height))
    }

    /// Sums and products; `tightness` is one where sums may stand and two where only products may.
    fn calc(&mut self, tightness: u8) -> Parsed {
        self.enter(Rule::Calc)?;
        let mut entered = 1;
        let (mut left, mut height) = self.unary()?;
        while let Some((name, binds)) = calc_name(self.token()).filter(|(_, binds)| *binds >= tightness) {
            let word = self.take();
            self.enter(Rule::Calc)?;
            entered += 1;
            let (right, right_height) = if binds == 1 {
                self.calc(2)?
            } else {
                self.enter(Rule::Calc)?;
                let operand = self.unary()?;
                self.leave(Rule::Calc, 1);
                operand
            };
            height = 1 + height.max(right_height);
            left = self.call(word.start, name, vec![left, right]);
        }
        self.leave(Rule::Calc, entered);
        Ok((left, height))
    }

    fn unary(&mut self) -> Parsed {
        let operator = self.token();
        let is_number = operator == Token::Minus && matches!(self.token_after(1), Token::Int | Token::Float);
        if is_number || !matches!(operator, Token::Minus | Token::Exclam) {
            return self.member();
        }
        let first = self.take();
        let mut count = 1;
        while self.take_if(operator).is_some() {
            count += 1;
        }
        let (operand, height) = self.member()?;
        if count % 2 == 0 {
            return Ok((operand, height));
        }
        let name = if operator == Token::Minus { "-_" } else { "!_" };
        Ok((self.call(first.start, name, vec![operand]), height))
    }

    fn member(&mut self) -> Parsed {
        self.enter(Rule::Member)?;
        let mut entered = 1;
        let (mut out, mut height) = self.primary()?;
        loop {
            match self.token() {
                Token::Dot => {
                    let dot = self.take();
                    self.enter(Rule::Member)?;
                    entered += 1;
                    (out, height) = self.selected(dot, out, height)?;
                }
                Token::LeftBracket => {
                    let bracket = self.take();
                    self.enter(Rule::Member)?;
                    entered += 1;
                    let name = if self.take_if(Token::Question).is_some() { "_[?_]" } else { "_[_]" };
                    let id = self.id(bracket.start);
                    let (index, index_height) = self.expr()?;
                    self.expect(Token::RightBracket)?;
                    height = 1 + height.max(index_height);
                    out = call(id, name, None, vec![out, index]);
                }
                _ => break,
            }
        }
        self.leave(Rule::Member, entered);
        Ok((out, height))
    }

    fn selected(&mut self, dot: Word, operand: Expr, height: u32) -> Parsed {
        let is_optional = self.take_if(Token::Question).is_some();
        let word = self.take();
        if !matches!(word.token, Token::Ident | Token::EscapedIdent) {
            return Err(Stop::Syntax);
        }
        let name = self.text(word);
        if word.token == Token::EscapedIdent {
            let _ = self.fault(word.start, "unsupported syntax: '`'");
        }
        if is_optional {
            let id = self.id(dot.start);
            let field = Constant::String(name.as_str().into());
            let field = Expr { id: self.id(word.start), kind: Kind::Constant(field) };
            return Ok((call(id, "_?._", None, vec![operand, field]), height + 1));
        }
        if word.token == Token::Ident
            && let Some(paren) = self.take_if(Token::LeftParen)
        {
            let id = self.id(paren.start);
            let (args, args_height) = self.args()?;
            let out = self.expanded(id, name, Some(operand), args);
            return Ok((out, 1 + height.max(args_height)));
        }
        let id = self.id(dot.start);
        let select = Select { operand, field: name, is_test: false };
        Ok((Expr { id, kind: Kind::Select(Box::new(select)) }, height + 1))
    }

    /// The arguments of a call, up to and with the closing parenthesis.
    fn args(&mut self) -> Result<(Vec<Expr>, u32), Stop> {
        let mut args = Vec::new();
        let mut height = 0;
        if self.take_if(Token::RightParen).is_some() {
            return Ok((args, height));
        }
        loop {
            let (arg, arg_height) = self.expr()?;
            height = height.max(arg_height);
            args.push(arg);
            if self.take_if(Token::Comma).is_none() {
                self.expect(Token::RightParen)?;
                return Ok((args, height));
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        let word = self.word();
        match word.token {
            Token::LeftParen => {
                self.at += 1;
                let inner = self.expr()?;
                self.expect(Token::RightParen)?;
                Ok(inner)
            }
            Token::LeftBracket => self.list(),
            Token::LeftBrace => {
                self.at += 1;
                let id = self.id(word.start);
                let (entries, height) = self.entries()?;
                Ok((Expr { id, kind: Kind::Map(entries) }, height))
            }
            Token::Dot | Token::Ident => self.named(),
            Token::Minus => {
                self.at += 1;
                self.literal(word.start, true)
            }
            _ => self.literal(word.start, false),
        }
    }

    fn literal(&mut self, start: usize, is_negative: bool) -> Parsed {
        let word = self.take();
        let is_literal = matches!(word.token, Token::Int | Token::Float)
            || (!is_negative
                && matches!(
                    word.token,
                    Token::Uint | Token::String | Token::Bytes | Token::True | Token::False | Token::Null
                ));
        if !is_literal {
            return Err(Stop::Syntax);
        }
        Ok(match constant(word.token, &self.text(word), is_negative) {
            Ok(value) => (Expr { id: self.id(start), kind: Kind::Constant(value) }, 0),
            Err(text) => (self.fault(start, text), 0),
        })
    }

    fn list(&mut self) -> Parsed {
        let bracket = self.take();
        let id = self.id(bracket.start);
        let mut elements = Vec::new();
        let mut height = 0;
        while self.token() != Token::RightBracket {
            if elements.is_empty() && self.token() == Token::Comma {
                self.at += 1;
                break;
            }
            let is_optional = self.take_if(Token::Question).is_some();
            let (value, value_height) = self.expr()?;
            height = height.max(value_height);
            elements.push(Element { is_optional, value });
            if self.take_if(Token::Comma).is_none() {
                break;
            }
        }
        self.expect(Token::RightBracket)?;
        Ok((Expr { id, kind: Kind::List(elements) }, height))
    }

    fn entries(&mut self) -> Result<(Vec<Entry>, u32), Stop> {
        let mut entries = Vec::new();
        let mut height = 0;
        while self.token() != Token::RightBrace {
            if entries.is_empty() && self.token() == Token::Comma {
                self.at += 1;
                break;
            }
            let is_optional = self.take_if(Token::Question).is_some();
            let (key, key_height) = self.expr()?;
            let colon = self.expect(Token::Colon)?;
            let id = self.id(colon.start);
            let (value, value_height) = self.expr()?;
            height = height.max(key_height).max(value_height);
            entries.push(Entry { id, is_optional, key, value });
            if self.take_if(Token::Comma).is_none() {
                break;
            }
        }
        self.expect(Token::RightBrace)?;
        Ok((entries, height))
    }

    /// A name, a function called by its name, or an object of a named type.
    fn named(&mut self) -> Parsed {
        let start = self.word().start;
        let dot = if self.take_if(Token::Dot).is_some() { "." } else { "" };
        let mut ahead = 1;
        while self.token_after(ahead) == Token::Dot && self.token_after(ahead + 1) == Token::Ident {
            ahead += 2;
        }
        if self.token() == Token::Ident && self.token_after(ahead) == Token::LeftBrace {
            return self.object(dot, ahead);
        }
        let word = self.expect(Token::Ident)?;
        let name = self.text(word);
        let is_reserved = RESERVED.contains(&name.as_str());
        let qualified = format_compact!("{dot}{name}");
        if let Some(paren) = self.take_if(Token::LeftParen) {
            if is_reserved {
                let known = self.faults.len();
                let (_, height) = self.args()?;
                self.faults.truncate(known);
                return Ok((self.fault(start, format!("reserved identifier: {name}")), height));
            }
            let id = self.id(paren.start);
            let (args, height) = self.args()?;
            return Ok((self.expanded(id, qualified, None, args), height));
        }
        if is_reserved {
            return Ok((self.fault(start, format!("reserved identifier: {name}")), 0));
        }
        Ok((Expr { id: self.id(word.start), kind: Kind::Ident(qualified) }, 0))
    }

    fn object(&mut self, dot: &str, words: usize) -> Parsed {
        let mut name = CompactString::from(dot);
        for _ in 0..words {
            let word = self.take();
            name.push_str(&self.text(word));
        }
        let brace = self.expect(Token::LeftBrace)?;
        let id = self.id(brace.start);
        let mut fields = Vec::new();
        let mut height = 0;
        while self.token() != Token::RightBrace {
            if fields.is_empty() && self.token() == Token::Comma {
                self.at += 1;
                break;
            }
            let is_optional = self.take_if(Token::Question).is_some();
            let word = self.take();
            match word.token {
                Token::Ident => {}
                Token::EscapedIdent => {
                    let _ = self.fault(word.start, "unsupported syntax: '`'");
                }
                _ => return Err(Stop::Syntax),
            }
            let colon = self.expect(Token::Colon)?;
            let id = self.id(colon.start);
            let (value, value_height) = self.expr()?;
            height = height.max(value_height);
            fields.push(FieldInit { id, name: self.text(word), is_optional, value });
            if self.take_if(Token::Comma).is_none() {
                break;
            }
        }
        self.expect(Token::RightBrace)?;
        Ok((Expr { id, kind: Kind::Struct(Box::new(Struct { name, fields })) }, height))
    }

    fn call(&mut self, offset: usize, name: &str, args: Vec<Expr>) -> Expr {
        call(self.id(offset), name, None, args)
    }

    /// A call, or what the macro of that name makes of it.
    fn expanded(&mut self, id: NodeId, name: CompactString, target: Option<Expr>, args: Vec<Expr>) -> Expr {
        let is_bind = self.has_bind
            && name == "bind"
            && args.len() == 3
            && matches!(&target, Some(Expr { kind: Kind::Ident(of), .. }) if of == "cel");
        let expand = if is_bind { Some(macros::BIND) } else { macros::find(&name, target.is_some(), args.len()) };
        match expand {
            Some(expand) => macros::expand(expand, self, id, target, args),
            None => Expr { id, kind: Kind::Call(Box::new(Call { function: name, target, args })) },
        }
    }
}

fn call(id: NodeId, name: &str, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    Expr { id, kind: Kind::Call(Box::new(Call { function: name.into(), target, args })) }
}

/// Joins terms into a tree of the least height, so that a chain's length does not make it deep.
fn balanced(name: &str, terms: Vec<Expr>, ids: &[NodeId]) -> Expr {
    let Some((last, split)) = ids.len().checked_sub(1).map(|last| (last, ids.len() / 2)) else {
        return terms.into_iter().next().unwrap_or(Expr { id: 0, kind: Kind::Broken });
    };
    let mut left = terms;
    let right = left.split_off(split.min(last) + 1);
    let left = balanced(name, left, ids.get(..split).unwrap_or_default());
    let right = balanced(name, right, ids.get(split + 1..).unwrap_or_default());
    call(ids.get(split).copied().unwrap_or_default(), name, None, vec![left, right])
}

fn relation_name(token: Token) -> Option<&'static str> {
    Some(match token {
        Token::Less => "_<_",
        Token::LessEquals => "_<=_",
        Token::Greater => "_>_",
        Token::GreaterEquals => "_>=_",
        Token::Equals => "_==_",
        Token::NotEquals => "_!=_",
        Token::In => "@in",
        _ => return None,
    })
}

fn calc_name(token: Token) -> Option<(&'static str, u8)> {
    Some(match token {
        Token::Star => ("_*_", 2),
        Token::Slash => ("_/_", 2),
        Token::Percent => ("_%_", 2),
        Token::Plus => ("_+_", 1),
        Token::Minus => ("_-_", 1),
        _ => return None,
    })
}
