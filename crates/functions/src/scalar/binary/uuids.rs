//! UUIDs, which are texts of 36 characters.

use std::fmt::Write;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, flag, text};
use crate::scalar::text::texts::entry;

/// Positions of the hyphens in the canonical form.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Whether a text is a canonical UUID: lower-case digits in groups of 8, 4, 4, 4 and 12.
pub fn is_canonical_uuid(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match HYPHENS.contains(&at) {
        true => byte == b'-',
        false => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// Canonicalizes a UUID. As in PostgreSQL it may have braces, and a hyphen after any four digits.
pub fn canonical_uuid(given: &str) -> Option<String> {
    let given = given.trim();
    let inside = given.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(given);
    let mut digits = String::with_capacity(32);
    let mut before = None;
    for one in inside.chars() {
        match one {
            '-' if before != Some('-') && !digits.is_empty() && digits.len().is_multiple_of(4) => {}
            digit if digit.is_ascii_hexdigit() => digits.push(digit.to_ascii_lowercase()),
            _ => return None,
        }
        before = Some(one);
    }
    (digits.len() == 32 && before != Some('-')).then(|| grouped(&digits))
}

fn grouped(digits: &str) -> String {
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

fn checked(call: &Call, is_tried: bool) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.texts(|row, out| match canonical_uuid(texts.value(row)) {
        Some(uuid) => {
            out.push_str(&uuid);
            Ok(true)
        }
        None if is_tried => Ok(false),
        None => call.fails_as("22P02", format_args!("'{}' is not a UUID", texts.value(row))),
    })
}

/// UUIDs of version 7, which begin with the time.
fn uuidv7(call: &Call) -> Result<ArrayRef> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = now.map_or(0, |now| now.as_millis() as u64);
    call.texts(|_, out| {
        let mut random = [0_u8; 10];
        if let Err(error) = getrandom::fill(&mut random) {
            return call.fails(error);
        }
        let mut digits = format!("{millis:012x}");
        random[0] = random[0] & 0x0f | 0x70;
        random[2] = random[2] & 0x3f | 0x80;
        for byte in random {
            let _written = write!(digits, "{byte:02x}");
        }
        out.push_str(&grouped(&digits));
        Ok(true)
    })
}

const ONE: &[Arguments] = &[Arguments::Are(&[Takes::Text])];
const ONE_OR_LIST: &[Arguments] =
    &[Arguments::Are(&[Takes::Text]), Arguments::Are(&[Takes::Texts])];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[
    entry!("uuid_checked" [], "text", ONE, text, "A UUID in its canonical form; the cast to UUID.",
        "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::UUID = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        |call| checked(call, false)),
    entry!("try_uuid_checked" [], "text", ONE, text, "The same, but NULL for an invalid UUID; TRY_CAST to UUID.",
        "TRY_CAST('x' AS UUID) IS NULL", |call| checked(call, true)),
    entry!("uuid_valid" [], "text", ONE_OR_LIST, flag,
        "Whether a text is a UUID in its canonical form, or all texts of a list are.",
        "uuid_valid('x') = false", |call| call.all_pass(is_canonical_uuid)),
    Entry {
        name: "uuidv7",
        aliases: &[],
        arguments: "",
        about: "A new UUID of version 7, which begins with the time.",
        example: "uuidv7()",
        takes: &[Arguments::Are(&[])],
        gives: text,
        volatile: true,
        run: uuidv7,
    },
]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_come_in_the_forms_that_postgresql_takes() {
        let canonical = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        assert!(is_canonical_uuid(canonical));
        for given in [
            canonical,
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        ] {
            assert_eq!(canonical_uuid(given).as_deref(), Some(canonical), "{given}");
            assert_eq!(is_canonical_uuid(given), given == canonical, "{given}");
        }
        for bad in [
            "",
            "x",
            "a0eebc999c0b4ef8bb6d6bb9bd380a1",
            "a0eebc999c0b4ef8bb6d6bb9bd380a111",
            "a0e-ebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee--bc999c0b4ef8bb6d6bb9bd380a11",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11-",
            "-a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a11",
        ] {
            assert_eq!(canonical_uuid(bad), None, "{bad}");
        }
    }
}
