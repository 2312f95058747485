//! `encode` and `decode`: conversion between bytes and text, in UTF-8 or PostgreSQL's formats.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, ScalarValue};

use crate::scalar::binary::bytes::{put_base64, read_base64};
use crate::scalar::call::{Call, put};
use crate::scalar::entry::{Arguments, Entry, Takes};
use crate::scalar::text::texts::entry;

const ENCODE: &[Arguments] =
    &[Arguments::Are(&[Takes::Text]), Arguments::Are(&[Takes::Bytes, Takes::Text])];
const DECODE: &[Arguments] =
    &[Arguments::Are(&[Takes::Bytes]), Arguments::Are(&[Takes::Text, Takes::Text])];

type Result<T, E = DataFusionError> = std::result::Result<T, E>;

/// Bytes per base64 line in PostgreSQL.
const LINE_BYTES: usize = 57;

/// A format for bytes.
enum ByteFormat {
    Hex,
    Base64,
    Escape,
}

fn format(call: &Call, row: usize) -> Result<ByteFormat> {
    let name = call.text(1).value(row);
    match name.to_ascii_lowercase().as_str() {
        "hex" => Ok(ByteFormat::Hex),
        "base64" => Ok(ByteFormat::Base64),
        "escape" => Ok(ByteFormat::Escape),
        _ => call.fails_as(
            "22023",
            format_args!("unknown format '{name}'; expected hex, base64 or escape"),
        ),
    }
}

fn encode(call: &Call) -> Result<ArrayRef> {
    if call.count() == 1 {
        return Ok(cast(&call.arrays[0], &DataType::Binary)?);
    }
    let values = call.bytes(0);
    call.texts(|row, out| {
        let bytes = values.value(row);
        match format(call, row)? {
            ByteFormat::Hex => {
                bytes.iter().try_for_each(|it| put(out, format_args!("{it:02x}")))?
            }
            ByteFormat::Base64 => {
                for (at, line) in bytes.chunks(LINE_BYTES).enumerate() {
                    if at > 0 {
                        out.push('\n');
                    }
                    put_base64(line, out);
                }
            }
            ByteFormat::Escape => put_escaped(bytes, out)?,
        }
        Ok(true)
    })
}

/// Escapes zero bytes and non-ASCII bytes as three octal digits.
fn put_escaped(bytes: &[u8], out: &mut String) -> Result<()> {
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            1..=127 => out.push(char::from(*byte)),
            _ => put(out, format_args!("\\{byte:03o}"))?,
        }
    }
    Ok(())
}

fn decode(call: &Call) -> Result<ArrayRef> {
    if call.count() == 1 {
        return of_utf8(call);
    }
    let texts = call.text(0);
    call.binaries(|row, out| {
        let text = texts.value(row);
        let digits = || text.chars().filter(is_no_space);
        match format(call, row)? {
            ByteFormat::Hex => {
                read_hex(digits(), out).or_else(|why| call.fails_as("22023", why))?
            }
            ByteFormat::Base64 => read_base64(call, &digits().collect::<String>(), out)?,
            ByteFormat::Escape => {
                read_escaped(text.as_bytes(), out).or_else(|why| call.fails(why))?
            }
        }
        Ok(true)
    })
}

fn of_utf8(call: &Call) -> Result<ArrayRef> {
    let values = call.bytes(0);
    call.texts(|row, out| match std::str::from_utf8(values.value(row)) {
        Ok(text) => {
            out.push_str(text);
            Ok(true)
        }
        Err(_) => call.fails("the bytes are not UTF-8"),
    })
}

fn is_no_space(char: &char) -> bool {
    !" \t\r\n".contains(*char)
}

fn read_hex(digits: impl Iterator<Item = char>, out: &mut Vec<u8>) -> Result<(), String> {
    let mut high = None;
    for char in digits {
        let Some(digit) = char.to_digit(16) else {
            return Err(format!("'{char}' is not a hexadecimal digit"));
        };
        match high.take() {
            Some(high) => out.push((high << 4 | digit) as u8),
            None => high = Some(digit),
        }
    }
    match high {
        Some(_) => Err("odd number of hexadecimal digits".to_owned()),
        None => Ok(()),
    }
}

fn read_escaped(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind) {
            (b'\\', [b'\\', behind @ ..]) => {
                out.push(b'\\');
                rest = behind;
            }
            (b'\\', [b'x' | b'X', high, low, behind @ ..]) => {
                read_hex([*high, *low].map(char::from).into_iter(), out)?;
                rest = behind;
            }
            (b'\\', [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', behind @ ..]) => {
                out.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
                rest = behind;
            }
            (b'\\', _) => {
                let message = "a backslash stands before another, three octal digits, or x and two \
                               hexadecimal ones";
                return Err(message.to_owned());
            }
            _ => out.push(*byte),
        }
    }
    Ok(())
}

/// Parses text as bytes: PostgreSQL's `\x00ff`, or text with escapes, PostgreSQL's `\000` and DuckDB's `\x00`.
///
/// # Errors
/// A message that says what is wrong with the text.
pub fn bytes_of_text(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    if let Some(digits) = text.strip_prefix("\\x")
        && read_hex(digits.chars().filter(is_no_space), &mut bytes).is_ok()
    {
        return Ok(bytes);
    }
    bytes.clear();
    read_escaped(text.as_bytes(), &mut bytes)?;
    Ok(bytes)
}

/// Two signatures: one type if UTF-8 is meant, the other if a format is given.
fn gives(arguments: &[DataType], plain: DataType, named: DataType) -> DataType {
    if arguments.len() == 1 { plain } else { named }
}

fn encode_gives(arguments: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(gives(arguments, DataType::Binary, DataType::Utf8))
}

fn decode_gives(arguments: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(gives(arguments, DataType::Utf8, DataType::Binary))
}

const ALL: &[Entry] = &[
    entry!(
        "encode" [],
        "text, or bytes, format",
        ENCODE,
        encode_gives,
        "The bytes of a text in UTF-8; bytes as a text in hex, base64 or escape.",
        "encode('abc'::BYTEA, 'hex') = '616263'",
        encode
    ),
    entry!(
        "decode" [],
        "bytes, or text, format",
        DECODE,
        decode_gives,
        "The text that bytes in UTF-8 are; the bytes that a text in hex, base64 or escape is.",
        "decode('YWJj', 'base64')",
        decode
    ),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];
