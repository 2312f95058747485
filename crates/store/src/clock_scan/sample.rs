//! The selectivity of tests, estimated from some rows of the table.

use std::ops::Bound;

use arrow_schema::DataType;

use super::query::{ColumnTest, NumberTest, TextTest, is_number};
use super::values::BlockColumn;
use crate::table::{BLOCK_ROWS, TableSnapshot};

/// Number of rows sampled.
const SAMPLE_ROWS: usize = 8192;

/// Values of some rows, by column. It stays good enough while rows come and go: it affects how fast
/// a batch is answered, never the answer.
#[derive(Clone, Debug)]
pub struct ColumnSamples {
    columns: Vec<ColumnSample>,
    rows: usize,
}

#[derive(Clone, Debug)]
enum ColumnSample {
    Numbers(SortedSample<i64>),
    Text(SortedSample<Box<str>>),
    /// Of another type.
    Other,
}

/// Values of the sampled rows.
#[derive(Clone, Debug)]
struct SortedSample<V> {
    /// In rising order; without NULL.
    values: Vec<V>,
    rows: usize,
    /// The estimated share of rows with a value that is not among them.
    unseen_share: f64,
}

impl ColumnSamples {
    /// Samples rows that are spread over the table.
    pub fn from_snapshot(snapshot: &TableSnapshot) -> Self {
        let positions = positions(snapshot);
        let columns = snapshot.schema.fields().iter().enumerate();
        let columns =
            columns.map(|(at, field)| sample(snapshot, &positions, at, field.data_type()));
        Self { columns: columns.collect(), rows: snapshot.rows }
    }

    /// Number of rows of the table when the sample was taken.
    pub fn table_rows(&self) -> usize {
        self.rows
    }

    /// The share of rows that pass, above zero.
    pub(super) fn share(&self, column: usize, test: &ColumnTest) -> f64 {
        let rest = match &self.columns[column] {
            ColumnSample::Numbers(sample) => share_of_numbers(sample, test),
            ColumnSample::Text(sample) => share_of_text(sample, test),
            ColumnSample::Other => 0.5,
        };
        rest.max(1.0 / (2 * self.rows.max(1)) as f64)
    }
}

/// Blocks (chunk, block) with the step at which their rows are sampled.
fn positions(snapshot: &TableSnapshot) -> Vec<(usize, usize)> {
    let stored: usize = snapshot.chunks.iter().map(|chunk| chunk.rows).sum();
    let step = (stored / SAMPLE_ROWS).max(1);
    let mut positions = Vec::with_capacity(SAMPLE_ROWS);
    let mut next = step / 2;
    for (number, chunk) in snapshot.chunks.iter().enumerate() {
        while next < chunk.rows {
            positions.push((number, next));
            next += step;
        }
        next -= chunk.rows;
    }
    positions
}

fn sample(
    snapshot: &TableSnapshot,
    positions: &[(usize, usize)],
    column: usize,
    data_type: &DataType,
) -> ColumnSample {
    let values = positions.iter().filter_map(|(chunk, row)| {
        let block = snapshot.chunks[*chunk].copies.first()?.blocks.get(row / BLOCK_ROWS)?;
        Some((BlockColumn::new(&block[column]), row % BLOCK_ROWS))
    });
    let rows = positions.len();
    if is_number(data_type) {
        let keys = values.filter_map(|(column, row)| column.key(row)).collect();
        ColumnSample::Numbers(SortedSample::from_values(keys, rows))
    } else if *data_type == DataType::Utf8View {
        let texts = values.filter_map(|(column, row)| column.text(row).map(Box::from)).collect();
        ColumnSample::Text(SortedSample::from_values(texts, rows))
    } else {
        ColumnSample::Other
    }
}

impl<V: Ord> SortedSample<V> {
    fn from_values(mut values: Vec<V>, rows: usize) -> Self {
        values.sort_unstable();
        // Far less than one row of the sample if all its values differ.
        let repeats = values.windows(2).filter(|pair| pair[0] == pair[1]).count();
        let common = (repeats + 1) as f64 / (values.len() + 1) as f64;
        Self { values, rows, unseen_share: common / (2 * rows.max(1)) as f64 }
    }

    /// The share of rows that this many rows of the sample represent.
    fn share(&self, found: usize) -> f64 {
        match found {
            0 => self.unseen_share,
            found => found as f64 / self.rows.max(1) as f64,
        }
    }

    /// The share of rows between the first value that is not `below` and the first that is `above`.
    fn between(&self, below: impl Fn(&V) -> bool, above: impl Fn(&V) -> bool) -> f64 {
        let first = self.values.partition_point(below);
        let behind = self.values.partition_point(|value| !above(value));
        self.share(behind.saturating_sub(first))
    }

    fn nulls(&self) -> f64 {
        self.share(self.rows - self.values.len())
    }
}

fn share_of_numbers(sample: &SortedSample<i64>, test: &ColumnTest) -> f64 {
    let between = |low: i64, high: i64| sample.between(|key| *key < low, |key| *key > high);
    match test {
        ColumnTest::Number(NumberTest::In(wanted)) => {
            wanted.iter().map(|key| between(*key, *key)).sum()
        }
        ColumnTest::Number(NumberTest::NotIn(_)) | ColumnTest::Null(false) => 1.0,
        ColumnTest::Number(NumberTest::Between(low, high)) => between(*low, *high),
        ColumnTest::Null(true) => sample.nulls(),
        ColumnTest::Text(_) => 0.0,
    }
}

fn share_of_text(sample: &SortedSample<Box<str>>, test: &ColumnTest) -> f64 {
    match test {
        ColumnTest::Text(TextTest::In(wanted)) => {
            wanted.iter().map(|text| sample.between(|v| v < text, |v| v > text)).sum()
        }
        ColumnTest::Text(TextTest::NotIn(_)) | ColumnTest::Null(false) => 1.0,
        ColumnTest::Text(TextTest::Between(low, high)) => sample.between(
            |value| match low {
                Bound::Included(low) => value < low,
                Bound::Excluded(low) => value <= low,
                Bound::Unbounded => false,
            },
            |value| match high {
                Bound::Included(high) => value > high,
                Bound::Excluded(high) => value >= high,
                Bound::Unbounded => false,
            },
        ),
        ColumnTest::Text(TextTest::Prefix(prefix)) => sample.between(
            |value| **value < **prefix,
            |value| **value > **prefix && !value.starts_with(&**prefix),
        ),
        ColumnTest::Null(true) => sample.nulls(),
        ColumnTest::Number(_) => 0.0,
    }
}
