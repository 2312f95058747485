//! Queries and their answers as a file of the SQL logic tests, for tests that have no DuckDB at hand.

use anyhow::Result;
use atoll_bench::answers::RowOrder;
use atoll_bench::protocol::{Answer, Kind};

use crate::engines::{Against, Engines};
use crate::generate;
use crate::outcome::EngineOutcome;
use crate::run::{DifferentialOptions, start, tables};
use crate::setting::Setting;
use crate::shrink::Case;
use crate::verdict::{Verdict, verdict};

/// Rows of an answer that are still worth their place in a file.
const ROWS_MAX: usize = 12;

/// Queries of the first seeds on which both engines agree, with their answers, as a file of the SQL
/// logic tests.
///
/// # Errors
/// As [`crate::run::run`].
pub(crate) fn record(
    options: &DifferentialOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<String> {
    let mut engines = start(options, progress)?;
    let mut text = header(options);
    for seed in options.seed..options.seed + options.seeds {
        text += &of_seed(seed, options.queries, options.against, &mut engines);
    }
    Ok(text)
}

/// The first lines of the file.
fn header(options: &DifferentialOptions) -> String {
    format!(
        "# Random queries on which Atoll and DuckDB agree. Made by\n\
         # cargo xtask differential --record FILE --seed {} --seeds {} --queries {}\n\n",
        options.seed, options.seeds, options.queries
    )
}

/// The tables of a seed, and those of its queries on which both engines agree.
fn of_seed(seed: u64, queries: usize, against: Against, engines: &mut Engines) -> String {
    // The tests have these tables without indexes and changes, and with the types that all engines have.
    let (mut tables, mut random) = tables(seed, Against::Duckdb);
    tables.iter_mut().for_each(|table| table.copies = 1);
    let mut text = format!("# seed {seed}\n\n");
    let mut case = None;
    for _ in 0..queries {
        let query = generate::query(&tables, against, &mut random);
        let case = case.insert(Case { tables: tables.clone(), query });
        text += &answered(case, engines).unwrap_or_default();
    }
    let setup = case.map(|case| case.setup()).unwrap_or_default();
    let statement = |text: &str| format!("statement ok\n{text}\n\n");
    let setup: String = setup.iter().map(|sql| statement(sql)).collect();
    let drops = tables.iter().map(|table| {
        statement(&format!("DROP VIEW {}", table.view()))
            + &statement(&format!("DROP TABLE {}", table.name))
    });
    let at = text.find("\n\n").map_or(text.len(), |at| at + 2);
    text.insert_str(at, &setup);
    text + &drops.collect::<String>()
}

/// A query with its rows; None if the engines do not agree on some rows.
fn answered(case: &Case, engines: &mut Engines) -> Option<String> {
    let (setup, sql, order) = (case.setup(), case.query.to_string(), case.query.row_order());
    let duckdb = engines.right(&setup, &sql);
    let reference = engines.atoll(&Setting::reference(), &setup, &sql);
    let same = verdict(&duckdb, &reference, order, false) == Verdict::Same;
    match reference {
        EngineOutcome::Rows(answer)
            if same
                && !is_written_otherwise(&answer)
                && (1..=ROWS_MAX).contains(&answer.values.len()) =>
        {
            Some(of_query(&sql, &answer, order))
        }
        _ => None,
    }
}

/// Lists and large values of REAL have other texts in the logic tests.
fn is_written_otherwise(answer: &Answer) -> bool {
    let is_large = |text: &str| text.parse::<f64>().is_ok_and(|value| value.abs() > 1e30);
    let mut values = answer.values.iter().flatten().flatten();
    values.any(|text| text.starts_with('[') || is_large(text))
}

fn of_query(sql: &str, answer: &Answer, order: RowOrder) -> String {
    let kinds: String = answer.columns.iter().map(|kind| letter(*kind)).collect();
    let mut rows: Vec<String> = answer
        .values
        .iter()
        .map(|row| {
            let values = row.iter().zip(&answer.columns).map(|(value, kind)| cell(value, *kind));
            values.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let sort = match order {
        RowOrder::Given => "",
        RowOrder::Any => {
            rows.sort();
            " rowsort"
        }
    };
    let mut text = format!("query {kinds}{sort}\n{sql}\n----\n");
    rows.iter().for_each(|row| text += &format!("{row}\n"));
    text + "\n"
}

fn letter(kind: Kind) -> char {
    match kind {
        Kind::Integer => 'I',
        Kind::Decimal | Kind::Float => 'R',
        Kind::Text => 'T',
    }
}

/// A value as the logic tests write it.
fn cell(value: &Option<String>, kind: Kind) -> String {
    match (value.as_deref(), kind) {
        (None, _) => "NULL".to_owned(),
        (Some(""), _) => "(empty)".to_owned(),
        (Some(text), Kind::Float) => {
            text.parse::<f64>().map_or_else(|_| text.to_owned(), |value| value.to_string())
        }
        (Some(text), _) => text.to_owned(),
    }
}
