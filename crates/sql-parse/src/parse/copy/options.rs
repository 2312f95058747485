//! The options of COPY.

use std::path::Path;

use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{Array, Expr, Ident, ObjectName, Value};
use url::Url;

use crate::syntax::{
    FileKind, FileOptions, OptionValue, check_characters, compression_named, kind_of_name,
};

const FORMAT: &[&str] = &["format"];
const PARTITION: &[&str] = &["partition_by"];
const OVERWRITE: &[&str] = &["overwrite", "overwrite_or_ignore", "append"];
const COMPRESSION: &[&str] = &["compression", "codec"];
const LEVEL: &[&str] = &["compression_level"];
const ROWS: &[&str] = &["row_group_size"];
const ARRAY: &[&str] = &["array"];
const HEADER: &[&str] = &["header"];
const DELIMITER: &[&str] = &["delimiter", "delim", "sep"];
const QUOTE: &[&str] = &["quote"];
const ESCAPE: &[&str] = &["escape"];
const NULL: &[&str] = &["null", "nullstr"];
const FORCE_QUOTE: &[&str] = &["force_quote"];
const DATES: &[&str] = &["dateformat", "date_format"];
const TIMESTAMPS: &[&str] = &["timestampformat", "timestamp_format"];
const ENCODING: &[&str] = &["encoding"];
const MANY_FILES: &[&str] = &["per_thread_output"];
const KEEP_COLUMNS: &[&str] = &["write_partition_columns"];
/// Options that control how DuckDB works, and do not describe the files.
const IGNORED: &[&str] = &["use_tmp_file", "preserve_order", "parquet_version", "return_stats"];

const WRITTEN: &[&[&str]] =
    &[FORMAT, PARTITION, OVERWRITE, COMPRESSION, LEVEL, MANY_FILES, KEEP_COLUMNS, IGNORED];
const CSV: &[&[&str]] =
    &[HEADER, DELIMITER, QUOTE, ESCAPE, NULL, FORCE_QUOTE, DATES, TIMESTAMPS, ENCODING];

/// Whether existing files in the directory are removed.
pub const EMPTY_FIRST: &str = "atoll.empty_first";
/// Whether one file is written, whatever the ending of its name.
pub const SINGLE: &str = "atoll.single_file";

/// The prefix of Atoll's own options among DataFusion's.
pub const OWN: &str = "atoll.";
/// The separator of names in one option.
pub const BETWEEN: char = '\u{1}';

/// Atoll's options of DataFusion's COPY: columns of CSV that are quoted, and how JSON writes dates and times.
pub const QUOTED_COLUMNS: &str = "force_quote";
/// The option for the form of dates.
pub const DATE_FORMAT: &str = "date_format";
/// The option for the form of timestamps.
pub const TIMESTAMP_FORMAT: &str = "timestamp_format";

/// The options after the file of a COPY.
#[derive(Debug, Default)]
pub(crate) struct CopyOptions {
    options: FileOptions,
    /// Options by DataFusion's names.
    pub(crate) datafusion: Vec<(String, Value)>,
}

impl CopyOptions {
    pub(crate) fn add(&mut self, name: &str, value: OptionValue) -> Result<()> {
        self.options.add(name, value)
    }

    /// The kind of the files, and the name of their format.
    fn format(&self, target: &str) -> Result<(FileKind, String)> {
        match self.options.text(FORMAT)? {
            Some(format) if format.eq_ignore_ascii_case("text") => {
                Ok((FileKind::Csv, "text".to_owned()))
            }
            Some(format) => match FileKind::named(&format) {
                Some(kind) => Ok((kind, format.to_ascii_lowercase())),
                None => plan_err!(
                    "unknown COPY format '{format}'; expected one of csv, parquet, json, arrow, text"
                ),
            },
            None => {
                let kind = kind_of_name(target).unwrap_or(FileKind::Csv);
                let is_tabs =
                    [".tsv", ".tab"].iter().any(|it| target.to_ascii_lowercase().contains(it));
                Ok((kind, if is_tabs { "tsv" } else { "" }.to_owned()))
            }
        }
    }

    /// DataFusion's COPY of a table or query to a file or directory.
    pub(crate) fn to(self, source: CopyToSource, target: &str) -> Result<Parsed> {
        let (kind, format) = self.format(target)?;
        let own = match kind {
            FileKind::Csv => CSV,
            FileKind::Parquet => &[ROWS],
            FileKind::Json => &[ARRAY, DATES, TIMESTAMPS],
            FileKind::Arrow => &[],
        };
        self.options.check("COPY … TO", &[WRITTEN, own].concat())?;
        let mut written = Written(Vec::new());
        match kind {
            FileKind::Csv => self.csv(&mut written, &format)?,
            FileKind::Parquet => {
                if let Some(rows) = self.options.count(ROWS)? {
                    if rows == 0 {
                        return plan_err!("invalid ROW_GROUP_SIZE 0; expected a number of rows");
                    }
                    written.set("format.max_row_group_size", rows.to_string());
                }
            }
            FileKind::Json => {
                let array = self.options.bool(ARRAY)?.unwrap_or(false);
                written.set("format.newline_delimited", (!array).to_string());
                for (names, option) in [(DATES, DATE_FORMAT), (TIMESTAMPS, TIMESTAMP_FORMAT)] {
                    if let Some(format) = self.options.text(names)? {
                        written.set(&own_option(option), format);
                    }
                }
            }
            FileKind::Arrow => {}
        }
        self.compression(&mut written, kind, target)?;
        let partitioned_by = match self.options.get(PARTITION) {
            None => Vec::new(),
            Some(value) => value.texts().ok_or_else(|| {
                plan_datafusion_err!("invalid PARTITION_BY; expected columns: (a, b)")
            })?,
        };
        if self.options.bool(KEEP_COLUMNS)?.unwrap_or(false) {
            written.set("execution.keep_partition_by_columns", "true".to_owned());
        }
        let many = !partitioned_by.is_empty()
            || self.options.bool(MANY_FILES)?.unwrap_or(false)
            || target.ends_with('/');
        if many && self.options.bool(&["overwrite"])?.unwrap_or(false) {
            written.set(EMPTY_FIRST, "true".to_owned());
        }
        if !many {
            written.set(SINGLE, "true".to_owned());
        }
        // Options by DataFusion's names are more specific.
        written.0.retain(|(name, _)| {
            let bare = name.trim_start_matches("format.");
            !self.datafusion.iter().any(|(other, _)| other.trim_start_matches("format.") == bare)
        });
        let options = written.0.into_iter().chain(self.datafusion).collect();
        let stored_as = match kind {
            FileKind::Csv => "csv",
            FileKind::Parquet => "parquet",
            FileKind::Json => "json",
            FileKind::Arrow => "arrow",
        };
        Ok(Parsed::CopyTo(CopyToStatement {
            source,
            target: url_of(target, many)?,
            partitioned_by,
            stored_as: Some(stored_as.to_owned()),
            options,
        }))
    }

    fn csv(&self, written: &mut Written, format: &str) -> Result<()> {
        let options = &self.options;
        if let Some(encoding) = options.text(ENCODING)?
            && !["utf8", "utf-8"].contains(&encoding.to_ascii_lowercase().as_str())
        {
            return plan_err!("encoding '{encoding}' is not supported; files are written in UTF-8");
        }
        let is_text = format == "text";
        check_characters(options, is_text)?;
        if is_text && (options.get(QUOTE).is_some() || options.get(ESCAPE).is_some()) {
            return plan_err!("QUOTE and ESCAPE are for CSV; the text format has backslashes");
        }
        if options.byte(QUOTE)? == Some(None) {
            return plan_err!("invalid value of option quote; expected a character");
        }
        let header = options.bool(HEADER)?.unwrap_or(!is_text);
        written.set("format.has_header", header.to_string());
        let default = if is_text || matches!(format, "tsv" | "tab") { Some(b'\t') } else { None };
        let delimiter = options.byte(DELIMITER)?.flatten().or(default);
        written.set_byte("format.delimiter", delimiter);
        written.set_byte("format.quote", options.byte(QUOTE)?.flatten());
        if let Some(escape) = options.byte(ESCAPE)?.flatten()
            && escape != options.byte(QUOTE)?.flatten().unwrap_or(b'"')
        {
            written.set_byte("format.escape", Some(escape));
            written.set("format.double_quote", "false".to_owned());
        }
        let null = options.text(NULL)?.or_else(|| is_text.then(|| "\\N".to_owned()));
        if let Some(null) = null {
            written.set("format.null_value", null);
        }
        match options.get(FORCE_QUOTE).map(|it| it.texts().unwrap_or_default()) {
            None if is_text => written.set("format.quote_style", "Never".to_owned()),
            None => {}
            Some(_) if is_text => {
                return plan_err!("FORCE_QUOTE is for CSV; the text format has no quotes");
            }
            Some(columns) if columns == ["*"] => {
                written.set("format.quote_style", "Always".to_owned())
            }
            Some(columns) => {
                written.set(&own_option(QUOTED_COLUMNS), columns.join(&BETWEEN.to_string()));
            }
        }
        if let Some(format) = options.text(DATES)? {
            written.set("format.date_format", format);
        }
        let timestamps = options.text(TIMESTAMPS)?;
        let with_zone = match &timestamps {
            Some(format) => format.clone(),
            None => "%Y-%m-%d %H:%M:%S%.f%:z".to_owned(),
        };
        let timestamps = timestamps.unwrap_or_else(|| "%Y-%m-%d %H:%M:%S%.f".to_owned());
        written.set("format.timestamp_format", timestamps);
        written.set("format.timestamp_tz_format", with_zone);
        Ok(())
    }

    fn compression(&self, written: &mut Written, kind: FileKind, target: &str) -> Result<()> {
        let level = self.options.text(LEVEL)?;
        let given = self.options.text(COMPRESSION)?.map(|it| it.to_ascii_lowercase());
        if kind == FileKind::Parquet {
            let Some(name) = given.or_else(|| level.is_some().then(|| "zstd".to_owned())) else {
                return Ok(());
            };
            let with_level =
                |default: &str| format!("{name}({})", level.as_deref().unwrap_or(default));
            let codec = match name.as_str() {
                "zstd" => with_level("3"),
                "gzip" => with_level("6"),
                "brotli" => with_level("1"),
                "snappy" | "uncompressed" | "lz4" | "lz4_raw" => name,
                "none" => "uncompressed".to_owned(),
                _ => {
                    return plan_err!(
                        "unknown compression '{name}' of Parquet; expected one of uncompressed, snappy, \
                         zstd, gzip, lz4, brotli"
                    );
                }
            };
            written.set("format.compression", codec);
            return Ok(());
        }
        let ending = target.rsplit_once('.').map_or("", |(_, ending)| ending);
        let name = match given {
            Some(name) if name != "auto" => name,
            _ if compression_named(ending).is_some() => ending.to_owned(),
            _ => return Ok(()),
        };
        let Some(compression) = compression_named(&name) else {
            return plan_err!(
                "unknown compression '{name}'; expected one of none, gzip, zstd, bzip2, xz"
            );
        };
        if kind == FileKind::Arrow {
            return plan_err!("Arrow files are written without compression; leave COMPRESSION out");
        }
        written.set("format.compression", compression.get_variant().to_string().to_lowercase());
        if let Some(level) = level {
            written.set("format.compression_level", level);
        }
        Ok(())
    }

    /// The arguments of the function that reads the file, without its name.
    pub(crate) fn into_reading(
        self,
        table: &ObjectName,
        columns: &[Ident],
    ) -> Result<Vec<(String, Expr)>> {
        if let Some((name, _)) = self.datafusion.first() {
            return plan_err!(
                "unknown option '{name}' of COPY … FROM; write options as (NAME value, …)"
            );
        }
        let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
        let mut arguments = vec![
            ("into".to_owned(), text(&table.to_string())),
            (
                "into_columns".to_owned(),
                Expr::Array(Array {
                    elem: columns.iter().map(|column| text(&column.to_string())).collect(),
                    named: false,
                }),
            ),
        ];
        for (name, value) in self.options.into_values() {
            arguments.push((name, value.into_expr()));
        }
        Ok(arguments)
    }
}

/// The name of one of Atoll's own options.
fn own_option(option: &str) -> String {
    format!("{OWN}{option}")
}

/// Options by DataFusion's names.
struct Written(Vec<(String, Value)>);

impl Written {
    fn set(&mut self, name: &str, value: String) {
        self.0.push((name.to_owned(), Value::SingleQuotedString(value)));
    }

    fn set_byte(&mut self, name: &str, byte: Option<u8>) {
        if let Some(byte) = byte {
            self.set(name, (byte as char).to_string());
        }
    }
}

/// The target as DataFusion names it, without wildcards.
fn url_of(target: &str, many: bool) -> Result<String> {
    if target.starts_with("file://") {
        return Ok(target.to_owned());
    }
    if target.contains("://") {
        return plan_err!("'{target}' is not on this machine; only local files can be written");
    }
    if target.is_empty() {
        return plan_err!("expected a file name, found an empty text");
    }
    let absolute = std::path::absolute(Path::new(target))?;
    let url = match many {
        true => Url::from_directory_path(&absolute),
        false => Url::from_file_path(&absolute),
    };
    match url {
        Ok(url) => Ok(url.to_string()),
        Err(()) => plan_err!("'{target}' is not a valid file name"),
    }
}
