//! `strftime`: dates and timestamps to text.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;

use crate::scalar::call::{Call, put};
use crate::scalar::entry::{Arguments, Entry, Takes, text};
use crate::temporal::civil::{
    Civil, MICROS_OF_HOUR, MICROS_OF_MINUTE, MICROS_OF_SECOND, MONTHS, WEEKDAYS, iso_weekday,
    split, weekday,
};

/// A part of a format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::scalar) enum Piece<'a> {
    /// Literal text.
    Literal(&'a str),
    /// A specifier, and whether its numbers have no leading zeros.
    Specifier(char, bool),
}

/// Parses a format; the error is the unknown specifier.
pub(in crate::scalar) fn pieces(format: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        if at > 0 {
            pieces.push(Piece::Literal(&rest[..at]));
        }
        let after = &rest[at + 1..];
        let (bare, after) = match after.strip_prefix('-') {
            Some(after) => (true, after),
            None => (false, after),
        };
        let Some(letter) = after.chars().next() else {
            return Err("a single % at the end of a format".to_owned());
        };
        let known = match bare {
            true => "dmyHIMSj",
            false => "aAwudbBmyYHIMSfgGVnpzZjUWcxX%",
        };
        if !known.contains(letter) {
            let dash = if bare { "-" } else { "" };
            return Err(format!("unknown specifier %{dash}{letter}"));
        }
        match letter {
            '%' => pieces.push(Piece::Literal("%")),
            'c' => extend(&mut pieces, "Y-m-d H:M:S"),
            'x' => extend(&mut pieces, "Y-m-d"),
            'X' => extend(&mut pieces, "H:M:S"),
            letter => pieces.push(Piece::Specifier(letter, bare)),
        }
        rest = &after[letter.len_utf8()..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest));
    }
    Ok(pieces)
}

/// Specifiers and the text between them.
fn extend(pieces: &mut Vec<Piece<'_>>, letters: &'static str) {
    for (at, letter) in letters.char_indices() {
        pieces.push(match letter.is_ascii_alphabetic() {
            true => Piece::Specifier(letter, false),
            false => Piece::Literal(&letters[at..=at]),
        });
    }
}

/// Writes a timestamp by the parts of a format.
fn write(pieces: &[Piece<'_>], micros: i64, zone: Option<&str>, out: &mut String) -> Result<()> {
    let (days, of_day) = split(micros);
    let civil = Civil::of_days(days);
    let (hour, minute) = (of_day / MICROS_OF_HOUR, of_day % MICROS_OF_HOUR / MICROS_OF_MINUTE);
    let micro = of_day % MICROS_OF_SECOND;
    for piece in pieces {
        let (letter, bare) = match *piece {
            Piece::Literal(text) => {
                out.push_str(text);
                continue;
            }
            Piece::Specifier(letter, bare) => (letter, bare),
        };
        let mut number = |value: i64, width: usize| {
            let width = if bare { 0 } else { width };
            put(out, format_args!("{value:0width$}"))
        };
        let name = |names: &[&'static str], at: i64| names[at as usize];
        match letter {
            'd' => number(civil.day, 2)?,
            'm' => number(civil.month, 2)?,
            'y' => number(civil.year.rem_euclid(100), 2)?,
            'Y' if civil.year < 0 => put(out, format_args!("{}", civil.year))?,
            'Y' => number(civil.year, 4)?,
            'H' => number(hour, 2)?,
            'I' => number((hour + 11) % 12 + 1, 2)?,
            'M' => number(minute, 2)?,
            'S' => number(of_day % MICROS_OF_MINUTE / MICROS_OF_SECOND, 2)?,
            'j' => number(civil.day_of_year(), 3)?,
            'f' => number(micro, 6)?,
            'g' => number(micro / 1000, 3)?,
            'n' => number(micro * 1000, 9)?,
            'G' => number(civil.iso_week().0, 4)?,
            'V' => number(civil.iso_week().1, 2)?,
            'u' => number(iso_weekday(days), 1)?,
            'w' => number(weekday(days), 1)?,
            'U' => number((civil.day_of_year() + 6 - weekday(days)) / 7, 2)?,
            'W' => number((civil.day_of_year() + 6 - (weekday(days) + 6) % 7) / 7, 2)?,
            'a' => out.push_str(&name(&WEEKDAYS, weekday(days))[..3]),
            'A' => out.push_str(name(&WEEKDAYS, weekday(days))),
            'b' => out.push_str(&name(&MONTHS, civil.month - 1)[..3]),
            'B' => out.push_str(name(&MONTHS, civil.month - 1)),
            'p' => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            'z' => out.push_str("+00"),
            _ => out.push_str(zone.unwrap_or_default()),
        }
    }
    Ok(())
}

fn strftime(call: &Call) -> Result<ArrayRef> {
    // The format may come first.
    let (moment, format) = match call.arrays[0].data_type() {
        DataType::Utf8 => (1, 0),
        _ => (0, 1),
    };
    let (moments, formats) = (call.moments(moment)?, call.text(format));
    let zone = match call.arrays[moment].data_type() {
        DataType::Timestamp(_, zone) => zone.as_deref(),
        _ => None,
    };
    let parse = |format| pieces(format).or_else(|why| call.fails(why));
    let constant =
        match call.rows > 0 && formats.iter().all(|one| one == formats.iter().next().flatten()) {
            true if !call.is_null(0) => Some(parse(formats.value(0))?),
            _ => None,
        };
    call.texts(|row, out| {
        let own;
        let pieces = match &constant {
            Some(pieces) => pieces,
            None => {
                own = parse(formats.value(row))?;
                &own
            }
        };
        match moments.at(row) {
            Ok(micros) => write(pieces, micros, zone, out)?,
            // As in DuckDB, regardless of the format.
            Err(endless) => out.push_str(endless.word()),
        }
        Ok(true)
    })
}

const ONLY: &[Entry] = &[Entry {
    name: "strftime",
    aliases: &[],
    arguments: "moment, format",
    about: "A date or timestamp as text, by a format with specifiers such as %Y-%m-%d %H:%M:%S.",
    example: "strftime(DATE '2024-03-05', '%d.%m.%Y') = '05.03.2024'",
    takes: &[
        Arguments::Are(&[Takes::DateOrTimestampOnly, Takes::Text]),
        Arguments::Are(&[Takes::Text, Takes::DateOrTimestampOnly]),
    ],
    gives: text,
    volatile: false,
    run: strftime,
}];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ONLY];
