//! Modelled caches out of declared ones; undeclared ones are assumed, which is reported.

use atoll_simulation::{CacheShape, TlbShape};
use atoll_topology::{Bytes, Cache, CacheKind, Core, CpuSet, Domain, Machine};

const LINE: u64 = 64;
const L1: Bytes = Bytes(32 << 10);
const L2: Bytes = Bytes(256 << 10);
const LLC: Bytes = Bytes(8 << 20);
const PRIVATE_WAYS: u32 = 8;
const LLC_WAYS: u32 = 16;
/// Both levels of a data TLB as one: no machine file describes them.
const DTLB: TlbShape = TlbShape { sets: 128, ways: 4 };

/// The caches of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) line: u64,
    pub(super) l1: CacheShape,
    pub(super) l2: Option<CacheShape>,
    /// Last-level caches by domain.
    pub(super) llc: Vec<CacheShape>,
    pub(super) dtlb: TlbShape,
}

impl Model {
    /// The sizes of the machine are divided already.
    pub(super) fn from_machine(machine: &Machine, divisor: u32, notes: &mut Vec<String>) -> Self {
        let line = line(machine);
        let mut assumed = Vec::new();
        let l1 = private(machine, 1);
        let l1 = shape(l1, L1, PRIVATE_WAYS, line, divisor, "L1", &mut assumed);
        let l2 = private(machine, 2);
        let is_l2_assumed = machine.caches.is_empty() && !is_last(machine, 2);
        let l2 = (l2.is_some() || is_l2_assumed)
            .then(|| shape(l2, L2, PRIVATE_WAYS, line, divisor, "L2", &mut assumed));
        let llc = machine.domains.iter().map(|domain| {
            let cache = last_level(machine, domain);
            shape(cache, LLC, LLC_WAYS, line, divisor, "last-level cache", &mut assumed)
        });
        let llc = llc.collect();
        assumed.dedup();
        notes.append(&mut assumed);
        let sets = (DTLB.sets / divisor).max(1);
        Self { line, l1, l2, llc, dtlb: TlbShape { sets, ..DTLB } }
    }
}

/// A cache as far as it is known.
struct Known {
    size: Option<Bytes>,
    ways: Option<u32>,
}

impl From<&Cache> for Known {
    fn from(cache: &Cache) -> Self {
        Self { size: cache.size, ways: cache.ways }
    }
}

/// Sets and ways; an unknown size is assumed before it is divided.
fn shape(
    known: Option<Known>,
    assumed: Bytes,
    ways: u32,
    line: u64,
    divisor: u32,
    name: &str,
    notes: &mut Vec<String>,
) -> CacheShape {
    let size = known.as_ref().and_then(|known| known.size).unwrap_or_else(|| {
        notes.push(format!("the size of the {name} is not declared; {assumed} assumed"));
        Bytes(assumed.0 / u64::from(divisor))
    });
    // 0 says fully associative, which for a cache of this size means an unpublished hash.
    let ways = known.and_then(|known| known.ways).filter(|&ways| ways > 0).unwrap_or(ways);
    let sets = (size.0 / line / u64::from(ways)).clamp(1, u32::MAX.into());
    CacheShape { sets: sets as u32, ways }
}

/// The line size of the largest level that has one.
fn line(machine: &Machine) -> u64 {
    let lines = machine.caches.iter().rev().filter_map(|cache| cache.line);
    lines
        .map(|line| line.0)
        .find(|line| (16..=4096).contains(line) && line.is_power_of_two())
        .unwrap_or(LINE)
}

/// The private cache of a core at a level, unless it is the last level.
fn private(machine: &Machine, level: u32) -> Option<Known> {
    if level > 1 && is_last(machine, level) {
        return None;
    }
    let holds_data = |cache: &&Cache| cache.level == level && cache.kind != CacheKind::Instruction;
    let cache = machine.caches.iter().find(holds_data)?;
    let is_own = |core: &Core| cache.cpus.is_subset(&core.cpus);
    (level == 1 || machine.cores.iter().any(is_own)).then(|| cache.into())
}

fn is_last(machine: &Machine, level: u32) -> bool {
    machine.domains.iter().any(|domain| domain.cache_level == Some(level))
}

fn last_level(machine: &Machine, domain: &Domain) -> Option<Known> {
    let overlaps = |cpus: &CpuSet| !cpus.intersection(&domain.cpus).is_empty();
    let declared = machine.caches.iter().rev().find(|cache| {
        cache.kind != CacheKind::Instruction
            && overlaps(&cache.cpus)
            && domain.cache_level.is_none_or(|level| level == cache.level)
    });
    let size = domain.cache.or_else(|| declared.and_then(|cache| cache.size))?;
    Some(Known { size: Some(size), ways: declared.and_then(|cache| cache.ways) })
}
