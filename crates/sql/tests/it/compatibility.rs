//! The page on compatibility is made by running its examples.
//!
//! Each file of `tests/compatibility` is a section: `# title`, then an example a line, `feature | DuckDB | PostgreSQL
//! | how it differs | SQL`. Lines that begin with `!` are statements that the examples need. Whether Atoll has a
//! feature is what running its example tells.
//!
//! `ATOLL_WRITE_DOCS=1 cargo test --release -p atoll-sql --test it compatibility` writes the page anew.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::common::{crate_folder, live, run};

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
                Err(error) => ("no", format!("“{}”", error.message)),
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
