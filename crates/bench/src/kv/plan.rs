//! The plan of a run: its settings, which results are only resumed with, and its cases in their order.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use atoll_topology::{Bytes, Machine};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::KvArgs;
use super::case::{KvCase, KvWork};
use super::engine::EngineName;
use super::records::{KEY_BYTES, Records};
use super::{estimate, setup};
use crate::cache;
use crate::trials::{turns, unique};

/// The report's cache and write buffer, and the memory that `machines/symas-8.toml` assumes for its machine.
const REPORT_CACHE: u64 = 32 << 30;
const REPORT_BUFFER: u64 = 256 << 20;
const REPORT_MEMORY: u64 = 512 << 30;
/// Smaller ones make engines refuse or thrash.
const CACHE_MIN: u64 = 8 << 20;
const BUFFER_MIN: u64 = 1 << 20;

/// In which order records are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LoadOrder {
    /// By rising key
    Sequential,
    /// Without pattern
    Random,
}

/// Settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct KvPlan {
    pub(super) machine: String,
    pub(super) engines: Vec<EngineName>,
    pub(super) arms: Vec<String>,
    pub(super) readers: Vec<u32>,
    pub(super) seconds: f64,
    pub(super) records: Records,
    pub(super) load: Vec<LoadOrder>,
    pub(super) runs: u32,
    pub(super) cache_bytes: u64,
    pub(super) buffer_bytes: u64,
    /// Memory of this machine by that of the report's.
    pub(super) memory_factor: f64,
    /// The file system of the databases: `tmpfs`, `ext4`.
    pub(super) filesystem: String,
    /// Nodes with memory.
    pub(super) nodes: usize,
}

impl KvPlan {
    /// A small plan for tests: SQLite, one arm, one reader.
    #[cfg(test)]
    pub(super) fn small() -> Self {
        Self {
            machine: "m".to_owned(),
            engines: vec![EngineName::Sqlite],
            arms: vec!["subset(1)".to_owned()],
            readers: vec![1],
            seconds: 1.0,
            records: Records { count: 10, value_bytes: 100, seed: 1 },
            load: vec![LoadOrder::Sequential],
            runs: 1,
            cache_bytes: 1,
            buffer_bytes: 1,
            memory_factor: 1.0,
            filesystem: "ext4".to_owned(),
            nodes: 1,
        }
    }

    /// The plan of a command, and the directory of its databases.
    pub(super) fn new(args: &KvArgs, machine: &Machine) -> Result<(Self, TempDir)> {
        let databases = cache::databases(args.directory.as_deref())?;
        let memory = machine.memory();
        let memory_factor = memory.0 as f64 / REPORT_MEMORY as f64;
        let scaled = |bytes: u64, least: u64| ((bytes as f64 * memory_factor) as u64).max(least);
        let value_bytes = args.value_bytes as usize;
        let count = match args.records {
            Some(count) => count,
            None => estimate::records_that_fit(databases.path(), KEY_BYTES + value_bytes)?,
        };
        let plan = Self {
            machine: machine.name.clone(),
            engines: engines(args),
            arms: unique(args.arms.iter().map(ToString::to_string)),
            readers: unique(args.readers.iter().copied()),
            seconds: args.seconds,
            records: Records { count, value_bytes, seed: args.seed },
            load: unique(args.load.iter().copied()),
            runs: args.runs,
            cache_bytes: scaled(REPORT_CACHE, CACHE_MIN),
            buffer_bytes: scaled(REPORT_BUFFER, BUFFER_MIN),
            memory_factor,
            filesystem: filesystem(databases.path())?,
            nodes: machine.nodes_with_memory().count(),
        };
        Ok((plan, databases))
    }

    /// The cases of an engine, group by group: a group shares a database, whose loads come first.
    pub(super) fn groups(&self) -> impl Iterator<Item = Vec<KvCase>> {
        turns(&self.engines, self.runs, &self.arms).map(|(engine, run, arm)| {
            let case = |work| KvCase { engine, arm: arm.clone(), run, work };
            let loads = self.load.iter().map(|order| KvWork::Load { random: order.is_random() });
            // The database that is read and written is the last one that was loaded.
            let loads = loads.rev();
            let readers = self.readers.iter();
            let readers = readers.map(|readers| KvWork::ReadWhileWriting { readers: *readers });
            loads.chain(readers).map(case).collect()
        })
    }

    /// In words.
    pub(super) fn lines(&self) -> Vec<String> {
        let Records { count, value_bytes, .. } = self.records;
        vec![
            format!(
                "{count} records of {KEY_BYTES}-byte keys and {value_bytes}-byte values, {} (assumed: the \
                 report states neither; at 100 million such records the published files are 1.0 to 1.1 times \
                 as large where an engine keeps them densely)",
                Bytes(self.records.bytes())
            ),
            format!("databases on {}", medium(&self.filesystem)),
            format!(
                "cache {} and write buffer {}: the report's 32 GB and 256 MB times {:.4}, this machine's \
                 memory by the 512 GiB that are assumed for the report's",
                Bytes(self.cache_bytes),
                Bytes(self.buffer_bytes),
                self.memory_factor
            ),
            "no compression, the C library's malloc, no write waits for the disk; loads in batches of 1000 \
             (assumed)"
                .to_owned(),
        ]
    }
}

impl LoadOrder {
    fn is_random(self) -> bool {
        self == Self::Random
    }
}

/// The engines that were asked for, or those that are not built by `setup` and those that were.
fn engines(args: &KvArgs) -> Vec<EngineName> {
    if !args.engines.is_empty() {
        return unique(args.engines.iter().copied());
    }
    let is_there = |engine: &&EngineName| !engine.is_built() || setup::is_built(**engine);
    EngineName::value_variants().iter().filter(is_there).copied().collect()
}

/// `disk (ext4)`, `memory (tmpfs)`
fn medium(filesystem: &str) -> String {
    match filesystem {
        "tmpfs" | "ramfs" | "rootfs" => format!("memory ({filesystem})"),
        _ => format!("disk ({filesystem})"),
    }
}

/// The type of the file system that a directory is on.
fn filesystem(directory: &Path) -> Result<String> {
    let directory = directory.canonicalize().context("the directory of the databases")?;
    let mounts = fs::read_to_string("/proc/self/mounts").context("/proc/self/mounts")?;
    Ok(filesystem_in(&mounts, &directory).unwrap_or("unknown").to_owned())
}

/// The last mount of the longest path that the directory is under.
fn filesystem_in<'a>(mounts: &'a str, directory: &Path) -> Option<&'a str> {
    let fields = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = fields.filter(|(path, _)| directory.starts_with(path));
    above.max_by_key(|(path, _)| path.len()).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_above_a_directory_tells_its_file_system() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nx /tmp/deep xfs rw 0 0\n";
        let of = |path: &str| filesystem_in(mounts, Path::new(path));
        assert_eq!(of("/tmp/a"), Some("tmpfs"));
        assert_eq!(of("/tmp/deep/b"), Some("xfs"));
        assert_eq!(of("/tmpx"), Some("ext4"));
        assert_eq!(medium("tmpfs"), "memory (tmpfs)");
    }
}
