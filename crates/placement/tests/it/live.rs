//! The Linux the tests run on. Where a container forbids `mbind` or `move_pages`, the tests that need
//! them say so and pass: what placement does then is tested in `fallback`.

use std::sync::Arc;

use atoll_placement::{
    Arena, ArenaOptions, FallbackReason, Kernel, KernelError, LiveKernel, Mapping, Policy,
    verify_pages, verify_thread,
};
use atoll_testkit::{Need, machines, skip};
use atoll_topology::{Bytes, CpuId, CpuSet, Machine, NodeId, NodeSet};

use crate::support::MIB;

/// A mapping that is given back.
struct Mapped<'a>(&'a LiveKernel, Mapping);

impl<'a> Mapped<'a> {
    fn new(kernel: &'a LiveKernel, len: usize, huge: bool) -> Self {
        Self(kernel, kernel.map(len, huge).unwrap())
    }
}

impl Drop for Mapped<'_> {
    fn drop(&mut self) {
        // SAFETY: the mapping is from this kernel, and tests keep no reference into it.
        unsafe { self.0.unmap(self.1) };
    }
}

/// The value, or nothing where this environment forbids the call.
fn permitted<T>(result: Result<T, KernelError>) -> Option<T> {
    match result {
        Err(error @ (KernelError::Refused { .. } | KernelError::Unsupported { .. })) => {
            skip(Need::Permission, error);
            None
        }
        result => Some(result.unwrap()),
    }
}

fn machine() -> Arc<Machine> {
    Arc::new(Machine::discover().unwrap())
}

fn memory_node() -> NodeId {
    machine().nodes_with_memory().next().unwrap().id
}

#[test]
fn pages_have_no_home_until_touched_and_then_that_of_their_policy() {
    let kernel = LiveKernel::new();
    let Mapped(_, mapping) = &Mapped::new(&kernel, 4 * MIB, true);
    let addresses = [mapping.address(), mapping.address() + 3 * MIB];
    let home = memory_node();
    for policy in [Policy::Preferred(home), Policy::Bind(NodeSet::from_iter([home]))] {
        if permitted(kernel.set_policy(*mapping, &policy)).is_none() {
            return;
        }
    }
    assert_eq!(kernel.homes(&addresses).unwrap(), [None, None]);
    kernel.populate(*mapping).unwrap();
    assert_eq!(kernel.homes(&addresses).unwrap(), [Some(home), Some(home)]);
}

#[test]
fn every_policy_is_taken_or_told_to_be_unsupported() {
    let kernel = LiveKernel::new();
    let Mapped(_, mapping) = &Mapped::new(&kernel, MIB, false);
    let nodes = || NodeSet::from_iter([memory_node()]);
    for policy in [
        Policy::Default,
        Policy::Local,
        Policy::Interleave(nodes()),
        Policy::WeightedInterleave(nodes()),
    ] {
        let taken = kernel.set_policy(*mapping, &policy);
        let told = matches!(
            taken,
            Ok(()) | Err(KernelError::Refused { .. } | KernelError::Unsupported { .. })
        );
        assert!(told, "{policy:?}: {taken:?}");
    }
}

#[test]
fn a_node_that_is_not_there_is_refused_by_name() {
    let kernel = LiveKernel::new();
    let Mapped(_, mapping) = &Mapped::new(&kernel, MIB, false);
    if permitted(kernel.set_policy(*mapping, &Policy::Default)).is_none() {
        return;
    }
    let error = kernel.set_policy(*mapping, &Policy::Preferred(NodeId(1000))).unwrap_err();
    assert!(matches!(error, KernelError::Refused { call: "mbind", .. }), "{error}");
    assert!(error.to_string().contains("1000"), "{error}");
    let error = kernel.set_policy(*mapping, &Policy::Preferred(NodeId(u32::MAX))).unwrap_err();
    assert!(matches!(error, KernelError::Failed { call: "mbind", .. }), "{error}");
}

#[test]
fn huge_mappings_are_aligned_and_advised() {
    let kernel = LiveKernel::new();
    let Some(huge) = kernel.huge_page_size() else {
        return skip(Need::HugePages, "the kernel has no transparent huge pages");
    };
    let Mapped(_, mapping) = &Mapped::new(&kernel, 3 * huge, true);
    assert_eq!((mapping.address() % huge, mapping.len()), (0, 3 * huge));
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = smaps.lines().skip_while(|line| !covers(line, mapping.address()));
    let flags = lines.find(|line| line.starts_with("VmFlags:")).unwrap();
    assert!(flags.split_whitespace().any(|flag| flag == "hg"), "{flags}");
}

/// Whether a line of smaps heads the mapping that holds an address.
fn covers(line: &str, address: usize) -> bool {
    let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
    let number = |text| usize::from_str_radix(text, 16);
    matches!(range.map(|(a, b)| (number(a), number(b))), Some((Ok(a), Ok(b))) if (a..b).contains(&address))
}

#[test]
fn more_addresses_than_one_batch_are_all_answered_in_order() {
    let kernel = LiveKernel::new();
    let page = kernel.page_size();
    let Mapped(_, mapping) = &Mapped::new(&kernel, 4 * page, false);
    kernel.populate(mapping.part(2 * page, 1).unwrap()).unwrap();
    let addresses: Vec<usize> = (0..40_000).map(|i| mapping.address() + i % 4 * page).collect();
    let Some(homes) = permitted(kernel.homes(&addresses)) else { return };
    assert_eq!(homes.len(), 40_000);
    assert!(homes.iter().enumerate().all(|(i, home)| home.is_some() == (i % 4 == 2)));
}

#[test]
fn a_mapping_larger_than_the_address_space_is_out_of_memory() {
    for len in [1 << 60, usize::MAX - 1, usize::MAX] {
        for huge in [false, true] {
            let error = LiveKernel::new().map(len, huge).unwrap_err();
            assert!(matches!(error, KernelError::OutOfMemory { call: "mmap", .. }), "{error}");
        }
    }
}

#[test]
fn free_memory_of_a_node_lies_between_nothing_and_all_of_it() {
    let (kernel, machine) = (LiveKernel::new(), machine());
    for node in machine.nodes_with_memory() {
        let free = kernel.node_free(node.id).unwrap();
        assert!(free > Bytes(0) && free <= node.memory, "{free} of {}", node.memory);
        assert!(kernel.node_reclaimable(node.id).unwrap() <= node.memory);
    }
    assert!(kernel.node_free(NodeId(60_000)).is_err());
}

#[test]
fn a_bound_thread_is_where_it_was_bound() {
    let thread = std::thread::spawn(|| {
        let kernel = LiveKernel::new();
        let last = CpuSet::from_iter([kernel.thread_cpus().unwrap().last().unwrap()]);
        kernel.bind_thread(&last).unwrap();
        let report = verify_thread(&kernel, &last).unwrap();
        assert!(report.is_bound() && report.is_inside(), "{report:?}");
        for cpus in [CpuSet::new(), CpuSet::from_iter([CpuId(60_000)])] {
            let error = kernel.bind_thread(&cpus).unwrap_err();
            assert!(matches!(error, KernelError::Refused { .. }), "{error}");
        }
        let error = kernel.bind_thread(&CpuSet::from_iter([CpuId(u32::MAX)])).unwrap_err();
        assert!(matches!(error, KernelError::Failed { .. }), "{error}");
        assert_eq!(kernel.thread_cpus().unwrap(), last);
    });
    thread.join().unwrap();
}

#[test]
fn the_kernel_confirms_buffers_on_every_node_of_this_machine() {
    for strict in [false, true] {
        let (machine, kernel) = (machine(), Arc::new(LiveKernel::new()));
        let options = ArenaOptions { strict, kept_max: None };
        let arena = Arena::with_options(machine.clone(), kernel.clone(), None, options);
        for node in machine.nodes_with_memory() {
            for bytes in [1, MIB, 9 * MIB] {
                let mut buffer = arena.allocate(Some(node.id), bytes).unwrap();
                buffer.as_mut_slice().fill(1);
                let Some(report) = permitted(verify_pages(kernel.as_ref(), &[buffer.pages()]))
                else {
                    return;
                };
                assert_eq!(report.at_home(), report.pages_total, "{report:?}");
            }
        }
        assert_eq!(arena.fallbacks(), []);
    }
}

#[test]
fn nodes_unknown_to_linux_fall_back_to_first_touch_and_are_reported() {
    let kernel = Arc::new(LiveKernel::new());
    let arena = Arena::new(Arc::new(machines::sparse_nodes()), kernel, None);
    let mut buffer = arena.allocate(Some(NodeId(254)), 3 * MIB).unwrap();
    buffer.as_mut_slice().fill(1);
    assert_eq!(buffer.wanted(), Some(NodeId(254)));
    assert_ne!(buffer.home(), Some(NodeId(254)));
    let reasons: Vec<FallbackReason> = arena.fallbacks().iter().map(|f| f.reason).collect();
    assert!(reasons.contains(&FallbackReason::FreeUnknown), "{reasons:?}");
    let denied = [FallbackReason::PolicyRefused, FallbackReason::PolicyUnsupported];
    assert!(denied.iter().any(|reason| reasons.contains(reason)), "{reasons:?}");
}
