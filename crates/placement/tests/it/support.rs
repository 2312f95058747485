//! An arena on a simulated machine.

use std::sync::Arc;

use atoll_placement::{
    Arena, ArenaOptions, Budget, Fallback, FallbackReason, Kernel, NodeBuffer, PagesReport,
    verify_pages,
};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_topology::{Bytes, Machine, NodeId};

pub(crate) const KIB: usize = 1 << 10;
pub(crate) const MIB: usize = 1 << 20;

/// A machine, its kernel and an arena over both.
pub(crate) struct World {
    pub(crate) machine: Arc<Machine>,
    pub(crate) kernel: Arc<SimulatedKernel>,
    pub(crate) arena: Arena,
}

impl World {
    pub(crate) fn new(machine: Machine) -> Self {
        Self::with(machine, None, ArenaOptions::default())
    }

    pub(crate) fn strict(machine: Machine) -> Self {
        Self::with(machine, None, ArenaOptions { strict: true, kept_max: None })
    }

    pub(crate) fn with(
        machine: Machine,
        budget: Option<Arc<dyn Budget>>,
        options: ArenaOptions,
    ) -> Self {
        let machine = Arc::new(machine);
        let kernel = Arc::new(SimulatedKernel::new(machine.clone()));
        let arena = Arena::with_options(machine.clone(), kernel.clone(), budget, options);
        Self { machine, kernel, arena }
    }

    /// Sets what a node can give beyond the reserve that the arena leaves to the kernel (1/128 of
    /// its memory, 512 MiB at most).
    pub(crate) fn set_room(&self, node: u32, room: usize) {
        let memory = self.machine.node(NodeId(node)).unwrap().memory.0;
        let free = (memory / 128).min(512 << 20) + room as u64;
        self.kernel.set_free(NodeId(node), Bytes(free));
    }

    pub(crate) fn bind_to(&self, node: u32) {
        self.kernel.bind_thread(&self.machine.node(NodeId(node)).unwrap().cpus).unwrap();
    }

    pub(crate) fn allocate(&self, node: u32, bytes: usize) -> NodeBuffer {
        self.arena.allocate(Some(NodeId(node)), bytes).unwrap()
    }

    pub(crate) fn verify(&self, buffer: &NodeBuffer) -> PagesReport {
        verify_pages(self.kernel.as_ref(), &[buffer.pages()]).unwrap()
    }

    /// Asserts that this reason was counted so often, and no other.
    pub(crate) fn assert_only_fallback(&self, reason: FallbackReason, count: u64) {
        let fallbacks = self.arena.fallbacks();
        assert!(
            matches!(&fallbacks[..], [Fallback { reason: r, count: c, .. }] if (*r, *c) == (reason, count)),
            "{fallbacks:?}"
        );
    }
}
