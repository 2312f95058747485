//! Files that SQL names and files that queries spill to, where DataFusion's way loses something.
//!
//! | module | what it sees to |
//! |---|---|
//! | `amended` | a format of DataFusion's of which something is amended |
//! | `parquet` | intervals, timestamps, NULLs and names of columns are as the file has them |
//! | `blamed` | errors of scans are told with their file |
//! | `arrow` | two columns of one name are refused, and a damaged file is named |
//! | `csv` | types keep what is written, errors name file, line and column |
//! | `json` | types are those of many rows |
//! | `nested` | values inside of lists, structs and maps |
//! | `read` | files in FROM, by name and by functions |
//! | `sink` | what writes files, whatever their format |
//! | `copy` | what the options of COPY mean |
//! | `whole` | COPY replaces files as a whole or leaves them as they were |
//! | `spill` | spill files are gone with the process, whatever ends it |

mod amended;
mod arrow;
mod blamed;
pub(crate) mod copy;
mod csv;
mod json;
mod nested;
mod parquet;
pub(crate) mod read;
mod sink;
pub(crate) mod spill;
pub(crate) mod whole;

pub(crate) use arrow::ArrowScanExec;
pub use csv::{CsvForm, unescaped};
pub(crate) use json::JsonScanExec;
pub(crate) use parquet::{has_interval, parquet_files, with_damaged_file};
pub(crate) use whole::WholeFilesExec;

use std::sync::Arc;

use amended::{Amend, AmendedFactory};
use datafusion::common::Result;
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::datasource::file_format::arrow::ArrowFormatFactory;
use datafusion::datasource::file_format::csv::CsvFormatFactory;
use datafusion::datasource::file_format::json::JsonFormatFactory;
use datafusion::datasource::file_format::parquet::ParquetFormatFactory;
use datafusion::execution::SessionState;

/// Rows that types are inferred from, as in DuckDB.
const SAMPLE_ROWS: usize = 20_480;

/// Has a session read files by our formats.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    let formats: [Arc<dyn FileFormatFactory>; 5] = [
        amended("parquet", ParquetFormatFactory::new(), parquet::amended_format),
        amended("arrow", ArrowFormatFactory::new(), arrow::amended),
        amended("csv", CsvFormatFactory::new(), csv::amended),
        amended("json", JsonFormatFactory::new(), json::amended),
        amended("ndjson", JsonFormatFactory::new(), json::amended),
    ];
    formats.into_iter().try_for_each(|format| state.register_file_format(format, true))
}

fn amended<F: FileFormatFactory>(
    ending: &'static str,
    factory: F,
    amend: Amend,
) -> Arc<dyn FileFormatFactory> {
    Arc::new(AmendedFactory { ending, factory, amend })
}
