//! What goes on beside the clients of all instances.
//!
//! | File | Owns |
//! |---|---|
//! | `balance` | how pages and threads are spread over nodes, looked at again and again |
//! | `migration` | moving the threads of instances from node to node |

pub(super) mod balance;
pub(super) mod migration;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow};

/// A thread that works until its owner stops it.
pub(super) struct Watch<'scope, T> {
    end: Sender<()>,
    thread: ScopedJoinHandle<'scope, T>,
}

/// Tells a thread when to end.
pub(super) struct WatchEnd(Receiver<()>);

impl<'scope, T: Send + 'scope> Watch<'scope, T> {
    /// Starts the thread.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        work: impl FnOnce(WatchEnd) -> T + Send + 'scope,
    ) -> Self {
        let (end, ended) = channel();
        Self { end, thread: scope.spawn(move || work(WatchEnd(ended))) }
    }

    /// Ends it; what it found.
    pub(super) fn end(self) -> Result<T> {
        drop(self.end);
        self.thread.join().map_err(|_| anyhow!("a watching thread panicked"))
    }
}

impl WatchEnd {
    /// Waits so long; whether the thread is to end.
    fn comes_within(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }
}
