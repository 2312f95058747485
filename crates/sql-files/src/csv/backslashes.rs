//! Backslashes of PostgreSQL's text format.

use std::borrow::Cow;

/// The meaning of a value that is written with backslashes.
pub fn unescaped(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'\\') {
        return Cow::Borrowed(value);
    }
    let mut plain = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let (b'\\', Some((escaped, after))) = (*first, after.split_first()) else {
            plain.push(*first);
            continue;
        };
        let (byte, digits) = match escaped {
            b'b' => (0x08, 0),
            b'f' => (0x0c, 0),
            b'n' => (b'\n', 0),
            b'r' => (b'\r', 0),
            b't' => (b'\t', 0),
            b'v' => (0x0b, 0),
            b'x' => number(after, 16, 2).unwrap_or((b'x', 0)),
            digit @ b'0'..=b'7' => {
                let (byte, digits) = number(rest, 8, 3).unwrap_or((*digit, 1));
                (byte, digits - 1)
            }
            other => (*other, 0),
        };
        plain.push(byte);
        rest = &after[digits..];
    }
    Cow::Owned(plain)
}

/// The byte that up to `most` digits name, and the number of digits; `None` without digits.
fn number(text: &[u8], base: u32, most: usize) -> Option<(u8, usize)> {
    let digit = |byte: &u8| char::from(*byte).to_digit(base);
    let digits: Vec<u32> = text.iter().take(most).map_while(digit).collect();
    let value = digits.iter().fold(0, |value, digit| value * base + digit);
    // As in PostgreSQL for octal numbers that are too large.
    (!digits.is_empty()).then_some(((value & 0xff) as u8, digits.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_match_postgresql() {
        for (written, meant) in [
            ("plain", "plain".as_bytes()),
            ("a\\tb\\nc\\\\d", b"a\tb\nc\\d"),
            ("\\b\\f\\r\\v", b"\x08\x0c\r\x0b"),
            ("\\101\\60\\7", b"A0\x07"),
            ("\\x41\\x4z\\xz", b"A\x04zxz"),
            ("\\777", b"\xff"),
            ("\\z\\.", b"z."),
            ("end\\", b"end\\"),
        ] {
            assert_eq!(unescaped(written.as_bytes()).as_ref(), meant, "{written}");
        }
    }
}
