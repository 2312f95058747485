//! Workers that are confined to some of their cpus, and get them back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll_placement::Kernel;
use atoll_runtime::{
    Cancelled, Runtime, RuntimeError, RuntimeOptions, Task, TaskContext, WorkerId,
};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_topology::{Bytes, CpuSet, MachineBuilder, NodeId};

use crate::support::{even, node, run};

fn set(cpus: &str) -> CpuSet {
    CpuSet::parse(cpus).expect("a set")
}

/// Nodes 0 (cpus 0-3, two domains), 1 (cpus 4-5) and 2 (cpus 6-7), of which 2 is near 0.
fn started() -> (Runtime, Arc<SimulatedKernel>) {
    let builder = MachineBuilder::new("near and far").node(node(0, 2, 2)).node(node(1, 1, 2));
    let distances = vec![vec![10, 30, 12], vec![30, 10, 30], vec![12, 30, 10]];
    let built = builder.node(node(2, 1, 2)).distances(distances).build().expect("a machine");
    let machine = Arc::new(built);
    let kernel = Arc::new(SimulatedKernel::new(machine.clone()));
    let runtime = Runtime::start(machine, kernel.clone(), RuntimeOptions::default());
    (runtime.expect("the runtime starts"), kernel)
}

/// Where the kernel lets the workers run.
fn found(runtime: &Runtime, kernel: &SimulatedKernel) -> Vec<String> {
    let workers = runtime.workers();
    workers.iter().map(|worker| kernel.cpus_of(worker.thread).to_string()).collect()
}

fn active(runtime: &Runtime) -> Vec<u32> {
    runtime.active_workers().into_iter().map(|worker| worker.0).collect()
}

#[test]
fn workers_run_on_the_nearest_cpus_that_are_left_and_return() {
    let (runtime, kernel) = started();
    let before = found(&runtime, &kernel);
    assert_eq!(before, ["0-1", "0-1", "2-3", "2-3", "4-5", "4-5", "6-7", "6-7"]);
    for (given, expected, workers) in [
        ("0,7", ["0", "0", "0", "0", "0", "0", "7", "7"], vec![0, 6]),
        ("2-4", ["2-3", "2-3", "2-3", "2-3", "4", "4", "2-3", "2-3"], vec![2, 3, 4]),
        ("5", ["5"; 8], vec![4]),
    ] {
        runtime.confine(&set(given)).expect("confined");
        assert_eq!(found(&runtime, &kernel), expected, "{given}");
        assert_eq!(
            (runtime.cpus_given().to_string(), active(&runtime)),
            (given.to_owned(), workers)
        );
    }
    runtime.confine(&runtime.cpus()).expect("free again");
    assert_eq!(found(&runtime, &kernel), before);
    assert_eq!(active(&runtime), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn no_cpu_at_all_is_refused_and_nothing_changes() {
    let (runtime, kernel) = started();
    runtime.confine(&set("1")).expect("confined");
    for none in ["", "8-9"] {
        let error = runtime.confine(&set(none)).expect_err("none is left");
        assert!(matches!(error, RuntimeError::NoneLeft { .. }), "{error}");
        assert_eq!(found(&runtime, &kernel), ["1"; 8]);
    }
    kernel.refuse("sched_setaffinity");
    let error = runtime.confine(&set("0")).expect_err("the kernel refuses");
    assert!(error.to_string().contains("cannot be confined to cpus 0"), "{error}");
}

#[test]
fn threads_that_come_later_are_confined_too() {
    let (runtime, kernel) = started();
    runtime.confine(&set("4")).expect("confined");
    let asked = kernel.clone();
    let blocking = runtime.handle_of(WorkerId(0)).spawn_blocking(move || asked.thread_cpus());
    let cpus = run(&runtime, blocking).expect("it ran").expect("a mask");
    assert_eq!(cpus, set("4"));
}

#[test]
fn what_an_expelled_worker_reads_counts_where_it_runs() {
    let (runtime, _) = started();
    let node = |runtime: &Runtime| {
        let tasks = vec![Task::on_worker(WorkerId(4), async move |context: TaskContext| {
            context.runtime().count_read(NodeId(1), Bytes(100));
            Ok::<_, Cancelled>(context.node())
        })];
        run(runtime, runtime.step("where", tasks).run()).result.expect("it ran")[0]
    };
    assert_eq!(node(&runtime), NodeId(1));
    runtime.confine(&set("6")).expect("confined");
    assert_eq!(node(&runtime), NodeId(2));
    let traffic = runtime.traffic();
    assert_eq!((traffic.local(), traffic.remote()), (Bytes(100), Bytes(100)));
    assert_eq!(traffic.get(NodeId(2), NodeId(1)), Bytes(100));
}

#[test]
fn steps_end_with_their_results_while_cores_come_and_go() {
    let machine = Arc::new(even(4, 4));
    let kernel = Arc::new(SimulatedKernel::new(machine.clone()));
    let runtime = Runtime::start(machine, kernel, RuntimeOptions::default()).expect("it starts");
    let is_over = Arc::new(AtomicBool::new(false));
    let mover = std::thread::spawn({
        let (runtime, is_over) = (runtime.clone(), is_over.clone());
        move || {
            let mut turn = 0;
            while !is_over.load(Ordering::Relaxed) {
                let first = turn * 5 % 16;
                runtime.confine(&set(&format!("{first}-{}", 15.min(first + turn % 3)))).unwrap();
                turn += 1;
            }
            turn
        }
    });
    for round in 0..50_u64 {
        let task = |number: u64| {
            Task::on_node(NodeId(number as u32 % 4), async move |context: TaskContext| {
                tokio::task::yield_now().await;
                context.check()?;
                Ok::<_, Cancelled>(number * round)
            })
        };
        let step = runtime.step("sum", (0..64).map(task).collect());
        let sum: u64 = run(&runtime, step.run()).result.expect("it ends").into_iter().sum();
        assert_eq!(sum, round * 2016);
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(mover.join().expect("it ends") > 0);
}
