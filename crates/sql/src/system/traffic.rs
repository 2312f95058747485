//! `atoll.traffic`: bytes of tables and exchanges that workers of one node have read from memory of another.

use atoll_topology::NodeId;

use super::SystemTable;
use super::column::ColumnSpecs;

/// The bytes that workers of one node read from one node's memory.
struct NodeTraffic {
    reader: u32,
    home: u32,
    bytes: u64,
}

/// One row per pair of nodes, since the start of the database.
pub(super) fn traffic() -> SystemTable {
    ColumnSpecs::<NodeTraffic>::new()
        .column("reader", |traffic| traffic.reader)
        .column("home", |traffic| traffic.home)
        .column("bytes", |traffic| traffic.bytes)
        .table_of("traffic", |system| {
            let traffic = system.database.pools().traffic();
            let pair = |reader: NodeId, home: NodeId| NodeTraffic {
                reader: reader.0,
                home: home.0,
                bytes: traffic.get(reader, home).0,
            };
            let nodes = traffic.nodes();
            let pairs =
                nodes.iter().flat_map(|reader| nodes.iter().map(|home| pair(*reader, *home)));
            pairs.collect::<Vec<_>>()
        })
}
