//! What `exec` and `attach` do in a simulated container.

use super::channels::{Channel, Channels, End};
use crate::program::{script_of, variables};
use crate::shell::{Event, Machine, Script, Variables};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::time::Duration;

/// Bytes of one line that is typed; what is beyond is not taken.
const LINE_BYTES_MAX: usize = 4096;

/// Runs a command for a client and tells it how that ended.
pub(super) async fn exec(
    pod: &Pod,
    container: &Container,
    command: &[String],
    is_tty: bool,
    channels: Channels,
    now: Timestamp,
) {
    let mut session = Session { variables: variables(pod, container), is_tty, channels, now };
    let end = session.command(command).await;
    session.channels.end(end).await;
}

struct Session {
    variables: Variables,
    is_tty: bool,
    channels: Channels,
    now: Timestamp,
}

impl Session {
    async fn command(&mut self, words: &[String]) -> End {
        let base = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
        let args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let is_shell = matches!(base, "sh" | "bash" | "ash" | "dash");
        match (base, args.as_slice()) {
            _ if is_shell && !args.iter().any(|arg| arg.starts_with('-') && arg.ends_with('c')) => self.shell().await,
            ("cat", []) | ("tee", _) => self.echo_input(Some(Channel::Stdout)).await,
            // an upload: there are no files to put it into
            ("tar", [mode, ..]) if mode.contains('x') => self.echo_input(None).await,
            _ => match script_of(words) {
                Some(script) => self.run(script).await,
                None => End::Failure("no command was given".to_owned()),
            },
        }
    }

    /// Output for a terminal has carriage returns.
    async fn print(&self, channel: Channel, text: &str) -> bool {
        let text = if self.is_tty { text.replace('\n', "\r\n") } else { text.to_owned() };
        let channel = if self.is_tty { Channel::Stdout } else { channel };
        self.channels.print(channel, text).await
    }

    /// Runs a script in real time.
    async fn run(&mut self, script: Script) -> End {
        let mut machine = Machine::new(script, self.variables.clone(), self.now);
        let mut elapsed = Duration::ZERO;
        loop {
            match machine.run(elapsed) {
                Event::Printed(output) => {
                    let channel = if output.is_stderr { Channel::Stderr } else { Channel::Stdout };
                    if !self.print(channel, &output.text).await {
                        return End::Success;
                    }
                }
                Event::Exited { code: 0, .. } => return End::Success,
                Event::Exited { code, .. } => return End::Code(code),
                Event::Unknown { words, .. } => {
                    let (text, code) = unknown(&words);
                    self.print(Channel::Stderr, &text).await;
                    machine.conclude_unknown(code, Duration::ZERO);
                }
                Event::Waiting => {
                    let Some(pause) = machine.clock().checked_sub(elapsed).filter(|pause| !pause.is_zero()) else {
                        return End::Failure("the command does nothing but loop".to_owned());
                    };
                    tokio::select! {
                        () = tokio::time::sleep(pause) => elapsed = machine.clock(),
                        () = self.channels.messages.closed() => return End::Success,
                    }
                }
            }
        }
    }

    /// Takes all input, and shows it or not.
    async fn echo_input(&mut self, channel: Option<Channel>) -> End {
        while let Some(data) = self.channels.stdin.recv().await {
            if let Some(channel) = channel
                && !self.channels.print(channel, data).await
            {
                break;
            }
        }
        End::Success
    }

    /// A shell that somebody types into.
    async fn shell(&mut self) -> End {
        let mut line = String::new();
        let mut last = End::Success;
        self.prompt().await;
        while let Some(data) = self.channels.stdin.recv().await {
            for c in String::from_utf8_lossy(&data).chars() {
                match c {
                    // end of input
                    '\u{4}' if line.is_empty() => return last,
                    '\u{3}' => {
                        line.clear();
                        self.print(Channel::Stdout, "^C\n").await;
                        self.prompt().await;
                    }
                    '\u{7f}' | '\u{8}' => {
                        let is_erased = line.pop().is_some();
                        self.show_typed(if is_erased { "\u{8} \u{8}" } else { "" }).await;
                    }
                    '\r' | '\n' => {
                        self.show_typed("\r\n").await;
                        let typed = std::mem::take(&mut line);
                        match self.line(typed.trim()).await {
                            Ok(end) => last = end,
                            Err(end) => return end,
                        }
                        self.prompt().await;
                    }
                    c if line.len() < LINE_BYTES_MAX => {
                        line.push(c);
                        self.show_typed(c.encode_utf8(&mut [0; 4])).await;
                    }
                    _ => {}
                }
            }
        }
        match self.line(line.trim()).await {
            Ok(end) | Err(end) => end,
        }
    }

    async fn prompt(&self) {
        self.show_typed("# ").await;
    }

    /// A terminal shows what is typed because the shell says so.
    async fn show_typed(&self, text: &str) {
        if self.is_tty && !text.is_empty() {
            self.channels.print(Channel::Stdout, text.to_owned()).await;
        }
    }

    /// One line of a shell; `Err` when it ends the shell.
    async fn line(&mut self, line: &str) -> Result<End, End> {
        if line == "exit" || line.starts_with("exit ") {
            let code = line.trim_start_matches("exit").trim().parse().unwrap_or_default();
            return Err(if code == 0 { End::Success } else { End::Code(code) });
        }
        match Script::parse(line) {
            Ok(script) => Ok(self.run(script).await),
            Err(why) => {
                self.print(Channel::Stderr, &format!("sh: {why}\n")).await;
                Ok(End::Code(2))
            }
        }
    }
}

/// What is said of a command that cannot be simulated, and its exit code.
fn unknown(words: &[String]) -> (String, i32) {
    let name = words.first().map_or("", String::as_str);
    let path = words.iter().skip(1).find(|arg| !arg.starts_with('-'));
    match (name, path) {
        ("cat" | "ls" | "head" | "tail", Some(path)) => (format!("{name}: {path}: No such file or directory\n"), 1),
        ("tar", _) => ("tar: a simulated container has no files\n".to_owned(), 2),
        _ => (
            format!("{name}: not found (this container is simulated: it knows echo, env, date, sleep and the like)\n"),
            127,
        ),
    }
}
