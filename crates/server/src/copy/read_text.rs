//! Reads rows from PostgreSQL's text and CSV, which arrive in pieces of any size.

use std::sync::Arc;

use atoll_sql::arrow::array::{Array, ArrayRef, BinaryViewBuilder, RecordBatch, StringViewBuilder};
use atoll_sql::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use atoll_sql::arrow::error::ArrowError;
use atoll_sql::unescaped;

use super::{BATCH_BYTES, CopyForm, CopyHeader, ROW_MAX, ROWS};
use crate::wire::ErrorFields;

/// Reads rows.
#[derive(Debug)]
pub(crate) struct TextCopyReader {
    form: CopyForm,
    /// For each column whether NULL's text is a value, and whether it is NULL in quotes, too.
    not_null: Vec<bool>,
    null_in_quotes: Vec<bool>,
    columns: Vec<CopyColumn>,
    schema: SchemaRef,
    /// The incomplete row.
    open: Vec<u8>,
    /// Bytes of it that were searched for its end, and whether they end within quotes.
    searched: usize,
    is_quoted: bool,
    rows: usize,
    bytes: usize,
    line: u64,
    has_ended: bool,
    value: Vec<u8>,
}

#[derive(Debug)]
enum CopyColumn {
    Text(StringViewBuilder),
    /// Bytes, written as `\x` and digits.
    Bytes(BinaryViewBuilder),
}

impl TextCopyReader {
    /// Creates a reader for columns of these types.
    pub(super) fn new(form: CopyForm, table: &Schema) -> Self {
        let is_bytes = |field: &Field| {
            matches!(
                field.data_type(),
                DataType::Binary | DataType::LargeBinary | DataType::BinaryView
            )
        };
        let fields = table.fields().iter().map(|field| {
            let of = if is_bytes(field) { DataType::BinaryView } else { DataType::Utf8View };
            Field::new(field.name(), of, true)
        });
        let columns = table.fields().iter().map(|field| match is_bytes(field) {
            true => CopyColumn::Bytes(BinaryViewBuilder::new()),
            false => CopyColumn::Text(StringViewBuilder::new()),
        });
        Self {
            not_null: form.not_null.of_schema(table),
            null_in_quotes: form.null_in_quotes.of_schema(table),
            form,
            columns: columns.collect(),
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            open: Vec::new(),
            searched: 0,
            is_quoted: false,
            rows: 0,
            bytes: 0,
            line: 0,
            has_ended: false,
            value: Vec::new(),
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn push(&mut self, piece: &[u8]) -> Result<Vec<RecordBatch>, ErrorFields> {
        self.open.extend_from_slice(piece);
        let mut batches = Vec::new();
        let (open, mut begin) = (std::mem::take(&mut self.open), 0);
        while let Some(end) = self.line_end(&open, begin) {
            self.row(&open[begin..end])?;
            begin = end + 1;
            self.searched = begin;
            if self.rows >= ROWS || self.bytes >= BATCH_BYTES {
                batches.push(self.batch()?);
            }
        }
        self.open = open;
        self.open.drain(..begin);
        self.searched -= begin;
        if self.open.len() > ROW_MAX {
            return Err(self.failed("a row is longer than 64 MiB"));
        }
        Ok(batches)
    }

    pub(super) fn finish(&mut self) -> Result<Option<RecordBatch>, ErrorFields> {
        if self.is_quoted {
            return Err(self.failed("unterminated CSV quoted field"));
        }
        let last = std::mem::take(&mut self.open);
        if !last.is_empty() {
            self.row(&last)?;
        }
        if self.rows == 0 { Ok(None) } else { self.batch().map(Some) }
    }

    /// The end of the row that starts at `begin`: the end of a line outside of quotes.
    fn line_end(&mut self, open: &[u8], begin: usize) -> Option<usize> {
        let CopyForm { is_csv, quote, escape, .. } = self.form;
        let mut at = self.searched.max(begin);
        while let Some(byte) = open.get(at) {
            if is_csv && self.is_quoted && escape != quote && *byte == escape {
                // The escaped character may still come.
                if at + 1 == open.len() {
                    break;
                }
                at += 2;
                continue;
            }
            if is_csv && *byte == quote {
                self.is_quoted = !self.is_quoted;
            } else if *byte == b'\n' && !self.is_quoted {
                return Some(at);
            }
            at += 1;
        }
        self.searched = at;
        None
    }

    fn row(&mut self, line: &[u8]) -> Result<(), ErrorFields> {
        self.line += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.form.header {
            CopyHeader::Names if self.line == 1 => return Ok(()),
            CopyHeader::Match if self.line == 1 => return self.check_header(line),
            _ => {}
        }
        if self.has_ended || line == b"\\." {
            self.has_ended = true;
            return Ok(());
        }
        let mut columns = std::mem::take(&mut self.columns);
        let read = match self.form.is_csv {
            true => self.csv(line, &mut columns),
            false => self.text(line, &mut columns),
        };
        self.columns = columns;
        self.rows += 1;
        self.bytes += line.len();
        read
    }

    /// Refuses a header line whose names differ from the columns.
    fn check_header(&mut self, line: &[u8]) -> Result<(), ErrorFields> {
        let names = || CopyColumn::Text(StringViewBuilder::new());
        let mut found: Vec<CopyColumn> = self.columns.iter().map(|_| names()).collect();
        match self.form.is_csv {
            true => self.csv(line, &mut found)?,
            false => self.text(line, &mut found)?,
        }
        for (at, (column, wanted)) in found.into_iter().zip(self.schema.fields()).enumerate() {
            let CopyColumn::Text(mut names) = column else { continue };
            let names = names.finish();
            let (found, wanted) = (names.is_valid(0).then(|| names.value(0)), wanted.name());
            if found != Some(wanted) {
                let found = found.map_or("a null value".to_owned(), |name| format!("\"{name}\""));
                return Err(self.failed(&format!(
                    "column name mismatch in header line field {}: got {found}, expected \"{wanted}\"",
                    at + 1
                )));
            }
        }
        Ok(())
    }

    fn text(&mut self, line: &[u8], columns: &mut [CopyColumn]) -> Result<(), ErrorFields> {
        if columns.is_empty() && line.is_empty() {
            return Ok(());
        }
        let (mut rest, mut at) = (Some(line), 0);
        while let Some(line) = rest {
            let column = columns.get_mut(at).ok_or_else(|| self.extra())?;
            let end = value_end(line, self.form.delimiter);
            rest = line.get(end + 1..).filter(|_| end < line.len());
            let raw = &line[..end];
            if raw == self.form.null {
                column.append_null();
            } else {
                column.append(&unescaped(raw)).map_err(|what| self.failed(&what))?;
            }
            at += 1;
        }
        self.check(at, columns.len())
    }

    fn csv(&mut self, line: &[u8], columns: &mut [CopyColumn]) -> Result<(), ErrorFields> {
        let CopyForm { delimiter, quote, escape, .. } = self.form;
        let (mut at, mut count) = (0, 0);
        loop {
            self.value.clear();
            let (mut was_quoted, mut is_quoted) = (false, false);
            while let Some(byte) = line.get(at) {
                let next = line.get(at + 1);
                if is_quoted
                    && *byte == escape
                    && next.is_some_and(|it| *it == quote || *it == escape)
                {
                    self.value.extend(next);
                    at += 2;
                    continue;
                }
                if *byte == quote {
                    is_quoted = !is_quoted;
                    was_quoted = true;
                } else if *byte == delimiter && !is_quoted {
                    break;
                } else {
                    self.value.push(*byte);
                }
                at += 1;
            }
            let column = columns.get_mut(count).ok_or_else(|| self.extra())?;
            let is_null = match was_quoted {
                true => self.null_in_quotes[count],
                false => !self.not_null[count],
            };
            match is_null && self.value == self.form.null {
                true => column.append_null(),
                false => column.append(&self.value).map_err(|what| self.failed(&what))?,
            }
            count += 1;
            if at >= line.len() {
                return self.check(count, columns.len());
            }
            at += 1;
        }
    }

    fn check(&self, found: usize, wanted: usize) -> Result<(), ErrorFields> {
        if found < wanted {
            let name = self.schema.field(found).name();
            return Err(self.failed(&format!("missing data for column \"{name}\"")));
        }
        Ok(())
    }

    fn extra(&self) -> ErrorFields {
        self.failed("extra data after last expected column")
    }

    fn failed(&self, what: &str) -> ErrorFields {
        let mut error = ErrorFields::error("22P04", what);
        error.detail = Some(format!("line {} of the data", self.line));
        error
    }

    fn batch(&mut self) -> Result<RecordBatch, ErrorFields> {
        (self.rows, self.bytes) = (0, 0);
        let columns = self.columns.iter_mut().map(CopyColumn::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        batch.map_err(|error: ArrowError| self.failed(&error.to_string()))
    }
}

impl CopyColumn {
    fn append_null(&mut self) {
        match self {
            Self::Text(values) => values.append_null(),
            Self::Bytes(values) => values.append_null(),
        }
    }

    fn append(&mut self, value: &[u8]) -> Result<(), String> {
        match self {
            Self::Text(values) => match std::str::from_utf8(value) {
                Ok(text) if !text.contains('\0') => values.append_value(text),
                _ => return Err("a value is not UTF-8, or has a zero byte".to_owned()),
            },
            Self::Bytes(values) => match value.strip_prefix(b"\\x") {
                Some(digits) => {
                    let bytes = crate::value::hex(digits);
                    values.append_value(bytes.ok_or("invalid hexadecimal digits of a BLOB")?);
                }
                None => values.append_value(value),
            },
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(values.finish()),
            Self::Bytes(values) => Arc::new(values.finish()),
        }
    }
}

/// The end of a line's first value; a delimiter after a backslash is part of it.
fn value_end(line: &[u8], delimiter: u8) -> usize {
    let mut at = 0;
    while at < line.len() && line[at] != delimiter {
        at += if line[at] == b'\\' { 2 } else { 1 };
    }
    at.min(line.len())
}

#[cfg(test)]
mod tests {
    use atoll_sql::arrow::array::{Array, AsArray};

    use super::*;

    /// The rows of a text that arrives byte by byte, with `|` between values.
    fn rows(form: &CopyForm, columns: usize, text: &str) -> Result<Vec<String>, String> {
        let fields = (0..columns).map(|at| Field::new(format!("c{at}"), DataType::Int32, true));
        let mut reader =
            TextCopyReader::new(form.clone(), &Schema::new(fields.collect::<Vec<_>>()));
        let mut batches = Vec::new();
        for byte in text.as_bytes() {
            batches.extend(reader.push(&[*byte]).map_err(|error| error.message)?);
        }
        batches.extend(reader.finish().map_err(|error| error.message)?);
        let value = |batch: &RecordBatch, at: usize, row: usize| {
            let values = batch.column(at).as_string_view();
            if values.is_null(row) { "NULL".to_owned() } else { values.value(row).to_owned() }
        };
        let row = |batch: &RecordBatch, row| {
            (0..columns).map(|at| value(batch, at, row)).collect::<Vec<_>>().join("|")
        };
        let all = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|at| row(batch, at)));
        Ok(all.collect())
    }

    #[test]
    fn text_is_read_as_by_postgresql() {
        let of = |text| rows(&CopyForm::text(), 2, text);
        assert_eq!(of("1\ta\n2\t\\N\n").expect("rows"), ["1|a", "2|NULL"]);
        assert_eq!(of("1\t\\\\x\\ty\n\\.\nrest").expect("rows"), ["1|\\x\ty"]);
        assert_eq!(of("\\x41\\102\t\\\t\r\n").expect("rows"), ["AB|\t"]);
        assert_eq!(of("1"), Err("missing data for column \"c1\"".to_owned()));
        assert_eq!(of("1\t2\t3\n"), Err("extra data after last expected column".to_owned()));
    }

    #[test]
    fn csv_is_read_as_by_postgresql() {
        let of = |text| rows(&CopyForm::csv(), 2, text);
        assert_eq!(
            of("1,\"a,\"\"b\"\"\nc\"\n2,\n3,\"\"").expect("rows"),
            ["1|a,\"b\"\nc", "2|NULL", "3|"]
        );
        assert!(of("1,\"a").is_err());
        let form = CopyForm { header: CopyHeader::Names, escape: b'\\', ..CopyForm::csv() };
        assert_eq!(rows(&form, 2, "a,b\n1,\"x\\\"y\"\n").expect("rows"), ["1|x\"y"]);
    }

    #[test]
    fn header_match_checks_the_column_names() {
        let csv = CopyForm { header: CopyHeader::Match, ..CopyForm::csv() };
        let text = CopyForm { header: CopyHeader::Match, ..CopyForm::text() };
        assert_eq!(rows(&csv, 2, "c0,\"c1\"\n1,2\n").expect("rows"), ["1|2"]);
        assert_eq!(rows(&text, 2, "c0\tc1\n1\t2\n").expect("rows"), ["1|2"]);
        assert!(rows(&csv, 2, "c0,c1").expect("no rows").is_empty());
        for (line, wanted) in [
            ("c1,c0", "column name mismatch in header line field 1: got \"c1\", expected \"c0\""),
            (
                "c0,",
                "column name mismatch in header line field 2: got a null value, expected \"c1\"",
            ),
            ("c0", "missing data for column \"c1\""),
            ("c0,c1,c2", "extra data after last expected column"),
        ] {
            assert_eq!(rows(&csv, 2, &format!("{line}\n1,2\n")).expect_err(line), wanted);
        }
    }
}
