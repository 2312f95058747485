//! The machine and what is known of it: packages, nodes, domains, cores and cpus with their memory,
//! caches and distances, and for every group of facts the source it comes from.
//!
//! A [`Machine`] is one type for three worlds. [`Machine::discover`] reads the live one from sysfs and
//! procfs, bounded by what the process is allowed; [`Machine::discover_at`] reads a copied tree;
//! [`Machine::synthetic`] and [`MachineBuilder`] describe one that is not there. Files, trees and pictures
//! of any of them are in `atoll-formats`.
//!
//! It is a crate of its own because everything above it (placement, cost model, lab) needs the words
//! and the model, and none of its system calls: it reads files, so it is free of
//! unsafe code and works on a description of a machine as on the machine.

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
