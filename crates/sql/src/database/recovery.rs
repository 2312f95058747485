//! Reports the progress of opening a data directory.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use atoll_store::open::OpenProgress;

/// Time before the first report.
const FIRST: Duration = Duration::from_secs(1);

/// Time between later reports.
const NEXT: Duration = Duration::from_secs(5);

/// A thread that reports, until this is dropped.
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
        // Without a thread recovery runs without progress reports.
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
    fn recovery_within_a_second_is_not_reported() {
        let tell: fn(&OpenProgress) = |_| panic!("it reported");
        drop(RecoveryTeller::start(&Arc::default(), tell));
    }
}
