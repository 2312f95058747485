//! `atoll.functions` and the page that is generated from it.

use std::path::Path;

use atoll_sql::Session;

use crate::common::{crate_folder, live, rows, run};

/// Set to write the page instead of comparing it.
const WRITE: &str = "ATOLL_WRITE_DOCS";

const HEAD: &str = "\
# Functions

The functions of SQL, which `atoll.functions` and `\\df` in the shell list. This page is generated from that table:
`ATOLL_WRITE_DOCS=1 scripts/mirror cargo test --release -p atoll-sql --test it functions_page` rewrites it.

Functions have the same meaning as in DuckDB, with these differences:

- JSON is VARCHAR: the type name JSON in a cast checks the text. What JSON functions give, and what columns of type JSON
  hold, is known to be JSON, so that `json_array(json_object('a', 1))` nests it; in columns of other tables that are made
  of it, it is text.
- UUID is VARCHAR: the type name UUID in a cast checks the text and gives it in its canonical form, and so does a column of
  that type. Clients see the types UUID and JSON.
- ORDER BY puts NULL last, and first where it is DESC, as in PostgreSQL: also in `list(x ORDER BY y DESC)`.
- Sums, counts and `factorial` are BIGINT or DECIMAL, not HUGEINT. `typeof(1)` is BIGINT, `typeof(1.5)` is DECIMAL(2,1).
- `hash` returns different values. `approx_top_k` and `reservoir_quantile` are exact.
- `date_trunc` with a zone gives a moment in that zone. Nanoseconds are cut to microseconds.
- `substr` with a negative start counts from before the first character, and `lpad` with an empty filling fills
  with nothing, as in PostgreSQL. `concat` makes text of lists too; `list_concat` joins them.
- `sqrt(-1)`, `ln(0)`, `pow(0, -1)`, `exp(1000)` and the division of an integer or a decimal by zero are errors, as in
  PostgreSQL. `extract` returns seconds and milliseconds with their fractions, as there.
- A path of `json_extract` with wildcards and the names of `regexp_extract` must be constants. `try` does not take
  back what fails while a constant is folded.
- `corr` and `covar_samp` of one row are NULL, as in PostgreSQL.
- In JSON, timestamps have a T and the minutes of their offset, BLOBs are hexadecimal, NaN and Infinity stand in quotes and
  decimals keep their places, as in PostgreSQL. Of keys that are there twice the last one counts.
- `array_length(list, n)` of an empty list is NULL, as in PostgreSQL; `array_length(list)` is 0.

";

fn page(session: &Session) -> String {
    let mut page = HEAD.to_owned();
    for (kind, title) in [
        ("scalar", "Scalar functions"),
        ("aggregate", "Aggregates"),
        ("window", "Window functions"),
        ("table", "Functions in FROM"),
    ] {
        page.push_str(&format!(
            "## {title}\n\n| Function | What it does | Example |\n|---|---|---|\n"
        ));
        let query = format!(
            "SELECT name, arguments, description, coalesce(example, ''), aliases \
             FROM atoll.functions WHERE kind = '{kind}' ORDER BY name"
        );
        for row in rows(session, &query) {
            let cell = |at: usize| row[at].replace('|', "\\|");
            let code = |text: String| if text.is_empty() { text } else { format!("`{text}`") };
            let also = match cell(4) {
                none if none.is_empty() => none,
                names => format!(
                    " Also {}.",
                    names
                        .split(", ")
                        .map(|name| format!("`{name}`"))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            };
            let (name, arguments) = (cell(0), cell(1));
            page.push_str(&format!(
                "| `{name}({arguments})` | {}{also} | {} |\n",
                cell(2),
                code(cell(3))
            ));
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

#[test]
fn functions_page_is_what_the_table_says() {
    let page = page(&live());
    let file = Path::new(&crate_folder()).join("../../docs/functions.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&file, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page,
        "docs/functions.md is stale; {WRITE}=1 cargo test --release -p atoll-sql --test it \
         functions_page writes it anew"
    );
}

#[test]
fn every_function_is_documented() {
    let query = "SELECT name FROM atoll.functions WHERE description = '' ORDER BY 1";
    assert_eq!(rows(&live(), query), Vec::<Vec<String>>::new());
}

#[test]
fn every_function_in_from_is_listed() {
    let session = live();
    let listed = rows(
        &session,
        "SELECT name || ', ' || aliases FROM atoll.functions WHERE kind IN ('table', 'scalar')",
    );
    let listed: Vec<String> = listed
        .iter()
        .flat_map(|row| row[0].split(", ").map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let known = session.context().state();
    for name in known.table_functions().keys() {
        assert!(listed.contains(name), "{name} is not in atoll.functions");
    }
}

#[test]
fn examples_of_our_own_functions_are_true() {
    let session = live();
    let query = "SELECT example FROM atoll.functions WHERE kind = 'scalar' AND example LIKE '% = %' \
                 AND example NOT LIKE '%:=%' ORDER BY 1";
    let mut wrong = Vec::new();
    for row in rows(&session, query) {
        let example = &row[0];
        match run(&session, &format!("SELECT {example}")) {
            Ok(batches) => {
                let answers: Vec<Vec<String>> =
                    batches.iter().flat_map(crate::common::texts).collect();
                if answers != [["true"]] {
                    wrong.push(format!("{example}: {answers:?}"));
                }
            }
            Err(error) => wrong.push(format!("{example}: {}", error.message)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_unknown_function_suggests_a_similar_one_or_an_alternative() {
    let session = live();
    let told = |sql: &str| run(&session, sql).expect_err(sql).to_string();
    let near = told("SELECT list_transfrom([1])");
    assert!(near.contains("function 'list_transfrom' does not exist"), "{near}");
    assert!(near.contains("Did you mean 'list_transform'?"), "{near}");
    let far = told("SELECT frobnicate(1)");
    assert!(!far.contains("Did you mean"), "{far}");
    assert!(far.contains("\\df lists the functions"), "{far}");
    let instead = told("SELECT sleep_ms(5)");
    assert!(instead.contains("pg_sleep(seconds) waits"), "{instead}");
}
