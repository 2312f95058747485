//! The measurements.

use clap::ValueEnum;

/// A kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ServerWork {
    /// pgbench -i: four tables, COPY, keys, VACUUM
    Init,
    /// pgbench -S: a row by its key
    Select,
    /// pgbench's own script, after TPC-B: five statements in a transaction, synced
    #[value(name = "tpcb")]
    TpcB,
    /// pgbench -C: a connection for each row
    Connect,
    /// Memory that idle connections add
    Idle,
    /// A large result, sent to a client that discards it
    Rows,
    /// The same over Arrow Flight SQL, next to PostgreSQL over its own protocol
    Flight,
}

/// How pgbench sends its statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum QueryProtocol {
    /// As text
    Simple,
    /// Parsed and bound each time
    Extended,
    /// Parsed once
    Prepared,
}

impl QueryProtocol {
    /// As `pgbench -M` takes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }
}
