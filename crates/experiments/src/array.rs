//! Arrays: memory with a home, and proof of it.

use std::sync::Arc;

use atoll_placement::{Arena, ArenaOptions, Kernel, NodeBuffer, verify_pages};
use atoll_sys::{Bitmap, PolicyMode, set_mempolicy};
use atoll_topology::{Bytes, CpuId, CpuSet, Machine, NodeId};

use crate::outcome::Achieved;
use crate::{ExperimentError, Home};

/// Allocates and touches an array on a thread bound to `cpu`, so that the first
/// touch and the policy of the caller are its own.
pub(crate) fn allocate(
    machine: &Arc<Machine>,
    kernel: &Arc<dyn Kernel>,
    home: &Home,
    size: Bytes,
    cpu: CpuId,
) -> Result<NodeBuffer, ExperimentError> {
    let options = ArenaOptions { strict: false, kept_max: Some(Bytes(0)) };
    let arena = Arena::with_options(machine.clone(), kernel.clone(), None, options);
    let bytes = usize::try_from(size.0).unwrap_or(usize::MAX);
    let on_thread = || {
        kernel.bind_thread(&CpuSet::from_iter([cpu]))?;
        set_policy(home)?;
        let node = match home {
            Home::On(node) => Some(*node),
            _ => None,
        };
        let mut buffer = arena.allocate(node, bytes)?;
        // Every page gets its home here, and no later read finds the shared page of zeros.
        buffer.as_mut_slice().fill(1);
        Ok(buffer)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("array".to_owned());
        let thread = thread.spawn_scoped(scope, on_thread).map_err(ExperimentError::Thread)?;
        thread.join().unwrap_or(Err(ExperimentError::CalledOff))
    })
}

/// The calling thread's policy for memory that the arena leaves without one.
fn set_policy(home: &Home) -> Result<(), ExperimentError> {
    let set = |mode, nodes: &[NodeId]| {
        let nodes = Bitmap::from_numbers(nodes.iter().map(|node| node.0));
        let nodes = nodes.map_err(|error| ExperimentError::Part(error.to_string()))?;
        Ok(set_mempolicy(mode, &nodes)?)
    };
    match home {
        Home::Over(nodes) => set(PolicyMode::Interleave, nodes),
        Home::Weighted(nodes) => set(PolicyMode::WeightedInterleave, nodes),
        Home::Local => set(PolicyMode::Local, &[]),
        Home::On(_) | Home::Inherited => Ok(()),
    }
}

/// Where the pages are, by the kernel's word.
pub(crate) fn achieved(
    kernel: &dyn Kernel,
    home: &Home,
    array: &NodeBuffer,
) -> Result<Achieved, ExperimentError> {
    let report = verify_pages(kernel, &[array.pages()])?;
    let pages = report.by_node();
    let is_home = |node: &NodeId| match home {
        Home::On(home) => node == home,
        Home::Over(nodes) | Home::Weighted(nodes) => nodes.contains(node),
        Home::Inherited | Home::Local => true,
    };
    let at_home = pages.iter().filter(|(node, _)| is_home(node)).map(|(_, pages)| pages).sum();
    let pages = pages.into_iter().collect();
    Ok(Achieved { pages, pages_home: at_home, pages_seen: report.pages_seen })
}
