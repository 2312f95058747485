//! The lines between a benchmark and an engine's process: JSON, one object per line. The Python
//! rival speaks the same; `rivals/README.md` has the table.

use serde::{Deserialize, Serialize};

/// First line out: the tables are loaded.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Loaded {
    /// Name of the engine.
    pub engine: String,
    /// Its version.
    pub version: String,
    /// From the engine's start to the last table, in milliseconds.
    pub load_ms: f64,
    /// Resident memory before the load.
    pub rss_before_load_bytes: u64,
    /// Resident memory after the load.
    pub rss_bytes: u64,
    /// Highest resident memory so far.
    pub peak_rss_bytes: u64,
    /// Placement of tables and threads, from an engine that knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
}

/// Placement achieved, as the engine read it back from the kernel.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// Pages on the node they were wanted on.
    pub pages_at_home: u64,
    /// Pages on another node.
    pub pages_elsewhere: u64,
    /// Pages that no node was wanted for.
    pub pages_free: u64,
    /// Worker threads.
    pub workers: u64,
    /// Those whose binding the kernel confirmed.
    pub workers_bound: u64,
}

/// A line in.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Request {
    /// Run a query.
    Query {
        /// Its number.
        query: u8,
        /// Its text.
        sql: String,
    },
    /// Run a query and return the bytes that its scans read. Only Rust engines know this request.
    Scan {
        /// Its number.
        scan: u8,
        /// Its text.
        sql: String,
    },
    /// Forget all tables and settings, then run these statements.
    Reset {
        /// Their texts.
        reset: Vec<String>,
    },
    /// The last request.
    Quit {
        /// True.
        quit: bool,
    },
}

/// A line out: a query's time and result.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Answer {
    /// The query.
    pub query: u8,
    /// From the text to the whole result in memory, in milliseconds.
    pub ms: f64,
    /// Kinds of the columns.
    pub columns: Vec<Kind>,
    /// Rows of texts; none is NULL. Decimals have all digits of their scale.
    pub values: Vec<Vec<Option<String>>>,
}

/// The kind of a column, as far as comparisons need it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Whole numbers.
    Integer,
    /// Numbers with a fixed number of digits after the point.
    Decimal,
    /// Binary floating point.
    Float,
    /// Everything that is equal when its text is: strings, dates as `YYYY-MM-DD`.
    Text,
}

/// A line out: bytes read by the scans of a query.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Scanned {
    /// The query.
    pub scan: u8,
    /// Bytes, local and remote together; None if the engine does not count them.
    pub bytes: Option<u64>,
}

/// A line out: the engine is empty but for what the statements made.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct WasReset {
    /// Number of statements that were run.
    pub reset: usize,
}

/// A line out: the request, or the load, failed.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The engine's message.
    pub error: String,
}

/// Last line out.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Last {
    /// Highest resident memory of the whole run.
    pub peak_rss_bytes: u64,
}
