//! Makes the parts of a table from CSV files.

use std::io::Read;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::config::CsvOptions;
use datafusion::common::{Result, exec_err, plan_datafusion_err, plan_err};
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;

use super::careful::CsvReading;
use super::infer::{ColumnSample, CsvColumn, CsvColumns, twice};
use super::options::{CsvSettings, GivenTypes};
use super::records::{CsvRecord, CsvSyntax};
use super::sniff::sniff;
use crate::amended::OwnOptions;
use crate::source::{FilesPart, PartReader, SourceFile, TypeNames};
use atoll_sql_parse::syntax::FileOptions;

/// Bytes of a file from which its syntax is detected.
const HEAD: u64 = 256 << 10;

/// The syntax and the columns of a file, as `sniff_csv` shows them.
#[derive(Clone, Debug)]
pub(crate) struct SniffedCsv {
    reading: CsvReading,
    has_line_breaks: bool,
    is_unusual: bool,
}

/// The parts of a table: one for all files, or, by name, one for each.
pub(crate) fn parts(
    files: &[SourceFile],
    options: &FileOptions,
    types: &TypeNames<'_>,
    by_name: bool,
) -> Result<Vec<FilesPart>> {
    let settings = CsvSettings::from_options(options)?;
    let mut parts = Vec::new();
    if by_name {
        for file in files {
            parts.extend(parts_of(std::slice::from_ref(file), &settings, types)?);
        }
        return Ok(parts);
    }
    parts_of(files, &settings, types)
}

fn parts_of(
    files: &[SourceFile],
    settings: &CsvSettings,
    types: &TypeNames<'_>,
) -> Result<Vec<FilesPart>> {
    let sniffed = sniffed(files, settings, types)?;
    let schema = Arc::clone(&sniffed.reading.schema);
    if sniffed.needs_care() || sniffed.has_empty_texts(files)? {
        let reader = PartReader::Batches(Arc::new(sniffed.reading));
        return Ok(vec![FilesPart { files: files.to_vec(), schema, reader }]);
    }
    // A DataFusion scan has one compression.
    let runs = files.chunk_by(|a, b| a.compression == b.compression);
    let part = |run: &[SourceFile]| {
        let format = CsvFormat::default().with_options(sniffed.options(run[0].compression));
        let reader = PartReader::Format(super::amended(Arc::new(format), &OwnOptions::default()));
        FilesPart { files: run.to_vec(), schema: Arc::clone(&schema), reader }
    };
    Ok(runs.map(part).collect())
}

impl SniffedCsv {
    fn needs_care(&self) -> bool {
        let reading = &self.reading;
        let one_column = reading.columns.len() == 1;
        let any_format = reading.columns.iter().any(|column| column.format.is_some());
        let is_read = |column: &CsvColumn| {
            matches!(
                column.data_type,
                DataType::Utf8
                    | DataType::Utf8View
                    | DataType::Boolean
                    | DataType::Date32
                    | DataType::Timestamp(_, _)
                    | DataType::Time64(_)
            ) || column.data_type.is_numeric()
        };
        reading.settings.needs_care()
            || self.is_unusual
            || reading.skip > 0
            || one_column
            || any_format
            || reading.syntax.quote.is_none()
            || !reading.columns.iter().all(is_read)
    }

    /// Whether the files distinguish empty values in quotes from NULL, which DataFusion's reader does not.
    fn has_empty_texts(&self, files: &[SourceFile]) -> Result<bool> {
        let settings = &self.reading.settings;
        let is_told =
            |column: &CsvColumn| !settings.quoted_nulls.are_null(column.data_type.is_string());
        let Some(quote) = self.reading.syntax.quote else { return Ok(false) };
        if !self.reading.columns.iter().any(is_told) {
            return Ok(false);
        }
        for file in files {
            if has_twice(file, quote)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same for DataFusion's reader.
    fn options(&self, compression: FileCompressionType) -> CsvOptions {
        let CsvSyntax { delimiter, quote, escape, comment, .. } = self.reading.syntax;
        let mut options = CsvOptions {
            has_header: Some(self.reading.has_header),
            delimiter,
            escape,
            comment,
            compression: *compression.get_variant(),
            ..CsvOptions::default()
        };
        options.quote = quote.unwrap_or(b'"');
        if self.has_line_breaks {
            options.newlines_in_values = Some(true);
        }
        options
    }

    /// The output of `sniff_csv`: names with texts.
    pub(crate) fn shown(&self) -> Vec<(&'static str, String)> {
        let character =
            |byte: Option<u8>| byte.map_or(String::new(), |byte| (byte as char).to_string());
        let CsvSyntax { delimiter, quote, escape, comment, .. } = self.reading.syntax;
        let schema = &self.reading.schema;
        let column = |field: &Arc<Field>| {
            format!("'{}': '{}'", field.name(), super::source::sql_name(field.data_type()))
        };
        let columns: Vec<String> = schema.fields().iter().map(column).collect();
        vec![
            ("delimiter", character(Some(delimiter))),
            ("quote", character(quote)),
            ("escape", character(escape.or(quote))),
            ("comment", character(comment)),
            ("skiprows", self.reading.skip.to_string()),
            ("hasheader", self.reading.has_header.to_string()),
            ("columns", format!("{{{}}}", columns.join(", "))),
        ]
    }
}

/// Detects the syntax and the columns of files.
pub(crate) fn sniffed_by(
    files: &[SourceFile],
    options: &FileOptions,
    types: &TypeNames<'_>,
) -> Result<SniffedCsv> {
    sniffed(files, &CsvSettings::from_options(options)?, types)
}

fn sniffed(
    files: &[SourceFile],
    settings: &CsvSettings,
    types: &TypeNames<'_>,
) -> Result<SniffedCsv> {
    let Some(first) = files.first() else { return exec_err!("no files to read") };
    let head = head(first)?;
    let (syntax, skip) = sniff(&head, settings);
    let mut reading = CsvReading {
        settings: settings.clone(),
        syntax,
        skip: settings.skip.unwrap_or(skip),
        has_header: false,
        columns: Vec::new(),
        schema: Arc::new(Schema::empty()),
    };
    let found = sampled(files, &reading)?;
    let found = match found {
        Some(found) => found,
        None if settings.columns.is_some() || settings.target.is_some() => CsvColumns {
            has_header: false,
            names: Vec::new(),
            columns: Vec::new(),
            is_unusual: false,
            has_line_breaks: false,
        },
        None => {
            return exec_err!("'{}' has no rows, so its columns are unknown", first.name());
        }
    };
    reading.has_header = found.has_header;
    let (names, columns) = declared(&found, settings, types)?;
    if let Some(twice) = twice(&names) {
        return exec_err!(
            "'{}' has two columns named \"{twice}\", which SQL cannot distinguish; name its columns \
             yourself with names = ['…', …], or rename one of them in its first line",
            first.name()
        );
    }
    let field =
        |(name, column): (&String, &CsvColumn)| Field::new(name, column.data_type.clone(), true);
    let fields: Vec<Field> = names.iter().zip(&columns).map(field).collect();
    reading.schema = Arc::new(Schema::new(fields));
    settings.not_null.check("force_not_null", &reading.schema)?;
    settings.forced_null.check("force_null", &reading.schema)?;
    reading.columns = columns;
    let (has_line_breaks, is_unusual) = (found.has_line_breaks, found.is_unusual);
    Ok(SniffedCsv { reading, has_line_breaks, is_unusual })
}

/// Whether a file has a byte twice in a row.
fn has_twice(file: &SourceFile, byte: u8) -> Result<bool> {
    let mut content = file.open_content()?;
    let mut chunk = vec![0; 1 << 20];
    let mut is_last = false;
    loop {
        let read = content.read(&mut chunk).map_err(|error| file.failed(&error))?;
        let chunk = &chunk[..read];
        let Some(last) = chunk.last() else { return Ok(false) };
        let is_over = is_last && chunk[0] == byte;
        if is_over || chunk.windows(2).any(|two| two == [byte, byte]) {
            return Ok(true);
        }
        is_last = *last == byte;
    }
}

/// The beginning of a file, in whole lines.
fn head(file: &SourceFile) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = file.open_content()?.take(HEAD).read_to_end(&mut head);
    if let Err(error) = read
        && head.is_empty()
    {
        return Err(file.failed(&error));
    }
    if head.len() as u64 == HEAD
        && let Some(last) = head.iter().rposition(|byte| *byte == b'\n')
    {
        head.truncate(last + 1);
    }
    Ok(match head.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => rest.to_vec(),
        None => head,
    })
}

/// Reads the first rows of the files.
fn sampled(files: &[SourceFile], reading: &CsvReading) -> Result<Option<CsvColumns>> {
    let settings = &reading.settings;
    let mut sample = ColumnSample::new(settings);
    for (at, file) in files.iter().enumerate().take(settings.sampled_files) {
        let skips_header = at > 0 && sample.has_header();
        let mut records = reading.records(file)?;
        let mut record = CsvRecord::default();
        let mut begun = false;
        while sample.rows() < settings.sample {
            match records.read(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                // A truncated file is reported when it is read to its end.
                Err(_) if begun => break,
                Err(error) => return Err(file.failed(&error)),
            }
            if record.is_blank() {
                continue;
            }
            let is_first = !std::mem::replace(&mut begun, true);
            if is_first && skips_header {
                continue;
            }
            sample.see(&record);
        }
        if sample.rows() >= settings.sample {
            break;
        }
    }
    Ok(sample.columns())
}

/// Names and types: those of the statement, else the inferred ones.
fn declared(
    found: &CsvColumns,
    settings: &CsvSettings,
    types: &TypeNames<'_>,
) -> Result<(Vec<String>, Vec<CsvColumn>)> {
    let column = |name: &str, text: &str| Ok(CsvColumn::new(types.resolve(name, text)?));
    if let Some(target) = &settings.target {
        return Ok(target
            .iter()
            .map(|(name, of)| (name.clone(), CsvColumn::new(of.clone())))
            .unzip());
    }
    if let Some(given) = &settings.columns {
        let names = given.iter().map(|(name, _)| name.clone()).collect();
        let columns: Result<_> = given.iter().map(|(name, text)| column(name, text)).collect();
        return Ok((names, columns?));
    }
    let (mut names, mut columns) = (found.names.clone(), found.columns.clone());
    if settings.names.len() > names.len() {
        return plan_err!(
            "option names has {} names, and the file has {} columns",
            settings.names.len(),
            names.len()
        );
    }
    for (name, given) in names.iter_mut().zip(&settings.names) {
        name.clone_from(given);
    }
    if settings.all_varchar || !settings.auto_detect {
        columns.fill(CsvColumn::text());
    }
    match &settings.types {
        GivenTypes::None => {}
        GivenTypes::Named(given) => {
            for (name, text) in given {
                let at = names.iter().position(|it| it.eq_ignore_ascii_case(name));
                let at = at.ok_or_else(|| {
                    plan_datafusion_err!(
                        "option types names the column '{name}', and the file has {}",
                        names.join(", ")
                    )
                })?;
                columns[at] = column(name, text)?;
            }
        }
        GivenTypes::Listed(given) => {
            if given.len() > columns.len() {
                return plan_err!(
                    "option types has {} types, and the file has {} columns",
                    given.len(),
                    columns.len()
                );
            }
            for (at, text) in given.iter().enumerate() {
                columns[at] = column(&names[at], text)?;
            }
        }
    }
    Ok((names, columns))
}
