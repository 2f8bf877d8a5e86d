//! The wire format itself: tags, varints, lengths. No types here.

use super::DecodeError;

/// The wire types that occur.
pub(super) mod kind {
    pub(crate) const VARINT: u64 = 0;
    pub(crate) const FIXED64: u64 = 1;
    pub(crate) const BYTES: u64 = 2;
    pub(crate) const GROUP_START: u64 = 3;
    pub(crate) const GROUP_END: u64 = 4;
    pub(crate) const FIXED32: u64 = 5;
}

/// A buffer that is filled from its end: the length of a message is known when it is complete, so it can be put in
/// front of it without a second pass.
#[derive(Debug)]
pub(super) struct Backward {
    buf: Vec<u8>,
    /// Where the content begins; it goes to the end of `buf`.
    start: usize,
}

impl Backward {
    pub(super) fn with_capacity(capacity: usize) -> Backward {
        Backward { buf: vec![0; capacity], start: capacity }
    }

    /// How many bytes there are. The difference of two answers is the length of what was put between them.
    pub(super) fn len(&self) -> usize {
        self.buf.len() - self.start
    }

    #[cold]
    fn grow(&mut self, n_bytes: usize) {
        let len = self.len();
        let capacity = (self.buf.len() * 2).max(len + n_bytes).max(64);
        let mut buf = vec![0; capacity];
        buf[capacity - len..].copy_from_slice(&self.buf[self.start..]);
        self.start = capacity - len;
        self.buf = buf;
    }

    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if self.start < bytes.len() {
            self.grow(bytes.len());
        }
        let end = self.start;
        self.start -= bytes.len();
        self.buf[self.start..end].copy_from_slice(bytes);
    }

    #[inline]
    fn put_byte(&mut self, byte: u8) {
        if self.start == 0 {
            self.grow(1);
        }
        self.start -= 1;
        self.buf[self.start] = byte;
    }

    #[inline]
    pub(super) fn put_varint(&mut self, n: u64) {
        if n < 0x80 {
            self.put_byte(n.to_le_bytes()[0]);
            return;
        }
        let (bytes, len) = varint(n);
        self.put(&bytes[..len]);
    }

    /// Puts the tag of a field whose content was put before.
    #[inline]
    pub(super) fn put_tag(&mut self, number: u32, wire: u64) {
        self.put_varint(u64::from(number) << 3 | wire);
    }

    /// Puts tag and length in front of what was put since [`Backward::len`] was `before`.
    #[inline]
    pub(super) fn close(&mut self, number: u32, before: usize) {
        self.put_varint((self.len() - before) as u64);
        self.put_tag(number, kind::BYTES);
    }

    /// Puts a field of bytes.
    #[inline]
    pub(super) fn put_bytes(&mut self, number: u32, bytes: &[u8]) {
        self.put(bytes);
        self.put_varint(bytes.len() as u64);
        self.put_tag(number, kind::BYTES);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.buf[self.start..].to_vec()
    }
}

/// A number's bytes and how many count.
pub(super) fn varint(mut n: u64) -> ([u8; 10], usize) {
    let mut bytes = [0; 10];
    let mut len = 0;
    loop {
        let low = (n & 0x7f).to_le_bytes()[0];
        n >>= 7;
        bytes[len] = if n == 0 { low } else { low | 0x80 };
        len += 1;
        if n == 0 {
            return (bytes, len);
        }
    }
}

/// How many bytes a number takes.
pub(super) fn varint_len(n: u64) -> usize {
    ((64 - (n | 1).leading_zeros()) as usize).div_ceil(7)
}

/// A field's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) number: u32,
    pub(super) wire: u64,
}

/// Reads a message from its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward<'a> {
    rest: &'a [u8],
    /// The message's type, for errors.
    message: &'static str,
}

impl<'a> Forward<'a> {
    pub(super) fn new(bytes: &'a [u8], message: &'static str) -> Forward<'a> {
        Forward { rest: bytes, message }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(DecodeError::UnexpectedEnd)?;
            self.rest = rest;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(DecodeError::Overflow)
    }

    /// The next tag; `None` at the end.
    #[inline]
    pub(super) fn tag(&mut self) -> Result<Option<Tag>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire = tag & 7;
        // Go reads the number as 32 bits of it
        #[expect(clippy::cast_possible_truncation, reason = "as Go does; the check below refuses what is no number")]
        let number = (tag >> 3) as u32;
        if number == 0 || number > i32::MAX as u32 || wire == kind::GROUP_END {
            return Err(DecodeError::IllegalTag { message: self.message, number: tag >> 3, wire });
        }
        Ok(Some(Tag { number, wire }))
    }

    #[inline]
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = usize::try_from(self.varint()?).map_err(|_| DecodeError::UnexpectedEnd)?;
        self.take(len)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn fixed64(&mut self) -> Result<u64, DecodeError> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)))
    }

    /// Passes over a field that nobody declares.
    pub(super) fn skip(&mut self, tag: Tag) -> Result<(), DecodeError> {
        match tag.wire {
            kind::VARINT => self.varint().map(drop),
            kind::FIXED64 => self.take(8).map(drop),
            kind::BYTES => self.bytes().map(drop),
            kind::FIXED32 => self.take(4).map(drop),
            kind::GROUP_START => self.skip_group(),
            wire => Err(DecodeError::IllegalTag { message: self.message, number: u64::from(tag.number), wire }),
        }
    }

    /// Passes over the rest of a group; groups in groups are counted, not recursed into.
    fn skip_group(&mut self) -> Result<(), DecodeError> {
        let mut depth = 1u32;
        while depth > 0 {
            let tag = self.varint()?;
            match tag & 7 {
                kind::GROUP_START => depth += 1,
                kind::GROUP_END => depth -= 1,
                #[expect(clippy::cast_possible_truncation, reason = "the number of a skipped field is only for errors")]
                wire => self.skip(Tag { number: (tag >> 3) as u32, wire })?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_read_back(n: u64) {
            let mut out = Backward::with_capacity(0);
            out.put_varint(n);
            let bytes = out.finish();
            prop_assert_eq!(bytes.len(), varint_len(n));
            prop_assert_eq!(Forward::new(&bytes, "").varint(), Ok(n));
        }

        #[test]
        fn fields_read_back(fields in prop::collection::vec((1u32..1000, prop::collection::vec(any::<u8>(), 0..300)), 0..20)) {
            let mut out = Backward::with_capacity(0);
            for (number, bytes) in fields.iter().rev() {
                out.put_bytes(*number, bytes);
            }
            let message = out.finish();
            let mut reader = Forward::new(&message, "");
            for (number, bytes) in &fields {
                prop_assert_eq!(reader.tag(), Ok(Some(Tag { number: *number, wire: kind::BYTES })));
                prop_assert_eq!(reader.bytes(), Ok(&bytes[..]));
            }
            prop_assert_eq!(reader.tag(), Ok(None));
        }
    }

    #[test]
    fn unknown_fields_of_every_wire_type_are_passed_over() {
        // 1: varint, 2: fixed64, 3: bytes, 4: group with a group in it, 5: fixed32
        let message = [
            &[0x08, 0x96, 0x01][..],
            &[0x11, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x1a, 2, 9, 9],
            &[0x23, 0x08, 0x01, 0x2b, 0x2c, 0x24],
            &[0x2d, 1, 2, 3, 4],
        ]
        .concat();
        let mut reader = Forward::new(&message, "");
        let mut numbers = Vec::new();
        while let Some(tag) = reader.tag().unwrap() {
            numbers.push(tag.number);
            reader.skip(tag).unwrap();
        }
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn faults() {
        let skip_all = |bytes: &[u8]| -> Result<(), DecodeError> {
            let mut reader = Forward::new(bytes, "Pod");
            while let Some(tag) = reader.tag()? {
                reader.skip(tag)?;
            }
            Ok(())
        };
        assert_eq!(skip_all(&[0x0a, 5, 1]), Err(DecodeError::UnexpectedEnd));
        assert_eq!(skip_all(&[0xff; 12]), Err(DecodeError::Overflow));
        assert_eq!(skip_all(&[0x02]).unwrap_err().to_string(), "proto: Pod: illegal tag 0 (wire type 2)");
        assert!(matches!(skip_all(&[0x0c]), Err(DecodeError::IllegalTag { wire: 4, .. })));
        assert_eq!(skip_all(&[0x0b]), Err(DecodeError::UnexpectedEnd));
        assert!(matches!(skip_all(&[0x0f]), Err(DecodeError::IllegalTag { wire: 7, .. })));
    }
}
