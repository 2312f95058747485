//! A connection: its log-in, then its statements until it ends.
//!
//! ```text
//! startup ──▶ message ──▶ simple:   Query ─────────────────────────▶ rows, tag, ready
//!                │        extended: Parse, Bind, Execute, …, Sync ─▶ rows, tag, …, ready
//!                │        copy:     CopyData, …, CopyDone
//!                ◀── ready ──┘
//! ```
//!
//! One task reads and writes. While a statement runs it keeps reading, so it notices when the client disconnects and
//! cancels the statement by dropping its result. Results are sent batch by batch before the next batch is read, so a
//! slow client slows its query down and takes no memory.

mod client;
mod copy;
mod cursor;
mod cursor_statement;
mod extended;
mod failure;
mod login;
mod portal;
mod simple;
mod startup;
mod statement;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_sql::{Session, TransactionState, begins_with};
use atoll_topology::NodeId;
use tokio::time::Instant;

use crate::log::{AuditEvent, AuditedClient, LogLevel, SlowStatement};
use crate::shared::Shared;
use crate::wire::FrontendMessage;
use atoll_sql::TextEncoding;
use client::{Channel, Client};
pub(crate) use client::{canceled, rows_of_tag, timed_out, until};
use failure::{End, Failure};
pub(crate) use login::{check_password, refused_unseen, verifier_of, wrong_password};
use portal::{Portal, Prepared};
use startup::Begun;
pub(crate) use statement::Control;
pub(crate) use stream::{ClientStream, prepare};

/// A connection whose client has logged in.
struct Connection {
    client: Client,
    session: Session,
    server: Arc<Shared>,
    /// The start of the statement.
    begun: Instant,
    /// The running statement's text, if slow statements are logged.
    running: Option<Box<str>>,
    prepared: HashMap<String, Arc<Prepared>>,
    portals: HashMap<String, Portal>,
    /// Whether the open transaction is implicit, begun for a group of statements: it ends with the group.
    is_implicit: bool,
    /// Whether a node's threads serve it.
    is_at_home: bool,
    /// Whether the client was told that the server is ready, and has sent nothing since.
    is_ready: bool,
    /// Whether messages are skipped until the next Sync, because an earlier one failed.
    is_skipping: bool,
}

/// Serves a connection until it ends.
pub(crate) async fn serve(stream: ClientStream, server: Arc<Shared>) {
    server.metrics.connected();
    let mut channel = Channel::new(stream);
    let begun = tokio::select! {
        begun = Box::pin(startup::begin(&mut channel, &server)) => begun,
        () = tokio::time::sleep(server.options.login_timeout) => Err(End::Gone),
    };
    let end = match begun {
        Ok(None) => return,
        Ok(Some(Begun { session, active, place: _place })) => {
            let stopping = server.stopping.clone();
            let client = Client::new(channel, active, stopping);
            let logged_in = Instant::now();
            let mut connection = Box::new(Connection {
                client,
                session,
                server,
                begun: Instant::now(),
                running: None,
                prepared: HashMap::new(),
                portals: HashMap::new(),
                is_implicit: false,
                is_at_home: false,
                is_ready: true,
                is_skipping: false,
            });
            let end = loop {
                let Some((same, end)) = connection.converse_at_home().await else { return };
                connection = same;
                if let Some(end) = end {
                    break end;
                }
            };
            connection.log_out(&end, logged_in.elapsed());
            channel = connection.client.channel;
            end
        }
        Err(end) => end,
    };
    if let End::Told(error) = end {
        channel.output.error(&error);
        // The client may be gone.
        let _ = channel.send().await;
    }
}

impl Connection {
    /// Serves the session on the threads of its home. Returns how the connection ended, or None if it moves to other
    /// threads; the outer None means a panic.
    async fn converse_at_home(mut self: Box<Self>) -> Option<(Box<Self>, Option<End>)> {
        let home = self.session.home();
        match self.server.homes.threads(&self.server.database, home) {
            None => {
                if self.is_at_home && self.adopt(false).is_err() {
                    return Some((self, Some(End::Gone)));
                }
                let end = self.converse(home, None).await;
                Some((self, end))
            }
            Some(threads) => {
                let threads = Arc::new(threads);
                let here = Arc::clone(&threads);
                let conversing = async move {
                    if self.adopt(true).is_err() {
                        return (self, Some(End::Gone));
                    }
                    let end = self.converse(home, here.node_here()).await;
                    (self, end)
                };
                threads.run(conversing).await
            }
        }
    }

    fn adopt(&mut self, is_at_home: bool) -> std::io::Result<()> {
        self.is_at_home = is_at_home;
        self.client.channel.stream.adopt()
    }

    /// Handles messages until the connection ends, or until the session's home differs from `node`, whose threads run
    /// this.
    async fn converse(&mut self, home: Option<NodeId>, node: Option<NodeId>) -> Option<End> {
        self.client.active.watch().set_node(node);
        loop {
            if self.session.home() != home {
                return None;
            }
            let is_busy = self.session.transaction_state() != TransactionState::Idle;
            let idle = is_busy.then(|| self.session.idle_in_transaction_timeout()).flatten();
            let idle_until = idle.map(|idle| Instant::now() + idle);
            let listening = (self.is_ready && !is_busy).then_some(&self.session);
            let message = match self.client.message(idle_until, listening).await {
                Ok(message) => message,
                Err(end) => return Some(end),
            };
            // Boxed, so that an idle connection takes no room for it.
            if let Err(end) = Box::pin(self.answer_all(message)).await {
                return Some(end);
            }
        }
    }

    /// Handles a message and those that came with it, such as Bind, Execute and Sync.
    async fn answer_all(&mut self, first: FrontendMessage) -> Result<(), End> {
        let home = self.session.home();
        let mut next = Some(first);
        while let Some(message) = next {
            self.answer(message).await?;
            next = if self.session.home() == home { self.client.channel.take()? } else { None };
        }
        Ok(())
    }

    async fn answer(&mut self, message: FrontendMessage) -> Result<(), End> {
        use FrontendMessage::{CopyData, CopyDone, CopyFail};
        // The rest of a failed COPY may come after it, and gets no answer.
        let is_rest = matches!(message, CopyData(_) | CopyDone | CopyFail(_));
        self.is_ready &= is_rest;
        match message {
            FrontendMessage::Terminate => Err(End::Asked),
            FrontendMessage::Sync => self.sync().await,
            FrontendMessage::Query(text) if !self.is_skipping => self.simple(&text).await,
            _ if is_rest => Ok(()),
            _ if self.is_skipping => Ok(()),
            message => match self.extended(message).await {
                Ok(()) => self.client.channel.send_much().await,
                Err(Failure::Ends(end)) => Err(end),
                Err(Failure::Statement(error)) => {
                    self.failed(&error);
                    self.is_skipping = true;
                    self.client.channel.send().await
                }
            },
        }
    }

    /// Sends a statement's error and closes all portals except cursors WITH HOLD of committed transactions.
    fn failed(&mut self, error: &crate::wire::ErrorFields) {
        self.drop_portals();
        self.session.fail_transaction();
        self.client.output().error(error);
        self.ended(Some(error.state));
    }

    /// Begins a statement and sets its deadline.
    fn begin(&mut self, sql: &str) {
        self.client.active.begin(sql);
        self.client.forget_rows();
        self.running = self.server.logs.slow_text(sql);
        self.begun = Instant::now();
        self.limit_time(self.begun);
    }

    /// Writes values in the styles that the session has now.
    fn take_style(&mut self) {
        self.client.output().style = self.session.temporal_style();
    }

    /// Sets the deadline of a statement that begins now.
    fn limit_time(&mut self, begun: Instant) {
        let timeout = self.session.statement_timeout();
        self.client.deadline = timeout.map(|timeout| begun + timeout);
    }

    /// Ends a statement, with its SQLSTATE if it failed.
    fn ended(&mut self, error: Option<&'static str>) {
        self.client.active.end(error);
        self.server.metrics.ended(self.begun.elapsed(), error);
        self.log_slow(error);
    }

    /// Logs the statement that has ended if it was slow.
    fn log_slow(&mut self, error: Option<&str>) {
        if let Some(statement) = self.running.take() {
            let (took, rows) = (self.begun.elapsed(), self.client.rows());
            let ended = SlowStatement { took, rows, error, statement: &statement };
            self.server.logs.slow(&self.client.active, &ended);
        }
    }

    /// Logs a statement if its class is audited.
    fn audit(&self, sql: &str, ran: &Result<(), Failure>) {
        let error = ran.as_ref().err().map(Failure::state);
        if let Some(state) = error {
            let number = self.client.active.number();
            let told = format_args!("session {number}: a statement failed with {state}");
            self.server.logs.say(LogLevel::Debug, told);
        }
        if self.server.logs.has_audit() {
            self.with_audited(|client| self.server.logs.audit_statement(client, sql, error));
        }
    }

    fn with_audited(&self, tell: impl FnOnce(&AuditedClient<'_>)) {
        let (client, session) = (self.client.active.client(), Some(self.client.active.number()));
        tell(&AuditedClient { role: &client.user, address: &client.address, session });
    }

    /// Ends the session, perhaps in the middle of a statement.
    fn log_out(&mut self, end: &End, after: Duration) {
        if self.client.active.end(Some(end.state())) {
            self.server.metrics.ended(self.begun.elapsed(), Some(end.state()));
        }
        self.log_slow(Some(end.state()));
        let event = AuditEvent::LogOut { after: Some(after) };
        self.with_audited(|client| self.server.logs.audit(client, &event));
        let number = self.client.active.number();
        self.server.logs.say(LogLevel::Debug, format_args!("session {number} has ended"));
    }

    /// Closes all portals except those that outlive their transaction.
    fn drop_portals(&mut self) {
        self.portals.retain(|_, portal| portal.options.holds && portal.is_committed);
    }

    /// Closes portals after a transaction; cursors WITH HOLD stay if it was committed.
    fn transaction_ended(&mut self, sql: &str) {
        if !begins_with(sql, &["rollback", "abort"]) {
            let held = self.portals.values_mut().filter(|portal| portal.options.holds);
            held.for_each(|portal| portal.is_committed = true);
        }
        self.drop_portals();
    }

    /// Reports the settings that statements have changed to the client.
    fn tell_changes(&mut self) {
        for (name, value) in self.session.changed_parameters() {
            match name {
                "application_name" => self.client.active.set_application(&value),
                "client_encoding" => {
                    let encoding = TextEncoding::named(&value);
                    self.client.output().encoding = encoding.unwrap_or_default();
                }
                _ => {}
            }
            self.client.output().parameter_status(name, &value);
        }
    }

    /// Ends a group of statements and its transaction; the client may send the next.
    async fn ready(&mut self) -> Result<(), End> {
        if self.session.transaction_state() == TransactionState::Idle {
            self.drop_portals();
            self.client.tell_notifications(&self.session);
        }
        let status = match self.session.transaction_state() {
            TransactionState::Idle => b'I',
            TransactionState::Open => b'T',
            TransactionState::Failed => b'E',
        };
        self.tell_changes();
        self.client.deadline = None;
        self.client.output().ready(status);
        self.is_ready = true;
        self.client.channel.send().await
    }
}
