//! [`SimulatedKernel`]: placement on a simulated machine. Memory is real; homes of pages are kept in a book, so that
//! every path of placement runs on a laptop: placed, refused, unsupported, full, and fallen back.

mod book;

use std::sync::Arc;

use atoll_placement::{Kernel, KernelError, Mapping, Policy};
use atoll_sys as sys;
use atoll_topology::{Bytes, CpuId, CpuSet, Machine, NodeId};
use parking_lot::Mutex;

use book::Book;

/// Calls that can be refused and are counted, by their names in the live kernel's errors.
pub const CALLS: [&str; 8] = [
    "mmap",
    "mbind",
    "populate",
    "move_pages",
    "sched_setaffinity",
    "sched_getaffinity",
    "getcpu",
    "meminfo",
];

/// How a call is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Denial {
    Unsupported,
    Refused,
    Failed,
}

/// A kernel that places memory and threads of this process on any [`Machine`], in its own book.
///
/// - A page's home follows the policy of its mapping, the node of the thread that populates it, and the free memory:
///   from a full preferred node, allocation falls back to the next by distance; on a full bound one, it fails. File
///   cache is given up if nothing else is free, as Linux does.
/// - Threads are free until bound; each has one cpu, assigned in turn from those it may use.
/// - Writes to unpopulated pages are invisible to it: such a page gets its home at the first lookup, as if the thread
///   that mapped it had touched it.
#[derive(Debug)]
pub struct SimulatedKernel {
    machine: Arc<Machine>,
    book: Mutex<Book>,
}

impl SimulatedKernel {
    /// A kernel for this machine, with the free memory that the machine states.
    pub fn new(machine: Arc<Machine>) -> Self {
        let book = Mutex::new(Book::new(machine.clone()));
        Self { machine, book }
    }

    /// Refuses this call from now on, as seccomp does.
    pub fn refuse(&self, call: &'static str) {
        self.deny(call, Some(Denial::Refused));
    }

    /// Makes this call unsupported from now on.
    pub fn unsupport(&self, call: &'static str) {
        self.deny(call, Some(Denial::Unsupported));
    }

    /// Makes this call fail for another reason from now on.
    pub fn fail(&self, call: &'static str) {
        self.deny(call, Some(Denial::Failed));
    }

    /// Permits this call again.
    pub fn permit(&self, call: &'static str) {
        self.deny(call, None);
    }

    /// The number of calls, including denied ones.
    pub fn calls(&self, call: &'static str) -> u64 {
        assert!(CALLS.contains(&call), "no call '{call}'; there are {CALLS:?}");
        self.book.lock().calls.get(call).copied().unwrap_or(0)
    }

    /// Sets the free memory of a node.
    pub fn set_free(&self, node: NodeId, free: Bytes) {
        self.book.lock().free.insert(node, free.0);
    }

    /// Sets the file cache of a node, on top of its free memory.
    pub fn set_cache(&self, node: NodeId, cache: Bytes) {
        self.book.lock().cache.insert(node, cache.0);
    }

    /// Bytes of memory that are mapped.
    pub fn mapped(&self) -> Bytes {
        self.book.lock().mapped()
    }

    /// Cpus on which a thread may run, by its number; all if it was never bound.
    pub fn cpus_of(&self, thread: u32) -> CpuSet {
        self.book.lock().cpus_of(thread)
    }

    /// Policy of the mapping that contains an address; None if there is none.
    pub fn policy_at(&self, address: usize) -> Option<Policy> {
        self.book.lock().policy_at(address)
    }

    fn deny(&self, call: &'static str, denial: Option<Denial>) {
        assert!(CALLS.contains(&call), "no call '{call}'; there are {CALLS:?}");
        let mut book = self.book.lock();
        match denial {
            Some(denial) => book.denials.insert(call, denial),
            None => book.denials.remove(call),
        };
    }

    /// Counts a call, and denies it if requested; otherwise runs it.
    fn call<T>(
        &self,
        call: &'static str,
        work: impl FnOnce(&mut Book) -> Result<T, KernelError>,
    ) -> Result<T, KernelError> {
        let mut book = self.book.lock();
        *book.calls.entry(call).or_insert(0) += 1;
        let reason = "denied by the test".to_owned();
        match book.denials.get(call) {
            None => work(&mut book),
            Some(Denial::Unsupported) => Err(KernelError::Unsupported { call, reason }),
            Some(Denial::Refused) => Err(KernelError::Refused { call, reason }),
            Some(Denial::Failed) => Err(KernelError::Failed { call, reason }),
        }
    }
}

impl Kernel for SimulatedKernel {
    fn map(&self, len: usize, _huge: bool) -> Result<Mapping, KernelError> {
        self.call("mmap", |book| {
            let out_of_memory = |reason: String| KernelError::OutOfMemory { call: "mmap", reason };
            let len = len
                .checked_next_multiple_of(self.page_size())
                .ok_or_else(|| out_of_memory(format!("{len} bytes asked")))?;
            let start = sys::mmap(len).map_err(|error| out_of_memory(error.to_string()))?;
            // SAFETY: a fresh mapping of `len` bytes that only the caller knows.
            let mapping = unsafe { Mapping::from_raw(start, len) };
            book.add(mapping);
            Ok(mapping)
        })
    }

    unsafe fn unmap(&self, mapping: Mapping) {
        self.book.lock().remove(mapping);
        // SAFETY: the caller vouches that the mapping is from `map` and that nothing refers to it.
        let unmapped = unsafe { sys::munmap(mapping.start(), mapping.len()) };
        unmapped.expect("a mapping of the simulated kernel can be unmapped");
    }

    fn set_policy(&self, mapping: Mapping, policy: &Policy) -> Result<(), KernelError> {
        self.call("mbind", |book| book.set_policy(mapping, policy))
    }

    fn populate(&self, mapping: Mapping) -> Result<(), KernelError> {
        self.call("populate", |book| book.populate(mapping))
    }

    fn homes(&self, addresses: &[usize]) -> Result<Vec<Option<NodeId>>, KernelError> {
        self.call("move_pages", |book| {
            Ok(addresses.iter().map(|address| book.home(*address)).collect())
        })
    }

    fn bind_thread(&self, cpus: &CpuSet) -> Result<(), KernelError> {
        self.bind_other(sys::gettid().cast_unsigned(), cpus)
    }

    fn bind_other(&self, thread: u32, cpus: &CpuSet) -> Result<(), KernelError> {
        self.call("sched_setaffinity", |book| book.bind_thread(thread, cpus))
    }

    fn thread_cpus(&self) -> Result<CpuSet, KernelError> {
        self.call("sched_getaffinity", |book| Ok(book.seat().cpus.clone()))
    }

    fn current_cpu(&self) -> Result<CpuId, KernelError> {
        self.call("getcpu", |book| Ok(book.seat().cpu))
    }

    fn node_free(&self, node: NodeId) -> Result<Bytes, KernelError> {
        self.call("meminfo", |book| Ok(Bytes(book.free.get(&node).copied().unwrap_or(0))))
    }

    fn node_reclaimable(&self, node: NodeId) -> Result<Bytes, KernelError> {
        self.call("meminfo", |book| Ok(Bytes(book.cache.get(&node).copied().unwrap_or(0))))
    }

    fn page_size(&self) -> usize {
        self.machine.page_size.0 as usize
    }

    fn huge_page_size(&self) -> Option<usize> {
        self.machine.huge_page_size.map(|size| size.0 as usize)
    }
}

#[cfg(test)]
mod tests {
    //! The simulated kernel behaves as Linux does where placement depends on it.

    use std::sync::Arc;

    use atoll_placement::{Kernel, KernelError, Mapping, Policy};
    use atoll_topology::{Bytes, CpuSet, NodeId, NodeSet};

    use super::SimulatedKernel;
    use crate::machines;

    const PAGE: usize = 4096;

    fn kernel() -> SimulatedKernel {
        SimulatedKernel::new(Arc::new(machines::four_nodes()))
    }

    fn nodes(list: &str) -> NodeSet {
        NodeSet::parse(list).unwrap()
    }

    /// Homes of all pages of a mapping.
    fn homes(kernel: &SimulatedKernel, mapping: Mapping) -> Vec<Option<u32>> {
        let addresses: Vec<usize> =
            (0..mapping.len()).step_by(PAGE).map(|at| mapping.address() + at).collect();
        let homes = kernel.homes(&addresses).unwrap();
        homes.into_iter().map(|home| home.map(u32::from)).collect()
    }

    /// A mapping of this many pages under a policy, populated by a thread on node 2.
    fn placed(kernel: &SimulatedKernel, pages: usize, policy: &Policy) -> Vec<Option<u32>> {
        kernel.bind_thread(&CpuSet::parse("8-11").unwrap()).unwrap();
        let mapping = kernel.map(pages * PAGE, false).unwrap();
        kernel.set_policy(mapping, policy).unwrap();
        kernel.populate(mapping).unwrap();
        homes(kernel, mapping)
    }

    #[test]
    fn each_policy_places_pages_as_linux_does() {
        let some = |nodes: &[u32]| nodes.iter().copied().map(Some).collect::<Vec<_>>();
        for (policy, expected) in [
            (Policy::Default, [2, 2, 2, 2]),
            (Policy::Local, [2, 2, 2, 2]),
            (Policy::Preferred(NodeId(1)), [1, 1, 1, 1]),
            (Policy::Bind(nodes("0,3")), [0, 0, 0, 0]),
            (Policy::Interleave(nodes("0-2")), [0, 1, 2, 0]),
            (Policy::WeightedInterleave(nodes("1,3")), [1, 3, 1, 3]),
        ] {
            assert_eq!(placed(&kernel(), 4, &policy), some(&expected), "{policy:?}");
        }
    }

    #[test]
    fn a_full_preferred_node_falls_back_to_the_next_by_distance() {
        let kernel = kernel();
        kernel.set_free(NodeId(3), Bytes(2 * PAGE as u64));
        kernel.set_free(NodeId(1), Bytes(PAGE as u64));
        let homes = placed(&kernel, 5, &Policy::Preferred(NodeId(3)));
        assert_eq!(homes, [Some(3), Some(3), Some(1), Some(2), Some(2)]);
        assert_eq!(kernel.node_free(NodeId(3)), Ok(Bytes(0)));
    }

    #[test]
    fn a_bound_node_that_is_full_gives_up_its_file_cache_and_then_is_out_of_memory() {
        let kernel = kernel();
        kernel.set_free(NodeId(1), Bytes(PAGE as u64));
        kernel.set_cache(NodeId(1), Bytes(PAGE as u64));
        let mapping = kernel.map(3 * PAGE, false).unwrap();
        kernel.set_policy(mapping, &Policy::Bind(nodes("1"))).unwrap();
        let error = kernel.populate(mapping).unwrap_err();
        assert!(matches!(error, KernelError::OutOfMemory { call: "populate", .. }), "{error}");
        assert_eq!(homes(&kernel, mapping), [Some(1), Some(1), None]);
    }

    #[test]
    fn memory_given_back_is_free_again() {
        let kernel = kernel();
        let free = kernel.node_free(NodeId(1)).unwrap();
        let mapping = kernel.map(4 * PAGE, false).unwrap();
        kernel.set_policy(mapping, &Policy::Preferred(NodeId(1))).unwrap();
        kernel.populate(mapping.part(PAGE + 1, PAGE).unwrap()).unwrap();
        assert_eq!(homes(&kernel, mapping), [None, Some(1), Some(1), None]);
        assert_eq!(kernel.node_free(NodeId(1)), Ok(Bytes(free.0 - 2 * PAGE as u64)));
        // SAFETY: nothing refers to the mapping.
        unsafe { kernel.unmap(mapping) };
        assert_eq!(kernel.node_free(NodeId(1)), Ok(free));
        assert_eq!(
            (kernel.mapped(), kernel.homes(&[mapping.address()])),
            (Bytes(0), Ok(vec![None]))
        );
    }

    #[test]
    fn a_page_written_to_but_not_populated_belongs_to_the_thread_that_mapped_it() {
        let kernel = kernel();
        kernel.bind_thread(&CpuSet::parse("12").unwrap()).unwrap();
        let mapping = kernel.map(2 * PAGE, false).unwrap();
        kernel.bind_thread(&CpuSet::parse("0").unwrap()).unwrap();
        // SAFETY: the second page of a mapping of our own.
        unsafe { mapping.start().add(PAGE).write(1) };
        assert_eq!(homes(&kernel, mapping), [None, Some(3)]);
    }

    #[test]
    fn threads_are_free_until_bound_and_each_has_its_own_cpus() {
        let kernel = kernel();
        kernel.bind_thread(&CpuSet::parse("5").unwrap()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(kernel.thread_cpus().unwrap().len(), 16));
        });
        assert_eq!(kernel.thread_cpus(), Ok(CpuSet::parse("5").unwrap()));
        assert_eq!(kernel.current_cpu().unwrap().0, 5);
        let error = kernel.bind_thread(&CpuSet::parse("99").unwrap()).unwrap_err();
        assert!(matches!(error, KernelError::Refused { call: "sched_setaffinity", .. }), "{error}");
    }

    #[test]
    fn threads_bound_to_the_same_cpus_take_them_in_turn() {
        let kernel = kernel();
        let cpus = CpuSet::parse("4-7").unwrap();
        let mut seats: Vec<u32> = (0..4)
            .map(|_| {
                kernel.bind_thread(&cpus).unwrap();
                kernel.current_cpu().unwrap().0
            })
            .collect();
        seats.sort_unstable();
        assert_eq!(seats, [4, 5, 6, 7]);
    }

    #[test]
    fn a_denied_call_says_how_it_was_denied_is_counted_and_can_be_permitted_again() {
        let kernel = kernel();
        kernel.refuse("mmap");
        assert!(matches!(kernel.map(1, false), Err(KernelError::Refused { call: "mmap", .. })));
        kernel.unsupport("mmap");
        assert!(matches!(kernel.map(1, false), Err(KernelError::Unsupported { .. })));
        kernel.fail("mmap");
        assert!(matches!(kernel.map(1, false), Err(KernelError::Failed { .. })));
        kernel.permit("mmap");
        assert_eq!(kernel.map(1, false).unwrap().len(), PAGE);
        assert_eq!((kernel.calls("mmap"), kernel.calls("mbind")), (4, 0));
    }

    #[test]
    fn policies_over_nodes_without_memory_are_refused() {
        let kernel = SimulatedKernel::new(Arc::new(machines::eight_uneven_nodes()));
        let mapping = kernel.map(PAGE, false).unwrap();
        for policy in [
            Policy::Preferred(NodeId(6)),
            Policy::Bind(nodes("0,3")),
            Policy::Interleave(nodes("")),
        ] {
            let error = kernel.set_policy(mapping, &policy).unwrap_err();
            assert!(matches!(error, KernelError::Refused { call: "mbind", .. }), "{error}");
        }
    }
}
