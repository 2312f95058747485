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
//! LOCK TABLE                          nothing: `lock_table.rs`
//! ```

use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atoll_store::SequenceId;
use atoll_store::database::{
    Database, DatabaseVersion, Relation, RelationName, SequenceDefinition, StoredStatement,
    is_temporary_schema,
};
use atoll_store::table::{Identity, IdentityKind, TableDefinition, TableVersion};
use datafusion::common::config::{CatalogOptions, SqlParserOptions};
use datafusion::common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::catalog::{ObjectComments, user_types};
use crate::role::is_hidden;
use crate::role::rights::Owned;
use crate::session::Session;
use crate::session::ddl::create::sequence_of;
use crate::session::ddl::foreign_key::SetConstraints;
use crate::session::ddl::views::views_in_order;
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::lock_table::LockStatement;
use crate::session::statement::pool_statement::PoolStatement;
use crate::session::statement::query_result::QueryResult;
use crate::session::statement::split::{Statement, split_statements};
use crate::session::statement::vacuum::VacuumStatement;
use crate::session::transaction::StatementTransaction;
use crate::table_text::{foreign_key_text, identity_words, index_text, unique_index_text};
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::SCHEMA;
use atoll_sql_common::user_type::{UserTypes, enum_oid};
use atoll_sql_files::check_files;
use atoll_sql_files::has_interval;
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
        if let Some(set) = SetConstraints::parse(sql)? {
            return Ok(Some(Self::SetConstraints(set)));
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

const FROM_FILE: &str = "AS SELECT * FROM '";

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

/// The file of a table: letters, digits and `_` of its name, and all else by number, so that two tables never share
/// one. It is a Parquet file, or an Arrow file for intervals, some of which Parquet cannot hold.
fn file_of(name: &RelationName, table: &TableVersion) -> String {
    let plain = |name: &str| {
        let mut plain = String::with_capacity(name.len());
        for letter in name.chars() {
            match letter.is_alphanumeric() || letter == '_' {
                true => plain.push(letter),
                false => drop(write!(plain, "-{:x}-", u32::from(letter))),
            }
        }
        plain
    };
    let mut columns = table.definition().columns.fields().iter();
    let has_intervals = columns.any(|column| has_interval(column.data_type()));
    let ending = if has_intervals { "arrow" } else { "parquet" };
    format!("{}.{}.{ending}", plain(&name.schema), plain(&name.name))
}

fn full(name: &RelationName) -> String {
    format!("{}.{}", quoted(&name.schema), quoted(&name.name))
}

/// The statements that recreate a database.
fn load_script(planner: &StatementPlanner, version: &DatabaseVersion) -> Result<String> {
    let mut script = String::new();
    for schema in version.schemas().filter(|schema| &***schema != SCHEMA && is_kept(schema)) {
        line(&mut script, &format!("CREATE SCHEMA {}", quoted(schema)));
    }
    for of in user_types(version).iter().filter(|of| is_kept(&of.schema)) {
        line(&mut script, &of.definition());
    }
    let relations = || version.relations().filter(|(name, _)| is_kept(&name.schema));
    let owned: HashSet<SequenceId> = version
        .tables()
        .flat_map(|(_, table)| table.definition().identities.iter().flatten())
        .filter(|identity| identity.kind != IdentityKind::Serial)
        .map(|identity| identity.sequence)
        .collect();
    let store = planner.database.store();
    let mut made = HashSet::new();
    let types = planner.names.user_types();
    for (name, relation) in relations() {
        if let Relation::Sequence(id) = relation
            && !owned.contains(id)
            && let Some(sequence) = version.sequence(*id)
        {
            let options = options_of(&sequence.definition);
            line(&mut script, &format!("CREATE SEQUENCE {} {options}", full(name)));
            write_last(&mut script, name, store.last_value(*id, sequence));
            made.insert(name.clone());
        }
    }
    for (name, relation) in relations() {
        if let Relation::Table(id) = relation
            && let Some(table) = version.table(*id)
        {
            made.insert(name.clone());
            write_table(&mut script, name, table, &types);
            write_identities(&mut script, (version, store), (name, table), &mut made)?;
        }
    }
    for (name, relation) in relations() {
        if let Relation::Table(id) = relation
            && let Some(table) = version.table(*id)
        {
            write_indexes(&mut script, name, table.definition());
        }
    }
    for (name, relation) in relations() {
        if let Relation::Table(id) = relation
            && let Some(table) = version.table(*id)
        {
            write_foreign_keys(&mut script, version, name, table.definition());
        }
    }
    let external = relations().filter_map(|(_, relation)| match relation {
        Relation::External(text) => Some(Arc::clone(text)),
        _ => None,
    });
    let mut texts: Vec<_> = external.collect();
    texts.extend(views_in_order(planner, version)?);
    let begins_with = SettingsOfText::default();
    let mut settings = begins_with.clone();
    for text in texts {
        settings = settings.set(SettingsOfText::from_stored(&text), &mut script);
        line(&mut script, text.sql.trim_end_matches([';', ' ', '\n']));
    }
    settings.set(begins_with, &mut script);
    write_comments(&mut script, version);
    Ok(script)
}

/// The settings under which a text was written, with their values.
#[derive(Clone)]
struct SettingsOfText([(&'static str, String); 3]);

impl Default for SettingsOfText {
    fn default() -> Self {
        Self::plain(SCHEMA)
    }
}

impl SettingsOfText {
    fn with(dialect: &str, normalizes: &str, schema: &str) -> Self {
        Self([
            ("datafusion.sql_parser.dialect", dialect.to_owned()),
            ("datafusion.sql_parser.enable_ident_normalization", normalizes.to_owned()),
            ("datafusion.catalog.default_schema", schema.to_owned()),
        ])
    }

    fn plain(schema: &str) -> Self {
        let of = SqlParserOptions::default();
        let normalizes = of.enable_ident_normalization.to_string();
        Self::with(of.dialect.as_ref(), &normalizes, schema)
    }

    fn from_stored(text: &StoredStatement) -> Self {
        match text.options.split(' ').collect::<Vec<_>>()[..] {
            [dialect, normalizes, ..] => Self::with(dialect, normalizes, &text.schema),
            _ => Self::plain(&text.schema),
        }
    }

    /// Writes the settings that differ from these.
    fn set(self, wanted: Self, script: &mut String) -> Self {
        for ((_, before), (name, value)) in self.0.iter().zip(&wanted.0) {
            if before != value {
                line(script, &format!("SET {name} = '{}'", value.replace('\'', "''")));
            }
        }
        wanted
    }
}

/// Writes COMMENT ON statements for all objects.
fn write_comments(script: &mut String, version: &DatabaseVersion) {
    let mut comment = |on: String, text: &str| {
        line(script, &format!("COMMENT ON {on} IS '{}'", text.replace('\'', "''")));
    };
    for schema in version.schemas().filter(|schema| is_kept(schema)) {
        let comments = ObjectComments::for_object(version, &Owned::Schema(schema.to_string()));
        comments.own.iter().for_each(|own| comment(format!("SCHEMA {}", quoted(schema)), own));
    }
    for (name, relation) in version.relations().filter(|(name, _)| is_kept(&name.schema)) {
        let comments = ObjectComments::for_object(version, &Owned::Relation(name.clone()));
        let (kind, full) = (relation.kind().to_uppercase(), full(name));
        comments.own.iter().for_each(|own| comment(format!("{kind} {full}"), own));
        for (column, text) in &comments.columns {
            comment(format!("COLUMN {full}.{}", quoted(column)), text);
        }
        for (constraint, text) in &comments.constraints {
            comment(format!("CONSTRAINT {} ON {full}", quoted(constraint)), text);
        }
    }
}

fn line(script: &mut String, statement: &str) {
    script.push_str(statement);
    script.push_str(";\n");
}

pub(in crate::session) fn options_of(sequence: &SequenceDefinition) -> String {
    let SequenceDefinition { increment, min, max, start, cycle, cache } = sequence;
    let cycle = if *cycle { " CYCLE" } else { "" };
    format!(
        "INCREMENT BY {increment} MINVALUE {min} MAXVALUE {max} START {start} CACHE {cache}{cycle}"
    )
}

/// Restores the position of a sequence.
fn write_last(script: &mut String, name: &RelationName, last: Option<i64>) {
    if let Some(last) = last {
        let name = full(name).replace('\'', "''");
        line(script, &format!("SELECT setval('{name}', {last})"));
    }
}

/// Loads the table from its file, then adds its declarations.
fn write_table(script: &mut String, name: &RelationName, table: &TableVersion, types: &UserTypes) {
    let definition = table.definition();
    let (full, file) = (full(name), file_of(name, table).replace('\'', "''"));
    let placement = definition.placement;
    line(
        script,
        &format!("CREATE TABLE {full} WITH (placement = '{placement}') {FROM_FILE}{file}'"),
    );
    let retyped = definition.columns.fields().iter().filter_map(|field| {
        let of = types.of_values(field.data_type())?.shown(false);
        let list = if enum_oid(field.data_type()).is_none() { "[]" } else { "" };
        Some(format!("ALTER COLUMN {} SET DATA TYPE {of}{list}", quoted(field.name())))
    });
    let retyped: Vec<String> = retyped.collect();
    if !retyped.is_empty() {
        line(script, &format!("ALTER TABLE {full} {}", retyped.join(", ")));
    }
    let declared = declared(definition);
    if !declared.is_empty() {
        line(script, &format!("ALTER TABLE {full} {}", declared.join(", ")));
    }
}

/// Indexes that are not those of constraints.
fn write_indexes(script: &mut String, name: &RelationName, definition: &TableDefinition) {
    for unique in definition.uniques.iter().filter(|unique| unique.is_index) {
        line(script, &unique_index_text(unique, name, definition));
    }
    for index in &definition.indexes {
        line(script, &index_text(index, name, definition));
    }
}

/// Foreign keys, once all tables exist.
fn write_foreign_keys(
    script: &mut String,
    version: &DatabaseVersion,
    name: &RelationName,
    definition: &TableDefinition,
) {
    for key in &definition.foreign_keys {
        let text = foreign_key_text(key, definition, version, true);
        let (table, key) = (full(name), quoted(&key.name));
        line(script, &format!("ALTER TABLE {table} ADD CONSTRAINT {key} {text}"));
    }
}

/// Identities with the names and positions of their sequences; `made` are the names that exist at this point of the
/// script.
fn write_identities(
    script: &mut String,
    (version, store): (&DatabaseVersion, &Database),
    (table, stored): (&RelationName, &TableVersion),
    made: &mut HashSet<RelationName>,
) -> Result<()> {
    let definition = stored.definition();
    let identities = definition.columns.fields().iter().zip(&definition.identities);
    for (column, identity) in identities {
        let Some(Identity { kind, sequence: id }) = identity else { continue };
        let (Some(sequence), Some(name)) = (version.sequence(*id), version.sequence_name(*id))
        else {
            return exec_err!("sequence {id} of an identity is not there");
        };
        let (full_table, column_name) = (full(table), quoted(column.name()));
        if *kind == IdentityKind::Serial {
            let owned =
                format!("ALTER SEQUENCE {} OWNED BY {full_table}.{column_name}", full(name));
            line(script, &owned);
            continue;
        }
        let kind = identity_words(*kind);
        let options = options_of(&sequence.definition);
        line(
            script,
            &format!(
                "ALTER TABLE {full_table} ALTER COLUMN {column_name} ADD GENERATED {kind} AS IDENTITY ({options})"
            ),
        );
        let given = sequence_of(table, column.name(), |name| made.contains(name));
        if given != *name {
            let rename =
                format!("ALTER SEQUENCE {} RENAME TO {}", full(&given), quoted(&name.name));
            line(script, &rename);
        }
        write_last(script, name, store.last_value(*id, sequence));
        made.insert(name.clone());
    }
    Ok(())
}

fn declared(definition: &TableDefinition) -> Vec<String> {
    let mut parts = Vec::new();
    for (at, field) in definition.columns.fields().iter().enumerate() {
        let column = quoted(field.name());
        if !field.is_nullable() {
            parts.push(format!("ALTER COLUMN {column} SET NOT NULL"));
        }
        if definition.identity(at).is_none()
            && let Some(default) = &definition.defaults[at]
        {
            parts.push(format!("ALTER COLUMN {column} SET DEFAULT {default}"));
        }
    }
    for unique in definition.uniques.iter().filter(|unique| !unique.is_index) {
        let kind = if unique.is_primary { "PRIMARY KEY" } else { "UNIQUE" };
        let columns = unique.columns.iter().map(|at| quoted(definition.columns.field(*at).name()));
        let columns: Vec<String> = columns.map(|column| column.to_string()).collect();
        let name = quoted(&unique.name);
        parts.push(format!("ADD CONSTRAINT {name} {kind} ({})", columns.join(", ")));
    }
    for check in &definition.checks {
        let mut part = format!("ADD CONSTRAINT {}", quoted(&check.name));
        let _ = write!(part, " CHECK ({})", check.sql);
        parts.push(part);
    }
    parts
}

/// Whether a schema is exported: internal ones and those of sessions are not.
fn is_kept(schema: &str) -> bool {
    !is_hidden(schema) && !is_temporary_schema(schema)
}
