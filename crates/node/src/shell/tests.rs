use super::*;
use expect_test::{Expect, expect};
use jiff::Timestamp;
use std::time::Duration;

/// Runs a script for ten seconds and shows what it does.
fn check(script: &str, expected: Expect) {
    let mut out = String::new();
    match Script::parse(script) {
        Err(why) => out = format!("{why}\n"),
        Ok(script) => {
            let variables = [("HOSTNAME".to_owned(), "web-0".to_owned()), ("WHO".to_owned(), "you there".to_owned())];
            let started = Timestamp::from_second(1_767_225_600).unwrap();
            let mut machine = Machine::new(script, variables.into(), started);
            if machine.is_endless() {
                out.push_str("endless\n");
            }
            loop {
                match machine.run(Duration::from_secs(10)) {
                    Event::Printed(output) => {
                        let stream = if output.is_stderr { "!" } else { "" };
                        out.push_str(&format!("{:?}{stream} {:?}\n", output.at, output.text));
                    }
                    Event::Unknown { at, words } => {
                        out.push_str(&format!("{at:?} unknown {words:?}\n"));
                        machine.conclude_unknown(0, Duration::from_millis(500));
                    }
                    Event::Exited { at, code } => {
                        out.push_str(&format!("{at:?} exit {code}\n"));
                        break;
                    }
                    Event::Waiting => {
                        out.push_str("waiting\n");
                        break;
                    }
                }
            }
        }
    }
    expected.assert_eq(&out);
}

#[test]
fn commands_one_after_the_other() {
    check(
        "echo hello \"$WHO\" $WHO '$WHO'; sleep 1.5 && echo -n later # why\nfalse || exit 3; echo never",
        expect![[r#"
            0ns "hello you there you there $WHO\n"
            1.5s "later"
            1.5s exit 3
        "#]],
    );
    check(
        "echo oops >&2; perl -Mbignum=bpi -wle 'print bpi(2000)'; date +%Y; hostname > /tmp/x",
        expect![[r#"
        0ns! "oops\n"
        0ns unknown ["perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"]
        500ms "2026\n"
        500ms exit 0
    "#]],
    );
}

#[test]
fn loops() {
    check(
        "i=0; while true; do echo \"$i: $(date)\"; i=$((i+1)); sleep 4; done",
        expect![[r#"
            endless
            0ns "0: Thu Jan  1 00:00:00 UTC 2026\n"
            4s "1: Thu Jan  1 00:00:04 UTC 2026\n"
            8s "2: Thu Jan  1 00:00:08 UTC 2026\n"
            waiting
        "#]],
    );
    check(
        "for i in a b $(seq 3 4); do if [ $i = b ]; then continue; else printf '%s,\\n' $i; fi; done; exit",
        expect![[r#"
        0ns "a,\n"
        0ns "3,\n"
        0ns "4,\n"
        0ns exit 0
    "#]],
    );
    check(
        "while :; do sleep 3; break; done; ! true",
        expect![[r#"
        3s exit 1
    "#]],
    );
    check(
        "while true; do true; done",
        expect![[r#"
        endless
        waiting
    "#]],
    );
    check(
        "until false; do sleep 5; exit 7; done",
        expect![[r#"
        5s exit 7
    "#]],
    );
}

#[test]
fn what_is_not_understood() {
    for (script, why) in [
        ("a | b", "not understood: a pipe"),
        ("(a)", "not understood: '('"),
        ("echo 'x", "not understood: a quote does not end"),
        ("while true; do x", "not understood: \"done\" is missing"),
        ("fi", "not understood: \"fi\" in this place"),
        ("echo $(cat /etc/hosts)", "not understood: $(cat /etc/hosts)"),
    ] {
        assert_eq!(Script::parse(script).unwrap_err().to_string(), why, "{script}");
    }
}
