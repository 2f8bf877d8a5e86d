//! Runs a script in simulated time.

use super::parse::{Command, Op, Script};
use super::words::{Context, Variables, Word, date};
use jiff::Timestamp;
use std::time::Duration;

/// Operations that one call of [`Machine::run`] carries out. At the limit the machine gives [`Event::Waiting`]: a loop
/// without a `sleep` must not keep anybody busy.
pub const STEPS_MAX: usize = 20_000;

/// A line that a script printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// When, counted from the script's start.
    pub at: Duration,
    /// The text; with its line end unless the script left it out.
    pub text: String,
    /// Whether it went to standard error.
    pub is_stderr: bool,
}

/// What a script did next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It printed.
    Printed(Output),
    /// It ended at this time with this exit code.
    Exited {
        /// When, counted from the script's start.
        at: Duration,
        /// The exit code.
        code: i32,
    },
    /// It came to a command that is not known here, and goes on as if that had succeeded.
    Unknown {
        /// When, counted from the script's start.
        at: Duration,
        /// The command and its arguments.
        words: Vec<String>,
    },
    /// It does nothing before the time that it was asked about; or it does too much, see [`STEPS_MAX`].
    Waiting,
}

/// A script that is running.
#[derive(Clone, Debug)]
pub struct Machine {
    script: Script,
    /// The next operation.
    at_op: usize,
    variables: Variables,
    /// What each `for` loop has still to go through, last first.
    slots: Vec<Vec<String>>,
    /// How far the script has come.
    clock: Duration,
    /// Exit code of the last command.
    status: i32,
    /// When it started, for `date`.
    started: Timestamp,
    has_exited: bool,
}

impl Machine {
    /// Starts a script.
    pub fn new(script: Script, variables: Variables, started: Timestamp) -> Machine {
        let slots = vec![Vec::new(); script.n_slots];
        let clock = Duration::ZERO;
        Machine { script, at_op: 0, variables, slots, clock, status: 0, started, has_exited: false }
    }

    /// Whether the script comes to no end because it is in an endless loop that nothing leaves.
    pub fn is_endless(&self) -> bool {
        let ops = &self.script.ops;
        ops.iter().enumerate().any(|(end, op)| {
            let Op::Jump(start) = op else { return false };
            let is_loop = *start <= end && !matches!(ops[*start], Op::ForNext { .. });
            is_loop
                && self.condition_is_constant(*start)
                && ops[*start..end].iter().enumerate().all(|(idx, op)| match op {
                    Op::Jump(to) => *to <= end,
                    // the loop's own condition, which never fails
                    Op::JumpIf { to, .. } => *to <= end || idx == 1,
                    Op::Run(command) => !is_exit(command),
                    Op::Set(..) | Op::ForBegin { .. } | Op::ForNext { .. } => true,
                })
        })
    }

    /// Whether the loop that starts here is `while true` or `while :`.
    fn condition_is_constant(&self, start: usize) -> bool {
        let [Op::Run(command), Op::JumpIf { is_success: false, .. }, ..] = &self.script.ops[start..] else {
            return false;
        };
        matches!(command.words.as_slice(), [word] if matches!(word.as_keyword(), Some("true" | ":")))
    }

    /// How far the script has come, counted from its start: when it goes on, if it waits.
    pub fn clock(&self) -> Duration {
        self.clock
    }

    /// Goes on until something happens, but not beyond `until`, counted from the start.
    pub fn run(&mut self, until: Duration) -> Event {
        for _ in 0..STEPS_MAX {
            if self.clock > until {
                return Event::Waiting;
            }
            if self.has_exited {
                return Event::Exited { at: self.clock, code: self.status };
            }
            let Some(op) = self.script.ops.get(self.at_op) else {
                self.has_exited = true;
                continue;
            };
            self.at_op += 1;
            match op.clone() {
                Op::Run(command) => {
                    if let Some(event) = self.command(&command) {
                        return event;
                    }
                }
                Op::Set(name, word) => {
                    let value = word.text(&self.context());
                    self.variables.insert(name, value);
                    self.status = 0;
                }
                Op::Jump(to) => self.at_op = to,
                Op::JumpIf { is_success, to } => {
                    if (self.status == 0) == is_success {
                        self.at_op = to;
                    }
                }
                Op::ForBegin { slot, words } => {
                    let mut items = Vec::new();
                    words.iter().for_each(|word| word.expand(&self.context(), &mut items));
                    items.reverse();
                    self.slots[slot] = items;
                }
                Op::ForNext { slot, name, end } => match self.slots[slot].pop() {
                    Some(item) => {
                        self.variables.insert(name, item);
                    }
                    None => {
                        self.at_op = end;
                        self.status = 0;
                    }
                },
            }
        }
        Event::Waiting
    }

    fn context(&self) -> Context<'_> {
        Context { variables: &self.variables, now: self.now() }
    }

    fn now(&self) -> Timestamp {
        self.started.checked_add(self.clock).unwrap_or(self.started)
    }

    fn command(&mut self, command: &Command) -> Option<Event> {
        let mut words = Vec::new();
        {
            let context = self.context();
            command.words.iter().for_each(|word| word.expand(&context, &mut words));
        }
        let Some((name, args)) = words.split_first() else {
            self.status = 0;
            return None;
        };
        let base = name.rsplit('/').next().unwrap_or(name);
        let mut printed = None;
        self.status = 0;
        match (base, args) {
            (
                "true" | ":" | "cd" | "set" | "export" | "mkdir" | "touch" | "trap" | "sync" | "wait" | "rm" | "chmod",
                _,
            ) => {
                self.export(base, args);
            }
            ("false", _) => self.status = 1,
            ("echo", args) => printed = Some(echo(args)),
            ("printf", [format, args @ ..]) => printed = Some(printf(format, args)),
            ("date", args) => {
                let format = args.iter().find_map(|arg| arg.strip_prefix('+')).unwrap_or_default();
                printed = Some(format!("{}\n", date(self.now(), format)));
            }
            ("hostname", _) => {
                printed = Some(format!("{}\n", self.variables.get("HOSTNAME").map_or("localhost", String::as_str)));
            }
            ("env" | "printenv", []) => {
                printed = Some(self.variables.iter().map(|(key, value)| format!("{key}={value}\n")).collect());
            }
            ("printenv", [name, ..]) => match self.variables.get(name) {
                Some(value) => printed = Some(format!("{value}\n")),
                None => self.status = 1,
            },
            ("whoami", _) => printed = Some("root\n".to_owned()),
            ("id", _) => printed = Some("uid=0(root) gid=0(root) groups=0(root)\n".to_owned()),
            ("ls", []) => {
                printed = Some("bin\ndev\netc\nhome\nlib\nproc\nroot\nrun\nsbin\nsys\ntmp\nusr\nvar\n".to_owned())
            }
            ("ps", _) => printed = Some("PID   USER     TIME  COMMAND\n    1 root      0:00 simulated\n".to_owned()),
            ("pwd", _) => printed = Some("/\n".to_owned()),
            ("uname", _) => printed = Some("Linux\n".to_owned()),
            ("sleep", [time]) => self.sleep(time),
            ("exit", args) => {
                let code = args.first().and_then(|code| code.parse::<i64>().ok()).unwrap_or_default();
                self.status = i32::try_from(code.rem_euclid(256)).unwrap_or_default();
                self.has_exited = true;
            }
            ("[" | "test", args) => self.status = i32::from(!test(args)),
            ("exec", [_, ..]) => {
                let inner = Command { words: command.words[1..].to_vec(), ..command.clone() };
                let event = self.command(&inner);
                self.has_exited = true;
                return event;
            }
            _ => return Some(Event::Unknown { at: self.clock, words }),
        }
        if command.is_negated {
            self.status = i32::from(self.status == 0);
        }
        self.variables.insert("?".to_owned(), self.status.to_string());
        let text = printed.filter(|text| !text.is_empty() && !command.is_silent)?;
        Some(Event::Printed(Output { at: self.clock, text, is_stderr: command.is_to_stderr }))
    }

    fn export(&mut self, command: &str, args: &[String]) {
        if command != "export" {
            return;
        }
        for (name, value) in args.iter().filter_map(|arg| arg.split_once('=')) {
            self.variables.insert(name.to_owned(), value.to_owned());
        }
    }

    /// `sleep 5`, `sleep 0.5`, `sleep 1m`, `sleep infinity`.
    fn sleep(&mut self, time: &str) {
        /// As good as for ever: a thousand years.
        const FOR_EVER: Duration = Duration::from_secs(1_000 * 366 * 86_400);
        let (number, unit) = match time.strip_suffix(['s', 'm', 'h', 'd']) {
            Some(number) => (number, &time[number.len()..]),
            None => (time, "s"),
        };
        let factor = match unit {
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => 1.0,
        };
        if matches!(time, "infinity" | "inf") {
            self.clock = FOR_EVER;
            return;
        }
        match number.parse::<f64>().ok().and_then(|n| Duration::try_from_secs_f64(n * factor).ok()) {
            Some(pause) => self.clock = (self.clock + pause.min(FOR_EVER)).min(FOR_EVER),
            None => self.status = 1,
        }
    }

    /// Makes the last unknown command fail with this exit code, or take some time.
    pub fn conclude_unknown(&mut self, code: i32, took: Duration) {
        self.status = code;
        self.clock += took;
        self.variables.insert("?".to_owned(), code.to_string());
    }
}

fn is_exit(command: &Command) -> bool {
    matches!(command.words.first().and_then(Word::as_keyword), Some("exit" | "exec"))
}

fn echo(args: &[String]) -> String {
    let n_options = args.iter().take_while(|arg| matches!(arg.as_str(), "-n" | "-e" | "-ne" | "-en")).count();
    let (options, words) = args.split_at(n_options);
    let mut text = words.join(" ");
    if options.iter().any(|option| option.contains('e')) {
        text = unescape(&text);
    }
    if !options.iter().any(|option| option.contains('n')) {
        text.push('\n');
    }
    text
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some(other)) => out.push(other),
            (c, _) => out.push(c),
        }
    }
    out
}

fn printf(format: &str, args: &[String]) -> String {
    let mut args = args.iter();
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.find(|c| !c.is_ascii_digit() && !"-+ .0".contains(*c)) {
            Some('%') | None => out.push('%'),
            Some(_) => out.push_str(args.next().map_or("", String::as_str)),
        }
    }
    unescape(&out)
}

/// `[ .. ]` about texts and numbers; about files nothing is true.
fn test(args: &[String]) -> bool {
    let args: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != "]").collect();
    let numbers = |a: &str, b: &str| Some((a.parse::<i64>().ok()?, b.parse::<i64>().ok()?));
    match args.as_slice() {
        ["!", rest @ ..] => !test(&rest.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()),
        ["-n", text] => !text.is_empty(),
        ["-z", text] => text.is_empty(),
        [text] => !text.is_empty(),
        [a, "=" | "==", b] => a == b,
        [a, "!=", b] => a != b,
        [a, operator, b] => numbers(a, b).is_some_and(|(a, b)| match *operator {
            "-eq" => a == b,
            "-ne" => a != b,
            "-lt" => a < b,
            "-le" => a <= b,
            "-gt" => a > b,
            "-ge" => a >= b,
            _ => false,
        }),
        _ => false,
    }
}
