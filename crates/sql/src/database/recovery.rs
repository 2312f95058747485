//! Tells how far the opening of a data directory is.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use atoll_store::open::OpenProgress;

/// Nothing is told of what takes less.
const FIRST: Duration = Duration::from_secs(1);

/// How often it is told from there on.
const NEXT: Duration = Duration::from_secs(5);

/// A thread that tells, until this is dropped.
pub(super) struct RecoveryTeller {
    ended: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RecoveryTeller {
    pub(super) fn start(progress: &Arc<OpenProgress>, tell: fn(&OpenProgress)) -> Self {
        let (ended, waiting) = mpsc::channel::<()>();
        let progress = Arc::clone(progress);
        let telling = move || {
            let mut pause = FIRST;
            while waiting.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                tell(&progress);
                pause = NEXT;
            }
            if pause == NEXT {
                tell(&progress);
            }
        };
        // Without a thread recovery runs as well, and reports no progress.
        let thread = thread::Builder::new().name("atoll-recovery".to_owned()).spawn(telling).ok();
        Self { ended: Some(ended), thread }
    }
}

impl Drop for RecoveryTeller {
    fn drop(&mut self) {
        self.ended = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_no_second_is_not_told() {
        let tell: fn(&OpenProgress) = |_| panic!("it was told");
        drop(RecoveryTeller::start(&Arc::default(), tell));
    }
}
