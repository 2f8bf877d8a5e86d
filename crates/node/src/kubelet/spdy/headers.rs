//! Blocks of names and values, compressed with a dictionary that both sides know; each direction is one stream.
//!
//! Follows: SPDY protocol, draft 3.1, section 2.6.10.

use super::SpdyError;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

/// Words of the dictionary, each with its length before it in the dictionary itself.
const WORDS: [&str; 65] = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];

/// What follows the words.
const TEXT: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 \
Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not \
Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov \
Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,\
application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=\
iso-8859-1,utf-,*,enq=0.";

/// Bytes that a block may have once it is unpacked. A larger one ends the session.
const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// Names and values, in order.
pub(crate) type Headers = Vec<(String, String)>;

fn dictionary() -> Vec<u8> {
    let mut dictionary = Vec::new();
    for word in WORDS {
        dictionary.extend_from_slice(&u32::try_from(word.len()).unwrap_or_default().to_be_bytes());
        dictionary.extend_from_slice(word.as_bytes());
    }
    dictionary.extend_from_slice(TEXT.as_bytes());
    dictionary
}

/// Packs the blocks of one direction.
#[derive(Debug)]
pub(super) struct Packer {
    compress: Compress,
}

impl Packer {
    pub(super) fn new() -> Result<Packer, SpdyError> {
        let mut compress = Compress::new(Compression::default(), true);
        compress.set_dictionary(&dictionary()).map_err(|why| SpdyError::new(format!("no dictionary: {why}")))?;
        Ok(Packer { compress })
    }

    pub(super) fn pack(&mut self, headers: &Headers) -> Result<Bytes, SpdyError> {
        let mut block = BytesMut::new();
        put_len(&mut block, headers.len());
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            put_len(&mut block, text.len());
            block.put_slice(text.as_bytes());
        }
        let mut out = Vec::with_capacity(block.len() + 128);
        let mut n_read = 0;
        loop {
            let before = self.compress.total_in();
            out.reserve(128);
            let rest = &block[n_read..];
            self.compress
                .compress_vec(rest, &mut out, FlushCompress::Sync)
                .map_err(|why| SpdyError::new(format!("headers cannot be packed: {why}")))?;
            n_read += usize::try_from(self.compress.total_in() - before).unwrap_or_default();
            // room is left only when everything has been written
            if n_read == block.len() && out.len() < out.capacity() {
                return Ok(Bytes::from(out));
            }
        }
    }
}

fn put_len(block: &mut BytesMut, len: usize) {
    block.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
}

/// Unpacks the blocks of one direction.
#[derive(Debug)]
pub(super) struct Unpacker {
    decompress: Decompress,
}

impl Unpacker {
    pub(super) fn new() -> Unpacker {
        Unpacker { decompress: Decompress::new(true) }
    }

    pub(super) fn unpack(&mut self, packed: &[u8]) -> Result<Headers, SpdyError> {
        let mut out = Vec::with_capacity(1024);
        let start = self.decompress.total_in();
        loop {
            let n_read = usize::try_from(self.decompress.total_in() - start).unwrap_or_default();
            if n_read >= packed.len() && out.len() < out.capacity() {
                break;
            }
            if out.len() > BLOCK_BYTES_MAX {
                return Err(SpdyError::new(format!("headers have more than {BLOCK_BYTES_MAX} bytes")));
            }
            out.reserve(1024);
            match self.decompress.decompress_vec(&packed[n_read..], &mut out, FlushDecompress::Sync) {
                Ok(_) => {}
                Err(why) if why.needs_dictionary().is_some() => {
                    let set = self.decompress.set_dictionary(&dictionary());
                    set.map_err(|why| SpdyError::new(format!("another dictionary: {why}")))?;
                }
                Err(why) => return Err(SpdyError::new(format!("headers cannot be unpacked: {why}"))),
            }
        }
        read(Bytes::from(out))
    }
}

fn read(mut block: Bytes) -> Result<Headers, SpdyError> {
    let short = || SpdyError::new("headers break off");
    let mut take = |n: usize| if block.len() < n { Err(short()) } else { Ok(block.split_to(n)) };
    let mut n_headers = take(4)?.get_u32();
    let mut headers = Headers::new();
    while n_headers > 0 {
        let mut text = || -> Result<String, SpdyError> {
            let len = take(4)?.get_u32();
            let bytes = take(usize::try_from(len).unwrap_or(usize::MAX))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let name = text()?;
        headers.push((name, text()?));
        n_headers -= 1;
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_there_and_back() {
        assert_eq!(dictionary().len(), 1423);
        let (mut packer, mut unpacker) = (Packer::new().unwrap(), Unpacker::new());
        let long = "x".repeat(9_000);
        for value in ["stdout", "", "stderr", &long] {
            let headers = vec![("streamtype".to_owned(), value.to_owned()), ("port".to_owned(), "80".to_owned())];
            let packed = packer.pack(&headers).unwrap();
            assert_eq!(unpacker.unpack(&packed).unwrap(), headers);
        }
        assert!(unpacker.unpack(b"nonsense").is_err());
    }
}
