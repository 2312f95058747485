//! A chunk: some 100,000 rows of a table as columns, immutable, with a home.

use std::sync::Arc;

use arrow_arith::aggregate;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowNumericType, PrimitiveArray};
use arrow_schema::DataType;
use atoll_placement::NodeBuffer;
use atoll_topology::NodeId;

use super::column::StoredColumn;

/// Rows of a block: the unit of scanning, one batch of the engine.
pub const BLOCK_ROWS: usize = 8192;

/// Rows of a chunk: the unit of placement. 16 blocks make columns of 128 KiB (one byte a row) to
/// 2 MiB (16 bytes a row), so a chunk of a few columns fills huge pages.
pub const CHUNK_ROWS: usize = 16 * BLOCK_ROWS;

/// A chunk and its copies; more than one only under the placement `replicate`.
#[derive(Debug)]
pub struct Chunk {
    /// Number of rows, at least 1.
    pub rows: usize,
    /// Node whose workers scan it; `None` for any node.
    pub owner: Option<NodeId>,
    /// The same rows, once for each home.
    pub copies: Vec<ChunkCopy>,
    /// Statistics of each column.
    pub stats: Vec<ColumnStats>,
    /// Smallest and largest value of each column in each block (blocks × columns).
    pub zones: Vec<Vec<Option<Zone>>>,
    /// Bytes that reading all rows of a column of a block touches (blocks × columns).
    pub block_bytes: Vec<Vec<usize>>,
}

impl Chunk {
    /// Placeholder for a chunk that cannot be read.
    pub(crate) fn empty() -> Self {
        let (copies, stats, zones, block_bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { rows: 0, owner: None, copies, stats, zones, block_bytes }
    }
}

/// One copy of a chunk.
#[derive(Debug)]
pub struct ChunkCopy {
    /// Requested node; `None` under the placement `default`.
    pub wanted: Option<NodeId>,
    /// Node that holds most of its pages, as read from the kernel after loading.
    pub found: Option<NodeId>,
    /// The memory in which all columns lie.
    pub memory: Arc<NodeBuffer>,
    /// Columns by block.
    pub blocks: Vec<Vec<StoredColumn>>,
}

impl ChunkCopy {
    /// The node found, else the requested one.
    pub fn home(&self) -> Option<NodeId> {
        self.found.or(self.wanted)
    }
}

/// Exact statistics of one column of one chunk.
#[derive(Clone, Debug)]
pub struct ColumnStats {
    /// Smallest and largest value in the logical type, one in each array; `None` without values.
    pub bounds: Option<(ArrayRef, ArrayRef)>,
    /// Null rows.
    pub nulls: usize,
    /// Bytes in memory, one copy.
    pub bytes: usize,
    /// Number of distinct values, if a dictionary contains them.
    pub distinct: Option<usize>,
    /// First and last value, when the column is a whole number without nulls that never falls.
    pub rising: Option<(i64, i64)>,
    /// `narrow`, `dictionary` or `plain`, with the stored width.
    pub encoding: String,
}

/// Smallest and largest value of a whole-number column in a block, and whether it has nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
    /// Whether there are nulls.
    pub nulls: bool,
}

/// The array of stored whole numbers of a column. Returns None for other columns.
pub fn whole_numbers(column: &StoredColumn) -> Option<&ArrayRef> {
    match column {
        StoredColumn::Narrow(array) => Some(array),
        StoredColumn::Plain(array) => matches!(
            array.data_type(),
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64
        )
        .then_some(array),
        StoredColumn::Dictionary { .. } => None,
    }
}

/// Whether values of a type are compared as whole numbers in the unit of the type.
pub fn is_whole_number(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
            | DataType::Date32
            | DataType::Date64
            | DataType::Timestamp(_, _)
            | DataType::Decimal128(_, _)
    )
}

/// Calls a generic function with the whole numbers of a column in their stored width.
macro_rules! with_whole_numbers {
    ($column:expr, $call:ident $(, $argument:expr)*) => {{
        let array = $crate::table::chunk::whole_numbers($column)?;
        match array.data_type() {
            DataType::Int8 => $call(array.as_primitive::<Int8Type>() $(, $argument)*),
            DataType::Int16 => $call(array.as_primitive::<Int16Type>() $(, $argument)*),
            DataType::Int32 => $call(array.as_primitive::<Int32Type>() $(, $argument)*),
            _ => $call(array.as_primitive::<Int64Type>() $(, $argument)*),
        }
    }};
}

/// The zone of one column of one block.
pub fn zone(column: &StoredColumn) -> Option<Zone> {
    with_whole_numbers!(column, zone_of)
}

fn zone_of<T: ArrowNumericType>(array: &PrimitiveArray<T>) -> Option<Zone>
where
    T::Native: Into<i64>,
{
    let (min, max) = (aggregate::min(array)?, aggregate::max(array)?);
    Some(Zone { min: min.into(), max: max.into(), nulls: array.null_count() > 0 })
}

/// First and last value of a column whose values never fall, over the blocks of a chunk.
pub(super) fn rising<'a>(blocks: impl Iterator<Item = &'a StoredColumn>) -> Option<(i64, i64)> {
    let mut whole: Option<(i64, i64)> = None;
    for column in blocks {
        let (first, last) = with_whole_numbers!(column, rising_of)?;
        whole = match whole {
            Some((_, before)) if first < before => return None,
            Some((start, _)) => Some((start, last)),
            None => Some((first, last)),
        };
    }
    whole
}

fn rising_of<T: ArrowNumericType>(array: &PrimitiveArray<T>) -> Option<(i64, i64)>
where
    T::Native: Into<i64>,
{
    let values = array.values();
    let rising = array.null_count() == 0 && values.is_sorted();
    rising.then(|| Some(((*values.first()?).into(), (*values.last()?).into())))?
}

/// Row number of the first value at or above `bound` in a rising column of a chunk.
pub fn first_at_least<'a>(
    blocks: impl Iterator<Item = &'a StoredColumn>,
    bound: i64,
) -> Option<usize> {
    let mut rows = 0;
    for column in blocks {
        let below = with_whole_numbers!(column, below_in, bound);
        rows += below;
        if below < column.rows().len() {
            break;
        }
    }
    Some(rows)
}

fn below_in<T: ArrowNumericType>(array: &PrimitiveArray<T>, bound: i64) -> usize
where
    T::Native: Into<i64>,
{
    array.values().partition_point(|value| (*value).into() < bound)
}

/// The value of a whole-number column at a row; the row is not null.
pub fn whole_number_at(column: &StoredColumn, row: usize) -> Option<i64> {
    Some(with_whole_numbers!(column, value_at, row))
}

fn value_at<T: ArrowNumericType>(array: &PrimitiveArray<T>, row: usize) -> i64
where
    T::Native: Into<i64>,
{
    array.value(row).into()
}
