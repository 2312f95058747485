//! Memory of a large process, sampled: addresses drawn at random from its mappings, the node of each
//! page by `move_pages`, sums by the kernel's own counters.
//!
//! The kernel counts resident bytes in four groups (`RssAnon`, `RssFile`, `RssShmem`,
//! `HugetlbPages`), which is known without a walk. Each group is cut into as many strips of address
//! space as it gets samples, and one page is drawn from each strip, so that the sample is spread
//! evenly but has no period that could match interleaved pages. Every resident page of
//! a group is equally likely to be drawn; the group's bytes are then distributed in the
//! proportion found. If little of the address space is resident, more is drawn.

use std::collections::BTreeMap;

use atoll_sys::{Root, SplitMix64};
use atoll_topology::NodeId;

use super::draw::StripSample;
use super::homes::{PageHomes, PagesError};
use crate::inspect::missing::Missing;
use crate::inspect::process_memory::{MemoryOptions, Method, ProcessMemory};
use crate::inspect::procfs::maps::{MappingKind, Maps, ProcessMapping, SegmentId};
use crate::inspect::procfs::read::Unread;
use crate::inspect::procfs::status::Status;

/// Groups counted by the kernel.
const GROUPS: usize = 4;
/// Maximum number of rounds, each drawing four times as many as the last.
const ROUNDS_MAX: u32 = 3;
/// Minimum number of pages drawn from a group that has any.
const GROUP_PAGES_MIN: u64 = 256;
/// A group is sampled well enough once this share of its samples was resident: one in this many.
const RESIDENT_WANTED: u64 = 4;
/// Addresses passed to the kernel at a time.
const BATCH: usize = 4096;
/// Half the width of a 95 % interval, in standard deviations.
const DEVIATIONS: f64 = 1.96;

/// The result for one group.
#[derive(Default)]
struct GroupSample {
    looked: u64,
    resident: u64,
    /// Whether every page of it was looked up.
    is_whole: bool,
    found: BTreeMap<(MappingKind, Option<SegmentId>, NodeId), u64>,
}

pub(in crate::inspect) fn read(
    root: &Root,
    homes: &dyn PageHomes,
    pid: u32,
    page_size: u64,
    options: &MemoryOptions,
    status: &Status,
) -> Result<(ProcessMemory, Vec<Missing>), Unread> {
    let sizes = [status.anonymous, status.files, status.shared, status.huge];
    let mut memory = ProcessMemory::new(Method::Totals, status.swapped);
    let spaces = address_space(root, pid, page_size, &mut memory)?;
    let mut random = SplitMix64::new(options.seed);
    let mut seen: [GroupSample; GROUPS] = Default::default();
    for round in 0..ROUNDS_MAX {
        let factor = 4_u64.pow(round);
        let mut wanted = [0; GROUPS];
        for group in 0..GROUPS {
            let enough = seen[group].resident * RESIDENT_WANTED >= seen[group].looked.max(1);
            if sizes[group] > 0 && !enough && !seen[group].is_whole {
                wanted[group] =
                    drawn(options.sample_pages, sizes[group], status.resident(), factor);
            }
        }
        if wanted == [0; GROUPS] {
            break;
        }
        look(root, homes, pid, page_size, &spaces, &wanted, &mut random, &mut seen)?;
    }
    share_out(&seen, &sizes, status, &mut memory);
    let notes = vec![Missing {
        what: "policies of the mappings".to_owned(),
        need: "--exact, which walks every page table entry of this large process".to_owned(),
    }];
    Ok((memory, notes))
}

/// Pages to draw from a group.
fn drawn(sample: u64, bytes: u64, total: u64, factor: u64) -> u64 {
    let share = u128::from(sample) * u128::from(bytes) / u128::from(total.max(1));
    (share as u64).max(GROUP_PAGES_MIN).saturating_mul(factor)
}

/// Pages of address space of each group; adds to `memory` what other processes may map as well.
fn address_space(
    root: &Root,
    pid: u32,
    page_size: u64,
    memory: &mut ProcessMemory,
) -> Result<[u64; GROUPS], Unread> {
    let mut spaces = [0_u64; GROUPS];
    let mut maps = Maps::open(root, pid)?;
    while let Some(mapping) = maps.next()? {
        if mapping.usable {
            let space = &mut spaces[group_of(mapping.kind)];
            *space = space.saturating_add(pages_of(&mapping, page_size));
            memory.view(mapping.kind, &mapping, page_size);
        }
    }
    Ok(spaces)
}

fn pages_of(mapping: &ProcessMapping, page_size: u64) -> u64 {
    (mapping.end - mapping.start) / page_size
}

fn group_of(kind: MappingKind) -> usize {
    match kind {
        MappingKind::Program | MappingKind::File => 1,
        kind if kind.is_shared() => 2,
        MappingKind::HugePages => 3,
        _ => 0,
    }
}

/// Positions drawn from a group: its pages laid end to end.
struct DrawnPages {
    draw: StripSample,
    next: Option<u64>,
    /// Pages of the group in the mappings passed so far.
    passed: u64,
}

impl DrawnPages {
    fn new(pages: u64, strips: u64, random: &mut SplitMix64) -> Self {
        let mut draw = StripSample::new(pages, strips);
        let next = draw.next(random);
        Self { draw, next, passed: 0 }
    }

    fn advance(&mut self, random: &mut SplitMix64) {
        self.next = self.draw.next(random);
    }
}

/// Looks up the pages drawn. The mappings are read again rather than kept, so that memory is bounded
/// by the batch however many there are; mappings changed in between shift the draw a
/// little but bias nothing.
#[expect(clippy::too_many_arguments, reason = "one call site; a look needs all arguments")]
fn look(
    root: &Root,
    homes: &dyn PageHomes,
    pid: u32,
    page_size: u64,
    spaces: &[u64; GROUPS],
    wanted: &[u64; GROUPS],
    random: &mut SplitMix64,
    seen: &mut [GroupSample; GROUPS],
) -> Result<(), Unread> {
    let mut draws: [DrawnPages; GROUPS] =
        std::array::from_fn(|group| DrawnPages::new(spaces[group], wanted[group], random));
    for group in 0..GROUPS {
        if wanted[group] > 0 {
            let is_whole = wanted[group] >= spaces[group];
            seen[group] = GroupSample { is_whole, ..GroupSample::default() };
        }
    }
    let mut batch = AddressBatch { homes, pid, addresses: Vec::new(), what: Vec::new() };
    let mut maps = Maps::open(root, pid)?;
    while let Some(mapping) = maps.next()? {
        if !mapping.usable {
            continue;
        }
        let draw = &mut draws[group_of(mapping.kind)];
        let end = draw.passed.saturating_add(pages_of(&mapping, page_size));
        while let Some(page) = draw.next.filter(|page| *page < end) {
            let offset = (page - draw.passed).saturating_mul(page_size);
            batch.push(&mapping, mapping.start.saturating_add(offset), seen)?;
            draw.advance(random);
        }
        draw.passed = end;
    }
    batch.flush(seen)
}

/// Addresses to be passed to the kernel.
struct AddressBatch<'a> {
    homes: &'a dyn PageHomes,
    pid: u32,
    addresses: Vec<u64>,
    what: Vec<(MappingKind, Option<SegmentId>)>,
}

impl AddressBatch<'_> {
    fn push(
        &mut self,
        mapping: &ProcessMapping,
        address: u64,
        seen: &mut [GroupSample; GROUPS],
    ) -> Result<(), Unread> {
        self.addresses.push(address);
        self.what.push((mapping.kind, mapping.segment));
        if self.addresses.len() < BATCH { Ok(()) } else { self.flush(seen) }
    }

    fn flush(&mut self, seen: &mut [GroupSample; GROUPS]) -> Result<(), Unread> {
        if self.addresses.is_empty() {
            return Ok(());
        }
        let homes = self.homes.homes(self.pid, &self.addresses).map_err(|error| match error {
            PagesError::Ended | PagesError::Unsupported(_) => Unread::Absent,
            PagesError::Denied => Unread::Denied,
        })?;
        self.addresses.clear();
        for ((kind, segment), home) in self.what.drain(..).zip(homes) {
            let seen = &mut seen[group_of(kind)];
            seen.looked += 1;
            if let Some(node) = home {
                seen.resident += 1;
                *seen.found.entry((kind, segment, node)).or_insert(0) += 1;
            }
        }
        Ok(())
    }
}

/// The kernel's sums, distributed in the proportions found.
fn share_out(
    seen: &[GroupSample; GROUPS],
    sizes: &[u64; GROUPS],
    status: &Status,
    memory: &mut ProcessMemory,
) {
    let total = status.resident().max(1) as f64;
    let mut variance = 0.0;
    let sum = |count: fn(&GroupSample) -> u64| seen.iter().map(count).sum::<u64>();
    let (looked, resident) = (sum(|seen| seen.looked), sum(|seen| seen.resident));
    for (seen, bytes) in seen.iter().zip(sizes) {
        if seen.resident == 0 {
            memory.add(MappingKind::Unknown, None, None, *bytes);
            continue;
        }
        for ((kind, segment, node), pages) in &seen.found {
            let part = u128::from(*bytes) * u128::from(*pages) / u128::from(seen.resident);
            memory.add(*kind, *segment, Some(*node), part as u64);
        }
        if !seen.is_whole {
            // A share of a half has the largest variance.
            variance += (*bytes as f64 / total).powi(2) / (4.0 * seen.resident as f64);
        }
    }
    memory.method =
        Method::Sampled { looked, resident, error: (DEVIATIONS * variance.sqrt()).min(1.0) };
}
