//! COPY between a table and a client: `COPY t FROM STDIN`, `COPY t TO STDOUT`.
//!
//! | file | what |
//! |---|---|
//! | `statement` | the statement and its options |
//! | `read_text`, `read_binary` | read rows from a format, in pieces of any size |
//! | `write_text`, `write_binary` | write rows in a format |

mod read_binary;
mod read_text;
mod statement;
mod write_binary;
mod write_text;

use atoll_sql::CsvForm;
use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::{Schema, SchemaRef};

use crate::wire::{ErrorFields, Output};
use atoll_sql::{TextDecoder, TextEncoding};
use read_binary::BinaryCopyReader;
use read_text::TextCopyReader;
pub(crate) use statement::{CopyDirection, CopyStatement};
use write_binary::BinaryCopyWriter;

/// The format of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyFormat {
    /// Text or CSV, one line per row.
    Text(CopyForm),
    /// PostgreSQL's binary format.
    Binary,
}

impl CopyFormat {
    /// Refuses options that name other columns than these.
    pub(crate) fn check(&self, schema: &Schema) -> Result<(), ErrorFields> {
        let Self::Text(form) = self else { return Ok(()) };
        form.quoted.check("FORCE_QUOTE", schema)?;
        form.not_null.check("FORCE_NOT_NULL", schema)?;
        form.null_in_quotes.check("FORCE_NULL", schema)
    }

    /// The format's number in the protocol.
    pub(crate) fn code(&self) -> u8 {
        u8::from(*self == Self::Binary)
    }
}

/// The options of text and CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyForm {
    is_csv: bool,
    delimiter: u8,
    /// The representation of NULL.
    null: Vec<u8>,
    /// The kind of the first line.
    header: CopyHeader,
    quote: u8,
    /// The escape before a quote within quotes.
    escape: u8,
    /// The columns whose values are quoted, except NULL: FORCE_QUOTE.
    quoted: ForcedColumns,
    /// The columns without NULL, whose text is a value: FORCE_NOT_NULL.
    not_null: ForcedColumns,
    /// The columns in which quotes around NULL's text do not make it a value: FORCE_NULL.
    null_in_quotes: ForcedColumns,
}

/// The columns that an option such as FORCE_QUOTE names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ForcedColumns {
    None,
    All,
    Named(Vec<String>),
}

impl ForcedColumns {
    /// Whether each column of a schema is among them.
    fn of_schema(&self, schema: &Schema) -> Vec<bool> {
        let is_among = |name: &String| match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.contains(name),
        };
        schema.fields().iter().map(|field| is_among(field.name())).collect()
    }

    /// Refuses names that are not columns of a COPY.
    fn check(&self, option: &str, schema: &Schema) -> Result<(), ErrorFields> {
        let Self::Named(names) = self else { return Ok(()) };
        match names.iter().find(|name| schema.index_of(name).is_err()) {
            Some(name) => {
                let message = format!("{option} column \"{name}\" not referenced by COPY");
                Err(ErrorFields::error("42P10", message))
            }
            None => Ok(()),
        }
    }
}

/// The first line of text and CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyHeader {
    /// A row.
    None,
    /// The column names, which are ignored when reading.
    Names,
    /// The column names, which must match when reading.
    Match,
}

impl CopyForm {
    /// PostgreSQL's text: tabs between values, `\N` for NULL.
    fn text() -> Self {
        let null = b"\\N".to_vec();
        let header = CopyHeader::None;
        Self {
            is_csv: false,
            delimiter: b'\t',
            null,
            header,
            quote: 0,
            escape: 0,
            quoted: ForcedColumns::None,
            not_null: ForcedColumns::None,
            null_in_quotes: ForcedColumns::None,
        }
    }

    /// The delimiter between values.
    fn values(&self) -> CsvForm {
        let Self { delimiter, quote, escape, .. } = *self;
        CsvForm { delimiter, quote, escape, null: self.null.clone() }
    }

    /// PostgreSQL's CSV: an empty value for NULL.
    fn csv() -> Self {
        let null = Vec::new();
        let header = CopyHeader::None;
        Self {
            is_csv: true,
            delimiter: b',',
            null,
            header,
            quote: b'"',
            escape: b'"',
            quoted: ForcedColumns::None,
            not_null: ForcedColumns::None,
            null_in_quotes: ForcedColumns::None,
        }
    }
}

/// Rows per batch.
const ROWS: usize = 8192;

/// Bytes after which a batch ends early.
const BATCH_BYTES: usize = 8 << 20;

/// Bytes of a row, at most.
const ROW_MAX: usize = 64 << 20;

/// Reads rows that a client sends.
#[derive(Debug)]
pub(crate) enum CopyReader {
    /// From text and CSV, which another encoding than UTF-8 needs to be decoded before.
    Text(Box<TextCopyReader>, Option<TextDecoder>),
    /// From the binary format.
    Binary(Box<BinaryCopyReader>),
}

impl CopyReader {
    /// Creates a reader for columns of these types.
    pub(crate) fn new(format: &CopyFormat, table: &Schema, encoding: TextEncoding) -> Self {
        match format {
            CopyFormat::Text(form) => {
                let decoder = (!encoding.is_utf8()).then(|| TextDecoder::new(encoding));
                Self::Text(TextCopyReader::new(form.clone(), table).into(), decoder)
            }
            CopyFormat::Binary => Self::Binary(BinaryCopyReader::new(table, encoding).into()),
        }
    }

    /// The columns of the batches.
    pub(crate) fn schema(&self) -> &SchemaRef {
        match self {
            Self::Text(reader, _) => reader.schema(),
            Self::Binary(reader) => reader.schema(),
        }
    }

    /// Reads a piece; returns the batches that it completes.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<RecordBatch>, ErrorFields> {
        match self {
            Self::Text(reader, None) => reader.push(piece),
            Self::Text(reader, Some(decoder)) => reader.push(decoder.push(piece)?.as_bytes()),
            Self::Binary(reader) => reader.push(piece),
        }
    }

    /// The last rows.
    pub(crate) fn finish(&mut self) -> Result<Option<RecordBatch>, ErrorFields> {
        match self {
            Self::Text(reader, decoder) => {
                if let Some(decoder) = decoder {
                    decoder.finish()?;
                }
                reader.finish()
            }
            Self::Binary(reader) => reader.finish(),
        }
    }
}

/// Writes rows that a client receives.
#[derive(Debug)]
pub(crate) enum CopyWriter {
    /// As text and CSV.
    Text(CopyForm),
    /// In the binary format.
    Binary(BinaryCopyWriter),
}

impl CopyWriter {
    /// Creates a writer for this format.
    pub(crate) fn new(format: &CopyFormat) -> Self {
        match format {
            CopyFormat::Text(form) => Self::Text(form.clone()),
            CopyFormat::Binary => Self::Binary(BinaryCopyWriter::default()),
        }
    }

    /// The output before the rows.
    pub(crate) fn begin(&self, schema: &Schema, output: &mut Output) -> Result<(), ErrorFields> {
        match self {
            Self::Text(form) => write_text::write_header(schema, form, output),
            Self::Binary(_) => Ok(()),
        }
    }

    /// The rows of a batch.
    pub(crate) fn rows(
        &mut self,
        batch: &RecordBatch,
        output: &mut Output,
    ) -> Result<(), ErrorFields> {
        match self {
            Self::Text(form) => write_text::write_rows(batch, form, output),
            Self::Binary(writer) => writer.rows(batch, output),
        }
    }

    /// The output after the rows.
    pub(crate) fn end(&mut self, output: &mut Output) {
        if let Self::Binary(writer) = self {
            writer.end(output);
        }
    }
}
