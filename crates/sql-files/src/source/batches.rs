//! Scans of files that Atoll reads itself, batch by batch.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::{StreamExt, stream};

use crate::source::found::SourceFile;

/// The rows of a file, in its order.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Batches until the end or an error.
pub(crate) fn until_failure(
    mut next: impl FnMut() -> Result<Option<RecordBatch>> + Send + 'static,
) -> Batches {
    let mut ended = false;
    Box::new(std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let batch = next().transpose();
        ended = !matches!(batch, Some(Ok(_)));
        batch
    }))
}

/// Makes rows of files.
pub(crate) trait BatchSource: fmt::Debug + Send + Sync {
    /// These columns of a file, in batches of at most this many rows.
    fn open(&self, file: &SourceFile, columns: &[usize], rows: usize) -> Result<Batches>;
}

/// A file with the values of the columns that it does not contain.
#[derive(Clone, Debug)]
pub(crate) struct FileWithValues {
    pub(crate) file: SourceFile,
    pub(crate) values: Vec<ScalarValue>,
}

/// Some files of a table, read one after the other.
#[derive(Debug)]
pub(crate) struct FilesStream {
    pub(crate) source: Arc<dyn BatchSource>,
    pub(crate) files: Vec<FileWithValues>,
    /// Columns of the files, then those of the values, that are read.
    pub(crate) columns: Vec<usize>,
    pub(crate) values: Vec<usize>,
    /// In the order in which they are handed out.
    pub(crate) order: Vec<usize>,
    pub(crate) schema: SchemaRef,
}

impl PartitionStream for FilesStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = context.session_config().batch_size();
        let (source, columns) = (Arc::clone(&self.source), self.columns.clone());
        let (values, order) = (self.values.clone(), self.order.clone());
        let schema = Arc::clone(&self.schema);
        let of_file = move |file: FileWithValues| {
            let opened = source.open(&file.file, &columns, rows);
            let (values, order, schema) = (values.clone(), order.clone(), Arc::clone(&schema));
            let batches: Batches = match opened {
                Ok(batches) => batches,
                Err(error) => Box::new(std::iter::once(Err(error))),
            };
            batches.map(move |batch| with_values(&batch?, &file, &values, &order, &schema))
        };
        let batches =
            stream::iter(self.files.clone()).flat_map(move |file| stream::iter(of_file(file)));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

fn with_values(
    batch: &RecordBatch,
    file: &FileWithValues,
    values: &[usize],
    order: &[usize],
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    for value in values {
        columns.push(file.values[*value].to_array_of_size(rows)?);
    }
    let columns = order.iter().map(|at| Arc::clone(&columns[*at])).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
