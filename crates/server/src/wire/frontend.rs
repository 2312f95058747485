//! Messages from clients, after the first one.

use bytes::{Buf, Bytes, BytesMut};

use super::body::{Body, LONG_MESSAGE_MAX, MESSAGE_MAX, ProtocolError};
use atoll_sql::TextEncoding;

/// A message from a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FrontendMessage {
    /// Run these statements.
    Query(String),
    /// Prepare a statement under a name, with the types of its parameters, 0 for unspecified ones.
    Parse { name: String, sql: String, types: Vec<u32> },
    /// Bind values to a prepared statement.
    Bind(BindMessage),
    /// Describe the columns or parameters.
    Describe(Target),
    /// Return rows of a portal, all if the number is 0.
    Execute { portal: String, rows_max: u32 },
    /// Close a prepared statement or portal.
    Close(Target),
    /// Send pending output.
    Flush,
    /// End a group of messages.
    Sync,
    /// Data for COPY FROM STDIN.
    CopyData(Bytes),
    /// The end of the COPY data.
    CopyDone,
    /// The client could not send all of the COPY data.
    CopyFail(String),
    /// A step of the authentication.
    Password(Bytes),
    /// End the connection.
    Terminate,
}

/// Values for a prepared statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BindMessage {
    pub(crate) portal: String,
    pub(crate) statement: String,
    /// The parameters' formats, 0 for text and 1 for binary: none (all text), one for all, or one each.
    pub(crate) formats: Vec<i16>,
    pub(crate) values: Vec<Option<Bytes>>,
    /// The formats of the result's columns, likewise.
    pub(crate) result_formats: Vec<i16>,
}

/// The object of a Describe or Close.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A named prepared statement.
    Statement(String),
    /// A named portal.
    Portal(String),
}

/// The kind of the next message; None if it is incomplete.
pub(crate) fn next_kind(input: &BytesMut) -> Option<u8> {
    let (kind, length) = header(input)?;
    (input.len() > length).then_some(kind)
}

/// Takes the next message; None if it is incomplete.
pub(crate) fn take_message(
    input: &mut BytesMut,
    encoding: TextEncoding,
) -> Result<Option<FrontendMessage>, ProtocolError> {
    let Some((kind, length)) = header(input) else { return Ok(None) };
    check_length(kind, length)?;
    if input.len() <= length {
        return Ok(None);
    }
    let mut message = input.split_to(1 + length);
    message.advance(5);
    decode(kind, message.freeze(), encoding).map(Some)
}

/// Kind and length of the next message; the length includes itself.
fn header(input: &BytesMut) -> Option<(u8, usize)> {
    let header: [u8; 5] = input.get(..5)?.try_into().ok()?;
    let [kind, length @ ..] = header;
    Some((kind, u32::from_be_bytes(length) as usize))
}

fn check_length(kind: u8, length: usize) -> Result<(), ProtocolError> {
    let max = match kind {
        b'Q' | b'P' | b'B' | b'd' => LONG_MESSAGE_MAX,
        b'D' | b'E' | b'C' | b'H' | b'S' | b'c' | b'f' | b'p' | b'X' => MESSAGE_MAX,
        _ => return Err(ProtocolError(format!("unknown message kind {kind:#04x}"))),
    };
    match (4..=max).contains(&length) {
        true => Ok(()),
        false => {
            let kind = char::from(kind);
            Err(ProtocolError(format!("a message of kind {kind} has an invalid length, {length}")))
        }
    }
}

fn decode(
    kind: u8,
    message: Bytes,
    encoding: TextEncoding,
) -> Result<FrontendMessage, ProtocolError> {
    let mut body = Body::new(&message, encoding);
    let decoded = match kind {
        b'Q' => FrontendMessage::Query(body.text()?),
        b'P' => {
            let (name, sql) = (body.text()?, body.text()?);
            FrontendMessage::Parse { name, sql, types: body.list(Body::u32)? }
        }
        b'B' => FrontendMessage::Bind(bind(&mut body, &message)?),
        b'D' => FrontendMessage::Describe(target(&mut body)?),
        b'E' => {
            let portal = body.text()?;
            let rows_max = u32::try_from(body.i32()?).unwrap_or(0);
            FrontendMessage::Execute { portal, rows_max }
        }
        b'C' => FrontendMessage::Close(target(&mut body)?),
        b'H' => FrontendMessage::Flush,
        b'S' => FrontendMessage::Sync,
        b'd' => return Ok(FrontendMessage::CopyData(message)),
        b'c' => FrontendMessage::CopyDone,
        b'f' => FrontendMessage::CopyFail(body.text()?),
        b'p' => return Ok(FrontendMessage::Password(message)),
        _ => FrontendMessage::Terminate,
    };
    body.end()?;
    Ok(decoded)
}

fn bind(body: &mut Body<'_>, message: &Bytes) -> Result<BindMessage, ProtocolError> {
    let (portal, statement) = (body.text()?, body.text()?);
    let formats = body.list(Body::i16)?;
    let values = body.list(|body| match body.i32()? {
        -1 => Ok(None),
        length => {
            let length = usize::try_from(length)
                .map_err(|_| ProtocolError(format!("a value has an invalid length, {length}")))?;
            Ok(Some(message.slice_ref(body.bytes(length)?)))
        }
    })?;
    let result_formats = body.list(Body::i16)?;
    Ok(BindMessage { portal, statement, formats, values, result_formats })
}

/// The chosen SASL mechanism, and the initial response.
pub(crate) fn sasl_initial(message: &Bytes) -> Result<(String, Bytes), ProtocolError> {
    let mut body = Body::of_ascii(message);
    let method = body.text()?;
    let length = usize::try_from(body.i32()?)
        .map_err(|_| ProtocolError("the SASL initial response is missing".to_owned()))?;
    let first = message.slice_ref(body.bytes(length)?);
    body.end()?;
    Ok((method, first))
}

fn target(body: &mut Body<'_>) -> Result<Target, ProtocolError> {
    match body.byte()? {
        b'S' => Ok(Target::Statement(body.text()?)),
        b'P' => Ok(Target::Portal(body.text()?)),
        other => Err(ProtocolError(format!("{other:#04x} is neither a statement nor a portal"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(input: &mut BytesMut) -> Result<Option<FrontendMessage>, ProtocolError> {
        take_message(input, TextEncoding::default())
    }

    fn framed(kind: u8, body: &[u8]) -> BytesMut {
        let mut bytes = BytesMut::from(&[kind][..]);
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn a_message_is_taken_once_it_is_complete() {
        let whole = framed(b'Q', b"SELECT 1\0");
        let mut input = BytesMut::new();
        for byte in &whole[..whole.len() - 1] {
            input.extend_from_slice(&[*byte]);
            assert_eq!(take(&mut input), Ok(None));
        }
        input.extend_from_slice(b"\0S\0\0\0\x04");
        let query = FrontendMessage::Query("SELECT 1".to_owned());
        assert_eq!(take(&mut input), Ok(Some(query)));
        assert_eq!(next_kind(&input), Some(b'S'));
        assert_eq!(take(&mut input), Ok(Some(FrontendMessage::Sync)));
        assert!(input.is_empty());
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let of = |bytes: &[u8]| take(&mut BytesMut::from(bytes));
        assert!(of(b"Q\xff\xff\xff\xff").is_err());
        assert!(of(b"Q\0\0\0\x03").is_err());
        assert!(of(b"S\x7f\0\0\0").is_err());
        assert!(of(b"!\0\0\0\x04").is_err());
    }

    /// Truncates and changes each message at each byte: the result is a message or an error, never a panic, and never
    /// consumes a byte of the next message.
    #[test]
    fn damaged_messages_are_errors_within_their_bounds() {
        let bind = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x01\0\0";
        let bodies: [(u8, &[u8]); 6] = [
            (b'B', bind),
            (b'P', b"name\0SELECT $1\0\0\x01\0\0\0\x17"),
            (b'D', b"Sname\0"),
            (b'E', b"portal\0\0\0\0\x05"),
            (b'C', b"P\0"),
            (b'f', b"why\0"),
        ];
        for (kind, body) in bodies {
            let whole = framed(kind, body);
            assert!(matches!(take(&mut whole.clone()), Ok(Some(_))), "{}", char::from(kind));
            for end in 0..body.len() {
                let mut cut = framed(kind, &body[..end]);
                cut.extend_from_slice(b"S\0\0\0\x04");
                let _ = take(&mut cut);
                assert_eq!(&cut[..], b"S\0\0\0\x04");
            }
            for at in 0..whole.len() {
                for change in [1, 0x80, 0xff] {
                    let mut changed = whole.clone();
                    changed[at] ^= change;
                    let _ = take(&mut changed);
                }
            }
        }
    }
}
