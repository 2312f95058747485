//! The state that all connections share, whatever protocol they speak.

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

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) database: Database,
    pub(crate) options: ServerOptions,
    /// Permits for more connections.
    pub(crate) places: Arc<Semaphore>,
    /// Permits for more TCP connections that have not logged in.
    pub(crate) strangers: Arc<Semaphore>,
    /// Cancelled when idle sessions are to end.
    pub(crate) stopping: CancellationToken,
    pub(crate) failures: Failures,
    pub(crate) metrics: Metrics,
    /// The secret for salts of roles that do not exist.
    pub(crate) seed: [u8; 32],
    pub(crate) logs: Arc<Logs>,
    pub(crate) traces: Option<Traces>,
    /// State of the protocols.
    pub(crate) extensions: Extensions,
    pub(crate) homes: Homes,
    pub(crate) tls: RwLock<Option<Arc<Tls>>>,
    pub(crate) rules: RwLock<Option<Arc<LoginRules>>>,
}

impl Shared {
    /// The TLS settings; None without TLS.
    pub(crate) fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.read().clone()
    }

    /// The login rules; None if there are none.
    fn rules(&self) -> Option<Arc<LoginRules>> {
        self.rules.read().clone()
    }

    /// The login method for a client, or the error if a rule refuses it.
    pub(crate) fn login_method(
        &self,
        attempt: &LoginAttempt<'_>,
    ) -> Result<LoginMethod, ErrorFields> {
        let rules = self.rules();
        login_method(rules.as_deref(), self.options.trusts_all, &self.database, attempt)
    }

    /// Applies the settings of a session's role. A setting that cannot be applied does not prevent the log-in.
    pub(crate) fn begin_as_role(&self, session: &Session) {
        for error in session.begin_as_role() {
            let user = &session.identity().user;
            self.logs.say(LogLevel::Warning, format_args!("session of {user}: {}", error.message));
        }
    }
}
