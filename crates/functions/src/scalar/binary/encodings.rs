//! Text encodings, Unicode normalization, and Unicode escapes: `convert_from`,
//! `convert_to`, `normalize`, `unistr`.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;

use unicode_normalization::UnicodeNormalization;

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, bytes, text};
use crate::scalar::text::texts::entry;
use crate::text_forms::TextEncoding;

const NORMALIZE: &[Arguments] =
    &[Arguments::Are(&[Takes::Text]), Arguments::Are(&[Takes::Text, Takes::Text])];

fn encoding(call: &Call, row: usize, what: &str) -> Result<TextEncoding> {
    let name = call.text(1).value(row);
    match TextEncoding::named(name) {
        Some(encoding) => Ok(encoding),
        None => call.fails_as(
            "22023",
            format_args!(
                "invalid {what} encoding name \"{name}\"; expected a name such as UTF8 or LATIN1"
            ),
        ),
    }
}

fn convert_from(call: &Call) -> Result<ArrayRef> {
    let values = call.bytes(0);
    call.texts(|row, out| {
        let (value, encoding) = (values.value(row), encoding(call, row, "source")?);
        if value.contains(&0) {
            return call.fails_as("22021", "invalid byte sequence for encoding \"UTF8\": 0x00");
        }
        match encoding.decoded(value) {
            Ok(text) => out.push_str(&text),
            Err(error) => return call.fails_as(error.state, error.message),
        }
        Ok(true)
    })
}

fn convert_to(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.binaries(|row, out| {
        match encoding(call, row, "destination")?.encoded(texts.value(row)) {
            Ok(bytes) => out.extend_from_slice(&bytes),
            Err(error) => return call.fails_as(error.state, error.message),
        }
        Ok(true)
    })
}

/// Replaces `\0061`, `\+000061`, `\u0061` and `\U00000061` by characters, and `\\` by a backslash.
fn unescaped(text: &str, out: &mut String) -> Result<(), String> {
    let mut rest = text;
    let mut high = None;
    while let Some(at) = rest.find('\\') {
        if high.is_some() && at > 0 {
            return Err("unpaired surrogate".to_owned());
        }
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        if let Some(after) = behind.strip_prefix('\\') {
            if high.is_some() {
                return Err("unpaired surrogate".to_owned());
            }
            out.push('\\');
            rest = after;
            continue;
        }
        let (skipped, digits) = match behind.chars().next() {
            Some('+') => (1, 6),
            Some('u') => (1, 4),
            Some('U') => (1, 8),
            _ => (0, 4),
        };
        let code = behind
            .get(skipped..skipped + digits)
            .filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        let Some(code) = code else {
            return Err(
                "a backslash stands before another, or \\XXXX, \\+XXXXXX, \\uXXXX, \\UXXXXXXXX"
                    .to_owned(),
            );
        };
        rest = &behind[skipped + digits..];
        match (high.take(), code) {
            (None, 0xd800..=0xdbff) => high = Some(code),
            (Some(high), 0xdc00..=0xdfff) => {
                let code = 0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00);
                out.extend(char::from_u32(code));
            }
            (None, code) if code > 0 => match char::from_u32(code) {
                Some(letter) => out.push(letter),
                None => return Err(format!("{code:X} is not a code point")),
            },
            (None, _) => return Err("the code point must not be 0".to_owned()),
            (Some(_), _) => return Err("unpaired surrogate".to_owned()),
        }
    }
    match high {
        Some(_) => Err("unpaired surrogate".to_owned()),
        None => {
            out.push_str(rest);
            Ok(())
        }
    }
}

fn unistr(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.texts(|row, out| match unescaped(texts.value(row), out) {
        Ok(()) => Ok(true),
        Err(why) => call.fails_as("42601", format_args!("invalid Unicode escape: {why}")),
    })
}

fn normalize(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.texts(|row, out| {
        let text = texts.value(row);
        match if call.count() > 1 { call.text(1).value(row) } else { "NFC" } {
            "NFC" => out.extend(text.nfc()),
            "NFD" => out.extend(text.nfd()),
            "NFKC" => out.extend(text.nfkc()),
            "NFKD" => out.extend(text.nfkd()),
            other => {
                return call.fails_as(
                    "22023",
                    format_args!(
                        "invalid normalization form '{other}'; expected NFC, NFD, NFKC or NFKD"
                    ),
                );
            }
        }
        Ok(true)
    })
}

const ALL: &[Entry] = &[
    entry!("convert_from" [], "bytes, encoding", &[Arguments::Are(&[Takes::Bytes, Takes::Text])], text,
        "The text that bytes in an encoding are, such as UTF8, LATIN1, WIN1252 or SJIS.",
        "convert_from('\\x6dfc'::BYTEA, 'LATIN1') = 'mü'", convert_from),
    entry!("convert_to" [], "text, encoding", &[Arguments::Are(&[Takes::Text, Takes::Text])], bytes,
        "A text as bytes in an encoding, such as UTF8, LATIN1, WIN1252 or SJIS.",
        "convert_to('mü', 'LATIN1')", convert_to),
    entry!(
        "normalize"["nfc_normalize"],
        "text[, form]",
        NORMALIZE,
        text,
        "A text in a form of Unicode: NFC, unless another is named, NFD, NFKC or NFKD. `text IS NFC NORMALIZED` asks for it.",
        "normalize('\u{fb01}', NFKC) = 'fi'",
        normalize
    ),
    entry!("unistr" [], "text", &[Arguments::Are(&[Takes::Text])], text,
        "A text in which characters are written by their numbers: \\XXXX, \\+XXXXXX, \\uXXXX or \\UXXXXXXXX.",
        "unistr('d\\0061t\\+000061') = 'data'", unistr),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];

#[cfg(test)]
mod tests {
    use super::unescaped;

    fn read(text: &str) -> Result<String, String> {
        let mut out = String::new();
        unescaped(text, &mut out).map(|()| out)
    }

    #[test]
    fn characters_are_written_by_their_numbers() {
        assert_eq!(read(r"d\0061t\+000061 \u00fc\U0001F600 \\").as_deref(), Ok("data ü😀 \\"));
        assert_eq!(read(r"\D83D\DE00").as_deref(), Ok("😀"));
        for bad in [
            r"\",
            r"\00",
            r"\wxyz",
            r"\D83D",
            r"\D83Dx\DE00",
            r"\D83D\\",
            r"\DE00",
            r"\0000",
            r"\äbc",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
