//! Merges rows of several sources in the order of their ids into chunks.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;

use super::super::chunk::{BLOCK_ROWS, Chunk};
use super::super::column::Selection;
use super::super::exact_cast::exact_cast;
use super::super::row::Row;
use super::super::row_ids::RowIds;
use super::super::writer::ChunkWriter;
use super::entry::ChunkEntry;
use super::loose::with_ids;
use super::{Result, Shared};
use crate::ids::RowId;

/// Rows that are collected for chunks.
#[derive(Debug)]
pub(super) struct Merge<'a> {
    shared: &'a Shared,
    ids: Vec<RowId>,
    batches: Vec<RecordBatch>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(shared: &'a Shared) -> Self {
        Self { shared, ids: Vec::new(), batches: Vec::new() }
    }

    /// Adds the rows of an entry except some.
    pub(super) fn take_entry(
        &mut self,
        entry: &ChunkEntry,
        is_left_out: impl Fn(RowId) -> bool,
    ) -> Result<()> {
        let chunk = entry.chunk();
        let blocks = chunk.copies.first().map_or(&[][..], |copy| &copy.blocks);
        for (number, block) in blocks.iter().enumerate() {
            let first = number * BLOCK_ROWS;
            let rows = BLOCK_ROWS.min(chunk.rows - first);
            let is_wanted = |row: &u32| {
                let at = first + *row as usize;
                !entry.is_masked(at) && !is_left_out(entry.ids().at(at))
            };
            let Some(wanted) = Selection::of_rows((0..rows as u32).filter(is_wanted).collect())
            else {
                continue;
            };
            let wanted = match wanted.count() == rows {
                true => Selection::Range { offset: 0, len: rows },
                false => wanted,
            };
            let fields = self.shared.codec.schema().fields().iter().zip(block);
            let columns = fields.map(|(field, column)| column.decode(field.data_type(), &wanted));
            let columns = columns.collect::<std::result::Result<_, ArrowError>>()?;
            let ids = wanted.numbers().into_iter().map(|row| entry.ids().at(first + row as usize));
            self.ids.extend(ids);
            self.push(columns, wanted.count())?;
        }
        let newer = entry.delta().filter(|(id, _)| !is_left_out(*id));
        self.take_rows(newer.map(|(id, row)| (id, row.clone())))
    }

    /// Adds loose rows.
    pub(super) fn take_rows(&mut self, rows: impl Iterator<Item = (RowId, Row)>) -> Result<()> {
        let (ids, rows): (Vec<RowId>, Vec<Row>) = rows.unzip();
        if !rows.is_empty() {
            self.ids.extend(ids);
            self.batches.push(self.shared.codec.decode(&rows)?);
        }
        Ok(())
    }

    /// Adds a batch of the table's columns, whose rows have these ids.
    pub(super) fn take_batch(&mut self, ids: &[RowId], batch: &RecordBatch) -> Result<()> {
        let fields = self.shared.codec.schema().fields();
        if ids.len() != batch.num_rows() || fields.len() != batch.num_columns() {
            let problem = format!(
                "{} ids for {} new rows of {} columns",
                ids.len(),
                batch.num_rows(),
                batch.num_columns()
            );
            return Err(self.shared.misfit(problem));
        }
        let cast = |(field, column): (&arrow_schema::FieldRef, &ArrayRef)| match column.data_type()
            == field.data_type()
        {
            true => Ok(Arc::clone(column)),
            false => exact_cast(column, field.data_type()),
        };
        let columns = fields.iter().zip(batch.columns()).map(cast);
        let columns = columns.collect::<std::result::Result<_, ArrowError>>()?;
        self.ids.extend(ids);
        self.push(columns, ids.len())
    }

    fn push(&mut self, columns: Vec<ArrayRef>, rows: usize) -> Result<()> {
        let schema = Arc::clone(self.shared.codec.schema());
        if let Some(at) = columns
            .iter()
            .zip(schema.fields())
            .position(|(column, field)| !field.is_nullable() && column.logical_null_count() > 0)
        {
            return Err(super::TableError::Null {
                column: schema.field(at).name().clone(),
                table: self.shared.name.to_string(),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        self.batches.push(RecordBatch::try_new_with_options(schema, columns, &options)?);
        Ok(())
    }

    /// Writes all rows in the order of their ids as chunks.
    pub(super) fn finish(
        mut self,
        mut writer: ChunkWriter,
    ) -> Result<impl Iterator<Item = (RowIds, Arc<Chunk>)>> {
        if !self.ids.is_sorted() {
            let mut order: Vec<u32> = (0..self.ids.len() as u32).collect();
            order.sort_unstable_by_key(|at| self.ids[*at as usize]);
            self.ids = order.iter().map(|at| self.ids[*at as usize]).collect();
            let whole = concat_batches(self.shared.codec.schema(), &self.batches)?;
            self.batches = vec![take_record_batch(&whole, &UInt32Array::from(order))?];
        }
        self.batches.iter().try_for_each(|batch| writer.write(batch))?;
        with_ids(self.ids, writer)
    }
}
