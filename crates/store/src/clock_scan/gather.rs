//! The rows that were found, as columns by query.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt32Array, UInt64Array, new_empty_array};
use arrow_schema::DataType;
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;
use arrow_select::take::take;

use super::batch::QueryBatch;
use super::query::QueryNumber;
use crate::table::{BLOCK_ROWS, Selection, StoredColumn, TableError, TableSnapshot, compact_array};

type Result<T> = std::result::Result<T, TableError>;

/// The result of a pass for a query.
#[derive(Clone, Debug)]
pub struct QueryRows {
    /// Whether it is complete.
    pub outcome: RowsOutcome,
    /// The columns of the projection, followed by the ids if they are requested.
    pub columns: Vec<ArrayRef>,
    /// Number of rows.
    pub rows: usize,
}

/// Whether a pass gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOutcome {
    /// All rows that the query wants.
    Whole,
    /// There are more rows than a pass gathers for one query: none are returned.
    TooMany,
}

/// Rows of all queries, column by column.
#[derive(Debug)]
pub(super) struct Gather {
    batch: Arc<QueryBatch>,
    rows_max: usize,
    /// The rows of each query.
    counts: Vec<usize>,
    columns: Vec<GatheredColumn>,
    ids: GatheredColumn,
}

/// Values of a column for the queries that read it.
#[derive(Debug, Default)]
struct GatheredColumn {
    parts: Vec<ArrayRef>,
    /// The query of each value.
    queries: Vec<QueryNumber>,
}

impl Gather {
    pub(super) fn new(batch: Arc<QueryBatch>, rows_max: usize) -> Self {
        let columns = batch.schema.fields().iter().map(|_| GatheredColumn::default()).collect();
        let counts = vec![0; batch.len()];
        Self { batch, rows_max, counts, columns, ids: GatheredColumn::default() }
    }

    /// Takes rows of a chunk; those of each query are in rising order.
    pub(super) fn take(
        &mut self,
        snapshot: &TableSnapshot,
        chunk: usize,
        blocks: &[Vec<StoredColumn>],
        pairs: &[(QueryNumber, u32)],
    ) -> Result<()> {
        let mut wanted: Vec<Vec<(QueryNumber, u32)>> = vec![Vec::new(); self.columns.len()];
        let mut ids: Vec<u64> = Vec::new();
        for pair @ (number, row) in pairs {
            let query = &self.batch.queries[*number as usize];
            let count = &mut self.counts[*number as usize];
            *count += 1;
            if *count > self.rows_max {
                continue;
            }
            query.columns.iter().for_each(|column| wanted[*column].push(*pair));
            if query.with_ids {
                ids.push(snapshot.row_ids(chunk).at(*row as usize).get());
                self.ids.queries.push(*number);
            }
        }
        if !ids.is_empty() {
            self.ids.parts.push(Arc::new(UInt64Array::from(ids)));
        }
        for (column, pairs) in wanted.iter().enumerate().filter(|(_, pairs)| !pairs.is_empty()) {
            let logical = snapshot.schema.field(column).data_type();
            let gathered = &mut self.columns[column];
            gathered.parts.push(decoded(blocks, column, logical, pairs)?);
            gathered.queries.extend(pairs.iter().map(|(query, _)| *query));
        }
        Ok(())
    }

    /// The rows of each query, in the order of the batch, and their size in bytes.
    pub(super) fn finish(self) -> Result<(Vec<QueryRows>, u64)> {
        let count = self.batch.len();
        let columns = self.columns.into_iter().map(|column| column.by_query(count));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let ids = self.ids.by_query(count)?;
        let bytes = columns.iter().chain([&ids]).map(ValuesByQuery::memory_bytes).sum();
        let schema = &self.batch.schema;
        let queries = self.batch.queries.iter().enumerate().map(|(number, query)| {
            let rows = self.counts[number];
            if rows > self.rows_max {
                let outcome = RowsOutcome::TooMany;
                return QueryRows { outcome, columns: Vec::new(), rows: 0 };
            }
            let own = query.projection.iter().map(|column| {
                columns[*column].values_of(number, schema.field(*column).data_type())
            });
            let id = query.with_ids.then(|| ids.values_of(number, &DataType::UInt64));
            let columns = own.chain(id).collect();
            QueryRows { outcome: RowsOutcome::Whole, columns, rows }
        });
        Ok((queries.collect(), bytes))
    }
}

impl GatheredColumn {
    /// The values, grouped by query, in the order in which they arrived.
    fn by_query(self, count: usize) -> Result<ValuesByQuery> {
        let mut starts = vec![0_u32; count + 1];
        self.queries.iter().for_each(|query| starts[*query as usize + 1] += 1);
        for query in 0..count {
            starts[query + 1] += starts[query];
        }
        let mut next = starts.clone();
        let mut order = vec![0_u32; self.queries.len()];
        for (at, query) in (0..).zip(&self.queries) {
            let place = &mut next[*query as usize];
            order[*place as usize] = at;
            *place += 1;
        }
        let parts: Vec<&dyn Array> = self.parts.iter().map(AsRef::as_ref).collect();
        let values = match &parts[..] {
            [] => None,
            parts => Some(take(&concat(parts)?, &UInt32Array::from(order), None)?),
        };
        Ok(ValuesByQuery { values, starts })
    }
}

/// Values of a column, grouped by query.
struct ValuesByQuery {
    values: Option<ArrayRef>,
    /// Where the values of each query start.
    starts: Vec<u32>,
}

impl ValuesByQuery {
    fn memory_bytes(&self) -> u64 {
        self.values.as_ref().map_or(0, |values| values.get_array_memory_size() as u64)
    }

    fn values_of(&self, query: usize, data_type: &DataType) -> ArrayRef {
        let (start, end) = (self.starts[query] as usize, self.starts[query + 1] as usize);
        match &self.values {
            Some(values) => values.slice(start, end - start),
            None => new_empty_array(data_type),
        }
    }
}

/// Values of rows of a chunk in their logical type.
fn decoded(
    blocks: &[Vec<StoredColumn>],
    column: usize,
    logical: &DataType,
    pairs: &[(QueryNumber, u32)],
) -> Result<ArrayRef> {
    let stored: Vec<&dyn Array> =
        blocks.iter().map(|block| block[column].rows().as_ref()).collect();
    let place = |(_, row): &(QueryNumber, u32)| {
        let row = *row as usize;
        (row / BLOCK_ROWS, row % BLOCK_ROWS)
    };
    let places: Vec<(usize, usize)> = pairs.iter().map(place).collect();
    let rows = interleave(&stored, &places)?;
    let all = Selection::Range { offset: 0, len: rows.len() };
    let gathered = match &blocks[0][column] {
        StoredColumn::Plain(_) => return Ok(compact_array(&rows)),
        StoredColumn::Narrow(_) => StoredColumn::Narrow(rows),
        StoredColumn::Dictionary { values, .. } => {
            StoredColumn::Dictionary { codes: rows, values: Arc::clone(values) }
        }
    };
    Ok(compact_array(&gathered.decode(logical, &all)?))
}
