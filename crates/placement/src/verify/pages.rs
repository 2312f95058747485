//! Homes of the pages of buffers.

use std::collections::BTreeMap;

use atoll_topology::{Bytes, NodeId};

use crate::{Kernel, KernelError};

/// Pages looked at by [`verify_pages`] at most: 16 GiB in base pages are seen in full up to it, and
/// beyond it shares are exact to a tenth of a percent. Looking one page up takes some 0.2 µs.
pub const PAGES_SEEN_MAX: u64 = 4 << 20;

/// Addresses handed to the kernel at a time.
const BATCH: usize = 16_384;

/// Bytes whose pages are to be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    /// The node they were asked for; `None` where no policy was set.
    pub wanted: Option<NodeId>,
    /// Address of the first byte.
    pub start: usize,
    /// Length in bytes.
    pub len: usize,
}

/// Where pages are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PagesReport {
    /// Pages seen, by the node wanted (`None` where no policy was set) and the node found.
    pub pages: BTreeMap<(Option<NodeId>, NodeId), u64>,
    /// Pages seen that have no home yet.
    pub untouched: u64,
    /// Base pages that the ranges overlap. Ranges that share a page count it once each.
    pub pages_total: u64,
    /// Pages looked at: all, or evenly spaced ones.
    pub pages_seen: u64,
    /// Whether only some of the pages were looked at.
    pub sampled: bool,
    /// Length of the ranges.
    pub bytes: Bytes,
}

impl PagesReport {
    /// Pages seen that were wanted on a node and are there.
    pub fn at_home(&self) -> u64 {
        self.sum(|wanted, found| wanted == Some(found))
    }

    /// Pages seen that were wanted on a node and are on another.
    pub fn elsewhere(&self) -> u64 {
        self.sum(|wanted, found| wanted.is_some_and(|wanted| wanted != found))
    }

    /// Pages seen on each node, whatever was wanted.
    pub fn by_node(&self) -> BTreeMap<NodeId, u64> {
        let mut nodes = BTreeMap::new();
        for ((_, found), pages) in &self.pages {
            *nodes.entry(*found).or_insert(0) += pages;
        }
        nodes
    }

    fn sum(&self, counts: impl Fn(Option<NodeId>, NodeId) -> bool) -> u64 {
        let chosen = self.pages.iter().filter(|((wanted, found), _)| counts(*wanted, *found));
        chosen.map(|(_, pages)| pages).sum()
    }
}

/// Asks the kernel for the home of every page of the ranges, or of [`PAGES_SEEN_MAX`] evenly spaced
/// ones where there are more (the report says so). Nothing is touched by looking.
pub fn verify_pages(kernel: &dyn Kernel, ranges: &[PageRange]) -> Result<PagesReport, KernelError> {
    verify_pages_sampled(kernel, ranges, PAGES_SEEN_MAX)
}

/// The same, looking at no more than `pages_max` pages; at least one.
#[doc(alias = "move_pages")]
pub fn verify_pages_sampled(
    kernel: &dyn Kernel,
    ranges: &[PageRange],
    pages_max: u64,
) -> Result<PagesReport, KernelError> {
    let page_size = kernel.page_size();
    let pages_total = ranges.iter().map(|range| pages_of(range, page_size)).sum();
    let pages_seen = pages_max.max(1).min(pages_total);
    let mut report = PagesReport {
        pages_total,
        pages_seen,
        sampled: pages_seen < pages_total,
        bytes: Bytes(ranges.iter().map(|range| range.len as u64).sum()),
        ..PagesReport::default()
    };
    let mut wanted = Vec::with_capacity(BATCH);
    let mut addresses = Vec::with_capacity(BATCH);
    for (node, address) in chosen(ranges, page_size, pages_total, pages_seen) {
        wanted.push(node);
        addresses.push(address);
        if addresses.len() == BATCH {
            count(kernel, &mut report, &mut wanted, &mut addresses)?;
        }
    }
    count(kernel, &mut report, &mut wanted, &mut addresses)?;
    Ok(report)
}

/// Pages that a range overlaps.
fn pages_of(range: &PageRange, page_size: usize) -> u64 {
    match range.len.checked_sub(1) {
        Some(last) => {
            let last_page = range.start.saturating_add(last) / page_size;
            (last_page - range.start / page_size + 1) as u64
        }
        None => 0,
    }
}

/// Wanted node and address of `seen` pages out of `total`, evenly spaced over all ranges laid end to
/// end.
fn chosen(
    ranges: &[PageRange],
    page_size: usize,
    total: u64,
    seen: u64,
) -> impl Iterator<Item = (Option<NodeId>, usize)> {
    let mut ranges = ranges.iter();
    let mut current = None;
    let (mut first, mut end) = (0, 0);
    (0..seen).filter_map(move |i| {
        let page = (u128::from(i) * u128::from(total) / u128::from(seen)) as u64;
        while page >= end {
            let range = ranges.next()?;
            (first, end) = (end, end + pages_of(range, page_size));
            current = Some(range);
        }
        let range: &PageRange = current?;
        let start = range.start / page_size * page_size;
        Some((range.wanted, start + (page - first) as usize * page_size))
    })
}

fn count(
    kernel: &dyn Kernel,
    report: &mut PagesReport,
    wanted: &mut Vec<Option<NodeId>>,
    addresses: &mut Vec<usize>,
) -> Result<(), KernelError> {
    let homes = kernel.homes(addresses)?;
    addresses.clear();
    for (wanted, home) in wanted.drain(..).zip(homes) {
        match home {
            Some(found) => *report.pages.entry((wanted, found)).or_insert(0) += 1,
            None => report.untouched += 1,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(ranges: &[(usize, usize)], seen: u64) -> Vec<usize> {
        let ranges: Vec<PageRange> = ranges
            .iter()
            .map(|(start, len)| PageRange { wanted: None, start: *start, len: *len })
            .collect();
        let total = ranges.iter().map(|range| pages_of(range, 4096)).sum();
        chosen(&ranges, 4096, total, seen.min(total)).map(|(_, address)| address).collect()
    }

    #[test]
    fn every_page_that_a_range_overlaps_is_chosen_once() {
        assert_eq!(addresses(&[(4095, 2), (0, 0), (8192, 4096)], 10), [0, 4096, 8192]);
        assert_eq!(addresses(&[], 10), [0; 0]);
    }

    #[test]
    fn a_sample_is_spread_evenly_over_all_ranges() {
        let page = |n: usize| n * 4096;
        assert_eq!(
            addresses(&[(0, page(6)), (page(100), page(6))], 4),
            [0, page(3), page(100), page(103)]
        );
        assert_eq!(addresses(&[(0, page(1000))], 1), [0]);
    }

    #[test]
    fn a_range_at_the_end_of_the_address_space_does_not_overflow() {
        let range = PageRange { wanted: None, start: usize::MAX - 1, len: usize::MAX };
        assert_eq!(pages_of(&range, 4096), 1);
    }
}
