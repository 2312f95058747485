//! The page on compatibility is made by running its examples.
//!
//! Each file of `tests/compatibility` is a section: `# title`, then an example a line, `feature | DuckDB | PostgreSQL
//! | how it differs | SQL`. Lines that begin with `!` are statements that the examples need. Whether Atoll has a
//! feature is what running its example tells.
//!
//! `ATOLL_WRITE_DOCS=1 scripts/mirror cargo test --release -p atoll-sql --test it compatibility` writes the page anew.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use atoll_sql::SqlError;
use atoll_testkit::{Need, skip};

use crate::common::{crate_folder, live, python, run};

const WRITE: &str = "ATOLL_WRITE_DOCS";

const HEAD: &str = "# Compatibility

What people who come from DuckDB and PostgreSQL type first, and what Atoll makes of it. The column *Atoll* is
what running the example gave: `crates/sql/tests/it/compatibility.rs` makes this page.
";

#[test]
fn the_page_on_compatibility_is_what_its_examples_give() {
    let folder = crate_folder();
    let mut page = HEAD.to_owned();
    for file in files(&Path::new(&folder).join("tests/compatibility")) {
        let text = std::fs::read_to_string(&file).expect("the examples can be read");
        section(&mut page, &text);
    }
    let path = Path::new(&folder).join("../../docs/compatibility.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/compatibility.md is stale; {WRITE}=1 cargo test --release -p atoll-sql --test it compatibility \
         writes it anew"
    );
}

/// What a refusal says: what is not there, and what does it instead.
fn refusal(sql: &str, error: &SqlError) -> String {
    let told = error.message.clone();
    let names_alternative = told.contains([';', ':']) || !error.helps.is_empty();
    assert!(names_alternative, "{sql}: no alternative is named: {told}");
    assert!(!told.starts_with("This feature is not implemented"), "{sql}: {told}");
    told
}

/// Runs a script over the examples, which says where the page is wrong.
fn check(script: &str, mut program: Command) {
    let script = Path::new(&crate_folder()).join("tests").join(script);
    let output = program.arg(script).output().expect("the program that was found runs");
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

#[test]
fn duckdb_has_what_the_page_says() {
    let found = Command::new(python()).args(["-c", "import duckdb"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        return skip(Need::PythonEngines, "no Python with duckdb; ATOLL_PYTHON names another");
    }
    check("compatibility_duckdb.py", Command::new(python()));
}

/// Over the server that psql reaches by `PGHOST` and its kin.
#[test]
fn postgresql_has_what_the_page_says() {
    let found = Command::new("psql").args(["-X", "-c", "SELECT 1"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        return skip(
            Need::Postgresql,
            "no PostgreSQL that psql reaches; PGHOST and PGUSER name one",
        );
    }
    check("compatibility_postgres.py", Command::new(python()));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the examples are there");
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("the folder can be listed").path()).collect();
    files.sort();
    files
}

fn section(page: &mut String, text: &str) {
    let session = live();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(title) = line.strip_prefix("# ") {
            let _ = write!(
                page,
                "\n## {title}\n\n| Feature | DuckDB | PostgreSQL | Atoll | How it differs |\n|---|---|---|---|---|\n"
            );
        } else if let Some(statement) = line.strip_prefix('!') {
            run(&session, statement.trim()).unwrap_or_else(|error| panic!("{statement}\n{error}"));
        } else {
            let fields: Vec<&str> = line.splitn(5, '|').map(str::trim).collect();
            let [feature, duckdb, postgres, differs, sql] = fields[..] else {
                panic!("expected 'feature | DuckDB | PostgreSQL | how it differs | SQL': {line}");
            };
            let (has, told) = match run(&session, sql) {
                Ok(_) => ("yes", String::new()),
                Err(error) => ("no", format!("“{}”", refusal(sql, &error))),
            };
            let differs = [differs, &told].map(str::trim).join(" ");
            let example = sql.replace('|', "\\|");
            let _ = writeln!(
                page,
                "| {feature}: `{example}` | {duckdb} | {postgres} | {has} | {} |",
                differs.trim().replace('|', "\\|").replace('\n', " ")
            );
        }
    }
}
