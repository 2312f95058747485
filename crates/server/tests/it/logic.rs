//! The sqllogictest suite of the SQL engine over PostgreSQL's protocol.
//!
//! Every statement is prepared, to get its column types, and then sent as text. PostgreSQL writes some values
//! differently from the suite (`t` for `true`), so each is converted to the suite's format by its type; for lists,
//! structs, maps, times and intervals only words and numbers are compared.

use std::path::{Path, PathBuf};
use std::process::Command;

use atoll_sql::begins_with;
use sqllogictest::{DB, DBOutput, DefaultColumnType, Normalizer, Runner};
use tokio::runtime::Runtime;
use tokio_postgres::types::{Kind, Type};
use tokio_postgres::{Client, Config, Error, NoTls, SimpleQueryMessage, SimpleQueryRow};

use crate::login::as_owner;
use crate::support::{TestServer, block_on};

/// Marks a value of which only words and numbers are compared.
const LOOSE: char = '\u{1}';

/// A connection, and the thread that drives it.
struct Connection {
    runtime: Runtime,
    client: Client,
}

impl Connection {
    fn open(server: &TestServer) -> Self {
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
            return Ok(counted(sql, &messages));
        }
        let rows = rows_of(&messages);
        let cells = |row: &SimpleQueryRow| {
            types.iter().enumerate().map(|(at, of)| cell(of, row.get(at))).collect()
        };
        let rows = rows.map(cells).collect();
        Ok(DBOutput::Rows { types: types.iter().map(kind).collect(), rows })
    }
}

/// The result of a statement without rows: the suite asks those that change rows for their number.
fn counted(sql: &str, messages: &[SimpleQueryMessage]) -> DBOutput<DefaultColumnType> {
    // EXECUTE does not announce the columns of its statement.
    let mut rows = rows_of(messages).peekable();
    if let Some(first) = rows.peek() {
        let types = vec![DefaultColumnType::Any; first.len()];
        let cells = |row: &SimpleQueryRow| -> Vec<String> {
            (0..row.len()).map(|at| cell(&Type::TEXT, row.get(at))).collect()
        };
        return DBOutput::Rows { types, rows: rows.map(cells).collect() };
    }
    let count = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::CommandComplete(count) => Some(*count),
        _ => None,
    });
    match count {
        Some(count)
            if begins_with(sql, &["insert", "update", "delete", "merge", "execute", "with"]) =>
        {
            let rows = vec![vec![count.to_string()]];
            DBOutput::Rows { types: vec![DefaultColumnType::Integer], rows }
        }
        _ => DBOutput::StatementComplete(0),
    }
}

fn rows_of(messages: &[SimpleQueryMessage]) -> impl Iterator<Item = &SimpleQueryRow> {
    messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })
}

impl DB for Connection {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        self.runtime.block_on(self.rows(sql))
    }

    fn engine_name(&self) -> &'static str {
        // `skipif server` marks differences in PostgreSQL's protocol.
        "server"
    }
}

/// The complete error from the server.
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
        // Decimals, and integers too large for PostgreSQL's integer types.
        Type::NUMERIC => DefaultColumnType::Any,
        _ => DefaultColumnType::Text,
    }
}

/// A value in the suite's format.
fn cell(of: &Type, text: Option<&str>) -> String {
    let Some(text) = text else { return "NULL".to_owned() };
    let is_container = matches!(of.kind(), Kind::Array(_));
    match *of {
        Type::BOOL => if text == "t" { "true" } else { "false" }.to_owned(),
        Type::FLOAT4 => text.parse::<f32>().expect("a float").to_string(),
        Type::FLOAT8 => text.parse::<f64>().expect("a float").to_string(),
        // Fractional seconds have no trailing zeros.
        Type::TIMESTAMP | Type::TIME => format!("{LOOSE}{text}"),
        Type::TIMESTAMPTZ => format!("{LOOSE}{}", with_zone(text)),
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

/// Words and numbers of each row, without quotes and brackets, in an order that does not depend on them.
fn loosened(rows: &[String]) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let word = |word: &str| match word.parse::<f64>() {
        Ok(number) => number.to_string(),
        Err(_) => match word {
            "t" => "true",
            "f" => "false",
            "null" => "NULL",
            word => word,
        }
        .to_owned(),
    };
    let loosened = |row: &String| {
        let row = row.replace(LOOSE, "");
        let words = row.split(|c| !is_word(c)).filter(|it| !it.is_empty());
        // Between date and time.
        let words = words.flat_map(|it| match it.split_once('T') {
            Some((date, time)) if date.contains('-') => vec![date, time],
            _ => vec![it],
        });
        words.map(word).collect::<Vec<_>>().join(" ")
    };
    let mut rows: Vec<String> = rows.iter().map(loosened).collect();
    rows.sort();
    rows
}

fn columns_fit(actual: &[DefaultColumnType], expected: &[DefaultColumnType]) -> bool {
    let fits =
        |(a, e): (&DefaultColumnType, &DefaultColumnType)| a == e || *a == DefaultColumnType::Any;
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

/// Runs every file with its own database, and reports the failures.
fn failure_of(file: &Path) -> Option<String> {
    let server = TestServer::with_passwords();
    block_on(as_owner(&server, &["CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'b'"]));
    let mut runner = Runner::new(|| {
        let connection = Connection::open(&server);
        async move { Ok(connection) }
    });
    runner.with_validator(is_same);
    runner.with_column_validator(|actual, expected| columns_fit(actual, expected));
    runner.run_file(file).err().map(|error| error.display(false).to_string())
}

/// The suite's file names are relative to the SQL engine's folder, and the working directory belongs to the process, so
/// it runs in a separate process.
#[test]
fn the_suite_holds_over_the_protocol() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql");
    let own = std::env::current_exe().expect("the program of these tests");
    let mut command = Command::new(own);
    command.args(["--exact", "logic::the_suite_in_its_folder", "--ignored", "--nocapture"]);
    let status = command.current_dir(engine).status().expect("the program of these tests runs");
    assert!(status.success(), "what fails is above");
}

#[test]
#[ignore = "the test above runs it in the folder of the SQL engine"]
fn the_suite_in_its_folder() {
    let failures: Vec<String> = files().iter().filter_map(|file| failure_of(file)).collect();
    assert!(failures.is_empty(), "{} files fail:\n{}", failures.len(), failures.join("\n\n"));
}
