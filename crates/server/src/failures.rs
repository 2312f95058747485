//! Failed log-ins by address, to slow down password guessing.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Failures of an address before it is refused.
const FAILURES_MAX: usize = 10;

/// How long failures count.
const COUNTED: Duration = Duration::from_secs(60);

/// Addresses that are remembered, at most.
const ADDRESSES_MAX: usize = 10_000;

/// Failed log-ins, and those in progress.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<LoginSource, Tries>>);

/// The origin of a log-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LoginSource {
    Address(IpAddr),
    /// A user of this machine, over the Unix socket.
    User(u32),
    Unknown,
}

/// The attempts that a source has left.
#[derive(Clone, Debug)]
struct Tries {
    /// One permit per log-in that may still fail; closed once none is left.
    left: Arc<Semaphore>,
    failed: Arc<AtomicUsize>,
    since: Instant,
}

impl Default for Tries {
    fn default() -> Self {
        let left = Arc::new(Semaphore::new(FAILURES_MAX));
        Self { left, failed: Arc::default(), since: Instant::now() }
    }
}

/// A log-in in progress. It counts as failed unless it is marked otherwise.
#[derive(Debug)]
pub(crate) struct TriedLogin {
    tries: Tries,
    permit: Option<OwnedSemaphorePermit>,
}

impl TriedLogin {
    /// Marks that no wrong password was tried. Earlier failures stay counted: otherwise a client could guess others'
    /// passwords forever by logging in with its own in between.
    pub(crate) fn did_not_fail(mut self) {
        self.permit = None;
    }
}

impl Drop for TriedLogin {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        permit.forget();
        if self.tries.failed.fetch_add(1, Ordering::Relaxed) + 1 == FAILURES_MAX {
            self.tries.left.close();
        }
    }
}

impl Failures {
    /// Begins a log-in; None if too many have failed. Concurrent attempts are limited to the failures that are left, so
    /// that parallel guesses gain nothing; the others wait, since a pool opens many connections at once.
    pub(crate) async fn begin(&self, source: LoginSource) -> Option<TriedLogin> {
        let tries = self.tries(source);
        let permit = Arc::clone(&tries.left).acquire_owned().await.ok()?;
        Some(TriedLogin { tries, permit: Some(permit) })
    }

    fn tries(&self, source: LoginSource) -> Tries {
        let mut all = self.0.lock();
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&source) {
            all.retain(|_, tries| tries.since.elapsed() < COUNTED);
            // So many addresses at a time belong to one attacker: the table is cleared, and stays bounded.
            if all.len() >= ADDRESSES_MAX {
                all.clear();
            }
        }
        let tries = all.entry(source).or_default();
        if tries.since.elapsed() >= COUNTED {
            *tries = Tries::default();
        }
        tries.clone()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// The immediate result of beginning a log-in.
    fn begun(failures: &Failures, source: LoginSource) -> Option<Option<TriedLogin>> {
        failures.begin(source).now_or_never()
    }

    /// A log-in that may proceed.
    fn tried(failures: &Failures, source: LoginSource) -> TriedLogin {
        begun(failures, source).expect("it need not wait").expect("it is not refused")
    }

    const BAD: LoginSource = LoginSource::Address(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)));

    #[test]
    fn a_source_is_refused_after_many_failures_even_if_others_there_succeed() {
        let failures = Failures::default();
        for _ in 0..2 * FAILURES_MAX {
            tried(&failures, BAD).did_not_fail();
        }
        for _ in 1..FAILURES_MAX {
            drop(tried(&failures, BAD));
        }
        tried(&failures, BAD).did_not_fail();
        drop(tried(&failures, BAD));
        assert!(begun(&failures, BAD).expect("it need not wait").is_none());
        drop(tried(&failures, LoginSource::User(7)));
    }

    #[test]
    fn concurrent_attempts_wait_and_are_not_refused() {
        let failures = Failures::default();
        let mut trying: Vec<_> = (0..FAILURES_MAX).map(|_| tried(&failures, BAD)).collect();
        assert!(begun(&failures, BAD).is_none());
        let mut waiting = Box::pin(failures.begin(BAD));
        assert!(waiting.as_mut().now_or_never().is_none());
        trying.pop().expect("one").did_not_fail();
        let last = waiting.now_or_never().expect("its turn").expect("it is not refused");
        // A failed log-in does not free its permit for a waiting one.
        let mut waiting = Box::pin(failures.begin(BAD));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop((trying, last));
        assert!(waiting.now_or_never().expect("the last one has failed").is_none());
    }

    #[test]
    fn remembered_addresses_are_bounded() {
        let failures = Failures::default();
        for number in 0..3 * ADDRESSES_MAX as u32 {
            drop(tried(&failures, LoginSource::User(number)));
            assert!(failures.0.lock().len() <= ADDRESSES_MAX);
        }
    }
}
