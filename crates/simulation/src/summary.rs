//! Computes the figures of a report from counters.

use crate::counters::{
    ByNode, CounterBlock, CounterCell, CounterLayout, CounterSums, Single, TAGS,
};
use crate::ram::NodeIndex;
use crate::report::{
    CacheCounts, ControllerCounts, LevelCounts, LinkTraffic, NodeCounts, RunSlice, StateCounts,
    SupplierCounts, TagCounts, Traffic,
};

/// Counts summed over the cpus of each node.
pub(crate) struct Summary {
    layout: CounterLayout,
    by_node: Vec<CounterSums>,
    /// Accesses of each cpu.
    cpus: Vec<u64>,
}

/// Counters of a cell to be summed.
#[derive(Clone, Copy)]
enum AccessSelection {
    Loads,
    LoadBytes,
    Stores,
    StoreBytes,
    MissedLines,
}

impl Summary {
    /// Zero counts of this many cpus.
    pub(crate) fn new(layout: CounterLayout, cpus: usize) -> Self {
        let by_node = vec![CounterSums::zero(layout); layout.nodes];
        Self { layout, by_node, cpus: vec![0; cpus] }
    }

    /// Adds counts of a cpu on a node.
    pub(crate) fn add(&mut self, cpu: usize, node: NodeIndex, block: &CounterBlock) {
        self.cpus[cpu] += block.add_to(&mut self.by_node[node.0]);
    }

    /// All counts except the numbers of tagged pages, which are not counters.
    pub(crate) fn traffic(&self, tagged: &[Vec<u64>]) -> Traffic {
        Traffic {
            instructions: self.single(Single::Instructions),
            loads: self.matrix(AccessSelection::Loads, 0..TAGS),
            stores: self.matrix(AccessSelection::Stores, 0..TAGS),
            load_bytes: self.matrix(AccessSelection::LoadBytes, 0..TAGS),
            store_bytes: self.matrix(AccessSelection::StoreBytes, 0..TAGS),
            lines: self.matrix(AccessSelection::MissedLines, 0..TAGS),
            cpus: self.cpus.clone(),
            caches: self.by_node.iter().map(|sums| self.caches(sums)).collect(),
            controllers: self.controllers(),
            links: self.links(),
            tags: (1..TAGS).filter_map(|tag| self.tag(tag, &tagged[tag])).collect(),
        }
    }

    /// Everything so far as one slice of a series.
    pub(crate) fn slice(&self, region: Option<u8>) -> RunSlice {
        let hits = |sums: &CounterSums| {
            let states = self.states(sums);
            states.modified + states.exclusive + states.shared + states.forward
        };
        RunSlice {
            region,
            accesses: self.by_node.iter().map(|sums| self.accesses(sums)).sum(),
            llc_hits: self.by_node.iter().map(hits).collect(),
            llc_misses: self.single(Single::LlcMisses),
            controllers: self.controllers().iter().map(|c| c.read + c.written).collect(),
            links: self.links().iter().map(|link| link.forward + link.backward).collect(),
        }
    }

    fn accesses(&self, sums: &CounterSums) -> u64 {
        let cells = (0..self.layout.cells()).map(|cell| self.layout.accesses(CounterCell(cell)));
        cells.map(|at| sums.at(at) + sums.at(at + AccessSelection::Stores as usize)).sum()
    }

    /// Sums over tags by (node of the cpu, node of the page).
    fn matrix(&self, what: AccessSelection, tags: std::ops::Range<usize>) -> Vec<Vec<u64>> {
        let entry = |sums: &CounterSums, node: usize| -> u64 {
            let cells = tags.clone().map(|tag| CounterCell(tag * self.layout.nodes + node));
            cells.map(|cell| sums.at(self.place(what, cell))).sum()
        };
        let row = |sums| (0..self.layout.nodes).map(|node| entry(sums, node)).collect();
        self.by_node.iter().map(row).collect()
    }

    fn place(&self, what: AccessSelection, cell: CounterCell) -> usize {
        match what {
            AccessSelection::MissedLines => self.layout.missed(cell),
            _ => self.layout.accesses(cell) + what as usize,
        }
    }

    fn single(&self, what: Single) -> NodeCounts {
        self.by_node.iter().map(|sums| sums.at(self.layout.single(what))).collect()
    }

    fn caches(&self, sums: &CounterSums) -> CacheCounts {
        let count = |what| sums.at(self.layout.single(what));
        let llc_hits = self.states(sums);
        let lookups = self.accesses(sums) + count(Single::FurtherLines);
        let beyond_l1 = [
            count(Single::PrivateL2),
            llc_hits.modified,
            llc_hits.exclusive,
            llc_hits.shared,
            llc_hits.forward,
            count(Single::LlcMisses),
        ];
        // All lookups that went no further; while counting goes on, a cpu may be between the two.
        let l1 = lookups.saturating_sub(beyond_l1.iter().sum());
        CacheCounts {
            private: LevelCounts { l1, l2: count(Single::PrivateL2) },
            llc_hits,
            llc_misses: count(Single::LlcMisses),
            upgrades: count(Single::Upgrades),
            sources: SupplierCounts {
                memory: self.row(sums, ByNode::FromMemory),
                clean: self.row(sums, ByNode::FromClean),
                dirty: self.row(sums, ByNode::FromDirty),
            },
            writebacks: count(Single::Writebacks),
            dtlb_misses: count(Single::DtlbMisses),
        }
    }

    fn states(&self, sums: &CounterSums) -> StateCounts {
        let count = |what| sums.at(self.layout.single(what));
        StateCounts {
            modified: count(Single::Modified),
            exclusive: count(Single::Exclusive),
            shared: count(Single::Shared),
            forward: count(Single::Forward),
        }
    }

    fn row(&self, sums: &CounterSums, what: ByNode) -> NodeCounts {
        let at = |node| sums.at(self.layout.by_node(what, NodeIndex(node)));
        (0..self.layout.nodes).map(at).collect()
    }

    fn machine(&self) -> CounterSums {
        let mut machine = CounterSums::zero(self.layout);
        self.by_node.iter().for_each(|sums| machine.add(sums));
        machine
    }

    fn controllers(&self) -> Vec<ControllerCounts> {
        let machine = self.machine();
        let rows = [ByNode::Read, ByNode::Written].map(|what| self.row(&machine, what));
        let [read, written] = rows;
        read.into_iter()
            .zip(written)
            .map(|(read, written)| ControllerCounts { read, written })
            .collect()
    }

    fn links(&self) -> Vec<LinkTraffic> {
        let machine = self.machine();
        let bytes = |link, forward| machine.at(self.layout.link(link, forward));
        let both = |link| LinkTraffic { forward: bytes(link, true), backward: bytes(link, false) };
        (0..self.layout.links).map(both).collect()
    }

    /// Counts of a tag. Returns None if no page has it and no access used it.
    fn tag(&self, tag: usize, pages: &[u64]) -> Option<TagCounts> {
        let tags = tag..tag + 1;
        let loads = self.matrix(AccessSelection::Loads, tags.clone());
        let stores = self.matrix(AccessSelection::Stores, tags.clone());
        let both = |(loads, stores): (Vec<u64>, Vec<u64>)| -> Vec<u64> {
            loads.iter().zip(stores).map(|(loads, stores)| loads + stores).collect()
        };
        let counts = TagCounts {
            tag: u8::try_from(tag).ok()?,
            pages: pages.to_vec(),
            accesses: loads.into_iter().zip(stores).map(both).collect(),
            lines: self.matrix(AccessSelection::MissedLines, tags),
        };
        let met = counts.accesses.iter().flatten().chain(&counts.pages).any(|count| *count > 0);
        met.then_some(counts)
    }
}
