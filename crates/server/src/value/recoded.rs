//! Values in the encoding of the client: texts, and texts within arrays and rows in binary form.

use std::borrow::Cow;

use super::format::Format;
use super::types::{BPCHAR, CHAR, JSON, JSONB, NAME, PgType, RECORD, TEXT, UNKNOWN, VARCHAR};
use atoll_sql::is_of_users;
use atoll_sql::{EncodingError, TextEncoding};

type Result<'v> = std::result::Result<Cow<'v, [u8]>, EncodingError>;

/// A value that a client sent, with its texts in UTF-8.
///
/// # Errors
/// If a text is invalid in the client's encoding.
pub(crate) fn from_client(
    bytes: &[u8],
    oid: u32,
    format: Format,
    encoding: TextEncoding,
) -> Result<'_> {
    recoded(bytes, oid, format, &|text| {
        Ok(match encoding.decoded(text)? {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        })
    })
}

/// Brings a value that is written after its length, at the end of a message, into the client's encoding.
///
/// # Errors
/// If a character has no equivalent there.
pub(crate) fn to_client(
    message: &mut Vec<u8>,
    start: usize,
    oid: u32,
    format: Format,
    encoding: TextEncoding,
) -> std::result::Result<(), EncodingError> {
    let Some(value) = message.get(start + 4..).filter(|value| !value.is_ascii()) else {
        return Ok(());
    };
    let value = recoded(value, oid, format, &|text| match std::str::from_utf8(text) {
        Ok(text) => encoding.encoded(text),
        Err(_) => Ok(Cow::Borrowed(text)),
    });
    let value = value?.into_owned();
    message.truncate(start);
    message.extend_from_slice(&(value.len() as u32).to_be_bytes());
    message.extend_from_slice(&value);
    Ok(())
}

fn recoded<'v>(
    bytes: &'v [u8],
    oid: u32,
    format: Format,
    text: &dyn for<'t> Fn(&'t [u8]) -> Result<'t>,
) -> Result<'v> {
    if bytes.is_ascii() && format == Format::Text {
        return Ok(Cow::Borrowed(bytes));
    }
    match (format, oid) {
        (Format::Text, _) | (_, TEXT | VARCHAR | BPCHAR | NAME | CHAR | UNKNOWN | JSON | JSONB) => {
            text(bytes)
        }
        _ if is_of_users(oid) => text(bytes),
        // Rows: the number of fields, then the type and the value of each.
        (_, RECORD) => within(bytes, 4, None, text),
        // Arrays: the number of dimensions, a flag, the type, length and first index of each dimension, then items.
        _ if PgType::item_of(oid).is_some() => match (number(bytes, 0), number(bytes, 8)) {
            (Some(dimensions), Some(item)) => {
                let start = 12_usize.saturating_add((dimensions as usize).saturating_mul(8));
                within(bytes, start, Some(item), text)
            }
            _ => Ok(Cow::Borrowed(bytes)),
        },
        _ => Ok(Cow::Borrowed(bytes)),
    }
}

/// The same for values within a value, from `start` on, each with its length, of one type or each with its own. What is
/// damaged stays as it is: its reader reports it.
fn within<'v>(
    bytes: &'v [u8],
    start: usize,
    of_all: Option<u32>,
    text: &dyn for<'t> Fn(&'t [u8]) -> Result<'t>,
) -> Result<'v> {
    let mut written = bytes.get(..start).unwrap_or_default().to_vec();
    let mut at = start;
    while at < bytes.len() {
        let oid = match of_all {
            Some(oid) => Some(oid),
            None => {
                written.extend_from_slice(bytes.get(at..at + 4).unwrap_or_default());
                at += 4;
                number(bytes, at - 4)
            }
        };
        let (Some(oid), Some(length)) = (oid, number(bytes, at)) else {
            return Ok(Cow::Borrowed(bytes));
        };
        at += 4;
        // NULL
        if length == u32::MAX {
            written.extend_from_slice(&length.to_be_bytes());
            continue;
        }
        let end = at.saturating_add(length as usize);
        let Some(value) = bytes.get(at..end) else { return Ok(Cow::Borrowed(bytes)) };
        let value = recoded(value, oid, Format::Binary, text)?;
        written.extend_from_slice(&(value.len() as u32).to_be_bytes());
        written.extend_from_slice(&value);
        at = end;
    }
    Ok(Cow::Owned(written))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::types::{BYTEA, INT4};

    const TEXT_LIST: u32 = 1009;
    const BYTEA_LIST: u32 = 1001;

    /// `{a, NULL, TEXT}` in binary form.
    fn array(item: u32, text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in [1, 1, item, 3, 1, 1] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes.push(b'a');
        bytes.extend_from_slice(&u32::MAX.to_be_bytes());
        bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
        bytes.extend_from_slice(text);
        bytes
    }

    #[test]
    fn texts_within_values_change_and_others_stay() {
        let latin = TextEncoding::named("LATIN1").unwrap();
        let utf8 = "é".as_bytes();
        for (oid, sent, wanted) in [
            (TEXT, vec![0xe9], utf8.to_vec()),
            (JSONB, vec![1, b'"', 0xe9, b'"'], [&[1, b'"'], utf8, b"\""].concat()),
            (BYTEA, vec![0xe9], vec![0xe9]),
            (INT4, vec![0, 0, 0, 0xe9], vec![0, 0, 0, 0xe9]),
            (TEXT_LIST, array(TEXT, &[0xe9]), array(TEXT, utf8)),
            (BYTEA_LIST, array(BYTEA, &[0xe9]), array(BYTEA, &[0xe9])),
        ] {
            let read = from_client(&sent, oid, Format::Binary, latin).unwrap();
            assert_eq!(*read, *wanted, "{oid}");
            let mut message =
                [&b"before"[..], &(wanted.len() as u32).to_be_bytes(), &wanted].concat();
            to_client(&mut message, 6, oid, Format::Binary, latin).unwrap();
            assert_eq!(message[10..], *sent, "{oid}");
            assert_eq!(message[6..10], (sent.len() as u32).to_be_bytes(), "{oid}");
            for end in 0..sent.len() {
                let _ = from_client(&sent[..end], oid, Format::Binary, latin);
            }
        }
        assert_eq!(*from_client(&[0xe9], INT4, Format::Text, latin).unwrap(), *utf8);
        let mut message = [&3_u32.to_be_bytes(), "€".as_bytes()].concat();
        assert!(to_client(&mut message, 0, TEXT, Format::Text, latin).is_err());
    }
}
