//! The relation, drawn from a seed: every value follows from its row's number alone, so that any thread makes
//! any row, and a row that is inserted is one more.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, anyhow};
use atoll_tools::workload::{Draw, Permutation, Zipf};
use datafusion::arrow::array::{
    ArrayRef, Date32Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::ScalarValue;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;

use super::attributes::{AttributeKind, BOOKINGS, BookingAttribute, ValueLaw};
use crate::tpch_data::ROW_GROUP_ROWS;

/// Version of the rows of a seed, so that older files are not used for them.
const FORMAT: u32 = 1;

/// The rows.
#[derive(Debug)]
pub(super) struct Relation {
    pub(super) rows: u64,
    seed: u64,
    draws: Vec<AttributeDraw>,
}

/// Random source of an attribute.
#[derive(Clone, Copy, Debug)]
struct AttributeDraw {
    ranks: Zipf,
    places: Permutation,
}

impl Relation {
    /// A relation of `rows` rows.
    pub(super) fn new(rows: u64, seed: u64) -> Self {
        let draws = BOOKINGS.iter().enumerate().map(|(number, attribute)| {
            let count = match attribute.law {
                ValueLaw::Falling(_, _, count) | ValueLaw::OftenZero(_, _, _, count) => count,
                ValueLaw::Popular(count) => count,
                ValueLaw::After(_, most) => most + 1,
                ValueLaw::Shared(_) => 26_u64.pow(6),
                ValueLaw::RowNumber
                | ValueLaw::Rising(..)
                | ValueLaw::Even(..)
                | ValueLaw::Sum(_) => 1,
            };
            let places = Permutation::new(seed.wrapping_add(number as u64), count);
            AttributeDraw { ranks: Zipf::new(count), places }
        });
        Self { rows, seed, draws: draws.collect() }
    }

    /// The number from which an attribute of a row is made; never NULL.
    pub(super) fn number(&self, row: u64, attribute: usize) -> Option<i64> {
        let BookingAttribute { law, nulls, .. } = BOOKINGS[attribute];
        let mut draw = Draw::for_row(self.seed, attribute as u64, row);
        if nulls > 0 && draw.below(100) < nulls {
            return None;
        }
        let AttributeDraw { ranks, places } = self.draws[attribute];
        let plus = |first: i64, step: i64, count: u64| first + step * count as i64;
        Some(match law {
            ValueLaw::RowNumber => row as i64 + 1,
            ValueLaw::Rising(first, span) => {
                plus(first, 1, row.min(self.rows) * span / self.rows.max(1))
            }
            ValueLaw::Even(first, step, count) => plus(first, step, draw.below(count)),
            ValueLaw::Falling(first, step, _) => plus(first, step, ranks.draw(&mut draw)),
            ValueLaw::Popular(_) => places.at(ranks.draw(&mut draw)) as i64,
            ValueLaw::OftenZero(zeros, ..) if draw.below(100) < zeros => 0,
            ValueLaw::OftenZero(_, first, step, _) => plus(first, step, ranks.draw(&mut draw)),
            ValueLaw::After(other, _) => plus(self.number(row, other)?, 1, ranks.draw(&mut draw)),
            ValueLaw::Shared(by) => places.at(row / by) as i64,
            ValueLaw::Sum(others) => {
                let numbers = others.iter().map(|other| self.number(row, *other));
                numbers.sum::<Option<i64>>()?
            }
        })
    }

    /// Some attributes of some rows.
    pub(super) fn batch(
        &self,
        rows: impl Iterator<Item = u64> + Clone,
        attributes: &[usize],
    ) -> Result<RecordBatch> {
        let columns = attributes.iter().map(|number| {
            let BookingAttribute { name, kind, nulls, .. } = BOOKINGS[*number];
            let values = rows.clone().map(|row| self.number(row, *number));
            let array = array(kind, values);
            (Field::new(name, array.data_type().clone(), nulls > 0), array)
        });
        let (fields, arrays): (Vec<_>, Vec<_>) = columns.unzip();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
    }

    /// All values of a row.
    pub(super) fn row(&self, row: u64) -> Vec<ScalarValue> {
        let values = BOOKINGS.iter().enumerate();
        values.map(|(number, own)| scalar(own.kind, self.number(row, number))).collect()
    }

    /// The rows as a Parquet file in a directory, created if missing.
    pub(super) fn file(&self, directory: &Path, threads: usize) -> Result<PathBuf> {
        let name = format!("bookings-{}-{}-{FORMAT}.parquet", self.rows, self.seed);
        let file = directory.join(name);
        if !file.exists() {
            let written = self.write(directory, &file, threads);
            written.with_context(|| format!("cannot write the bookings to {}", file.display()))?;
        }
        Ok(file)
    }

    /// Writes a temporary file, then renames it.
    fn write(&self, directory: &Path, file: &Path, threads: usize) -> Result<()> {
        fs::create_dir_all(directory)?;
        let partial = tempfile::NamedTempFile::new_in(directory)?;
        let all: Vec<usize> = (0..BOOKINGS.len()).collect();
        let schema = self.batch(0..0, &all)?.schema();
        let properties =
            WriterProperties::builder().set_max_row_group_row_count(Some(ROW_GROUP_ROWS)).build();
        let mut writer = ArrowWriter::try_new(partial.as_file(), schema, Some(properties))?;
        let groups: Vec<u64> = (0..self.rows).step_by(ROW_GROUP_ROWS).collect();
        for groups in groups.chunks(threads.max(1)) {
            let made = thread::scope(|scope| {
                let make = |first: &u64| {
                    let (first, all) = (*first, &all);
                    let last = (first + ROW_GROUP_ROWS as u64).min(self.rows);
                    scope.spawn(move || self.batch(first..last, all))
                };
                let made: Vec<_> = groups.iter().map(make).collect();
                let joined = made.into_iter().map(|thread| thread.join());
                joined.collect::<thread::Result<Vec<_>>>()
            });
            for batch in made.map_err(|_| anyhow!("the generator panicked"))? {
                writer.write(&batch?)?;
            }
        }
        writer.close()?;
        partial.persist(file)?;
        Ok(())
    }
}

fn array(kind: AttributeKind, values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    match kind {
        AttributeKind::Small => {
            Arc::new(values.map(|value| value.map(|it| it as i16)).collect::<Int16Array>())
        }
        AttributeKind::Whole => {
            Arc::new(values.map(|value| value.map(|it| it as i32)).collect::<Int32Array>())
        }
        AttributeKind::Large => Arc::new(values.collect::<Int64Array>()),
        AttributeKind::Day => {
            Arc::new(values.map(|value| value.map(|it| it as i32)).collect::<Date32Array>())
        }
        AttributeKind::Text(form) => {
            Arc::new(values.map(|value| value.map(|it| form.text(it))).collect::<StringArray>())
        }
    }
}

/// The value made from a number.
pub(super) fn scalar(kind: AttributeKind, number: Option<i64>) -> ScalarValue {
    match kind {
        AttributeKind::Small => ScalarValue::Int16(number.map(|it| it as i16)),
        AttributeKind::Whole => ScalarValue::Int32(number.map(|it| it as i32)),
        AttributeKind::Large => ScalarValue::Int64(number),
        AttributeKind::Day => ScalarValue::Date32(number.map(|it| it as i32)),
        AttributeKind::Text(form) => ScalarValue::Utf8View(number.map(|it| form.text(it))),
    }
}

/// Bytes that the columns take in the widths of their types; strings as they are.
pub(super) fn raw_bytes(relation: &Relation) -> u64 {
    let sample = relation.rows.min(1000);
    let width = |number: usize| match BOOKINGS[number].kind {
        AttributeKind::Small => 2.0,
        AttributeKind::Whole | AttributeKind::Day => 4.0,
        AttributeKind::Large => 8.0,
        AttributeKind::Text(form) => {
            let texts = (0..sample).filter_map(|row| relation.number(row, number));
            let bytes: usize = texts.map(|it| form.text(it).len()).sum();
            bytes as f64 / sample.max(1) as f64
        }
    };
    let row: f64 = (0..BOOKINGS.len()).map(width).sum();
    (row * relation.rows as f64) as u64
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::DataType;

    use super::*;

    #[test]
    fn values_fit_their_types_and_follow_from_seed_and_row() {
        let relation = Relation::new(5_000, 7);
        let again = Relation::new(5_000, 7);
        let other = Relation::new(5_000, 8);
        let mut differing = 0;
        for (number, BookingAttribute { name, kind, nulls, .. }) in BOOKINGS.iter().enumerate() {
            let mut absent = 0;
            for row in 0..1_000 {
                let value = relation.number(row, number);
                assert_eq!(value, again.number(row, number));
                differing += usize::from(value != other.number(row, number));
                absent += u64::from(value.is_none());
                let Some(value) = value else { continue };
                let fits = match kind {
                    AttributeKind::Small => i16::try_from(value).is_ok(),
                    AttributeKind::Whole | AttributeKind::Day => i32::try_from(value).is_ok(),
                    AttributeKind::Large => true,
                    AttributeKind::Text(_) => value >= 0,
                };
                assert!(fits, "{name}: {value}");
            }
            assert_eq!(absent > 0, *nulls > 0, "{name}");
        }
        assert!(differing > 20_000, "{differing}");
    }

    #[test]
    fn keys_count_the_rows_and_bookings_come_in_the_order_of_their_days() {
        let relation = Relation::new(5_000, 7);
        let created = super::super::attributes::CREATED_ON;
        let days: Vec<_> = (0..5_000).map(|row| relation.number(row, created)).collect();
        assert!(days.is_sorted());
        assert_eq!((relation.number(0, 0), relation.number(4_999, 0)), (Some(1), Some(5_000)));
        assert!(relation.number(5_007, created) >= relation.number(4_999, created));
    }

    #[test]
    fn a_file_is_made_once_and_holds_every_row() {
        let place = tempfile::tempdir().expect("a directory");
        let relation = Relation::new(ROW_GROUP_ROWS as u64 / 100, 7);
        let file = relation.file(place.path(), 2).expect("a file");
        let written = fs::metadata(&file).expect("its size").modified().expect("its time");
        assert_eq!(relation.file(place.path(), 2).expect("the same"), file);
        assert_eq!(fs::metadata(&file).expect("its size").modified().expect("its time"), written);
        assert_eq!(fs::read_dir(place.path()).expect("a listing").count(), 1);
    }

    #[test]
    fn columns_have_the_types_that_the_table_declares() {
        let all: Vec<usize> = (0..BOOKINGS.len()).collect();
        let batch = Relation::new(10, 1).batch(0..10, &all).expect("rows");
        for (field, own) in batch.schema().fields().iter().zip(&BOOKINGS) {
            let wanted = match scalar(own.kind, None).data_type() {
                DataType::Utf8View => DataType::Utf8,
                other => other,
            };
            assert_eq!(*field.data_type(), wanted, "{}", own.name);
        }
    }
}
