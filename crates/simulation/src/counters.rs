//! Counters of one cpu.
//!
//! Only the cpu's own thread counts, so adding one is a load and a store of its own memory.
//! Other threads may read at any time; each counter only grows.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::ram::NodeIndex;

/// Tags, with 0 for none.
pub(crate) const TAGS: usize = atoll_marker::TAGS as usize;

/// Counters of a block except accesses, by name.
#[derive(Clone, Copy)]
pub(crate) enum Single {
    Instructions,
    /// Lines looked up beyond the first of an access.
    FurtherLines,
    PrivateL2,
    Modified,
    Exclusive,
    Shared,
    Forward,
    LlcMisses,
    Upgrades,
    Writebacks,
    DtlbMisses,
}

const SINGLES: usize = 11;

/// Counters of a block for each node.
#[derive(Clone, Copy)]
pub(crate) enum ByNode {
    FromMemory,
    FromClean,
    FromDirty,
    Read,
    Written,
}

const BY_NODE: usize = 5;

/// Loads, bytes loaded, stores, bytes stored.
pub(crate) const OF_CELL: usize = 4;

/// Accesses are counted by cell: node and tag of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterCell(pub(crate) usize);

/// Positions of the counters of a block: single counts, counts by node, bytes of the links' two
/// directions, missed lines by cell, and at last accesses by cell.
#[derive(Clone, Copy)]
pub(crate) struct CounterLayout {
    pub(crate) nodes: usize,
    pub(crate) links: usize,
}

impl CounterLayout {
    pub(crate) fn cell(self, node: NodeIndex, tag: u8) -> CounterCell {
        CounterCell(usize::from(tag) * self.nodes + node.0)
    }

    /// The first of the four counters of a cell's accesses.
    #[inline]
    pub(crate) fn accesses(self, cell: CounterCell) -> usize {
        self.missed(CounterCell(self.cells())) + cell.0 * OF_CELL
    }

    pub(crate) fn missed(self, cell: CounterCell) -> usize {
        self.link(self.links, true) + cell.0
    }

    pub(crate) fn by_node(self, what: ByNode, node: NodeIndex) -> usize {
        SINGLES + what as usize * self.nodes + node.0
    }

    pub(crate) fn link(self, link: usize, forward: bool) -> usize {
        SINGLES + BY_NODE * self.nodes + 2 * link + usize::from(!forward)
    }

    pub(crate) fn single(self, what: Single) -> usize {
        what as usize
    }

    pub(crate) fn cells(self) -> usize {
        self.nodes * TAGS
    }

    fn len(self) -> usize {
        self.accesses(CounterCell(self.cells()))
    }
}

/// Counters of a cpu in a region.
pub(crate) struct CounterBlock {
    layout: CounterLayout,
    counters: Box<[AtomicU64]>,
    /// Where the accesses begin.
    accesses: usize,
}

impl CounterBlock {
    fn new(layout: CounterLayout) -> Self {
        let counters = (0..layout.len()).map(|_| AtomicU64::new(0)).collect();
        Self { layout, counters, accesses: layout.accesses(CounterCell(0)) }
    }

    /// Counts an access.
    #[inline]
    pub(crate) fn access(&self, cell: CounterCell, is_store: bool, bytes: u32) {
        let at = self.accesses + cell.0 * OF_CELL + 2 * usize::from(is_store);
        if let Some([count, sum]) = self.counters.get(at..at + 2) {
            bump(count, 1);
            bump(sum, u64::from(bytes));
        }
    }

    #[inline]
    pub(crate) fn single(&self, what: Single, count: u64) {
        self.add(self.layout.single(what), count);
    }

    pub(crate) fn by_node(&self, what: ByNode, node: NodeIndex, count: u64) {
        self.add(self.layout.by_node(what, node), count);
    }

    pub(crate) fn link(&self, link: usize, forward: bool, bytes: u64) {
        self.add(self.layout.link(link, forward), bytes);
    }

    /// Counts a line that no cache of the domain had.
    pub(crate) fn missed(&self, cell: CounterCell) {
        self.add(self.layout.missed(cell), 1);
    }

    #[inline]
    fn add(&self, at: usize, count: u64) {
        bump(&self.counters[at], count);
    }

    /// Adds these counts to a sum of blocks; the accesses among them.
    pub(crate) fn add_to(&self, sums: &mut CounterSums) -> u64 {
        for (total, counter) in sums.0.iter_mut().zip(&self.counters) {
            *total = total.wrapping_add(counter.load(Relaxed));
        }
        self.counters[self.accesses..].iter().step_by(2).map(|count| count.load(Relaxed)).sum()
    }
}

#[inline]
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

/// Sum of blocks of one layout.
#[derive(Clone)]
pub(crate) struct CounterSums(Vec<u64>);

impl CounterSums {
    pub(crate) fn zero(layout: CounterLayout) -> Self {
        Self(vec![0; layout.len()])
    }

    pub(crate) fn at(&self, index: usize) -> u64 {
        self.0[index]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(&other.0) {
            *sum = sum.wrapping_add(*count);
        }
    }
}

/// The ledgers: the regions by number, then these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountLedger(pub(crate) usize);

impl CountLedger {
    /// Counts outside all regions.
    pub(crate) const OUTSIDE: Self = Self(atoll_marker::REGIONS as usize);
    /// Counts that no report includes: only the caches see these accesses.
    pub(crate) const VOID: Self = Self(Self::OUTSIDE.0 + 1);

    /// All ledgers that are reported.
    pub(crate) fn counted() -> impl Iterator<Item = Self> {
        (0..=Self::OUTSIDE.0).map(Self)
    }
}

/// Blocks of a cpu by ledger, each created on demand.
pub(crate) struct CounterBlocks {
    layout: CounterLayout,
    blocks: Box<[OnceLock<CounterBlock>]>,
}

impl CounterBlocks {
    pub(crate) fn new(layout: CounterLayout) -> Self {
        Self { layout, blocks: (0..=CountLedger::VOID.0).map(|_| OnceLock::new()).collect() }
    }

    #[inline]
    pub(crate) fn get(&self, ledger: CountLedger) -> &CounterBlock {
        self.blocks[ledger.0].get_or_init(|| CounterBlock::new(self.layout))
    }

    /// The block, if it was created.
    pub(crate) fn used(&self, ledger: CountLedger) -> Option<&CounterBlock> {
        self.blocks[ledger.0].get()
    }
}
