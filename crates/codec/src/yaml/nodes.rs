//! The nodes of a document, from the parser's events.

use super::YamlError;
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};
use std::collections::BTreeMap;

/// Index of a node in its [`Tree`].
pub(super) type NodeId = usize;

/// What a node is.
#[derive(Debug)]
pub(super) enum Content<'t> {
    Scalar {
        text: std::borrow::Cow<'t, str>,
        /// Neither quoted nor a block: its text says what it is.
        is_plain: bool,
    },
    Sequence(Vec<NodeId>),
    /// Keys and values in turn.
    Mapping(Vec<NodeId>),
    Alias(NodeId),
}

#[derive(Debug)]
pub(super) struct Node<'t> {
    pub(super) content: Content<'t>,
    /// The short form of an explicit tag (`!!int`, `!own`); empty for none.
    pub(super) tag: String,
    /// Where it begins, from 1.
    pub(super) line: usize,
}

/// A document.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    pub(super) nodes: Vec<Node<'t>>,
    /// `None` for an empty text.
    pub(super) root: Option<NodeId>,
    /// What the anchors of nodes are called.
    pub(super) anchor_names: BTreeMap<NodeId, String>,
}

impl<'t> Tree<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Tree<'t>, YamlError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut tree = Tree { nodes: Vec::new(), root: None, anchor_names: BTreeMap::new() };
        let mut anchors = BTreeMap::new();
        let options = granit_parser::options! {
            emit_comments: false,
            emit_anchor_events: true,
            emit_unresolved_aliases: true
        };
        let mut parser = Parser::new_from_str_with_options(text, options);
        // the collections that are open; their own nodes are in the tree already
        let mut open: Vec<NodeId> = Vec::new();
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(|why| syntax_error(&why, text))?;
            let line = span.start.line();
            let (content, anchor, tag, is_collection) = match event {
                Event::Scalar(text, style, anchor, tag) => {
                    let is_plain = style == ScalarStyle::Plain;
                    (Content::Scalar { text, is_plain }, anchor, short_tag(tag.as_deref()), false)
                }
                Event::SequenceStart(_, anchor, tag) => {
                    (Content::Sequence(Vec::new()), anchor, short_tag(tag.as_deref()), true)
                }
                Event::MappingStart(_, anchor, tag) => {
                    (Content::Mapping(Vec::new()), anchor, short_tag(tag.as_deref()), true)
                }
                Event::Alias(anchor) => {
                    let Some(&target) = anchors.get(&anchor) else { continue };
                    (Content::Alias(target), 0, String::new(), false)
                }
                Event::UnresolvedAlias(name) => {
                    return Err(YamlError(format!("yaml: unknown anchor '{name}' referenced")));
                }
                Event::Anchor(anchor, name) => {
                    if let Some(&id) = anchors.get(&anchor) {
                        tree.anchor_names.insert(id, name.into_owned());
                    }
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    continue;
                }
                // what comes after the first document is not looked at
                Event::DocumentEnd => break,
                _ => continue,
            };
            let id = tree.nodes.len();
            tree.nodes.push(Node { content, tag, line });
            if anchor != 0 {
                anchors.insert(anchor, id);
            }
            match open.last() {
                None => tree.root = Some(id),
                Some(&parent) => {
                    if let Content::Sequence(children) | Content::Mapping(children) = &mut tree.nodes[parent].content {
                        children.push(id);
                    }
                }
            }
            if is_collection {
                open.push(id);
            }
        }
        Ok(tree)
    }
}

fn short_tag(tag: Option<&Tag>) -> String {
    let Some(tag) = tag else { return String::new() };
    match tag.handle() {
        "tag:yaml.org,2002:" => format!("!!{}", tag.suffix()),
        handle => format!("{handle}{}", tag.suffix()),
    }
}

/// A fault of the syntax in libyaml's words, which clients see: where the fault lies counts from 1 for faults of the
/// scanner, and from 0 (and not at all in the first line) for those of the grammar.
fn syntax_error(why: &ScanError, text: &str) -> YamlError {
    use ErrorKind as E;
    let line = why.marker().line();
    let separator =
        |open: char| if open == '[' { "did not find expected ',' or ']'" } else { "did not find expected ',' or '}'" };
    match why.kind() {
        E::TabNotAllowed | E::TabInBlockIndentation | E::TabInIndentation | E::UnexpectedCharacter { .. } => {
            scanner(line, "found character that cannot start any token")
        }
        E::TabInPlainScalar => scanner(line + 1, "found a tab character that violates indentation"),
        E::MappingValueNotAllowed | E::InvalidColonPlacement => {
            scanner(line, "mapping values are not allowed in this context")
        }
        // it is missed at the next line only
        E::SimpleKeyExpected | E::InvalidSimpleKey => scanner(line + 1, "could not find expected ':'"),
        E::UnclosedQuotedScalar => scanner(text.matches('\n').count() + 1, "found unexpected end of stream"),
        E::DocumentIndicatorInQuotedScalar => scanner(line, "found unexpected document indicator"),
        E::InvalidQuotedScalarHexEscape => scanner(line, "did not find expected hexdecimal number"),
        E::InvalidUnicodeEscape | E::InvalidLowSurrogate | E::MissingLowSurrogate | E::UnpairedLowSurrogate => {
            scanner(line, "found invalid Unicode character escape code")
        }
        E::ExpectedNodeContent | E::UnexpectedEof | E::MisplacedFlowCollectionEnd => {
            grammar(line.saturating_sub(1), "did not find expected node content")
        }
        E::ExpectedBlockMappingKey | E::InvalidTrailingSingleQuotedScalar | E::InvalidTrailingDoubleQuotedScalar => {
            grammar(line.saturating_sub(1), "did not find expected key")
        }
        // said of an entry without anything in it, too
        E::UnexpectedEofImplicitFlowMapping => grammar(line.saturating_sub(1), "did not find expected node content"),
        E::UnexpectedEofFlowMapping => unclosed(text, separator('{')),
        E::UnexpectedEofFlowSequence => unclosed(text, separator('[')),
        E::UnclosedFlowCollection { open } => unclosed(text, separator(*open)),
        E::ExpectedFlowMappingSeparator => grammar(line.saturating_sub(1), separator('{')),
        E::ExpectedFlowSequenceSeparator => grammar(line.saturating_sub(1), separator('[')),
        E::ExpectedDocumentStart | E::ExpectedBlockSequenceEntry => {
            grammar(line.saturating_sub(1), plain_words(&why.info()))
        }
        E::RecursionLimitExceeded => scanner(line, "exceeded max depth"),
        E::UndeclaredTagHandle => grammar(line.saturating_sub(1), "found undefined tag handle"),
        _ => scanner(line, plain_words(&why.info())),
    }
}

fn scanner(line: usize, text: &str) -> YamlError {
    if line > 1 { YamlError(format!("yaml: line {line}: {text}")) } else { YamlError(format!("yaml: {text}")) }
}

fn grammar(line: usize, text: &str) -> YamlError {
    if line > 0 { YamlError(format!("yaml: line {line}: {text}")) } else { YamlError(format!("yaml: {text}")) }
}

/// A flow collection that is open at the end: told there, and by what was to come next.
fn unclosed(text: &str, separator: &str) -> YamlError {
    let expected =
        if text.trim_end().ends_with(['[', '{', ',']) { "did not find expected node content" } else { separator };
    grammar(n_lines(text), expected)
}

/// How many lines a text has, the last one with or without its end.
fn n_lines(text: &str) -> usize {
    text.lines().count()
}

/// The fault without what the parser was doing: `while scanning a tag, did not find ..`.
fn plain_words(text: &str) -> &str {
    match text.split_once(", ") {
        Some((context, fault)) if context.starts_with("while ") => fault,
        _ => text,
    }
}
