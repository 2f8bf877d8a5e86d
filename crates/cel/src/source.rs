//! The text of an expression, places in it, and the faults found in it as they are shown to people.

use std::fmt::{self, Display, Formatter, Write};

/// How many faults of one expression are shown; the rest are counted in one line.
pub const FAULTS_SHOWN_MAX: usize = 100;

/// The longest line, in characters, that is repeated under a fault.
const SNIPPET_LENGTH_MAX: usize = 16384;

/// The text of an expression as code points, with its line starts.
#[derive(Debug, Clone)]
pub struct Source {
    points: Vec<char>,
    lines: Vec<usize>,
}

/// A place in a [`Source`]: a line counted from one and a column counted from zero. Faults that concern no place in
/// particular have neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    line: isize,
    column: isize,
}

impl Place {
    /// The place of faults that concern the expression as a whole.
    pub const NOWHERE: Self = Self { line: -1, column: -1 };
}

impl Source {
    /// Takes the text of an expression.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let points: Vec<char> = text.chars().collect();
        let lines = std::iter::once(0)
            .chain(points.iter().enumerate().filter(|(_, c)| **c == '\n').map(|(i, _)| i + 1))
            .collect();
        Self { points, lines }
    }

    /// The code points.
    #[must_use]
    pub fn points(&self) -> &[char] {
        &self.points
    }

    /// The text between two offsets.
    #[must_use]
    pub fn text(&self, from: usize, to: usize) -> String {
        self.points.get(from..to.min(self.points.len())).unwrap_or_default().iter().collect()
    }

    /// Where an offset is. Offsets beyond the end belong to the last line.
    #[must_use]
    pub fn place(&self, offset: usize) -> Place {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        if self.points.is_empty() {
            return Place { line: 1, column: -1 };
        }
        Place { line: line.cast_signed(), column: offset.saturating_sub(start).cast_signed() }
    }

    fn line(&self, line: isize) -> Option<String> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let start = *self.lines.get(index)?;
        if self.points.is_empty() {
            return None;
        }
        let end = self.lines.get(index + 1).map_or(self.points.len(), |next| next - 1);
        Some(self.text(start, end))
    }
}

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it is.
    pub place: Place,
    /// What is wrong.
    pub text: String,
}

/// The faults of one expression; never none. Shown as the language's other implementations show them: each with its
/// line and a caret under the place, in the order of their places.
#[derive(Debug, Clone)]
pub struct Faults {
    source: Source,
    faults: Vec<Fault>,
}

impl Faults {
    /// Collects the faults of a source, in the order of their places.
    #[must_use]
    pub fn new(source: Source, mut faults: Vec<Fault>) -> Self {
        let extra = faults.split_off(faults.len().min(FAULTS_SHOWN_MAX)).len();
        faults.sort_by_key(|fault| fault.place);
        let mut all = Self { source, faults };
        if extra > 0 {
            let text = format!("{extra} more errors were truncated");
            all.faults.push(Fault { place: Place { line: isize::MAX, column: 0 }, text });
        }
        all
    }

    /// A fault that concerns a text as a whole.
    #[must_use]
    pub fn whole(text: &str, fault: &str) -> Self {
        Self::new(Source::new(text), vec![Fault { place: Place::NOWHERE, text: fault.to_owned() }])
    }

    /// The faults.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl Display for Faults {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_char('\n')?;
            }
            if fault.place.line == isize::MAX {
                f.write_str(&fault.text)?;
            } else {
                show(f, &self.source, fault)?;
            }
        }
        Ok(())
    }
}

fn show(f: &mut Formatter<'_>, source: &Source, fault: &Fault) -> fmt::Result {
    write!(f, "ERROR: <input>:{}:{}: {}", fault.place.line, fault.place.column + 1, fault.text)?;
    let Some(line) = source.line(fault.place.line).filter(|line| line.len() <= SNIPPET_LENGTH_MAX) else {
        return Ok(());
    };
    let line = line.replace('\t', " ");
    write!(f, "\n | {line}\n | ")?;
    let column = usize::try_from(fault.place.column).unwrap_or_default();
    for c in line.chars().take(column) {
        f.write_char(if c.is_ascii() { '.' } else { '\u{ff0e}' })?;
    }
    f.write_char(if line.chars().nth(column).is_none_or(|c| c.is_ascii()) { '^' } else { '\u{ff3e}' })
}
