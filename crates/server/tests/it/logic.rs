//! The sqllogictest suite of the SQL engine, asked over PostgreSQL's protocol.
//!
//! Every statement is prepared, which tells the types of its columns, and then sent as text. PostgreSQL
//! writes some values otherwise than the suite does (`t` for `true`), so that each is brought into the
//! form of the suite by its type; of lists, structs, maps and intervals only letters and digits are compared.

use std::path::{Path, PathBuf};

use sqllogictest::{DB, DBOutput, DefaultColumnType, Normalizer, Runner};
use tokio::runtime::Runtime;
use tokio_postgres::types::{Kind, Type};
use tokio_postgres::{Client, Config, Error, NoTls, SimpleQueryMessage};

use crate::login::as_owner;
use crate::support::{TestServer, block_on};

/// Stands before a value of which only letters and digits are compared.
const LOOSE: char = '\u{1}';

/// A connection, and the thread that drives it.
struct Connection {
    runtime: Runtime,
    client: Client,
}

impl Connection {
    fn of(server: &TestServer) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a thread");
        let mut config = Config::new();
        config.host(server.address.ip().to_string()).port(server.address.port());
        config.user("boss").password("b").dbname("atoll");
        let client = runtime.block_on(async {
            let (client, connection) = config.connect(NoTls).await.expect("the server answers");
            tokio::spawn(connection);
            client
        });
        Self { runtime, client }
    }

    async fn rows(&self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let types: Vec<Type> = match self.client.prepare(sql).await {
            Ok(prepared) => prepared.columns().iter().map(|c| c.type_().clone()).collect(),
            Err(error) => return Err(Failure(error)),
        };
        let messages = self.client.simple_query(sql).await.map_err(Failure)?;
        if types.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let cells = |row: &tokio_postgres::SimpleQueryRow| {
            types.iter().enumerate().map(|(at, of)| cell(of, row.get(at))).collect()
        };
        let rows = rows.map(cells).collect();
        Ok(DBOutput::Rows { types: types.iter().map(kind).collect(), rows })
    }
}

impl DB for Connection {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        // The suite names its files from the folder of the SQL engine.
        let sql = sql.replace("tests/files/", "../sql/tests/files/");
        self.runtime.block_on(self.rows(&sql))
    }

    fn engine_name(&self) -> &'static str {
        "Atoll"
    }
}

/// What the server answered, with all its parts.
#[derive(Debug)]
struct Failure(Error);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(told) = self.0.as_db_error() else { return write!(f, "{:?}", self.0) };
        write!(f, "{}", told.message())?;
        [told.detail(), told.hint()]
            .into_iter()
            .flatten()
            .try_for_each(|part| write!(f, "\n{part}"))
    }
}

impl std::error::Error for Failure {}

fn kind(of: &Type) -> DefaultColumnType {
    match *of {
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => DefaultColumnType::Integer,
        Type::FLOAT4 | Type::FLOAT8 => DefaultColumnType::FloatingPoint,
        // Decimals, and whole numbers that no type of PostgreSQL holds.
        Type::NUMERIC => DefaultColumnType::Any,
        _ => DefaultColumnType::Text,
    }
}

/// A value as the suite writes it.
fn cell(of: &Type, text: Option<&str>) -> String {
    let Some(text) = text else { return "NULL".to_owned() };
    let is_container = matches!(of.kind(), Kind::Array(_));
    match *of {
        Type::BOOL => if text == "t" { "true" } else { "false" }.to_owned(),
        Type::FLOAT4 => text.parse::<f32>().expect("a float").to_string(),
        Type::FLOAT8 => text.parse::<f64>().expect("a float").to_string(),
        Type::TIMESTAMP => text.replacen(' ', "T", 1),
        Type::TIMESTAMPTZ => with_zone(&text.replacen(' ', "T", 1)),
        Type::BYTEA => text.trim_start_matches("\\x").to_owned(),
        Type::JSON | Type::INTERVAL => format!("{LOOSE}{text}"),
        _ if is_container => format!("{LOOSE}{text}"),
        _ if text.is_empty() => "(empty)".to_owned(),
        _ => text.to_owned(),
    }
}

/// `+00` is written as `Z`, `+01` as `+01:00`.
fn with_zone(text: &str) -> String {
    match text.len().checked_sub(3).map(|at| text.split_at(at)) {
        Some((moment, "+00")) => format!("{moment}Z"),
        Some((_, zone)) if zone.starts_with(['+', '-']) => format!("{text}:00"),
        _ => text.to_owned(),
    }
}

fn is_same(normalize: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    let is_loose = actual.iter().flatten().any(|cell| cell.starts_with(LOOSE));
    let actual: Vec<String> = actual.iter().map(|row| normalize(&row.join(" "))).collect();
    let expected: Vec<String> = expected.iter().map(normalize).collect();
    actual == expected || (is_loose && loosened(&actual) == loosened(&expected))
}

/// Letters and digits of each row, in an order that quotes and brackets do not change.
fn loosened(rows: &[String]) -> Vec<String> {
    let kept = |row: &String| row.chars().filter(|c| c.is_alphanumeric()).collect();
    let mut rows: Vec<String> = rows.iter().map(kept).collect();
    rows.sort();
    rows
}

fn columns_fit(actual: &Vec<DefaultColumnType>, expected: &Vec<DefaultColumnType>) -> bool {
    let fits = |(a, e): (&DefaultColumnType, &DefaultColumnType)| {
        a == e || (*a == DefaultColumnType::Any && *e != DefaultColumnType::Text)
    };
    actual.len() == expected.len() && actual.iter().zip(expected).all(fits)
}

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/tests/slt");
    let entries = std::fs::read_dir(directory).expect("the suite is there");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the suite can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .collect();
    files.sort();
    files
}

/// Every file in a database of its own, and what fails in it.
fn failure_of(file: &Path) -> Option<String> {
    let server = TestServer::with_passwords();
    block_on(as_owner(&server, &["CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'b'"]));
    let mut runner = Runner::new(|| {
        let connection = Connection::of(&server);
        async move { Ok(connection) }
    });
    runner.with_validator(is_same);
    runner.with_column_validator(columns_fit);
    runner.run_file(file).err().map(|error| error.display(false).to_string())
}

#[test]
fn the_suite_holds_over_the_protocol() {
    let failures: Vec<String> = files().iter().filter_map(|file| failure_of(file)).collect();
    assert!(failures.is_empty(), "{} files fail:\n{}", failures.len(), failures.join("\n\n"));
}
