//! The sqllogictest suite in `tests/slt`; its README says how values are written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atoll_placement::{LiveKernel, Strategy};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::arrow::array::{Array, AsArray, RecordBatch};
use atoll_sql::arrow::datatypes::{DataType, Float32Type, Float64Type};
use atoll_sql::arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll_sql::{DatabaseOptions, Session, SqlError};
use atoll_testkit::machines;
use atoll_topology::Machine;
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner, strict_column_validator};

use crate::common::{fake, live, rows, run};

struct Engine(Session);

impl DB for Engine {
    type Error = SqlError;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, SqlError> {
        let batches = run(&self.0, sql)?;
        let Some(first) = batches.first() else { return self.without_rows(sql) };
        let types = first.schema().fields().iter().map(|f| kind(f.data_type())).collect();
        Ok(DBOutput::Rows { types, rows: batches.iter().flat_map(texts).collect() })
    }

    fn engine_name(&self) -> &'static str {
        "Atoll"
    }
}

impl Engine {
    /// A query without rows still has columns; a statement that returns none is complete.
    fn without_rows(&self, sql: &str) -> Result<DBOutput<DefaultColumnType>, SqlError> {
        let first = sql.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        if !matches!(first.as_str(), "SELECT" | "WITH" | "VALUES" | "SHOW" | "(SELECT" | "TABLE") {
            return Ok(DBOutput::StatementComplete(0));
        }
        let schema = self
            .0
            .runtime()
            .block_on(async { Ok::<_, SqlError>(self.0.run(sql).await?.schema().clone()) })?;
        let types = schema.fields().iter().map(|field| kind(field.data_type())).collect();
        Ok(DBOutput::Rows { types, rows: Vec::new() })
    }
}

fn kind(data_type: &DataType) -> DefaultColumnType {
    match data_type {
        _ if data_type.is_integer() => DefaultColumnType::Integer,
        _ if data_type.is_floating() => DefaultColumnType::FloatingPoint,
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

fn texts(batch: &RecordBatch) -> Vec<Vec<String>> {
    let columns: Vec<Vec<String>> = batch.columns().iter().map(|c| column_texts(c)).collect();
    (0..batch.num_rows()).map(|row| columns.iter().map(|c| c[row].clone()).collect()).collect()
}

fn column_texts(column: &dyn Array) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let formatter = ArrayFormatter::try_new(column, &options).expect("every type has a text");
    let text = |row: usize| match column.data_type() {
        _ if column.is_null(row) => "NULL".to_owned(),
        DataType::Float32 => column.as_primitive::<Float32Type>().value(row).to_string(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_string(),
        _ => match formatter.value(row).to_string() {
            empty if empty.is_empty() => "(empty)".to_owned(),
            text => text,
        },
    };
    (0..column.len()).map(text).collect()
}

fn files() -> Vec<PathBuf> {
    let directory = Path::new(&crate::common::crate_folder()).join("tests/slt");
    let entries = std::fs::read_dir(directory).expect("the suite is there");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the suite can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .collect();
    files.sort();
    files
}

/// Runs a file in a session; what is wrong.
fn failure(file: &Path, session: &Session) -> Option<String> {
    let mut runner = Runner::new(|| {
        let engine = Engine(session.clone());
        async move { Ok(engine) }
    });
    runner.with_column_validator(strict_column_validator);
    runner.run_file(file).err().map(|error| error.display(false).to_string())
}

/// The rows of all tables, in an order of their own.
fn contents(session: &Session) -> Vec<(String, Vec<Vec<String>>)> {
    let tables = "SELECT table_schema, table_name FROM information_schema.tables \
                  WHERE table_type = 'BASE TABLE' ORDER BY 1, 2";
    let named = |of: Vec<String>| format!("\"{}\"", of.join("\".\""));
    let filled = rows(session, tables).into_iter().map(named).map(|name| {
        let all = run(session, &format!("SELECT * FROM {name}")).expect(&name);
        let mut rows: Vec<_> = all.iter().flat_map(texts).collect();
        rows.sort();
        (name, rows)
    });
    filled.collect()
}

/// Runs a file over a data directory, which is opened again at its end; what is wrong, then or with what it left.
fn failure_in_directory(file: &Path, runtime: &Runtime) -> Option<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("database");
    let open = || {
        let options = DatabaseOptions { directory: Some(path.clone()), ..Default::default() };
        Session::new(runtime.clone(), options).expect("the directory is free")
    };
    let session = open();
    // Nothing pulls the plug here: waiting for the disk would be most of the time.
    rows(&session, "SET atoll.durability = 'async'");
    let failure = failure(file, &session);
    // Of a session of its own: under settings of the file, or in its transaction, they might be others.
    let left = contents(&session.database().session().expect("a session"));
    drop(session);
    let again = contents(&open());
    let is_same = left == again;
    let lost = || format!("{}: {left:?} was {again:?} when opened again", file.display());
    failure.or_else(|| (!is_same).then(lost))
}

/// Runs every file in a session of its own, and names all files that fail.
fn run_suite(session: impl Fn() -> Session) {
    let failures: Vec<_> = files().iter().filter_map(|file| failure(file, &session())).collect();
    assert!(failures.is_empty(), "{} files fail:\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn the_suite_holds_on_the_live_machine() {
    run_suite(live);
}

#[test]
fn the_suite_holds_on_eight_uneven_nodes() {
    run_suite(|| fake(machines::eight_uneven_nodes(), Strategy::Aligned));
}

#[test]
fn the_suite_holds_in_directories_and_what_it_leaves_is_there_again() {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let kernel = Arc::new(LiveKernel::new());
    let runtime = Runtime::start(machine, kernel, RuntimeOptions::default()).expect("the pools");
    let files = files();
    let failures: Vec<_> =
        files.iter().filter_map(|file| failure_in_directory(file, &runtime)).collect();
    assert!(failures.is_empty(), "{} files fail:\n{}", failures.len(), failures.join("\n\n"));
}
