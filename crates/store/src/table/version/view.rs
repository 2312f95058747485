//! A version of a table as scans read it.

use std::sync::Arc;

use atoll_topology::NodeId;

use super::super::snapshot::{SnapshotPart, TableSnapshot};
use super::home::RowHome;
use super::{Result, TableVersion};

impl TableVersion {
    /// The rows as chunks: those of the table, each followed by the newer values of its rows, at its home;
    /// then the tail. Rows that must be encoded for that are encoded once and kept.
    ///
    /// # Errors
    /// [`TableError::Memory`](super::TableError::Memory) if there is no memory for newer values.
    pub fn view(&self) -> Result<Arc<TableSnapshot>> {
        if let Some(view) = self.view.get() {
            return Ok(Arc::clone(view));
        }
        let made = Arc::new(self.make_view()?);
        Ok(Arc::clone(self.view.get_or_init(|| made)))
    }

    fn make_view(&self) -> Result<TableSnapshot> {
        let mut parts = Vec::with_capacity(self.entries.len() + 1);
        for entry in self.entries.values() {
            if entry.deleted_rows() < entry.chunk().rows {
                parts.push(SnapshotPart {
                    chunk: Arc::clone(entry.chunk()),
                    deleted: entry.masked().cloned(),
                    ids: entry.ids().clone(),
                });
            }
            if entry.loose().len() > 0 {
                let home = entry.home();
                let node = home.node.unwrap_or_else(|| self.any_node());
                self.push_loose(entry.loose().encoded(&self.shared, node, home)?, &mut parts);
            }
        }
        if self.tail.len() > 0 {
            let (node, home) = self.tail_home()?;
            self.push_loose(self.tail.encoded(&self.shared, node, home)?, &mut parts);
        }
        Ok(TableSnapshot::of_parts(Arc::clone(self.shared.codec.schema()), parts))
    }

    fn push_loose(&self, encoded: &[super::loose::EncodedRows], parts: &mut Vec<SnapshotPart>) {
        parts.extend(encoded.iter().map(|rows| SnapshotPart {
            chunk: Arc::clone(&rows.chunk),
            deleted: rows.masked.clone(),
            ids: rows.ids.clone(),
        }));
    }

    /// A node whose workers may write what has no owner.
    pub(super) fn any_node(&self) -> NodeId {
        let nodes = &self.shared.destination.machine.nodes;
        nodes
            .iter()
            .find(|node| !node.cpus.is_empty())
            .or(nodes.first())
            .map_or(NodeId(0), |node| node.id)
    }

    /// Homes of loose rows: nodes with workers take turns, a chunk's worth of rows each.
    pub(super) fn tail_home(&self) -> Result<(NodeId, RowHome)> {
        let machine = &self.shared.destination.machine;
        let number = (self.rows - self.tail.len()) / super::super::CHUNK_ROWS;
        let nodes: Vec<NodeId> =
            machine.nodes.iter().filter(|node| !node.cpus.is_empty()).map(|node| node.id).collect();
        let node = match &nodes[..] {
            [] => self.any_node(),
            nodes => nodes[number % nodes.len()],
        };
        let memory = self.shared.destination.strategy.chunk_home(machine, node, number)?;
        Ok((node, RowHome { node: Some(node), memory }))
    }
}
