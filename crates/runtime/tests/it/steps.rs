use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_runtime::{RuntimeOptions, Steal, StepError, StepOutcome, Task, TaskContext, WorkerId};
use atoll_topology::{Bytes, DomainId, NodeId};
use tokio::sync::Semaphore;

use crate::support::{Mood, even, machine, memory_node, node, run, start, start_with};

type Place = (NodeId, DomainId);

/// A task that says where it ran.
fn place(node: u32) -> Task<Place, Infallible> {
    Task::on_node(NodeId(node), async |context: TaskContext| Ok((context.node(), context.domain())))
}

fn on(node: u32, domain: u32) -> Place {
    (NodeId(node), DomainId(domain))
}

#[test]
fn a_step_without_tasks_ends_at_once() {
    let runtime = start(even(2, 1));
    let StepOutcome { result, report } = run(&runtime, runtime.step("none", vec![]).run());
    assert_eq!(result, Ok::<Vec<()>, StepError<Infallible>>(vec![]));
    assert_eq!((report.name.as_str(), report.tasks, report.time.as_nanos()), ("none", 0, 0));
    assert_eq!(report.bytes.total(), Bytes(0));
}

#[test]
fn results_come_in_the_order_of_the_tasks() {
    for nodes in 1..=8 {
        let runtime = start(even(nodes, 2));
        let tasks = (0..1000u32).map(|number| {
            Task::on_node(NodeId(number % nodes), async move |context: TaskContext| {
                assert_eq!(context.task(), number as usize);
                Ok::<_, Infallible>(number * 2)
            })
        });
        let StepOutcome { result, report } =
            run(&runtime, runtime.step("double", tasks.collect()).run());
        assert_eq!(result, Ok((0..1000).map(|number| number * 2).collect()));
        assert_eq!((report.tasks, report.tasks_finished), (1000, 1000));
        assert!(report.time.as_nanos() > 0);
    }
}

#[test]
fn every_task_runs_exactly_once_whichever_worker_steals_it() {
    let runtime = start(machine([node(0, 3, 1), node(1, 1, 4)]));
    let runs: Arc<Vec<AtomicUsize>> = Arc::new((0..5000).map(|_| AtomicUsize::new(0)).collect());
    let tasks = (0..runs.len()).map(|number| {
        let runs = runs.clone();
        // All of them for one domain of three, on one node of two.
        Task::on_worker(WorkerId(0), async move |_| {
            runs[number].fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(())
        })
    });
    let step = runtime.step("once", tasks.collect()).steal(Steal::Machine);
    assert!(run(&runtime, step.run()).result.is_ok());
    assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 1));
}

#[test]
fn tasks_run_on_the_node_they_are_sent_to() {
    let runtime = start(even(4, 2));
    let step = runtime.step("places", (0..400).map(|number| place(number % 4)).collect());
    let StepOutcome { result, report } = run(&runtime, step.run());
    let places = result.expect("all ran");
    for (number, (node, _)) in places.into_iter().enumerate() {
        assert_eq!(node, NodeId(number as u32 % 4));
    }
    assert_eq!((report.tasks_stolen_remote, report.tasks_rehomed), (0, 0));
}

#[test]
fn with_more_workers_than_tasks_each_task_has_a_domain_to_itself() {
    let runtime = start(machine([node(0, 3, 4)]));
    let StepOutcome { result, report } =
        run(&runtime, runtime.step("few", vec![place(0), place(0), place(0)]).run());
    assert_eq!(result, Ok(vec![on(0, 0), on(0, 1), on(0, 2)]));
    assert_eq!(report.tasks_stolen, 0);
}

#[test]
fn tasks_for_a_node_without_workers_run_on_the_nearest_one() {
    let runtime = start(machine([node(0, 1, 1), memory_node(1), node(2, 1, 1)]));
    let StepOutcome { result, report } =
        run(&runtime, runtime.step("cxl", vec![place(1), place(2), place(1)]).run());
    assert_eq!(result, Ok(vec![on(0, 0), on(2, 1), on(0, 0)]));
    assert_eq!(report.tasks_rehomed, 2);
}

#[test]
fn a_task_for_a_node_that_is_not_there_is_an_error_before_anything_runs() {
    let runtime = start(even(2, 1));
    let ran = Arc::new(AtomicUsize::new(0));
    let seen = ran.clone();
    let first = Task::on_node(NodeId(0), async move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(on(0, 0))
    });
    let outcome = run(&runtime, runtime.step("lost", vec![first, place(9)]).run());
    let error = outcome.result.expect_err("no node 9");
    assert_eq!(error.to_string(), "task 1 of step 'lost' is for node 9; the machine has nodes 0-1");
    assert_eq!((ran.load(Ordering::Relaxed), outcome.report.tasks), (0, 2));
}

/// One task that keeps worker 0 until the other three, sent to the same worker, have run elsewhere.
/// Returns the domains of the three.
fn forced_out(
    steal: Steal,
    shape: atoll_topology::Machine,
) -> (Vec<Place>, StepOutcome<Place, Infallible>) {
    let runtime = start(shape);
    let others = Arc::new(Semaphore::new(0));
    let wait = others.clone();
    let stay = Task::on_worker(WorkerId(0), async move |context: TaskContext| {
        wait.acquire_many(3).await.expect("open").forget();
        Ok((context.node(), context.domain()))
    });
    let leave = (0..3).map(|_| {
        let others = others.clone();
        Task::on_worker(WorkerId(0), async move |context: TaskContext| {
            context.count_read(NodeId(0), Bytes(100));
            others.add_permits(1);
            Ok((context.node(), context.domain()))
        })
    });
    let tasks = std::iter::once(stay).chain(leave).collect();
    let outcome = run(&runtime, runtime.step("forced", tasks).steal(steal).run());
    let places = outcome.result.as_ref().expect("all ran")[1..].to_vec();
    (places, outcome)
}

#[test]
fn waiting_tasks_are_stolen_by_another_domain_of_the_node() {
    let (places, outcome) = forced_out(Steal::Node, machine([node(0, 2, 1), node(1, 1, 4)]));
    assert_eq!(places, [on(0, 1); 3]);
    assert_eq!((outcome.report.tasks_stolen, outcome.report.tasks_stolen_remote), (3, 0));
    assert_eq!(outcome.report.bytes.local(), Bytes(300));
}

#[test]
fn when_asked_waiting_tasks_are_stolen_by_another_node_which_then_reads_remotely() {
    let (places, outcome) = forced_out(Steal::Machine, even(2, 1));
    assert_eq!(places, [on(1, 1); 3]);
    assert_eq!((outcome.report.tasks_stolen, outcome.report.tasks_stolen_remote), (3, 3));
    assert_eq!(outcome.report.bytes.get(NodeId(1), NodeId(0)), Bytes(300));
    assert_eq!(outcome.report.bytes.remote(), Bytes(300));
}

/// Domains that ran 200 tasks sent to one of four.
fn domains_used(steal: Steal) -> BTreeSet<Place> {
    let runtime = start(machine([node(0, 2, 1), node(1, 2, 1)]));
    let tasks = (0..200).map(|_| {
        Task::on_worker(WorkerId(2), async |context: TaskContext| {
            tokio::time::sleep(std::time::Duration::from_micros(50)).await;
            Ok::<_, Infallible>((context.node(), context.domain()))
        })
    });
    let outcome = run(&runtime, runtime.step("stay", tasks.collect()).steal(steal).run());
    outcome.result.expect("all ran").into_iter().collect()
}

#[test]
fn tasks_are_never_stolen_farther_than_allowed() {
    assert_eq!(domains_used(Steal::Domain), BTreeSet::from([on(1, 2)]));
    assert_eq!(domains_used(Steal::Node), BTreeSet::from([on(1, 2), on(1, 3)]));
}

#[test]
fn bytes_land_in_the_cell_of_the_readers_node_and_the_home() {
    let runtime = start(machine([node(0, 1, 2), node(4, 1, 1), memory_node(6)]));
    let tasks = (0..60u32).map(|number| {
        let reader = [0, 4][number as usize % 2];
        Task::on_node(NodeId(reader), async move |context: TaskContext| {
            context.count_read(NodeId(6), Bytes(1));
            context.count_read(NodeId(reader), Bytes(10));
            context.count_read(NodeId(5), Bytes(1000));
            Ok::<_, Infallible>(())
        })
    });
    let bytes = run(&runtime, runtime.step("read", tasks.collect()).run()).report.bytes;
    assert_eq!(bytes.nodes(), [NodeId(0), NodeId(4), NodeId(6)]);
    for reader in [NodeId(0), NodeId(4)] {
        assert_eq!(bytes.get(reader, NodeId(6)), Bytes(30));
        assert_eq!(bytes.get(reader, reader), Bytes(300));
    }
    assert_eq!(bytes.get(NodeId(0), NodeId(4)), Bytes(0));
    assert_eq!((bytes.local(), bytes.remote()), (Bytes(600), Bytes(60)));
    assert_eq!((bytes.unknown(), bytes.total()), (Bytes(60_000), Bytes(60_660)));
}

#[test]
fn an_unbound_reader_is_counted_where_the_kernel_says_it_is() {
    // The kernel leaves every thread on the last cpu, which is on node 1.
    let runtime = start_with(even(2, 1), Mood::Lying, RuntimeOptions::default());
    let task = Task::on_node(NodeId(0), async |context: TaskContext| {
        context.count_read(NodeId(0), Bytes(8));
        Ok::<_, Infallible>(())
    });
    let bytes = run(&runtime, runtime.step("read", vec![task]).run()).report.bytes;
    assert_eq!((bytes.local(), bytes.remote()), (Bytes(0), Bytes(8)));
}

#[test]
fn a_task_may_run_a_step_of_its_own_even_on_the_only_worker() {
    let runtime = start(even(1, 1));
    let outer = (0..3).map(|_| {
        Task::on_node(NodeId(0), async |context: TaskContext| {
            let inner = context.runtime().step("inner", (0..5).map(|_| place(0)).collect());
            let inner = inner.cancel(context.cancel_token()).run().await;
            Ok::<_, Infallible>(inner.result.expect("all ran").len())
        })
    });
    let outcome = run(&runtime, runtime.step("outer", outer.collect()).run());
    assert_eq!(outcome.result, Ok(vec![5, 5, 5]));
}

#[test]
fn steps_at_the_same_time_keep_their_results_and_bytes_apart() {
    let runtime = start(even(2, 2));
    let step = |size: u32| {
        let tasks = (0..size).map(|number| {
            Task::on_node(NodeId(number % 2), async move |context: TaskContext| {
                context.count_read(NodeId(0), Bytes(1));
                tokio::task::yield_now().await;
                Ok::<_, Infallible>(size)
            })
        });
        runtime.step("one of many", tasks.collect()).run()
    };
    let (one, other) = run(&runtime, async { tokio::join!(step(300), step(500)) });
    assert_eq!((one.report.bytes.total(), other.report.bytes.total()), (Bytes(300), Bytes(500)));
    assert_eq!((one.result, other.result), (Ok(vec![300; 300]), Ok(vec![500; 500])));
}

#[test]
fn a_context_names_a_worker_of_the_group_the_task_runs_in() {
    let runtime = start(machine([node(0, 2, 2)]));
    let tasks = (0..50).map(|_| {
        Task::on_worker(WorkerId(3), async |context: TaskContext| {
            Ok::<_, Infallible>(context.worker())
        })
    });
    let step = runtime.step("who", tasks.collect()).steal(Steal::Domain);
    let workers = run(&runtime, step.run()).result.expect("all ran");
    assert!(
        workers.iter().all(|worker| [WorkerId(2), WorkerId(3)].contains(worker)),
        "{workers:?}"
    );
}

#[test]
fn a_task_waits_for_its_own_group_however_idle_the_neighbours_are() {
    let runtime = start(machine([node(0, 2, 1)]));
    for _ in 0..50 {
        // Domain 1 finishes at once and must not take what domain 0 has not come to yet.
        let (free, busy) = std::sync::mpsc::channel::<()>();
        let occupied = runtime.spawn_on(WorkerId(0), async move { busy.recv() });
        let other = Task::on_worker(WorkerId(1), async move |context: TaskContext| {
            drop(free);
            Ok((context.node(), context.domain()))
        });
        let own = Task::on_worker(WorkerId(0), async |context: TaskContext| {
            Ok::<_, Infallible>((context.node(), context.domain()))
        });
        let outcome = run(&runtime, runtime.step("two", vec![own, other]).run());
        assert_eq!(outcome.result, Ok(vec![on(0, 0), on(0, 1)]));
        assert!(run(&runtime, occupied).is_ok());
    }
}

#[test]
fn between_long_tasks_a_worker_lets_others_run() {
    let runtime = start(even(1, 1));
    let other = Arc::new(AtomicUsize::new(0));
    let (set, seen) = (other.clone(), other);
    let long = Task::on_node(NodeId(0), async move |context: TaskContext| {
        context.runtime().spawn_on(context.worker(), async move { set.store(1, Ordering::SeqCst) });
        let started = std::time::Instant::now();
        while started.elapsed() < std::time::Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        Ok(0)
    });
    let next =
        Task::on_node(NodeId(0), async move |_| Ok::<_, Infallible>(seen.load(Ordering::SeqCst)));
    let outcome = run(&runtime, runtime.step("long", vec![long, next]).run());
    assert_eq!(outcome.result, Ok(vec![0, 1]));
}
