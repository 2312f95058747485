//! The measurements.

use clap::ValueEnum;

/// A kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ScanWork {
    /// Queries alone, each client asking again when it is answered
    Read,
    /// Queries that arrive at random moments, at shares of what `read` reached
    Open,
    /// Nine queries to one change
    Mix,
    /// A growing share of changes
    Changes,
    /// Queries while reports group all rows, on the same cores and with a pool for the reports
    Pools,
    /// Threads, processes that share memory and processes that send messages, side by side
    Designs,
}

/// When Atoll answers selections by a shared scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SharedScan {
    /// If several queries wait
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

impl SharedScan {
    /// The statement that sets it.
    pub(super) fn setting(self) -> String {
        let value = self.to_possible_value();
        let name = value.as_ref().map_or("auto", |value| value.get_name());
        format!("SET atoll.shared_scan = '{name}'")
    }
}
