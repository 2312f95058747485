//! The machine and what is known of it.

mod ids;
mod machine;
mod sets;

pub use ids::{Bytes, CoreId, CpuId, DomainId, Nanos, NodeId, PackageId};
pub use machine::{Core, Cpu, Domain, Hidden, Machine, Node, Package, Source};
pub use sets::{CpuSet, IdSet, NodeSet, SET_NUMBER_MAX, SetError};
