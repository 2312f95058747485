//! The model of a machine: packages, nodes, domains, cores and cpus with their memory, caches and distances, the
//! facts about them, and the source of each.
//!
//! [`Machine::discover`] reads the live machine from sysfs and procfs, restricted to what the process may use;
//! [`Machine::discover_at`] reads a copied tree; [`Machine::synthetic`] and [`MachineBuilder`] describe a hypothetical
//! machine. Files, trees and pictures of machines are in `atoll-formats`.
//!
//! It is a separate crate because everything above it (placement, cost model, lab) needs the terms and the model but
//! no system calls: it only reads files, so it has no unsafe code and works on a description of a machine as well.

#![forbid(unsafe_code)]

pub mod assemble;
mod builder;
pub mod calendar;
pub mod check;
pub mod conditions;
mod discover;
mod fact;
mod ids;
mod knowledge;
mod machine;
pub mod mask;
mod near;
mod quantile;
mod set_notation;
mod sets;
mod synthetic;

pub use builder::{
    BuildError, CPUS_MAX, HUGE_PAGE_SIZE, MachineBuilder, NODES_MAX, NodeShape, Numbering,
    PAGE_SIZE,
};
pub use discover::{Allowed, DiscoverError, group_directories};
pub use fact::{Conditions, Fact, Quantity, Spread, Subject};
pub use ids::{Bytes, BytesError, CoreId, CpuId, DomainId, LinkId, Nanos, NodeId, PackageId};
pub use knowledge::{
    Age, BestCores, CostBasis, Fingerprint, Knowledge, LINKS_ASSUMED_NODES_MAX, Matrix, Nearest,
    QuestionError, Route, links_assumed, rfc3339,
};
pub use machine::{
    Cache, CacheKind, Core, Cpu, CpuKind, CpuTimeLimit, Die, Domain, Hidden, HugePages, Limits,
    Link, Machine, MemoryLimit, Node, Package, SideCache, Source,
};
pub use near::nearest_name;
pub use quantile::quantile;
pub use set_notation::{ResolvedSet, SetSpec, SetSpecError};
pub use sets::{CpuSet, IdSet, NodeSet, SET_NUMBER_MAX, SetError};
pub use synthetic::SyntheticError;
