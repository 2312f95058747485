//! PostgreSQL as the reference engine: a session of a server, and queries in its dialect.
//!
//! ```text
//! DOUBLE, TINYINT                      DOUBLE PRECISION, SMALLINT
//! VARCHAR                              VARCHAR COLLATE "C" in tables: texts in the order of their bytes
//! CAST([1, NULL] AS INT[])             CAST(ARRAY[1, NULL] AS INT[])
//! range(1, n) AS r(k)                  generate_series(1, n - 1) AS r(k)
//! ```
//!
//! The server is the one that PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE name. The tables are temporary.
//! Queries that PostgreSQL refuses are not compared.

use std::time::Duration;

use anyhow::{Context, Result};
use atoll_bench::protocol::{Answer, Kind};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage, SimpleQueryRow};

use crate::outcome::EngineOutcome;

/// A session.
pub(crate) struct Postgres {
    runtime: Runtime,
    client: Client,
    /// What made its tables; None if that failed halfway.
    setup: Option<Vec<String>>,
}

impl Postgres {
    /// Connects to the server that the environment names; no statement takes longer than `patience`.
    pub(crate) fn start(patience: Duration) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let config = config()?;
        let (client, connection) = runtime.block_on(config.connect(NoTls)).with_context(
            || "cannot reach PostgreSQL; PGHOST, PGPORT, PGUSER and PGPASSWORD set its address and login",
        )?;
        runtime.spawn(connection);
        let settings = format!(
            "SET statement_timeout = {}; SET search_path = pg_temp; SET timezone = 'UTC'; \
             SET extra_float_digits = 1; SET datestyle = 'ISO'",
            patience.as_millis()
        );
        runtime.block_on(client.batch_execute(&settings))?;
        Ok(Self { runtime, client, setup: None })
    }

    /// The answer over the tables that `setup` makes.
    pub(crate) fn ask(&mut self, setup: &[String], sql: &str) -> EngineOutcome {
        if self.setup.as_deref() != Some(setup) {
            self.setup = None;
            if let Err(error) = self.make(setup) {
                return EngineOutcome::Error(format!(
                    "cannot create the tables: {}",
                    error_text(&error)
                ));
            }
            self.setup = Some(setup.to_vec());
        }
        match self.answer(&translated(sql)) {
            Ok(answer) => EngineOutcome::Rows(answer),
            Err(error) => EngineOutcome::Error(error_text(&error)),
        }
    }

    fn make(&self, setup: &[String]) -> Result<(), tokio_postgres::Error> {
        self.runtime.block_on(async {
            self.client.batch_execute("DISCARD TEMP").await?;
            for statement in setup {
                self.client.batch_execute(&translated(statement)).await?;
            }
            Ok(())
        })
    }

    fn answer(&self, sql: &str) -> Result<Answer, tokio_postgres::Error> {
        self.runtime.block_on(async {
            let prepared = self.client.prepare(sql).await?;
            let types: Vec<Type> =
                prepared.columns().iter().map(|column| column.type_().clone()).collect();
            let messages = self.client.simple_query(sql).await?;
            let rows = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(texts(row, &types)),
                _ => None,
            });
            let columns = types.iter().map(kind).collect();
            Ok(Answer { query: 0, ms: 0.0, columns, values: rows.collect() })
        })
    }
}

/// The server that the environment names.
fn config() -> Result<Config> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut config = Config::new();
    config.host(variable("PGHOST").unwrap_or_else(|| "localhost".to_owned()));
    if let Some(port) = variable("PGPORT") {
        config.port(port.parse().with_context(|| format!("PGPORT is '{port}', not a number"))?);
    }
    let user = variable("PGUSER").or_else(|| variable("USER"));
    config.user(user.unwrap_or_else(|| "postgres".to_owned()));
    if let Some(password) = variable("PGPASSWORD") {
        config.password(password);
    }
    if let Some(database) = variable("PGDATABASE") {
        config.dbname(database);
    }
    Ok(config)
}

fn error_text(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
}

/// The kind of a column.
fn kind(of: &Type) -> Kind {
    match *of {
        Type::INT2 | Type::INT4 | Type::INT8 => Kind::Integer,
        Type::FLOAT4 | Type::FLOAT8 => Kind::Float,
        Type::NUMERIC => Kind::Decimal,
        _ => Kind::Text,
    }
}

fn texts(row: &SimpleQueryRow, types: &[Type]) -> Vec<Option<String>> {
    let text = |(at, of): (usize, &Type)| row.get(at).map(|text| as_ours(text, of));
    types.iter().enumerate().map(text).collect()
}

/// A text as the other engines write it.
fn as_ours(text: &str, of: &Type) -> String {
    match *of {
        Type::BOOL => (if text == "t" { "true" } else { "false" }).to_owned(),
        // Other engines widen REAL before they write it: 1e+38 is 9.999999680285692e+37.
        Type::FLOAT4 => text
            .parse::<f32>()
            .map_or_else(|_| text.to_owned(), |value| f64::from(value).to_string()),
        Type::TIMESTAMP | Type::TIMESTAMPTZ => text.replacen(' ', "T", 1),
        Type::INT2_ARRAY | Type::INT4_ARRAY | Type::INT8_ARRAY => {
            let items = text.trim_matches(['{', '}']).replace("NULL", "").replace(',', ", ");
            format!("[{items}]")
        }
        _ => text.to_owned(),
    }
}

/// A statement in PostgreSQL's dialect.
fn translated(sql: &str) -> String {
    let mut sql = sql.to_owned();
    if sql.starts_with("CREATE TABLE") {
        for (ours, theirs) in [
            ("VARCHAR", "VARCHAR COLLATE \"C\""),
            ("DOUBLE", "DOUBLE PRECISION"),
            ("TINYINT", "SMALLINT"),
        ] {
            sql = sql.replace(ours, theirs);
        }
        return sql;
    }
    for (ours, theirs) in [
        (" AS DOUBLE)", " AS DOUBLE PRECISION)"),
        (" AS TINYINT)", " AS SMALLINT)"),
        (" AS VARCHAR)", " AS VARCHAR) COLLATE \"C\""),
        ("CAST([", "CAST(ARRAY["),
        ("ARRAY(SELECT", "ARRAY (SELECT"),
    ] {
        sql = sql.replace(ours, theirs);
    }
    series(&sql)
}

/// `range(1, n)`, which ends before n.
fn series(sql: &str) -> String {
    let Some((before, rest)) = sql.split_once("range(1, ") else { return sql.to_owned() };
    let Some((count, after)) = rest.split_once(')') else { return sql.to_owned() };
    format!("{before}generate_series(1, {count} - 1){after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_in_postgresqls_words() {
        assert_eq!(
            translated("CREATE TABLE t (a VARCHAR, b DOUBLE, c TINYINT)"),
            "CREATE TABLE t (a VARCHAR COLLATE \"C\", b DOUBLE PRECISION, c SMALLINT)"
        );
        assert_eq!(
            translated(
                "SELECT CAST('1' AS DOUBLE), CAST([1, NULL] AS INT[]) FROM t, range(1, 9) AS r(k)"
            ),
            "SELECT CAST('1' AS DOUBLE PRECISION), CAST(ARRAY[1, NULL] AS INT[]) \
             FROM t, generate_series(1, 9 - 1) AS r(k)"
        );
    }

    #[test]
    fn values_are_written_as_those_of_the_other_engines() {
        assert_eq!(as_ours("t", &Type::BOOL), "true");
        assert_eq!(as_ours("2024-01-05 10:11:12.5", &Type::TIMESTAMP), "2024-01-05T10:11:12.5");
        assert_eq!(as_ours("{1,NULL,3}", &Type::INT4_ARRAY), "[1, , 3]");
        assert_eq!(as_ours("{}", &Type::INT4_ARRAY), "[]");
    }
}
