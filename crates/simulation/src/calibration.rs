//! The block addresses of each node's memory.
//!
//! QEMU names a byte of RAM by its block address: the offset of the node's RAM block among all blocks
//! plus the block's place in RAM, so that each node's memory is one range of an unknown base. Programs
//! in the guest report what the kernel knows: for a page, its node and its guest-physical address. Each
//! such witness gives the base of a node's range; witnesses must not contradict each other or the order
//! of the nodes' pieces in the set-up.

use crate::PAGE;
use crate::Setup;
use crate::ram::{NodeIndex, Ram, RamAddress};

/// Why nothing is counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot tell the nodes' memory apart: {0}; nothing is counted")]
pub struct CalibrationError(pub String);

/// The reports of the witnesses so far.
pub(crate) struct Witnesses {
    bases: Vec<Option<u64>>,
    pub(crate) heard: u64,
    /// The first contradiction.
    pub(crate) failure: Option<String>,
}

impl Witnesses {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self { bases: vec![None; setup.nodes.len()], heard: 0, failure: None }
    }

    /// Takes the report that the page at `block` has the guest-physical address `physical` and is on the node
    /// that the kernel numbers `id`.
    pub(crate) fn hear(
        &mut self,
        setup: &Setup,
        ram: &Ram,
        id: u8,
        physical: u64,
        block: Option<u64>,
    ) {
        self.heard += 1;
        if let Err(contradiction) = self.base(setup, ram, id, physical, block) {
            self.failure.get_or_insert(contradiction);
        }
    }

    fn base(
        &mut self,
        setup: &Setup,
        ram: &Ram,
        id: u8,
        physical: u64,
        block: Option<u64>,
    ) -> Result<(), String> {
        let node = setup.nodes.iter().position(|node| node.id.0 == u32::from(id));
        let node = node
            .map(NodeIndex)
            .ok_or(format!("a page is on node {id}, which is not in the set-up"))?;
        let page = physical / PAGE * PAGE;
        let place = ram.place(page).ok_or(format!("a page is at {page:#x}, which is not RAM"))?;
        if place.node != node {
            let other = setup.nodes[place.node.0].id;
            return Err(format!("the page at {page:#x} is on node {id}, expected on node {other}"));
        }
        let block = block.ok_or(format!("the page at {page:#x} is not in RAM"))? / PAGE * PAGE;
        let base = block.checked_sub(place.linear - ram.start(node));
        let base = base.ok_or(format!("block address {block:#x} is too low for node {id}"))?;
        match *self.bases[node.0].get_or_insert(base) {
            same if same == base => Ok(()),
            other => Err(format!("node {id} is at {other:#x} and at {base:#x}")),
        }
    }

    /// The ranges of all nodes with memory.
    pub(crate) fn ranges(&mut self, setup: &Setup, ram: &Ram) -> Result<Ranges, CalibrationError> {
        let found = match self.failure.clone() {
            Some(failure) => Err(failure),
            None => self.disjoint_ranges(setup, ram),
        };
        found.map_err(|failure| {
            self.failure = Some(failure.clone());
            CalibrationError(failure)
        })
    }

    fn disjoint_ranges(&self, setup: &Setup, ram: &Ram) -> Result<Ranges, String> {
        let mut ranges = Vec::new();
        for (i, described) in setup.nodes.iter().enumerate() {
            let (node, id, size) = (NodeIndex(i), described.id, described.memory.0);
            if size == 0 {
                continue;
            }
            let base = self.bases[i].ok_or(format!("no page of node {id} was reported"))?;
            let end = base.checked_add(size).ok_or(format!("node {id} is at {base:#x}"))?;
            ranges.push(Range { base, end, node, start: ram.start(node) });
        }
        if ranges.is_empty() {
            return Err("no node has memory".into());
        }
        ranges.sort_by_key(|range| range.base);
        match ranges.windows(2).find(|pair| pair[0].end > pair[1].base) {
            None => Ok(Ranges(ranges)),
            Some(pair) => {
                let [one, other] = [pair[0].node, pair[1].node].map(|node| setup.nodes[node.0].id);
                Err(format!("the memory of nodes {one} and {other} overlaps"))
            }
        }
    }
}

/// Block addresses of a node.
struct Range {
    base: u64,
    end: u64,
    node: NodeIndex,
    /// Linear address of `base`.
    start: u64,
}

/// Block addresses of all nodes, ascending.
pub(crate) struct Ranges(Vec<Range>);

impl Ranges {
    /// Place of a block address. Returns None outside the nodes' memory.
    pub(crate) fn place(&self, block: u64) -> Option<RamAddress> {
        let range = &self.0[self.0.partition_point(|range| range.base <= block).checked_sub(1)?];
        let linear = block - range.base + range.start;
        (block < range.end).then_some(RamAddress { node: range.node, linear })
    }
}
