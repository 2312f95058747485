//! Sums and shares of counts. Sums stop at the largest number: a record may say anything.

use atoll_simulation::{CacheCounts, StateCounts, Traffic};

/// Loads and stores by (node of the cpu, home).
pub(super) fn accesses(traffic: &Traffic) -> Vec<Vec<u64>> {
    let add = |(a, b): (&u64, &u64)| a.saturating_add(*b);
    let rows = traffic.loads.iter().zip(&traffic.stores);
    rows.map(|(loads, stores)| loads.iter().zip(stores).map(add).collect()).collect()
}

/// Sum of a list.
pub(super) fn sum<'a>(counts: impl IntoIterator<Item = &'a u64>) -> u64 {
    counts.into_iter().fold(0, |sum, count| sum.saturating_add(*count))
}

/// Sum of a matrix.
pub(super) fn total(rows: &[Vec<u64>]) -> u64 {
    sum(rows.iter().flatten())
}

/// Sum of a matrix's diagonal: the local accesses.
pub(super) fn local(rows: &[Vec<u64>]) -> u64 {
    sum(rows.iter().enumerate().filter_map(|(at, row)| row.get(at)))
}

/// A part of a whole; None if there is no whole.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Share of a matrix that is local.
pub(super) fn local_share(rows: &[Vec<u64>]) -> Option<f64> {
    share(local(rows), total(rows))
}

/// Hits of a last-level cache.
pub(super) fn hits(caches: &CacheCounts) -> u64 {
    let StateCounts { modified, exclusive, shared, forward } = caches.llc_hits;
    sum(&[modified, exclusive, shared, forward])
}

/// Hits and misses of all last-level caches.
pub(super) fn lookups(traffic: &Traffic) -> (u64, u64) {
    let hits: Vec<u64> = traffic.caches.iter().map(hits).collect();
    let misses: Vec<u64> = traffic.caches.iter().map(|caches| caches.llc_misses).collect();
    (sum(&hits), sum(&misses))
}

/// Share of what reached the last-level caches that was found there.
pub(super) fn hit_rate(traffic: &Traffic) -> Option<f64> {
    let (hits, misses) = lookups(traffic);
    share(hits, hits.saturating_add(misses))
}

/// Bytes through each memory controller.
pub(super) fn controller_bytes(traffic: &Traffic) -> Vec<u64> {
    traffic.controllers.iter().map(|it| it.read.saturating_add(it.written)).collect()
}

/// Bytes over each link and direction, forward first.
pub(super) fn link_bytes(traffic: &Traffic) -> Vec<u64> {
    traffic.links.iter().flat_map(|it| [it.forward, it.backward]).collect()
}
