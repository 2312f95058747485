//! The CSV options of `read_csv` and COPY.

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Result, plan_datafusion_err, plan_err};

use super::records::CsvSyntax;
use crate::SAMPLE_ROWS;
use atoll_sql_parse::syntax::{
    DELIMITER, ESCAPE, FileOptions, NULLS, OptionValue, QUOTE, check_characters,
};

const COMMENT: &[&str] = &["comment"];
const HEADER: &[&str] = &["header"];
const SKIP: &[&str] = &["skip"];
const COLUMNS: &[&str] = &["columns"];
const TYPES: &[&str] = &["types", "dtypes", "column_types"];
const NAMES: &[&str] = &["names", "column_names"];
const AUTO_DETECT: &[&str] = &["auto_detect"];
const ALL_VARCHAR: &[&str] = &["all_varchar"];
const DATE_FORMAT: &[&str] = &["dateformat", "date_format"];
const TIMESTAMP_FORMAT: &[&str] = &["timestampformat", "timestamp_format"];
const DECIMAL: &[&str] = &["decimal_separator"];
const THOUSANDS: &[&str] = &["thousands"];
const IGNORE_ERRORS: &[&str] = &["ignore_errors"];
const STORE_REJECTS: &[&str] = &["store_rejects"];
const PADDING: &[&str] = &["null_padding"];
const SAMPLE: &[&str] = &["sample_size"];
const LINE_MAX: &[&str] = &["max_line_size", "maximum_line_size"];
const QUOTED_NULLS: &[&str] = &["allow_quoted_nulls"];
const NOT_NULL: &[&str] = &["force_not_null"];
const FORCED_NULL: &[&str] = &["force_null"];
const NORMALIZE: &[&str] = &["normalize_names"];
const STRICT: &[&str] = &["strict_mode"];
const ENCODING: &[&str] = &["encoding"];
const NEW_LINE: &[&str] = &["new_line"];
const CANDIDATES: &[&str] = &["auto_type_candidates"];
const FILES: &[&str] = &["files_to_sniff"];
/// Options that control how DuckDB works, and do not describe the file.
const IGNORED: &[&str] = &["parallel", "buffer_size"];

/// All options that this module reads.
pub(crate) const KNOWN: &[&[&str]] = &[
    DELIMITER,
    QUOTE,
    ESCAPE,
    COMMENT,
    HEADER,
    NULLS,
    SKIP,
    COLUMNS,
    TYPES,
    NAMES,
    AUTO_DETECT,
    ALL_VARCHAR,
    DATE_FORMAT,
    TIMESTAMP_FORMAT,
    DECIMAL,
    THOUSANDS,
    IGNORE_ERRORS,
    STORE_REJECTS,
    PADDING,
    SAMPLE,
    LINE_MAX,
    QUOTED_NULLS,
    NOT_NULL,
    FORCED_NULL,
    NORMALIZE,
    STRICT,
    ENCODING,
    NEW_LINE,
    CANDIDATES,
    FILES,
    IGNORED,
];

/// The default of `max_line_size`, as in DuckDB.
const LINE_BYTES: usize = 2_000_000;

/// Types by the names of columns, or in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum GivenTypes {
    #[default]
    None,
    Named(Vec<(String, String)>),
    Listed(Vec<String>),
}

/// The meaning of the first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// A row.
    None,
    /// The names of the columns.
    Names,
    /// The names of the table's columns, in their order; others are refused.
    Match,
}

impl Header {
    fn from_options(options: &FileOptions) -> Result<Option<Self>> {
        let text = options.get(HEADER).and_then(OptionValue::text);
        if text.is_some_and(|text| text.eq_ignore_ascii_case("match")) {
            return Ok(Some(Self::Match));
        }
        let named = |is_named| if is_named { Self::Names } else { Self::None };
        Ok(options.bool(HEADER)?.map(named))
    }
}

/// Columns that an option names; `*` is all.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedColumns(pub(crate) Vec<String>);

impl NamedColumns {
    /// Whether a column is among them. Names are compared as people write them without quotes.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|named| named == "*" || named.eq_ignore_ascii_case(name))
    }

    /// When the column does not exist.
    pub(crate) fn check(&self, option: &str, columns: &Schema) -> Result<()> {
        let is_there = |named: &&String| {
            *named == "*" || columns.fields().iter().any(|it| it.name().eq_ignore_ascii_case(named))
        };
        match self.0.iter().find(|named| !is_there(named)) {
            None => Ok(()),
            Some(missing) => {
                let known: Vec<&str> =
                    columns.fields().iter().map(|field| field.name().as_str()).collect();
                plan_err!(
                    "{option} names the unknown column '{missing}'; expected {}",
                    known.join(", ")
                )
            }
        }
    }
}

/// The settings of a file; what is not set is detected.
#[derive(Clone, Debug)]
pub(crate) struct CsvSettings {
    pub(super) delimiter: Option<u8>,
    pub(super) quote: Option<Option<u8>>,
    pub(super) escape: Option<Option<u8>>,
    pub(super) comment: Option<Option<u8>>,
    pub(super) header: Option<Header>,
    pub(super) nulls: Option<Vec<String>>,
    pub(super) skip: Option<usize>,
    pub(super) columns: Option<Vec<(String, String)>>,
    /// The columns of the table that the rows are for.
    pub(super) target: Option<Vec<(String, DataType)>>,
    pub(super) types: GivenTypes,
    pub(super) names: Vec<String>,
    pub(super) auto_detect: bool,
    pub(super) all_varchar: bool,
    pub(super) date_format: Option<String>,
    pub(super) timestamp_format: Option<String>,
    pub(super) decimal: u8,
    pub(super) thousands: Option<u8>,
    pub(super) ignore_errors: bool,
    pub(super) padding: bool,
    pub(super) sample: usize,
    /// Files from which types are inferred.
    pub(super) sampled_files: usize,
    /// Types that may be inferred.
    pub(super) candidates: Vec<&'static str>,
    pub(super) line_max: usize,
    pub(super) quoted_nulls: QuotedNulls,
    /// Columns in which nothing is NULL.
    pub(super) not_null: NamedColumns,
    /// Columns in which a value in quotes is NULL as well.
    pub(super) forced_null: NamedColumns,
    pub(super) normalize: bool,
    pub(super) strict: bool,
    /// Whether the file is in PostgreSQL's text format, of which a backslash is part.
    pub(super) is_text: bool,
}

/// Types that may be inferred unless `auto_type_candidates` names fewer; text always may.
const TYPES_FOUND: [&str; 7] =
    ["BOOLEAN", "BIGINT", "DOUBLE", "TIME", "DATE", "TIMESTAMP", "VARCHAR"];

fn candidates(options: &FileOptions) -> Result<Vec<&'static str>> {
    let Some(given) = options.texts(CANDIDATES)? else { return Ok(TYPES_FOUND.to_vec()) };
    let known = |name: &String| {
        TYPES_FOUND.into_iter().find(|known| known.eq_ignore_ascii_case(name)).ok_or_else(|| {
            plan_datafusion_err!(
                "invalid type '{name}' in auto_type_candidates; expected some of {}",
                TYPES_FOUND.join(", ")
            )
        })
    };
    given.iter().filter(|name| !name.eq_ignore_ascii_case("null")).map(known).collect()
}

/// The meaning of a value in quotes that reads like NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuotedNulls {
    /// NULL, as in DuckDB.
    Null,
    /// A value.
    Value,
    /// A value in columns of text, and NULL elsewhere: in COPY, whose files distinguish an empty string from NULL.
    ValueOfText,
}

impl QuotedNulls {
    /// Whether it is NULL in a column of text, or another one.
    pub(super) fn are_null(self, is_text: bool) -> bool {
        match self {
            Self::Null => true,
            Self::Value => false,
            Self::ValueOfText => !is_text,
        }
    }
}

impl CsvSettings {
    pub(crate) fn from_options(options: &FileOptions) -> Result<Self> {
        if let Some(encoding) = options.text(ENCODING)?
            && !["utf-8", "utf8"].contains(&encoding.to_ascii_lowercase().as_str())
        {
            return plan_err!(
                "encoding '{encoding}' is not supported; convert the file to UTF-8, for example with \
                 iconv -f {encoding} -t UTF-8"
            );
        }
        let types = match options.get(TYPES) {
            None => GivenTypes::None,
            Some(value) => match (value.pairs(), value.texts()) {
                (Some(named), _) => GivenTypes::Named(named),
                (None, Some(listed)) => GivenTypes::Listed(listed),
                (None, None) => {
                    return plan_err!(
                        "invalid value of option types; expected {{'a': 'INTEGER'}} or ['INTEGER', …]"
                    );
                }
            },
        };
        // DuckDB's format `auto` means no format.
        let format = |names| -> Result<Option<String>> {
            Ok(options.text(names)?.map(|text| match text.to_ascii_lowercase().as_str() {
                "iso" => "%Y-%m-%d".to_owned(),
                _ => text,
            }))
        };
        if options.bool(STORE_REJECTS)?.unwrap_or(false) {
            return plan_err!(
                "store_rejects is not supported: rejected rows are not kept; ignore_errors leaves them out, and \
                 without it the first one is named"
            );
        }
        check_characters(options, options.is_text)?;
        Ok(Self {
            delimiter: match options.byte(DELIMITER)? {
                Some(None) => {
                    return plan_err!("invalid value of option delim; expected a character");
                }
                given => given.flatten(),
            },
            quote: options.byte(QUOTE)?,
            escape: options.byte(ESCAPE)?,
            comment: options.byte(COMMENT)?,
            header: Header::from_options(options)?,
            nulls: options.texts(NULLS)?,
            skip: options.count(SKIP)?,
            columns: options.pairs(COLUMNS)?,
            target: options.target.clone(),
            types,
            names: options.texts(NAMES)?.unwrap_or_default(),
            auto_detect: options.bool(AUTO_DETECT)?.unwrap_or(true),
            all_varchar: options.bool(ALL_VARCHAR)?.unwrap_or(false),
            date_format: format(DATE_FORMAT)?,
            timestamp_format: format(TIMESTAMP_FORMAT)?,
            decimal: options.byte(DECIMAL)?.flatten().unwrap_or(b'.'),
            thousands: options.byte(THOUSANDS)?.flatten(),
            ignore_errors: options.bool(IGNORE_ERRORS)?.unwrap_or(false),
            padding: options.bool(PADDING)?.unwrap_or(false),
            sample: options.count(SAMPLE)?.unwrap_or(SAMPLE_ROWS),
            sampled_files: options.count(FILES)?.unwrap_or(usize::MAX).max(1),
            candidates: candidates(options)?,
            line_max: options.count(LINE_MAX)?.unwrap_or(LINE_BYTES),
            quoted_nulls: match (options.bool(QUOTED_NULLS)?, &options.target) {
                (Some(false), _) => QuotedNulls::Value,
                (None, Some(_)) => QuotedNulls::ValueOfText,
                (Some(true), _) | (None, None) => QuotedNulls::Null,
            },
            not_null: NamedColumns(options.texts(NOT_NULL)?.unwrap_or_default()),
            forced_null: NamedColumns(options.texts(FORCED_NULL)?.unwrap_or_default()),
            normalize: options.bool(NORMALIZE)?.unwrap_or(false),
            strict: options.bool(STRICT)?.unwrap_or(true),
            is_text: options.is_text,
        })
    }

    /// Whether the options need more than arrow-csv supports.
    pub(super) fn needs_care(&self) -> bool {
        let other_nulls = self.nulls.as_ref().is_some_and(|it| *it != [String::new()]);
        other_nulls
            || self.skip.is_some_and(|skip| skip > 0)
            || self.date_format.is_some()
            || self.timestamp_format.is_some()
            || self.decimal != b'.'
            || self.thousands.is_some()
            || self.ignore_errors
            || self.padding
            || !self.not_null.0.is_empty()
            || !self.forced_null.0.is_empty()
            || self.header == Some(Header::Match)
            || !self.strict
            || self.is_text
    }

    /// The text of NULL.
    pub(super) fn null_texts(&self) -> Vec<String> {
        self.nulls.clone().unwrap_or_else(|| vec![String::new()])
    }

    /// The syntax as far as the options set it.
    pub(super) fn syntax(&self) -> CsvSyntax {
        let quote = self.quote.unwrap_or(Some(b'"'));
        CsvSyntax {
            delimiter: self.delimiter.unwrap_or(b','),
            quote,
            escape: self.escape.flatten(),
            comment: self.comment.flatten(),
            backslashes: self.is_text,
        }
    }
}
