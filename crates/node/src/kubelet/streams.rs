//! `exec` and `attach` over SPDY: one stream for each of input, output, errors and status.

use super::channels::{Channel, Channels, Message, QUEUE_MAX};
use super::spdy::{self, Stream};
use super::websocket::status;
use bytes::Bytes;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// How long a client may take to open all streams that it said it would; past it the request fails.
const STREAMS_TIMEOUT: Duration = Duration::from_secs(30);

/// Which streams the client will open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) tty: bool,
}

impl Wanted {
    fn count(self) -> usize {
        // the status always; the size of the terminal, if there is one
        let stderr = self.stderr && !self.tty;
        1 + usize::from(self.stdin) + usize::from(self.stdout) + usize::from(stderr) + usize::from(self.tty)
    }
}

/// Waits for the streams and carries a command's input and output over them. `None` when they do not come.
pub(super) async fn carry<I>(io: I, wanted: Wanted) -> Option<Channels>
where
    I: AsyncRead + AsyncWrite + Send + 'static,
{
    let mut session = spdy::serve(io);
    let mut streams = Vec::new();
    let collecting = async {
        while streams.len() < wanted.count() {
            streams.push(session.recv().await?);
        }
        Some(())
    };
    tokio::time::timeout(STREAMS_TIMEOUT, collecting).await.ok()??;
    let (typed, stdin) = mpsc::channel(QUEUE_MAX);
    let (messages, shown) = mpsc::channel(QUEUE_MAX);
    let mut take = |kind: &str| {
        let at = streams.iter().position(|stream| stream.header("streamtype") == kind)?;
        Some(streams.swap_remove(at))
    };
    let outputs = Outputs { stdout: take("stdout"), stderr: take("stderr"), error: take("error") };
    if let Some(input) = take("stdin") {
        tokio::spawn(pass_input(input, typed));
    }
    // the size of the terminal does not matter, but its stream must stay
    let rest = take("resize");
    tokio::spawn(async move {
        outputs.show(shown).await;
        drop((rest, session));
    });
    Some(Channels { stdin, messages })
}

async fn pass_input(mut input: Stream, typed: mpsc::Sender<Bytes>) {
    while let Some(data) = input.input.recv().await {
        if typed.send(data).await.is_err() {
            return;
        }
    }
}

struct Outputs {
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    error: Option<Stream>,
}

impl Outputs {
    async fn show(self, mut shown: mpsc::Receiver<Message>) {
        while let Some(message) = shown.recv().await {
            let is_shown = match message {
                Message::Output(Channel::Stdout, data) => send(self.stdout.as_ref(), data).await,
                Message::Output(Channel::Stderr, data) => send(self.stderr.as_ref(), data).await,
                Message::End(end) => {
                    for stream in [&self.stdout, &self.stderr].into_iter().flatten() {
                        stream.output.close().await;
                    }
                    if let Some(error) = &self.error {
                        error.output.send(status(&end)).await;
                        error.output.close().await;
                    }
                    return;
                }
            };
            if !is_shown {
                return;
            }
        }
    }
}

/// What nobody asked for is dropped.
async fn send(stream: Option<&Stream>, data: Bytes) -> bool {
    match stream {
        Some(stream) => stream.output.send(data).await,
        None => true,
    }
}
