//! Sequential tests of the gate.

use std::task::{Context, Poll, Waker};

use super::gate::{Closed, Gate};

type Letters = Gate<u8, &'static str>;

fn send(gate: &Letters, output: usize, item: u8) -> Poll<Result<(), Closed>> {
    gate.poll_send(0, output, &mut Some(item), &mut Context::from_waker(Waker::noop()))
}

fn receive(gate: &Letters, output: usize) -> Poll<Option<Result<u8, &'static str>>> {
    gate.poll_receive(output, &mut Context::from_waker(Waker::noop()))
}

#[test]
fn the_gate_closes_when_no_queue_is_empty_and_opens_when_one_is() {
    let gate = Gate::new(1, 2);
    assert_eq!(send(&gate, 0, 1), Poll::Ready(Ok(())));
    assert_eq!(send(&gate, 0, 2), Poll::Ready(Ok(())));
    assert_eq!(send(&gate, 1, 3), Poll::Ready(Ok(())));
    assert_eq!(send(&gate, 1, 4), Poll::Pending);
    assert_eq!(receive(&gate, 0), Poll::Ready(Some(Ok(1))));
    assert_eq!(send(&gate, 1, 4), Poll::Pending);
    assert_eq!(receive(&gate, 0), Poll::Ready(Some(Ok(2))));
    assert_eq!(send(&gate, 1, 4), Poll::Ready(Ok(())));
}

#[test]
fn a_closed_output_neither_holds_the_gate_open_nor_takes_anything() {
    let gate = Gate::new(1, 2);
    gate.close(1);
    gate.close(1);
    assert_eq!(send(&gate, 1, 1), Poll::Ready(Err(Closed)));
    assert_eq!(send(&gate, 0, 1), Poll::Ready(Ok(())));
    assert_eq!(send(&gate, 0, 2), Poll::Pending);
}

#[test]
fn an_output_ends_when_all_producers_have_and_its_queue_is_empty() {
    let gate = Gate::new(2, 1);
    assert_eq!(send(&gate, 0, 1), Poll::Ready(Ok(())));
    gate.end();
    gate.end();
    assert_eq!(receive(&gate, 0), Poll::Ready(Some(Ok(1))));
    assert_eq!(receive(&gate, 0), Poll::Ready(None));
}

#[test]
fn a_failure_overtakes_batches_and_reaches_each_output_once() {
    let gate = Gate::new(2, 2);
    assert_eq!(send(&gate, 0, 1), Poll::Ready(Ok(())));
    gate.fail("first");
    gate.fail("second");
    for output in 0..2 {
        assert_eq!(receive(&gate, output), Poll::Ready(Some(Err("first"))));
        assert_eq!(receive(&gate, output), Poll::Ready(None));
    }
    assert_eq!(send(&gate, 0, 2), Poll::Ready(Err(Closed)));
}
