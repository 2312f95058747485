//! DataFusion's reader of CSV with errors that name the file, the line and the column.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource,
};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::object_store::ObjectStore;
use datafusion::object_store::path::Path;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::{StreamExt, TryStreamExt};

use super::rows_at_once;
use super::sample::CsvSample;

/// The source below with located errors.
#[derive(Clone)]
pub(super) struct LocatedCsvSource {
    pub(super) below: Arc<dyn FileSource>,
    pub(super) sample: CsvSample,
}

impl FileSource for LocatedCsvSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let below = self.below.create_file_opener(Arc::clone(&store), config, partition)?;
        let schema = Arc::clone(self.below.table_schema().file_schema());
        Ok(Arc::new(LocatedOpener { below, store, schema, sample: self.sample.clone() }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.below.table_schema()
    }

    fn with_batch_size(&self, rows: usize) -> Arc<dyn FileSource> {
        let rows = rows_at_once(rows, self.below.table_schema().file_schema().fields().len());
        Arc::new(Self { below: self.below.with_batch_size(rows), sample: self.sample.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.below.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.below.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.below.metrics()
    }

    fn file_type(&self) -> &str {
        self.below.file_type()
    }

    fn fmt_extra(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.below.fmt_extra(format, f)
    }

    fn supports_repartitioning(&self) -> bool {
        self.below.supports_repartitioning()
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let pushed = self.below.try_pushdown_projection(projection)?;
        Ok(pushed.map(|below| Arc::new(Self { below, sample: self.sample.clone() }) as _))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.below.apply_expressions(f)
    }
}

struct LocatedOpener {
    below: Arc<dyn FileOpener>,
    store: Arc<dyn ObjectStore>,
    schema: SchemaRef,
    sample: CsvSample,
}

impl FileOpener for LocatedOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let start = file.range.as_ref().map_or(0, |range| range.start.cast_unsigned());
        let location = file.object_meta.location.clone();
        let part = Arc::new(FilePart {
            store: Arc::clone(&self.store),
            location,
            start,
            schema: Arc::clone(&self.schema),
        });
        let (opening, sample) = (self.below.open(file)?, self.sample.clone());
        Ok(Box::pin(async move {
            if part.start == 0 {
                sample.check_header(&part.schema, &part.store, &part.location).await?;
            }
            let rows = opening.await?;
            let located = rows.or_else(move |error| {
                let part = Arc::clone(&part);
                async move { Err(part.locate(error).await) }
            });
            Ok(located.boxed())
        }))
    }
}

/// An error of DataFusion's inference, with its file and line in one sentence.
pub(super) fn located_in_sample(error: DataFusionError) -> DataFusionError {
    sample_error(&error).unwrap_or(error)
}

fn sample_error(error: &DataFusionError) -> Option<DataFusionError> {
    let DataFusionError::Context(context, cause) = error else { return None };
    let file = context.strip_prefix("Error when processing CSV file ")?;
    let DataFusionError::ArrowError(cause, _) = cause.find_root() else { return None };
    let ArrowError::CsvError(text) = cause.as_ref() else { return None };
    let wrong = Wrong::record(text)?;
    Some(exec_datafusion_err!("/{file}, line {}: {}", wrong.line, wrong.text))
}

/// The part of a file that is read.
struct FilePart {
    store: Arc<dyn ObjectStore>,
    location: Path,
    /// The byte at which it begins.
    start: u64,
    schema: SchemaRef,
}

impl FilePart {
    async fn locate(&self, error: DataFusionError) -> DataFusionError {
        let wrong = match error.find_root() {
            DataFusionError::ArrowError(error, _) => match error.as_ref() {
                ArrowError::ParseError(text) => Wrong::value(text),
                ArrowError::CsvError(text) => Wrong::record(text),
                _ => None,
            },
            _ => None,
        };
        let Some(wrong) = wrong else { return self.cut_short(error) };
        let line = wrong.line + self.lines_before().await;
        let file = &self.location;
        match wrong.value {
            Some((value, column)) => {
                let field = self.schema.fields().get(column);
                let name = field.map_or("", |field| field.name());
                let wanted = field.map_or(String::new(), |field| sql_name(field.data_type()));
                not_of_type(&format!("/{file}"), line, name, &value, &wanted, true)
            }
            None if wrong.text.contains("UTF-8") => exec_datafusion_err!(
                "/{file}, line {line}: a value is not UTF-8; convert the file, for example with iconv -f LATIN1 \
                 -t UTF-8"
            ),
            None => exec_datafusion_err!(
                "/{file}, line {line}: {}; read_csv with ignore_errors = true leaves such rows out",
                wrong.text
            ),
        }
    }

    /// The error of compressed data that ends too early.
    fn cut_short(&self, error: DataFusionError) -> DataFusionError {
        let text = error.strip_backtrace();
        match ["deflate", "end of file", "incomplete", "unexpected end"]
            .iter()
            .any(|it| text.contains(it))
        {
            true => exec_datafusion_err!(
                "'/{}' is truncated: its compressed data ends too early",
                self.location
            ),
            false => error,
        }
    }

    /// Lines of the file before the part.
    async fn lines_before(&self) -> u64 {
        if self.start == 0 {
            return 0;
        }
        let Ok(found) = self.store.get_opts(&self.location, Default::default()).await else {
            return 0;
        };
        let (mut left, mut lines, mut last) = (self.start as usize, 0, b'\n');
        let mut bytes = found.into_stream();
        while left > 0
            && let Ok(Some(chunk)) = bytes.try_next().await
        {
            let before = &chunk[..chunk.len().min(left)];
            lines += before.iter().filter(|byte| **byte == b'\n').count() as u64;
            last = before.last().copied().unwrap_or(last);
            left -= before.len();
        }
        // A line that the start cuts belongs to the part before.
        lines + u64::from(last != b'\n')
    }
}

/// The contents of an arrow-csv message.
struct Wrong {
    /// Line of the part, from 1.
    line: u64,
    /// The value and the number of its column, if there is one.
    value: Option<(String, usize)>,
    text: String,
}

impl Wrong {
    /// `Error while parsing value '4.x4' as type 'Float32' for column 1 at line 4. Row data: …`, or
    /// `Error parsing column 1 at line 4: …`; the lines are counted from 0.
    fn value(text: &str) -> Option<Self> {
        let (before, line) = at_line(text)?;
        if let Some(rest) = before.strip_prefix("Error while parsing value '") {
            let (rest, column) = rest.rsplit_once(" for column ")?;
            let value = rest.rsplit_once("' as type '")?.0.to_owned();
            let value = Some((value, column.parse().ok()?));
            return Some(Self { line: line + 1, value, text: String::new() });
        }
        let text = text.rsplit_once(": ").map_or(text, |(_, text)| text).to_owned();
        Some(Self { line: line + 1, value: None, text })
    }

    /// `… Expected 3 records, found 2 records at line 3`, or `incorrect number of fields for line 3, …`.
    fn record(text: &str) -> Option<Self> {
        let line = match at_line(text) {
            Some((_, line)) => line,
            None => number(text.split_once(" line ")?.1)?,
        };
        let text = match text.split_once("Expected ") {
            Some((_, counts)) => format!("expected {}", counts.replace(" records", " values")),
            None => {
                match text.rsplit_once(", expected ").and_then(|(_, it)| it.split_once(" got ")) {
                    Some((expected, got)) => format!("expected {expected} values, found {got}"),
                    None => text.replace("fields", "values"),
                }
            }
        };
        Some(Self { line, value: None, text })
    }
}

/// The text before the first ` at line `, and the number after it.
fn at_line(text: &str) -> Option<(&str, u64)> {
    let (before, after) = text.split_once(" at line ")?;
    Some((before, number(after)?))
}

fn number(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The error for a value that does not have its column's type.
pub(super) fn not_of_type(
    file: &str,
    line: u64,
    column: &str,
    value: &str,
    wanted: &str,
    is_found: bool,
) -> DataFusionError {
    let found =
        if is_found { ", the type that the first rows suggest or a statement names" } else { "" };
    exec_datafusion_err!(
        "{file}, line {line}, column \"{column}\": '{value}' cannot be read as {wanted}{found}; read_csv \
         with types = {{'{column}': 'VARCHAR'}} names the type (as does CREATE EXTERNAL TABLE), and with \
         ignore_errors = true leaves such rows out"
    )
}

/// A type as SQL names it.
pub(super) fn sql_name(of: &DataType) -> String {
    match of {
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "VARCHAR".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::UInt64 => "UBIGINT".to_owned(),
        DataType::UInt32 => "UINTEGER".to_owned(),
        DataType::Float32 => "REAL".to_owned(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::Time64(_) => "TIME".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP".to_owned(),
        DataType::Null => "NULL".to_owned(),
        other => other.to_string().to_uppercase(),
    }
}
