//! Strings: lengths, parts, paths, characters by number.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::common::{Result, ScalarValue};

use crate::scalar::call::{Call, put};
use crate::scalar::entry::{Arguments, Entry, Takes, flag, text, texts, whole};

const TEXT: &[Arguments] = &[Arguments::Are(&[Takes::Text])];
const TWO_TEXTS: &[Arguments] = &[Arguments::Are(&[Takes::Text, Takes::Text])];

const TEXT_AND_WHOLE: &[Arguments] =
    &[Arguments::Are(&[Takes::Text, Takes::Whole]), Arguments::Are(&[Takes::Texts, Takes::Whole])];

/// Whether texts have at most so many characters; `counted` is the part of a text that counts.
fn of_length(call: &Call, counted: impl Fn(&str) -> &str) -> Result<ArrayRef> {
    let lengths = call.whole(1);
    let fits = |text: &str, length: i64| {
        let text = counted(text);
        text.len() as i64 <= length || text.chars().count() as i64 <= length
    };
    call.flags(|row| {
        let length = lengths.value(row);
        Ok(Some(match call.arrays[0].data_type() {
            DataType::List(_) => {
                let items = call.list(0).value(row);
                items.as_string::<i32>().iter().flatten().all(|text| fits(text, length))
            }
            _ => fits(call.text(0).value(row), length),
        }))
    })
}

fn length(call: &Call) -> Result<ArrayRef> {
    if let DataType::List(_) = call.arrays[0].data_type() {
        let lists = call.list(0);
        return call.wholes(|row| Ok(Some(i64::from(lists.value_length(row)))));
    }
    if let DataType::Map(..) = call.arrays[0].data_type() {
        let maps = call.arrays[0].as_map();
        return call.wholes(|row| Ok(Some(i64::from(maps.value_length(row)))));
    }
    if let DataType::Binary = call.arrays[0].data_type() {
        let values = call.bytes(0);
        return call.wholes(|row| Ok(Some(values.value(row).len() as i64)));
    }
    let texts = call.text(0);
    call.wholes(|row| Ok(Some(texts.value(row).chars().count() as i64)))
}

fn string_split(call: &Call) -> Result<ArrayRef> {
    let (texts, separators) = (call.text(0), call.text(1));
    call.text_lists(|row, out| {
        match separators.value(row) {
            "" if texts.value(row).is_empty() => out.values().append_value(""),
            "" => {
                texts.value(row).chars().for_each(|one| out.values().append_value(one.to_string()))
            }
            separator => {
                texts
                    .value(row)
                    .split(separator)
                    .for_each(|piece| out.values().append_value(piece));
            }
        }
        Ok(true)
    })
}

/// Strips the accent of a Latin letter; combining marks become nothing.
fn without_accent(letter: char) -> Option<char> {
    const PLAIN: &[(&str, char)] = &[
        ("ÀÁÂÃÄÅĀĂĄǍǞǠǺȀȂȦḀẠẢẤẦẨẪẬẮẰẲẴẶ", 'A'),
        ("ÇĆĈĊČḈ", 'C'),
        ("ĎḊḌḎḐḒ", 'D'),
        ("ÈÉÊËĒĔĖĘĚȄȆȨḔḖḘḚḜẸẺẼẾỀỂỄỆ", 'E'),
        ("ḞF", 'F'),
        ("ĜĞĠĢǦǴḠ", 'G'),
        ("ĤȞḢḤḦḨḪ", 'H'),
        ("ÌÍÎÏĨĪĬĮİǏȈȊḬḮỈỊ", 'I'),
        ("Ĵ", 'J'),
        ("ĶǨḰḲḴ", 'K'),
        ("ĹĻĽḶḸḺḼ", 'L'),
        ("ḾṀṂ", 'M'),
        ("ÑŃŅŇǸṄṆṈṊ", 'N'),
        ("ÒÓÔÕÖŌŎŐƠǑǪǬȌȎȪȬȮȰṌṎṐṒỌỎỐỒỔỖỘỚỜỞỠỢ", 'O'),
        ("ṔṖ", 'P'),
        ("ŔŖŘȐȒṘṚṜṞ", 'R'),
        ("ŚŜŞŠȘṠṢṤṦṨ", 'S'),
        ("ŢŤȚṪṬṮṰ", 'T'),
        ("ÙÚÛÜŨŪŬŮŰŲƯǓǕǗǙǛȔȖṲṴṶṸṺỤỦỨỪỬỮỰ", 'U'),
        ("ṼṾ", 'V'),
        ("ŴẀẂẄẆẈ", 'W'),
        ("ẊẌ", 'X'),
        ("ÝŶŸȲẎỲỴỶỸ", 'Y'),
        ("ŹŻŽẐẒẔ", 'Z'),
        ("àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ", 'a'),
        ("çćĉċčḉ", 'c'),
        ("ďḋḍḏḑḓ", 'd'),
        ("èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ", 'e'),
        ("ḟ", 'f'),
        ("ĝğġģǧǵḡ", 'g'),
        ("ĥȟḣḥḧḩḫẖ", 'h'),
        ("ìíîïĩīĭįǐȉȋḭḯỉị", 'i'),
        ("ĵǰ", 'j'),
        ("ķǩḱḳḵ", 'k'),
        ("ĺļľḷḹḻḽ", 'l'),
        ("ḿṁṃ", 'm'),
        ("ñńņňǹṅṇṉṋ", 'n'),
        ("òóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ", 'o'),
        ("ṕṗ", 'p'),
        ("ŕŗřȑȓṙṛṝṟ", 'r'),
        ("śŝşšșṡṣṥṧṩ", 's'),
        ("ţťțṫṭṯṱẗ", 't'),
        ("ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự", 'u'),
        ("ṽṿ", 'v'),
        ("ŵẁẃẅẇẉẘ", 'w'),
        ("ẋẍ", 'x'),
        ("ýÿŷȳẏẙỳỵỷỹ", 'y'),
        ("źżžẑẓẕ", 'z'),
    ];
    if letter.is_ascii() {
        return Some(letter);
    }
    if ('\u{300}'..='\u{36f}').contains(&letter) {
        return None;
    }
    let found = PLAIN.iter().find(|(letters, _)| letters.contains(letter));
    Some(found.map_or(letter, |(_, plain)| *plain))
}

fn strip_accents(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.texts(|row, out| {
        out.extend(texts.value(row).chars().filter_map(without_accent));
        Ok(true)
    })
}

fn first_code(call: &Call, empty: i32) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.plain::<Int32Type>(|row| {
        Ok(Some(texts.value(row).chars().next().map_or(empty, |first| first as i32)))
    })
}

fn code(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(DataType::Int32)
}

/// Sizes in steps of 1024 or 1000.
fn readable(call: &Call, step: u64, units: [&str; 6]) -> Result<ArrayRef> {
    let sizes = call.whole(0);
    call.texts(|row, out| {
        let (size, bytes) = (sizes.value(row), sizes.value(row).unsigned_abs());
        let sign = if size < 0 { "-" } else { "" };
        let unit = (1..=6_u32).rev().find(|&power| bytes >= step.pow(power));
        match unit {
            None if bytes == 1 => put(out, format_args!("{sign}1 byte"))?,
            None => put(out, format_args!("{sign}{bytes} bytes"))?,
            Some(power) => {
                // Truncated, not rounded, as in DuckDB.
                let tenths = u128::from(bytes) * 10 / u128::from(step.pow(power));
                let unit = units[power as usize - 1];
                put(out, format_args!("{sign}{}.{} {unit}", tenths / 10, tenths % 10))?;
            }
        }
        Ok(true)
    })
}

const BINARY_UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const DECIMAL_UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];

/// A bar of blocks, with a resolution of an eighth of a character.
fn bar(call: &Call) -> Result<ArrayRef> {
    const BLOCKS: [&str; 9] = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];
    call.texts(|row, out| {
        let value = |at: usize| call.double(at).value(row);
        let (x, min, max) = (value(0), value(1), value(2));
        let width = if call.count() > 3 { value(3) } else { 80.0 };
        if !x.is_finite() || !min.is_finite() || !max.is_finite() || min >= max {
            return call.fails("the bounds must be finite, the first one smaller than the second");
        }
        if !(1.0..=1000.0).contains(&width) {
            return call.fails("the width must be between 1 and 1000");
        }
        let share = ((x - min) / (max - min)).clamp(0.0, 1.0);
        let eighths = (share * width * 8.0) as usize;
        let (mut filled, rest) = (eighths / 8, eighths % 8);
        out.extend(std::iter::repeat_n(BLOCKS[8], filled));
        if rest > 0 {
            out.push_str(BLOCKS[rest]);
            filled += 1;
        }
        out.extend(std::iter::repeat_n(' ', (width as usize).saturating_sub(filled)));
        Ok(true)
    })
}

/// Returns the path separator, which the second or third argument selects.
fn separators(call: &Call, row: usize) -> (&[char], bool) {
    let last = call.count() - 1;
    let is_cut = (1..=last)
        .any(|at| call.arrays[at].data_type() == &DataType::Boolean && call.flag(at).value(row));
    let named = (1..=last)
        .find(|&at| call.arrays[at].data_type() == &DataType::Utf8)
        .map_or("both_slash", |at| call.text(at).value(row));
    let separators: &[char] = match named {
        "forward_slash" => &['/'],
        "backslash" => &['\\'],
        "system" => &[std::path::MAIN_SEPARATOR],
        _ => &['/', '\\'],
    };
    (separators, is_cut)
}

fn parse_filename(call: &Call) -> Result<ArrayRef> {
    let paths = call.text(0);
    call.texts(|row, out| {
        let (separators, is_cut) = separators(call, row);
        let name = paths.value(row).rsplit(separators).next().unwrap_or_default();
        let cut = name.rfind('.').filter(|&at| is_cut && at > 0);
        out.push_str(cut.map_or(name, |at| &name[..at]));
        Ok(true)
    })
}

fn parse_dirpath(call: &Call) -> Result<ArrayRef> {
    let paths = call.text(0);
    call.texts(|row, out| {
        let path = paths.value(row);
        match path.rfind(separators(call, row).0) {
            Some(0) => out.push_str(&path[..1]),
            Some(at) => out.push_str(&path[..at]),
            None => {}
        }
        Ok(true)
    })
}

fn parse_dirname(call: &Call) -> Result<ArrayRef> {
    let paths = call.text(0);
    call.texts(|row, out| {
        let path = paths.value(row);
        match path.find(separators(call, row).0) {
            Some(0) => out.push_str(&path[..1]),
            Some(at) => out.push_str(&path[..at]),
            None => {}
        }
        Ok(true)
    })
}

fn parse_path(call: &Call) -> Result<ArrayRef> {
    let paths = call.text(0);
    call.text_lists(|row, out| {
        let (path, separators) = (paths.value(row), separators(call, row).0);
        if path.starts_with(separators) {
            out.values().append_value(&path[..1]);
        }
        path.split(separators)
            .filter(|name| !name.is_empty())
            .for_each(|name| out.values().append_value(name));
        Ok(true)
    })
}

const PATHS: &[Arguments] = &[
    Arguments::Are(&[Takes::Text]),
    Arguments::Are(&[Takes::Text, Takes::Flag]),
    Arguments::Are(&[Takes::Text, Takes::Text]),
    Arguments::Are(&[Takes::Text, Takes::Flag, Takes::Text]),
];

fn like_escape(call: &Call, wanted: bool) -> Result<ArrayRef> {
    let (texts, patterns, escapes) = (call.text(0), call.text(1), call.text(2));
    call.flags(|row| {
        let mut chars = escapes.value(row).chars();
        let escape = chars.next();
        if chars.next().is_some() {
            return call.fails("an escape is one character");
        }
        let pattern: Vec<char> = patterns.value(row).chars().collect();
        let text: Vec<char> = texts.value(row).chars().collect();
        Ok(Some(is_like(&text, &pattern, escape) == wanted))
    })
}

/// Matches LIKE with backtracking to the last `%`.
fn is_like(text: &[char], pattern: &[char], escape: Option<char>) -> bool {
    let (mut at, mut place, mut back) = (0, 0, None);
    while at < text.len() {
        let (wanted, is_literal, next) = match pattern.get(place) {
            Some(one) if Some(*one) == escape => (pattern.get(place + 1), true, place + 2),
            other => (other, false, place + 1),
        };
        match wanted {
            Some('%') if !is_literal => {
                back = Some((next, at));
                place = next;
            }
            Some(one) if *one == text[at] || (*one == '_' && !is_literal) => {
                at += 1;
                place = next;
            }
            _ => match back {
                Some((after, from)) => {
                    back = Some((after, from + 1));
                    (place, at) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[place.min(pattern.len())..].iter().all(|one| *one == '%')
}

macro_rules! entry {
    ($name:literal $aliases:expr, $arguments:literal, $takes:expr, $gives:expr, $about:literal, $example:literal, $run:expr) => {
        Entry {
            name: $name,
            aliases: &$aliases,
            arguments: $arguments,
            about: $about,
            example: $example,
            takes: $takes,
            gives: $gives,
            volatile: false,
            run: $run,
        }
    };
}
pub(in crate::scalar) use entry;

const ALL: &[Entry] = &[
    entry!(
        "length"["len"],
        "text, bytes, list or map",
        &[
            Arguments::Are(&[Takes::Text]),
            Arguments::Are(&[Takes::List]),
            Arguments::Are(&[Takes::Map]),
            Arguments::Are(&[Takes::Bytes])
        ],
        whole,
        "How many characters a text has, bytes a BLOB, elements a list, entries a map.",
        "length('äö') = 2",
        length
    ),
    entry!("strlen" [], "text", TEXT, whole, "How many bytes a text has.", "strlen('äö') = 4", |call| {
        let texts = call.text(0);
        call.wholes(|row| Ok(Some(texts.value(row).len() as i64)))
    }),
    entry!("string_split" ["split", "str_split"], "text, separator", TWO_TEXTS, texts,
        "The pieces of a text between separators; its characters where the separator is empty.",
        "string_split('a,b', ',') = ['a', 'b']", string_split),
    entry!("varchar_valid" [], "text, length", TEXT_AND_WHOLE, flag,
        "Whether a text, or each one of a list, has at most so many characters.",
        "varchar_valid('abc', 3)", |call| of_length(call, |text| text)),
    entry!("char_valid" [], "text, length", TEXT_AND_WHOLE, flag,
        "Whether a text, or each one of a list, has at most so many characters besides spaces at its end.",
        "char_valid('ab  ', 3)", |call| of_length(call, |text| text.trim_end_matches(' '))),
    entry!("suffix" [], "text, end", TWO_TEXTS, flag, "Whether a text ends with another.",
        "suffix('abc', 'bc')", |call| {
        let (texts, ends) = (call.text(0), call.text(1));
        call.flags(|row| Ok(Some(texts.value(row).ends_with(ends.value(row)))))
    }),
    entry!("strip_accents" [], "text", TEXT, text, "Letters of Latin scripts without their accents.",
        "strip_accents('mühleisen') = 'muhleisen'", strip_accents),
    entry!(
        "unicode"["ord"],
        "text",
        TEXT,
        code,
        "The code point of the first character; -1 for an empty text.",
        "unicode('ü') = 252",
        |call| first_code(call, -1)
    ),
    entry!("format_bytes" ["formatreadablesize", "pg_size_pretty"], "bytes",
        &[Arguments::Are(&[Takes::Whole])], text, "A number of bytes in KiB, MiB and so on.",
        "format_bytes(16000) = '15.6 KiB'", |call| readable(call, 1024, BINARY_UNITS)),
    entry!("formatreadabledecimalsize" [], "bytes", &[Arguments::Are(&[Takes::Whole])], text,
        "A number of bytes in kB, MB and so on.", "formatReadableDecimalSize(16000) = '16.0 kB'",
        |call| readable(call, 1000, DECIMAL_UNITS)),
    entry!("bar" [], "x, min, max[, width]",
        &[Arguments::Are(&[Takes::Double, Takes::Double, Takes::Double]),
          Arguments::Are(&[Takes::Double, Takes::Double, Takes::Double, Takes::Double])],
        text, "A bar whose length is the place of x between min and max.", "bar(5, 0, 10, 10)", bar),
    entry!("parse_filename" [], "path[, without extension][, separator]", PATHS, text,
        "The last name of a path.", "parse_filename('/a/b.txt', true) = 'b'", parse_filename),
    entry!("parse_dirpath" [], "path[, separator]", PATHS, text, "A path without its last name.",
        "parse_dirpath('/a/b/c.txt') = '/a/b'", parse_dirpath),
    entry!("parse_dirname" [], "path[, separator]", PATHS, text, "The first name of a path.",
        "parse_dirname('a/b/c.txt') = 'a'", parse_dirname),
    entry!("parse_path" [], "path[, separator]", PATHS, texts, "The names of a path.",
        "parse_path('/a/b.txt') = ['/', 'a', 'b.txt']", parse_path),
    entry!("like_escape" [], "text, pattern, escape", &[Arguments::Are(&[Takes::Text, Takes::Text, Takes::Text])],
        flag, "Whether a text is like a pattern in which a character escapes % and _.",
        "like_escape('a%c', 'a$%c', '$')", |call| like_escape(call, true)),
    entry!("not_like_escape" [], "text, pattern, escape", &[Arguments::Are(&[Takes::Text, Takes::Text, Takes::Text])],
        flag, "Whether a text is not like a pattern in which a character escapes % and _.",
        "not_like_escape('abc', 'a$%c', '$')", |call| like_escape(call, false)),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];
