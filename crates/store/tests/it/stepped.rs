//! Tasks that a test polls one by one in an order of its own, and only those that were woken: a wake-up
//! that is lost leaves a task behind.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use atoll_sys::SplitMix64;

/// Set when the task is woken.
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

struct SteppedTask<'a> {
    future: Pin<Box<dyn Future<Output = ()> + 'a>>,
    flag: Arc<WakeFlag>,
}

/// Tasks of one thread.
#[derive(Default)]
pub(crate) struct SteppedTasks<'a> {
    tasks: Vec<SteppedTask<'a>>,
}

impl<'a> SteppedTasks<'a> {
    pub(crate) fn spawn(&mut self, future: impl Future<Output = ()> + 'a) {
        let flag = Arc::new(WakeFlag(AtomicBool::new(true)));
        self.tasks.push(SteppedTask { future: Box::pin(future), flag });
    }

    /// Runs all to their ends; `choose` picks among so many that can go on. How many are left that were
    /// not woken.
    pub(crate) fn run(&mut self, mut choose: impl FnMut(usize) -> usize) -> usize {
        loop {
            let is_woken = |task: &SteppedTask<'_>| task.flag.0.load(Ordering::Acquire);
            let ready = self.tasks.iter().enumerate().filter(|(_, task)| is_woken(task));
            let ready: Vec<usize> = ready.map(|(at, _)| at).collect();
            if ready.is_empty() {
                return self.tasks.len();
            }
            let at = ready[choose(ready.len())];
            let task = &mut self.tasks[at];
            task.flag.0.store(false, Ordering::Release);
            let waker = Waker::from(Arc::clone(&task.flag));
            if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                self.tasks.remove(at);
            }
        }
    }

    /// Runs all in an order drawn from a seed.
    pub(crate) fn run_seeded(&mut self, random: &mut SplitMix64) -> usize {
        self.run(|count| random.below(count as u64) as usize)
    }
}

/// Lets other tasks go first.
pub(crate) async fn step() {
    let has_waited = Cell::new(false);
    poll_fn(|context| {
        if has_waited.replace(true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Polls a future some times, and drops it then: None.
pub(crate) async fn give_up_after<T>(polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(move |context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        left = left.saturating_sub(1);
        if left == 0 {
            return Poll::Ready(None);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Runs tasks in every order there is; `make` makes them anew for each. How many orders there are.
pub(crate) fn run_all_orders(mut make: impl FnMut(&mut SteppedTasks<'static>)) -> u64 {
    // Of each choice, what is chosen and among how many.
    let mut choices: Vec<(usize, usize)> = Vec::new();
    let mut orders = 0;
    loop {
        let mut tasks = SteppedTasks::default();
        make(&mut tasks);
        let taken = Rc::new(Cell::new(0));
        let left = tasks.run(|count| {
            let at = taken.replace(taken.get() + 1);
            if at == choices.len() {
                choices.push((0, count));
            }
            choices[at].0
        });
        assert_eq!(left, 0, "tasks that are never woken after the choices {choices:?}");
        orders += 1;
        while choices.last().is_some_and(|(chosen, count)| chosen + 1 == *count) {
            choices.pop();
        }
        let Some((chosen, _)) = choices.last_mut() else { return orders };
        *chosen += 1;
    }
}

/// Wakes a thread that is parked.
struct ParkedThread(Thread);

impl Wake for ParkedThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(ParkedThread(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}
