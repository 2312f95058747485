//! `/proc/PID/task/TID/{schedstat,sched}`: time on cpus to the nanosecond, and migrations. Kernels
//! may lack either; the fields are then unknown.

use atoll_sys::Root;

use super::read::{field, text_if_readable};

/// `schedstat`: cheap, and unchanged while a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inspect) struct SchedStat {
    /// Nanoseconds on cpus.
    pub(in crate::inspect) nanos: u64,
    /// Times it was scheduled.
    pub(in crate::inspect) turns: u64,
}

/// `sched`: some forty lines, which the kernel formats for each reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::inspect) struct Sched {
    /// Moves from cpu to cpu.
    pub(in crate::inspect) migrations: Option<u64>,
    /// Pages that automatic balancing moved for it.
    pub(in crate::inspect) pages_migrated: Option<u64>,
    /// The node on which automatic balancing wants it; `None` if it has no preference.
    pub(in crate::inspect) node_preferred: Option<u32>,
}

pub(in crate::inspect) fn read_run(root: &Root, directory: &str) -> Option<SchedStat> {
    let text = text_if_readable(root, &format!("{directory}/schedstat"))?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (nanos, _waited, turns) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some(SchedStat { nanos: nanos.ok()?, turns: turns.ok()? })
}

pub(in crate::inspect) fn read(root: &Root, directory: &str) -> Sched {
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
