//! Samples the first rows of files as text, to find columns that look like numbers and are text.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::csv::ReaderBuilder;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::config::CsvOptions;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use futures::{StreamExt, TryStreamExt};

use super::infer::{is_padded, is_whole};
use super::rows_at_once;
use crate::SAMPLE_ROWS;

/// Facts about columns that types alone do not show.
#[derive(Debug, Default)]
pub(super) struct TypeHints {
    /// Columns of numbers in which a value begins with a zero that a number would lose, such as the
    /// postal code `00123`.
    pub(super) padded: HashSet<usize>,
    /// Columns of whole numbers of which some are beyond BIGINT: a DOUBLE would not have all of their digits.
    pub(super) wide: HashSet<usize>,
    /// Whether values have line breaks, at which a file must not be cut into parts.
    pub(super) has_line_breaks: bool,
}

/// Reads the first rows of files in the syntax of the options.
#[derive(Clone, Debug)]
pub(super) struct CsvSample {
    pub(super) options: CsvOptions,
}

impl CsvSample {
    /// Reads the rows that types are inferred from.
    pub(super) async fn look(
        &self,
        schema: &Schema,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<TypeHints> {
        let has_header = self.options.has_header.unwrap_or(true);
        let mut left = self.options.schema_infer_max_rec.unwrap_or(SAMPLE_ROWS);
        let (mut seen, mut with_point) = (TypeHints::default(), HashSet::new());
        for object in objects {
            if left == 0 {
                break;
            }
            let rows = self.rows(schema, has_header, store, &object.location, left).await?;
            let Some(rows) = rows else { continue };
            left -= rows.num_rows().min(left);
            for (number, field) in schema.fields().iter().enumerate() {
                let values = rows.column(number).as_string::<i32>();
                if field.data_type().is_numeric() && values.iter().flatten().any(is_padded) {
                    seen.padded.insert(number);
                }
                if *field.data_type() == DataType::Float64 {
                    let numbers: Vec<&str> =
                        values.iter().flatten().filter(|value| !value.is_empty()).collect();
                    if !numbers.iter().all(|value| is_whole(value)) {
                        with_point.insert(number);
                    } else if numbers.iter().any(|value| value.parse::<i64>().is_err()) {
                        seen.wide.insert(number);
                    }
                }
                seen.has_line_breaks |= values.value_data().contains(&b'\n');
            }
        }
        seen.wide.retain(|number| !with_point.contains(number));
        Ok(seen)
    }

    /// Checks that a file has its columns in the order of the table, because they are read by position.
    ///
    /// # Errors
    /// If the header has all of the table's names in another order.
    pub(super) async fn check_header(
        &self,
        schema: &Schema,
        store: &Arc<dyn ObjectStore>,
        location: &Path,
    ) -> Result<()> {
        if !self.options.has_header.unwrap_or(true) || schema.fields().is_empty() {
            return Ok(());
        }
        let Some(header) = self.rows(schema, false, store, location, 1).await? else {
            return Ok(());
        };
        let names = header.columns().iter().map(|column| column.as_string::<i32>().value(0));
        let mut found: Vec<&str> = names.collect();
        let mut wanted: Vec<&str> = schema.fields().iter().map(|it| it.name().as_str()).collect();
        if found == wanted {
            return Ok(());
        }
        let told = (found.join(", "), wanted.join(", "));
        found.sort_unstable();
        wanted.sort_unstable();
        match found == wanted {
            true => exec_err!(
                "/{location} has the columns {}, and the table has {}; files of one table have \
                 their columns in one order: read this one separately",
                told.0,
                told.1
            ),
            false => Ok(()),
        }
    }

    /// The first rows of a file, all columns as text; `None` if there are none or if they cannot be cut into
    /// columns, which the reader reports.
    async fn rows(
        &self,
        schema: &Schema,
        has_header: bool,
        store: &Arc<dyn ObjectStore>,
        location: &Path,
        rows: usize,
    ) -> Result<Option<RecordBatch>> {
        let options = &self.options;
        let text = |name: &String| Field::new(name, DataType::Utf8, true);
        let fields: Vec<Field> = schema.fields().iter().map(|field| text(field.name())).collect();
        let mut builder = ReaderBuilder::new(Arc::new(Schema::new(fields)))
            .with_header(has_header)
            .with_delimiter(options.delimiter)
            .with_quote(options.quote)
            .with_truncated_rows(true)
            .with_batch_size(rows_at_once(rows, schema.fields().len()));
        if let Some(terminator) = options.terminator {
            builder = builder.with_terminator(terminator);
        }
        if let Some(escape) = options.escape {
            builder = builder.with_escape(escape);
        }
        if let Some(comment) = options.comment {
            builder = builder.with_comment(comment);
        }
        let mut decoder = builder.build_decoder();
        let bytes = store.get(location).await?.into_stream();
        let bytes = bytes.map_err(DataFusionError::from).boxed();
        let compression = FileCompressionType::from(options.compression);
        let mut bytes = compression.convert_stream(bytes)?;
        let (mut found, mut left) = (Vec::new(), rows);
        while left > 0
            && let Some(mut chunk) = bytes.try_next().await?
        {
            while left > 0 && !chunk.is_empty() {
                let Ok(decoded) = decoder.decode(&chunk) else { return Ok(None) };
                if decoded == 0 && decoder.capacity() > 0 {
                    break;
                }
                chunk = chunk.slice(decoded..);
                if decoder.capacity() == 0 {
                    let Some(batch) = decoder.flush().ok().flatten() else { return Ok(None) };
                    left = left.saturating_sub(batch.num_rows());
                    found.push(batch);
                }
            }
        }
        // The end of the file may be the end of its last row.
        if left > 0 && decoder.decode(&[]).is_ok() {
            found.extend(decoder.flush().ok().flatten());
        }
        match found.first().map(RecordBatch::schema) {
            Some(schema) => Ok(Some(concat_batches(&schema, &found)?)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_zeros_make_a_column_text() {
        assert!(["00", "00123", "-01", "+007.5"].into_iter().all(is_padded));
        assert!(!["", "0", "-0", "0.5", "10", "0e7", "1.00"].into_iter().any(is_padded));
    }
}
