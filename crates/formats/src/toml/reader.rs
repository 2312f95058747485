//! A parsed TOML document with positions: tables that reject unknown keys, and items whose accessors return a value of
//! the expected type or an error with file, line and expectation. Used for machine files and the settings of
//! `atoll serve`.

use std::time::{Duration, SystemTime};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::values;
use crate::{FormatError, TEXT_MAX};
use atoll_topology::{Bytes, IdSet, Source, nearest_name};

/// Maximum size of memory or of a cache, and maximum count: beyond any machine, and far below where sums overflow.
const NUMBER_MAX: u64 = 1 << 60;
/// Maximum length of a text, since texts are copied; model names and origins are shorter.
const ITEM_TEXT_MAX: usize = 1024;

/// Parses a document and reads its root table.
///
/// # Errors
/// If the text is not TOML or too long, or `read` fails.
pub fn read_document<T>(
    text: &str,
    file: &str,
    read: impl FnOnce(TomlTable<'_>) -> Result<T, FormatError>,
) -> Result<T, FormatError> {
    let document = TomlDocument { file, text };
    if text.len() > TEXT_MAX {
        let found = format!("{} bytes", text.len());
        return Err(document.fail(0, found, format!("at most {TEXT_MAX} bytes")));
    }
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let found = error.message().lines().collect::<Vec<_>>().join(", ");
        document.fail(at, found, "a TOML document")
    })?;
    read(TomlTable::top(document, &table))
}

/// The file's name and text, from which errors derive their line.
#[derive(Clone, Copy, Debug)]
pub struct TomlDocument<'a> {
    /// The file's name.
    pub file: &'a str,
    /// The full text.
    pub text: &'a str,
}

impl TomlDocument<'_> {
    /// An error at a byte of the text.
    pub fn fail(
        &self,
        at: usize,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> FormatError {
        FormatError {
            file: self.file.to_owned(),
            line: Some(self.line(at)),
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// The line of a byte of the text, from 1.
    fn line(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }
}

/// A table of the document.
#[derive(Clone, Copy, Debug)]
pub struct TomlTable<'a> {
    /// Its document.
    pub document: TomlDocument<'a>,
    /// Byte offset of its start.
    pub at: usize,
    /// Its name in messages, such as `[[node]]`.
    pub name: &'a str,
    entries: &'a DeTable<'a>,
}

impl<'a> TomlTable<'a> {
    /// The document's root table.
    fn top(document: TomlDocument<'a>, table: &'a Spanned<DeTable<'a>>) -> Self {
        Self { document, at: 0, name: "the file", entries: table.get_ref() }
    }

    /// The item of a key.
    pub fn get(&self, key: &'a str) -> Option<TomlItem<'a>> {
        let value = self.entries.get(key)?;
        Some(TomlItem { document: self.document, key, value })
    }

    /// The item of a key, or an error that describes the expected item.
    pub fn need(&self, key: &'a str, what: &str) -> Result<TomlItem<'a>, FormatError> {
        let missing = || self.fail(format!("{} has no '{key}'", self.name), what);
        self.get(key).ok_or_else(missing)
    }

    /// Rejects keys other than these.
    pub fn keys(&self, known: &[&str]) -> Result<(), FormatError> {
        let unknown = self.entries.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(()) };
        let found = format!("unknown key '{:.60}' in {}", key.get_ref(), self.name);
        let expected = match nearest_name(key.get_ref(), known.iter().copied()) {
            Some(near) => format!("'{near}', or another of {}", known.join(", ")),
            None => format!("one of {}", known.join(", ")),
        };
        Err(self.document.fail(key.span().start, found, expected))
    }

    /// An error at the table's start.
    pub fn fail(&self, found: impl Into<String>, expected: impl Into<String>) -> FormatError {
        self.document.fail(self.at, found, expected)
    }

    /// The line at which it starts, from 1.
    pub fn line(&self) -> usize {
        self.document.line(self.at)
    }

    /// The tables of a key, in order: none, one (`[key]`) or several (`[[key]]`).
    pub fn tables(&self, key: &'a str) -> Result<Vec<TomlTable<'a>>, FormatError> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(item) if matches!(item.value.get_ref(), DeValue::Table(_)) => {
                Ok(vec![item.table()?])
            }
            Some(item) => item.items("tables")?.map(TomlItem::table).collect(),
        }
    }
}

/// A value of the document and its key.
#[derive(Clone, Copy, Debug)]
pub struct TomlItem<'a> {
    document: TomlDocument<'a>,
    key: &'a str,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> TomlItem<'a> {
    /// An error about this value.
    pub fn wrong(&self, expected: impl Into<String>) -> FormatError {
        let found = format!("{} is {}", self.key, shown(self.value.get_ref()));
        self.document.fail(self.value.span().start, found, expected)
    }

    /// A text of limited length.
    pub fn text(self) -> Result<&'a str, FormatError> {
        match self.value.get_ref() {
            DeValue::String(text) if text.len() > ITEM_TEXT_MAX => {
                Err(self.wrong(format!("a text of at most {ITEM_TEXT_MAX} bytes")))
            }
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong("a text in quotes")),
        }
    }

    /// A text of any length, for short-lived use.
    pub fn prose(self) -> Result<&'a str, FormatError> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong("a text in quotes")),
        }
    }

    /// True or false.
    pub fn flag(self) -> Result<bool, FormatError> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// Whether it is a text.
    pub fn is_text(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::String(_))
    }

    /// Whether it is a table.
    pub fn is_table(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(_))
    }

    /// Whether it is a list whose first item is a list.
    pub fn is_nested(&self) -> bool {
        let DeValue::Array(list) = self.value.get_ref() else { return false };
        list.first().is_some_and(|first| matches!(first.get_ref(), DeValue::Array(_)))
    }

    /// A whole number from 0 to `max`.
    pub fn whole(self, max: u64) -> Result<u64, FormatError> {
        let number = match self.value.get_ref() {
            DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|&number| number <= max);
        number.ok_or_else(|| self.wrong(format!("a whole number from 0 to {max}")))
    }

    /// The same as a number of 32 bits.
    pub fn number(self, max: u32) -> Result<u32, FormatError> {
        self.whole(u64::from(max)).map(|number| number as u32)
    }

    /// A whole number from 0 to a limit that no machine reaches.
    pub fn count(self) -> Result<u64, FormatError> {
        self.whole(NUMBER_MAX)
    }

    /// A finite number of at least zero.
    pub fn figure(self) -> Result<f64, FormatError> {
        let digits = match self.value.get_ref() {
            DeValue::Float(digits) => digits.as_str(),
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str(),
            _ => return Err(self.wrong("a number")),
        };
        let number = digits.parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| self.wrong("a finite number, not below 0"))
    }

    /// A size, as a number of bytes or as text with a unit.
    pub fn size(self) -> Result<Bytes, FormatError> {
        let size = match self.value.get_ref() {
            DeValue::String(text) => values::size(text),
            DeValue::Integer(_) => self.count().ok().map(Bytes),
            _ => None,
        };
        let size = size.filter(|size| size.0 <= NUMBER_MAX);
        let expected =
            "a size such as \"24MiB\", \"32GiB\" or a number of bytes, at most \"1024PiB\"";
        size.ok_or_else(|| self.wrong(expected))
    }

    /// A set of numbers: one number, or text in list notation.
    pub fn set<T>(self) -> Result<IdSet<T>, FormatError>
    where
        T: From<u32> + Into<u32> + Copy,
    {
        if self.is_text() {
            return IdSet::parse(self.prose()?).map_err(|error| {
                self.wrong(format!("a list such as \"0-3,8\" ({})", error.reason))
            });
        }
        Ok([T::from(self.number(atoll_topology::SET_NUMBER_MAX)?)].into_iter().collect())
    }

    /// A source of facts, by its name.
    pub fn source(self) -> Result<Source, FormatError> {
        let names = || Source::ALL.map(Source::name).join(", ");
        let wrong = || self.wrong(format!("one of {}", names()));
        Source::named(self.text()?).ok_or_else(wrong)
    }

    /// A time: RFC 3339 without quotes, or seconds since 1970.
    pub fn time(self) -> Result<SystemTime, FormatError> {
        let time = match self.value.get_ref() {
            DeValue::Datetime(moment) => values::time(moment),
            DeValue::Integer(digits) => seconds(digits.as_str()),
            _ => None,
        };
        time.ok_or_else(|| self.wrong("a time such as 2026-11-21T23:30:00Z, or seconds since 1970"))
    }

    /// A table.
    pub fn table(self) -> Result<TomlTable<'a>, FormatError> {
        match self.value.get_ref() {
            DeValue::Table(entries) => Ok(TomlTable {
                document: self.document,
                at: self.value.span().start,
                name: self.key,
                entries,
            }),
            _ => Err(self.wrong("a table")),
        }
    }

    /// The items of a list.
    pub fn items(
        self,
        what: &str,
    ) -> Result<impl ExactSizeIterator<Item = TomlItem<'a>>, FormatError> {
        let Self { document, key, value } = self;
        match value.get_ref() {
            DeValue::Array(list) => {
                Ok(list.iter().map(move |value| TomlItem { document, key, value }))
            }
            _ => Err(self.wrong(format!("a list of {what}"))),
        }
    }
}

fn seconds(digits: &str) -> Option<SystemTime> {
    let seconds: i64 = digits.parse().ok()?;
    let distance = Duration::from_secs(seconds.unsigned_abs());
    match seconds < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(distance),
        false => SystemTime::UNIX_EPOCH.checked_add(distance),
    }
}

/// A value as a message shows it.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{:.60}\"", text.escape_debug().to_string()),
        DeValue::Integer(digits) => format!("{:.60}", digits.to_string()),
        DeValue::Float(digits) => format!("{:.60}", digits.as_str()),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
        DeValue::Array(list) => format!("a list of {}", list.len()),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
