//! Admission: limits how many statements run at the same time.
//!
//! | class | most bytes of tables that it reads | concurrent statements |
//! |---|---|---|
//! | point | less than 1 MiB, or known to read about one row | unlimited |
//! | small | less than 256 MiB | `atoll.small_statements`: 8 for each core |
//! | large | more | `atoll.large_statements`: 1 for two cores, 2 at least |
//!
//! Each class has its own queue, in the order of arrival, so that many large statements do not hold up small
//! ones. A statement has its place from when it is planned until its last row is out. It gives the place back while
//! it waits for its client, and for good when it waits for a lock: those it waits for may have to wait for a place.
//! For the same reason statements of a transaction that holds locks do not wait for a place.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use atoll_topology::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Statements that read less than this are points.
const SMALL_MIN: Bytes = Bytes(1 << 20);
/// Statements that read this or more are large.
const LARGE_MIN: Bytes = Bytes(256 << 20);

/// Small statements that run at the same time for each core.
const SMALL_EACH: usize = 8;
/// Cores for each large statement that runs at the same time, and how many there are at least.
const CORES_OF_LARGE: usize = 2;
const LARGE_LEAST: usize = 2;

/// How much a statement is expected to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementClass {
    /// Finds its row by a key.
    Point,
    /// Reads little.
    Small,
    /// Reads much.
    Large,
}

impl StatementClass {
    /// The class of a statement that reads at most `bytes` of tables.
    pub fn from_bytes(bytes: Bytes) -> Self {
        if bytes < SMALL_MIN {
            Self::Point
        } else if bytes < LARGE_MIN {
            Self::Small
        } else {
            Self::Large
        }
    }
}

/// The admission queues of a database.
#[derive(Debug)]
pub struct Admission {
    small: Arc<AdmissionQueue>,
    large: Arc<AdmissionQueue>,
}

#[derive(Debug)]
struct AdmissionQueue {
    /// How many may run initially.
    first: usize,
    state: Mutex<QueueState>,
}

#[derive(Debug)]
struct QueueState {
    /// How many may run; 0 for all.
    limit: usize,
    running: usize,
    waiting: VecDeque<oneshot::Sender<Place>>,
}

/// A place among the running statements. Dropping it admits the next one.
#[derive(Debug)]
struct Place(Option<Arc<AdmissionQueue>>);

/// An admitted statement, for as long as this lives. Clones share their state.
#[derive(Clone, Debug)]
pub struct Admitted(Arc<AdmittedParts>);

#[derive(Debug)]
struct AdmittedParts {
    /// The queue in which it waits again after a pause; `None` if it need not wait.
    queue: Option<Arc<AdmissionQueue>>,
    place: Mutex<Option<Place>>,
}

/// A statement that may have ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct WeakAdmitted(Weak<AdmittedParts>);

impl Admission {
    /// The queues for a machine with `cores` cores.
    pub fn for_cores(cores: usize) -> Self {
        let large = (cores / CORES_OF_LARGE).max(LARGE_LEAST);
        Self {
            small: Arc::new(AdmissionQueue::new((cores * SMALL_EACH).max(SMALL_EACH))),
            large: Arc::new(AdmissionQueue::new(large)),
        }
    }

    fn queue(&self, class: StatementClass) -> Option<&Arc<AdmissionQueue>> {
        match class {
            StatementClass::Point => None,
            StatementClass::Small => Some(&self.small),
            StatementClass::Large => Some(&self.large),
        }
    }

    /// How many statements of a class run at the same time; 0 for all.
    pub fn limit(&self, class: StatementClass) -> usize {
        self.queue(class).map_or(0, |queue| queue.state.lock().limit)
    }

    /// How many did initially.
    pub fn first_limit(&self, class: StatementClass) -> usize {
        self.queue(class).map_or(0, |queue| queue.first)
    }

    /// Sets how many statements of a class run at the same time from now on; 0 for all.
    pub fn set_limit(&self, class: StatementClass, limit: usize) {
        if let Some(queue) = self.queue(class) {
            queue.state.lock().limit = limit;
            queue.let_in();
        }
    }

    /// Waits until a statement of a class may run.
    pub async fn enter(&self, class: StatementClass) -> Admitted {
        match self.queue(class) {
            Some(queue) => Admitted::new(Some(queue), Some(queue.enter().await)),
            None => Admitted::ahead(),
        }
    }
}

impl AdmissionQueue {
    fn new(limit: usize) -> Self {
        let state = QueueState { limit, running: 0, waiting: VecDeque::new() };
        Self { first: limit, state: Mutex::new(state) }
    }

    async fn enter(self: &Arc<Self>) -> Place {
        let waiting = {
            let mut state = self.state.lock();
            if state.waiting.is_empty() && state.has_room() {
                state.running += 1;
                return Place(Some(Arc::clone(self)));
            }
            let (sender, waiting) = oneshot::channel();
            state.waiting.push_back(sender);
            waiting
        };
        // A sender is only dropped with its queue.
        waiting.await.unwrap_or(Place(None))
    }

    /// Admits as many as there is room for, in the order of arrival.
    fn let_in(self: &Arc<Self>) {
        let mut state = self.state.lock();
        while state.has_room()
            && let Some(next) = state.waiting.pop_front()
        {
            state.running += 1;
            // A waiter may be gone; forget its place instead of dropping it, because the queue is locked.
            if let Err(mut place) = next.send(Place(Some(Arc::clone(self)))) {
                place.0 = None;
                state.running -= 1;
            }
        }
    }
}

impl QueueState {
    fn has_room(&self) -> bool {
        self.limit == 0 || self.running < self.limit
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(queue) = self.0.take() else { return };
        queue.state.lock().running -= 1;
        queue.let_in();
    }
}

impl Admitted {
    fn new(queue: Option<&Arc<AdmissionQueue>>, place: Option<Place>) -> Self {
        Self(Arc::new(AdmittedParts { queue: queue.cloned(), place: Mutex::new(place) }))
    }

    /// A statement that needs no place.
    pub fn ahead() -> Self {
        Self::new(None, None)
    }

    /// Gives the place back while the statement waits for something else. Returns whether it had one.
    pub fn leave(&self) -> bool {
        let place = self.0.place.lock().take();
        place.is_some()
    }

    /// Waits for a place again.
    pub async fn enter_again(&self) {
        if let Some(queue) = &self.0.queue {
            let place = queue.enter().await;
            *self.0.place.lock() = Some(place);
        }
    }

    /// A weak reference, which does not keep the place.
    pub(crate) fn downgrade(&self) -> WeakAdmitted {
        WeakAdmitted(Arc::downgrade(&self.0))
    }
}

impl WeakAdmitted {
    /// Gives the place back for good, if the statement has one.
    pub(crate) fn leave(&self) {
        if let Some(parts) = self.0.upgrade() {
            Admitted(parts).leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;

    use super::*;

    fn large(admission: &Admission) -> Option<Admitted> {
        admission.enter(StatementClass::Large).now_or_never()
    }

    #[test]
    fn bytes_decide_the_class_of_a_statement() {
        for (bytes, class) in [
            (0, StatementClass::Point),
            ((1 << 20) - 1, StatementClass::Point),
            (1 << 20, StatementClass::Small),
            (256 << 20, StatementClass::Large),
        ] {
            assert_eq!(StatementClass::from_bytes(Bytes(bytes)), class, "{bytes}");
        }
    }

    #[test]
    fn large_statements_do_not_hold_up_others() {
        let admission = Admission::for_cores(2);
        let running = [large(&admission), large(&admission)];
        assert!(running.iter().all(Option::is_some));
        assert!(large(&admission).is_none());
        let small: Vec<_> = (0..16)
            .map(|_| admission.enter(StatementClass::Small).now_or_never().expect("a place"))
            .collect();
        assert!(admission.enter(StatementClass::Small).now_or_never().is_none());
        for _ in 0..1000 {
            assert!(admission.enter(StatementClass::Point).now_or_never().is_some());
        }
        drop((running, small));
        assert!(large(&admission).is_some());
    }

    #[test]
    fn places_are_assigned_in_the_order_of_arrival() {
        let admission = Admission::for_cores(2);
        let (first, second) = (large(&admission).expect("a place"), large(&admission));
        let mut third = pin!(admission.enter(StatementClass::Large));
        let mut fourth = pin!(admission.enter(StatementClass::Large));
        assert!(third.as_mut().now_or_never().is_none());
        assert!(fourth.as_mut().now_or_never().is_none());
        drop(first);
        // No later statement is admitted before those that wait.
        assert!(large(&admission).is_none());
        assert!(fourth.as_mut().now_or_never().is_none());
        let third = third.now_or_never().expect("its turn");
        drop((second, third));
        assert!(fourth.now_or_never().is_some());
    }

    #[test]
    fn a_cancelled_waiter_takes_no_place() {
        let admission = Admission::for_cores(2);
        let (first, second) = (large(&admission), large(&admission));
        {
            let mut gone = pin!(admission.enter(StatementClass::Large));
            assert!(gone.as_mut().now_or_never().is_none());
            let mut granted = pin!(admission.enter(StatementClass::Large));
            assert!(granted.as_mut().now_or_never().is_none());
            drop(first);
            // Both are cancelled; one already has a place that it has not seen.
        }
        drop(second);
        assert!(large(&admission).is_some_and(|_| large(&admission).is_some()));
        assert_eq!(admission.large.state.lock().running, 0);
    }

    #[test]
    fn a_statement_gives_up_its_place_while_it_waits_for_its_client() {
        let admission = Admission::for_cores(2);
        let (slow, other) = (large(&admission).expect("a place"), large(&admission));
        assert!(slow.leave() && !slow.leave());
        let third = large(&admission).expect("the place that it gave up");
        assert!(slow.enter_again().now_or_never().is_none());
        drop(third);
        assert!(slow.enter_again().now_or_never().is_some());
        slow.downgrade().leave();
        assert!(!slow.leave());
        let ahead = Admitted::ahead();
        assert!(!ahead.leave() && ahead.enter_again().now_or_never().is_some());
        drop(other);
    }

    #[test]
    fn the_number_of_places_can_be_changed() {
        let admission = Admission::for_cores(2);
        let first = large(&admission);
        admission.set_limit(StatementClass::Large, 1);
        assert!(large(&admission).is_none());
        let mut waiting = pin!(admission.enter(StatementClass::Large));
        assert!(waiting.as_mut().now_or_never().is_none());
        admission.set_limit(StatementClass::Large, 0);
        assert!(waiting.now_or_never().is_some() && first.is_some());
        let many: Vec<_> = (0..100).map(|_| large(&admission)).collect();
        assert!(many.iter().all(Option::is_some));
        assert_eq!(admission.limit(StatementClass::Large), 0);
        assert_eq!(admission.first_limit(StatementClass::Large), 2);
    }
}
