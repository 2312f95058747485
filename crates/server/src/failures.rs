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

/// Log-ins that failed. Those over Unix sockets have the address none.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<Option<IpAddr>, FailedLogins>>);

#[derive(Debug)]
struct FailedLogins {
    count: u32,
    since: Instant,
}

impl Failures {
    /// Whether log-ins of an address are refused unseen.
    pub(crate) fn is_refused(&self, address: Option<IpAddr>) -> bool {
        let failures = self.0.lock();
        failures
            .get(&address)
            .is_some_and(|failed| failed.count >= FAILURES_MAX && failed.since.elapsed() < COUNTED)
    }

    /// Counts one more.
    pub(crate) fn count(&self, address: Option<IpAddr>) {
        let mut failures = self.0.lock();
        if failures.len() >= ADDRESSES_MAX {
            failures.retain(|_, failed| failed.since.elapsed() < COUNTED);
        }
        let now = Instant::now();
        let failed = failures.entry(address).or_insert(FailedLogins { count: 0, since: now });
        if failed.since.elapsed() >= COUNTED {
            *failed = FailedLogins { count: 0, since: now };
        }
        failed.count += 1;
    }

    /// Forgets those of an address, since someone has logged in from it.
    pub(crate) fn forget(&self, address: Option<IpAddr>) {
        self.0.lock().remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_refused_after_many_failures_until_one_succeeds() {
        let failures = Failures::default();
        let (bad, good) = (Some(IpAddr::from([10, 0, 0, 1])), Some(IpAddr::from([10, 0, 0, 2])));
        for _ in 0..FAILURES_MAX {
            assert!(!failures.is_refused(bad));
            failures.count(bad);
        }
        assert!(failures.is_refused(bad));
        assert!(!failures.is_refused(good));
        failures.forget(bad);
        assert!(!failures.is_refused(bad));
    }
}
