//! Handles: random numbers by which a client names what the server keeps for it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::log_ins::LogInKey;
use crate::wire::ErrorFields;

/// The part of a handle that cannot be guessed.
pub(super) type Secret = [u8; 16];

/// What a client made over one connection, by the secrets of its handles.
pub(super) struct Handles<T> {
    connection: u64,
    /// What it is called in messages.
    kind: &'static str,
    most: usize,
    held: Mutex<HashMap<Secret, Held<T>>>,
}

struct Held<T> {
    /// Whose it is.
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

    /// Keeps something for a log-in; its handle. What lasts for some time only makes room for others of its kind.
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
        let message = format!("there are already {most} {kind} of this connection");
        ErrorFields::error("53400", message).hint(format!("end {kind} that are no longer needed"))
    }

    /// Keeps something under a secret that names something else of this log-in.
    pub(super) fn keep_as(&self, secret: Secret, of: LogInKey, value: T) {
        self.held.lock().insert(secret, Held { of, until: None, value });
    }

    /// What a log-in keeps under a secret, which it keeps no longer.
    pub(super) fn take(&self, of: &LogInKey, secret: &Secret) -> Option<T> {
        let mut held = self.held.lock();
        held.get(secret).filter(|it| it.of == *of)?;
        let taken = held.remove(secret)?;
        drop(held);
        taken.is_there(Instant::now()).then_some(taken.value)
    }

    /// Forgets what is kept under a secret.
    pub(super) fn forget(&self, secret: &Secret) {
        let forgotten = self.held.lock().remove(secret);
        drop(forgotten);
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.held.lock());
        drop(all);
    }
}

impl<T: Clone> Handles<T> {
    /// What a log-in keeps under a secret.
    pub(super) fn get(&self, of: &LogInKey, secret: &Secret) -> Option<T> {
        let (held, now) = (self.held.lock(), Instant::now());
        let found = held.get(secret).filter(|it| it.of == *of && it.is_there(now))?;
        Some(found.value.clone())
    }
}

/// The number of the connection in a handle, and its secret.
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
    fn a_handle_is_known_to_its_log_in_alone() {
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
    fn what_lasts_for_some_time_makes_room() {
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
