//! Homes of chunks on the machine that reads them, which may differ from the one that wrote them.

use atoll_placement::ChunkHome;
use atoll_topology::{Machine, NodeId};

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::table::Chunk;

/// Where a chunk was placed, and which node's workers scanned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredHome {
    pub(super) owner: Option<NodeId>,
    pub(super) home: ChunkHome,
}

/// Whether a chunk is placed where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeChange {
    /// On the same nodes as before.
    Kept,
    /// This machine lacks a node of the chunk, so another was chosen.
    ChosenAnew,
}

impl StoredHome {
    pub(super) fn for_chunk(chunk: &Chunk) -> Self {
        let home = match chunk.copies.as_slice() {
            [one] => one.wanted.map_or(ChunkHome::Unbound, ChunkHome::Node),
            _ => ChunkHome::CopyPerNode,
        };
        Self { owner: chunk.owner, home }
    }

    pub(super) fn encode(self, encoder: &mut Encoder) {
        encoder.option(self.owner, |encoder, node| encoder.number(node.0.into()));
        match self.home {
            ChunkHome::Unbound => encoder.byte(0),
            ChunkHome::Node(node) => {
                encoder.byte(1);
                encoder.number(node.0.into());
            }
            ChunkHome::CopyPerNode => encoder.byte(2),
        }
    }

    pub(super) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let owner = decoder.option("owner", node)?;
        let home = match decoder.byte("home")? {
            0 => ChunkHome::Unbound,
            1 => ChunkHome::Node(node(decoder)?),
            2 => ChunkHome::CopyPerNode,
            other => return Err(decoder.error("home", format!("{other} is not a kind of home"))),
        };
        Ok(Self { owner, home })
    }

    /// The home on this machine: nodes that it lacks are replaced in turn by those it has.
    pub(super) fn on(self, machine: &Machine) -> (Self, HomeChange) {
        let with_cpus: Vec<NodeId> = machine.nodes_with_cpus().map(|node| node.id).collect();
        let with_memory: Vec<NodeId> = machine.nodes_with_memory().map(|node| node.id).collect();
        let here = |node: NodeId, nodes: &[NodeId]| match nodes.contains(&node) {
            true => Some(node),
            false => nodes.get(node.0 as usize % nodes.len().max(1)).copied(),
        };
        let owner = self.owner.and_then(|owner| here(owner, &with_cpus));
        let home = match self.home {
            ChunkHome::Node(node) => {
                here(node, &with_memory).map_or(ChunkHome::Unbound, ChunkHome::Node)
            }
            other => other,
        };
        let found = Self { owner, home };
        let change = if found == self { HomeChange::Kept } else { HomeChange::ChosenAnew };
        (found, change)
    }
}

fn node(decoder: &mut Decoder<'_>) -> Result<NodeId, DecodeError> {
    let number = decoder.number("node")?;
    let number = u32::try_from(number);
    number.map(NodeId).map_err(|_| decoder.error("node", "the number is too large"))
}
