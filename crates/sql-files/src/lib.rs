//! Files in SQL: functions and names in FROM, COPY, and the readers and writers of CSV, JSON, Parquet and Arrow.
//!
//! It is a separate crate because formats change independently, and are compiled in parallel.
//!
//! | module | responsibility |
//! |---|---|
//! | `amended` | DataFusion's file formats with amendments |
//! | `parquet` | intervals, timestamps, NULLs and column names exactly as in the file |
//! | `blamed` | scans that add the file to their errors |
//! | `arrow` | two columns of one name are refused, and a damaged file is named |
//! | `csv` | types that keep the written values; errors with file, line and column |
//! | `json` | types inferred from many rows |
//! | `nested` | values inside lists, structs and maps |
//! | `read` | files in FROM, by name and by functions |
//! | `source` | the files that a table reads, and how they are read |
//! | `sink` | the writer of files of any format |
//! | `copy` | options of COPY that do not concern the format |
//! | `whole` | COPY replaces whole files or leaves them unchanged |
//! | `permission` | permission to name files of the server |
//! | `file_order` | rows of files in their order |
//! | `spill` | spill files that vanish with the process, however it ends |

mod amended;
mod arrow;
mod blamed;
pub mod copy;
mod csv;
mod file_order;
mod json;
mod nested;
mod parquet;
mod permission;
pub mod read;
mod sink;
mod source;
pub mod spill;
pub(crate) mod whole;

pub(crate) use arrow::ArrowScanExec;
pub use csv::{CsvForm, unescaped};
pub(crate) use json::JsonScanExec;
pub use parquet::{has_interval, parquet_files, with_damaged_file};
pub use permission::{SERVER_FILES, check_files};
pub(crate) use whole::WholeFilesExec;

use std::sync::Arc;

use amended::{Amend, AmendedFactory};
use atoll_sql_common::operator::BottomUp;
use datafusion::common::Result;
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::datasource::file_format::arrow::ArrowFormatFactory;
use datafusion::datasource::file_format::csv::CsvFormatFactory;
use datafusion::datasource::file_format::json::JsonFormatFactory;
use datafusion::datasource::file_format::parquet::ParquetFormatFactory;
use datafusion::execution::SessionState;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use file_order::FileOrder;
use whole::PlaceWholeFiles;

/// Rows that types are inferred from, as in DuckDB.
const SAMPLE_ROWS: usize = 20_480;

/// Makes a session read files with our formats.
pub fn register(state: &mut SessionState) -> Result<()> {
    let formats: [Arc<dyn FileFormatFactory>; 5] = [
        amended("parquet", ParquetFormatFactory::new(), parquet::amended_format),
        amended("arrow", ArrowFormatFactory::new(), arrow::amended),
        amended("csv", CsvFormatFactory::new(), csv::amended),
        amended("json", JsonFormatFactory::new(), json::amended),
        amended("ndjson", JsonFormatFactory::new(), json::amended),
    ];
    formats.into_iter().try_for_each(|format| state.register_file_format(format, true))
}

/// The rules of physical plans that read or write files, in their order.
pub fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    vec![Arc::new(BottomUp(PlaceWholeFiles)), Arc::new(FileOrder)]
}

fn amended<F: FileFormatFactory>(
    ending: &'static str,
    factory: F,
    amend: Amend,
) -> Arc<dyn FileFormatFactory> {
    Arc::new(AmendedFactory { ending, factory, amend })
}
