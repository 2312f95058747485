//! Planning beside the caller, who may go away meanwhile.
//!
//! Planning does not yield: a thread that plans sees no Ctrl-C. It has a thread of its own here, which
//! goes on to the next point where it would wait when the result was dropped. A panic in it
//! is an error, as on the workers.

use std::future::Future;

use atoll_runtime::{Runtime, WorkerId};
use datafusion::common::{Result, exec_datafusion_err};
use tokio::sync::oneshot;

use crate::task::unpanicked;

/// Does `work` on a thread beside the first group's workers; dropping the result drops the work.
pub(super) async fn aside<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let (mut sender, receiver) = oneshot::channel();
    let handle = runtime.handle_of(WorkerId(0)).clone();
    let within = handle.clone();
    handle.spawn_blocking(move || {
        within.block_on(async move {
            let done = tokio::select! {
                done = unpanicked("the planner", work) => done,
                () = sender.closed() => return,
            };
            // The receiver may be gone.
            let _ = sender.send(done);
        });
    });
    receiver.await.map_err(|_| exec_datafusion_err!("the session's threads have ended"))?
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use atoll_runtime::RuntimeOptions;
    use atoll_testkit::kernel::SimulatedKernel;
    use atoll_testkit::machines;

    use super::*;

    fn runtime() -> Runtime {
        let machine = Arc::new(machines::two_nodes());
        let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
        Runtime::start(machine, kernel, RuntimeOptions::default()).unwrap()
    }

    async fn falls() -> Result<()> {
        panic!("a hole in the plan")
    }

    #[test]
    fn a_panic_is_an_error() {
        let runtime = runtime();
        let error = runtime.block_on(aside(&runtime, falls())).unwrap_err();
        assert!(error.to_string().contains("a hole in the plan"), "{error}");
        assert_eq!(runtime.block_on(aside(&runtime, async { Ok(7) })).unwrap(), 7);
    }

    #[test]
    fn who_waits_can_leave_while_the_thread_is_busy() {
        let runtime = runtime();
        let (begun, begins) = channel();
        let (go_on, goes_on) = channel::<()>();
        let busy = aside(&runtime, async move {
            begun.send(()).unwrap();
            // Until the test has gone on: a thread that is busy and does not yield.
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
