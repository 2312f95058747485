//! `atoll.workers`: the threads of the pools and the state of their binding.

use atoll_runtime::{Binding, Runtime, Worker};
use atoll_topology::{CpuId, CpuSet};

use super::column::ColumnSpecs;
use super::{SystemTable, now};

/// One row per worker; the binding as the kernel reported it when the thread started.
pub(super) fn workers(runtime: Runtime) -> SystemTable {
    ColumnSpecs::<Worker>::new()
        .column("worker", |worker| worker.id.0)
        .column("node", |worker| worker.node.0)
        .column("domain", |worker| worker.domain.0)
        .column("thread", |worker| worker.thread)
        .column("cpus_wanted", |worker| worker.cpus.to_string())
        .column("cpus_found", |worker| Some(found(&worker.binding)?.0.to_string()))
        .column("cpu_seen", |worker| Some(found(&worker.binding)?.1.0))
        .column("bound", |worker| worker.binding.is_bound())
        .column("binding", |worker| worker.binding.to_string())
        .table("workers", move |_| now(runtime.workers()))
}

fn found(binding: &Binding) -> Option<(&CpuSet, CpuId)> {
    match binding {
        Binding::Bound { cpus, cpu } | Binding::Elsewhere { cpus, cpu } => Some((cpus, *cpu)),
        Binding::Refused(_) | Binding::Unverified(_) => None,
    }
}
