//! A unified diff of two texts, line by line, as messages of the reference implementation carry it.
//!
//! Follows: go-difflib, a port of Python's difflib: the longest common run of lines first, then what is left and right
//! of it; lines that are frequent in a long second text start no run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Lines of context around a change.
const CONTEXT_LINES: usize = 3;
/// Second texts of this many lines and more have popular lines.
const POPULAR_FROM_LINES: usize = 200;

/// The diff that turns `a` into `b`; empty when they are equal.
pub fn unified(a: &str, b: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split('\n').collect(), b.split('\n').collect());
    let mut out = String::new();
    for group in groups(&codes(&a, &b)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let told = writeln!(out, "@@ -{} +{} @@", range(first.a.0, last.a.1), range(first.b.0, last.b.1));
        debug_assert!(told.is_ok(), "writing to a String cannot fail");
        for code in group {
            if code.is_equal {
                a[code.a.0..code.a.1].iter().for_each(|line| push_line(&mut out, ' ', line));
            } else {
                a[code.a.0..code.a.1].iter().for_each(|line| push_line(&mut out, '-', line));
                b[code.b.0..code.b.1].iter().for_each(|line| push_line(&mut out, '+', line));
            }
        }
    }
    out
}

fn push_line(out: &mut String, mark: char, line: &str) {
    out.push(mark);
    out.push_str(line);
    out.push('\n');
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        1 => (start + 1).to_string(),
        0 => format!("{start},0"),
        len => format!("{},{len}", start + 1),
    }
}

/// A run of lines in both texts, as half-open ranges: equal, or one in place of the other.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Code {
    is_equal: bool,
    a: (usize, usize),
    b: (usize, usize),
}

fn codes(a: &[&str], b: &[&str]) -> Vec<Code> {
    let mut lines: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (idx, line) in b.iter().enumerate() {
        lines.entry(line).or_default().push(idx);
    }
    if b.len() >= POPULAR_FROM_LINES {
        let most = b.len() / 100 + 1;
        lines.retain(|_, at| at.len() <= most);
    }
    let mut blocks = Vec::new();
    find_blocks(a, b, &lines, (0, a.len()), (0, b.len()), &mut blocks);
    blocks.push((a.len(), b.len(), 0));
    let mut codes: Vec<Code> = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (at_a, at_b, len) in blocks {
        if i < at_a || j < at_b {
            codes.push(Code { is_equal: false, a: (i, at_a), b: (j, at_b) });
        }
        (i, j) = (at_a + len, at_b + len);
        if len > 0 {
            match codes.last_mut() {
                Some(last) if last.is_equal => (last.a.1, last.b.1) = (i, j),
                _ => codes.push(Code { is_equal: true, a: (at_a, i), b: (at_b, j) }),
            }
        }
    }
    codes
}

type Span = (usize, usize);

fn find_blocks(
    a: &[&str],
    b: &[&str],
    lines: &BTreeMap<&str, Vec<usize>>,
    in_a: Span,
    in_b: Span,
    blocks: &mut Vec<(usize, usize, usize)>,
) {
    let (i, j, len) = longest_match(a, b, lines, in_a, in_b);
    if len == 0 {
        return;
    }
    if in_a.0 < i && in_b.0 < j {
        find_blocks(a, b, lines, (in_a.0, i), (in_b.0, j), blocks);
    }
    blocks.push((i, j, len));
    if i + len < in_a.1 && j + len < in_b.1 {
        find_blocks(a, b, lines, (i + len, in_a.1), (j + len, in_b.1), blocks);
    }
}

/// The longest run common to both spans, the earliest of several.
fn longest_match(
    a: &[&str],
    b: &[&str],
    lines: &BTreeMap<&str, Vec<usize>>,
    in_a: Span,
    in_b: Span,
) -> (usize, usize, usize) {
    let (mut i, mut j, mut len) = (in_a.0, in_b.0, 0);
    // the length of the run that ends with the line of `a` before and this line of `b`
    let mut runs: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, line) in a.iter().enumerate().take(in_a.1).skip(in_a.0) {
        let mut next = BTreeMap::new();
        for &to in lines.get(line).into_iter().flatten().filter(|to| (in_b.0..in_b.1).contains(*to)) {
            let run = 1 + to.checked_sub(1).and_then(|before| runs.get(&before)).copied().unwrap_or_default();
            next.insert(to, run);
            if run > len {
                (i, j, len) = (at + 1 - run, to + 1 - run, run);
            }
        }
        runs = next;
    }
    // popular lines start no run, but extend one
    while i > in_a.0 && j > in_b.0 && a[i - 1] == b[j - 1] {
        (i, j, len) = (i - 1, j - 1, len + 1);
    }
    while i + len < in_a.1 && j + len < in_b.1 && a[i + len] == b[j + len] {
        len += 1;
    }
    (i, j, len)
}

/// Changes with their context; those near each other share a group.
fn groups(codes: &[Code]) -> Vec<Vec<Code>> {
    let mut codes = codes.to_vec();
    if let Some(first) = codes.first_mut().filter(|c| c.is_equal) {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(CONTEXT_LINES));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(CONTEXT_LINES));
    }
    if let Some(last) = codes.last_mut().filter(|c| c.is_equal) {
        last.a.1 = last.a.1.min(last.a.0 + CONTEXT_LINES);
        last.b.1 = last.b.1.min(last.b.0 + CONTEXT_LINES);
    }
    let mut groups = Vec::new();
    let mut group = Vec::new();
    for mut code in codes {
        if code.is_equal && code.a.1 - code.a.0 > 2 * CONTEXT_LINES {
            let head = |span: Span| (span.0, span.1.min(span.0 + CONTEXT_LINES));
            group.push(Code { a: head(code.a), b: head(code.b), ..code });
            groups.push(std::mem::take(&mut group));
            code.a.0 = code.a.1 - CONTEXT_LINES;
            code.b.0 = code.b.1 - CONTEXT_LINES;
        }
        group.push(code);
    }
    if group.iter().any(|code| !code.is_equal) {
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn changes_come_with_their_context() {
        let a = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15";
        let b = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16";
        expect![[r#"
            @@ -2,7 +2,7 @@
             2
             3
             4
            -5
            +five
             6
             7
             8
            @@ -13,3 +13,4 @@
             13
             14
             15
            +16
        "#]]
        .assert_eq(&unified(a, b));
        assert_eq!(unified(a, a), "");
        assert_eq!(unified("a", "b"), "@@ -1 +1 @@\n-a\n+b\n");
    }
}
