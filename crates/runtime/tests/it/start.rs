use atoll_placement::KernelError;
use atoll_runtime::{Binding, Pin, Runtime, RuntimeError, RuntimeOptions, THREADS_MAX, WorkerId};
use atoll_topology::{CpuSet, DomainId, MachineBuilder, NodeId, NodeShape, Numbering};

use crate::support::{
    Mood, even, machine, memory_node, node, start, start_with, threads, try_start,
};

/// (node, workers) of each pool.
fn pools(runtime: &Runtime) -> Vec<(u32, usize)> {
    runtime.pools().iter().map(|pool| (pool.node().0, pool.worker_count())).collect()
}

fn cpus(text: &str) -> CpuSet {
    CpuSet::parse(text).expect("a set")
}

#[test]
fn every_node_gets_a_pool_with_one_worker_per_cpu() {
    for nodes in 1..=8 {
        let runtime = start(even(nodes, 2));
        assert_eq!(pools(&runtime), (0..nodes).map(|node| (node, 2)).collect::<Vec<_>>());
        assert_eq!(runtime.worker_count(), 2 * nodes as usize);
    }
}

#[test]
fn workers_are_numbered_by_node_then_domain_and_bound_to_their_domain() {
    let runtime = start(machine([node(0, 2, 2), node(3, 1, 1)]));
    let seen: Vec<(u32, u32, u32, String)> = runtime
        .workers()
        .iter()
        .map(|worker| (worker.id.0, worker.node.0, worker.domain.0, worker.cpus.to_string()))
        .collect();
    let expected =
        [(0, 0, 0, "0-1"), (1, 0, 0, "0-1"), (2, 0, 1, "2-3"), (3, 0, 1, "2-3"), (4, 3, 2, "4")];
    assert_eq!(seen, expected.map(|(id, node, domain, cpus)| (id, node, domain, cpus.to_owned())));
    for worker in runtime.workers() {
        let Binding::Bound { cpus, cpu } = worker.binding else { panic!("{:?}", worker.binding) };
        assert!(cpus == worker.cpus && cpus.contains(cpu), "{cpus}, {cpu}");
    }
}

#[test]
fn on_machines_of_every_shape_each_node_with_cpus_has_its_workers_bound_to_its_domains() {
    for shape in atoll_testkit::machines::all() {
        let runtime = start(shape.clone());
        let nodes: Vec<_> = shape.nodes_with_cpus().map(|n| (n.id.0, n.cpus.len())).collect();
        assert_eq!(pools(&runtime), nodes, "{}", shape.name);
        for worker in runtime.workers() {
            let domain = shape.domains.iter().find(|domain| domain.id == worker.domain);
            let domain = domain.expect("a domain of the machine");
            assert_eq!((domain.node, &domain.cpus), (worker.node, &worker.cpus));
            assert!(worker.binding.is_bound(), "{}", worker.binding);
        }
    }
}

#[test]
fn every_worker_is_a_thread_of_its_own() {
    let runtime = start(even(3, 4));
    let mut threads: Vec<_> = runtime.workers().iter().map(|worker| worker.thread).collect();
    threads.sort();
    threads.dedup();
    assert_eq!(threads.len(), 12);
}

#[test]
fn a_node_without_cpus_has_no_pool_and_its_nearest_is_another_one() {
    let distances = vec![vec![10, 20, 30], vec![20, 10, 12], vec![30, 12, 10]];
    let builder = MachineBuilder::new("cxl").node(node(0, 1, 1)).node(memory_node(1));
    let built = builder.node(node(2, 1, 1)).distances(distances).build();
    let runtime = start(built.expect("a machine"));
    assert_eq!(pools(&runtime), [(0, 1), (2, 1)]);
    assert!(runtime.pool(NodeId(1)).is_none());
    assert_eq!(runtime.pool_nearest(NodeId(1)).map(|pool| pool.node()), Some(NodeId(2)));
    assert_eq!(runtime.pool_nearest(NodeId(0)).map(|pool| pool.node()), Some(NodeId(0)));
    assert!(runtime.pool_nearest(NodeId(7)).is_none());
}

#[test]
fn a_node_of_cpus_only_has_a_pool() {
    let runtime = start(machine([node(0, 1, 2), NodeShape::with_cpus(NodeId(1), 1, 3, 1)]));
    assert_eq!(pools(&runtime), [(0, 2), (1, 3)]);
}

#[test]
fn fewer_threads_are_spread_evenly_over_uneven_nodes_and_domains() {
    let uneven = || machine([node(0, 1, 2), node(1, 2, 4), node(2, 1, 1)]);
    assert_eq!(pools(&start_with(uneven(), Mood::Willing, threads(9))), [(0, 2), (1, 6), (2, 1)]);
    let runtime = start_with(uneven(), Mood::Willing, threads(6));
    assert_eq!(pools(&runtime), [(0, 2), (1, 3), (2, 1)]);
    let domains = runtime.pools()[1].groups().map(|group| group.workers().len());
    assert_eq!(domains.collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn fewer_threads_than_nodes_leave_the_last_nodes_without_a_pool() {
    let runtime = start_with(even(8, 2), Mood::Willing, threads(3));
    assert_eq!(pools(&runtime), [(0, 1), (1, 1), (2, 1)]);
    assert!(runtime.pool(NodeId(5)).is_none());
}

#[test]
fn workers_on_some_cpus_are_bound_to_these_and_other_nodes_have_no_pool() {
    let on = |text: &str| RuntimeOptions { cpus: Some(cpus(text)), ..RuntimeOptions::default() };
    let runtime = start_with(even(4, 2), Mood::Willing, on("1-2,5"));
    assert_eq!(pools(&runtime), [(0, 1), (1, 1), (2, 1)]);
    let bound: Vec<String> =
        runtime.workers().iter().map(|worker| worker.cpus.to_string()).collect();
    assert_eq!(bound, ["1", "2", "5"]);
    let none = try_start(even(4, 2), Mood::Willing, on("99"));
    assert!(matches!(none, Err(RuntimeError::NoCpus { .. })), "{none:?}");
}

#[test]
fn more_threads_than_cpus_are_dealt_by_cpus() {
    let runtime = start_with(machine([node(0, 1, 1), node(1, 1, 3)]), Mood::Willing, threads(9));
    assert_eq!(pools(&runtime), [(0, 3), (1, 6)]);
}

#[test]
fn pinned_to_cpus_workers_take_one_thread_of_each_core_first() {
    let shape = NodeShape::with_cpus(NodeId(0), 1, 2, 2);
    let siblings = || machine([shape.clone()]);
    let pinned = |n| RuntimeOptions { pin: Pin::Cpu, ..threads(n) };
    let bound = |runtime: &Runtime| -> Vec<String> {
        runtime.workers().iter().map(|worker| worker.cpus.to_string()).collect()
    };
    assert_eq!(bound(&start_with(siblings(), Mood::Willing, pinned(2))), ["0", "2"]);
    assert_eq!(bound(&start_with(siblings(), Mood::Willing, pinned(4))), ["0", "1", "2", "3"]);
    assert_eq!(
        bound(&start_with(siblings(), Mood::Willing, pinned(6))),
        ["0", "0", "1", "2", "2", "3"]
    );
    let last = MachineBuilder::new("last").node(shape).numbering(Numbering::ThreadsLast).build();
    let runtime = start_with(last.expect("a machine"), Mood::Willing, pinned(2));
    assert_eq!(bound(&runtime), ["0", "1"]);
}

#[test]
fn a_refused_binding_is_recorded_with_its_call_and_work_goes_on() {
    let runtime = start_with(even(2, 1), Mood::Refusing, RuntimeOptions::default());
    for worker in runtime.workers() {
        let Binding::Refused(KernelError::Refused { call, .. }) = worker.binding else {
            panic!("{:?}", worker.binding)
        };
        assert_eq!(call, "sched_setaffinity");
    }
    let answer = runtime.spawn_on(WorkerId(1), async { 42 });
    assert_eq!(runtime.block_on(answer).expect("it ran"), 42);
}

#[test]
fn a_builder_that_was_bound_and_a_worker_that_was_not_are_told_apart() {
    let runtime = start_with(even(1, 1), Mood::RefusingFrom(1), RuntimeOptions::default());
    let group = runtime.pools()[0].groups().next().expect("a group");
    assert!(group.builder().is_bound());
    assert!(matches!(group.workers()[0].binding, Binding::Refused(_)));
}

#[test]
fn a_binding_that_did_not_happen_is_found_out() {
    let runtime = start_with(even(2, 2), Mood::Lying, RuntimeOptions::default());
    let worker = &runtime.workers()[0];
    assert!(
        matches!(&worker.binding, Binding::Elsewhere { cpus: mask, .. } if *mask == cpus("0-3"))
    );
    assert_eq!(worker.binding.to_string(), "free to run on 0-3, seen on 3");
}

#[test]
fn a_mask_cut_by_a_cpuset_is_reported_as_it_is() {
    let runtime = start_with(even(1, 4), Mood::Cutting(cpus("1-2")), RuntimeOptions::default());
    let worker = &runtime.workers()[0];
    assert_eq!(worker.cpus, cpus("0-3"));
    assert!(matches!(&worker.binding, Binding::Bound { cpus: mask, .. } if *mask == cpus("1-2")));
}

#[test]
fn a_mask_that_cannot_be_read_back_is_not_called_bound() {
    let runtime = start_with(even(1, 1), Mood::Secretive, RuntimeOptions::default());
    let binding = &runtime.workers()[0].binding;
    assert!(matches!(binding, Binding::Unverified(_)) && !binding.is_bound(), "{binding:?}");
}

#[test]
fn strict_makes_a_refused_binding_an_error_that_names_worker_and_call() {
    let strict = RuntimeOptions { strict: true, ..RuntimeOptions::default() };
    assert!(try_start(even(2, 1), Mood::Willing, strict.clone()).is_ok());
    let error = try_start(even(2, 1), Mood::RefusingFrom(3), strict).expect_err("refused");
    assert!(matches!(error, RuntimeError::NotBound { worker: WorkerId(1), node: NodeId(1), .. }));
    assert!(error.to_string().contains("sched_setaffinity"), "{error}");
}

#[test]
fn no_threads_and_too_many_are_errors() {
    for asked in [0, THREADS_MAX + 1, usize::MAX] {
        let error = try_start(even(1, 1), Mood::Willing, threads(asked)).expect_err("bad number");
        assert!(matches!(error, RuntimeError::Threads { asked: a, .. } if a == asked), "{error}");
    }
}

#[test]
fn a_name_that_no_thread_can_have_is_an_error() {
    let options = RuntimeOptions { name: "a\0b".to_owned(), ..RuntimeOptions::default() };
    let error = try_start(even(1, 1), Mood::Willing, options).expect_err("bad name");
    assert!(matches!(error, RuntimeError::Name { .. }));
}

#[test]
fn a_machine_without_cpus_is_an_error() {
    let mut bare = even(1, 1);
    bare.nodes[0].cpus = CpuSet::new();
    let error = try_start(bare, Mood::Willing, RuntimeOptions::default()).expect_err("no cpus");
    assert!(matches!(error, RuntimeError::NoCpus { .. }));
}

#[test]
fn domains_that_miss_or_share_cpus_are_an_error() {
    let mut missing = even(2, 2);
    missing.domains.retain(|domain| domain.id != DomainId(1));
    let mut shared = machine([node(0, 2, 1)]);
    shared.domains[1].cpus = cpus("0-1");
    for broken in [missing, shared] {
        let error = try_start(broken, Mood::Willing, RuntimeOptions::default());
        assert!(matches!(error, Err(RuntimeError::Domains { .. })), "{error:?}");
    }
}
