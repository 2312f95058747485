//! Producers and outputs at the gate of an exchange.

use std::future::poll_fn;
use std::sync::Arc;

use loom::future::block_on;
use loom::thread;

use super::Model;
use super::gate::{Closed, Gate};

type Letters = Gate<u8, &'static str>;

pub(super) const MODELS: [Model; 5] = [
    ("every batch arrives once and in order, whichever output is polled", all_arrives),
    ("two producers share a gate and both end", two_producers),
    ("an output that is gone sets a waiting producer free", an_output_goes),
    ("a failure reaches every output once, and a waiting producer", a_failure),
    ("an output that reads nothing until another has ended delays no other", one_after_another),
];

fn send(gate: &Letters, producer: usize, output: usize, item: u8) -> Result<(), Closed> {
    let mut item = Some(item);
    block_on(poll_fn(|context| gate.poll_send(producer, output, &mut item, context)))
}

fn receive(gate: &Letters, output: usize) -> Option<Result<u8, &'static str>> {
    block_on(poll_fn(|context| gate.poll_receive(output, context)))
}

/// All that an output gets until it ends.
fn received(gate: &Letters, output: usize) -> Vec<Result<u8, &'static str>> {
    std::iter::from_fn(|| receive(gate, output)).collect()
}

/// Runs this on a thread of its own.
fn beside<T: 'static>(
    gate: &Arc<Letters>,
    work: impl FnOnce(&Letters) -> T + 'static,
) -> thread::JoinHandle<T> {
    let gate = Arc::clone(gate);
    thread::spawn(move || work(&gate))
}

fn all_arrives() {
    let gate = Arc::new(Gate::new(1, 2));
    let producer = beside(&gate, |gate| {
        for (output, item) in [(0, 1), (0, 2), (1, 3)] {
            assert_eq!(send(gate, 0, output, item), Ok(()));
        }
        gate.end();
    });
    let other = beside(&gate, |gate| received(gate, 1));
    assert_eq!(received(&gate, 0), [Ok(1), Ok(2)]);
    assert_eq!(other.join().expect("it ends"), [Ok(3)]);
    producer.join().expect("it ends");
}

fn two_producers() {
    let gate = Arc::new(Gate::new(2, 1));
    let producers = [0, 1].map(|producer| {
        beside(&gate, move |gate| {
            assert_eq!(send(gate, producer, 0, producer as u8), Ok(()));
            gate.end();
        })
    });
    let mut found = received(&gate, 0);
    found.sort();
    assert_eq!(found, [Ok(0), Ok(1)]);
    for producer in producers {
        producer.join().expect("it ends");
    }
}

fn an_output_goes() {
    let gate = Arc::new(Gate::new(1, 2));
    let producer = beside(&gate, |gate| {
        // The second batch finds one queue full and the other full or gone.
        assert_eq!(send(gate, 0, 1, 1), Ok(()));
        let first = send(gate, 0, 0, 2);
        let second = send(gate, 0, 0, 3);
        gate.end();
        assert!(first.is_ok() || second.is_err(), "a queue that is gone stays gone");
    });
    let other = beside(&gate, |gate| gate.close(0));
    assert_eq!(received(&gate, 1), [Ok(1)]);
    other.join().expect("it ends");
    producer.join().expect("it ends");
}

fn a_failure() {
    let gate = Arc::new(Gate::new(2, 1));
    let failing = beside(&gate, |gate| gate.fail("late"));
    let producer = beside(&gate, |gate| {
        // Both are sent, or refused after the failure.
        if send(gate, 1, 0, 1).is_ok() && send(gate, 1, 0, 2).is_ok() {
            gate.end();
        }
    });
    let found = received(&gate, 0);
    assert_eq!(found.iter().filter(|item| item.is_err()).count(), 1, "{found:?}");
    assert_eq!(found.last(), Some(&Err("late")));
    failing.join().expect("it ends");
    producer.join().expect("it ends");
}

fn one_after_another() {
    let gate = Arc::new(Gate::new(1, 2));
    let producer = beside(&gate, |gate| {
        for (output, item) in [(1, 1), (1, 2), (0, 3), (1, 4)] {
            assert_eq!(send(gate, 0, output, item), Ok(()));
        }
        gate.end();
    });
    assert_eq!(received(&gate, 0), [Ok(3)]);
    assert_eq!(received(&gate, 1), [Ok(1), Ok(2), Ok(4)]);
    producer.join().expect("it ends");
}
