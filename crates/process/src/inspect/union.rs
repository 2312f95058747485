//! Objects that several processes map, counted once: every page that any of the processes has in its page
//! table.
//!
//! A page is known by its offset in the object, since processes may map it at different addresses.
//! The homes of all offsets are requested from the process that maps most of the object, those
//! that it does not map from the next one, and so on. If that takes too many requests, offsets are
//! drawn, the same for all processes, and the result is scaled up.
//!
//! Pages in no page table are not seen: those touched only by processes that have ended, or
//! written through a file.

use std::collections::BTreeMap;

use atoll_sys::SplitMix64;
use atoll_topology::NodeId;

use super::bytes::{NodeBytes, add};
use super::missing::Missing;
use super::process::Process;
use super::process_memory::{MemoryOptions, Method, ProcessMemory};
use super::residency::draw::StripSample;
use super::residency::homes::{PageHomes, PagesError};
use super::segment::{MappedRange, ObjectKey, Segment};

/// Pages looked up in one round, which bounds memory however large an object is.
const BATCH: usize = 16_384;
/// Maximum number of requests for each page looked up in a sampled process.
const QUESTIONS_PER_SAMPLE: u64 = 64;
/// The same while watching, so that the figures are not minutes old: some 25 ms' worth.
const QUESTIONS_PER_SAMPLE_WATCHED: u64 = 8;
/// Maximum number of requests if every page is to be counted: some ten seconds' worth.
const QUESTIONS_MAX: u64 = 1 << 26;
/// Minimum number of pages drawn from an object.
const DRAWN_MIN: u64 = 64;
/// Half the width of a 95 % interval, in standard deviations.
const DEVIATIONS: f64 = 1.96;

/// How shared objects were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum Union {
    /// There are none.
    #[default]
    None,
    /// Every page mapped by a living process, once.
    Exact,
    /// Some pages were looked up, drawn at random, in all processes.
    Sampled {
        /// Pages looked up.
        looked: u64,
        /// Of these, resident.
        resident: u64,
        /// Half the width of the 95 % confidence interval of the bytes on a node.
        error_bytes: u64,
    },
    /// The pages of some objects cannot be looked up: for those, for each node, the largest amount of any one
    /// process, which is a lower bound.
    Maximum,
    /// Some processes may not be traced: their shared objects count in each of them.
    Each,
}

/// The objects that several processes map, and the bytes of each.
#[derive(Default)]
pub(super) struct United {
    pub(super) how: Union,
    pub(super) bytes: BTreeMap<ObjectKey, NodeBytes>,
    pub(super) missing: Vec<Missing>,
}

/// A request: an object with the processes that map it, those that map most of it first.
struct SharedObject<'a> {
    key: ObjectKey,
    parts: Vec<(u32, &'a Segment)>,
    ranges: ObjectRanges,
    drawn: u64,
}

impl United {
    /// Counts the shared objects of these processes, with fewer requests if the count is to be
    /// repeated.
    pub(super) fn read(
        homes: &dyn PageHomes,
        page_size: u64,
        processes: &[Process],
        options: &MemoryOptions,
        is_watched: bool,
    ) -> Self {
        let mut objects = objects(processes, page_size);
        allot(&mut objects, questions(options, is_watched));
        let mut united = Self::default();
        let (mut looked, mut resident, mut variance) = (0, 0, 0.0);
        let (mut is_sampled, mut is_cut) = (false, false);
        for object in &objects {
            let found = match object.look(homes, options.seed) {
                Ok(found) => found,
                Err(missing) => {
                    united.missing.push(missing);
                    is_cut = true;
                    continue;
                }
            };
            looked += object.drawn;
            resident += found.values().sum::<u64>();
            is_sampled |= object.drawn < object.ranges.pages;
            variance += object.variance(&found);
            united.bytes.insert(object.key, object.scaled(&found));
        }
        united.missing.dedup();
        united.how = match objects.is_empty() {
            _ if counts_in_each(processes) => Union::Each,
            true => Union::None,
            false if is_cut => Union::Maximum,
            false if !is_sampled => Union::Exact,
            false => {
                let error_bytes = (DEVIATIONS * variance.sqrt()).ceil() as u64;
                Union::Sampled { looked, resident, error_bytes }
            }
        };
        united
    }
}

/// Whether only sums are known of one of several processes.
fn counts_in_each(processes: &[Process]) -> bool {
    let mut memories = processes.iter().filter_map(|process| process.memory.as_ref());
    processes.len() > 1
        && memories.any(|memory| memory.method == Method::Totals && memory.resident() > 0)
}

fn questions(options: &MemoryOptions, is_watched: bool) -> u64 {
    let per_sample = match is_watched {
        _ if options.is_exact => return QUESTIONS_MAX,
        true => QUESTIONS_PER_SAMPLE_WATCHED,
        false => QUESTIONS_PER_SAMPLE,
    };
    options.sample_pages.saturating_mul(per_sample)
}

/// Objects mapped by more than one process.
fn objects(processes: &[Process], page_size: u64) -> Vec<SharedObject<'_>> {
    let mut parts: BTreeMap<ObjectKey, Vec<(u32, &Segment)>> = BTreeMap::new();
    for process in processes {
        for (key, segment) in process.memory.iter().flat_map(ProcessMemory::segments) {
            parts.entry(*key).or_default().push((process.id.pid, segment));
        }
    }
    parts.retain(|_, parts| parts.len() > 1);
    let mut objects = Vec::new();
    for (key, mut parts) in parts {
        let has = |segment: &Segment| segment.bytes.values().sum::<u64>();
        parts.sort_by_key(|(_, segment)| std::cmp::Reverse(has(segment)));
        let page = parts.iter().map(|(_, segment)| segment.page_size).max();
        let views = parts.iter().flat_map(|(_, segment)| &segment.views);
        let ranges = ObjectRanges::from_views(views, page.unwrap_or(page_size).max(page_size));
        objects.push(SharedObject { key, parts, ranges, drawn: 0 });
    }
    objects
}

/// Decides how many pages of each object are looked up so that all requests stay within their
/// bound: small objects completely, larger ones from the remainder.
fn allot(objects: &mut [SharedObject<'_>], questions: u64) {
    let asked =
        |object: &SharedObject<'_>| object.ranges.pages.saturating_mul(object.parts.len() as u64);
    objects.sort_by_key(asked);
    let mut left = questions;
    let mut count = objects.len() as u64;
    for object in objects {
        let fair = left / count / object.parts.len() as u64;
        object.drawn = fair.max(DRAWN_MIN).min(object.ranges.pages);
        left = left.saturating_sub(object.drawn * object.parts.len() as u64);
        count -= 1;
    }
}

impl SharedObject<'_> {
    /// Drawn pages by node.
    fn look(&self, homes: &dyn PageHomes, seed: u64) -> Result<BTreeMap<NodeId, u64>, Missing> {
        if self.parts.iter().any(|(_, segment)| !segment.is_whole) {
            return Err(missing("fewer mappings: one process maps it in too many places"));
        }
        let (mut draw, mut random) =
            (StripSample::new(self.ranges.pages, self.drawn), SplitMix64::new(seed));
        let mut found = BTreeMap::new();
        loop {
            let next = || draw.next(&mut random).map(|page| self.ranges.offset(page));
            let mut offsets: Vec<u64> = std::iter::from_fn(next).take(BATCH).collect();
            if offsets.is_empty() {
                return Ok(found);
            }
            for (pid, segment) in &self.parts {
                for view in &segment.views {
                    ask(homes, *pid, view, &mut offsets, &mut found).or_else(forgiven)?;
                }
            }
        }
    }

    /// The bytes of all pages, with the proportions of the drawn ones.
    fn scaled(&self, found: &BTreeMap<NodeId, u64>) -> NodeBytes {
        let ObjectRanges { pages, page_size, .. } = self.ranges;
        let mut bytes = NodeBytes::new();
        for (node, count) in found {
            let pages = u128::from(*count) * u128::from(pages) / u128::from(self.drawn.max(1));
            add(&mut bytes, Some(*node), (pages as u64).saturating_mul(page_size));
        }
        bytes
    }

    /// The variance of the bytes on a node, for the node with the largest variance. After Agresti and
    /// Coull (1998), so that shares of 0 and 1 have one too. Strips make it smaller.
    fn variance(&self, found: &BTreeMap<NodeId, u64>) -> f64 {
        if self.drawn >= self.ranges.pages {
            return 0.0;
        }
        let trials = self.drawn as f64 + 4.0;
        let of = |count: u64| {
            let share = (count as f64 + 2.0) / trials;
            share * (1.0 - share) / trials
        };
        let bytes = self.ranges.pages as f64 * self.ranges.page_size as f64;
        bytes.powi(2) * found.values().map(|count| of(*count)).fold(of(0), f64::max)
    }
}

/// Looks up those of the offsets, in rising order, that a process maps; keeps the
/// others.
fn ask(
    homes: &dyn PageHomes,
    pid: u32,
    view: &MappedRange,
    offsets: &mut Vec<u64>,
    found: &mut BTreeMap<NodeId, u64>,
) -> Result<(), PagesError> {
    let first = offsets.partition_point(|offset| *offset < view.offset);
    let end = offsets.partition_point(|offset| *offset < view.end());
    if first >= end {
        return Ok(());
    }
    let address = |offset: &u64| view.start.saturating_add(offset - view.offset);
    let addresses: Vec<u64> = offsets[first..end].iter().map(address).collect();
    let mut homes = homes.homes(pid, &addresses)?.into_iter();
    let mut position = 0;
    offsets.retain(|_| {
        let is_asked = (first..end).contains(&position);
        position += 1;
        let home = if is_asked { homes.next().flatten() } else { None };
        if let Some(node) = home {
            *found.entry(node).or_insert(0) += 1;
        }
        home.is_none()
    });
    Ok(())
}

/// A process that ended has no pages any more.
fn forgiven(error: PagesError) -> Result<(), Missing> {
    match error {
        PagesError::Ended => Ok(()),
        PagesError::Denied => Err(Missing::rights(WHAT)),
        PagesError::Unsupported(reason) => Err(missing(&format!("a kernel to ask: {reason}"))),
    }
}

const WHAT: &str = "all of what several processes map as one (of some of it, the most that one of \
                    them has is shown)";

fn missing(need: &str) -> Missing {
    Missing { what: WHAT.to_owned(), need: need.to_owned() }
}

/// The mapped parts of an object, laid end to end.
struct ObjectRanges {
    /// First offset in the object, and number of pages before it in the order.
    parts: Vec<(u64, u64)>,
    pages: u64,
    page_size: u64,
}

impl ObjectRanges {
    fn from_views<'a>(views: impl Iterator<Item = &'a MappedRange>, page_size: u64) -> Self {
        let page = |offset: u64| offset / page_size;
        let mut ranges: Vec<(u64, u64)> =
            views.map(|view| (page(view.offset), view.end().div_ceil(page_size))).collect();
        ranges.sort_unstable();
        let (mut parts, mut pages, mut passed) = (Vec::new(), 0, 0);
        for (first, end) in ranges {
            let first = first.max(passed);
            if first < end {
                parts.push((first * page_size, pages));
                pages += end - first;
                passed = end;
            }
        }
        Self { parts, pages, page_size }
    }

    /// The offset of a page, by its index in the order.
    fn offset(&self, page: u64) -> u64 {
        let behind = self.parts.partition_point(|(_, before)| *before <= page);
        let Some((offset, before)) = self.parts[..behind].last() else { return 0 };
        offset + (page - before) * self.page_size
    }
}
