//! The sqllogictest suite in `tests/slt`; its README describes how values are written.
//!
//! On the live machine all files run, with a tenth of the variants of their queries ([`crate::variants`]). In the other
//! forms a third of the files runs, which `ATOLL_SHARE` chooses; with `ATOLL_DEEP` all of them do.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use atoll_placement::{LiveKernel, Strategy};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::arrow::array::{Array, AsArray, RecordBatch};
use atoll_sql::arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};
use atoll_sql::arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll_sql::{DatabaseOptions, Session, SqlError};
use atoll_testkit::machines;
use atoll_topology::Machine;
use sqllogictest::{
    DB, DBOutput, DefaultColumnType, QueryExpect, Record, Runner, SortMode, parse_file,
    strict_column_validator,
};

use crate::common::{fake, rows, run};
use crate::variants::{Answer, Place, Ran, Share, Variants, is_asked_for};

/// The last statement and its result.
type Last = Arc<Mutex<Option<(String, SchemaRef, Vec<RecordBatch>)>>>;

struct Engine {
    session: Session,
    last: Last,
}

impl DB for Engine {
    type Error = SqlError;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, SqlError> {
        let (schema, batches) = self.session.runtime().block_on(async {
            let result = self.session.run(sql).await?;
            let schema = result.schema().clone();
            Ok::<_, SqlError>((schema, result.collect().await?))
        })?;
        // A query without rows still has columns; a statement that returns none is complete.
        if batches.is_empty() && !is_query(sql) {
            return Ok(DBOutput::StatementComplete(0));
        }
        let described = batches.first().map_or_else(|| schema.clone(), RecordBatch::schema);
        let types = described.fields().iter().map(|field| kind(field.data_type())).collect();
        let rows = batches.iter().flat_map(texts).collect();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((sql.to_owned(), schema, batches));
        Ok(DBOutput::Rows { types, rows })
    }

    fn engine_name(&self) -> &'static str {
        "Atoll"
    }
}

fn is_query(sql: &str) -> bool {
    let first = sql.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    matches!(first.as_str(), "SELECT" | "WITH" | "VALUES" | "SHOW" | "(SELECT" | "TABLE")
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

/// The files that run in a form other than the first.
fn share_of_files(form: &str) -> Vec<PathBuf> {
    let is_deep = std::env::var_os("ATOLL_DEEP").is_some();
    let seed = std::env::var("ATOLL_SHARE").unwrap_or_default();
    let is_chosen = |file: &PathBuf| {
        let mut hasher = DefaultHasher::new();
        (&seed, form, file.file_name()).hash(&mut hasher);
        is_deep || hasher.finish().is_multiple_of(3)
    };
    files().into_iter().filter(is_chosen).collect()
}

/// Runs a file in a session; the error, if any.
fn failure(file: &Path, session: &Session) -> Option<String> {
    failure_or_variants(file, session, None)
}

/// The same, and runs variants of the queries that return rows.
fn failure_or_variants(
    file: &Path,
    session: &Session,
    mut variants: Option<&mut Variants>,
) -> Option<String> {
    let last = Last::default();
    let mut runner = Runner::new(|| {
        let engine = Engine { session: session.clone(), last: Arc::clone(&last) };
        async move { Ok(engine) }
    });
    runner.with_column_validator(strict_column_validator);
    let records = match parse_file(file) {
        Ok(records) => records,
        Err(error) => return Some(error.to_string()),
    };
    for record in records {
        let query = place_of_query(&record);
        let take = || last.lock().unwrap_or_else(PoisonError::into_inner).take();
        take();
        if let Err(error) = runner.run(record) {
            return Some(error.display(false).to_string());
        }
        let (Some(variants), Some((line, is_sorted))) = (variants.as_deref_mut(), query) else {
            continue;
        };
        let Some((sql, schema, batches)) = take() else { continue };
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let ran = Ran { sql, answer: Answer::from_batches(&schema, &batches), is_sorted };
        variants.check(session, &Place { file: &name, line }, &ran);
    }
    None
}

/// The line of a record that expects rows, and whether it expects their order.
fn place_of_query(record: &Record<DefaultColumnType>) -> Option<(u32, bool)> {
    let Record::Query { loc, expected: QueryExpect::Results { sort_mode, .. }, .. } = record else {
        return None;
    };
    Some((loc.line(), matches!(sort_mode, None | Some(SortMode::NoSort))))
}

/// The rows of all tables, ordered.
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

/// Runs a file over a data directory, which is opened again at its end; the error, in the run or in the contents.
fn failure_in_directory(file: &Path, runtime: &Runtime) -> Option<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("database");
    let open = || {
        let options = DatabaseOptions { directory: Some(path.clone()), ..Default::default() };
        Session::new(runtime.clone(), options).expect("the directory is free")
    };
    let session = open();
    // There are no power failures here: waiting for the disk would take most of the time.
    rows(&session, "SET atoll.durability = 'async'");
    let failure = failure(file, &session);
    // From a new session: under settings of the file, or in its transaction, they might differ.
    let left = contents(&session.database().session().expect("a session"));
    drop(session);
    let again = contents(&open());
    let is_same = left == again;
    let lost = || format!("{}: {left:?} was {again:?} when opened again", file.display());
    failure.or_else(|| (!is_same).then(lost))
}

/// Runs each of these files in a new session, and names all files that fail.
fn run_suite(files: &[PathBuf], session: impl Fn() -> Session) {
    let failures: Vec<_> = files.iter().filter_map(|file| failure(file, &session())).collect();
    assert!(failures.is_empty(), "{} files fail:\n{}", failures.len(), failures.join("\n\n"));
}

/// The pools of the live machine.
fn live_runtime() -> Runtime {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let kernel = Arc::new(LiveKernel::new());
    Runtime::start(machine, kernel, RuntimeOptions::default()).expect("the pools")
}

/// Runs files with variants until there are none left; the errors, and the variants.
fn run_with_variants(
    runtime: &Runtime,
    files: &Mutex<VecDeque<PathBuf>>,
    share: Share,
) -> (Vec<String>, Variants) {
    let (mut failures, mut variants) = (Vec::new(), Variants::new(share));
    let next = || files.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(file) = next() {
        let session = Session::new(runtime.clone(), DatabaseOptions::default());
        let session = session.expect("the session starts");
        failures.extend(failure_or_variants(&file, &session, Some(&mut variants)));
    }
    (failures, variants)
}

#[test]
fn the_suite_and_variants_of_its_queries_hold_on_the_live_machine() {
    let (runtime, share) = (live_runtime(), Share::asked());
    let is_asked =
        |file: &PathBuf| file.file_stem().is_some_and(|name| is_asked_for(&name.to_string_lossy()));
    let files = Mutex::new(files().into_iter().filter(is_asked).collect());
    // With all tests, others run at the same time.
    let threads = match share {
        Share::All => runtime.worker_count(),
        Share::Tenth { .. } => 1,
    };
    let (mut failures, mut variants) = (Vec::new(), Variants::new(share));
    thread::scope(|scope| {
        let run = || run_with_variants(&runtime, &files, share);
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        for thread in running {
            let (failed, ran) = thread.join().expect("the thread ends well");
            failures.extend(failed);
            variants.extend(ran);
        }
    });
    variants.print_summary();
    assert!(failures.is_empty(), "{} files fail:\n{}", failures.len(), failures.join("\n\n"));
    let wrong = &variants.findings;
    assert!(wrong.is_empty(), "{share}: {} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_suite_holds_on_eight_uneven_nodes() {
    let files = share_of_files("eight nodes");
    run_suite(&files, || fake(machines::eight_uneven_nodes(), Strategy::Aligned));
}

#[test]
fn the_suite_passes_in_directories_whose_contents_survive_reopening() {
    let runtime = live_runtime();
    let files = share_of_files("directories");
    let failures: Vec<_> =
        files.iter().filter_map(|file| failure_in_directory(file, &runtime)).collect();
    assert!(failures.is_empty(), "{} files fail:\n{}", failures.len(), failures.join("\n\n"));
}
