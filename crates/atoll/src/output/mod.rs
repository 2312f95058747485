//! Results as text: one file for each mode, all implementing [`ResultWriter`].
//!
//! | Mode | Form | NULL | Memory |
//! |---|---|---|---|
//! | `box` | drawn with lines, for people | `NULL`, dimmed | the rows shown |
//! | `table` | the same in ASCII | `NULL` | the rows shown |
//! | `csv` | RFC 4180 with a header; lines end in LF, as psql's | empty; an empty text is `""` | a batch |
//! | `json` | one array of objects | `null` | a batch |
//! | `ndjson` | one object a line | `null` | a batch |
//! | `markdown` | a pipe table | `NULL` | a batch |
//! | `line` | `name = value`, a value a line | `NULL` | a batch |
//! | `tabs` | values between tabs, as they are | empty | a batch |
//! | `list` | values between bars, as they are | empty | a batch |
//!
//! `.separator` sets the separator of `csv`, `tabs` and `list`.
//! `.nullvalue` sets another text for NULL, except in JSON; `.headers off` omits column names.
//!
//! Numbers in JSON (also decimals and 64-bit integers) keep all their digits; a reader with less precision rounds them.
//! NaN and the infinities, which JSON lacks, are the texts `"NaN"`, `"Infinity"` and `"-Infinity"`, as in PostgreSQL.
//! Columns of the same name become `a`, `a_1`.

mod boxed;
mod column;
mod csv;
mod delimited;
mod grid;
mod json;
mod json_value;
mod line;
mod markdown;
mod ndjson;
mod table;

#[cfg(test)]
mod testing;

use std::io::{self, Write};

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::Schema;
use atoll_sql::temporal::TemporalStyle;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// Drawn with lines, for people
    #[value(alias = "duckbox")]
    Box,
    /// The same in ASCII
    #[value(aliases = ["ascii", "column"])]
    Table,
    /// Comma-separated values with a header (RFC 4180)
    Csv,
    /// One JSON array of objects
    Json,
    /// One JSON object per line
    #[value(alias = "jsonlines")]
    Ndjson,
    /// A Markdown table
    #[value(alias = "md")]
    Markdown,
    /// One value per line
    Line,
    /// Values between tabs
    #[value(alias = "tsv")]
    Tabs,
    /// Values between bars
    List,
}

impl Mode {
    /// The names, as users type them.
    pub(crate) const NAMES: [&str; 9] =
        ["box", "table", "csv", "json", "ndjson", "markdown", "line", "tabs", "list"];

    /// Finds a mode by name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        clap::ValueEnum::from_str(name, true).ok()
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether it draws a grid that omits what does not fit.
    pub(crate) fn is_drawn(self) -> bool {
        matches!(self, Self::Box | Self::Table)
    }

    /// Creates a writer for one result.
    pub(crate) fn rows(self, layout: DrawLayout) -> Box<dyn ResultWriter> {
        match self {
            Self::Box => Box::new(boxed::rows(layout)),
            Self::Table => Box::new(table::rows(layout)),
            Self::Csv => Box::new(csv::Csv { layout }),
            Self::Json => Box::new(json::Json::default()),
            Self::Ndjson => Box::new(ndjson::Ndjson::default()),
            Self::Markdown => Box::new(markdown::Markdown { layout }),
            Self::Line => Box::new(line::Line::new(layout)),
            Self::Tabs => Box::new(delimited::Delimited { delimiter: "\t", layout }),
            Self::List => Box::new(delimited::Delimited { delimiter: "|", layout }),
        }
    }
}

/// Limits and options of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DrawLayout {
    /// Width of the terminal; None for no limit.
    pub(crate) width: Option<usize>,
    /// Maximum number of rows shown; None for all.
    pub(crate) rows_max: Option<usize>,
    /// Whether NULL is dimmed.
    pub(crate) color: bool,
    /// Whether column names are omitted.
    pub(crate) headless: bool,
    /// The text for NULL, if it is not the mode's default.
    pub(crate) null: Option<String>,
    /// Widths of the first columns; 0 fits the values.
    pub(crate) widths: Vec<usize>,
    /// The separator of `csv`, `tabs` and `list`, if it is not the mode's default.
    pub(crate) separator: Option<String>,
    /// How dates, times and intervals are written, except in JSON.
    pub(crate) style: TemporalStyle,
}

impl DrawLayout {
    /// The text for NULL, or the mode's default.
    fn null_or<'a>(&'a self, of_mode: &'a str) -> &'a str {
        self.null.as_deref().unwrap_or(of_mode)
    }

    /// The separator, or the mode's default.
    fn separator_or<'a>(&'a self, of_mode: &'a str) -> &'a str {
        self.separator.as_deref().unwrap_or(of_mode)
    }
}

/// Writes one result. Call `start` once, `batch` for each batch in order, `finish` once. An error ends it; it is the
/// stream's own (`BrokenPipe` if the reader went away) or names the values that cannot be written.
pub(crate) trait ResultWriter {
    /// Writes what precedes the first row.
    fn start(&mut self, schema: &Schema, out: &mut dyn Write) -> io::Result<()>;

    /// Writes some rows.
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()>;

    /// Writes what follows the last row. Returns notes on what was left out.
    fn finish(&mut self, out: &mut dyn Write) -> io::Result<Vec<String>>;
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_mode_has_a_name() {
        for mode in Mode::value_variants() {
            assert_eq!(Mode::named(mode.name()), Some(*mode));
        }
        assert_eq!(Mode::named("CSV"), Some(Mode::Csv));
        assert_eq!(Mode::named("xml"), None);
    }
}
