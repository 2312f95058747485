//! Files that SQL names and files that queries spill to, where DataFusion's way loses something.
//!
//! | module | what it sees to |
//! |---|---|
//! | `parquet` | intervals, timestamps, NULLs and names of columns are as the file has them |
//! | `arrow` | two columns of one name are refused |
//! | `csv` | types keep what is written, errors name file, line and column |
//! | `json` | types are those of many rows |
//! | `whole` | COPY replaces files as a whole or leaves them as they were |
//! | `spill` | spill files are gone with the process, whatever ends it |

mod arrow;
mod csv;
mod json;
mod parquet;
pub(crate) mod spill;
pub(crate) mod whole;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SessionState;

/// Rows that types are inferred from, as in DuckDB.
const SAMPLE_ROWS: usize = 20_480;

/// Has a session read files by our formats.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    state.register_file_format(Arc::new(parquet::AmendedParquetFactory::default()), true)?;
    state.register_file_format(Arc::new(arrow::CarefulArrowFactory::default()), true)?;
    state.register_file_format(Arc::new(csv::CarefulCsvFactory::default()), true)?;
    ["json", "ndjson"].into_iter().try_for_each(|ending| {
        state.register_file_format(Arc::new(json::JsonLinesFactory { ending }), true)
    })
}
