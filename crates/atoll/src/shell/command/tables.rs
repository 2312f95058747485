//! `.tables`, `.views`, `.indexes`, `.schema`, `\d`, `.functions` and `\conninfo`, as queries of system tables.

use atoll_sql::Session;
use atoll_sql::arrow::array::Array;
use atoll_sql::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::super::Shell;
use super::super::stop::Stop;
use atoll_topology::nearest_name;

const TABLES: &str = "SELECT table_schema AS schema, table_name AS name, \
                      CASE table_type WHEN 'BASE TABLE' THEN 'TABLE' ELSE table_type END AS type \
                      FROM information_schema.tables WHERE";

/// The system schemas.
const OF_USERS: &str = "table_schema NOT IN ('information_schema', 'atoll')";

/// The PostgreSQL extensions that a database claims to have.
pub(super) const EXTENSIONS: &str = "SELECT extname AS name, extversion AS version, nspname AS schema \
                                     FROM pg_catalog.pg_extension \
                                     JOIN pg_catalog.pg_namespace n ON n.oid = extnamespace ORDER BY 1";

impl Shell {
    /// Prints the database, its location, and the user.
    pub(super) async fn connection(&mut self) -> Result<(), Stop> {
        let place = match self.session.database().directory() {
            Some(directory) => format!("in directory '{}'", directory.display()),
            None => "in memory".to_owned(),
        };
        let database = texts(&self.session, "SELECT current_database()").await?.join("");
        let user = texts(&self.session, "SELECT current_user").await?.join("");
        self.print(&format!("database \"{database}\" {place}, as user \"{user}\""))
    }

    /// Lists the indexes whose names match a pattern.
    pub(super) async fn indexes(&mut self, pattern: &str) -> Result<(), Stop> {
        let condition = if pattern.is_empty() { OF_USERS.to_owned() } else { named_like(pattern) };
        let query = format!(
            "SELECT table_schema AS schema, table_name AS name, tablename AS table, indexdef AS definition \
             FROM (SELECT schemaname AS table_schema, indexname AS table_name, tablename, indexdef \
             FROM pg_catalog.pg_indexes) indexes WHERE {condition} ORDER BY 1, 2"
        );
        self.run_plainly(&query).await
    }

    pub(super) async fn tables(&mut self, pattern: &str) -> Result<(), Stop> {
        let condition = if pattern.is_empty() { OF_USERS.to_owned() } else { named_like(pattern) };
        self.run_plainly(&format!("{TABLES} {condition} ORDER BY 1, 2")).await
    }

    /// Lists the functions whose name or alias matches a pattern.
    pub(super) async fn functions(&mut self, pattern: &str) -> Result<(), Stop> {
        let like = match pattern.contains(['*', '%']) {
            true => pattern.replace('*', "%"),
            false => format!("%{pattern}%"),
        };
        let like = quoted(&like.to_lowercase());
        let query = format!(
            "SELECT name, kind, arguments, description FROM atoll.functions WHERE name LIKE {like} \
             OR list_contains(list_transform(string_split(aliases, ', '), a -> a LIKE {like}), true) \
             ORDER BY name"
        );
        self.run_plainly(&query).await
    }

    pub(super) async fn views(&mut self, pattern: &str) -> Result<(), Stop> {
        let condition = if pattern.is_empty() { OF_USERS.to_owned() } else { named_like(pattern) };
        let query = format!("{TABLES} {condition} AND table_type = 'VIEW' ORDER BY 1, 2");
        self.run_plainly(&query).await
    }

    /// Prints the statements that create tables, views and indexes.
    pub(super) async fn definitions(&mut self, pattern: &str) -> Result<(), Stop> {
        let condition = if pattern.is_empty() { OF_USERS.to_owned() } else { named_like(pattern) };
        let query = format!(
            "SELECT '\"' || replace(table_schema, '\"', '\"\"') || '\".\"' || replace(table_name, '\"', '\"\"') \
             || '\"' FROM information_schema.tables WHERE {condition} ORDER BY table_type, table_schema, table_name"
        );
        let names = texts(&self.session, &query).await?;
        if names.is_empty() && !pattern.is_empty() {
            return Err(self.unknown(pattern).await?);
        }
        for name in names {
            let shown = format!("SHOW CREATE TABLE {name}");
            for text in column_texts(&self.session, &shown, 3).await? {
                let text = text.trim_end().trim_end_matches(';');
                if !text.is_empty() {
                    writeln!(self.target.writer(), "{text};")?;
                }
            }
            let indexes = format!(
                "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = {}::regclass \
                 AND indexrelid NOT IN (SELECT conindid FROM pg_constraint) ORDER BY 1",
                quoted(&name)
            );
            for text in texts(&self.session, &indexes).await? {
                writeln!(self.target.writer(), "{text};")?;
            }
        }
        Ok(self.target.writer().flush()?)
    }

    pub(super) async fn columns_of(&mut self, pattern: &str) -> Result<(), Stop> {
        let condition = if pattern.is_empty() { OF_USERS.to_owned() } else { named_like(pattern) };
        let names = texts(
            &self.session,
            &format!(
                "SELECT DISTINCT table_name FROM information_schema.columns WHERE {condition}"
            ),
        )
        .await?;
        if names.is_empty() && !pattern.is_empty() {
            return Err(self.unknown(pattern).await?);
        }
        let table = if names.len() == 1 { "" } else { "table_name AS table, " };
        self.run_plainly(&format!(
            "SELECT {table}column_name AS column, data_type AS type, is_nullable AS nullable \
             FROM information_schema.atoll_columns WHERE {condition} \
             ORDER BY table_schema, table_name, ordinal_position"
        ))
        .await
    }

    /// Whether a table or view has this name.
    pub(super) async fn has_table(&self, table: &str) -> Result<bool, Stop> {
        let parts = name_parts(table);
        let (name, schema) = match &parts[..] {
            [.., schema, name] => (name.as_str(), quoted(schema)),
            [name] => (name.as_str(), "current_schema()".to_owned()),
            [] => ("", "''".to_owned()),
        };
        let query = format!(
            "SELECT table_name FROM information_schema.tables \
             WHERE table_schema = {schema} AND table_name = {}",
            quoted(name)
        );
        Ok(!texts(&self.session, &query).await?.is_empty())
    }

    async fn unknown(&self, table: &str) -> Result<Stop, Stop> {
        let name = table.rsplit_once('.').map_or(table, |(_, name)| name);
        let names = format!("SELECT table_name FROM information_schema.tables WHERE {OF_USERS}");
        let names = texts(&self.session, &names).await?;
        let help = match nearest_name(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => ".tables lists the tables".to_owned(),
        };
        Ok(Stop::failed(format!("table {table} does not exist; {help}")))
    }

    /// Runs an internal query, without explaining or echoing it.
    pub(super) async fn run_plainly(&mut self, query: &str) -> Result<(), Stop> {
        let settings = self.settings.clone();
        self.settings.explain = Default::default();
        self.settings.echo = false;
        self.settings.timer = false;
        let done = self.run_statement(query, 1).await;
        self.settings = settings;
        done
    }
}

/// Splits a name into parts; unquoted ones become lower case.
fn name_parts(name: &str) -> Vec<String> {
    let (mut parts, mut part, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in name.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(std::mem::take(&mut part)),
            letter if is_quoted => part.push(letter),
            letter => part.extend(letter.to_lowercase()),
        }
    }
    parts.push(part);
    parts
}

/// The condition on tables for a pattern: `*` and `%` match any text, `?` a character. A pattern without a schema
/// matches user tables only.
fn named_like(pattern: &str) -> String {
    let like = |pattern: &str| {
        let escaped = pattern.to_lowercase().replace('\\', "\\\\").replace('_', "\\_");
        quoted(&escaped.replace('*', "%").replace('?', "_"))
    };
    match pattern.rsplit_once('.') {
        Some((schema, name)) => {
            let (schema, name) = (like(schema), like(name));
            format!("lower(table_schema) LIKE {schema} AND lower(table_name) LIKE {name}")
        }
        None => format!("{OF_USERS} AND lower(table_name) LIKE {}", like(pattern)),
    }
}

/// A text as an SQL literal.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// First column of a query's result as texts.
async fn texts(session: &Session, query: &str) -> Result<Vec<String>, Stop> {
    column_texts(session, query, 0).await
}

/// A column of a query's result, from 0, as texts.
async fn column_texts(session: &Session, query: &str, at: usize) -> Result<Vec<String>, Stop> {
    let result = session.run(query).await.map_err(|error| Stop::sql(error, 1, 0))?;
    let batches = result.collect().await.map_err(|error| Stop::sql(error, 1, 0))?;
    let mut texts = Vec::new();
    for batch in &batches {
        let column = batch.column(at);
        let options = FormatOptions::new();
        let formatter = ArrayFormatter::try_new(column.as_ref(), &options)
            .map_err(|error| Stop::failed(error.to_string()))?;
        texts.extend((0..column.len()).map(|row| formatter.value(row).to_string()));
    }
    Ok(texts)
}
