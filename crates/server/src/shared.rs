//! What all connections have in common, whatever they speak.

use std::sync::Arc;

use atoll_sql::{Database, Extensions, Session};
use parking_lot::RwLock;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::failures::Failures;
use crate::homes::Homes;
use crate::log::{LogLevel, Logs};
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::rules::{LoginAttempt, LoginMethod, LoginRules, login_method};
use crate::tls::Tls;
use crate::traces::Traces;
use crate::wire::ErrorFields;

/// What all connections have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) database: Database,
    pub(crate) options: ServerOptions,
    /// Connections that may still come.
    pub(crate) places: Arc<Semaphore>,
    /// Connections over TCP that may still come to log in.
    pub(crate) strangers: Arc<Semaphore>,
    /// Raised when sessions end where they wait for their clients.
    pub(crate) stopping: CancellationToken,
    pub(crate) failures: Failures,
    pub(crate) metrics: Metrics,
    /// Makes up salts of roles that do not exist.
    pub(crate) seed: [u8; 32],
    pub(crate) logs: Arc<Logs>,
    pub(crate) traces: Option<Traces>,
    /// What the protocols keep for all their connections.
    pub(crate) extensions: Extensions,
    pub(crate) homes: Homes,
    pub(crate) tls: RwLock<Option<Arc<Tls>>>,
    pub(crate) rules: RwLock<Option<Arc<LoginRules>>>,
}

impl Shared {
    /// What connections are encrypted with; none without TLS.
    pub(crate) fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.read().clone()
    }

    /// Who may try to log in, and how; none without rules.
    fn rules(&self) -> Option<Arc<LoginRules>> {
        self.rules.read().clone()
    }

    /// How a client has to prove who it is, or what it is told when it may not even try.
    pub(crate) fn login_method(
        &self,
        attempt: &LoginAttempt<'_>,
    ) -> Result<LoginMethod, ErrorFields> {
        let rules = self.rules();
        login_method(rules.as_deref(), self.options.trusts_all, &self.database, attempt)
    }

    /// Sets what the role of a session has it begin with. What cannot be set keeps no one out.
    pub(crate) fn begin_as_role(&self, session: &Session) {
        for error in session.begin_as_role() {
            let user = &session.identity().user;
            self.logs.say(LogLevel::Warning, format_args!("session of {user}: {}", error.message));
        }
    }
}
