//! Counts of an arm.

use serde::Serialize;

use crate::Arm;

/// Counts of an arm's region, and the machine model's results from them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counted {
    /// The title of the arm.
    #[serde(skip)]
    pub arm: Arm,
    /// Accesses to arrays, of all threads and repetitions.
    pub accesses: u64,
    /// Hits of last-level caches on lines that no other domain has: modified or exclusive.
    pub hits_unshared: u64,
    /// Hits on lines that others have too: shared or forward.
    pub hits_shared: u64,
    /// Misses of last-level caches.
    pub misses: u64,
    /// Lines that another domain's cache supplied.
    pub from_caches: u64,
    /// Lines that memory of another node supplied.
    pub from_remote_memory: u64,
    /// Time of all waits for lines one by one, ns.
    pub wait_ns: f64,
    /// Time of the busiest controller or link, ns.
    pub busiest_ns: f64,
    /// Name of that one.
    pub busiest: String,
    /// Over time.
    pub series: Vec<Point>,
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Accesses counted up to its end.
    pub accesses: u64,
    /// Share of the accesses that reached the last-level caches and hit; None if there were none.
    pub hit_rate: Option<f64>,
}

impl Counted {
    /// Share of the accesses to last-level caches that hit.
    pub fn hit_rate(&self) -> Option<f64> {
        share(self.hits_unshared + self.hits_shared, self.misses)
    }

    /// Share of the hits that are on lines no other domain has.
    pub fn unshared(&self) -> Option<f64> {
        share(self.hits_unshared, self.hits_shared)
    }

    /// Mean wait for a line, ns.
    pub(super) fn wait(&self) -> f64 {
        self.wait_ns / (self.accesses as f64).max(1.0)
    }

    /// Service at the busiest controller or link during one access of each thread, ns.
    pub(super) fn service(&self) -> f64 {
        let of_a_thread = self.accesses as f64 / self.arm.threads().max(1) as f64;
        self.busiest_ns / of_a_thread.max(1.0)
    }

    /// Threads that meet at one memory: those of the groups whose arrays lie on the same node.
    pub(super) fn rivals(&self) -> usize {
        let homes = self.arm.groups.iter().map(|group| {
            let same = self.arm.groups.iter().filter(|other| other.home == group.home);
            same.map(|group| group.threads.len()).sum()
        });
        homes.max().unwrap_or(1)
    }
}

/// The part of both; none of nothing.
fn share(part: u64, rest: u64) -> Option<f64> {
    let whole = part as f64 + rest as f64;
    (whole > 0.0).then(|| part as f64 / whole)
}
