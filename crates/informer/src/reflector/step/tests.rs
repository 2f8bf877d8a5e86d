use super::*;
use expect_test::{Expect, expect};
use pintle_apimachinery::env::Env;
use proptest::prelude::*;

fn machine(uses_watch_list: bool, page_size: u32) -> Machine {
    let backoff = BackoffConfig { jitter: 0.0, ..BackoffConfig::REFLECTOR };
    Machine::new(uses_watch_list, page_size, backoff, Env::seeded(1).ids)
}

fn show(step: &Step) -> String {
    let then = match &step.then {
        Do::List(o) => {
            let how = o.resource_version_match.map(|how| format!(" {how:?}")).unwrap_or_default();
            format!("list rv={:?}{how} limit={:?} continue={:?}", o.resource_version, o.limit, o.continue_token)
        }
        Do::Watch(o) => {
            let initial = if o.send_initial_events == Some(true) { " with initial events" } else { "" };
            format!("watch rv={:?}{initial}", o.resource_version)
        }
        Do::Read => "read".to_owned(),
        Do::Wait(pause) => format!("wait {pause:?}"),
    };
    match step.store {
        StoreAction::None => then,
        action => format!("{action:?}, {then}"),
    }
}

fn failure(word: &str) -> Failure {
    match word {
        "expired" => Failure::Expired,
        "too-large" => Failure::TooLargeVersion,
        "refused" => Failure::Refused,
        _ => Failure::Passing,
    }
}

/// `listed 5`, `listed 5 continue x`, `list-failed expired`, `opened`, `watch-failed expired`, `changed 6`,
/// `bookmark 7`, `end 7`, `erred expired`, `closed`, `closed late`, `ready`.
fn check(mut machine: Machine, script: &str, expected: Expect) {
    let start = Instant::now();
    let mut now = start;
    let mut transcript = String::new();
    for line in script.split(';').map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let word = |idx: usize| words.get(idx).copied().unwrap_or_default().to_owned();
        let input = match words[0] {
            "ready" => Input::Ready,
            "listed" => Input::Listed { resource_version: word(1), continue_token: word(3) },
            "list-failed" => Input::ListFailed(failure(&word(1))),
            "opened" => Input::WatchOpened,
            "watch-failed" => Input::WatchFailed(failure(&word(1))),
            "changed" => Input::Changed { resource_version: word(1) },
            "bookmark" => Input::Bookmark { resource_version: word(1), is_initial_events_end: false },
            "end" => Input::Bookmark { resource_version: word(1), is_initial_events_end: true },
            "erred" => Input::WatchErred(failure(&word(1))),
            "closed" => {
                if words.len() > 1 {
                    now += Duration::from_secs(60);
                }
                Input::WatchClosed
            }
            other => panic!("no input {other:?}"),
        };
        let step = machine.step(input, now);
        transcript += &format!("{line:<22} -> {}\n", show(&step));
    }
    expected.assert_eq(&transcript);
}

#[tokio::test(start_paused = true)]
async fn list_then_watch() {
    check(
        machine(false, 0),
        "ready; listed 5; opened; changed 6; bookmark 9; closed; opened; closed; ready; opened; closed late; opened; erred expired; listed 20",
        expect![[r#"
            ready                  -> list rv="0" limit=None continue=""
            listed 5               -> Replace, watch rv="5"
            opened                 -> read
            changed 6              -> Apply, read
            bookmark 9             -> Bookmark, read
            closed                 -> ClearBuffer, watch rv="9"
            opened                 -> read
            closed                 -> ClearBuffer, wait 800ms
            ready                  -> watch rv="9"
            opened                 -> read
            closed late            -> ClearBuffer, watch rv="9"
            opened                 -> read
            erred expired          -> ClearBuffer, wait 1.6s
            listed 20              -> Replace, watch rv="20"
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn watch_list() {
    check(
        machine(true, 0),
        "ready; opened; changed 3; changed 2; bookmark 4; end 8; changed 9; erred expired; opened; changed 9; closed; ready; opened; end 12; closed late; watch-failed passing; ready; watch-failed passing; ready",
        expect![[r#"
            ready                  -> watch rv="" with initial events
            opened                 -> read
            changed 3              -> Buffer, read
            changed 2              -> Buffer, read
            bookmark 4             -> read
            end 8                  -> Replace, read
            changed 9              -> Apply, read
            erred expired          -> ClearBuffer, watch rv="9" with initial events
            opened                 -> read
            changed 9              -> Buffer, read
            closed                 -> ClearBuffer, wait 800ms
            ready                  -> watch rv="9" with initial events
            opened                 -> read
            end 12                 -> Replace, read
            closed late            -> ClearBuffer, watch rv="12"
            watch-failed passing   -> ClearBuffer, wait 800ms
            ready                  -> watch rv="12"
            watch-failed passing   -> ClearBuffer, wait 1.6s
            ready                  -> watch rv="12"
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_without_watch_list_is_listed_in_pages() {
    check(
        machine(true, 100),
        "ready; watch-failed refused; listed 7 continue a; list-failed expired; listed 9; opened; erred too-large; ready; list-failed too-large; list-failed passing; ready; listed 3",
        expect![[r#"
            ready                  -> watch rv="" with initial events
            watch-failed refused   -> ClearBuffer, list rv="0" limit=Some(100) continue=""
            listed 7 continue a    -> list rv="" limit=Some(100) continue="a"
            list-failed expired    -> ClearBuffer, list rv="0" limit=None continue=""
            listed 9               -> Replace, watch rv="9"
            opened                 -> read
            erred too-large        -> ClearBuffer, wait 800ms
            ready                  -> list rv="" limit=Some(100) continue=""
            list-failed too-large  -> ClearBuffer, wait 1.6s
            list-failed passing    -> ClearBuffer, wait 3.2s
            ready                  -> list rv="" limit=Some(100) continue=""
            listed 3               -> Replace, watch rv="3"
        "#]],
    );
}

/// What the machine may be told after each request, chosen by a number.
fn answer(then: &Do, is_open: &mut bool, choice: u8, version: u64) -> Input {
    let failures = [Failure::Expired, Failure::TooLargeVersion, Failure::Refused, Failure::Passing];
    let some_failure = failures[usize::from(choice / 8) % 4];
    let resource_version = version.to_string();
    match then {
        Do::Wait(_) => Input::Ready,
        Do::List(_) => match choice % 8 {
            0..3 => Input::Listed { resource_version, continue_token: String::new() },
            3 => Input::Listed { resource_version, continue_token: "more".to_owned() },
            _ => Input::ListFailed(some_failure),
        },
        Do::Watch(_) => {
            *is_open = choice.is_multiple_of(2);
            if *is_open { Input::WatchOpened } else { Input::WatchFailed(some_failure) }
        }
        Do::Read => match choice % 8 {
            0..3 => Input::Changed { resource_version },
            3 => Input::Bookmark { resource_version, is_initial_events_end: false },
            4 => Input::Bookmark { resource_version, is_initial_events_end: true },
            5 => Input::WatchClosed,
            _ => Input::WatchErred(some_failure),
        },
    }
}

proptest! {
    /// In every history of answers: nothing is applied before the first state is complete; a watch goes on from the
    /// last version that the store was told; what was buffered is used or thrown away before the next request; and
    /// after four failures in a row there is a pause.
    #[test]
    fn in_every_history(choices in proptest::collection::vec(any::<u8>(), 1..200), uses_watch_list: bool, page_size in 0..2_u32) {
        let mut machine = machine(uses_watch_list, page_size);
        let now = tokio::time::Instant::now();
        let (mut told, mut is_open, mut n_failed) = (None, false, 0);
        let mut step = machine.step(Input::Ready, now);
        for (version, choice) in (1..).zip(choices) {
            let input = answer(&step.then, &mut is_open, choice, version);
            let is_failure = matches!(input, Input::ListFailed(_) | Input::WatchFailed(_) | Input::WatchErred(_) | Input::WatchClosed);
            step = machine.step(input, now);
            match step.store {
                StoreAction::Replace => told = Some(machine.last_version().to_owned()),
                StoreAction::Apply | StoreAction::Bookmark => {
                    prop_assert!(told.is_some(), "told of a change before there was a state");
                    told = Some(machine.last_version().to_owned());
                }
                StoreAction::None | StoreAction::ClearBuffer | StoreAction::Buffer => {}
            }
            if is_failure {
                prop_assert_eq!(step.store, StoreAction::ClearBuffer);
                prop_assert!(step.then != Do::Read, "reads from a watch that has ended");
                n_failed += 1;
            } else {
                n_failed = 0;
            }
            match &step.then {
                Do::Wait(pause) => {
                    prop_assert!(*pause >= Duration::from_millis(800) && *pause <= Duration::from_secs(30));
                    n_failed = 0;
                }
                Do::Watch(options) if options.send_initial_events != Some(true) => {
                    prop_assert_eq!(Some(&options.resource_version), told.as_ref(), "goes on from another version");
                }
                Do::Watch(_) | Do::List(_) | Do::Read => {}
            }
            prop_assert!(n_failed <= 4, "{n_failed} failures in a row without a pause");
        }
    }
}
