//! Log-ins that failed, by the addresses that they came from: guessing takes time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Failures of an address before it is refused.
const FAILURES_MAX: u32 = 10;

/// How long failures count.
const COUNTED: Duration = Duration::from_secs(60);

/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 10_000;

/// Log-ins that failed, and those that are being tried.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<LoginSource, FailedLogins>>);

/// Where a log-in comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LoginSource {
    Address(IpAddr),
    /// A user of this machine, over a Unix socket.
    User(u32),
    Unknown,
}

#[derive(Debug)]
struct FailedLogins {
    count: u32,
    since: Instant,
}

impl Failures {
    /// Counts a log-in as failed until it succeeds; false where it is refused unseen.
    pub(crate) fn begin(&self, source: LoginSource) -> bool {
        let mut failures = self.0.lock();
        if failures.len() >= ADDRESSES_MAX && !failures.contains_key(&source) {
            failures.retain(|_, failed| failed.since.elapsed() < COUNTED);
            // So many at a time are one who has many addresses: all of them start anew, none is remembered for ever.
            if failures.len() >= ADDRESSES_MAX {
                failures.clear();
            }
        }
        let now = Instant::now();
        let failed = failures.entry(source).or_insert(FailedLogins { count: 0, since: now });
        if failed.since.elapsed() >= COUNTED {
            *failed = FailedLogins { count: 0, since: now };
        }
        let is_allowed = failed.count < FAILURES_MAX;
        failed.count += u32::from(is_allowed);
        is_allowed
    }

    /// Counts a log-in that was begun as one that did not fail. Others from there stay counted: with one
    /// password of their own, a client could guess those of others without end.
    pub(crate) fn succeeded(&self, source: LoginSource) {
        if let Some(failed) = self.0.lock().get_mut(&source) {
            failed.count = failed.count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_refused_after_many_failures_also_where_others_from_there_succeed() {
        let failures = Failures::default();
        let bad = LoginSource::Address(IpAddr::from([10, 0, 0, 1]));
        for _ in 0..FAILURES_MAX {
            assert!(failures.begin(bad));
            failures.succeeded(bad);
        }
        for _ in 1..FAILURES_MAX {
            assert!(failures.begin(bad));
        }
        assert!(failures.begin(bad));
        failures.succeeded(bad);
        assert!(failures.begin(bad));
        assert!(!failures.begin(bad));
        assert!(failures.begin(LoginSource::User(7)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let failures = Failures::default();
        for number in 0..3 * ADDRESSES_MAX as u32 {
            assert!(failures.begin(LoginSource::User(number)));
            assert!(failures.0.lock().len() <= ADDRESSES_MAX);
        }
    }
}
