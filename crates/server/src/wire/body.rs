//! A message's fields, and how long it may be.

use std::fmt;

/// Bytes of a message that carries a statement, values or rows.
pub(crate) const LONG_MESSAGE_MAX: usize = 256 << 20;

/// Bytes of any other message.
pub(crate) const MESSAGE_MAX: usize = 64 << 10;

/// What a client sent that is not the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProtocolError(pub(crate) String);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The rest of a message that is read.
pub(super) struct Body<'a>(pub(super) &'a [u8]);

impl<'a> Body<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], ProtocolError> {
        match self.0.split_at_checked(count) {
            Some((bytes, rest)) => {
                self.0 = rest;
                Ok(bytes)
            }
            None => Err(ProtocolError("a message ends within one of its fields".to_owned())),
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

    /// A text that ends with a zero byte.
    pub(super) fn text(&mut self) -> Result<String, ProtocolError> {
        let Some(end) = self.0.iter().position(|byte| *byte == 0) else {
            return Err(ProtocolError("a text in a message has no end".to_owned()));
        };
        let text = self.bytes(end + 1)?;
        match std::str::from_utf8(&text[..end]) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(ProtocolError("a text in a message is not UTF-8".to_owned())),
        }
    }

    /// As many values as the count before them says.
    pub(super) fn list<T>(
        &mut self,
        mut value: impl FnMut(&mut Self) -> Result<T, ProtocolError>,
    ) -> Result<Vec<T>, ProtocolError> {
        let count = self.u16()?;
        (0..count).map(|_| value(self)).collect()
    }

    pub(super) fn end(&self) -> Result<(), ProtocolError> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(ProtocolError("a message is longer than its fields".to_owned())),
        }
    }
}
