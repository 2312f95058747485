//! Planning on a separate thread, so that the caller may give up meanwhile.
//!
//! ```text
//! caller ──▶ a place ──▶ thread: polls the work ──▶ done, or it waits for something ─┐
//!              ▲                                                                     │ woken
//!              └─────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Planning does not yield: a thread that plans does not see Ctrl-C. It therefore runs on a separate thread, which
//! continues to the next await point even if the result was dropped. A panic on that thread
//! becomes an error, as on the workers.
//!
//! The number of planning slots is limited, so that thousands of statements do not plan at once. Work that waits for a
//! lock or for its turn holds neither a slot nor a thread: the work it waits for may have to plan too.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use datafusion::common::{Result, exec_datafusion_err};
use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::task::{BoundTask, unpanicked};

/// Number of threads that plan at the same time: per worker, and at least.
const PLACES_EACH: usize = 2;
const PLACES_MIN: usize = 4;

/// Work that is polled on one thread after the other.
type Work<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// Slots for planning statements.
#[derive(Clone, Debug)]
pub struct PlanningPlaces(Arc<Semaphore>);

impl PlanningPlaces {
    /// Creates as many slots as this number of workers can use.
    pub fn for_workers(workers: usize) -> Self {
        Self(Arc::new(Semaphore::new((workers * PLACES_EACH).max(PLACES_MIN))))
    }

    async fn take(&self) -> Result<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_owned().await.map_err(|_| ended())
    }
}

/// Wakes the caller of waiting work.
#[derive(Debug, Default)]
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// Runs `work` on threads next to the workers; dropping the result drops the work.
pub async fn offload<T: Send + 'static>(
    threads: &Handle,
    places: &PlanningPlaces,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let handle = threads.clone();
    let mut work: Work<T> = Box::pin(unpanicked("the planner", work));
    loop {
        let (place, woken) = (places.take().await?, Arc::new(Woken::default()));
        let waker = Waker::from(Arc::clone(&woken));
        let polling = handle.spawn_blocking(move || {
            let polled = work.poll_unpin(&mut Context::from_waker(&waker));
            drop(place);
            Ok((work, polled))
        });
        let (left, polled) = BoundTask::new(polling).join("planning").await?;
        match polled {
            Poll::Ready(done) => return done,
            Poll::Pending => work = left,
        }
        woken.0.notified().await;
    }
}

fn ended() -> datafusion::common::DataFusionError {
    exec_datafusion_err!("the session's threads have ended")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use atoll_runtime::{Runtime, RuntimeOptions, WorkerId};
    use atoll_testkit::kernel::SimulatedKernel;
    use atoll_testkit::machines;

    use super::*;

    fn runtime() -> Runtime {
        let machine = Arc::new(machines::two_nodes());
        let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
        Runtime::start(machine, kernel, RuntimeOptions::default()).unwrap()
    }

    fn places() -> PlanningPlaces {
        PlanningPlaces::for_workers(1)
    }

    async fn falls() -> Result<()> {
        panic!("a hole in the plan")
    }

    #[test]
    fn a_panic_is_an_error() {
        let runtime = runtime();
        let error = runtime
            .block_on(offload(runtime.handle_of(WorkerId(0)), &places(), falls()))
            .unwrap_err();
        assert!(error.to_string().contains("a hole in the plan"), "{error}");
        assert_eq!(
            runtime
                .block_on(offload(runtime.handle_of(WorkerId(0)), &places(), async { Ok(7) }))
                .unwrap(),
            7
        );
    }

    #[test]
    fn work_that_waits_leaves_its_place_to_others() {
        let runtime = runtime();
        let places = PlanningPlaces(Arc::new(Semaphore::new(1)));
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let waits = offload(runtime.handle_of(WorkerId(0)), &places, async {
            receiver.await.map_err(|_| ended())
        });
        let goes_on = offload(runtime.handle_of(WorkerId(0)), &places, async move {
            tokio::task::yield_now().await;
            sender.send(7).map_err(|_| ended())
        });
        let (waited, sent) = runtime.block_on(async { tokio::join!(waits, goes_on) });
        assert_eq!((waited.unwrap(), sent.unwrap()), (7, ()));
        assert_eq!(places.0.available_permits(), 1);
    }

    #[test]
    fn a_caller_can_give_up_while_the_thread_is_busy() {
        let runtime = runtime();
        let (begun, begins) = channel();
        let (go_on, goes_on) = channel::<()>();
        let places = places();
        let busy = offload(runtime.handle_of(WorkerId(0)), &places, async move {
            begun.send(()).unwrap();
            // Keeps the thread busy, without yielding, until the test has gone on.
            let _ = goes_on.recv();
            Ok(())
        });
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = busy => panic!("it is still busy"),
                () = async { tokio::task::spawn_blocking(move || begins.recv().unwrap()).await.unwrap() } => {}
            }
        });
        drop(go_on);
    }
}
