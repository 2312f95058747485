//! Handles: random numbers that identify what the server keeps for a client.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::log_ins::LogInKey;
use crate::wire::ErrorFields;

/// The secret part of a handle.
pub(super) type Secret = [u8; 16];

/// A connection's objects of one kind, by the secrets of their handles.
pub(super) struct Handles<T> {
    connection: u64,
    /// The kind's name in messages.
    kind: &'static str,
    most: usize,
    held: Mutex<HashMap<Secret, Held<T>>>,
}

struct Held<T> {
    /// The log-in that owns it.
    of: LogInKey,
    until: Option<Instant>,
    value: T,
}

impl<T> Held<T> {
    fn is_there(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

impl<T> Handles<T> {
    pub(super) fn new(connection: u64, kind: &'static str, most: usize) -> Self {
        Self { connection, kind, most, held: Mutex::default() }
    }

    /// Stores an object for a log-in and returns its handle. Only objects that expire are evicted for new ones.
    pub(super) fn keep(
        &self,
        of: LogInKey,
        lasts: Option<Duration>,
        value: T,
    ) -> Result<Bytes, ErrorFields> {
        let mut secret = Secret::default();
        let random = getrandom::fill(&mut secret);
        random.map_err(|error| {
            ErrorFields::error("58000", format!("cannot generate random numbers: {error}"))
        })?;
        let now = Instant::now();
        let mut held = self.held.lock();
        if held.len() >= self.most {
            held.retain(|_, it| it.is_there(now));
        }
        if held.len() >= self.most {
            let first = held.iter().filter_map(|(secret, it)| Some((it.until?, *secret))).min();
            let Some((_, first)) = first else { return Err(self.full()) };
            held.remove(&first);
        }
        held.insert(secret, Held { of, until: lasts.map(|lasts| now + lasts), value });
        Ok([&self.connection.to_be_bytes()[..], &secret].concat().into())
    }

    fn full(&self) -> ErrorFields {
        let Self { kind, most, .. } = self;
        let message = format!("the connection already has {most} {kind}");
        ErrorFields::error("53400", message).hint(format!("end {kind} that are no longer needed"))
    }

    /// Stores an object under the secret of another object of this log-in.
    pub(super) fn keep_as(&self, secret: Secret, of: LogInKey, value: T) {
        self.held.lock().insert(secret, Held { of, until: None, value });
    }

    /// Removes and returns a log-in's object.
    pub(super) fn take(&self, of: &LogInKey, secret: &Secret) -> Option<T> {
        let mut held = self.held.lock();
        held.get(secret).filter(|it| it.of == *of)?;
        let taken = held.remove(secret)?;
        drop(held);
        taken.is_there(Instant::now()).then_some(taken.value)
    }

    /// Removes an object.
    pub(super) fn forget(&self, secret: &Secret) {
        let forgotten = self.held.lock().remove(secret);
        drop(forgotten);
    }

    /// Removes all objects.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.held.lock());
        drop(all);
    }
}

impl<T: Clone> Handles<T> {
    /// A log-in's object by its secret.
    pub(super) fn get(&self, of: &LogInKey, secret: &Secret) -> Option<T> {
        let (held, now) = (self.held.lock(), Instant::now());
        let found = held.get(secret).filter(|it| it.of == *of && it.is_there(now))?;
        Some(found.value.clone())
    }
}

/// The connection's number and the secret in a handle.
pub(super) fn parts(handle: &[u8]) -> Option<(u64, Secret)> {
    let (connection, secret) = handle.split_first_chunk()?;
    Some((u64::from_be_bytes(*connection), secret.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: LogInKey = [1; 32];
    const BOB: LogInKey = [2; 32];

    #[test]
    fn a_handle_works_for_its_log_in_only() {
        let handles = Handles::new(7, "tickets", 10);
        let handle = handles.keep(ANN, None, "x").expect("random numbers");
        let (connection, secret) = parts(&handle).expect("a handle");
        assert_eq!(connection, 7);
        assert_eq!(handles.get(&BOB, &secret), None);
        assert_eq!(handles.take(&BOB, &secret), None);
        assert_eq!(handles.get(&ANN, &secret), Some("x"));
        assert_eq!(handles.take(&ANN, &secret), Some("x"));
        assert_eq!(handles.take(&ANN, &secret), None);
        for wrong in [&b""[..], b"1234567", &handle[1..], &[0; 100]] {
            assert!(parts(wrong).is_none());
        }
    }

    #[test]
    fn handles_that_expire_are_evicted() {
        let (lasting, hour) =
            (Handles::new(0, "prepared statements", 2), Duration::from_secs(3600));
        let first = lasting.keep(ANN, Some(hour), 1).expect("room");
        lasting.keep(ANN, Some(2 * hour), 2).expect("room");
        lasting.keep(ANN, Some(2 * hour), 3).expect("the first made room");
        let (_, first) = parts(&first).expect("a handle");
        assert_eq!(lasting.get(&ANN, &first), None);
        let kept = Handles::new(0, "prepared statements", 1);
        kept.keep(ANN, None, 1).expect("room");
        assert_eq!(kept.keep(ANN, None, 2).expect_err("it is full").state, "53400");
        let expired = Handles::new(0, "tickets", 1);
        let handle = expired.keep(ANN, Some(Duration::ZERO), 1).expect("room");
        assert_eq!(expired.take(&ANN, &parts(&handle).expect("a handle").1), None);
    }
}
