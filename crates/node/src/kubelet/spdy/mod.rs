//! SPDY/3.1 as far as Kubernetes uses it: streams that the client opens, data both ways, pings. There is no flow
//! control, as in the other implementations of it.
//!
//! Follows: SPDY protocol, draft 3.1.

mod headers;

pub(crate) use headers::Headers;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use headers::{Packer, Unpacker};
use std::collections::BTreeMap;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

/// Bytes of one frame; a longer one ends the session.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// Streams that a session may have open; further ones are refused.
const STREAMS_MAX: usize = 1024;
/// Pieces of data that may wait for one side; at the limit the other waits.
const QUEUE_MAX: usize = 64;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const FIN: u8 = 1;

/// Why a session ended before its time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SPDY: {0}")]
pub(crate) struct SpdyError(String);

impl SpdyError {
    fn new(why: impl Into<String>) -> SpdyError {
        SpdyError(why.into())
    }
}

/// A stream that the client has opened.
#[derive(Debug)]
pub(crate) struct Stream {
    /// What the client said about it.
    pub(crate) headers: Headers,
    /// What the client sends; ends when the client has nothing more to say.
    pub(crate) input: mpsc::Receiver<Bytes>,
    /// What it is sent.
    pub(crate) output: Output,
}

impl Stream {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// Sends on one stream.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    id: u32,
    frames: mpsc::Sender<Frame>,
}

impl Output {
    /// Sends data; gives `false` when the session has ended.
    pub(crate) async fn send(&self, data: Bytes) -> bool {
        self.frames.send(Frame::Data { id: self.id, data, is_last: false }).await.is_ok()
    }

    /// Says that nothing more comes.
    pub(crate) async fn close(&self) {
        // an error means that the session has ended
        let _ = self.frames.send(Frame::Data { id: self.id, data: Bytes::new(), is_last: true }).await;
    }
}

/// What is to be written.
#[derive(Debug)]
enum Frame {
    Data { id: u32, data: Bytes, is_last: bool },
    Reply(u32),
    Reset(u32),
    Pong(u32),
}

/// Runs a session over `io`: the streams that the client opens come out of the receiver. The session ends when `io`
/// does, or when the receiver and all streams are dropped.
pub(crate) fn serve<I>(io: I) -> mpsc::Receiver<Stream>
where
    I: AsyncRead + AsyncWrite + Send + 'static,
{
    let (opened, streams) = mpsc::channel(QUEUE_MAX);
    let (frames, to_write) = mpsc::channel(QUEUE_MAX);
    let (read, write) = tokio::io::split(io);
    tokio::spawn(async move {
        if let Err(why) = write_all(write, to_write).await {
            tracing::debug!(%why, "a SPDY session can no longer be written to");
        }
    });
    tokio::spawn(async move {
        let mut reader = Reader { frames, opened, inputs: BTreeMap::new(), unpacker: Unpacker::new() };
        if let Err(why) = reader.run(read).await {
            tracing::debug!(%why, "a SPDY session ended badly");
        }
    });
    streams
}

async fn write_all(mut io: impl AsyncWrite + Unpin, mut frames: mpsc::Receiver<Frame>) -> Result<(), SpdyError> {
    let failed = |why: std::io::Error| SpdyError::new(why.to_string());
    let mut packer = Packer::new()?;
    while let Some(frame) = frames.recv().await {
        let bytes = encode(frame, &mut packer)?;
        io.write_all(&bytes).await.map_err(failed)?;
        io.flush().await.map_err(failed)?;
    }
    io.shutdown().await.map_err(failed)
}

fn encode(frame: Frame, packer: &mut Packer) -> Result<Bytes, SpdyError> {
    let mut out = BytesMut::new();
    match frame {
        Frame::Data { id, data, is_last } => {
            out.put_u32(id);
            put_length(&mut out, if is_last { FIN } else { 0 }, data.len());
            out.put_slice(&data);
        }
        Frame::Reply(id) => {
            let block = packer.pack(&Headers::new())?;
            put_control(&mut out, SYN_REPLY, 4 + block.len());
            out.put_u32(id);
            out.put_slice(&block);
        }
        Frame::Reset(id) => {
            /// The server does not want the stream.
            const REFUSED: u32 = 3;
            put_control(&mut out, RST_STREAM, 8);
            out.put_u32(id);
            out.put_u32(REFUSED);
        }
        Frame::Pong(id) => {
            put_control(&mut out, PING, 4);
            out.put_u32(id);
        }
    }
    Ok(out.freeze())
}

fn put_control(out: &mut BytesMut, kind: u16, len: usize) {
    out.put_u16(0x8003);
    out.put_u16(kind);
    put_length(out, 0, len);
}

/// Eight bits of flags, 24 of length.
fn put_length(out: &mut BytesMut, flags: u8, len: usize) {
    let len = u32::try_from(len).unwrap_or(u32::MAX) & 0x00ff_ffff;
    out.put_u32(u32::from(flags) << 24 | len);
}

struct Reader {
    frames: mpsc::Sender<Frame>,
    opened: mpsc::Sender<Stream>,
    /// Where the data of open streams goes.
    inputs: BTreeMap<u32, mpsc::Sender<Bytes>>,
    unpacker: Unpacker,
}

impl Reader {
    async fn run(&mut self, mut io: impl AsyncRead + Unpin) -> Result<(), SpdyError> {
        loop {
            let mut head = [0_u8; 8];
            match io.read_exact(&mut head).await {
                Ok(_) => {}
                Err(why) if why.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(why) => return Err(SpdyError::new(why.to_string())),
            }
            let mut head = &head[..];
            let (first, second) = (head.get_u32(), head.get_u32());
            let flags = u8::try_from(second >> 24).unwrap_or_default();
            let len = usize::try_from(second & 0x00ff_ffff).unwrap_or(usize::MAX);
            if len > FRAME_BYTES_MAX {
                return Err(SpdyError::new(format!("a frame of {len} bytes, more than {FRAME_BYTES_MAX}")));
            }
            let mut payload = vec![0; len];
            io.read_exact(&mut payload).await.map_err(|why| SpdyError::new(why.to_string()))?;
            let payload = Bytes::from(payload);
            if first & 0x8000_0000 == 0 {
                self.data(first, flags, payload).await;
            } else if !self.control((first & 0xffff) as u16, flags, payload).await? {
                return Ok(());
            }
        }
    }

    async fn data(&mut self, id: u32, flags: u8, data: Bytes) {
        if let Some(input) = self.inputs.get(&id)
            && !data.is_empty()
            && input.send(data).await.is_err()
        {
            // nobody listens any more
            self.inputs.remove(&id);
        }
        if flags & FIN != 0 {
            self.inputs.remove(&id);
        }
    }

    /// Gives `false` when the session is to end.
    async fn control(&mut self, kind: u16, flags: u8, mut payload: Bytes) -> Result<bool, SpdyError> {
        match kind {
            SYN_STREAM => {
                if payload.len() < 10 {
                    return Err(SpdyError::new("a stream's head breaks off"));
                }
                let id = payload.get_u32() & 0x7fff_ffff;
                // associated stream, priority, slot
                payload.advance(6);
                let headers = self.unpacker.unpack(&payload)?;
                return Ok(self.open(id, headers, flags & FIN != 0).await);
            }
            RST_STREAM if payload.len() >= 4 => {
                let id = payload.get_u32() & 0x7fff_ffff;
                self.inputs.remove(&id);
            }
            PING if payload.len() >= 4 => {
                let id = payload.get_u32();
                return Ok(self.frames.send(Frame::Pong(id)).await.is_ok());
            }
            GOAWAY => return Ok(false),
            _ => {}
        }
        Ok(true)
    }

    async fn open(&mut self, id: u32, headers: Headers, is_silent: bool) -> bool {
        if self.inputs.len() >= STREAMS_MAX {
            return self.frames.send(Frame::Reset(id)).await.is_ok();
        }
        let (input, received) = mpsc::channel(QUEUE_MAX);
        if !is_silent {
            self.inputs.insert(id, input);
        }
        let output = Output { id, frames: self.frames.clone() };
        self.frames.send(Frame::Reply(id)).await.is_ok()
            && self.opened.send(Stream { headers, input: received, output }).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that opens a stream, sends, and reads what comes back.
    #[tokio::test]
    async fn a_stream() {
        let (mut client, server) = tokio::io::duplex(4096);
        let mut streams = serve(server);
        let mut packer = Packer::new().unwrap();
        let block = packer.pack(&vec![("streamtype".to_owned(), "data".to_owned())]).unwrap();
        let mut out = BytesMut::new();
        put_control(&mut out, SYN_STREAM, 10 + block.len());
        out.put_u32(1);
        out.put_slice(&[0; 6]);
        out.put_slice(&block);
        out.put_u32(1);
        put_length(&mut out, FIN, 5);
        out.put_slice(b"hello");
        put_control(&mut out, PING, 4);
        out.put_u32(7);
        client.write_all(&out).await.unwrap();

        let mut stream = streams.recv().await.unwrap();
        assert_eq!(stream.header("StreamType"), "data");
        assert_eq!(stream.input.recv().await.as_deref(), Some(b"hello".as_slice()));
        assert_eq!(stream.input.recv().await, None);
        stream.output.send(Bytes::from_static(b"bye")).await;
        stream.output.close().await;

        let mut kinds = Vec::new();
        let mut data = Vec::new();
        while kinds.len() < 4 {
            let (first, second) = (client.read_u32().await.unwrap(), client.read_u32().await.unwrap());
            let mut payload = vec![0; (second & 0x00ff_ffff) as usize];
            client.read_exact(&mut payload).await.unwrap();
            let is_control = first & 0x8000_0000 != 0;
            kinds.push(if is_control { first & 0xffff } else { 0 });
            if !is_control {
                data.extend(payload);
            }
        }
        kinds.sort_unstable();
        assert_eq!(kinds, [0, 0, u32::from(SYN_REPLY), u32::from(PING)]);
        assert_eq!(data, b"bye");
    }
}
