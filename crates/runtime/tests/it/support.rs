//! The simulated kernel in several moods, and the machines the tests run on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use atoll_placement::{Kernel, KernelError, Mapping, Policy};
use atoll_runtime::{Runtime, RuntimeError, RuntimeOptions};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_topology::{Bytes, CpuId, CpuSet, Machine, MachineBuilder, NodeId, NodeShape};

/// How the kernel treats a binding.
#[derive(Clone, Debug, Default)]
pub(crate) enum Mood {
    /// Carries it out.
    #[default]
    Willing,
    /// Refuses it.
    Refusing,
    /// Refuses from this call on (calls are counted from 0).
    RefusingFrom(usize),
    /// Says it did, and leaves every thread on the machine's last cpu.
    Lying,
    /// Cuts every mask down to these cpus, as a cpuset does.
    Cutting(CpuSet),
    /// Binds, but does not report the mask.
    Secretive,
}

/// The simulated kernel, with a mood.
#[derive(Debug)]
pub(crate) struct MoodyKernel {
    simulated: SimulatedKernel,
    cpu_last: CpuId,
    mood: Mood,
    binds: AtomicUsize,
}

impl MoodyKernel {
    pub(crate) fn new(machine: &Arc<Machine>, mood: Mood) -> Self {
        let simulated = SimulatedKernel::new(machine.clone());
        match mood {
            Mood::Refusing => simulated.refuse("sched_setaffinity"),
            Mood::Secretive => simulated.refuse("sched_getaffinity"),
            _ => {}
        }
        let cpu_last = machine.cpus.last().map(|cpu| cpu.id).unwrap_or_default();
        Self { simulated, cpu_last, mood, binds: AtomicUsize::new(0) }
    }
}

impl Kernel for MoodyKernel {
    fn bind_thread(&self, cpus: &CpuSet) -> Result<(), KernelError> {
        let call = self.binds.fetch_add(1, Ordering::Relaxed);
        match &self.mood {
            Mood::RefusingFrom(first) if call >= *first => {
                let reason = "the test forbids it".to_owned();
                Err(KernelError::Refused { call: "sched_setaffinity", reason })
            }
            Mood::Lying => Ok(()),
            Mood::Cutting(to) => self.simulated.bind_thread(&cpus.intersection(to)),
            _ => self.simulated.bind_thread(cpus),
        }
    }

    fn bind_other(&self, thread: u32, cpus: &CpuSet) -> Result<(), KernelError> {
        self.simulated.bind_other(thread, cpus)
    }

    fn thread_cpus(&self) -> Result<CpuSet, KernelError> {
        self.simulated.thread_cpus()
    }

    fn current_cpu(&self) -> Result<CpuId, KernelError> {
        match self.mood {
            Mood::Lying => Ok(self.cpu_last),
            _ => self.simulated.current_cpu(),
        }
    }

    fn map(&self, _: usize, _: bool) -> Result<Mapping, KernelError> {
        let reason = "these tests place threads only".to_owned();
        Err(KernelError::Unsupported { call: "mmap", reason })
    }

    unsafe fn unmap(&self, _: Mapping) {}

    fn set_policy(&self, mapping: Mapping, policy: &Policy) -> Result<(), KernelError> {
        self.simulated.set_policy(mapping, policy)
    }

    fn populate(&self, mapping: Mapping) -> Result<(), KernelError> {
        self.simulated.populate(mapping)
    }

    fn homes(&self, addresses: &[usize]) -> Result<Vec<Option<NodeId>>, KernelError> {
        self.simulated.homes(addresses)
    }

    fn node_free(&self, node: NodeId) -> Result<Bytes, KernelError> {
        self.simulated.node_free(node)
    }

    fn node_reclaimable(&self, node: NodeId) -> Result<Bytes, KernelError> {
        self.simulated.node_reclaimable(node)
    }

    fn page_size(&self) -> usize {
        self.simulated.page_size()
    }

    fn huge_page_size(&self) -> Option<usize> {
        self.simulated.huge_page_size()
    }
}

const MEMORY: Bytes = Bytes(1 << 30);

/// A node of so many domains with so many single-threaded cores each.
pub(crate) fn node(id: u32, domains: u32, cores: u32) -> NodeShape {
    NodeShape::with_cpus(NodeId(id), domains, cores, 1).memory(MEMORY)
}

/// A node with memory and no cpus.
pub(crate) fn memory_node(id: u32) -> NodeShape {
    NodeShape::memory_only(NodeId(id), MEMORY)
}

pub(crate) fn machine(nodes: impl IntoIterator<Item = NodeShape>) -> Machine {
    let builder = MachineBuilder::new("test");
    nodes.into_iter().fold(builder, MachineBuilder::node).build().expect("a machine that can be")
}

/// So many nodes of one domain with so many cpus.
pub(crate) fn even(nodes: u32, cpus: u32) -> Machine {
    machine((0..nodes).map(|id| node(id, 1, cpus)))
}

pub(crate) fn start(machine: Machine) -> Runtime {
    start_with(machine, Mood::Willing, RuntimeOptions::default())
}

pub(crate) fn start_with(machine: Machine, mood: Mood, options: RuntimeOptions) -> Runtime {
    try_start(machine, mood, options).expect("the runtime starts")
}

pub(crate) fn try_start(
    machine: Machine,
    mood: Mood,
    options: RuntimeOptions,
) -> Result<Runtime, RuntimeError> {
    let machine = Arc::new(machine);
    let kernel = Arc::new(MoodyKernel::new(&machine, mood));
    Runtime::start(machine, kernel, options)
}

pub(crate) fn threads(threads: usize) -> RuntimeOptions {
    RuntimeOptions { threads: Some(threads), ..RuntimeOptions::default() }
}

/// Runs a future from outside the pools. What would wait forever ends as a failure.
pub(crate) fn run<F: Future>(runtime: &Runtime, future: F) -> F::Output {
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(120), future).await.expect("the future ends")
    })
}
