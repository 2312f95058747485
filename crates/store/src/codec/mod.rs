//! Numbers, texts and lists as bytes, and back: the encoding of log records and of the files of a
//! checkpoint.
//!
//! | What | Bytes |
//! |---|---|
//! | number | LEB128: 7 bits a byte, least first, the top bit set where more follow; at most 10 bytes |
//! | signed number | the number `2n` for `n ≥ 0`, `-2n - 1` for `n < 0` |
//! | flag | one byte, 0 or 1 |
//! | bytes, text | number of bytes, then the bytes; texts are UTF-8 |
//! | optional value | a flag, then the value if it is 1 |
//! | list | number of items, then the items |
//!
//! Bytes from a file are never trusted: a [`Decoder`] returns an error that says what was read and
//! where, and allocates no more than the remaining bytes.

mod types;

use std::fmt;

pub(crate) use types::{decode_schema, encode_schema};

/// Writes values one after another.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    bytes: Vec<u8>,
}

/// Why bytes could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Offset of the value.
    pub at: usize,
    /// What was being read.
    pub what: &'static str,
    /// What was wrong.
    pub reason: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}: {}", self.at, self.what, self.reason)
    }
}

impl std::error::Error for DecodeError {}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    pub(crate) fn signed(&mut self, value: i64) {
        self.number((value << 1 ^ value >> 63) as u64);
    }

    pub(crate) fn byte(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn flag(&mut self, value: bool) {
        self.byte(value.into());
    }

    /// Four bytes, least first: checksums, which no shorter form fits.
    pub(crate) fn fixed(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.count(value.len());
        self.bytes.extend_from_slice(value);
    }

    pub(crate) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    pub(crate) fn option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            put(self, value);
        }
    }

    pub(crate) fn list<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        mut put: impl FnMut(&mut Self, T),
    ) {
        self.count(items.len());
        items.for_each(|item| put(self, item));
    }
}

/// Reads values one after another.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

type Result<T> = std::result::Result<T, DecodeError>;

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// An error about a value that began at a byte.
    pub(crate) fn error(&self, what: &'static str, reason: impl Into<String>) -> DecodeError {
        DecodeError { at: self.at, what, reason: reason.into() }
    }

    fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..count) else {
            let reason = format!("expected {count} bytes, {} are left", rest.len());
            return Err(self.error(what, reason));
        };
        self.at += count;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self, what: &'static str) -> Result<u8> {
        Ok(self.take(1, what)?[0])
    }

    pub(crate) fn flag(&mut self, what: &'static str) -> Result<bool> {
        match self.byte(what)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.error(what, format!("expected 0 or 1, found {other}"))),
        }
    }

    pub(crate) fn fixed(&mut self, what: &'static str) -> Result<u32> {
        let bytes = self.take(4, what)?;
        Ok(u32::from_le_bytes(std::array::from_fn(|i| bytes[i])))
    }

    pub(crate) fn number(&mut self, what: &'static str) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error(what, "the number does not fit 64 bits"))
    }

    pub(crate) fn signed(&mut self, what: &'static str) -> Result<i64> {
        let value = self.number(what)?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number that fits `usize`.
    pub(crate) fn size(&mut self, what: &'static str) -> Result<usize> {
        let value = self.number(what)?;
        usize::try_from(value).map_err(|_| self.error(what, format!("{value} is too large")))
    }

    /// A number of items that follow, each of which takes at least a byte.
    pub(crate) fn count(&mut self, what: &'static str) -> Result<usize> {
        let count = self.size(what)?;
        let left = self.bytes.len() - self.at;
        match count <= left {
            true => Ok(count),
            false => Err(self.error(what, format!("{count} items in the remaining {left} bytes"))),
        }
    }

    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<&'a [u8]> {
        let count = self.count(what)?;
        self.take(count, what)
    }

    pub(crate) fn text(&mut self, what: &'static str) -> Result<&'a str> {
        let bytes = self.bytes(what)?;
        str::from_utf8(bytes).map_err(|error| self.error(what, error.to_string()))
    }

    pub(crate) fn option<T>(
        &mut self,
        what: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Option<T>> {
        match self.flag(what)? {
            true => read(self).map(Some),
            false => Ok(None),
        }
    }

    pub(crate) fn list<T>(
        &mut self,
        what: &'static str,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.count(what)?;
        (0..count).map(|_| read(self)).collect()
    }

    /// Whether all bytes have been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Refuses bytes after the last value.
    pub(crate) fn end(self) -> Result<()> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            more => Err(self.error("end", format!("{more} unexpected bytes"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_written() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let signed = [0, 1, -1, 63, -64, i64::MAX, i64::MIN];
        let mut encoder = Encoder::new();
        numbers.iter().for_each(|value| encoder.number(*value));
        signed.iter().for_each(|value| encoder.signed(*value));
        encoder.text("süß");
        encoder.option(Some("x"), Encoder::text);
        encoder.option(None::<&str>, Encoder::text);
        encoder.fixed(7);
        let bytes = encoder.finish();
        let mut decoder = Decoder::new(&bytes);
        for value in numbers {
            assert_eq!(decoder.number("n"), Ok(value));
        }
        for value in signed {
            assert_eq!(decoder.signed("n"), Ok(value));
        }
        assert_eq!(decoder.text("t"), Ok("süß"));
        assert_eq!(decoder.option("o", |d| d.text("t")), Ok(Some("x")));
        assert_eq!(decoder.option("o", |d| d.text("t")), Ok(None));
        assert_eq!(decoder.fixed("f"), Ok(7));
        decoder.end().unwrap();
    }

    #[test]
    fn invalid_bytes_are_refused_with_their_offset() {
        assert!(Decoder::new(&[0xff; 10]).number("n").is_err(), "more than 64 bits");
        assert!(Decoder::new(&[0xff; 3]).number("n").is_err(), "cut off");
        assert!(Decoder::new(&[5, 1]).count("rows").is_err(), "more items than bytes");
        assert!(Decoder::new(&[2, 0xc3, 0x28]).text("name").is_err(), "not UTF-8");
        let error = Decoder::new(&[7]).flag("is_primary").unwrap_err();
        assert_eq!(error.to_string(), "byte 1: is_primary: expected 0 or 1, found 7");
        assert!(Decoder::new(&[7]).end().is_err());
    }
}
