use super::*;

#[test]
fn errors_in_gos_words() {
    for (pattern, want) in [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("(+?)", "missing argument to repetition operator: `+?`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a*?+", "invalid nested repetition operator: `*?+`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)", "invalid named capture: `(?<=a)`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`"),
        (r"\pX", r"invalid character class range: `\pX`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
    ] {
        assert_eq!(Regexp::new(pattern).unwrap_err().to_string(), format!("error parsing regexp: {want}"), "{pattern}");
    }
}

#[test]
fn matches_as_go_does() {
    for (pattern, text, want) in [
        ("^[a-c]+$", "abc", true),
        ("^[a-c]+$", "abd", false),
        (r"^\d+$", "12", true),
        (r"^\d+$", "१२", false),
        (r"^\w+$", "é", false),
        (r"^[\w-]+$", "a-b_1", true),
        (r"^[^\s]+$", "a b", false),
        ("^a{,2}$", "a{,2}", true),
        ("^a{2}$", "aa", true),
        ("^[a&&b]+$", "&ab", true),
        ("^[[a]+$", "[a", true),
        ("^[]a]+$", "]a", true),
        ("^[a-]+$", "-a", true),
        (r"^[a\-z]+$", "-", true),
        ("(?i)^ABC$", "abc", true),
        (r"\bfoo\b", "a foo b", true),
        (r"^\Qa.b\E$", "a.b", true),
        (r"^\Qa.b\E$", "axb", false),
        ("^[[:alpha:][:digit:]]+$", "a1", true),
        ("^(?P<n>a)(?<m>b)$", "ab", true),
        (r"^\x41\x{42}\103$", "ABC", true),
        (r"^\p{Greek}+$", "αβ", true),
        ("a]b}", "a]b}", true),
        ("^(?:)$", "", true),
    ] {
        assert_eq!(Regexp::new(pattern).unwrap().is_match(text), want, "{pattern} on {text}");
    }
}
