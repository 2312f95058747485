//! From Arrow to rows and keys and back.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, SchemaRef};

use super::super::column::{Selection, StoredColumn};
use super::super::error::TableError;
use super::super::exact_cast::exact_cast;
use super::super::float::{canonical, canonical_float32, canonical_float64, has_floats};
use super::computed::ComputedKey;
use super::read::Sink;
use super::shape::{Cursor, Presence, Shape, can_convert, plain_type};
use super::write::{Source, write_bytes, write_present};
use super::{Key, Row};

type Result<T> = std::result::Result<T, TableError>;

/// Converts batches to rows and keys, and rows to batches, for the columns of one table.
#[derive(Debug)]
pub struct RowCodec {
    schema: SchemaRef,
    pub(super) columns: Vec<Column>,
    /// Keys that are more than columns; their numbers follow those of the columns.
    pub(super) computed: Vec<Option<ComputedKey>>,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) logical: DataType,
    /// The type in which it is written; see [`plain_type`].
    pub(super) plain: DataType,
    pub(super) shape: Shape,
    pub(super) has_floats: bool,
}

impl Column {
    pub(super) fn is_plain(&self) -> bool {
        self.logical == self.plain
    }

    /// The array in the type in which it is written, floats in their canonical form.
    pub(super) fn prepared(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let logical = match *array.data_type() == self.logical {
            true => Arc::clone(array),
            false => exact_cast(array, &self.logical)?,
        };
        let plain = if self.is_plain() { logical } else { cast(&logical, &self.plain)? };
        Ok(if self.has_floats { canonical(&plain)? } else { plain })
    }
}

impl RowCodec {
    /// A codec for rows of these stored types.
    ///
    /// # Errors
    /// [`TableError::Unsupported`] for the first column whose type a row cannot hold (unions).
    pub fn new(schema: &SchemaRef) -> Result<Self> {
        let column = |field: &arrow_schema::FieldRef| -> Result<Column> {
            let (logical, plain) = (field.data_type(), plain_type(field.data_type()));
            let shape = Shape::try_from_type(&plain).filter(|_| can_convert(logical, &plain));
            let shape = shape.ok_or_else(|| TableError::Unsupported {
                column: field.name().clone(),
                data_type: logical.clone(),
            })?;
            let has_floats = has_floats(&plain);
            Ok(Column { logical: logical.clone(), plain, shape, has_floats })
        };
        let columns = schema.fields().iter().map(column).collect::<Result<_>>()?;
        Ok(Self { schema: Arc::clone(schema), columns, computed: Vec::new() })
    }

    /// The columns of its rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of a batch with the columns of the table, in its order; their values are cast to the
    /// table's types.
    ///
    /// # Errors
    /// [`TableError::Values`] for a batch with another number of columns, and for values that cannot be cast.
    pub fn encode(&self, batch: &RecordBatch) -> Result<Vec<Row>> {
        self.check_width(batch)?;
        let each = self.columns.iter().zip(batch.columns());
        let arrays = each.map(|(c, array)| c.prepared(array)).collect::<Result<Vec<_>>>()?;
        let sources: Vec<Source<'_>> = arrays.iter().map(Source::new).collect();
        let mut bytes = Vec::new();
        let row = |row| {
            bytes.clear();
            write_present(sources.len(), |at| (&sources[at], row), &mut bytes);
            Row::from_bytes(&bytes)
        };
        Ok((0..batch.num_rows()).map(row).collect())
    }

    fn check_width(&self, batch: &RecordBatch) -> Result<()> {
        let (found, wanted) = (batch.num_columns(), self.columns.len());
        if found == wanted {
            return Ok(());
        }
        let problem = format!("rows of {found} columns for a table of {wanted}");
        Err(arrow_schema::ArrowError::SchemaError(problem).into())
    }

    /// The row of a block of a chunk.
    pub(in crate::table) fn encode_stored(
        &self,
        block: &[StoredColumn],
        row: usize,
    ) -> Result<Row> {
        let mut bytes = vec![0; block.len().div_ceil(8)];
        for (at, column) in self.columns.iter().enumerate() {
            if column.write_stored(&block[at], row, &mut bytes)? {
                bytes[at / 8] |= 1 << (at % 8);
            }
        }
        Ok(Row::from_bytes(&bytes))
    }

    /// The key of a row of a block of a chunk. Returns None if one of its columns is NULL.
    pub(in crate::table) fn key_stored(
        &self,
        block: &[StoredColumn],
        row: usize,
        columns: &[usize],
    ) -> Result<Option<Key>> {
        if let Some(computed) = self.computed_of(columns) {
            return self.computed_key_stored(block, row, computed);
        }
        let mut bytes = Vec::new();
        for at in columns {
            if !self.columns[*at].write_stored(&block[*at], row, &mut bytes)? {
                return Ok(None);
            }
        }
        Ok(Some(Key(bytes.into())))
    }

    /// Calls `take` with the keys of the first rows of a block, those without NULL, and their rows.
    pub(in crate::table) fn each_key_stored(
        &self,
        block: &[StoredColumn],
        rows: usize,
        columns: &[usize],
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        if let Some(computed) = self.computed_of(columns) {
            return self.each_computed_key_stored(block, rows, computed, take);
        }
        let decoded = columns.iter().map(|at| self.columns[*at].decoded(&block[*at], rows));
        let decoded = decoded.collect::<Result<Vec<_>>>()?;
        let sources = columns.iter().zip(&decoded);
        let sources = sources.map(|(at, decoded)| self.columns[*at].source(&block[*at], decoded));
        let sources: Vec<Source<'_>> = sources.collect();
        let mut key = Vec::new();
        for row in (0..rows).filter(|row| sources.iter().all(|source| source.has(*row))) {
            key.clear();
            sources.iter().for_each(|source| source.write(row, &mut key));
            take(row, &key);
        }
        Ok(())
    }

    /// The batch of these rows.
    ///
    /// # Errors
    /// [`TableError::DamagedRow`], [`TableError::Values`] where the bytes are not rows of this table.
    pub fn decode(&self, rows: &[Row]) -> Result<RecordBatch> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        self.decode_columns(rows, &all)
    }

    /// Some columns of these rows, in the order of `projection`.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), for the columns read: values after the last requested column are not checked.
    pub fn decode_columns(&self, rows: &[Row], projection: &[usize]) -> Result<RecordBatch> {
        let columns = self.decode_arrays(rows, projection)?;
        let schema = match projection.iter().copied().eq(0..self.columns.len()) {
            true => Arc::clone(&self.schema),
            false => Arc::new(self.schema.project(projection)?),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// The same without a schema, for callers that have one.
    ///
    /// # Errors
    /// As [`decode_columns`](Self::decode_columns).
    pub fn decode_arrays(&self, rows: &[Row], projection: &[usize]) -> Result<Vec<ArrayRef>> {
        let open = rows.iter().enumerate().map(|(at, row)| self.open(row, at));
        let mut open = open.collect::<Result<Vec<_>>>()?;
        let end = projection.iter().map(|at| at + 1).max().unwrap_or(0);
        let mut arrays: Vec<Option<ArrayRef>> = vec![None; end];
        for (at, array) in arrays.iter_mut().enumerate() {
            match projection.contains(&at) {
                true => *array = Some(self.read(at, &mut open)?),
                false => self.skip(at, &mut open)?,
            }
        }
        let rest = open.iter().position(|(_, cursor)| !cursor.0.is_empty());
        if let (Some(row), true) = (rest, end == self.columns.len()) {
            return Err(TableError::DamagedRow {
                row,
                problem: "it has bytes after its last column".into(),
            });
        }
        Ok(projection.iter().filter_map(|at| arrays[*at].clone()).collect())
    }

    fn open<'r>(&self, row: &'r Row, at: usize) -> Result<(Presence<'r>, Cursor<'r>)> {
        let mut cursor = Cursor(row.as_bytes());
        match cursor.presence(self.columns.len()) {
            Some(presence) => Ok((presence, cursor)),
            None => Err(TableError::DamagedRow {
                row: at,
                problem: format!("its null bits do not match {} columns", self.columns.len()),
            }),
        }
    }

    fn read(&self, at: usize, rows: &mut [(Presence<'_>, Cursor<'_>)]) -> Result<ArrayRef> {
        let column = &self.columns[at];
        let mut sink = Sink::new(&column.plain, rows.len());
        for (row, (presence, cursor)) in rows.iter_mut().enumerate() {
            let pushed = sink.push_if(presence.has(at), cursor);
            pushed.ok_or_else(|| self.damaged(row, at))?;
        }
        let plain = sink.finish()?;
        let plain = if column.has_floats { canonical(&plain)? } else { plain };
        Ok(if column.is_plain() { plain } else { cast(&plain, &column.logical)? })
    }

    fn skip(&self, at: usize, rows: &mut [(Presence<'_>, Cursor<'_>)]) -> Result<()> {
        for (row, (presence, cursor)) in rows.iter_mut().enumerate() {
            if presence.has(at) {
                let skipped = cursor.skip(&self.columns[at].shape);
                skipped.ok_or_else(|| self.damaged(row, at))?;
            }
        }
        Ok(())
    }

    pub(super) fn damaged(&self, row: usize, at: usize) -> TableError {
        let field = self.schema.field(at);
        TableError::DamagedRow {
            row,
            problem: format!(
                "column '{}' does not hold a value of type {}",
                field.name(),
                field.data_type()
            ),
        }
    }

    /// The key of a row. Returns None if one of its columns is NULL, or if the row is damaged.
    pub fn key(&self, row: &Row, columns: &[usize]) -> Option<Key> {
        if let Some(computed) = self.computed_of(columns) {
            return self.computed_key(row, computed);
        }
        let mut cursor = Cursor(row.as_bytes());
        let presence = cursor.presence(self.columns.len())?;
        let end = columns.iter().max()? + 1;
        let mut parts: Vec<&[u8]> = vec![&[]; end];
        for (at, part) in parts.iter_mut().enumerate() {
            let before = cursor.0;
            if presence.has(at) {
                cursor.skip(&self.columns[at].shape)?;
            } else if columns.contains(&at) {
                return None;
            }
            *part = &before[..before.len() - cursor.0.len()];
        }
        let bytes: Vec<u8> = columns.iter().flat_map(|at| parts[*at]).copied().collect();
        Some(Key(bytes.into()))
    }

    /// The bytes of each value of a row, which [`RowBuilder`] accepts unchanged. Returns None if the row is damaged.
    pub fn values<'r>(&self, row: &'r Row) -> Option<Vec<Option<&'r [u8]>>> {
        let mut cursor = Cursor(row.as_bytes());
        let presence = cursor.presence(self.columns.len())?;
        let mut value = |(at, column): (usize, &Column)| {
            if !presence.has(at) {
                return Some(None);
            }
            let before = cursor.0;
            cursor.skip(&column.shape)?;
            Some(Some(&before[..before.len() - cursor.0.len()]))
        };
        self.columns.iter().enumerate().map(&mut value).collect()
    }

    /// A key as PostgreSQL writes it in errors, `(a, b)=(1, x)`; without the values if they are not a
    /// key of these columns.
    pub fn describe_key(&self, key: &Key, columns: &[usize]) -> String {
        self.describe_key_of(key, columns, &self.names_of(columns))
    }

    /// The same with other column names.
    pub(crate) fn describe_key_of(&self, key: &Key, columns: &[usize], names: &[&str]) -> String {
        let values = self.key_values(key.as_bytes(), columns, &|_| false).unwrap_or_default();
        format!("({})=({})", names.join(", "), values.join(", "))
    }

    /// The same of a key of `NULLS NOT DISTINCT`.
    pub(crate) fn describe_key_with_nulls(
        &self,
        key: &Key,
        columns: &[usize],
        names: &[&str],
    ) -> String {
        let values = key.split_nulls(columns.len()).and_then(|(values, nulls)| {
            self.key_values(values, columns, &|place| nulls.has(place))
        });
        format!("({})=({})", names.join(", "), values.unwrap_or_default().join(", "))
    }

    /// The names of columns.
    pub(crate) fn names_of(&self, columns: &[usize]) -> Vec<&str> {
        columns.iter().map(|at| self.schema.field(*at).name().as_str()).collect()
    }

    fn key_values(
        &self,
        key: &[u8],
        columns: &[usize],
        is_null: &dyn Fn(usize) -> bool,
    ) -> Option<Vec<String>> {
        let mut cursor = Cursor(key);
        let value = |(place, at): (usize, &usize)| {
            if is_null(place) {
                return Some("null".to_owned());
            }
            let mut sink = Sink::new(&self.columns[*at].plain, 1);
            sink.push(&mut cursor)?;
            array_value_to_string(&sink.finish().ok()?, 0).ok()
        };
        let values = columns.iter().enumerate().map(value).collect::<Option<_>>()?;
        cursor.0.is_empty().then_some(values)
    }

    /// The values of keys of these columns, an array for each column.
    ///
    /// # Errors
    /// [`TableError::DamagedRow`] for bytes that are not such a key.
    pub(in crate::table) fn values_of_keys(
        &self,
        keys: &[&Key],
        columns: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        let sinks = columns.iter().map(|at| Sink::new(&self.columns[*at].plain, keys.len()));
        let mut sinks: Vec<Sink> = sinks.collect();
        for (row, key) in keys.iter().enumerate() {
            let mut cursor = Cursor(key.as_bytes());
            for (sink, at) in sinks.iter_mut().zip(columns) {
                sink.push(&mut cursor).ok_or_else(|| self.damaged(row, *at))?;
            }
        }
        let logical = |(sink, at): (Sink, &usize)| {
            let column = &self.columns[*at];
            let plain = sink.finish()?;
            Ok(if column.is_plain() { plain } else { cast(&plain, &column.logical)? })
        };
        sinks.into_iter().zip(columns).map(logical).collect()
    }

    /// The keys of the rows of a batch with the columns of the table, which are cast to the table's types.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn keys_of(&self, batch: &RecordBatch, columns: &[usize]) -> Result<Vec<Option<Key>>> {
        if self.computed_of(columns).is_some() {
            let rows = self.encode(batch)?;
            return Ok(rows.iter().map(|row| self.key(row, columns)).collect());
        }
        self.check_width(batch)?;
        let values: Vec<_> = columns.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        self.keys_of_values(columns, &values)
    }

    /// The keys with these values, an array for each column of the key; they are cast to the types of
    /// the columns. For a lookup, arrays of one row; [`KeyBuilder`] makes one key without arrays.
    ///
    /// # Errors
    /// [`TableError::Values`] for values that cannot be cast.
    pub fn keys_of_values(
        &self,
        columns: &[usize],
        values: &[ArrayRef],
    ) -> Result<Vec<Option<Key>>> {
        let each = columns.iter().zip(values);
        let arrays = each.map(|(at, array)| self.columns[*at].prepared(array));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let sources: Vec<Source<'_>> = arrays.iter().map(Source::new).collect();
        let key = |row| {
            let mut bytes = Vec::new();
            for source in &sources {
                if !source.has(row) {
                    return None;
                }
                source.write(row, &mut bytes);
            }
            Some(Key(bytes.into()))
        };
        Ok((0..arrays.first().map_or(0, |array| array.len())).map(key).collect())
    }
}

impl Column {
    /// Writes the value of a row of a block. Returns false if it is NULL.
    pub(super) fn write_stored(
        &self,
        stored: &StoredColumn,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let decoded;
        let (source, row) = if self.is_plain() {
            (Source::stored(stored, &self.logical), row)
        } else {
            let one = Selection::Range { offset: row, len: 1 };
            decoded = self.prepared(&stored.decode(&self.logical, &one)?)?;
            (Source::new(&decoded), 0)
        };
        let is_there = source.has(row);
        if is_there {
            source.write(row, out);
        }
        Ok(is_there)
    }
}

/// Builds one row from values, in the order of the columns and in their types.
#[derive(Debug)]
pub struct RowBuilder {
    /// The null bits, then the values.
    bytes: KeyBuilder,
    column: usize,
}

impl RowBuilder {
    /// A row with this many columns.
    pub fn new(columns: usize) -> Self {
        Self { bytes: KeyBuilder(vec![0; columns.div_ceil(8)]), column: 0 }
    }

    /// Adds NULL for the next column.
    pub fn null(&mut self) {
        self.column += 1;
    }

    /// Adds the value of the next column, encoded as in a key.
    pub fn value(&mut self) -> &mut KeyBuilder {
        self.bytes.0[self.column / 8] |= 1 << (self.column % 8);
        self.column += 1;
        &mut self.bytes
    }

    /// The row.
    pub fn finish(self) -> Row {
        Row::from_bytes(&self.bytes.0)
    }
}

/// Builds one key from values, in the order of the key's columns and in the columns' types.
#[derive(Debug, Default)]
pub struct KeyBuilder(Vec<u8>);

impl KeyBuilder {
    /// A boolean.
    pub fn boolean(&mut self, value: bool) {
        self.0.push(value.into());
    }

    /// A number, date, time, interval or decimal in the width of its column, the lowest byte first, or bytes
    /// of a fixed size. Floats have methods of their own.
    pub fn fixed(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// A string, or bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        write_bytes(bytes, &mut self.0);
    }

    /// A `Float32`.
    pub fn float32(&mut self, value: f32) {
        self.0.extend(canonical_float32(value).to_le_bytes());
    }

    /// A `Float64`.
    pub fn float64(&mut self, value: f64) {
        self.0.extend(canonical_float64(value).to_le_bytes());
    }

    /// The key.
    pub fn finish(self) -> Key {
        Key(self.0.into())
    }
}
