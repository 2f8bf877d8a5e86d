use super::*;
use pintle_apimachinery::json;

fn find(path: &str) -> String {
    let object = json!({"a": {"b.c": 1, "l": [{"x": "p", "n": 1}, {"x": "q", "n": 2}, {"n": 3}]}, "e": [], "s": "t"});
    match JsonPath::parse(path)
        .and_then(|path| path.find(&object).map(|v| v.into_iter().map(text_of).collect::<Vec<_>>()))
    {
        Ok(found) => found.join(" "),
        Err(why) => format!("! {why}"),
    }
}

#[test]
fn paths() {
    for (path, want) in [
        (".a.l[*].x", "p q"),
        (".a.l[0].x", "p"),
        (".a.l[-1].n", "3"),
        (".a.l[0:2].n", "1 2"),
        (".a.l[::2].n", "1 3"),
        (".a.l[0,2].n", "1 3"),
        (".a['b\\.c']", "1"),
        (".a.b\\.c", "1"),
        (".a.l[?(@.x == \"q\")].n", "2"),
        (".a.l[?(@.x=='q')].n", "2"),
        (".a.l[?(@.n >= 2)].n", "2 3"),
        (".a.l[?(@.x)].n", "1 2"),
        ("..x", "p q"),
        (".nothing.at.all", ""),
        (".e[*]", ""),
        ("$.s", "t"),
        (".a.l[7]", "! array index out of bounds: index 7, length 3"),
        (".a[0]", "! map[string]interface {} is not array or slice"),
        (".spec[", "! unterminated array"),
        (".a[x]", "! invalid array index x"),
        (".a.l[?(@.x", "! unterminated filter"),
        ("a", "! unrecognized identifier a"),
        ("#", "! unrecognized character in action: U+0023 '#'"),
    ] {
        assert_eq!(find(path), want, "{path}");
    }
    assert_eq!(find(".a.l[0]"), r#"{"n":1,"x":"p"}"#);
}
