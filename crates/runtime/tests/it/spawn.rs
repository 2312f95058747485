use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll_runtime::{Runtime, RuntimeOptions, WorkerId};
use atoll_topology::NodeId;

use crate::support::{Mood, even, machine, node, run, start, start_with};

#[test]
fn a_future_runs_on_the_node_and_in_the_domain_of_its_worker() {
    let runtime = start(machine([node(0, 2, 2), node(1, 1, 2)]));
    for worker in runtime.workers() {
        let inside = runtime.clone();
        let ran = runtime.spawn_on(worker.id, async move {
            tokio::task::yield_now().await;
            (inside.kernel().thread_cpus().expect("a mask"), inside.current_worker())
        });
        let (mask, on) = run(&runtime, ran).expect("it ran");
        let on = &runtime.workers()[on.expect("a worker").index()];
        assert_eq!((mask, on.domain), (worker.cpus, worker.domain));
    }
}

#[test]
fn worker_numbers_beyond_the_last_wrap_around() {
    let runtime = start(even(2, 1));
    assert_eq!(runtime.node_of(WorkerId(3)), NodeId(1));
    assert_eq!(runtime.node_of(WorkerId(u32::MAX)), NodeId(1));
    let inside = runtime.clone();
    let ran = runtime.spawn_on(WorkerId(5), async move { inside.current_node() });
    assert_eq!(run(&runtime, ran).expect("it ran"), Some(NodeId(1)));
}

#[test]
fn a_future_may_spawn_on_other_nodes_and_await_there() {
    let runtime = start(even(3, 1));
    let outer = runtime.clone();
    let nested = runtime.spawn_on(WorkerId(0), async move {
        let mut nodes = vec![outer.current_node()];
        for worker in [2, 1] {
            let inner = outer.clone();
            let there = outer.spawn_on(WorkerId(worker), async move { inner.current_node() });
            nodes.push(there.await.expect("it ran"));
        }
        nodes
    });
    let nodes = run(&runtime, nested).expect("it ran");
    assert_eq!(nodes, [Some(NodeId(0)), Some(NodeId(2)), Some(NodeId(1))]);
}

#[test]
fn blocking_threads_are_bound_to_their_group_and_are_no_worker() {
    let runtime = start(machine([node(0, 1, 1), node(1, 1, 2)]));
    let inside = runtime.clone();
    let blocking = runtime.handle_of(WorkerId(1)).spawn_blocking(move || {
        (inside.kernel().thread_cpus(), inside.current_worker(), inside.current_node())
    });
    let (mask, worker, on) = run(&runtime, blocking).expect("it ran");
    assert_eq!(mask.expect("a mask").to_string(), "1-2");
    assert_eq!((worker, on), (None, Some(NodeId(1))));
}

#[test]
fn a_thread_of_one_runtime_is_no_worker_of_another() {
    let (one, other) = (start(even(1, 1)), start(even(1, 1)));
    let ran = one.spawn_on(WorkerId(0), async move { other.current_worker() });
    assert_eq!(run(&one, ran).expect("it ran"), None);
    assert_eq!(one.current_worker(), None);
}

#[test]
fn an_unbound_worker_asks_the_kernel_where_it_is() {
    // The kernel leaves every thread on the last cpu, which is on node 1.
    let runtime = start_with(even(2, 1), Mood::Lying, RuntimeOptions::default());
    let inside = runtime.clone();
    let ran = runtime.spawn_on(WorkerId(0), async move { inside.current_node() });
    assert_eq!(run(&runtime, ran).expect("it ran"), Some(NodeId(1)));
}

/// Raises a flag when dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn pending(runtime: &Runtime) -> (Arc<AtomicBool>, tokio::task::JoinHandle<()>) {
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Flag(dropped.clone());
    let forever = runtime.spawn_on(WorkerId(0), async move {
        let _flag = flag;
        std::future::pending::<()>().await
    });
    (dropped, forever)
}

#[test]
fn dropping_the_runtime_drops_what_still_waits() {
    let runtime = start(even(2, 1));
    let other = start(even(1, 1));
    let (dropped, forever) = pending(&runtime);
    drop(runtime);
    assert!(run(&other, forever).expect_err("never finished").is_cancelled());
    assert!(dropped.load(Ordering::SeqCst));
}

#[test]
fn a_runtime_may_be_dropped_inside_another_runtime() {
    let outer = start(even(1, 1));
    let inner = start(even(2, 1));
    let (_, forever) = pending(&inner);
    let dropping = outer.spawn_on(WorkerId(0), async move { drop(inner) });
    run(&outer, dropping).expect("no panic");
    assert!(run(&outer, forever).expect_err("never finished").is_cancelled());
}

#[test]
fn the_last_clone_may_be_dropped_on_a_worker_of_its_own() {
    let outer = start(even(1, 1));
    let runtime = start(even(1, 2));
    let (told, heard) = tokio::sync::oneshot::channel();
    let (go, gone) = tokio::sync::oneshot::channel();
    let last = runtime.clone();
    runtime.spawn_on(WorkerId(0), async move {
        let _ = gone.await;
        drop(last);
        let _ = told.send("still running after the drop");
    });
    drop(runtime);
    go.send(()).expect("it waits");
    assert_eq!(run(&outer, heard), Ok("still running after the drop"));
}

#[test]
fn a_runtime_may_be_started_inside_another_one() {
    let outer = start(even(1, 1));
    let nodes = outer.spawn_on(WorkerId(0), async { start(even(2, 1)).pools().len() });
    assert_eq!(run(&outer, nodes).expect("it started"), 2);
}
