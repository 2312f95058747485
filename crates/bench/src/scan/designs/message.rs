//! Queries and rows as bytes, for workers that share nothing else. Numbers are little-endian.
//!
//! A batch is a record of 36 bytes for each query: its statement, and the numbers of its parameters. Rows are, query
//! by query, their number and then the values column by column: a tag byte and the value.

use anyhow::{Context, Result, bail};
use atoll_sql::store::clock_scan::QueryRows;

use super::super::queries::{ScanQuery, ScanStatement};
use super::rows::{FoundValue, ShardRows, each_value};

/// Columns of every result.
const COLUMNS: usize = 4;

const NULL: u8 = 0;
const NUMBER: u8 = 1;
const TEXT: u8 = 2;

/// A batch as bytes.
pub(super) fn of_batch(batch: &[ScanQuery]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(36 * batch.len());
    for ScanQuery { statement, numbers } in batch {
        bytes.extend((*statement as u32).to_le_bytes());
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    }
    bytes
}

/// The batch that bytes are.
pub(super) fn batch(bytes: &[u8]) -> Result<Vec<ScanQuery>> {
    let mut reader = Reader(bytes);
    let mut batch = Vec::with_capacity(bytes.len() / 36);
    while !reader.0.is_empty() {
        let statement = u32::from_le_bytes(reader.take()?) as usize;
        let mut numbers = [0; 4];
        for number in &mut numbers {
            *number = i64::from_le_bytes(reader.take()?);
        }
        batch.push(ScanQuery { statement, numbers });
    }
    Ok(batch)
}

/// Statements as bytes: the numbers of their attributes.
pub(super) fn of_statements(statements: &[ScanStatement]) -> Vec<u8> {
    statements.iter().flat_map(|statement| statement.attributes().map(|it| it as u8)).collect()
}

/// The statements that bytes are.
pub(super) fn statements(bytes: &[u8]) -> Result<Vec<ScanStatement>> {
    let (all, rest) = bytes.as_chunks::<7>();
    if !rest.is_empty() {
        bail!("statements are {} bytes too long", rest.len());
    }
    all.iter().map(|one| ScanStatement::of_attributes(one.map(usize::from))).collect()
}

/// Rows as bytes.
pub(super) fn of_rows(found: &[QueryRows]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for rows in found {
        bytes.extend((rows.rows as u32).to_le_bytes());
        each_value(rows, |value| match value {
            FoundValue::Null => bytes.push(NULL),
            FoundValue::Number(number) => {
                bytes.push(NUMBER);
                bytes.extend(number.to_le_bytes());
            }
            FoundValue::Text(text) => {
                bytes.push(TEXT);
                bytes.extend((text.len() as u32).to_le_bytes());
                bytes.extend(text);
            }
        });
    }
    bytes
}

/// The rows that bytes are, summed up.
pub(super) fn rows(bytes: &[u8]) -> Result<ShardRows> {
    let (mut reader, mut found) = (Reader(bytes), ShardRows::none(0));
    while !reader.0.is_empty() {
        let rows = u32::from_le_bytes(reader.take()?);
        for _ in 0..rows as usize * COLUMNS {
            let [tag] = reader.take()?;
            found.sum.add(match tag {
                NULL => FoundValue::Null,
                NUMBER => FoundValue::Number(i64::from_le_bytes(reader.take()?)),
                TEXT => {
                    let len = u32::from_le_bytes(reader.take()?) as usize;
                    FoundValue::Text(reader.bytes(len)?)
                }
                other => bail!("a value of kind {other} in the rows of a shard"),
            });
        }
        found.rows.push(rows);
    }
    Ok(found)
}

/// Bytes that were not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count).context("a message is cut short")?;
        self.0 = rest;
        Ok(bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.bytes(N)?.try_into()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use atoll_sql::arrow::array::{Array, ArrayRef, Int16Array, Int64Array, StringViewArray};
    use atoll_sql::store::clock_scan::RowsOutcome;

    use super::*;

    #[test]
    fn batches_and_statements_come_back_as_they_were() {
        let queries: Vec<ScanQuery> =
            (0..5).map(|at| ScanQuery { statement: at, numbers: [at as i64 - 2; 4] }).collect();
        assert_eq!(batch(&of_batch(&queries)).expect("a batch"), queries);
        let one = ScanStatement::of_attributes([1, 2, 44, 0, 3, 4, 45]).expect("a statement");
        assert_eq!(statements(&of_statements(&[one, one])).expect("statements"), [one, one]);
        assert!(statements(&[0; 8]).is_err() && statements(&[200; 7]).is_err());
        assert!(batch(&of_batch(&queries)[1..]).is_err());
    }

    #[test]
    fn rows_sum_up_to_the_same_as_values_and_as_bytes() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![5, -7])),
            Arc::new(Int16Array::from(vec![None, Some(3)])),
            Arc::new(StringViewArray::from(vec!["a", "longer than a view holds"])),
            Arc::new(StringViewArray::from(vec![Some(""), None])),
        ];
        let outcome = RowsOutcome::Whole;
        let some = QueryRows { outcome, columns: columns.clone(), rows: 2 };
        let none = QueryRows {
            outcome,
            columns: columns.iter().map(|c| c.slice(0, 0)).collect(),
            rows: 0,
        };
        let all = [some, none];
        let found = rows(&of_rows(&all)).expect("rows");
        assert_eq!(found, ShardRows::from_rows(&all));
        assert_eq!(found.rows, [2, 0]);
        assert!(rows(&of_rows(&all)[..20]).is_err());
        assert!(rows(&[1, 0, 0, 0, 9]).is_err());
    }
}
