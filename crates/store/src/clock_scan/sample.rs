//! How many rows pass a test, as told by some rows of the table.

use arrow_schema::DataType;

use super::query::{ColumnTest, NumberTest, TextTest, is_number};
use super::values::BlockColumn;
use crate::table::{BLOCK_ROWS, TableSnapshot};

/// Rows that are looked at.
const SAMPLE_ROWS: usize = 1024;

/// Values of some rows, by column. It stays good enough while rows come and go: what it says decides how fast
/// a batch is answered, never what the answer is.
#[derive(Clone, Debug)]
pub struct ColumnSamples {
    columns: Vec<ColumnSample>,
    rows: usize,
}

#[derive(Clone, Debug)]
enum ColumnSample {
    /// Keys, rising.
    Numbers { keys: Vec<i64>, rows: usize },
    /// Strings, rising.
    Text { values: Vec<Box<str>>, rows: usize },
    /// Of another type.
    Other,
}

impl ColumnSamples {
    /// Of rows that are spread over the table.
    pub fn of(snapshot: &TableSnapshot) -> Self {
        let positions = positions(snapshot);
        let columns = snapshot.schema.fields().iter().enumerate();
        let columns =
            columns.map(|(at, field)| sample(snapshot, &positions, at, field.data_type()));
        Self { columns: columns.collect(), rows: snapshot.rows }
    }

    /// Number of rows of the table when it was taken.
    pub fn table_rows(&self) -> usize {
        self.rows
    }

    /// The share of rows that pass, above zero.
    pub(super) fn share(&self, column: usize, test: &ColumnTest) -> f64 {
        let rest = match &self.columns[column] {
            ColumnSample::Numbers { keys, rows } => share_of_numbers(keys, *rows, test),
            ColumnSample::Text { values, rows } => share_of_text(values, *rows, test),
            ColumnSample::Other => 0.5,
        };
        rest.max(1.0 / (2 * self.rows.max(1)) as f64)
    }
}

/// Blocks (chunk, block) with the step at which their rows are looked at.
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
        let mut keys: Vec<i64> = values.filter_map(|(column, row)| column.key(row)).collect();
        keys.sort_unstable();
        ColumnSample::Numbers { keys, rows }
    } else if *data_type == DataType::Utf8View {
        let mut values: Vec<Box<str>> =
            values.filter_map(|(column, row)| column.text(row).map(Box::from)).collect();
        values.sort_unstable();
        ColumnSample::Text { values, rows }
    } else {
        ColumnSample::Other
    }
}

fn share_of_numbers(keys: &[i64], rows: usize, test: &ColumnTest) -> f64 {
    let between = |low: i64, high: i64| {
        let below = keys.partition_point(|key| *key < low);
        let found = keys.partition_point(|key| *key <= high).saturating_sub(below);
        found_share(found, keys, rows)
    };
    match test {
        ColumnTest::Number(NumberTest::In(wanted)) => {
            wanted.iter().map(|key| between(*key, *key)).sum()
        }
        ColumnTest::Number(NumberTest::NotIn(_)) | ColumnTest::Null(false) => 1.0,
        ColumnTest::Number(NumberTest::Between(low, high)) => between(*low, *high),
        ColumnTest::Null(true) => found_share(rows - keys.len(), keys, rows),
        ColumnTest::Text(_) => 0.0,
    }
}

fn share_of_text(values: &[Box<str>], rows: usize, test: &ColumnTest) -> f64 {
    let passing = |test: &TextTest| {
        let found = values.iter().filter(|value| test.passes(value)).count();
        found_share(found, values, rows)
    };
    match test {
        ColumnTest::Text(TextTest::In(wanted)) => wanted
            .iter()
            .map(|text| {
                let below = values.partition_point(|value| value < text);
                let found = values[below..].iter().take_while(|value| *value == text).count();
                found_share(found, values, rows)
            })
            .sum(),
        ColumnTest::Text(TextTest::NotIn(_)) | ColumnTest::Null(false) => 1.0,
        ColumnTest::Text(test) => passing(test),
        ColumnTest::Null(true) => found_share(rows - values.len(), values, rows),
        ColumnTest::Number(_) => 0.0,
    }
}

/// The share that so many of the rows of a sample stand for: those that were not found may be fewer than one
/// in the sample, by far where all that it has differ.
fn found_share<V: PartialEq>(found: usize, sorted: &[V], rows: usize) -> f64 {
    if found > 0 {
        return found as f64 / rows.max(1) as f64;
    }
    let repeats = sorted.windows(2).filter(|pair| pair[0] == pair[1]).count();
    let common = (repeats + 1) as f64 / (sorted.len() + 1) as f64;
    common / (2 * rows.max(1)) as f64
}
