//! Reads rows from PostgreSQL's binary format, which arrive in pieces of any size.
//!
//! ```text
//! PGCOPY\n\xff\r\n\0, flags (4 bytes), length of what follows in the header (4), that
//! number of values (2 bytes), then for each: its length (4) or -1 for NULL, the value          a row
//! -1 (2 bytes)                                                                                 the end
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use atoll_sql::arrow::array::{ArrayRef, RecordBatch};
use atoll_sql::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::temporal::StatementClock;

use super::{BATCH_BYTES, ROW_MAX, ROWS};
use crate::value::{Format, PgType, from_client, parameter, type_of_values};
use crate::wire::ErrorFields;
use atoll_sql::TextEncoding;

/// The signature at the start of the data.
pub(super) const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// Bytes of the header without its extension.
const HEADER: usize = SIGNATURE.len() + 8;

/// The flag for rows with OIDs, which PostgreSQL wrote until version 11.
const WITH_OIDS: u32 = 1 << 16;

/// Reads rows.
#[derive(Debug)]
pub(crate) struct BinaryCopyReader {
    columns: Vec<BinaryColumn>,
    schema: SchemaRef,
    /// Input that is not read yet.
    open: Vec<u8>,
    next: BinaryPart,
    rows: usize,
    bytes: usize,
    /// The number of the next row, from 1.
    row: u64,
    encoding: TextEncoding,
}

/// The next part of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BinaryPart {
    Header,
    Row,
    Nothing,
}

/// The values of a column.
#[derive(Debug)]
struct BinaryColumn {
    /// Their PostgreSQL type.
    oid: u32,
    data_type: DataType,
    values: Vec<ScalarValue>,
}

impl BinaryCopyReader {
    /// Creates a reader for columns of these types.
    pub(super) fn new(table: &Schema, encoding: TextEncoding) -> Self {
        let column = |field: &Arc<Field>| {
            let oid = PgType::of_field(field).oid;
            let data_type = type_of_values(oid, field.data_type());
            BinaryColumn { oid, data_type, values: Vec::new() }
        };
        let columns: Vec<BinaryColumn> = table.fields().iter().map(column).collect();
        let fields = table.fields().iter().zip(&columns);
        let fields = fields.map(|(field, of)| Field::new(field.name(), of.data_type.clone(), true));
        Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            columns,
            open: Vec::new(),
            next: BinaryPart::Header,
            rows: 0,
            bytes: 0,
            row: 1,
            encoding,
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn push(&mut self, piece: &[u8]) -> Result<Vec<RecordBatch>, ErrorFields> {
        self.open.extend_from_slice(piece);
        let (mut open, mut batches) = (std::mem::take(&mut self.open), Vec::new());
        let mut rest = open.as_slice();
        while let Some(behind) = self.part(rest)? {
            self.bytes += rest.len() - behind.len();
            rest = behind;
            if self.rows >= ROWS || self.bytes >= BATCH_BYTES && self.rows > 0 {
                batches.push(self.batch()?);
            }
        }
        let read = open.len() - rest.len();
        open.drain(..read);
        self.open = open;
        if self.open.len() > ROW_MAX {
            return Err(self.failed("a row is longer than 64 MiB"));
        }
        Ok(batches)
    }

    pub(super) fn finish(&mut self) -> Result<Option<RecordBatch>, ErrorFields> {
        // PostgreSQL accepts data without a trailer too.
        if self.next == BinaryPart::Header || !self.open.is_empty() {
            return Err(self.failed("unexpected end of the COPY data"));
        }
        if self.rows == 0 { Ok(None) } else { self.batch().map(Some) }
    }

    /// Reads the next part and returns the rest; None if the part is incomplete.
    fn part<'a>(&mut self, open: &'a [u8]) -> Result<Option<&'a [u8]>, ErrorFields> {
        match self.next {
            BinaryPart::Header => self.header(open),
            BinaryPart::Row => self.row(open),
            BinaryPart::Nothing if open.is_empty() => Ok(None),
            BinaryPart::Nothing => Err(self.failed("received COPY data after its end")),
        }
    }

    fn header<'a>(&mut self, open: &'a [u8]) -> Result<Option<&'a [u8]>, ErrorFields> {
        let seen = open.len().min(SIGNATURE.len());
        if open[..seen] != SIGNATURE[..seen] {
            let error = self.failed("the COPY data does not begin with the signature PGCOPY");
            return Err(error.hint("send the binary format, or omit FORMAT binary"));
        }
        let Some((header, behind)) = open.split_at_checked(HEADER) else { return Ok(None) };
        let field = |at: usize| header[at..].first_chunk().map_or(0, |it| u32::from_be_bytes(*it));
        let (flags, extension) = (field(SIGNATURE.len()), field(SIGNATURE.len() + 4) as usize);
        if flags & WITH_OIDS != 0 {
            return Err(self.failed("COPY data WITH OIDS is not supported"));
        }
        // The lower half of the flags may be ignored.
        if flags >> 16 != 0 {
            return Err(self.failed("unknown critical flags in the header of the COPY data"));
        }
        if extension > ROW_MAX {
            return Err(self.failed("invalid length in the header of the COPY data"));
        }
        let behind = behind.get(extension..);
        if behind.is_some() {
            self.next = BinaryPart::Row;
        }
        Ok(behind)
    }

    fn row<'a>(&mut self, open: &'a [u8]) -> Result<Option<&'a [u8]>, ErrorFields> {
        let Some((count, behind)) = open.split_first_chunk() else { return Ok(None) };
        let (count, wanted) = (i16::from_be_bytes(*count), self.columns.len());
        if count == -1 {
            self.next = BinaryPart::Nothing;
            return Ok(Some(behind));
        }
        if usize::try_from(count) != Ok(wanted) {
            return Err(self.failed(&format!("a row has {count} values, expected {wanted}")));
        }
        let Some((values, behind)) = self.values(behind)? else { return Ok(None) };
        for (at, value) in values.into_iter().enumerate() {
            let column = &mut self.columns[at];
            let value = match value {
                Some(value) if !self.encoding.is_utf8() => {
                    Some(from_client(value, column.oid, Format::Binary, self.encoding)?)
                }
                value => value.map(Cow::Borrowed),
            };
            let (oid, of, clock) = (column.oid, &column.data_type, StatementClock::default());
            match parameter(value.as_deref(), Format::Binary, oid, of, clock) {
                Ok(value) => column.values.push(value),
                Err(error) => {
                    let error = self.error("22P03", &error.to_string());
                    return Err(ErrorFields { detail: self.place(Some(at)), ..error });
                }
            }
        }
        self.rows += 1;
        self.row += 1;
        Ok(Some(behind))
    }

    /// The bytes of a row's values, and the rest; None if the row is incomplete.
    #[expect(clippy::type_complexity, reason = "values and rest, or None")]
    fn values<'a>(
        &self,
        mut open: &'a [u8],
    ) -> Result<Option<(Vec<Option<&'a [u8]>>, &'a [u8])>, ErrorFields> {
        let mut values = Vec::with_capacity(self.columns.len());
        for at in 0..self.columns.len() {
            let Some((length, behind)) = open.split_first_chunk() else { return Ok(None) };
            let length = i32::from_be_bytes(*length);
            let (value, behind) = match usize::try_from(length) {
                Ok(length) if length <= ROW_MAX => match behind.split_at_checked(length) {
                    Some((value, behind)) => (Some(value), behind),
                    None => return Ok(None),
                },
                Err(_) if length == -1 => (None, behind),
                _ => {
                    let error = self.failed(&format!("invalid length of a value: {length}"));
                    return Err(ErrorFields { detail: self.place(Some(at)), ..error });
                }
            };
            values.push(value);
            open = behind;
        }
        Ok(Some((values, open)))
    }

    fn batch(&mut self) -> Result<RecordBatch, ErrorFields> {
        (self.rows, self.bytes) = (0, 0);
        let arrays = self
            .columns
            .iter_mut()
            .map(|column| ScalarValue::iter_to_array(column.values.drain(..)));
        let arrays = arrays.collect::<Result<Vec<ArrayRef>, _>>();
        let arrays = arrays.map_err(|error| self.error("XX000", &error.to_string()))?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        batch.map_err(|error| self.error("XX000", &error.to_string()))
    }

    /// The error for data that is not in the format.
    fn failed(&self, what: &str) -> ErrorFields {
        self.error("22P04", what)
    }

    fn error(&self, state: &'static str, what: &str) -> ErrorFields {
        ErrorFields { detail: self.place(None), ..ErrorFields::error(state, what) }
    }

    /// The current position in the data, for errors.
    fn place(&self, column: Option<usize>) -> Option<String> {
        let name = column.map(|at| format!(", column \"{}\"", self.schema.field(at).name()));
        match self.next {
            BinaryPart::Header => Some("header of the data".to_owned()),
            _ => Some(format!("row {} of the data{}", self.row, name.unwrap_or_default())),
        }
    }
}
