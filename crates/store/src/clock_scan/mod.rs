//! Clock scans: one pass over a table answers a batch of queries.
//!
//! After the CSCS engine of Giceva (2011), whose scan is Crescendo's ClockScan on columns: it indexes the queries,
//! not the data. A [`QueryBatch`] files each query under its most selective test; a pass
//! over a chunk looks up every value of the columns with such tests in their index, and evaluates the other
//! tests of the queries that it finds, on the columns as they are stored.
//!
//! ```text
//! queries ─▶ QueryBatch ── index of column 3: value or interval ─▶ queries
//!                      └── index of column 7: …
//!                              │
//! chunk ── block ── column 3 ──┴─▶ candidate rows of some query ─▶ its other tests ─▶ (query, row)
//!                                                                                         │
//!                                  rows of each query ◀── gathered by column ◀────────────┘
//! ```
//!
//! | file | what |
//! |---|---|
//! | `query.rs` | a query: tests of columns, and its projection |
//! | `values.rs` | the values of a block as tests read them |
//! | `sample.rs` | the selectivity of a test, estimated from a sample |
//! | `filter.rs` | which values of a column may be in an index, fast |
//! | `number_index.rs`, `text_index.rs` | queries by value, interval and NULL |
//! | `batch.rs` | the queries of a cycle, filed |
//! | `candidates.rs` | the rows that indexes found, by query, and the remaining tests |
//! | `scan.rs` | the pass over chunks |
//! | `times.rs` | where its time goes |
//! | `gather.rs` | the rows that were found, as columns by query |

mod batch;
mod candidates;
mod filter;
mod gather;
mod number_index;
mod query;
mod sample;
mod scan;
mod text_index;
mod times;
mod values;

pub use batch::QueryBatch;
pub use gather::{QueryRows, RowsOutcome};
pub use query::{BatchQuery, ColumnTest, NumberTest, TextTest, float_key, is_number, is_tested};
pub use sample::ColumnSamples;
pub use scan::{BatchScan, ScanCounts};
pub use times::ScanTimes;
