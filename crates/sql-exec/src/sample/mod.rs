//! `TABLESAMPLE`: random rows of a table.
//!
//! ```text
//! FROM t TABLESAMPLE BERNOULLI (5)         Sample: each row separately
//! FROM t TABLESAMPLE SYSTEM (5)            Sample: whole batches
//! FROM t TABLESAMPLE (1000 ROWS)           t with a random column, sorted by it, LIMIT 1000
//! ```
//!
//! DataFusion parses the clause and ignores it (apache/datafusion#24754). A filter by `random()` would not do: rules
//! move filters.

mod exec;
mod node;
mod relation;

pub use node::SampleNodePlanner;
pub use relation::SampledRelations;
