//! Token-based log-ins, for the console and Flight SQL.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_sql::ScramVerifier;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::connection::{check_password, refused_unseen, verifier_of, wrong_password};
use crate::failures::LoginSource;
use crate::log::{AuditEvent, AuditedClient, LogLevel};
use crate::rules::{ClientOrigin, LoginAttempt, LoginMethod};
use crate::shared::Shared;
use crate::wire::ErrorFields;

/// The role of clients that give no name when no password is required: the owner of the process.
pub(crate) const OWNER: &str = "atoll";

/// Bytes of a name or password, at most.
pub(crate) const NAME_MAX: usize = 1024;

/// How long a log-in lasts.
pub(crate) const LASTS: Duration = Duration::from_secs(12 * 60 * 60);

/// Log-ins at the same time; a new one replaces the least recently used.
const LOG_INS_MAX: usize = 1000;

/// A token's hash, so that the time of a lookup reveals nothing about the token.
pub(crate) type LogInKey = [u8; 32];

/// Log-ins by their tokens' hashes.
#[derive(Debug, Default)]
pub(crate) struct LogIns(Mutex<HashMap<LogInKey, LogIn>>);

/// A log-in.
#[derive(Clone, Debug)]
pub(crate) struct LogIn {
    pub(crate) key: LogInKey,
    pub(crate) user: String,
    /// The verifier that checked the password: when the role's changes, the log-in ends. None if no password was
    /// required.
    verifier: Option<ScramVerifier>,
    until: Instant,
    used: Instant,
}

/// A client that logs in by name and password and gets a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenClient<'a> {
    pub(crate) role: &'a str,
    pub(crate) address: SocketAddr,
    pub(crate) is_encrypted: bool,
    /// The protocol's name in the audit log.
    pub(crate) over: &'a str,
    /// The client's application name.
    pub(crate) application: &'a str,
}

/// A refused log-in, and the error for its client.
#[derive(Debug)]
pub(crate) struct RefusedLogIn {
    pub(crate) kind: RefusalKind,
    pub(crate) error: ErrorFields,
}

/// Why a log-in is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// Too many clients are logging in, or the kernel returns no random numbers.
    Server,
    /// The login rules refuse it.
    Rule,
    /// Too many log-ins from this address have failed.
    Unseen,
    /// The name or password is wrong.
    Wrong,
}

impl TokenClient<'_> {
    /// The login method for the client.
    pub(crate) fn method(&self, server: &Shared) -> Result<LoginMethod, ErrorFields> {
        let from = ClientOrigin::Address(self.address.ip());
        let (role, is_encrypted) = (self.role, self.is_encrypted);
        server.login_method(&LoginAttempt { role, from, is_encrypted })
    }

    /// Logs in; returns the token for later requests.
    pub(crate) async fn log_in(
        &self,
        server: &Arc<Shared>,
        log_ins: &LogIns,
        password: String,
    ) -> Result<String, RefusedLogIn> {
        let refused = |kind| move |error| RefusedLogIn { kind, error };
        let busy = |_| ErrorFields::fatal("53300", "too many clients are logging in");
        let stranger = server.strangers.try_acquire().map_err(busy);
        let _stranger = stranger.map_err(refused(RefusalKind::Server))?;
        let proved = self.prove(server, password).await;
        let verifier = proved.inspect_err(|refused| self.tell_refused(server, &refused.error))?;
        let token = log_ins.enter(self.role, verifier);
        let token = token.map_err(refused(RefusalKind::Server))?;
        self.audit(
            server,
            &AuditEvent::LogIn {
                over: self.over,
                is_encrypted: self.is_encrypted,
                application: self.application,
            },
        );
        Ok(token)
    }

    /// Returns the verifier that checked the password; None if no password is required.
    async fn prove(
        &self,
        server: &Arc<Shared>,
        password: String,
    ) -> Result<Option<ScramVerifier>, RefusedLogIn> {
        let refused = |kind| move |error| RefusedLogIn { kind, error };
        if self.method(server).map_err(refused(RefusalKind::Rule))? == LoginMethod::Trust {
            return Ok(None);
        }
        let source = LoginSource::Address(self.address.ip());
        let unseen = || refused(RefusalKind::Unseen)(refused_unseen());
        let tried = server.failures.begin(source).await.ok_or_else(unseen)?;
        let (checking, role) = (Arc::clone(server), self.role.to_owned());
        // Hashing is slow on purpose; other requests go on meanwhile.
        let checked = move || check_password(&checking, &role, &password);
        match tokio::task::spawn_blocking(checked).await.ok().flatten() {
            Some(verifier) => {
                tried.did_not_fail();
                Ok(Some(verifier))
            }
            None => Err(refused(RefusalKind::Wrong)(wrong_password(self.role))),
        }
    }

    /// Counts and logs a refused log-in.
    fn tell_refused(&self, server: &Shared, error: &ErrorFields) {
        server.metrics.login_failed();
        let (over, is_encrypted) = (self.over, self.is_encrypted);
        let (state, reason) = (error.state, error.message.as_str());
        self.audit(server, &AuditEvent::Refused { over, is_encrypted, state, reason });
        let address = self.address;
        let told = format_args!("log-in refused over {over}, from {address}: {reason}");
        server.logs.say(LogLevel::Info, told);
    }

    /// Writes an event to the audit log.
    pub(crate) fn audit(&self, server: &Shared, event: &AuditEvent<'_>) {
        let address = self.address.to_string();
        server
            .logs
            .audit(&AuditedClient { role: self.role, address: &address, session: None }, event);
    }
}

impl LogIns {
    /// Adds a log-in for a role; returns the token for later requests.
    fn enter(&self, user: &str, verifier: Option<ScramVerifier>) -> Result<String, ErrorFields> {
        let mut random = [0_u8; 32];
        let filled = getrandom::fill(&mut random);
        filled.map_err(|error| {
            ErrorFields::error("58000", format!("cannot generate random numbers: {error}"))
        })?;
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let (key, now) = (key(&token), Instant::now());
        let mut all = self.0.lock();
        if all.len() >= LOG_INS_MAX {
            all.retain(|_, log_in| log_in.until > now);
        }
        if all.len() >= LOG_INS_MAX {
            let oldest = all.iter().min_by_key(|(_, log_in)| log_in.used).map(|(key, _)| *key);
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        let user = user.to_owned();
        all.insert(key, LogIn { key, user, verifier, until: now + LASTS, used: now });
        Ok(token)
    }

    /// The log-in of a token while it is valid, and whether it has all rights. A log-in ends if its role was dropped,
    /// has another password, or may no longer connect from there.
    pub(crate) fn current(
        &self,
        server: &Shared,
        token: &str,
        method: impl FnOnce(&str) -> Result<LoginMethod, ErrorFields>,
    ) -> Option<(LogIn, bool)> {
        let log_in = self.find(token)?;
        let is_trusted = method(&log_in.user).ok()? == LoginMethod::Trust;
        let is_current = match &log_in.verifier {
            Some(verifier) => verifier_of(server, &log_in.user).as_ref() == Some(verifier),
            None => is_trusted,
        };
        is_current.then_some((log_in, is_trusted))
    }

    fn find(&self, token: &str) -> Option<LogIn> {
        let (mut all, now) = (self.0.lock(), Instant::now());
        let found = all.get_mut(&key(token)).filter(|log_in| log_in.until > now)?;
        found.used = now;
        Some(found.clone())
    }

    /// Removes a log-in and returns it.
    pub(crate) fn leave(&self, token: &str) -> Option<LogIn> {
        self.0.lock().remove(&key(token))
    }
}

fn key(token: &str) -> LogInKey {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_until_its_log_in_ends() {
        let log_ins = LogIns::default();
        let token = log_ins.enter("ann", None).expect("random numbers");
        assert_eq!(token.len(), 64);
        assert_eq!(log_ins.find(&token).expect("it lasts").user, "ann");
        assert!(log_ins.find(&token[1..]).is_none());
        assert!(log_ins.leave(&token).is_some());
        assert!(log_ins.find(&token).is_none());
    }

    #[test]
    fn log_ins_are_bounded_and_those_in_use_stay() {
        let log_ins = LogIns::default();
        let first = log_ins.enter("ann", None).expect("random numbers");
        let used = log_ins.enter("eve", None).expect("random numbers");
        for _ in 0..LOG_INS_MAX {
            log_ins.enter("bob", None).expect("random numbers");
            assert!(log_ins.find(&used).is_some());
        }
        assert!(log_ins.find(&first).is_none());
        assert_eq!(log_ins.0.lock().len(), LOG_INS_MAX);
    }
}
