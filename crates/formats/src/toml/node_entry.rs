//! A node as in the file, before its cpus and its memory are read.

use super::reader::TomlTable;
use atoll_topology::{NodeSet, PackageId};

/// A `[[node]]`, which may describe several equal nodes.
pub(super) struct NodeEntry<'a> {
    pub(super) table: TomlTable<'a>,
    pub(super) ids: NodeSet,
    pub(super) package: Option<PackageId>,
}
