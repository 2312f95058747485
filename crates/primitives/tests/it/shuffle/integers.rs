//! The paper's experiment.

use atoll_primitives::PrimitiveError;
use atoll_primitives::shuffle::{Integers, Moved, Schedule};
use atoll_runtime::WorkerId;
use atoll_testkit::machines;
use atoll_topology::Bytes;

use super::{context, machine, ring, shuffles};

/// The mean of all pieces for a worker, added one by one.
fn plain(integers: &Integers, worker: u32) -> Option<f64> {
    let sources = (0..integers.workers() as u32).map(WorkerId);
    let all = sources.flat_map(|source| integers.piece(source, WorkerId(worker)));
    let (sum, count) = all.fold((0, 0), |(sum, count), it| (sum + u128::from(*it), count + 1));
    (count > 0).then(|| sum as f64 / f64::from(count))
}

#[test]
fn every_shuffle_gives_the_plain_means_and_reads_every_byte_once() {
    let machines = machines::all().into_iter().map(|machine| (machine, None));
    let odd = [(machine(&[1]), None), (machine(&[1]), Some(5)), (machine(&[2, 1]), Some(7))];
    for (machine, threads) in machines.chain(odd) {
        let context = context(machine, threads);
        let runtime = context.runtime();
        for count in [0, 1, 100, 10_007] {
            let integers = runtime.block_on(Integers::random(&context, count, 5)).expect("memory");
            assert_eq!(integers.bytes(), Bytes(8 * count as u64));
            let expected: Vec<_> =
                (0..integers.workers() as u32).map(|worker| plain(&integers, worker)).collect();
            for shuffle in shuffles() {
                let schedule = Schedule::for_runtime(runtime, shuffle);
                let (means, report) =
                    runtime.block_on(integers.means(&context, &schedule)).expect("it runs");
                assert_eq!(means, expected, "{shuffle} of {count}");
                assert_eq!(report.bytes().total(), integers.bytes(), "{shuffle} of {count}");
            }
        }
    }
}

#[test]
fn integers_are_on_their_owners_nodes() {
    let context = context(machines::four_nodes(), None);
    let integers = context.runtime().block_on(Integers::random(&context, 64_000, 1)).unwrap();
    let schedule = Schedule::for_runtime(context.runtime(), ring(Moved::Pulled));
    for worker in (0..16).map(WorkerId) {
        assert_eq!(integers.home(worker), Some(schedule.node(worker)));
        assert_eq!(integers.held(worker).len(), 4000);
    }
}

#[test]
fn insufficient_memory_is_an_error() {
    let context = context(machine(&[1, 1]), None);
    let error = context.runtime().block_on(Integers::random(&context, 1 << 40, 1)).unwrap_err();
    assert!(matches!(error, PrimitiveError::Memory(_)), "{error}");
}

#[test]
fn a_cancel_ends_means_and_pushes() {
    let context = context(machine(&[1, 1]), None);
    let runtime = context.runtime();
    let integers = runtime.block_on(Integers::random(&context, 1000, 1)).expect("memory");
    context.cancel().cancel();
    for shuffle in shuffles() {
        let schedule = Schedule::for_runtime(runtime, shuffle);
        let error = runtime.block_on(integers.means(&context, &schedule)).unwrap_err();
        assert!(matches!(error, PrimitiveError::Cancelled(_)), "{shuffle}: {error}");
    }
}
