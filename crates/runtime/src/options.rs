//! Options for starting a runtime.

use atoll_topology::CpuSet;

/// Maximum number of threads of a runtime: as many as the largest Linux build has cpus (`NR_CPUS`).
pub const THREADS_MAX: usize = 8192;

/// The cpus that a worker's thread is bound to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// All cpus of its group: the domain's, which on a node with one domain are the node's. The
    /// kernel may still move the thread between them, so one busy cpu does not hold a worker up.
    #[default]
    Node,
    /// One cpu of its group, one thread per core before a core's second hardware thread is used.
    Cpu,
}

/// How a runtime is laid out over its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeOptions {
    /// Workers in all; by default one per usable cpu. Fewer are spread evenly over the nodes and,
    /// inside a node, over its domains; more are dealt in proportion to the cpus.
    pub threads: Option<usize>,
    /// Cpus to use; all that this process may use if `None`. Nodes and domains with none of them
    /// get no workers.
    pub cpus: Option<CpuSet>,
    /// The cpus that a worker's thread is bound to.
    pub pin: Pin,
    /// First part of the threads' names (`atoll-n0d1`: node 0, domain 1). Linux shows 15 bytes.
    pub name: String,
    /// Stack size of each thread in bytes; tokio's 2 MiB if `None`.
    pub stack_bytes: Option<usize>,
    /// Whether a failed binding is an error. Otherwise it is recorded in
    /// [`Worker::binding`](crate::Worker::binding) and the work continues.
    pub strict: bool,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            threads: None,
            cpus: None,
            pin: Pin::Node,
            name: "atoll".to_owned(),
            stack_bytes: None,
            strict: false,
        }
    }
}
