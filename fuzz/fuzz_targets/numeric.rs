//! A NUMERIC in binary form, as a client sends it: what is read is written so that it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use numeric::{numeric_text, write_numeric};

// The server itself would bring the SQL engine with it.
#[path = "../../crates/server/src/value/numeric.rs"]
mod numeric;

/// Sign, digits without zeros before them, and places behind the point.
fn parts(text: &str) -> (bool, String, usize) {
    let (is_negative, digits) =
        text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let places = digits.split_once('.').map_or(0, |(_, places)| places.len());
    let digits = digits.replace('.', "").trim_start_matches('0').to_owned();
    assert!(digits.bytes().all(|digit| digit.is_ascii_digit()), "{text}");
    (is_negative && !digits.is_empty(), digits, places)
}

fuzz_target!(|bytes: &[u8]| {
    let Some(text) = numeric_text(bytes) else { return };
    let (is_negative, digits, places) = parts(&text);
    let Ok(scale) = i8::try_from(places) else { return };
    let mut written = Vec::new();
    write_numeric(is_negative, &digits, scale, &mut written);
    let again = numeric_text(&written).expect("what was written");
    assert_eq!(parts(&again), (is_negative, digits, places));
});
