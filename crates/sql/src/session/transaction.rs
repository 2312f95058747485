//! BEGIN, COMMIT, ROLLBACK, SAVEPOINT: the transaction of a session.
//!
//! Outside of BEGIN every statement is its own transaction. Within, a statement that fails leaves the transaction as in
//! PostgreSQL: it refuses all but ROLLBACK, until that or ROLLBACK TO a savepoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll_store::database::{
    DatabaseVersion, Isolation, PreparedError, Transaction, TransactionOptions, TransactionReads,
};
use chrono::{DateTime, Utc};
use datafusion::common::{Result, not_impl_err};
use datafusion::sql::planner::IdentNormalizer;
use datafusion::sql::sqlparser::ast::{
    Ident, Set, Statement as Ast, TransactionAccessMode, TransactionIsolationLevel, TransactionMode,
};
use parking_lot::Mutex;

use crate::catalog::KeptNames;
use crate::client_settings::DEFAULT_DEFERRABLE;
use crate::database::Database;
use crate::notifications::AnnouncementMark;
use crate::session::Session;
use crate::session::settings::parameters::said_deferrable;
use crate::session::statement::query_result::QueryResult;
use crate::shared_transaction::SharedTransaction;
use atoll_sql_common::error::{SqlState, transaction_error};
use atoll_sql_exec::watch::{StatementWait, StatementWatch};

/// The session's open transaction, if any.
#[derive(Debug, Default)]
pub(super) struct SessionTransaction {
    open: Mutex<Option<OpenTransaction>>,
}

/// A transaction between BEGIN and COMMIT.
#[derive(Clone, Debug)]
pub(super) struct OpenTransaction {
    pub(super) transaction: SharedTransaction,
    /// Its start, the value of `now()`.
    begun: DateTime<Utc>,
    failure: FailedStatement,
    /// Its modes, and whether a statement ran with them.
    modes: SaidModes,
    is_used: bool,
    /// The session's own names before it: views of the session, which the store does not keep.
    names: KeptNames,
    savepoints: Vec<SessionSavepoint>,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum TransactionEnd<'a> {
    Commit,
    Rollback,
    /// PREPARE TRANSACTION under this name.
    Prepare(&'a Arc<str>),
}

/// What a session restores at a savepoint.
#[derive(Clone, Debug)]
struct SessionSavepoint {
    name: String,
    /// The session's own names.
    names: KeptNames,
    /// The notifications before it.
    announced: AnnouncementMark,
}

impl OpenTransaction {
    /// The position of the last savepoint with a name.
    fn savepoint(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|other| other.name == name)
    }
}

/// Whether a statement of a transaction failed.
#[derive(Clone, Debug, Default)]
pub(super) struct FailedStatement(Arc<AtomicBool>);

impl FailedStatement {
    pub(super) fn tell(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The transaction in which one statement runs.
#[derive(Clone, Debug)]
pub(crate) struct StatementTransaction {
    pub(super) transaction: SharedTransaction,
    /// Whether it ends with the statement.
    pub(super) is_own: bool,
    pub(super) failure: FailedStatement,
    /// Records what the statement waits for.
    pub(super) watch: StatementWatch,
}

impl StatementTransaction {
    /// The version that the statement sees.
    pub(super) async fn statement(&self, writes: bool) -> Result<Arc<DatabaseVersion>> {
        self.transaction.lock().await?.statement(writes).map_err(transaction_error)
    }

    /// What takes notes of what the statement reads, if its transaction is serializable.
    pub(super) async fn reads(&self) -> Result<Option<TransactionReads>> {
        Ok(self.transaction.lock().await?.reads().cloned())
    }

    /// Marks the statement, and so the transaction, as failed.
    pub(crate) fn fail(&self) {
        self.failure.tell();
    }

    /// The same, and waits until its error may be reported: it may reveal what others have committed and is not on disk
    /// yet. Others go on meanwhile: locked rows are not changed any more.
    pub(super) async fn fail_settled(&self) {
        self.fail();
        if let Ok(mut transaction) = self.transaction.lock().await {
            transaction.give_up();
        }
        // An error of the log is reported by the next statement.
        let _ = self.settle().await;
    }

    /// Ends a write statement: commits its own transaction.
    pub(crate) async fn finish(&self, database: &Database) -> Result<()> {
        self.transaction.lock().await?.end_parts().await.map_err(transaction_error)?;
        match self.is_own {
            true => {
                let _waits = self.watch.waiting(StatementWait::Sync);
                database.commit(&self.transaction).await
            }
            false => self.settle().await,
        }
    }

    /// Releases the advisory locks of a read-only statement, before its client learns that it has ended.
    pub(super) fn release(&self) {
        if self.is_own {
            self.transaction.release_advisory();
        }
    }

    /// Waits until all that was read is durable.
    pub(super) async fn settle(&self) -> Result<()> {
        let _waits = self.watch.waiting(StatementWait::Sync);
        self.transaction.lock().await?.settled().await.map_err(transaction_error)
    }
}

impl Session {
    /// Whether a statement has run in the session's transaction: before it, SET TRANSACTION may still change it.
    pub(in crate::session) fn has_used_transaction(&self) -> bool {
        self.transaction.open.lock().as_ref().is_some_and(|open| open.is_used)
    }

    /// The transaction of the next statement.
    ///
    /// # Errors
    /// In a transaction with a failed statement.
    pub(crate) fn statement_transaction(&self) -> Result<StatementTransaction> {
        self.check_not_failed()?;
        if let Some(open) = &mut *self.transaction.open.lock() {
            open.is_used = true;
            let OpenTransaction { transaction, failure, .. } = open.clone();
            let watch = self.watch.clone();
            return Ok(StatementTransaction { transaction, is_own: false, failure, watch });
        }
        let transaction = self.started(SaidModes::from_options(self.parameters.default_options()));
        let (failure, watch) = (FailedStatement::default(), self.watch.clone());
        Ok(StatementTransaction { transaction, is_own: true, failure, watch })
    }

    /// Runs plain BEGIN, COMMIT and ROLLBACK, which are not parsed; `None` for others.
    pub(super) async fn run_plain_control(&self, sql: &str) -> Result<Option<QueryResult>> {
        let text = sql.trim_end_matches(|it: char| it == ';' || it.is_ascii_whitespace());
        let is = |wanted: &str| text.eq_ignore_ascii_case(wanted);
        let tag = if is("begin") {
            self.begin(&[])?;
            "BEGIN"
        } else if is("commit") || is("end") {
            self.end(true).await?
        } else if is("rollback") {
            self.end(false).await?
        } else {
            return Ok(None);
        };
        Ok(Some(QueryResult::done(tag.to_owned(), sql)))
    }

    /// The same session with its own transaction: for a client that has several at a time, which share names and
    /// settings.
    pub fn with_own_transaction(&self) -> Self {
        Self { transaction: Arc::default(), ..self.clone() }
    }

    /// Runs a statement about transactions; `None` for others.
    pub(super) async fn control(&self, ast: &Ast, sql: &str) -> Result<Option<QueryResult>> {
        let tag = match ast {
            Ast::StartTransaction { modes, statements, exception: None, .. }
                if statements.is_empty() =>
            {
                self.begin(modes)?;
                self.keep_deferrable(sql);
                "BEGIN"
            }
            Ast::Commit { chain: false, .. } => self.end(true).await?,
            Ast::Rollback { chain: false, savepoint: None } => self.end(false).await?,
            Ast::Commit { .. } | Ast::Rollback { savepoint: None, .. } => {
                return not_impl_err!("AND CHAIN; say BEGIN again");
            }
            Ast::Rollback { savepoint: Some(name), .. } => {
                let act = Transaction::rollback_to;
                let name = self.at_savepoint("ROLLBACK TO SAVEPOINT", name, act).await?;
                self.parameters.rollback_to(&name);
                if let Some(open) = &mut *self.transaction.open.lock() {
                    open.failure.0.store(false, Ordering::Release);
                    if let Some(at) = open.savepoint(&name) {
                        let savepoint = &open.savepoints[at];
                        self.restore_names(savepoint.names.clone());
                        open.transaction.undo_announcements(savepoint.announced);
                        open.savepoints.truncate(at + 1);
                    }
                }
                "ROLLBACK"
            }
            Ast::Savepoint { name } => {
                self.statement_transaction()?;
                let set = |transaction: &mut Transaction, name: &str| {
                    transaction.savepoint(name);
                    Ok(())
                };
                let name = self.at_savepoint("SAVEPOINT", name, set).await?;
                self.parameters.savepoint(&name);
                if let Some(open) = &mut *self.transaction.open.lock() {
                    let (names, announced) = (self.catalogs().kept(), open.transaction.announced());
                    open.savepoints.push(SessionSavepoint { name, names, announced });
                }
                "SAVEPOINT"
            }
            Ast::ReleaseSavepoint { name } => {
                self.statement_transaction()?;
                let act = Transaction::release;
                let name = self.at_savepoint("RELEASE SAVEPOINT", name, act).await?;
                self.parameters.release(&name);
                if let Some(open) = &mut *self.transaction.open.lock()
                    && let Some(at) = open.savepoint(&name)
                {
                    open.savepoints.truncate(at);
                }
                "RELEASE"
            }
            Ast::Set(Set::SetTransaction { modes, snapshot: None, session: false }) => {
                self.set_transaction(modes)?;
                self.keep_deferrable(sql);
                "SET"
            }
            Ast::Set(Set::SetTransaction { modes, snapshot: None, session: true }) => {
                self.check_not_failed()?;
                let defaults =
                    SaidModes::from_options(self.parameters.default_options()).with(modes);
                self.parameters.set_default_options(defaults.options(), defaults.is_uncommitted)?;
                if let Some(is_deferrable) = said_deferrable(sql) {
                    let value = if is_deferrable { "on" } else { "off" };
                    self.parameters.set(DEFAULT_DEFERRABLE, Some(value), false)?;
                }
                "SET"
            }
            _ => return Ok(None),
        };
        Ok(Some(QueryResult::done(tag.to_owned(), sql)))
    }

    /// SET TRANSACTION, before the first statement of a transaction.
    pub(super) fn set_transaction(&self, modes: &[TransactionMode]) -> Result<()> {
        let mut open = self.transaction.open.lock();
        let Some(open) = open.as_mut() else {
            return Err(SqlState::NO_ACTIVE_TRANSACTION.error(
                "SET TRANSACTION can only be used in transaction blocks; say BEGIN first, or SET SESSION \
                 CHARACTERISTICS AS TRANSACTION for all that follow",
            ));
        };
        if open.is_used {
            return Err(SqlState::ACTIVE_TRANSACTION
                .error("SET TRANSACTION must be called before any query of the transaction"));
        }
        open.modes = open.modes.with(modes);
        open.transaction = self.started(open.modes);
        self.parameters.set_transaction(open.modes.options(), open.modes.is_uncommitted);
        Ok(())
    }

    /// A transaction that begins now.
    fn started(&self, modes: SaidModes) -> SharedTransaction {
        let (begun, session) = (self.database().age(), self.identity.number);
        let options = TransactionOptions { begun, session, ..modes.options() };
        let mut transaction = self.database().store().begin(options);
        transaction.set_lock_patience(self.parameters.lock_patience(&self.watch));
        SharedTransaction::new(transaction)
    }

    /// Whether the next statement runs in a serializable transaction.
    pub(super) fn is_serializable(&self) -> bool {
        let open = self.transaction.open.lock().as_ref().map(|open| open.modes.options());
        let options = open.unwrap_or_else(|| self.parameters.default_options());
        options.isolation == Isolation::Serializable
    }

    /// The version that the next statement sees, unless another one runs in its transaction.
    pub(super) fn statement_version(&self) -> Arc<DatabaseVersion> {
        let open = self.transaction.open.lock().as_ref().map(|open| open.transaction.clone());
        let own = open.and_then(|open| open.version());
        own.unwrap_or_else(|| self.database().store().published())
    }

    /// Refuses a statement in a failed transaction.
    pub(super) fn check_not_failed(&self) -> Result<()> {
        if self.transaction_state() != TransactionState::Failed {
            return Ok(());
        }
        Err(SqlState::IN_FAILED_TRANSACTION.error(
            "current transaction is aborted, commands ignored until end of transaction block; say ROLLBACK",
        ))
    }

    /// Whether statements run in an open transaction.
    pub(super) fn is_in_transaction(&self) -> bool {
        self.transaction.open.lock().is_some()
    }

    /// The start of the open transaction; `None` if there is none.
    pub(super) fn transaction_begun(&self) -> Option<DateTime<Utc>> {
        self.transaction.open.lock().as_ref().map(|open| open.begun)
    }

    /// Whether a transaction is open, and whether it failed.
    pub fn transaction_state(&self) -> TransactionState {
        match &*self.transaction.open.lock() {
            None => TransactionState::Idle,
            Some(open) if open.failure.0.load(Ordering::Acquire) => TransactionState::Failed,
            Some(_) => TransactionState::Open,
        }
    }

    /// Marks the open transaction as failed, as after a statement that failed: for a caller that gave up a result
    /// before its last row.
    pub fn fail_transaction(&self) {
        if let Some(open) = &*self.transaction.open.lock() {
            open.failure.tell();
        }
    }

    fn begin(&self, modes: &[TransactionMode]) -> Result<()> {
        self.check_not_failed()?;
        let mut open = self.transaction.open.lock();
        if open.is_some() {
            return Err(
                SqlState::ACTIVE_TRANSACTION.error("there is already a transaction in progress")
            );
        }
        let modes = SaidModes::from_options(self.parameters.default_options()).with(modes);
        let (transaction, names) = (self.started(modes), self.catalogs().kept());
        let (failure, savepoints) = Default::default();
        *open = Some(OpenTransaction {
            transaction,
            begun: Utc::now(),
            failure,
            modes,
            is_used: false,
            names,
            savepoints,
        });
        let is_uncommitted = modes.level.map(|_| modes.is_uncommitted);
        self.parameters.begin_transaction(modes.options(), is_uncommitted);
        Ok(())
    }

    /// Restores the names of the session's own tables and views, with which its statements are planned again.
    fn restore_names(&self, names: KeptNames) {
        self.catalogs().restore(names);
        self.scope.forget();
    }

    /// COMMIT or ROLLBACK.
    async fn end(&self, commits: bool) -> Result<&'static str> {
        let end = if commits { TransactionEnd::Commit } else { TransactionEnd::Rollback };
        self.end_transaction(end).await
    }

    /// Ends the transaction; a failed one is rolled back in any case. Returns the tag.
    pub(super) async fn end_transaction(&self, end: TransactionEnd<'_>) -> Result<&'static str> {
        let Some(OpenTransaction { transaction, failure, names, .. }) =
            self.transaction.open.lock().take()
        else {
            return Err(
                SqlState::NO_ACTIVE_TRANSACTION.error("there is no transaction in progress")
            );
        };
        if matches!(end, TransactionEnd::Rollback) || failure.0.load(Ordering::Acquire) {
            self.parameters.end_transaction(false);
            transaction.rollback().await;
            self.restore_names(names);
            return Ok("ROLLBACK");
        }
        let waits = self.watch.waiting(StatementWait::Sync);
        let ended = match end {
            TransactionEnd::Prepare(name) => {
                let has_own_names = !names.are_those_of(&self.catalogs().kept());
                self.leave_prepared(&transaction, name, has_own_names)
                    .await
                    .map(|()| "PREPARE TRANSACTION")
            }
            _ => self.database().commit(&transaction).await.map(|()| "COMMIT"),
        };
        drop(waits);
        self.parameters.end_transaction(ended.is_ok());
        if ended.is_err() {
            self.restore_names(names);
        }
        ended
    }

    /// Leaves a transaction to COMMIT PREPARED; `has_own_names` if it changed names of the session.
    async fn leave_prepared(
        &self,
        transaction: &SharedTransaction,
        name: &Arc<str>,
        has_own_names: bool,
    ) -> Result<()> {
        if has_own_names {
            transaction.rollback().await;
            return Err(transaction_error(PreparedError::Temporary.into()));
        }
        transaction.prepare(name, Arc::clone(&self.identity.user)).await
    }

    /// Runs an operation on a savepoint; its normalized name.
    async fn at_savepoint(
        &self,
        what: &str,
        name: &Ident,
        act: impl FnOnce(&mut Transaction, &str) -> Result<(), atoll_store::database::TransactionError>,
    ) -> Result<String> {
        let open = self.transaction.open.lock().clone();
        let Some(open) = open else {
            return Err(SqlState::NO_ACTIVE_TRANSACTION
                .error(format!("{what} can only be used in transaction blocks; say BEGIN first")));
        };
        let normalizes =
            self.context.state().config_options().sql_parser.enable_ident_normalization;
        let name = IdentNormalizer::new(normalizes).normalize(name.clone());
        let mut transaction = open.transaction.lock().await?;
        act(&mut transaction, &name).map_err(transaction_error)?;
        Ok(name)
    }

    /// Begins the transaction of a DO block, unless one is open.
    pub(super) fn begin_block(&self) -> Result<UnfinishedBlock<'_>> {
        let is_own = !self.is_in_transaction();
        if is_own {
            self.begin(&[])?;
        }
        self.check_not_failed()?;
        Ok(UnfinishedBlock { session: self, is_own })
    }

    /// Ends it: commits its own transaction, or rolls it back.
    pub(super) async fn end_block(
        &self,
        mut block: UnfinishedBlock<'_>,
        is_done: bool,
    ) -> Result<()> {
        if std::mem::take(&mut block.is_own) {
            self.end(is_done).await?;
        }
        Ok(())
    }

    /// A statement that begins.
    pub(super) fn unfinished(&self) -> UnfinishedStatement<'_> {
        UnfinishedStatement { session: self, ended: false }
    }
}

/// A running statement: if it fails, or its caller drops it, the open transaction refuses all but its own end.
pub(super) struct UnfinishedStatement<'a> {
    session: &'a Session,
    ended: bool,
}

impl UnfinishedStatement<'_> {
    /// The statement has ended; a second BEGIN changes nothing.
    pub(super) fn ended<T>(mut self, result: &Result<T>) {
        self.ended = match result {
            Ok(_) => true,
            Err(error) => SqlState::from_error(error) == SqlState::ACTIVE_TRANSACTION,
        };
    }
}

impl Drop for UnfinishedStatement<'_> {
    fn drop(&mut self) {
        if let (Some(open), false) = (&*self.session.transaction.open.lock(), self.ended) {
            open.failure.tell();
        }
    }
}

/// A running DO block: if its caller drops it, its own transaction is rolled back.
pub(super) struct UnfinishedBlock<'a> {
    session: &'a Session,
    is_own: bool,
}

impl Drop for UnfinishedBlock<'_> {
    fn drop(&mut self) {
        if !self.is_own {
            return;
        }
        if let Some(open) = self.session.transaction.open.lock().take() {
            self.session.parameters.end_transaction(false);
            self.session.restore_names(open.names);
        }
    }
}

/// The transaction state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// No open transaction: each statement is one.
    Idle,
    /// Between BEGIN and COMMIT.
    Open,
    /// After a statement failed.
    Failed,
}

/// The specified modes of transactions.
#[derive(Clone, Copy, Debug, Default)]
struct SaidModes {
    /// The level, if one was specified.
    level: Option<Isolation>,
    /// Whether the level is READ UNCOMMITTED, which is READ COMMITTED as in PostgreSQL.
    is_uncommitted: bool,
    read_only: bool,
}

impl SaidModes {
    /// From the settings of a session, whose default level counts as unspecified.
    fn from_options(options: TransactionOptions) -> Self {
        let level = Some(options.isolation).filter(|level| *level != Isolation::ReadCommitted);
        Self { level, is_uncommitted: false, read_only: options.read_only }
    }

    /// The options with these modes.
    fn options(self) -> TransactionOptions {
        let (isolation, read_only) = (self.isolation(), self.read_only);
        TransactionOptions { isolation, read_only, ..TransactionOptions::default() }
    }

    /// These, changed by the modes of a statement.
    fn with(mut self, modes: &[TransactionMode]) -> Self {
        for mode in modes {
            match mode {
                TransactionMode::AccessMode(mode) => {
                    self.read_only = *mode == TransactionAccessMode::ReadOnly;
                }
                TransactionMode::IsolationLevel(level) => {
                    self.level = Some(isolation(*level));
                    self.is_uncommitted = *level == TransactionIsolationLevel::ReadUncommitted;
                }
            }
        }
        self
    }

    /// The isolation: a read-only transaction sees one snapshot, unless another level is specified.
    fn isolation(self) -> Isolation {
        match (self.level, self.read_only) {
            (Some(level), _) => level,
            (None, true) => Isolation::RepeatableRead,
            (None, false) => Isolation::ReadCommitted,
        }
    }
}

/// READ UNCOMMITTED is READ COMMITTED, as in PostgreSQL.
fn isolation(level: TransactionIsolationLevel) -> Isolation {
    use TransactionIsolationLevel as Level;
    match level {
        Level::ReadUncommitted | Level::ReadCommitted => Isolation::ReadCommitted,
        Level::RepeatableRead | Level::Snapshot => Isolation::RepeatableRead,
        Level::Serializable => Isolation::Serializable,
    }
}
