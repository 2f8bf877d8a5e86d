use super::*;
use proptest::prelude::*;

/// A world in which things are said in one line: `see a <- b!,c` (a is owned by b, which it blocks, and by c),
/// `foreground a <- ..`, `orphan a <- ..`, `gone a`, `absent a`.
#[derive(Default)]
struct World {
    graph: Graph,
    log: String,
}

impl World {
    fn identity(&mut self, text: &str) -> Identity {
        let (namespace, name) = text.split_once('/').unwrap_or(("ns", text));
        Identity {
            kind: self.graph.kind("v1", "Thing"),
            namespace: namespace.into(),
            name: name.into(),
            uid: name.into(),
        }
    }

    fn run(&mut self, line: &str) -> Vec<Effect> {
        let (verb, rest) = line.split_once(' ').unwrap();
        let (what, owners) = rest.split_once(" <- ").unwrap_or((rest, ""));
        let identity = self.identity(what);
        let kind = self.graph.kind("v1", "Thing");
        let owners = owners.split(',').filter(|owner| !owner.is_empty()).map(|owner| Owner {
            kind: Arc::clone(&kind),
            name: owner.trim_end_matches('!').into(),
            uid: owner.trim_end_matches('!').into(),
            blocks: owner.ends_with('!'),
        });
        let seen = Seen {
            identity: identity.clone(),
            owners: owners.collect(),
            is_terminating: verb != "see",
            has_orphan_finalizer: verb == "orphan",
            has_foreground_finalizer: verb == "foreground",
        };
        let effects = match verb {
            "gone" => self.graph.gone(&identity.uid),
            "absent" => self.graph.verified_absent(&identity),
            _ => self.graph.seen(seen),
        };
        self.graph.check();
        let shown: Vec<String> = effects
            .iter()
            .map(|effect| match effect {
                Effect::AttemptToDelete { uid, is_virtual } => {
                    format!("delete? {uid}{}", if *is_virtual { "*" } else { "" })
                }
                Effect::AttemptToDeleteLater { uid } => format!("later {uid}"),
                Effect::AttemptToOrphan { uid } => format!("orphan {uid}"),
                Effect::OwnerInOtherNamespace { dependent, owner } => {
                    format!("foreign {} -> {}", dependent.uid, owner.uid)
                }
            })
            .collect();
        self.log.push_str(&format!("{line}: {}\n", shown.join(", ")));
        effects
    }
}

fn check(script: &str, expected: expect_test::Expect) {
    let mut world = World::default();
    for line in script.split("; ") {
        world.run(line);
    }
    expected.assert_eq(&world.log);
}

#[test]
fn background() {
    check(
        "see a; see b <- a; see c <- a; gone a; gone b; gone c",
        expect_test::expect![[r#"
        see a: 
        see b <- a: 
        see c <- a: 
        gone a: delete? b, delete? c
        gone b: 
        gone c: 
    "#]],
    );
}

#[test]
fn foreground() {
    check(
        "see a; see b <- a!; see c <- a; foreground a; gone c; see b <- a; gone b; gone a",
        expect_test::expect![[r#"
        see a: 
        see b <- a!: 
        see c <- a: 
        foreground a: delete? b, delete? c, delete? a
        gone c: delete? a
        see b <- a: delete? a
        gone b: delete? a
        gone a: 
    "#]],
    );
}

#[test]
fn orphan() {
    check(
        "see a; see b <- a; orphan a; orphan a; see b; gone a",
        expect_test::expect![[r#"
        see a: 
        see b <- a: 
        orphan a: orphan a
        orphan a: 
        see b: 
        gone a: 
    "#]],
    );
}

#[test]
fn dependents_before_owners() {
    check(
        "see b <- a; see c <- a; see a; see d <- x; absent x",
        expect_test::expect![[r#"
        see b <- a: delete? a*
        see c <- a: 
        see a: 
        see d <- x: delete? x*
        absent x: delete? d
    "#]],
    );
}

#[test]
fn owners_in_other_namespaces() {
    check(
        "see other/a; see b <- a; see x/c <- v; see v",
        expect_test::expect![[r#"
        see other/a: 
        see b <- a: foreign b -> a, delete? b
        see x/c <- v: delete? v*
        see v: foreign c -> v, delete? c
    "#]],
    );
}

#[test]
fn an_absent_owner_of_one_namespace_may_be_another_one_of_the_next() {
    check(
        "see m/b <- a; see n/c <- a; absent m/a; absent n/a",
        expect_test::expect![[r#"
        see m/b <- a: delete? a*
        see n/c <- a: delete? c
        absent m/a: delete? b, later a
        absent n/a: delete? c, later a
    "#]],
    );
}

proptest! {
    /// The graph stays whole whatever happens, and an owner that goes has all its dependents looked at.
    #[test]
    fn whole(steps in proptest::collection::vec((0..4_usize, 0..6_u8, 0..6_u8, 0..6_u8), 0..80)) {
        let mut world = World::default();
        let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        // an object made again is another one: its name here tells which life it is in
        let mut lives = [0; 6];
        for (verb, what, a, b) in steps {
            let verb = ["see", "foreground", "orphan", "gone"][verb];
            let name = |idx: u8| format!("o{idx}.{}", lives[usize::from(idx)]);
            let (what_name, a, b) = (name(what), name(a), name(b));
            let line = if verb == "gone" { format!("gone {what_name}") } else { format!("{verb} {what_name} <- {a}!,{b}") };
            let effects = world.run(&line);
            if verb == "gone" {
                lives[usize::from(what)] += 1;
                owners.remove(&what_name);
                for (dependent, _) in owners.iter().filter(|(_, of)| of.contains(&what_name)) {
                    let wanted = Effect::AttemptToDelete { uid: dependent.into(), is_virtual: false };
                    prop_assert!(effects.contains(&wanted), "{line} forgot {dependent}");
                }
            } else {
                owners.insert(what_name, BTreeSet::from([a, b]));
            }
        }
    }
}
