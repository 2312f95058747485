//! TPC-H against answers made with another engine.

use atoll_placement::Strategy;
use atoll_sql::{Session, tpch};
use atoll_testkit::machines;
use atoll_topology::NodeId;

use crate::common::{fake, live, rows};

/// Columns in which the other engine returns binary floating point and Atoll exact decimals or the reverse: equal up to
/// a unit of the last digit printed.
const INEXACT: [&str; 6] =
    ["avg_qty", "avg_price", "avg_disc", "mkt_share", "promo_revenue", "avg_yearly"];

fn load(session: &Session, scale: f64) {
    let loaded = session.runtime().block_on(tpch::load(session, scale, &mut |_| {}));
    loaded.expect("the data is generated");
}

/// The committed answer: names, then rows.
fn answer(scale: &str, query: usize) -> (Vec<String>, Vec<Vec<String>>) {
    let path = format!("{}/tpch/answers/sf{scale}/q{query:02}.csv", crate::common::crate_folder());
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut lines = csv_lines(&text).into_iter();
    (lines.next().expect("the answer has names"), lines.collect())
}

/// RFC 4180, as far as the answers use it.
fn csv_lines(text: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut field, mut quoted) = (vec![], vec![], String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                line.push(std::mem::take(&mut field));
                lines.push(std::mem::take(&mut line));
            }
            '\r' if !quoted => {}
            other => field.push(other),
        }
    }
    lines
}

fn assert_answers(session: &Session, scale: &str, what: &str) {
    for (index, sql) in tpch::QUERIES.iter().enumerate() {
        let query = index + 1;
        let (names, expected) = answer(scale, query);
        let found = rows(session, sql);
        assert_eq!(found.len(), expected.len(), "{what}: rows of query {query}");
        for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
            for ((found, expected), name) in found.iter().zip(expected).zip(&names) {
                assert!(
                    same(found, expected, INEXACT.contains(&name.as_str())),
                    "{what}: query {query}, row {number}, {name}: {found} is not {expected}"
                );
            }
        }
    }
}

fn same(found: &str, expected: &str, inexact: bool) -> bool {
    // The answers leave null empty; no answer holds an empty text.
    let found = if found == "NULL" { "" } else { found };
    if !inexact {
        return found == expected;
    }
    let (Ok(found), Ok(expected)) = (found.parse::<f64>(), expected.parse::<f64>()) else {
        return found == expected;
    };
    (found - expected).abs() <= 1e-6 * expected.abs().max(1.0)
}

#[test]
fn all_queries_give_the_answers_at_scale_factor_one_tenth() {
    let session = live();
    load(&session, 0.1);
    assert_answers(&session, "0.1", "live");
}

#[test]
fn all_queries_give_the_answers_under_every_strategy() {
    for strategy in [
        Strategy::Default,
        Strategy::Aligned,
        Strategy::Ahead(1),
        Strategy::Farthest,
        Strategy::Interleave,
        Strategy::Spread,
        Strategy::Subset(2),
        Strategy::Local,
        Strategy::Preferred(NodeId(1)),
        Strategy::WeightedInterleave,
        Strategy::Replicate,
    ] {
        let session = fake(machines::four_nodes(), strategy);
        load(&session, 0.01);
        assert_answers(&session, "0.01", &strategy.to_string());
    }
}

#[test]
fn all_queries_give_the_answers_on_machines_of_every_shape() {
    for machine in machines::all() {
        let name = machine.name.clone();
        let session = fake(machine, Strategy::Aligned);
        load(&session, 0.01);
        assert_answers(&session, "0.01", &name);
    }
}
