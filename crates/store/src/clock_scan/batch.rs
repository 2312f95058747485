//! The queries of a cycle, each filed under its most selective test.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::number_index::NumberIndex;
use super::query::{BatchQuery, ColumnTest, NumberTest, QueryNumber, TextTest};
use super::sample::ColumnSamples;
use super::text_index::TextIndex;

/// The queries of a cycle.
#[derive(Debug)]
pub struct QueryBatch {
    pub(super) schema: SchemaRef,
    pub(super) queries: Vec<FiledQuery>,
    /// Columns by which queries are found.
    pub(super) indexes: Vec<ColumnIndex>,
    /// Queries that are not filed under any test: they look at every row.
    pub(super) unfiled: Vec<QueryNumber>,
}

#[derive(Debug)]
pub(super) struct FiledQuery {
    /// The remaining tests once the query is found.
    pub(super) rest: Vec<(usize, ColumnTest)>,
    pub(super) projection: Arc<[usize]>,
    /// Each column of the projection, once.
    pub(super) columns: Vec<usize>,
    pub(super) with_ids: bool,
    pub(super) limit: usize,
}

/// The queries filed under a column.
#[derive(Debug)]
pub(super) struct ColumnIndex {
    pub(super) column: usize,
    pub(super) numbers: NumberIndex,
    pub(super) text: TextIndex,
    /// Queries for its NULLs.
    pub(super) nulls: Vec<QueryNumber>,
}

impl QueryBatch {
    /// A batch over tables with this schema. The samples are of the same columns.
    pub fn new(schema: SchemaRef, queries: Vec<BatchQuery>, samples: &ColumnSamples) -> Self {
        let mut indexes: BTreeMap<usize, ColumnIndex> = BTreeMap::new();
        let mut unfiled = Vec::new();
        let mut filed = Vec::with_capacity(queries.len());
        for (number, query) in queries.into_iter().enumerate() {
            let number = number as QueryNumber;
            let BatchQuery { tests, projection, with_ids, limit } = query;
            let mut rest = in_order(tests, samples);
            match rest.iter().position(|(_, test)| is_filing(test)) {
                Some(at) => {
                    let (column, test) = rest.remove(at);
                    let index = indexes.entry(column).or_insert_with(|| ColumnIndex::new(column));
                    index.file(number, &test);
                }
                None => unfiled.push(number),
            }
            let mut columns = projection.to_vec();
            columns.sort_unstable();
            columns.dedup();
            filed.push(FiledQuery { rest, projection, columns, with_ids, limit });
        }
        let mut indexes: Vec<ColumnIndex> = indexes.into_values().collect();
        for index in &mut indexes {
            index.numbers.finish();
            index.text.finish();
        }
        Self { schema, queries: filed, indexes, unfiled }
    }

    /// Number of queries.
    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Whether there are no queries.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }
}

impl ColumnIndex {
    fn new(column: usize) -> Self {
        let (numbers, text) = Default::default();
        Self { column, numbers, text, nulls: Vec::new() }
    }

    fn file(&mut self, query: QueryNumber, test: &ColumnTest) {
        match test {
            ColumnTest::Number(test) => self.numbers.file(query, test),
            ColumnTest::Text(test) => self.text.file(query, test),
            ColumnTest::Null(_) => self.nulls.push(query),
        }
    }
}

/// The tests, most selective first.
fn in_order(tests: Vec<(usize, ColumnTest)>, samples: &ColumnSamples) -> Vec<(usize, ColumnTest)> {
    let share = |(column, test): (usize, ColumnTest)| (samples.share(column, &test), column, test);
    let mut shares: Vec<(f64, usize, ColumnTest)> = tests.into_iter().map(share).collect();
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    shares.into_iter().map(|(_, column, test)| (column, test)).collect()
}

/// Whether queries can be filed under a test.
fn is_filing(test: &ColumnTest) -> bool {
    !matches!(
        test,
        ColumnTest::Number(NumberTest::NotIn(_))
            | ColumnTest::Text(TextTest::NotIn(_))
            | ColumnTest::Null(false)
    )
}
