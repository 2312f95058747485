//! Bytes as text and back: base64, hexadecimal, binary, URLs.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type};
use datafusion::common::Result;

use crate::scalar::call::{Call, put};
use crate::scalar::entry::{Arguments, Entry, Takes, bytes, text, whole};
use crate::scalar::text::texts::entry;

const TEXT: &[Arguments] = &[Arguments::Are(&[Takes::Text])];
const BYTES: &[Arguments] = &[Arguments::Are(&[Takes::Bytes])];
const BYTES_OR_WHOLE: &[Arguments] =
    &[Arguments::Are(&[Takes::Bytes]), Arguments::Are(&[Takes::Integer])];

const DIGITS64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes bytes in base64.
pub(in crate::scalar) fn put_base64(bytes: &[u8], out: &mut String) {
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS64[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
}

/// Decodes base64.
pub(in crate::scalar) fn read_base64(call: &Call, text: &str, out: &mut Vec<u8>) -> Result<()> {
    if !text.len().is_multiple_of(4) {
        return call.fails(format_args!("the length of '{text}' is not a multiple of 4"));
    }
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return call.fails(format_args!("'{text}' ends in more than two '='"));
    }
    let (mut bits, mut count) = (0_u32, 0);
    for byte in digits.bytes() {
        let Some(value) = DIGITS64.iter().position(|digit| *digit == byte) else {
            return call.fails(format_args!("'{}' is not a digit of base64", char::from(byte)));
        };
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Ok(())
}

fn to_base64(call: &Call) -> Result<ArrayRef> {
    let values = call.bytes(0);
    call.texts(|row, out| {
        put_base64(values.value(row), out);
        Ok(true)
    })
}

fn from_base64(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.binaries(|row, out| read_base64(call, texts.value(row), out).map(|()| true))
}

/// Writes the digits of a number, or of all bytes.
fn based(call: &Call, digit: fn(u8) -> String, number: fn(i128) -> String) -> Result<ArrayRef> {
    if call.arrays[0].data_type().is_integer() {
        let numbers = cast(&call.arrays[0], &DataType::Decimal128(38, 0))?;
        let numbers = numbers.as_primitive::<Decimal128Type>();
        return call.texts(|row, out| {
            let value = numbers.value(row);
            // A negative number is written as its 64 bits.
            let value = if value < 0 { i128::from(value as i64 as u64) } else { value };
            out.push_str(&number(value));
            Ok(true)
        });
    }
    let values = call.bytes(0);
    call.texts(|row, out| {
        values.value(row).iter().for_each(|byte| out.push_str(&digit(*byte)));
        Ok(true)
    })
}

fn hex(call: &Call) -> Result<ArrayRef> {
    based(call, |byte| format!("{byte:02X}"), |value| format!("{value:X}"))
}

fn bin(call: &Call) -> Result<ArrayRef> {
    based(call, |byte| format!("{byte:08b}"), |value| format!("{value:b}"))
}

/// Parses digits of a base, a fixed number per byte.
fn undigits(call: &Call, base: u32, each: usize) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.binaries(|row, out| {
        let text = texts.value(row);
        if let Some(wrong) = text.chars().find(|one| !one.is_digit(base)) {
            return call.fails(format_args!("'{wrong}' is not a digit of base {base}"));
        }
        // The first byte may have fewer digits.
        let (first, rest) = text.split_at(text.len() % each);
        let pieces = std::iter::once(first.as_bytes()).chain(rest.as_bytes().chunks(each));
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            let digit = |byte: &u8| char::from(*byte).to_digit(base).unwrap_or(0);
            out.push(piece.iter().fold(0, |value, byte| value * base + digit(byte)) as u8);
        }
        Ok(true)
    })
}

fn url_encode(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.texts(|row, out| {
        for byte in texts.value(row).bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    out.push(char::from(byte));
                }
                _ => put(out, format_args!("%{byte:02X}"))?,
            }
        }
        Ok(true)
    })
}

fn url_decode(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.texts(|row, out| {
        let bytes = texts.value(row).as_bytes();
        let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
        while let Some(byte) = bytes.get(at) {
            let pair = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%');
            let value = pair.and_then(|pair| {
                let digits = std::str::from_utf8(pair).ok()?;
                digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
                u8::from_str_radix(digits, 16).ok()
            });
            decoded.push(value.unwrap_or(*byte));
            at += if value.is_some() { 3 } else { 1 };
        }
        match std::str::from_utf8(&decoded) {
            Ok(text) => out.push_str(text),
            Err(_) => return call.fails("the bytes are not UTF-8"),
        }
        Ok(true)
    })
}

const ALL: &[Entry] = &[
    entry!(
        "to_base64"["base64"],
        "bytes",
        BYTES,
        text,
        "Bytes in base64.",
        "to_base64('abc') = 'YWJj'",
        to_base64
    ),
    entry!("from_base64" [], "text", TEXT, bytes, "The bytes that a text in base64 is.",
        "from_base64('YWJj')", from_base64),
    entry!(
        "hex"["to_hex"],
        "bytes or integer",
        BYTES_OR_WHOLE,
        text,
        "Hexadecimal digits.",
        "hex(255) = 'FF'",
        hex
    ),
    entry!(
        "unhex"["from_hex"],
        "text",
        TEXT,
        bytes,
        "The bytes that hexadecimal digits are.",
        "unhex('616263')",
        |call| undigits(call, 16, 2)
    ),
    entry!(
        "bin"["to_binary"],
        "bytes or integer",
        BYTES_OR_WHOLE,
        text,
        "Binary digits.",
        "bin(5) = '101'",
        bin
    ),
    entry!(
        "unbin"["from_binary"],
        "text",
        TEXT,
        bytes,
        "The bytes that binary digits are.",
        "unbin('01100001')",
        |call| undigits(call, 2, 8)
    ),
    entry!("octet_length" [], "text or bytes", BYTES, whole, "How many bytes a text or a BLOB has.",
    "octet_length('äö') = 4", |call| {
        let values = call.bytes(0);
        call.wholes(|row| Ok(Some(values.value(row).len() as i64)))
    }),
    entry!("url_encode" [], "text", TEXT, text, "A text as a part of a URL.",
        "url_encode('a b') = 'a%20b'", url_encode),
    entry!("url_decode" [], "text", TEXT, text, "The text that a part of a URL is.",
        "url_decode('a%20b') = 'a b'", url_decode),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];
