//! Client sessions, their current statement and recent statements: for `atoll.sessions`, `atoll.queries`, and to
//! interrupt a statement of another session.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use atoll_topology::NodeId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use atoll_sql_exec::trace::StatementSteps;
use atoll_sql_exec::watch::{StatementFigures, StatementWait, StatementWatch};

/// Number of ended statements that are kept.
const ENDED_MAX: usize = 256;

/// Shortest duration of a statement that is kept.
const REMEMBERED_MIN: Duration = Duration::from_millis(10);

/// The SQLSTATE of a statement that ends because its session does.
const CONNECTION_FAILURE: &str = "08006";

/// Characters kept of a statement's text.
const TEXT_MAX: usize = 1024;

/// The sessions of a database's clients. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Activity(Arc<ActivityParts>);

#[derive(Debug, Default)]
struct ActivityParts {
    last: AtomicU32,
    /// Statements of clients that have ended.
    finished: AtomicU64,
    sessions: Mutex<BTreeMap<u32, Arc<SessionActivity>>>,
    ended: Mutex<VecDeque<StatementInfo>>,
    tracer: OnceLock<StatementTracer>,
}

/// Called with each statement that has ended.
struct StatementTracer(Box<dyn Fn(StatementInfo, StatementSteps) + Send + Sync>);

impl fmt::Debug for StatementTracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StatementTracer")
    }
}

/// Who a client is.
#[derive(Clone, Debug, Default)]
pub struct ClientInfo {
    /// The role.
    pub user: String,
    /// Where the client is: an address, or `local`.
    pub address: String,
    /// What the client calls itself.
    pub application: String,
}

/// How to interrupt a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Ends its statement.
    Cancel,
    /// Ends the session.
    Terminate,
}

/// A session of a client.
#[derive(Debug)]
struct SessionActivity {
    number: u32,
    secret: u32,
    begun: SystemTime,
    state: Mutex<ActivityState>,
    interrupted: Notify,
    watch: StatementWatch,
}

#[derive(Debug, Default)]
struct ActivityState {
    client: ClientInfo,
    statement: Option<Arc<str>>,
    is_running: bool,
    since: Option<SystemTime>,
    interrupt: Option<Interrupt>,
}

/// A registered session, until this is dropped.
#[derive(Debug)]
pub struct ActiveSession {
    activity: Activity,
    session: Arc<SessionActivity>,
}

/// A row of `atoll.sessions`.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    /// Its number.
    pub number: u32,
    /// Its client.
    pub client: ClientInfo,
    /// When it began.
    pub begun: SystemTime,
    /// The statement that runs, or that ran last.
    pub statement: Option<Arc<str>>,
    /// Whether it runs.
    pub is_running: bool,
    /// When it began, or ended.
    pub since: Option<SystemTime>,
    /// Bytes of memory that its statements have reserved.
    pub memory: u64,
    /// The node that should serve it, if one is set.
    pub home: Option<NodeId>,
    /// The node whose threads serve its connection, if they belong to one.
    pub node: Option<NodeId>,
}

/// A statement that runs or has ended: a row of `atoll.queries`.
#[derive(Clone, Debug)]
pub struct StatementInfo {
    /// The session's number.
    pub session: u32,
    /// The role.
    pub user: String,
    /// The text that was sent.
    pub statement: Arc<str>,
    /// When it began.
    pub begun: SystemTime,
    /// How long it took; `None` while it runs.
    pub took: Option<Duration>,
    /// The code of its error.
    pub error: Option<&'static str>,
    /// What it waits for.
    pub waits: StatementWait,
    /// How far it is, or was at its end.
    pub figures: StatementFigures,
}

impl Activity {
    /// Registers a session. A client that knows the secret may cancel its statements from another connection.
    pub fn enter(&self, client: ClientInfo, secret: u32) -> ActiveSession {
        let number = self.0.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX as u32;
        let state = ActivityState { client, ..ActivityState::default() };
        let session = Arc::new(SessionActivity {
            number,
            secret,
            begun: SystemTime::now(),
            state: Mutex::new(state),
            interrupted: Notify::new(),
            watch: StatementWatch::default(),
        });
        if self.0.tracer.get().is_some() {
            session.watch.trace();
        }
        self.0.sessions.lock().insert(number, Arc::clone(&session));
        ActiveSession { activity: self.clone(), session }
    }

    /// Interrupts a session; false if no session has this number. An idle session cannot be cancelled, only ended.
    pub fn interrupt(&self, number: u32, interrupt: Interrupt) -> bool {
        let session = self.0.sessions.lock().get(&number).cloned();
        session.is_some_and(|session| {
            session.interrupt(interrupt);
            true
        })
    }

    /// Cancels a statement for a client that knows the secret of its session.
    pub fn cancel(&self, number: u32, secret: u32) -> bool {
        let session = self.0.sessions.lock().get(&number).cloned();
        let known = session.filter(|session| session.secret == secret);
        known.is_some_and(|session| {
            session.interrupt(Interrupt::Cancel);
            true
        })
    }

    /// All sessions, by their numbers.
    pub fn sessions(&self) -> Vec<SessionInfo> {
        self.all().iter().map(|session| session.info()).collect()
    }

    fn all(&self) -> Vec<Arc<SessionActivity>> {
        self.0.sessions.lock().values().cloned().collect()
    }

    /// The watch of a session's statement; an empty one if no session has this number.
    pub(crate) fn watch_of(&self, number: u32) -> StatementWatch {
        let session = self.0.sessions.lock().get(&number).cloned();
        session.map(|session| session.watch.clone()).unwrap_or_default()
    }

    /// Number of statements that have ended.
    pub fn finished(&self) -> u64 {
        self.0.finished.load(Ordering::Relaxed)
    }

    /// Running statements, and slow ones that have ended, latest first.
    pub fn statements(&self) -> Vec<StatementInfo> {
        let all = self.all();
        let running = all.iter().filter_map(|session| session.running());
        running.chain(self.0.ended.lock().iter().rev().cloned()).collect()
    }

    /// Sets the function called with each ended statement of sessions that begin from now on; later calls have no
    /// effect.
    pub fn trace(&self, tell: impl Fn(StatementInfo, StatementSteps) + Send + Sync + 'static) {
        let _ = self.0.tracer.set(StatementTracer(Box::new(tell)));
    }

    fn remember(&self, statement: StatementInfo) {
        let mut ended = self.0.ended.lock();
        if ended.len() >= ENDED_MAX {
            ended.pop_front();
        }
        ended.push_back(statement);
    }
}

impl SessionActivity {
    fn interrupt(&self, interrupt: Interrupt) {
        let mut state = self.state.lock();
        if interrupt == Interrupt::Terminate {
            state.interrupt = Some(interrupt);
        } else if state.is_running {
            state.interrupt = state.interrupt.or(Some(interrupt));
        }
        drop(state);
        // All who wait: a session may run one statement and be watched at the same time.
        self.interrupted.notify_waiters();
    }

    /// The statement that runs.
    fn running(&self) -> Option<StatementInfo> {
        let state = self.state.lock();
        let running = state.statement.clone().filter(|_| state.is_running);
        let (user, begun) = (state.client.user.clone(), state.since);
        drop(state);
        Some(StatementInfo {
            session: self.number,
            user,
            statement: running?,
            begun: begun?,
            took: None,
            error: None,
            waits: self.watch.waits(),
            figures: self.watch.figures(),
        })
    }

    fn info(&self) -> SessionInfo {
        let state = self.state.lock();
        SessionInfo {
            number: self.number,
            client: state.client.clone(),
            begun: self.begun,
            statement: state.statement.clone(),
            is_running: state.is_running,
            since: state.since,
            memory: self.watch.memory().used() as u64,
            home: self.watch.home(),
            node: self.watch.node(),
        }
    }
}

impl ActiveSession {
    /// The number by which others name the session.
    pub fn number(&self) -> u32 {
        self.session.number
    }

    /// The secret with which a client cancels its statements from another connection.
    pub fn secret(&self) -> u32 {
        self.session.secret
    }

    /// Its client.
    pub fn client(&self) -> ClientInfo {
        self.session.state.lock().client.clone()
    }

    /// The thread that runs its statements reports their progress here.
    pub fn watch(&self) -> &StatementWatch {
        &self.session.watch
    }

    /// Sets the name that the client gives itself.
    pub fn set_application(&self, application: &str) {
        application.clone_into(&mut self.session.state.lock().client.application);
    }

    /// A statement begins.
    pub fn begin(&self, statement: &str) {
        let statement = without_passwords(statement, TEXT_MAX).into();
        let mut state = self.session.state.lock();
        state.statement = Some(statement);
        state.is_running = true;
        state.since = Some(SystemTime::now());
        state.interrupt = state.interrupt.filter(|it| *it == Interrupt::Terminate);
    }

    /// The statement was prepared and is yet to run: it does not count as ended.
    pub fn prepared(&self) {
        let mut state = self.session.state.lock();
        state.interrupt = state.interrupt.filter(|it| *it == Interrupt::Terminate);
        state.is_running = false;
        state.since = Some(SystemTime::now());
    }

    /// Ends the statement, perhaps with an error of this code; whether one ran.
    pub fn end(&self, error: Option<&'static str>) -> bool {
        let now = SystemTime::now();
        let mut state = self.session.state.lock();
        state.interrupt = state.interrupt.filter(|it| *it == Interrupt::Terminate);
        if !std::mem::take(&mut state.is_running) {
            return false;
        }
        self.activity.0.finished.fetch_add(1, Ordering::Relaxed);
        let begun = state.since.replace(now).unwrap_or(now);
        let took = now.duration_since(begun).unwrap_or_default();
        let tracer = self.activity.0.tracer.get();
        if took < REMEMBERED_MIN && tracer.is_none() {
            drop(state);
            self.session.watch.forget();
            return true;
        }
        let statement = state.statement.clone().unwrap_or_default();
        let (session, user) = (self.session.number, state.client.user.clone());
        drop(state);
        let (waits, figures) = (StatementWait::Nothing, self.session.watch.figures());
        self.session.watch.forget();
        let ended = StatementInfo {
            session,
            user,
            statement,
            begun,
            took: Some(took),
            error,
            waits,
            figures,
        };
        if let Some(StatementTracer(tell)) = tracer {
            tell(ended.clone(), self.session.watch.steps());
        }
        if took >= REMEMBERED_MIN {
            self.activity.remember(ended);
        }
        true
    }

    /// Waits until the session is interrupted.
    pub async fn interrupted(&self) -> Interrupt {
        self.interrupted_by(|_| true).await
    }

    /// Waits until another session ends this one, whatever happens to its statements.
    pub async fn terminated(&self) {
        self.interrupted_by(|interrupt| interrupt == Interrupt::Terminate).await;
    }

    async fn interrupted_by(&self, is_waited_for: impl Fn(Interrupt) -> bool) -> Interrupt {
        loop {
            // Registered before the check, so that no later notification is missed.
            let notified = self.session.interrupted.notified();
            let interrupt = self.session.state.lock().interrupt;
            if let Some(interrupt) = interrupt.filter(|interrupt| is_waited_for(*interrupt)) {
                return interrupt;
            }
            notified.await;
        }
    }
}

/// The part of a statement that others may see: its first characters up to the word PASSWORD, wherever it is, since a
/// password in any form, or other statements of the same text, may follow it.
#[must_use]
pub fn without_passwords(statement: &str, characters_max: usize) -> &str {
    let end = statement.char_indices().nth(characters_max).map_or(statement.len(), |(at, _)| at);
    let statement = &statement[..end];
    let is_password = |window: &[u8]| window.eq_ignore_ascii_case(b"password");
    let secret = statement.as_bytes().windows(8).position(is_password);
    &statement[..secret.map_or(statement.len(), |at| at + 8)]
}

impl Drop for ActiveSession {
    fn drop(&mut self) {
        self.end(Some(CONNECTION_FAILURE));
        self.activity.0.sessions.lock().remove(&self.session.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(activity: &Activity, secret: u32) -> ActiveSession {
        let client = ClientInfo { user: "ann".to_owned(), ..ClientInfo::default() };
        activity.enter(client, secret)
    }

    #[test]
    fn only_a_statement_that_runs_is_cancelled() {
        let activity = Activity::default();
        let session = entered(&activity, 7);
        assert!(activity.cancel(session.number(), 7));
        assert_eq!(session.session.state.lock().interrupt, None);
        session.begin("SELECT 1");
        assert!(!activity.cancel(session.number(), 8));
        assert_eq!(session.session.state.lock().interrupt, None);
        assert!(activity.cancel(session.number(), 7));
        assert_eq!(session.session.state.lock().interrupt, Some(Interrupt::Cancel));
        assert!(session.end(None));
        assert!(!session.end(None));
        assert_eq!(activity.finished(), 1);
        session.begin("SELECT 2");
        session.prepared();
        assert_eq!(activity.finished(), 1);
        session.begin("SELECT 2");
        assert_eq!(session.session.state.lock().interrupt, None);
    }

    #[test]
    fn passwords_are_not_shown() {
        for (sql, shown) in [
            ("ALTER ROLE ann PassWord 'x'", "ALTER ROLE ann PassWord"),
            (
                "/* a */ -- b\nALTER ROLE ann PASSWORD/**/'x'",
                "/* a */ -- b\nALTER ROLE ann PASSWORD",
            ),
            (
                "SELECT 1; ALTER USER ann PASSWORD $q$x$q$; SELECT 2",
                "SELECT 1; ALTER USER ann PASSWORD",
            ),
            (
                "CREATE ROLE ann ENCRYPTED PASSWORD E'x' NONSENSE",
                "CREATE ROLE ann ENCRYPTED PASSWORD",
            ),
            ("SELECT 1", "SELECT 1"),
        ] {
            assert_eq!(without_passwords(sql, TEXT_MAX), shown);
        }
        let long = "ä".repeat(2000);
        assert_eq!(without_passwords(&long, TEXT_MAX).chars().count(), TEXT_MAX);
        let cut = "ALTER ROLE ann PASSWORD 'x'";
        assert_eq!(without_passwords(cut, 19), "ALTER ROLE ann PASS");
    }

    #[test]
    fn a_session_is_listed_until_it_ends() {
        let activity = Activity::default();
        let session = entered(&activity, 0);
        session.begin("SELECT 1");
        let listed = activity.sessions();
        assert_eq!(listed.len(), 1);
        assert!(listed[0].is_running);
        assert_eq!(activity.statements()[0].statement.as_ref(), "SELECT 1");
        drop(session);
        assert_eq!(activity.finished(), 1);
        assert!(activity.sessions().is_empty());
        assert!(!activity.interrupt(1, Interrupt::Terminate));
    }
}
