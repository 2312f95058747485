//! Clients' sessions and their running statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use atoll_sql::Session;
use atoll_sql::activity::{ActiveSession, ClientInfo, Interrupt};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::login::Caller;
use super::watch::{watch_session, watch_transaction};
use crate::connection::{canceled, timed_out, until};
use crate::log::{AuditEvent, AuditedClient, LogLevel, SlowStatement};
use crate::shared::Shared;
use crate::wire::ErrorFields;

/// A client's session, or one of its transactions.
pub(super) struct FlightSession {
    pub(super) engine: Session,
    pub(super) active: Arc<ActiveSession>,
    client: ClientInfo,
    work: watch::Sender<SessionWork>,
    /// Cancelled when it has ended: with its connection, by an administrator, or with its transaction.
    pub(super) ended: CancellationToken,
    server: Arc<Shared>,
}

/// A session's activity.
#[derive(Clone, Copy, Debug)]
struct SessionWork {
    /// The number of running statements.
    running: usize,
    /// Whether one of them is listed under the session's own number; the others get their own entries.
    has_first: bool,
    /// When the last statement ended.
    since: Instant,
}

impl FlightSession {
    /// The session of a log-in over a connection.
    pub(super) fn open(server: &Arc<Shared>, caller: &Caller) -> Result<Arc<Self>, ErrorFields> {
        let client = ClientInfo {
            user: caller.user.to_string(),
            address: caller.connection.address.to_string(),
            application: caller.agent.clone(),
        };
        let active = enter(server, &client)?;
        let engine = server.database.session_of(caller.identity(active.number()));
        let engine =
            engine.map_err(|error| ErrorFields::error("58000", error.message().into_owned()))?;
        engine.refuse_listen();
        engine.set_connections_max(server.options.connections_max);
        server.begin_as_role(&engine);
        // Any text is a valid application name.
        let _ = engine.set_parameter("application_name", &client.application);
        if caller.is_anyone() {
            // Other log-ins were already logged.
            let (is_encrypted, application) = (caller.connection.is_encrypted, &*caller.agent);
            let over = caller.client().over;
            let event = AuditEvent::LogIn { over, is_encrypted, application };
            caller.client().audit(server, &event);
        }
        let ended = caller.connection.ended.child_token();
        let session = Arc::new(Self::new(server, engine, active, client, ended));
        tokio::spawn(watch_session(Arc::clone(&session), caller.clone()));
        Ok(session)
    }

    /// A session for a transaction, next to the client's others.
    pub(super) fn transaction(&self) -> Result<Arc<Self>, ErrorFields> {
        let active = enter(&self.server, &self.client)?;
        let engine = self.engine.with_own_transaction().watched_as(active.number());
        let ended = self.ended.child_token();
        let session = Self::new(&self.server, engine, active, self.client.clone(), ended);
        Ok(Arc::new(session))
    }

    fn new(
        server: &Arc<Shared>,
        engine: Session,
        active: ActiveSession,
        client: ClientInfo,
        ended: CancellationToken,
    ) -> Self {
        let work = SessionWork { running: 0, has_first: false, since: Instant::now() };
        let (active, work) = (Arc::new(active), watch::Sender::new(work));
        Self { engine, active, client, work, ended, server: Arc::clone(server) }
    }

    /// Ends a transaction that is idle for too long or has to end; stops when the transaction is over.
    pub(super) fn watch_transaction(
        self: &Arc<Self>,
        over: CancellationToken,
        forget: impl FnOnce() + Send + 'static,
    ) {
        tokio::spawn(watch_transaction(Arc::clone(self), over, forget));
    }

    /// Begins a statement.
    pub(super) fn begin(self: &Arc<Self>, sql: &str) -> Result<RunningStatement, ErrorFields> {
        if self.ended.is_cancelled() {
            return Err(terminated());
        }
        let mut is_first = false;
        self.work.send_modify(|work| {
            is_first = !std::mem::replace(&mut work.has_first, true);
            work.running += 1;
        });
        let active = match is_first {
            true => Arc::clone(&self.active),
            false => {
                let (activity, secret) = (self.server.database.activity(), self.active.secret());
                Arc::new(activity.enter(self.client.clone(), secret))
            }
        };
        active.begin(sql);
        let begun = Instant::now();
        let deadline = self.engine.statement_timeout().map(|timeout| begun + timeout);
        let text = self.server.logs.has_audit().then(|| sql.into());
        let text = text.or_else(|| self.server.logs.slow_text(sql));
        Ok(RunningStatement {
            session: Arc::clone(self),
            active,
            is_first,
            begun,
            deadline,
            text,
            rows: Arc::default(),
            cancelled: CancellationToken::new(),
            is_ended: false,
        })
    }

    /// Writes an event to the audit log.
    pub(super) fn audit(&self, event: &AuditEvent<'_>) {
        self.server.logs.audit(&self.audited(), event);
    }

    /// Writes a statement to the audit log if its class is audited.
    pub(super) fn audit_statement(&self, sql: &str, error: Option<&str>) {
        self.server.logs.audit_statement(&self.audited(), sql, error);
    }

    fn audited(&self) -> AuditedClient<'_> {
        let ClientInfo { user, address, .. } = &self.client;
        AuditedClient { role: user, address, session: Some(self.active.number()) }
    }

    /// Waits until the session has been idle for as long as a transaction may be.
    pub(super) async fn idle_too_long(&self) {
        let mut work = self.work.subscribe();
        loop {
            let SessionWork { running, since, .. } = *work.borrow_and_update();
            let limit = self.engine.idle_in_transaction_timeout().filter(|_| running == 0);
            let deadline = limit.map(|limit: Duration| since + limit);
            tokio::select! {
                () = until(deadline) => return,
                // The sender belongs to this session.
                _ = work.changed() => {}
            }
        }
    }
}

/// An entry in the list of sessions.
fn enter(server: &Shared, client: &ClientInfo) -> Result<ActiveSession, ErrorFields> {
    let secret = getrandom::u32();
    let secret = secret.map_err(|error| ErrorFields::error("58000", error.to_string()))?;
    Ok(server.database.activity().enter(client.clone(), secret))
}

/// A running statement. Dropping it before its end counts as cancelling it.
pub(super) struct RunningStatement {
    pub(super) session: Arc<FlightSession>,
    active: Arc<ActiveSession>,
    is_first: bool,
    begun: Instant,
    deadline: Option<Instant>,
    /// The statement's text, for the logs.
    text: Option<Box<str>>,
    /// Rows that it returned or changed.
    pub(super) rows: Arc<AtomicU64>,
    /// Cancelled when its client no longer wants it.
    pub(super) cancelled: CancellationToken,
    is_ended: bool,
}

impl RunningStatement {
    /// Runs the statement's work until it is cancelled, times out, or its session ends.
    pub(super) async fn unless_ended<T>(
        &self,
        work: impl Future<Output = Result<T, ErrorFields>>,
    ) -> Result<T, ErrorFields> {
        tokio::select! {
            biased;
            done = work => done,
            interrupt = self.active.interrupted() => Err(match interrupt {
                Interrupt::Cancel => canceled(),
                Interrupt::Terminate => terminated(),
            }),
            () = self.cancelled.cancelled() => Err(canceled()),
            () = until(self.deadline) => Err(timed_out()),
            () = self.session.ended.cancelled() => Err(terminated()),
        }
    }

    /// Runs the statement to completion. A failure fails its transaction.
    pub(super) async fn finish<T>(
        self,
        work: impl Future<Output = Result<T, ErrorFields>>,
    ) -> Result<T, ErrorFields> {
        let done = self.unless_ended(work).await;
        self.end(done.as_ref().err());
        done
    }

    /// Ends the statement, with its error if it failed.
    pub(super) fn end(mut self, error: Option<&ErrorFields>) {
        if error.is_some() {
            self.session.engine.fail_transaction();
        }
        self.close(error.map(|error| error.state), true);
    }

    /// Ends a statement that was only planned, for a client that is about to run it.
    pub(super) fn planned(mut self) {
        self.close(None, false);
    }

    fn close(&mut self, state: Option<&'static str>, is_counted: bool) {
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        if is_counted {
            self.active.end(state);
            self.tell(state);
        } else {
            self.active.prepared();
        }
        self.session.work.send_modify(|work| {
            work.has_first &= !self.is_first;
            work.running = work.running.saturating_sub(1);
            work.since = Instant::now();
        });
    }
}

impl RunningStatement {
    /// Counts and logs the statement.
    fn tell(&self, error: Option<&str>) {
        let (took, server) = (self.begun.elapsed(), &self.session.server);
        server.metrics.ended(took, error);
        if let Some(state) = error {
            let number = self.active.number();
            let told = format_args!("session {number}: a statement failed with {state}");
            server.logs.say(LogLevel::Debug, told);
        }
        if let Some(statement) = &self.text {
            let rows = self.rows.load(Ordering::Relaxed);
            server.logs.slow(&self.active, &SlowStatement { took, rows, error, statement });
            self.session.audit_statement(statement, error);
        }
    }
}

impl Drop for RunningStatement {
    fn drop(&mut self) {
        self.close(Some(canceled().state), true);
    }
}

/// The error of a session that an administrator or its connection ended.
fn terminated() -> ErrorFields {
    ErrorFields::error("57P01", "the session was ended by an administrator or with its connection")
}
