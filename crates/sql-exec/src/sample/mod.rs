//! `TABLESAMPLE`: rows of a table by chance.
//!
//! ```text
//! FROM t TABLESAMPLE BERNOULLI (5)         Sample: each row by itself
//! FROM t TABLESAMPLE SYSTEM (5)            Sample: whole batches
//! FROM t TABLESAMPLE (1000 ROWS)           t with a random column, sorted by it, LIMIT 1000
//! ```
//!
//! DataFusion reads the clause and forgets it (apache/datafusion#24754). A filter by `random()` would not do: rules
//! move filters.

mod exec;
mod node;
mod relation;

pub use node::SampleNodePlanner;
pub use relation::SampledRelations;
