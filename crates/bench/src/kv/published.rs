//! The report's tables, as data with their source (`data/symas-2014.toml`).

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::engine::EngineName;

/// Engine that cannot be had today.
pub(super) const LOST: &str = "TokuDB";
/// LMDB with the changes at the report's end, which every later version has.
pub(super) const UPDATE: &str = "LMDB Update";

/// All rows.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    /// The machine, by its name in `machines/`.
    pub(super) machine: String,
    pub(super) load: Vec<PublishedLoad>,
    pub(super) mixed: Vec<PublishedMixed>,
}

/// A load.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PublishedLoad {
    /// `local` or `interleave`.
    pub(super) allocation: String,
    pub(super) engine: String,
    #[serde(flatten)]
    pub(super) usage: PublishedUsage,
}

/// A writer and some readers, memory interleaved.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PublishedMixed {
    pub(super) engine: String,
    pub(super) readers: u32,
    #[serde(flatten)]
    pub(super) usage: PublishedUsage,
    pub(super) writes_per_s: u64,
    pub(super) reads_per_s: u64,
}

/// The columns of both.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct PublishedUsage {
    pub(super) wall_s: f64,
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    pub(super) cpu_percent: u64,
    pub(super) db_kb: u64,
    pub(super) process_kb: u64,
    pub(super) total_kb: u64,
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
}

impl Published {
    /// Reads it.
    pub(super) fn read() -> Result<Self> {
        toml::from_str(include_str!("../../data/symas-2014.toml")).context("the published figures")
    }

    /// A rate of the report, if it has such a row.
    pub(super) fn mixed(&self, engine: &str, readers: u32) -> Option<&PublishedMixed> {
        self.mixed.iter().find(|row| row.engine == engine && row.readers == readers)
    }
}

/// The names of an engine in the two tables of the report; None if it is not in it.
pub(super) fn names(engine: EngineName) -> Option<(&'static str, &'static str)> {
    Some(match engine {
        EngineName::Leveldb => ("LevelDB", "LevelDB"),
        EngineName::Basho => ("Basho", "Basho LevelDB"),
        EngineName::Berkeleydb => ("BDB", "BerkeleyDB"),
        EngineName::Hyperleveldb => ("Hyper", "HyperLevelDB"),
        EngineName::Lmdb => ("LMDB", "LMDB"),
        EngineName::Rocksdb => ("RocksDB", "RocksDB"),
        EngineName::Rocksdbpfx => ("RocksDBpfx", "RocksDBpfx"),
        EngineName::WiredtigerLsm => ("WiredLSM", "WiredTiger LSM"),
        EngineName::WiredtigerBtree => ("WiredBtree", "WiredTiger Btree"),
        EngineName::Libmdbx
        | EngineName::Redb
        | EngineName::Fjall
        | EngineName::Sqlite
        | EngineName::Atoll => return None,
    })
}

/// Throughput of each engine's sequential load interleaved by that of the same load under local allocation.
///
/// # Errors
/// When the figures cannot be read.
pub(crate) fn published_load_ratios() -> Result<Vec<(String, f64)>> {
    let Published { load, .. } = Published::read()?;
    let interleaved = |local: &PublishedLoad| {
        let mut all = load.iter().filter(|it| it.allocation == "interleave");
        all.find(|it| it.engine == local.engine).map(|it| local.usage.wall_s / it.usage.wall_s)
    };
    let locals = load.iter().filter(|it| it.allocation == "local");
    Ok(locals.filter_map(|it| Some((it.engine.clone(), interleaved(it)?))).collect())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_row_of_the_report_is_there_under_a_name_that_is_known() {
        let published = Published::read().expect("the file is valid");
        assert_eq!((published.load.len(), published.mixed.len()), (20, 77));
        let known: Vec<_> =
            EngineName::value_variants().iter().filter_map(|it| names(*it)).collect();
        for row in &published.load {
            let is_known = known.iter().any(|(name, _)| *name == row.engine) || row.engine == LOST;
            assert!(is_known, "{}", row.engine);
        }
        for row in &published.mixed {
            let is_known = known.iter().any(|(_, name)| *name == row.engine);
            assert!(is_known || [LOST, UPDATE].contains(&row.engine.as_str()), "{}", row.engine);
        }
        for (load, mixed) in known {
            assert_eq!(published.load.iter().filter(|row| row.engine == load).count(), 2, "{load}");
            assert_eq!(
                published.mixed.iter().filter(|row| row.engine == mixed).count(),
                7,
                "{mixed}"
            );
        }
        let most = published.mixed("LMDB", 64).expect("a row");
        let one = published.mixed("LMDB", 1).expect("a row");
        let times = most.reads_per_s as f64 / one.reads_per_s as f64;
        assert!((times - 34.75).abs() < 0.01, "{times}");
    }
}
