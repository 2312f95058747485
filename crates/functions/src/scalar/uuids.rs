//! UUIDs, which are texts of 36 characters.

use std::fmt::Write;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;

use super::call::Call;
use super::entry::{Arguments, Entry, Takes, flag, text};
use super::texts::entry;

/// A UUID in its canonical form: small digits in groups of 8, 4, 4, 4 and 12.
fn canonical(given: &str) -> Option<String> {
    let inside = given.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(given);
    let digits: String = inside.chars().filter(|one| *one != '-').collect();
    let hyphens = inside.len() - digits.len();
    let is_uuid = digits.len() == 32
        && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        && (hyphens == 0
            || [8, 13, 18, 23].iter().all(|&at| inside.as_bytes().get(at) == Some(&b'-')))
        && matches!(hyphens, 0 | 4);
    is_uuid.then(|| grouped(&digits.to_ascii_lowercase()))
}

fn grouped(digits: &str) -> String {
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

fn checked(call: &Call, is_tried: bool) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.texts(|row, out| match canonical(texts.value(row)) {
        Some(uuid) => {
            out.push_str(&uuid);
            Ok(true)
        }
        None if is_tried => Ok(false),
        None => call.fails(format_args!("'{}' is not a UUID", texts.value(row))),
    })
}

/// UUIDs of version 7, whose first digits are the time.
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

pub(super) static ENTRIES: &[&[Entry]] = &[&[
    entry!("uuid_checked" [], "text", ONE, text, "A UUID in its canonical form; the cast to UUID.",
        "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::UUID = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        |call| checked(call, false)),
    entry!("try_uuid_checked" [], "text", ONE, text, "The same, NULL of what is not one; TRY_CAST to UUID.",
        "TRY_CAST('x' AS UUID) IS NULL", |call| checked(call, true)),
    entry!("uuid_valid" [], "text", ONE, flag, "Whether a text is a UUID in its canonical form.",
        "uuid_valid('x') = false", |call| {
        let texts = call.text(0);
        call.flags(|row| {
            let given = texts.value(row);
            Ok(Some(canonical(given).is_some_and(|uuid| uuid == given)))
        })
    }),
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
