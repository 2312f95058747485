//! Variants of aggregation.

pub(in crate::aggregate) mod local;
pub(in crate::aggregate) mod migrate;
pub(in crate::aggregate) mod migrate_copy;
mod migrating_worker;
pub(in crate::aggregate) mod naive;
mod pull;
pub(in crate::aggregate) mod ring;

use std::fmt;
use std::str::FromStr;

/// How an aggregation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The variant expected to be fastest: see [`choose`](super::choose).
    Auto,
    /// A table for each worker, merged at the end.
    Local,
    /// Partitioned; pieces are read from the first worker's on.
    Naive,
    /// Partitioned; pieces are read along the ring.
    Ring,
    /// Partitioned; workers go to the pieces, and their tables stay.
    Migrate,
    /// Partitioned; workers go to the pieces and copy their tables there.
    MigrateCopy,
}

impl Variant {
    /// All variants.
    pub const ALL: [Self; 6] =
        [Self::Auto, Self::Local, Self::Naive, Self::Ring, Self::Migrate, Self::MigrateCopy];

    /// Its name on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Local => "local",
            Self::Naive => "naive",
            Self::Ring => "ring",
            Self::Migrate => "migrate",
            Self::MigrateCopy => "migrate-copy",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|variant| variant.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown aggregation variant '{name}'; expected one of {names}")
        })
    }
}
