//! `/proc/PID/task/TID/{schedstat,sched}`: time on cpus to the nanosecond, and migrations. Kernels
//! may lack either; the fields are then unknown.

use atoll_sys::Root;

use super::read::{field, text_if_readable};

/// `schedstat`: cheap, and unchanged while a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SchedStat {
    /// Nanoseconds on cpus.
    pub(super) nanos: u64,
    /// Times it was scheduled.
    pub(super) turns: u64,
}

/// `sched`: some forty lines, which the kernel formats for each reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sched {
    /// Moves from cpu to cpu.
    pub(super) migrations: Option<u64>,
    /// Pages that automatic balancing moved for it.
    pub(super) pages_migrated: Option<u64>,
    /// The node on which automatic balancing wants it; `None` if it has no preference.
    pub(super) node_preferred: Option<u32>,
}

pub(super) fn read_run(root: &Root, directory: &str) -> Option<SchedStat> {
    let text = text_if_readable(root, &format!("{directory}/schedstat"))?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (nanos, _waited, turns) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some(SchedStat { nanos: nanos.ok()?, turns: turns.ok()? })
}

pub(super) fn read(root: &Root, directory: &str) -> Sched {
    let Some(text) = text_if_readable(root, &format!("{directory}/sched")) else {
        return Sched::default();
    };
    Sched {
        migrations: field(&text, "se.nr_migrations").and_then(|value| value.parse().ok()),
        pages_migrated: field(&text, "numa_pages_migrated").and_then(|value| value.parse().ok()),
        // -1 is unset.
        node_preferred: field(&text, "numa_preferred_nid").and_then(|value| value.parse().ok()),
    }
}
