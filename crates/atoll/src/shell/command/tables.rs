//! `.tables`, `.schema` and `.functions`, answered by system tables.

use atoll_sql::Session;
use atoll_sql::arrow::array::Array;
use atoll_sql::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::super::Shell;
use super::super::stop::Stop;
use atoll_topology::nearest_name;

const TABLES: &str = "SELECT table_schema AS schema, table_name AS name, table_type AS type \
                      FROM information_schema.tables \
                      WHERE table_schema <> 'information_schema' ORDER BY 1, 2";

impl Shell {
    pub(super) async fn tables(&mut self) -> Result<(), Stop> {
        self.run_plainly(TABLES).await
    }

    /// The functions whose name or other name is like a pattern.
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

    pub(super) async fn columns_of(&mut self, table: &str) -> Result<(), Stop> {
        let (schema, name) = table.rsplit_once('.').unwrap_or(("public", table));
        let place = format!(
            "FROM information_schema.columns WHERE table_schema = {} AND table_name = {}",
            quoted(schema),
            quoted(name)
        );
        let found = texts(&self.session, &format!("SELECT column_name {place}")).await?;
        if found.is_empty() {
            return Err(self.unknown(table, name).await?);
        }
        self.run_plainly(&format!(
            "SELECT column_name AS column, data_type AS type, is_nullable AS nullable {place} \
             ORDER BY ordinal_position"
        ))
        .await
    }

    async fn unknown(&self, table: &str, name: &str) -> Result<Stop, Stop> {
        let names = format!("SELECT name FROM ({TABLES})");
        let names = texts(&self.session, &names).await?;
        let help = match nearest_name(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => ".tables lists the tables".to_owned(),
        };
        Ok(Stop::failed(format!("table {table} does not exist; {help}")))
    }

    /// Runs a query of our own, which is neither explained nor told.
    async fn run_plainly(&mut self, query: &str) -> Result<(), Stop> {
        let settings = self.settings.clone();
        self.settings.explain = Default::default();
        self.settings.echo = false;
        self.settings.timer = false;
        let done = self.run_statement(query, 1).await;
        self.settings = settings;
        done
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// First column of a query's result as text.
async fn texts(session: &Session, query: &str) -> Result<Vec<String>, Stop> {
    let result = session.run(query).await.map_err(|error| Stop::sql(error, 1, 0))?;
    let batches = result.collect().await.map_err(|error| Stop::sql(error, 1, 0))?;
    let mut texts = Vec::new();
    for batch in &batches {
        let column = batch.column(0);
        let options = FormatOptions::new();
        let formatter = ArrayFormatter::try_new(column.as_ref(), &options)
            .map_err(|error| Stop::failed(error.to_string()))?;
        texts.extend((0..column.len()).map(|row| formatter.value(row).to_string()));
    }
    Ok(texts)
}
