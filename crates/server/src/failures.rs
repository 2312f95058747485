//! Log-ins that failed, by the addresses that they came from: guessing takes time.

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

/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 10_000;

/// Log-ins that failed, and those that are being tried.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<LoginSource, Tries>>);

/// Where a log-in comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LoginSource {
    Address(IpAddr),
    /// A user of this machine, over a Unix socket.
    User(u32),
    Unknown,
}

/// What a source may still try.
#[derive(Clone, Debug)]
struct Tries {
    /// A permit for each log-in that may fail; closed once none is left.
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

/// A log-in that is being tried. It counts as failed unless it is told that it did not.
#[derive(Debug)]
pub(crate) struct TriedLogin {
    tries: Tries,
    permit: Option<OwnedSemaphorePermit>,
}

impl TriedLogin {
    /// No wrong password was tried. Others from there stay counted: with one password of their own, a client
    /// could guess those of others without end.
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
    /// Begins a log-in; none where too many have failed. No more are tried at the same time than may fail, so that
    /// many guesses at once are not more guesses; the others wait, since a pool opens many connections at once.
    pub(crate) async fn begin(&self, source: LoginSource) -> Option<TriedLogin> {
        let tries = self.tries(source);
        let permit = Arc::clone(&tries.left).acquire_owned().await.ok()?;
        Some(TriedLogin { tries, permit: Some(permit) })
    }

    fn tries(&self, source: LoginSource) -> Tries {
        let mut all = self.0.lock();
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&source) {
            all.retain(|_, tries| tries.since.elapsed() < COUNTED);
            // So many at a time are one who has many addresses: all of them start anew, none is remembered for ever.
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

    /// What a log-in that begins is told at once.
    fn begun(failures: &Failures, source: LoginSource) -> Option<Option<TriedLogin>> {
        failures.begin(source).now_or_never()
    }

    /// A log-in that may be tried.
    fn tried(failures: &Failures, source: LoginSource) -> TriedLogin {
        begun(failures, source).expect("it need not wait").expect("it is not refused")
    }

    const BAD: LoginSource = LoginSource::Address(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)));

    #[test]
    fn a_source_is_refused_after_many_failures_also_where_others_from_there_succeed() {
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
    fn many_at_the_same_time_wait_and_are_not_refused() {
        let failures = Failures::default();
        let mut trying: Vec<_> = (0..FAILURES_MAX).map(|_| tried(&failures, BAD)).collect();
        assert!(begun(&failures, BAD).is_none());
        let mut waiting = Box::pin(failures.begin(BAD));
        assert!(waiting.as_mut().now_or_never().is_none());
        trying.pop().expect("one").did_not_fail();
        let last = waiting.now_or_never().expect("its turn").expect("it is not refused");
        // Those that fail leave no place to one that waits.
        let mut waiting = Box::pin(failures.begin(BAD));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop((trying, last));
        assert!(waiting.now_or_never().expect("the last one has failed").is_none());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let failures = Failures::default();
        for number in 0..3 * ADDRESSES_MAX as u32 {
            drop(tried(&failures, LoginSource::User(number)));
            assert!(failures.0.lock().len() <= ADDRESSES_MAX);
        }
    }
}
