//! Expressions, what becomes of them, what that costs and what it was estimated to cost.

use crate::cost::estimate;
use crate::env::Env;
use crate::eval::{Val, plan};
use crate::library::convert::text_of;
use crate::types::Type;
use expect_test::{expect, expect_file};
use pintle_apimachinery::value::{Value, parse};
use proptest::prelude::*;

fn env() -> Env {
    Env::new()
        .with("self", Type::Dyn)
        .with("l", Type::list(Type::String))
        .with("m", Type::map(Type::String, Type::Int))
        .with("s", Type::String)
}

fn input() -> Value {
    let input = r#"{"l": ["a", "b", "ccc"], "m": {"x": 1, "y": 22}, "s": "hello", "uri": "https://h:80/p?q=1",
        "deep": {"a": [{"k": "v", "n": 3}, {"k": "w"}]}}"#;
    parse(input.as_bytes()).unwrap()
}

/// Runs an expression; what it came to in one line.
fn told(env: &Env, input: &Value, text: &str) -> String {
    let checked = match env.compile(text) {
        Ok(checked) => checked,
        Err(faults) => return faults.to_string().lines().next().unwrap_or_default().to_owned(),
    };
    let estimated = estimate(&checked, &|_| None);
    let program = match plan(&checked) {
        Ok(program) => program,
        Err(why) => return why,
    };
    let variables = [Val::json(input), Val::json(&input["l"]), Val::json(&input["m"]), Val::json(&input["s"])];
    let outcome = program.run(&variables, 1_000_000);
    let value = match outcome.value {
        Ok(Val::String(text)) => format!("{:?}", text.as_str()),
        Ok(value) => text_of(&value).unwrap_or_else(|| value.type_name().to_owned()),
        Err(why) => format!("error: {why}"),
    };
    let most = if estimated.max == u64::MAX { "any".to_owned() } else { estimated.max.to_string() };
    format!("{value} ({}, cost {} of {}..{most})", checked.output(), outcome.cost, estimated.min)
}

const EXPRESSIONS: &[&str] = &[
    "1 + 2 * 3 == 7 && !(s == 'x')",
    "self.deep.a.map(x, x.k)[1] + s",
    "self.deep.a.filter(x, has(x.n)).size()",
    "l.exists(x, x.startsWith('cc')) || l.all(x, size(x) == 1)",
    "l.exists_one(x, x == 'a')",
    "m.map(k, m[k]).sum()",
    "m.transformMap(k, v, v > 1, v * 2)['y']",
    "l.transformList(i, v, '%d:%s'.format([i, v])).join(';')",
    "l.sortBy(x, -size(x)).join('')",
    "self.?nothing.orValue('none')",
    "self[?'s'].optMap(x, x + '!').value()",
    "optional.of(1).optFlatMap(x, optional.none()).hasValue()",
    "s.find('l+') + string(s.findAll('l').size())",
    "s in ['hello', 'world'] ? 'yes' : 'no'",
    "'a,b,c'.split(',', 2)[1].replace(',', '-').upperAscii()",
    "sets.intersects(l, ['x', 'a']) && sets.contains(l, []) && !sets.equivalent(l, ['a'])",
    "quantity('1.5Gi').isGreaterThan(quantity('500Mi')) && quantity('2').add(3).asInteger() == 5",
    "url(self.uri).getHost() + url(self.uri).getQuery()['q'][0]",
    "ip('10.1.2.3').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
    "semver('1.2.3').isLessThan(semver('v1.3', true))",
    "format.dns1123Label().validate('Bad_Name').value()[0]",
    "duration('1h30m').getMinutes() + timestamp('2024-02-29T12:00:00Z').getMonth()",
    "timestamp('2024-02-29T12:00:00Z') + duration('24h') > timestamp('2024-03-01T00:00:00+01:00')",
    "'%.2f %s %x %b %o'.format([1.005, [1, 2], 255, 5, 8])",
    "[3, 1, 2].sort() == [1, 2, 3] && [1, [2]].size() == 2",
    "[1, 2, 3].slice(1, 3).reverse().distinct() == [3, 2]",
    "int('9') + int(2.7) + int(uint(3))",
    "b'abc' == bytes('abc') && string(b'abc') == 'abc'",
    "9223372036854775807 + 1",
    "1 / 0",
    "l[7]",
    "m['zz']",
    "self.nothing",
    "dyn(1) + dyn('a')",
    "s.matches('^h.*o$') && s.contains('ell')",
    "type(1) == int && type(l) == list",
    "s + 1",
    "foo(1)",
    "self.deep.a.all(x, y)",
    "duration('nonsense') == duration('1h')",
    "[1, 'a']",
    "s.matches('(')",
    "'%d'.format(['a'])",
    "cel.bind(x, 1, x)",
];

#[test]
fn expressions() {
    let (env, input) = (env(), input());
    let mut transcript = String::new();
    for text in EXPRESSIONS {
        transcript += &format!("{text}\n    {}\n", told(&env, &input, text));
    }
    expect_file!["./transcripts/expressions.txt"].assert_eq(&transcript);
}

/// What cannot be undone, said before it is run.
#[test]
fn limits() {
    let (env, input) = (env(), input());
    let deep = format!("{}1{}", "(".repeat(300), ")".repeat(300));
    let long = format!("'{}'", "x".repeat(crate::parser::EXPRESSION_LENGTH_MAX));
    let within = format!("{}1{}", "(".repeat(245), ")".repeat(245));
    let chain = vec!["s == 'x'"; 500].join(" || ");
    let dear = "l.all(a, l.all(b, l.all(c, l.all(d, l.all(e, l.all(f, l.all(g, l.all(h, l.all(i, l.all(j, l.all(k, \
                l.all(n, a + b + c + d + e + f + g + h + i + j + k + n != ''))))))))))))";
    let transcript: String = [&*deep, &*within, &*long, &*chain, dear]
        .iter()
        .map(|text| format!("{}\n", told(&env, &input, text)))
        .collect();
    expect![[r#"
        ERROR: <input>:-1:0: expression recursion limit exceeded: 250
        1 (int, cost 0 of 0..0)
        ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100002, limit 100000
        false (bool, cost 1000 of 2..1000)
        error: operation cancelled: actual cost limit exceeded (bool, cost 1000001 of 2..any)
    "#]]
    .assert_eq(&transcript);
}

proptest! {
    /// Whatever is written, reading it answers, and what it answers can be shown.
    #[test]
    fn nothing_panics(words in proptest::collection::vec(prop_oneof![
        Just("self"), Just("l"), Just("m"), Just("s"), Just("."), Just(".?"), Just("["), Just("[?"), Just("]"),
        Just("("), Just(")"), Just("{"), Just("}"), Just(","), Just(":"), Just("?"), Just("+"), Just("-"), Just("*"),
        Just("/"), Just("%"), Just("!"), Just("&&"), Just("||"), Just("=="), Just("<"), Just("in"), Just("1"),
        Just("2u"), Just("0.5"), Just("'a'"), Just("b'\\x01'"), Just("null"), Just("true"), Just("has("), Just(".all("),
        Just(".map(x,"), Just(".size()"), Just("x"), Just("size("), Just("optional.of("), Just("@"), Just("`a`"),
        Just("'"), Just("\n"), Just("😁"), Just("dyn("), Just(".format([")], 0..24)) {
        let (env, input) = (env(), input());
        told(&env, &input, &words.concat());
        told(&env, &input, &words.join(" "));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}") {
        told(&env(), &input(), &text);
    }

    /// An expression never costs more than was estimated when nothing is known of its input but what is written.
    #[test]
    fn the_estimate_is_no_less_than_the_cost(a in 0u8..5, b in 0u8..5) {
        let (env, input) = (env(), input());
        let terms = ["l.size()", "m['x']", "s.size()", "l.filter(v, v != s).size()", "m.map(k, m[k]).sum()"];
        let text = format!("{} + {} > 3 ? s + 'x' : l.join(s)", terms[usize::from(a)], terms[usize::from(b)]);
        let checked = env.compile(&text).unwrap();
        let estimated = estimate(&checked, &|_| Some(100));
        let variables = [Val::json(&input), Val::json(&input["l"]), Val::json(&input["m"]), Val::json(&input["s"])];
        let program = plan(&checked).unwrap();
        let cost = program.run(&variables, u64::MAX).cost;
        prop_assert!(cost <= estimated.max, "{} > {}", cost, estimated.max);
    }
}
