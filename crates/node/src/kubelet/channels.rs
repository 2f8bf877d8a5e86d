//! The streams of an `exec` or `attach`, whatever carries them.

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Pieces of input or output that may wait for one side; at the limit the other waits.
pub(super) const QUEUE_MAX: usize = 64;

/// Where output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Stdout,
    Stderr,
}

/// What is said to the client.
#[derive(Debug)]
pub(super) enum Message {
    Output(Channel, Bytes),
    /// How it ended; nothing follows.
    End(End),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Success,
    /// With an exit code other than 0.
    Code(i32),
    /// It could not be run.
    Failure(String),
}

impl End {
    /// As the Status that clients of protocol version 4 and later read.
    pub(super) fn to_status(&self) -> Value {
        match self {
            End::Success => json!({"metadata": {}, "status": "Success"}),
            End::Code(code) => json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("command terminated with non-zero exit code: exit status {code}"),
                "reason": "NonZeroExitCode",
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
            }),
            End::Failure(why) => json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("Internal error occurred: {why}"),
                "reason": "InternalError",
                "details": {"causes": [{"message": why}]},
                "code": 500,
            }),
        }
    }
}

/// One side's view of the streams: the command's.
#[derive(Debug)]
pub(super) struct Channels {
    /// What the client types; ends when the client has nothing more to say.
    pub(super) stdin: mpsc::Receiver<Bytes>,
    /// What the client sees.
    pub(super) messages: mpsc::Sender<Message>,
}

impl Channels {
    /// Shows something; gives `false` when the client is gone.
    pub(super) async fn print(&self, channel: Channel, text: impl Into<Bytes>) -> bool {
        self.messages.send(Message::Output(channel, text.into())).await.is_ok()
    }

    /// Says how it ended.
    pub(super) async fn end(self, end: End) {
        // an error means that the client is gone
        let _ = self.messages.send(Message::End(end)).await;
    }
}
