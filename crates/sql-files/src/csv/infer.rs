//! The columns of a file: names from a header, if there is one, and types that all rows of the sample have.

use std::collections::HashSet;

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, TimeUnit};

use super::options::{CsvSettings, Header};
use super::records::CsvRecord;
use super::times;

/// Forms of dates, in the order in which they are tried; `-` matches `-`, `/`, `.` and a space.
const DATES: [&str; 6] = ["%Y-%m-%d", "%m-%d-%Y", "%m-%d-%y", "%d-%m-%Y", "%d-%m-%y", "%y-%m-%d"];
const SEPARATORS: [&str; 4] = ["-", "/", ".", " "];
const TIMES: [&str; 6] =
    [" %H:%M:%S", "T%H:%M:%S", " %H:%M", " %H:%M:%S.%f", " %I:%M:%S %p", " %I:%M %p"];

/// The type that a column of a file is read as.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CsvColumn {
    pub(super) data_type: DataType,
    /// The form of its dates and times, if not SQL's.
    pub(super) format: Option<String>,
    /// Whether it refuses numbers with a point; a DECIMAL that a statement names rounds them.
    pub(super) is_whole: bool,
}

impl CsvColumn {
    pub(super) fn text() -> Self {
        Self::new(DataType::Utf8)
    }

    pub(super) fn new(data_type: DataType) -> Self {
        Self { data_type, format: None, is_whole: false }
    }

    /// A column of whole numbers of which some are beyond BIGINT.
    fn of_wide_numbers() -> Self {
        Self { is_whole: true, ..Self::new(DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0)) }
    }

    fn is_text(&self) -> bool {
        self.data_type == DataType::Utf8
    }
}

/// The types that fit all values of a column seen so far.
#[derive(Clone, Debug)]
pub(super) struct TypeCandidates {
    seen: bool,
    boolean: bool,
    integer: bool,
    /// Whole numbers of any size.
    wide: bool,
    double: bool,
    time: bool,
    /// Forms of dates that are left, and of timestamps.
    dates: Vec<Option<String>>,
    timestamps: Vec<Option<String>>,
    with_zone: bool,
    /// Types that the column may have.
    allowed: Vec<&'static str>,
}

impl TypeCandidates {
    pub(super) fn new(settings: &CsvSettings) -> Self {
        let dates = match &settings.date_format {
            Some(format) => vec![Some(format.clone())],
            None => date_formats(),
        };
        let timestamps = match (&settings.timestamp_format, &settings.date_format) {
            (Some(format), _) => vec![Some(format.clone())],
            (None, _) => vec![None],
        };
        Self {
            seen: false,
            boolean: true,
            integer: true,
            wide: true,
            double: true,
            time: true,
            dates,
            timestamps,
            with_zone: false,
            allowed: settings.candidates.clone(),
        }
    }

    /// Notes a value that is not NULL.
    pub(super) fn see(&mut self, value: &str, settings: &CsvSettings) {
        if !std::mem::replace(&mut self.seen, true) && settings.timestamp_format.is_none() {
            self.timestamps = timestamp_formats(value);
        }
        self.boolean = self.boolean && is_boolean(value);
        if self.wide || self.double {
            let number = plain_number(value, settings);
            let padded = is_padded(&number);
            self.integer = self.integer && !padded && number.parse::<i64>().is_ok();
            self.wide = self.wide && !padded && is_whole(&number);
            self.double = self.double && !padded && is_float(&number);
        }
        self.time = self.time && is_time(value);
        let is_date = |format: &Option<String>| match format {
            None => is_iso_date(value),
            Some(format) => times::date(value, format).is_some(),
        };
        self.dates.retain(is_date);
        let is_timestamp = |format: &Option<String>| match format {
            None => is_iso_timestamp(value) || is_iso_date(value),
            Some(format) => times::timestamp(value, format).is_some(),
        };
        self.timestamps.retain(is_timestamp);
        self.with_zone |= !self.timestamps.is_empty() && has_zone(value);
    }

    /// The narrowest of the types.
    pub(super) fn column(&self) -> CsvColumn {
        let with = |data_type, format: &Option<String>| CsvColumn {
            format: format.clone(),
            ..CsvColumn::new(data_type)
        };
        let may_be = |of: &'static str| self.allowed.contains(&of);
        match self {
            _ if !self.seen => CsvColumn::text(),
            _ if self.boolean && may_be("BOOLEAN") => CsvColumn::new(DataType::Boolean),
            _ if self.integer && may_be("BIGINT") => CsvColumn::new(DataType::Int64),
            // A DOUBLE would not have all of their digits.
            _ if self.wide && may_be("BIGINT") => CsvColumn::of_wide_numbers(),
            _ if self.double && may_be("DOUBLE") => CsvColumn::new(DataType::Float64),
            _ if self.time && may_be("TIME") => {
                CsvColumn::new(DataType::Time64(TimeUnit::Microsecond))
            }
            _ if !self.dates.is_empty() && may_be("DATE") => with(DataType::Date32, &self.dates[0]),
            _ if !self.timestamps.is_empty() && may_be("TIMESTAMP") => {
                let zone = self.with_zone.then(|| "UTC".into());
                with(DataType::Timestamp(TimeUnit::Microsecond, zone), &self.timestamps[0])
            }
            _ => CsvColumn::text(),
        }
    }
}

fn date_formats() -> Vec<Option<String>> {
    let mut formats = vec![None];
    for date in DATES {
        for separator in SEPARATORS {
            formats.push(Some(date.replace('-', separator)));
        }
    }
    formats
}

/// Forms of timestamps that a first value fits; keeping all of them for every column would be large.
fn timestamp_formats(value: &str) -> Vec<Option<String>> {
    let is_iso = is_iso_timestamp(value) || is_iso_date(value);
    let mut formats: Vec<Option<String>> = if is_iso { vec![None] } else { Vec::new() };
    if !value.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) || is_iso {
        return formats;
    }
    for date in date_formats().into_iter().flatten() {
        let of = TIMES.iter().map(|time| format!("{date}{time}"));
        formats.extend(of.filter(|it| times::timestamp(value, it).is_some()).map(Some));
    }
    formats
}

fn is_boolean(value: &str) -> bool {
    ["true", "false", "t", "f"].iter().any(|it| value.eq_ignore_ascii_case(it))
}

/// A number with a point and without signs between its digits.
pub(super) fn plain_number(value: &str, settings: &CsvSettings) -> String {
    let mut number = value.trim().to_owned();
    if let Some(thousands) = settings.thousands {
        number.retain(|c| c != thousands as char);
    }
    if settings.decimal != b'.' && !number.contains('.') {
        number = number.replace(settings.decimal as char, ".");
    }
    number
}

/// Whether a text is a whole number, of any size.
pub(crate) fn is_whole(value: &str) -> bool {
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_float(value: &str) -> bool {
    let digits = value.bytes().any(|byte| byte.is_ascii_digit());
    let names = ["nan", "inf", "-inf", "+inf", "infinity", "-infinity"];
    let named = names.iter().any(|it| value.eq_ignore_ascii_case(it));
    (digits || named) && value.parse::<f64>().is_ok()
}

/// Whether a number would lose its leading zeros.
pub(super) fn is_padded(value: &str) -> bool {
    let digits = value.trim_start_matches(['-', '+']).as_bytes();
    matches!(digits, [b'0', next, ..] if next.is_ascii_digit())
}

fn is_time(value: &str) -> bool {
    let (time, fraction) = value.split_once('.').unwrap_or((value, "0"));
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    digits && times::timestamp(time, "%H:%M:%S").is_some()
}

fn is_iso_date(value: &str) -> bool {
    value.len() == 10 && times::date(value, "%Y-%m-%d").is_some()
}

fn is_iso_timestamp(value: &str) -> bool {
    let Some((date, time)) = value.split_once(['T', ' ']) else { return false };
    let (time, zone) = match time.find(['Z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, ""),
    };
    let time = time.trim_end();
    let zoned = zone.is_empty() || times::timestamp(zone, "%z").is_some();
    let minutes = times::timestamp(time, "%H:%M").is_some();
    is_iso_date(date) && zoned && (is_time(time) || minutes)
}

/// Whether a moment has a time zone.
fn has_zone(value: &str) -> bool {
    value.ends_with('Z') || value.get(16..).is_some_and(|rest| rest.contains(['+', '-']))
}

/// Whether arrow-csv reads the moment.
fn is_usual_timestamp(value: &str) -> bool {
    value.len() >= 19 && value.split_once(['T', ' ']).is_some_and(|(_, time)| time.len() >= 8)
}

/// The inferred columns.
#[derive(Clone, Debug)]
pub(super) struct CsvColumns {
    pub(super) has_header: bool,
    pub(super) names: Vec<String>,
    pub(super) columns: Vec<CsvColumn>,
    /// Whether arrow-csv cannot read a value.
    pub(super) is_unusual: bool,
    pub(super) has_line_breaks: bool,
}

/// Looks at records one after the other.
pub(super) struct ColumnSample<'a> {
    settings: &'a CsvSettings,
    first: Option<CsvRecord>,
    candidates: Vec<TypeCandidates>,
    records: usize,
    is_unusual: bool,
    has_line_breaks: bool,
}

impl<'a> ColumnSample<'a> {
    pub(super) fn new(settings: &'a CsvSettings) -> Self {
        Self {
            settings,
            first: None,
            candidates: Vec::new(),
            records: 0,
            is_unusual: false,
            has_line_breaks: false,
        }
    }

    /// Rows after the first.
    pub(super) fn rows(&self) -> usize {
        self.records.saturating_sub(1)
    }

    /// Notes a record, of which the first may be a header.
    pub(super) fn see(&mut self, record: &CsvRecord) {
        self.records += 1;
        self.has_line_breaks |= record.has_line_break;
        self.is_unusual |= record.flaw.is_some();
        if self.first.is_none() {
            let candidates = TypeCandidates::new(self.settings);
            self.candidates = vec![candidates; record.len()];
            self.first = Some(record.clone());
        } else {
            see_values(self.settings, &mut self.candidates, record, &mut self.is_unusual);
        }
    }

    /// Whether the first record is a header, as far as is known.
    pub(super) fn has_header(&self) -> bool {
        let Some(first) = &self.first else { return false };
        let rest: Vec<CsvColumn> = self.candidates.iter().map(TypeCandidates::column).collect();
        match self.settings.header {
            Some(header) => header != Header::None,
            None => self.is_header(first, &rest),
        }
    }

    /// The columns as inferred from the records seen.
    pub(super) fn columns(mut self) -> Option<CsvColumns> {
        let has_header = self.has_header();
        let first = self.first.take()?;
        if !has_header {
            see_values(self.settings, &mut self.candidates, &first, &mut self.is_unusual);
        }
        let names = match has_header {
            true => header_names(&first, self.settings.normalize),
            false => numbered(first.len()),
        };
        let columns = self.candidates.iter().map(TypeCandidates::column);
        Some(CsvColumns {
            has_header,
            names,
            columns: columns.collect(),
            is_unusual: self.is_unusual,
            has_line_breaks: self.has_line_breaks,
        })
    }

    /// The first record is a header if it has a text above values of another type, or if all below is
    /// text and something in it is.
    fn is_header(&self, first: &CsvRecord, rest: &[CsvColumn]) -> bool {
        let known = |name: &String| (0..first.len()).any(|at| first.text(at) == *name);
        let given: Vec<&String> =
            self.settings.columns.iter().flatten().map(|(name, _)| name).collect();
        if !given.is_empty() && given.into_iter().all(known) {
            return true;
        }
        let is_null = |at: usize| self.settings.null_texts().contains(&first.text(at));
        let mut own = vec![TypeCandidates::new(self.settings); first.len()];
        see_values(self.settings, &mut own, first, &mut false);
        let own: Vec<CsvColumn> = own.iter().map(TypeCandidates::column).collect();
        if !self.settings.auto_detect {
            return false;
        }
        if self.records == 1 {
            return own.iter().all(CsvColumn::is_text) && (0..first.len()).any(|at| !is_null(at));
        }
        if (0..first.len()).all(is_null) {
            return false;
        }
        if rest.iter().all(CsvColumn::is_text) {
            return own.iter().any(CsvColumn::is_text);
        }
        // `t` may be a name as well as a value.
        let is_flag = |column: &CsvColumn| column.data_type == DataType::Boolean;
        let is_name = |at: usize| own[at].is_text() || is_flag(&own[at]) && !is_flag(&rest[at]);
        let differs = |at: usize| !rest[at].is_text() && !is_null(at) && is_name(at);
        (0..first.len().min(rest.len())).any(differs)
    }
}

fn see_values(
    settings: &CsvSettings,
    candidates: &mut [TypeCandidates],
    record: &CsvRecord,
    is_unusual: &mut bool,
) {
    let nulls = settings.null_texts();
    for (at, candidates) in candidates.iter_mut().enumerate().take(record.len()) {
        let Ok(value) = std::str::from_utf8(record.value(at)) else {
            candidates.see("text", settings);
            continue;
        };
        if nulls.iter().any(|null| null == value)
            && (settings.quoted_nulls.are_null(false) || !record.is_quoted(at))
        {
            continue;
        }
        candidates.see(value, settings);
        let CsvColumn { data_type, format, is_whole } = candidates.column();
        *is_unusual |= is_whole;
        *is_unusual |= match data_type {
            DataType::Timestamp(_, _) => format.is_some() || !is_usual_timestamp(value),
            DataType::Date32 => format.is_some(),
            DataType::Boolean => value.len() == 1,
            DataType::Int64 | DataType::Float64 => {
                value.starts_with([' ', '+']) || value.ends_with(' ')
            }
            _ => false,
        };
    }
}

fn numbered(count: usize) -> Vec<String> {
    let width = count.saturating_sub(1).to_string().len();
    (0..count).map(|at| format!("column{at:0width$}")).collect()
}

/// The names of a header: columns without one are numbered.
fn header_names(first: &CsvRecord, normalize: bool) -> Vec<String> {
    let numbers = numbered(first.len());
    let name = |at: usize| match first.text(at).trim() {
        "" => numbers[at].clone(),
        name if normalize => normalized(name),
        name => name.to_owned(),
    };
    (0..first.len()).map(name).collect()
}

/// In lower case, with nothing but letters, digits and underscores.
fn normalized(name: &str) -> String {
    let letter = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = name.chars().map(letter).collect();
    let name = name.trim_matches('_');
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name.to_owned(),
    }
}

/// The first duplicate name.
pub(super) fn twice(names: &[String]) -> Option<&String> {
    let mut seen = HashSet::new();
    names.iter().find(|name| !seen.insert(*name))
}
