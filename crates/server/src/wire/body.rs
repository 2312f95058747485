//! The fields of a message, and its maximum length.

use std::borrow::Cow;
use std::fmt;

use atoll_sql::TextEncoding;

/// Bytes of a message with a statement, values or rows, at most.
pub(crate) const LONG_MESSAGE_MAX: usize = 256 << 20;

/// Bytes of any other message, at most.
pub(crate) const MESSAGE_MAX: usize = 64 << 10;

/// A violation of the protocol by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProtocolError(pub(crate) String);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The unread rest of a message.
pub(super) struct Body<'a> {
    rest: &'a [u8],
    encoding: TextEncoding,
}

impl<'a> Body<'a> {
    pub(super) fn new(bytes: &'a [u8], encoding: TextEncoding) -> Self {
        Self { rest: bytes, encoding }
    }

    /// A message without texts of the client's.
    pub(super) fn of_ascii(bytes: &'a [u8]) -> Self {
        Self::new(bytes, TextEncoding::default())
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], ProtocolError> {
        match self.rest.split_at_checked(count) {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(bytes)
            }
            None => Err(ProtocolError("a message ends within a field".to_owned())),
        }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ProtocolError> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, ProtocolError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(super) fn i16(&mut self) -> Result<i16, ProtocolError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, ProtocolError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, ProtocolError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// A zero-terminated text.
    pub(super) fn text(&mut self) -> Result<String, ProtocolError> {
        let Some(end) = self.rest.iter().position(|byte| *byte == 0) else {
            return Err(ProtocolError("a text in a message is not terminated".to_owned()));
        };
        let text = self.bytes(end + 1)?;
        let decoded = self.encoding.decoded(&text[..end]);
        decoded.map(Cow::into_owned).map_err(|error| ProtocolError(error.message))
    }

    /// A count, and as many values.
    pub(super) fn list<T>(
        &mut self,
        mut value: impl FnMut(&mut Self) -> Result<T, ProtocolError>,
    ) -> Result<Vec<T>, ProtocolError> {
        let count = self.u16()?;
        (0..count).map(|_| value(self)).collect()
    }

    pub(super) fn end(&self) -> Result<(), ProtocolError> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(ProtocolError("a message is longer than its fields".to_owned())),
        }
    }
}
