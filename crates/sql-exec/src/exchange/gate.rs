//! The queues between the producers and the outputs of an exchange.
//!
//! Each output has an unlimited queue; a common gate limits them together. A
//! producer may put a batch into any open queue as long as at least one open queue is empty, and
//! waits otherwise. So whatever an output lacks can always be produced, even if the others are not
//! polled at all (a hash join polls its probe side only after its build side, a merge waits for one
//! particular input): no order of polling deadlocks, and outputs that are all polled hold little.
//! The rule is that of DataFusion's `repartition/distributor_channels.rs`.
//!
//! States of a queue: open, until its output is dropped; then closed, and items sent to it are
//! refused. The gate counts queues that are open and empty. All changes happen under one lock,
//! taken once per batch and direction, and wakers are called after it is released:
//!
//! ```text
//! producer              gate                          output
//! poll_send ──▶ [batch][batch]        queue 0 ──▶ poll_receive
//!           ──▶ []   (open, empty)    queue 1 ──▶ poll_receive    a queue is empty: gate open
//! ```
//!
//! A failure of one producer is the failure of all outputs: it overtakes the batches in the queues,
//! reaches each output once, and producers that still send are refused.
//!
//! `cargo xtask loom` runs this file in every order that threads may take (loom/src/gate_models.rs), so
//! it uses only std and the lock.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The output is gone, or the exchange has failed: stop sending to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Closed;

/// Queues of `T`, one per output, behind a common gate; `E` is the failure of a producer.
#[derive(Debug)]
pub(super) struct Gate<T, E> {
    state: Mutex<GateState<T, E>>,
}

#[derive(Debug)]
struct GateState<T, E> {
    queues: Vec<GateQueue<T>>,
    /// Queues that are open and empty; at 0 the gate is closed.
    empty: usize,
    /// The producers that wait at the gate, by their number.
    waiting: Vec<Option<Waker>>,
    /// Producers that have not ended.
    producing: usize,
    failure: Option<E>,
}

#[derive(Debug)]
struct GateQueue<T> {
    items: VecDeque<T>,
    open: bool,
    /// The waker of the output, if it waits.
    waker: Option<Waker>,
    /// Whether the output has received the failure.
    told: bool,
}

impl<T, E: Clone> Gate<T, E> {
    /// Empty queues for this many outputs, to be filled by this many producers.
    pub(super) fn new(producers: usize, outputs: usize) -> Self {
        let queue = || GateQueue { items: VecDeque::new(), open: true, waker: None, told: false };
        Self {
            state: Mutex::new(GateState {
                queues: (0..outputs).map(|_| queue()).collect(),
                empty: outputs,
                waiting: vec![None; producers],
                producing: producers,
                failure: None,
            }),
        }
    }

    /// Puts the item into the queue of `output`, once the gate is open.
    pub(super) fn poll_send(
        &self,
        producer: usize,
        output: usize,
        item: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Closed>> {
        let waker = {
            let mut state = self.state.lock();
            if state.failure.is_some() || !state.queues[output].open {
                return Poll::Ready(Err(Closed));
            }
            if state.empty == 0 {
                state.waiting[producer] = Some(context.waker().clone());
                return Poll::Pending;
            }
            state.push(output, item.take())
        };
        wake(waker);
        Poll::Ready(Ok(()))
    }

    /// The next item of `output`; `None` when all producers have ended and its queue is empty.
    pub(super) fn poll_receive(
        &self,
        output: usize,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<T, E>>> {
        let mut state = self.state.lock();
        if let Some(failure) = state.failure.clone() {
            let told = std::mem::replace(&mut state.queues[output].told, true);
            return Poll::Ready((!told).then_some(Err(failure)));
        }
        let Some(item) = state.queues[output].items.pop_front() else {
            if state.producing == 0 {
                return Poll::Ready(None);
            }
            state.queues[output].waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        let wakers = state.popped(output);
        drop(state);
        wake(wakers);
        Poll::Ready(Some(Ok(item)))
    }

    /// Closes the queue of an output that is gone and drops what is in it.
    pub(super) fn close(&self, output: usize) {
        let (items, wakers) = {
            let mut state = self.state.lock();
            let queue = &mut state.queues[output];
            queue.waker = None;
            if !std::mem::replace(&mut queue.open, false) {
                return;
            }
            let items = std::mem::take(&mut queue.items);
            if items.is_empty() {
                state.empty -= 1;
            }
            (items, state.take_waiting())
        };
        drop(items);
        wake(wakers);
    }

    /// Ends one producer, which has sent all it had.
    pub(super) fn end(&self) {
        let wakers = {
            let mut state = self.state.lock();
            state.producing -= 1;
            if state.producing == 0 { state.take_outputs() } else { vec![] }
        };
        wake(wakers);
    }

    /// Fails the exchange with the error of one producer. The first failure counts.
    pub(super) fn fail(&self, error: E) {
        let wakers = {
            let mut state = self.state.lock();
            state.failure.get_or_insert(error);
            let mut wakers = state.take_outputs();
            wakers.extend(state.take_waiting());
            wakers
        };
        wake(wakers);
    }
}

impl<T, E> GateState<T, E> {
    /// Puts the item in; returns the output if it waits for it.
    fn push(&mut self, output: usize, item: Option<T>) -> Option<Waker> {
        let queue = &mut self.queues[output];
        if queue.items.is_empty() {
            self.empty -= 1;
        }
        queue.items.extend(item);
        queue.waker.take()
    }

    /// After an item was taken out; returns the producers if that opened the gate.
    fn popped(&mut self, output: usize) -> Vec<Waker> {
        let queue = &self.queues[output];
        if !queue.items.is_empty() || !queue.open {
            return vec![];
        }
        self.empty += 1;
        if self.empty == 1 { self.take_waiting() } else { vec![] }
    }

    fn take_waiting(&mut self) -> Vec<Waker> {
        self.waiting.iter_mut().filter_map(Option::take).collect()
    }

    fn take_outputs(&mut self) -> Vec<Waker> {
        self.queues.iter_mut().filter_map(|queue| queue.waker.take()).collect()
    }
}

fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
