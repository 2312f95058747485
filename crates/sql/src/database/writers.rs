//! Threads apart from the workers that write files and wait for the disk: a few at a time, each with the next job.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use datafusion::common::{Result, exec_datafusion_err};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Maximum number of writer threads.
const WRITERS: usize = 4;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that write files.
pub(super) struct FileWriters {
    /// Spawns blocking threads.
    handle: Handle,
    queue: Arc<Mutex<JobQueue>>,
}

#[derive(Default)]
struct JobQueue {
    jobs: VecDeque<Job>,
    /// Number of running threads.
    threads: usize,
}

/// A job, which does not start after this is dropped.
#[derive(Debug)]
pub(crate) struct FileJob<T>(oneshot::Receiver<Result<T>>);

impl FileWriters {
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle, queue: Arc::default() }
    }

    /// Queues a job for one of the threads.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> FileJob<T> {
        let (sender, done) = oneshot::channel();
        let job = move || {
            if !sender.is_closed() {
                // The receiver may be gone.
                let _ = sender.send(work());
            }
        };
        let mut queue = self.queue.lock();
        queue.jobs.push_back(Box::new(job));
        if queue.threads < WRITERS {
            queue.threads += 1;
            let queue = Arc::clone(&self.queue);
            drop(self.handle.spawn_blocking(move || work_off(&queue)));
        }
        FileJob(done)
    }
}

fn work_off(queue: &Mutex<JobQueue>) {
    loop {
        let job = {
            let mut queue = queue.lock();
            let job = queue.jobs.pop_front();
            queue.threads -= usize::from(job.is_none());
            job
        };
        let Some(job) = job else { return };
        // A panic closes the channel, which informs the receiver.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

impl<T> FileJob<T> {
    /// Waits for the job; a panic in it becomes an error that names what it was `doing`.
    pub(crate) async fn join(self, doing: &str) -> Result<T> {
        self.0.await.map_err(|_| exec_datafusion_err!("a thread {doing} failed"))?
    }
}

impl fmt::Debug for FileWriters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWriters").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::runtime::Runtime;

    use super::*;

    #[test]
    fn all_jobs_are_done_by_few_threads_and_a_panic_is_the_error_of_its_own() {
        let runtime = Runtime::new().unwrap();
        let writers = FileWriters::new(runtime.handle().clone());
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let jobs: Vec<_> = (0..40)
            .map(|number| {
                let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                writers.submit(move || {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    now.fetch_sub(1, Ordering::SeqCst);
                    assert!(number != 7, "job 7 panics");
                    Ok(number)
                })
            })
            .collect();
        runtime.block_on(async {
            for (number, job) in jobs.into_iter().enumerate() {
                match job.join("counting").await {
                    Ok(done) => assert_eq!(done, number),
                    Err(error) => assert!(number == 7, "{number}: {error}"),
                }
            }
        });
        assert!(most.load(Ordering::SeqCst) <= WRITERS);
    }
}
