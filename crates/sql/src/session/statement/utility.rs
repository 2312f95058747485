//! Utility statements, which sqlparser does not know: about the whole database, pools, and the constraints of a
//! transaction.
//!
//! ```text
//! CHECKPOINT
//! BACKUP DATABASE TO 'directory'      a copy of the data directory, which opens as a database
//! EXPORT DATABASE TO 'directory'      a file for each table, and load.sql, which recreates all of it
//! IMPORT DATABASE FROM 'directory'    runs that file, as one transaction
//! CREATE POOL …, DROP POOL …          cores for a class of statements: `pool.rs`
//! VACUUM, ANALYZE                     nothing: `vacuum.rs`
//! DO $$ BEGIN … END $$                statements as one: `block`
//! CREATE FUNCTION, CREATE PROCEDURE   their texts: `ddl/routines.rs`
//! LOCK TABLE                          nothing: `lock_table.rs`
//! PREPARE TRANSACTION, … PREPARED     `two_phase.rs`
//! REFRESH MATERIALIZED VIEW           the rows of its query: `ddl/materialized.rs`
//! ```

use std::path::{Path, PathBuf};

use datafusion::common::config::{CatalogOptions, SqlParserOptions};
use datafusion::common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::catalog::MaterializedView;
use crate::session::Session;
use crate::session::ddl::foreign_key::SetConstraints;
use crate::session::ddl::materialized::MaterializedStatement;
use crate::session::statement::block::Block;
use crate::session::statement::export_script::{FROM_FILE, file_of, full, is_kept, load_script};
use crate::session::statement::lock_table::LockStatement;
use crate::session::statement::pool_statement::PoolStatement;
use crate::session::statement::query_result::QueryResult;
use crate::session::statement::split::{Statement, split_statements};
use crate::session::statement::vacuum::VacuumStatement;
use crate::session::transaction::StatementTransaction;
use crate::session::two_phase::TwoPhaseStatement;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::SCHEMA;
use atoll_sql_files::check_files;
use atoll_sql_parse::parse::Routine;
use atoll_sql_parse::syntax::{is_at_end, next_word, parser_of};

/// The file that recreates a database.
const LOAD: &str = "load.sql";

/// A statement about the whole database, or its transaction.
pub(in crate::session) enum UtilityStatement {
    Checkpoint,
    Backup(PathBuf),
    Export(PathBuf),
    Import(PathBuf),
    Pool(PoolStatement),
    Vacuum(VacuumStatement),
    Lock(LockStatement),
    SetConstraints(SetConstraints),
    Materialized(MaterializedStatement),
    Do(Block),
    Routine(Routine),
    TwoPhase(TwoPhaseStatement),
}

impl UtilityStatement {
    /// Parses the text; `None` if it is another statement.
    ///
    /// # Errors
    /// If EXPORT or IMPORT DATABASE is not followed by a directory; the errors of [`PoolStatement::parse`] and
    /// [`VacuumStatement::parse`].
    pub(in crate::session) fn parse(sql: &str) -> Result<Option<Self>> {
        if let Some(pool) = PoolStatement::parse(sql)? {
            return Ok(Some(Self::Pool(pool)));
        }
        if let Some(vacuum) = VacuumStatement::parse(sql)? {
            return Ok(Some(Self::Vacuum(vacuum)));
        }
        if let Some(lock) = LockStatement::parse(sql) {
            return Ok(Some(Self::Lock(lock)));
        }
        if let Some(two_phase) = TwoPhaseStatement::parse(sql) {
            return Ok(Some(Self::TwoPhase(two_phase)));
        }
        if let Some(set) = SetConstraints::parse(sql)? {
            return Ok(Some(Self::SetConstraints(set)));
        }
        if let Some(materialized) = MaterializedStatement::parse(sql)? {
            return Ok(Some(Self::Materialized(materialized)));
        }
        if let Some(block) = Block::parse_do(sql)? {
            return Ok(Some(Self::Do(block)));
        }
        if let Some(routine) = Routine::parse(sql)? {
            return Ok(Some(Self::Routine(routine)));
        }
        let Some(mut parser) = parser_of(sql, &["checkpoint", "backup", "export", "import"]) else {
            return Ok(None);
        };
        let verb = next_word(&mut parser);
        if verb == "checkpoint" {
            return Ok(is_at_end(&parser).then_some(Self::Checkpoint));
        }
        let is_of_database = parser.parse_keyword(Keyword::DATABASE);
        let preposition = parser.parse_one_of_keywords(&[Keyword::TO, Keyword::FROM]);
        let directory = match parser.next_token().token {
            Token::SingleQuotedString(text) if is_of_database && is_at_end(&parser) => Some(text),
            _ => None,
        };
        match (verb.as_str(), preposition, directory) {
            ("backup", Some(Keyword::TO), Some(directory)) => {
                Ok(Some(Self::Backup(directory.into())))
            }
            ("export", None | Some(Keyword::TO), Some(directory)) => {
                Ok(Some(Self::Export(directory.into())))
            }
            ("import", None | Some(Keyword::FROM), Some(directory)) => {
                Ok(Some(Self::Import(directory.into())))
            }
            ("backup", ..) => plan_err!("expected BACKUP DATABASE TO 'directory'"),
            _ if is_of_database => plan_err!(
                "expected EXPORT DATABASE TO 'directory' or IMPORT DATABASE FROM 'directory'"
            ),
            _ => Ok(None),
        }
    }
}

impl Session {
    /// Runs a statement about the whole database.
    pub(in crate::session) async fn run_utility(
        &self,
        statement: UtilityStatement,
        sql: &str,
    ) -> Result<QueryResult> {
        let tag = match statement {
            UtilityStatement::Checkpoint => match self.database().checkpoint().await? {
                Some(report) => {
                    format!("CHECKPOINT {} bytes", report.chunk_bytes + report.table_bytes)
                }
                None => "CHECKPOINT: the database is in memory".to_owned(),
            },
            UtilityStatement::Backup(directory) => self.backup(directory).await?,
            UtilityStatement::Export(directory) => self.export(&directory).await?,
            UtilityStatement::Import(directory) => self.import(&directory).await?,
            UtilityStatement::Pool(_) if !self.is_superuser() => {
                return Err(SqlState::INSUFFICIENT_PRIVILEGE
                    .error("permission denied to create or drop pools; only superusers may"));
            }
            UtilityStatement::Pool(PoolStatement::Create { name, place }) => {
                let cpus = place.cpus(self.machine())?;
                self.database().pools().create(&name, cpus)?;
                "CREATE POOL".to_owned()
            }
            UtilityStatement::Pool(PoolStatement::Drop { name }) => {
                self.database().pools().remove(&name)?;
                self.database().shared_scans().forget_pool(&name);
                "DROP POOL".to_owned()
            }
            UtilityStatement::SetConstraints(set) => self.set_constraints(set).await?,
            UtilityStatement::Lock(lock) => {
                self.run_lock(&self.statement_transaction()?, &lock).await?;
                "LOCK TABLE".to_owned()
            }
            UtilityStatement::Materialized(statement) => self.run_materialized(&statement).await?,
            UtilityStatement::TwoPhase(statement) => self.run_two_phase(&statement).await?,
            UtilityStatement::Do(block) => self.run_do(&block).await?,
            UtilityStatement::Routine(routine) => {
                self.create_routine(&routine, sql).await?.to_owned()
            }
            UtilityStatement::Vacuum(vacuum) => {
                self.run_vacuum(&vacuum)?;
                vacuum.tag.to_owned()
            }
        };
        Ok(QueryResult::done(tag, sql))
    }

    /// Copies the data directory.
    async fn backup(&self, to: PathBuf) -> Result<String> {
        check_files(self.may_use_files(), "BACKUP DATABASE")?;
        if self.is_in_transaction() {
            let message =
                "BACKUP DATABASE copies what is committed: it cannot run in a transaction";
            return Err(SqlState::ACTIVE_TRANSACTION.error(message));
        }
        let report = self.database().backup(to).await?;
        Ok(format!("BACKUP DATABASE {} bytes", report.bytes))
    }

    /// Writes all tables of one version to files.
    async fn export(&self, directory: &Path) -> Result<String> {
        check_files(self.may_use_files(), "EXPORT DATABASE")?;
        std::fs::create_dir_all(directory).map_err(|error| failed("written", directory, &error))?;
        if directory.join(LOAD).exists() {
            return exec_err!("'{}' holds an exported database", directory.display());
        }
        let transaction = self.statement_transaction()?;
        let version = transaction.statement(false).await?;
        let mut tables = 0;
        for (id, table) in version.tables() {
            let Some(name) = version.table_name(id).filter(|name| is_kept(&name.schema)) else {
                continue;
            };
            if MaterializedView::find(&version, name)?.is_some() {
                continue;
            }
            let file = directory.join(file_of(name, table));
            let copy = format!("COPY (SELECT * FROM {}) TO '{}'", full(name), text(&file));
            self.run_to_end(&transaction, &copy).await?;
            tables += 1;
        }
        // Written last, so that a partial export cannot be imported.
        let load = load_script(&self.planner(&transaction, false).await?, &version)?;
        std::fs::write(directory.join(LOAD), load)
            .map_err(|error| failed("written", directory, &error))?;
        Ok(format!("EXPORT DATABASE {tables}"))
    }

    /// Runs the script of an exported database.
    async fn import(&self, directory: &Path) -> Result<String> {
        check_files(self.may_use_files(), "IMPORT DATABASE")?;
        let script = directory.join(LOAD);
        let script = std::fs::read_to_string(script);
        let script = script.map_err(|error| failed("read", directory, &error))?;
        let statements =
            split_statements(&script).map_err(|error| exec_datafusion_err!("{LOAD}: {error}"))?;
        let transaction = self.statement_transaction()?;
        let before = self.naming();
        self.set_naming(Self::naming_of_scripts(&before));
        let loaded = self.load(&transaction, &statements, directory).await;
        self.set_naming(before);
        loaded?;
        transaction.finish(self.database()).await?;
        Ok(format!("IMPORT DATABASE {}", statements.len()))
    }

    async fn load(
        &self,
        transaction: &StatementTransaction,
        statements: &[Statement],
        directory: &Path,
    ) -> Result<()> {
        for statement in statements {
            self.run_to_end(transaction, &in_directory(&statement.text, directory)).await?;
        }
        Ok(())
    }

    /// The settings that determine the meaning of names and texts.
    fn naming(&self) -> (CatalogOptions, SqlParserOptions) {
        let state = self.context.state_ref();
        let state = state.read();
        let options = state.config_options();
        (options.catalog.clone(), options.sql_parser.clone())
    }

    /// The settings with which a script begins, whatever the session's are.
    fn naming_of_scripts(
        (catalog, sql_parser): &(CatalogOptions, SqlParserOptions),
    ) -> (CatalogOptions, SqlParserOptions) {
        let of = SqlParserOptions::default();
        let (mut catalog, mut sql_parser) = (catalog.clone(), sql_parser.clone());
        catalog.default_schema = SCHEMA.to_owned();
        sql_parser.dialect = of.dialect;
        sql_parser.enable_ident_normalization = of.enable_ident_normalization;
        (catalog, sql_parser)
    }

    fn set_naming(&self, (catalog, sql_parser): (CatalogOptions, SqlParserOptions)) {
        let state = self.context.state_ref();
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        (options.catalog, options.sql_parser) = (catalog, sql_parser);
    }

    /// Runs a statement as part of a transaction.
    async fn run_to_end(&self, transaction: &StatementTransaction, sql: &str) -> Result<()> {
        let within = StatementTransaction { is_own: false, ..transaction.clone() };
        let statement = self.parse(sql)?;
        let result = Box::pin(self.run_in(&within, &statement, None, sql)).await?;
        result.collect().await.map(drop).map_err(|error| exec_datafusion_err!("{sql}: {error}"))
    }
}

fn failed(
    what: &str,
    directory: &Path,
    error: &std::io::Error,
) -> datafusion::common::DataFusionError {
    exec_datafusion_err!("'{}' cannot be {what}: {error}", directory.display())
}

/// A path as an SQL string.
fn text(path: &Path) -> String {
    path.display().to_string().replace('\'', "''")
}

/// A statement of the script, whose file names are relative to the directory.
fn in_directory(statement: &str, directory: &Path) -> String {
    match statement.rfind(FROM_FILE).filter(|_| statement.starts_with("CREATE TABLE ")) {
        Some(at) => {
            let (before, file) = statement.split_at(at + FROM_FILE.len());
            format!("{before}{}/{file}", text(directory))
        }
        None => statement.to_owned(),
    }
}
