//! Who is logged in at the console.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use atoll_sql::ScramVerifier;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// How long a log-in lasts.
pub(super) const LASTS: Duration = Duration::from_secs(12 * 60 * 60);

/// Log-ins at the same time; the one that ends first makes room.
const LOG_INS_MAX: usize = 1000;

/// Log-ins, by the hashes of their tokens: how long a search takes tells nothing of a token.
#[derive(Debug, Default)]
pub(super) struct LogIns(Mutex<HashMap<[u8; 32], LogIn>>);

/// A log-in.
#[derive(Clone, Debug)]
pub(super) struct LogIn {
    pub(super) user: String,
    /// What checked the password: once that is another, the log-in has ended.
    pub(super) verifier: ScramVerifier,
    until: Instant,
}

/// There are no random numbers.
#[derive(Debug)]
pub(super) struct NotRandom(String);

impl fmt::Display for NotRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no random numbers: {}", self.0)
    }
}

impl LogIns {
    /// A role has logged in; the token by which its requests are known.
    pub(super) fn enter(&self, user: &str, verifier: ScramVerifier) -> Result<String, NotRandom> {
        let mut random = [0_u8; 32];
        getrandom::fill(&mut random).map_err(|error| NotRandom(error.to_string()))?;
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let until = Instant::now() + LASTS;
        let mut all = self.0.lock();
        if all.len() >= LOG_INS_MAX {
            all.retain(|_, log_in| log_in.until > Instant::now());
        }
        if all.len() >= LOG_INS_MAX {
            let first = all.iter().min_by_key(|(_, log_in)| log_in.until).map(|(key, _)| *key);
            first.and_then(|first| all.remove(&first));
        }
        all.insert(key(&token), LogIn { user: user.to_owned(), verifier, until });
        Ok(token)
    }

    /// The log-in of a token, while it lasts.
    pub(super) fn find(&self, token: &str) -> Option<LogIn> {
        let found = self.0.lock().get(&key(token)).cloned();
        found.filter(|log_in| log_in.until > Instant::now())
    }

    /// It ends; which one it was.
    pub(super) fn leave(&self, token: &str) -> Option<LogIn> {
        self.0.lock().remove(&key(token))
    }
}

fn key(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verifier() -> ScramVerifier {
        ScramVerifier { salt: Vec::new(), iterations: 1, stored_key: [0; 32], server_key: [0; 32] }
    }

    #[test]
    fn a_token_is_known_until_its_log_in_ends() {
        let log_ins = LogIns::default();
        let token = log_ins.enter("ann", verifier()).expect("random numbers");
        assert_eq!(token.len(), 64);
        assert_eq!(log_ins.find(&token).expect("it lasts").user, "ann");
        assert!(log_ins.find(&token[1..]).is_none());
        assert_eq!(log_ins.leave(&token).expect("it lasts").user, "ann");
        assert!(log_ins.find(&token).is_none());
    }

    #[test]
    fn log_ins_are_bounded() {
        let log_ins = LogIns::default();
        let first = log_ins.enter("ann", verifier()).expect("random numbers");
        for _ in 0..LOG_INS_MAX {
            log_ins.enter("bob", verifier()).expect("random numbers");
        }
        assert!(log_ins.find(&first).is_none());
        assert_eq!(log_ins.0.lock().len(), LOG_INS_MAX);
    }
}
