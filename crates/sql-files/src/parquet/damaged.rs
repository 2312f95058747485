//! Adds the file to errors of damaged files, because the reader (parquet 59.3) does not name it.

use std::fs::File;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atoll_topology::Bytes;
use datafusion::arrow::error::ArrowError;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, exec_datafusion_err};
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::physical_plan::ExecutionPlan;

/// The most bytes that are read to find out which of several files is damaged.
const SEARCHED_MAX: Bytes = Bytes(1 << 30);

/// The Parquet files that a plan reads.
pub fn parquet_files(plan: &Arc<dyn ExecutionPlan>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let _ = plan.apply(|node| {
        let scan = node
            .downcast_ref::<DataSourceExec>()
            .and_then(|exec| exec.downcast_to_file_source::<ParquetSource>());
        if let Some((config, _)) = scan {
            let groups = config.file_groups.iter().flat_map(|group| group.iter());
            files.extend(groups.map(|file| path_of(file.object_meta.location.as_ref())));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    // Parts of a file are read by several partitions.
    files.sort_unstable();
    files.dedup();
    files
}

/// The path of an object in the local file system.
pub(super) fn path_of(location: &str) -> PathBuf {
    Path::new("/").join(location)
}

/// The error of a query with the damaged file, if it is one of its Parquet files.
pub fn with_damaged_file(error: DataFusionError, files: &[PathBuf]) -> DataFusionError {
    if files.is_empty() || !is_of_file(&error) {
        return error;
    }
    match damaged(files) {
        Some(file) => told(&error, &format!("'{}' is", file.display())),
        None => {
            let (count, first) = (files.len(), files[0].display());
            told(&error, &format!("one of {count} files, the first of them '{first}', is"))
        }
    }
}

/// The error of the metadata of a file.
pub(super) fn of_metadata(error: DataFusionError, location: &str) -> DataFusionError {
    match is_of_file(&error) {
        true => told(&error, &format!("'{}' is", path_of(location).display())),
        false => error,
    }
}

fn told(error: &DataFusionError, what: &str) -> DataFusionError {
    let root = error.find_root().strip_backtrace();
    exec_datafusion_err!("{what} truncated or damaged: {root}")
}

fn is_of_file(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ParquetError(_) => true,
        DataFusionError::ArrowError(error, _) => matches!(**error, ArrowError::ParquetError(_)),
        _ => false,
    }
}

/// The first file that cannot be read to its end; `None` if the search would take too long.
fn damaged(files: &[PathBuf]) -> Option<&PathBuf> {
    if let [file] = files {
        return Some(file);
    }
    let mut searched = 0;
    for file in files {
        searched += std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        if searched > SEARCHED_MAX.0 {
            return None;
        }
        if is_damaged(file) {
            return Some(file);
        }
    }
    None
}

/// Whether a file cannot be read to its end; a file that makes the reader panic is damaged, too.
fn is_damaged(path: &Path) -> bool {
    let is_read = || -> Result<(), DataFusionError> {
        let batches = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?.build()?;
        for batch in batches {
            batch?;
        }
        Ok(())
    };
    !catch_unwind(is_read).is_ok_and(|read| read.is_ok())
}
