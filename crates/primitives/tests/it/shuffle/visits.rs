//! Running schedules: states, places, failures, cancels.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use atoll_primitives::PrimitiveError;
use atoll_primitives::shuffle::{Coordination, Moved, Order, Schedule, Shuffle, Visit};
use atoll_testkit::machines;
use atoll_topology::{Bytes, NodeId};

use super::{context, machine, ring, shuffles};

#[test]
fn every_visit_is_made_once_with_its_actors_state_on_the_node_of_its_place() {
    for machine in machines::all() {
        let context = context(machine, None);
        for shuffle in shuffles() {
            let schedule = Schedule::for_runtime(context.runtime(), shuffle);
            let count = schedule.workers();
            let made: Arc<Mutex<Vec<Visit>>> = Arc::default();
            let (noted, nodes) = (Arc::clone(&made), schedule.clone());
            let states: Vec<Vec<Visit>> = vec![Vec::new(); count];
            let run = schedule.run(&context, "test", states, move |state, visit, task| {
                assert_eq!(task.node(), nodes.node(visit.place));
                state.push(*visit);
                noted.lock().unwrap().push(*visit);
                task.count_read(nodes.home(visit.source), Bytes(1));
                Ok(())
            });
            let shuffled = context.runtime().block_on(run).expect("all visits succeed");
            for (state, actor) in shuffled.states.iter().zip(0..) {
                let turns = schedule.turns(atoll_runtime::WorkerId(actor));
                assert!(state.iter().copied().eq(turns), "{shuffle}: in the order of the steps");
            }
            assert_eq!(made.lock().unwrap().len(), count * count);
            assert_eq!(shuffled.report.bytes().total(), Bytes((count * count) as u64));
            if shuffle.coordination == Coordination::Tight {
                let made = made.lock().unwrap();
                assert!(made.is_sorted_by_key(|visit| visit.step), "{shuffle}");
                assert_eq!((shuffled.report.steps.len(), shuffled.report.convoys), (count, 0));
            }
        }
    }
}

#[test]
fn migrating_threads_read_every_piece_where_it_lies() {
    let context = context(machines::four_nodes(), None);
    for (moved, is_local) in [(Moved::Threads, true), (Moved::Pulled, false)] {
        for coordination in [Coordination::Tight, Coordination::Loose] {
            let shuffle = Shuffle { coordination, ..ring(moved) };
            let schedule = Schedule::for_runtime(context.runtime(), shuffle);
            let homes = schedule.clone();
            let run = schedule.run(&context, "test", vec![(); 16], move |(), visit, task| {
                task.count_read(homes.home(visit.source), Bytes(1));
                Ok(())
            });
            let bytes = context.runtime().block_on(run).expect("it runs").report.bytes();
            let remote = if is_local { 0 } else { 16 * 12 };
            assert_eq!((bytes.remote(), bytes.total()), (Bytes(remote), Bytes(256)));
        }
    }
}

#[test]
fn loose_threads_that_all_go_to_one_node_meet_there_in_convoys() {
    let context = context(machine(&[2, 2]), None);
    let shuffle =
        Shuffle { order: Order::Naive, moved: Moved::Threads, coordination: Coordination::Loose };
    let schedule = Schedule::for_runtime(context.runtime(), shuffle);
    // The first to arrive waits for the others, who arrive at the same place.
    let arrived = Arc::new(AtomicUsize::new(0));
    let run = schedule.run(&context, "test", vec![(); 4], move |(), _, _| {
        arrived.fetch_add(1, Ordering::SeqCst);
        while arrived.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
        Ok(())
    });
    let report = context.runtime().block_on(run).expect("it runs").report;
    assert!(report.convoys > 0, "{report:?}");
}

#[test]
fn an_error_in_a_visit_ends_the_shuffle_and_reaches_the_caller() {
    let context = context(machine(&[2, 2]), None);
    for shuffle in shuffles() {
        let schedule = Schedule::for_runtime(context.runtime(), shuffle);
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let run = schedule.run(&context, "test", vec![(); 4], move |(), visit, _| {
            count.fetch_add(1, Ordering::SeqCst);
            match (visit.step, visit.actor.0) {
                (1, 2) => Err(PrimitiveError::NoSuchNode("bad".to_owned())),
                _ => Ok(()),
            }
        });
        let error = context.runtime().block_on(run).expect_err("a visit failed");
        assert!(matches!(&error, PrimitiveError::NoSuchNode(what) if what == "bad"), "{error}");
        assert!(made.load(Ordering::SeqCst) < 16 || shuffle.coordination == Coordination::Loose);
    }
}

#[test]
fn a_panic_in_a_visit_is_an_error_that_names_the_step() {
    let context = context(machine(&[1, 1]), None);
    for shuffle in shuffles() {
        let schedule = Schedule::for_runtime(context.runtime(), shuffle);
        let run = schedule.run(&context, "means", vec![(); 2], |(), visit, _| match visit.step {
            0 => Ok(()),
            _ => panic!("lost"),
        });
        let error = context.runtime().block_on(run).expect_err("a visit panicked");
        let PrimitiveError::Panicked { step, message } = &error else { panic!("{error}") };
        assert!(step.starts_with("means") && message == "lost", "{error}");
    }
}

#[test]
fn a_cancel_is_honoured_before_the_next_visit() {
    for shuffle in shuffles() {
        let context = context(machine(&[1, 1]), None);
        let schedule = Schedule::for_runtime(context.runtime(), shuffle);
        let made = Arc::new(AtomicUsize::new(0));
        let (count, token) = (Arc::clone(&made), context.cancel().clone());
        let run = schedule.run(&context, "test", vec![(); 2], move |(), visit, _| {
            count.fetch_add(1, Ordering::SeqCst);
            if (visit.step, visit.actor.0) == (0, 0) {
                token.cancel();
            }
            Ok(())
        });
        let error = context.runtime().block_on(run).expect_err("cancelled");
        assert!(matches!(error, PrimitiveError::Cancelled(_)), "{shuffle}: {error}");
        assert!(made.load(Ordering::SeqCst) < 4, "{shuffle}");
    }
}

#[test]
fn a_wrong_number_of_states_or_workers_is_an_error() {
    let context = context(machine(&[1, 1]), None);
    let other = machine(&[1, 1]);
    let schedule = Schedule::new(&other, vec![NodeId(0); 3], ring(Moved::Pulled));
    for states in [2, 3] {
        let run = schedule.run(&context, "test", vec![(); states], |(), _, _| Ok(()));
        let error = context.runtime().block_on(run).expect_err("they do not fit");
        assert!(matches!(error, PrimitiveError::Shape { .. }), "{error}");
    }
}
