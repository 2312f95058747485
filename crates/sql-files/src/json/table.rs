//! Makes the parts of a table from JSON files.

use std::io::{BufReader, Read};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::config::JsonOptions;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::datasource::file_format::json::JsonFormat;
use serde_json::Value;

use super::infer::{JsonType, columns, sample_value};
use super::reader::{JsonReading, Rewriting};
use super::values::{ValueError, ValueReader};
use crate::SAMPLE_ROWS;
use crate::source::{FilesPart, PartReader, SourceFile, TypeNames};
use atoll_sql_parse::syntax::FileOptions;

const FORMAT: &[&str] = &["format"];
const COLUMNS: &[&str] = &["columns"];
const IGNORE_ERRORS: &[&str] = &["ignore_errors"];
const SAMPLE: &[&str] = &["sample_size"];
const OBJECT_MAX: &[&str] = &["maximum_object_size"];
const RECORDS: &[&str] = &["records"];
const ARRAY: &[&str] = &["array"];
const AUTO_DETECT: &[&str] = &["auto_detect"];
const SAMPLE_FILES: &[&str] = &["maximum_sample_files"];
/// DuckDB's options of inference: the only supported value, and the alternative to others.
const INFERENCE: [(&str, &str, &str); 6] = [
    ("dateformat", "iso", "read the column as VARCHAR (columns = …) and use strptime"),
    ("timestampformat", "iso", "read the column as VARCHAR (columns = …) and use strptime"),
    ("convert_strings_to_integers", "false", "give the column its type: columns = {'a': 'BIGINT'}"),
    ("maximum_depth", "-1", "give the column the type JSON: columns = {'a': 'JSON'}"),
    ("field_appearance_threshold", "0", "give the column its type: columns = {'a': 'JSON'}"),
    (
        "map_inference_threshold",
        "-1",
        "give the column its type: columns = {'a': 'MAP(VARCHAR, INT)'}",
    ),
];
const INFERRED: &[&str] = &[
    INFERENCE[0].0,
    INFERENCE[1].0,
    INFERENCE[2].0,
    INFERENCE[3].0,
    INFERENCE[4].0,
    INFERENCE[5].0,
];

/// All options that this module reads.
pub(crate) const KNOWN: &[&[&str]] = &[
    FORMAT,
    COLUMNS,
    IGNORE_ERRORS,
    SAMPLE,
    OBJECT_MAX,
    RECORDS,
    ARRAY,
    AUTO_DETECT,
    SAMPLE_FILES,
    INFERRED,
];

/// The column of values other than objects, as in DuckDB.
pub(super) const WHOLE: &str = "json";

/// The most bytes of a value: as many as Arrow allows for a string.
const VALUE_BYTES: usize = 1 << 30;

/// Refuses options for another way to infer the types.
fn check_inference(options: &FileOptions) -> Result<()> {
    for (name, done, instead) in INFERENCE {
        let given = options.text(&[name])?.map(|it| it.to_ascii_lowercase());
        if given.is_some_and(|given| given != done && given != "auto") {
            return plan_err!("option {name} of JSON is not supported; {instead}");
        }
    }
    if options.bool(AUTO_DETECT)? == Some(false) && options.get(COLUMNS).is_none() {
        return plan_err!("auto_detect = false needs columns = {{'name': 'TYPE', …}}");
    }
    Ok(())
}

/// The parts of a table: one for all files, or one for each of their compressions.
pub(crate) fn parts(
    files: &[SourceFile],
    options: &FileOptions,
    types: &TypeNames<'_>,
) -> Result<Vec<FilesPart>> {
    let format = options.text(FORMAT)?.unwrap_or_else(|| "auto".to_owned()).to_ascii_lowercase();
    check_inference(options)?;
    let is_found = format == "auto" && options.get(ARRAY).is_none();
    let unwrap = match format.as_str() {
        "auto" => options.bool(ARRAY)?.unwrap_or(true),
        "array" => true,
        "newline_delimited" | "nd" | "unstructured" => false,
        other => {
            return plan_err!(
                "unknown JSON format '{other}'; expected auto, array, newline_delimited or unstructured"
            );
        }
    };
    let records = options.text(RECORDS)?.unwrap_or_else(|| "auto".to_owned());
    let ignores = options.bool(IGNORE_ERRORS)?.unwrap_or(false);
    let mut reading = JsonReading {
        unwrap,
        ignores,
        max: options.count(OBJECT_MAX)?.unwrap_or(VALUE_BYTES),
        is_whole: records == "false",
        rewriting: Rewriting::IfNeeded,
        has_wide: false,
        schema: Arc::new(Schema::empty()),
    };
    if let Some(target) = &options.target {
        let fields = target.iter().map(|(name, of)| Field::new(name, of.clone(), true));
        reading.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        return Ok(vec![part(files, reading)]);
    }
    if let Some(given) = options.pairs(COLUMNS)? {
        let field = |(name, text): &(String, String)| {
            Ok(Field::new(name, types.resolve(name, text)?, true))
        };
        reading.schema =
            Arc::new(Schema::new(given.iter().map(field).collect::<Result<Vec<_>>>()?));
        return Ok(vec![part(files, reading)]);
    }
    let sample = options.count(SAMPLE)?.unwrap_or(SAMPLE_ROWS);
    let found = match sampled(files, &reading, sample) {
        // Values, the first of which is an array.
        Err(_) if is_found && has_several_arrays(files, &reading)? => {
            reading.unwrap = false;
            sampled(files, &reading, sample)?
        }
        found => found?,
    };
    reading.rewriting = if found.has_json() { Rewriting::Always } else { Rewriting::Never };
    match &found {
        JsonType::Struct(fields) if !fields.is_empty() && !reading.is_whole => {
            reading.schema = Arc::new(Schema::new(columns(fields)));
        }
        JsonType::Null => {
            return exec_err!("'{}' has no values, so its columns are unknown", files[0].name());
        }
        of => {
            reading.is_whole = true;
            reading.rewriting = Rewriting::Always;
            let data_type = if reading.ignores { DataType::Utf8 } else { of.data_type() };
            reading.schema = Arc::new(Schema::new(vec![Field::new(WHOLE, data_type, true)]));
        }
    }
    reading.has_wide = found.has_wide();
    let plain = reading.rewriting == Rewriting::Never && !reading.ignores && !reading.has_wide;
    if plain && files.iter().map(is_lines).collect::<Result<Vec<_>>>()?.into_iter().all(|it| it) {
        return Ok(line_parts(files, &reading));
    }
    Ok(vec![part(files, reading)])
}

fn part(files: &[SourceFile], reading: JsonReading) -> FilesPart {
    let schema = Arc::clone(&reading.schema);
    FilesPart { files: files.to_vec(), schema, reader: PartReader::Batches(Arc::new(reading)) }
}

/// DataFusion scans, which cut large files into parts; each has one compression.
fn line_parts(files: &[SourceFile], reading: &JsonReading) -> Vec<FilesPart> {
    let runs = files.chunk_by(|a, b| a.compression == b.compression);
    let part = |run: &[SourceFile]| {
        let compression = *run[0].compression.get_variant();
        let options = JsonOptions { compression, ..JsonOptions::default() };
        let format = Arc::new(JsonFormat::default().with_options(options));
        let schema = Arc::clone(&reading.schema);
        let reader = PartReader::Format(super::located::located(format, reading.clone()));
        FilesPart { files: run.to_vec(), schema, reader }
    };
    runs.map(part).collect()
}

/// Whether each line at the beginning of a file is an object.
fn is_lines(file: &SourceFile) -> Result<bool> {
    let mut head = Vec::new();
    let read = file.open_content()?.take(64 << 10).read_to_end(&mut head);
    if read.is_err() && head.is_empty() {
        return Ok(false);
    }
    let whole = (head.len() as u64) < (64 << 10);
    let mut lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').collect();
    if !whole {
        // The last line may be cut.
        lines.pop();
    }
    let is_object = |line: &&[u8]| {
        let line = line.trim_ascii();
        line.is_empty() || line.starts_with(b"{") && serde_json::from_slice::<Value>(line).is_ok()
    };
    Ok(!lines.is_empty() && lines.iter().all(is_object))
}

/// Whether something follows a top-level array.
fn has_several_arrays(files: &[SourceFile], reading: &JsonReading) -> Result<bool> {
    for file in files {
        let input = BufReader::new(file.open_content()?);
        let values = ValueReader::new(input, true, reading.max);
        let mut values = values.map_err(|error| file.failed(&error))?;
        let mut text = Vec::new();
        loop {
            match values.read(&mut text) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return Ok(values.has_ended()),
            }
        }
    }
    Ok(false)
}

/// The common type of the first values of the files.
fn sampled(files: &[SourceFile], reading: &JsonReading, sample: usize) -> Result<JsonType> {
    let (mut seen, mut common) = (0, JsonType::Null);
    for file in files {
        let input = BufReader::new(file.open_content()?);
        let mut values = ValueReader::new(input, reading.unwrap, reading.max)
            .map_err(|error| file.failed(&error))?;
        let mut text = Vec::new();
        let mut of_file = 0;
        while seen < sample {
            let line = match values.read(&mut text) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                // Later errors are reported when they are read.
                Err(_) if of_file > 0 && !values.has_ended() => break,
                Err(error) => return Err(value_error(file, error)),
            };
            match sample_value(&text) {
                Ok(value) => common = common.with(JsonType::from_value(&value, 0)),
                Err(_) if reading.ignores => continue,
                Err(error) => return Err(wrong_value(file, line, &error)),
            }
            (seen, of_file) = (seen + 1, of_file + 1);
        }
    }
    Ok(common)
}

pub(super) fn value_error(file: &SourceFile, error: ValueError) -> DataFusionError {
    match error {
        ValueError::Io(error) => file.failed(&error),
        ValueError::Wrong(line, what) => {
            exec_datafusion_err!("{}, line {line}: {what}", file.name())
        }
    }
}

pub(super) fn wrong_value(
    file: &SourceFile,
    line: u64,
    error: &serde_json::Error,
) -> DataFusionError {
    let text = error.to_string();
    let what = match text.split(" at line ").next().unwrap_or(&text) {
        "invalid unicode code point" => "text that is not UTF-8",
        what => what,
    };
    let line = line + (error.line() as u64).saturating_sub(1);
    exec_datafusion_err!(
        "{}, line {line}: not JSON: {what} (character {}); ignore_errors = true leaves such values out",
        file.name(),
        error.column()
    )
}
