//! Rows that indexes found for queries, and the remaining tests.
//!
//! Candidates are grouped by query, so that a test runs over a list of rows of one column with its type known,
//! not over single pairs.

use arrow_array::StringViewArray;
use arrow_array::builder::make_view;
use arrow_buffer::BooleanBuffer;

use super::query::{ColumnTest, NumberTest, QueryNumber, TextTest};
use super::times::BlockClock;
use super::values::{BlockColumn, BlockValues, with_numbers};

/// Rows of a block, by query.
#[derive(Debug)]
pub(super) struct Candidates {
    /// The rows of each query.
    rows: Vec<Vec<u32>>,
    /// Queries with rows.
    queries: Vec<QueryNumber>,
    /// Times those who look for them.
    pub(super) clock: BlockClock,
}

impl Candidates {
    /// Candidates of this many queries.
    pub(super) fn new(queries: usize) -> Self {
        let clock = BlockClock::default();
        Self { rows: vec![Vec::new(); queries], queries: Vec::new(), clock }
    }

    /// Adds a row for each of these queries.
    #[inline]
    pub(super) fn add(&mut self, row: u32, queries: &[QueryNumber]) {
        for query in queries {
            let rows = &mut self.rows[*query as usize];
            if rows.is_empty() {
                self.queries.push(*query);
            }
            rows.push(row);
        }
    }

    /// Adds rows for each of these queries.
    pub(super) fn add_rows(&mut self, rows: &[u32], queries: &[QueryNumber]) {
        if rows.is_empty() {
            return;
        }
        for query in queries {
            let own = &mut self.rows[*query as usize];
            if own.is_empty() {
                self.queries.push(*query);
            }
            own.extend_from_slice(rows);
        }
    }

    /// Adds the first `rows` rows for a query.
    pub(super) fn add_all(&mut self, query: QueryNumber, rows: u32) {
        self.queries.push(query);
        self.rows[query as usize].extend(0..rows);
    }

    /// Passes on the queries that have rows, with their rows in rising order, and clears them afterwards.
    pub(super) fn drain(&mut self, mut each: impl FnMut(QueryNumber, &mut Vec<u32>)) {
        for query in self.queries.drain(..) {
            let rows = &mut self.rows[query as usize];
            // One value of a list is looked for after another.
            if !rows.is_sorted() {
                rows.sort_unstable();
            }
            each(query, rows);
            rows.clear();
        }
    }
}

/// Keeps the rows that exist.
pub(super) fn keep_live(rows: &mut Vec<u32>, live: &BooleanBuffer) {
    keep(rows, |row| live.value(row));
}

/// Keeps the rows that pass a test.
pub(super) fn keep_passing(rows: &mut Vec<u32>, column: &BlockColumn<'_>, test: &ColumnTest) {
    match test {
        ColumnTest::Null(wanted) => keep(rows, |row| column.is_null(row) == *wanted),
        _ if column.nulls.is_some() => {
            keep(rows, |row| !column.is_null(row));
            keep_values(rows, column, test);
        }
        _ => keep_values(rows, column, test),
    }
}

/// Keeps the rows that pass, none of which is NULL.
fn keep_values(rows: &mut Vec<u32>, column: &BlockColumn<'_>, test: &ColumnTest) {
    match test {
        ColumnTest::Number(NumberTest::In(keys)) if keys.len() == 1 => {
            keep_between(rows, column, keys[0], keys[0]);
        }
        ColumnTest::Number(NumberTest::Between(low, high)) => {
            keep_between(rows, column, *low, *high);
        }
        ColumnTest::Number(test) => {
            keep(rows, |row| column.key(row).is_some_and(|key| test.passes(key)));
        }
        ColumnTest::Text(TextTest::In(values)) if values.len() == 1 => {
            keep_equal(rows, column, &values[0]);
        }
        ColumnTest::Text(test) => {
            keep(rows, |row| column.text(row).is_some_and(|text| test.passes(text)));
        }
        ColumnTest::Null(wanted) => {
            if *wanted {
                rows.clear();
            }
        }
    }
}

fn keep_between(rows: &mut Vec<u32>, column: &BlockColumn<'_>, low: i64, high: i64) {
    let between = |key: i64| low <= key && key <= high;
    with_numbers!(
        &column.values,
        |values, key| keep(rows, |row| between(key(values[row]))),
        keep(rows, |row| column.key(row).is_some_and(between))
    );
}

fn keep_equal(rows: &mut Vec<u32>, column: &BlockColumn<'_>, wanted: &str) {
    // Length and first four bytes, which differ for most other strings.
    let head = make_view(wanted.as_bytes(), 0, 0) as u64;
    let equal = |values: &StringViewArray, at: usize| {
        values.views()[at] as u64 == head && values.value(at) == wanted
    };
    match &column.values {
        BlockValues::Codes8(codes, values) => keep(rows, |row| equal(values, codes[row].into())),
        BlockValues::Codes16(codes, values) => keep(rows, |row| equal(values, codes[row].into())),
        BlockValues::Text(values) => keep(rows, |row| equal(values, row)),
        _ => rows.clear(),
    }
}

/// Keeps the rows that pass, without a branch on each.
#[inline(always)]
fn keep(rows: &mut Vec<u32>, passes: impl Fn(usize) -> bool) {
    let mut kept = 0;
    for at in 0..rows.len() {
        let row = rows[at];
        rows[kept] = row;
        kept += usize::from(passes(row as usize));
    }
    rows.truncate(kept);
}
