//! Statements that are long, deep or make the planner panic: a result, or an error and a session that continues.

use std::fmt::Write;
use std::sync::Arc;

use atoll_sql::datafusion::common::Result;
use atoll_sql::datafusion::common::config::ConfigOptions;
use atoll_sql::datafusion::logical_expr::LogicalPlan;
use atoll_sql::datafusion::optimizer::AnalyzerRule;
use atoll_sql::{Session, split_statements};

use crate::common::{live, rows, run};

fn message(session: &Session, sql: &str) -> String {
    run(session, sql).expect_err("the statement is refused").to_string()
}

/// `1 + 1 + …`, and similar chains.
fn chain(of: &str, with: &str, count: usize) -> String {
    vec![of; count].join(with)
}

#[test]
fn deep_statements_have_an_answer_or_name_the_limit() {
    let session = live();
    run(&session, "CREATE TABLE t AS VALUES (1), (2)").unwrap();
    let one = |sql: &str| rows(&session, sql)[0][0].clone();
    assert_eq!(one(&format!("SELECT {}", chain("1", "+", 900))), "900");
    assert_eq!(one(&format!("SELECT sum({}) FROM t", chain("column1", "+", 200))), "600");
    assert_eq!(one(&format!("SELECT length({})", chain("'x'", "||", 900))), "900");
    let nested = format!("SELECT {}1{}", "(".repeat(150), " + 1)".repeat(150));
    assert_eq!(one(&nested), "151");
    for (of, with, count) in [("1", "+", 50_000), ("'x'", "||", 50_000), ("1", " = ", 1_000_000)] {
        let text = message(&session, &format!("SELECT {}", chain(of, with, count)));
        assert!(text.contains("nested too deeply: more than 1000 operators"), "{text}");
    }
    let casts = message(&session, &format!("SELECT 1{}", "::int".repeat(50_000)));
    assert!(casts.contains("nested too deeply"), "{casts}");
    let nulls = message(&session, &format!("SELECT 1{}", " IS NULL".repeat(50_000)));
    assert!(nulls.contains("nested too deeply"), "{nulls}");
    for open in ["(", "- ", "abs(", "(SELECT "] {
        let text = message(&session, &format!("SELECT {}1", open.repeat(50_000)));
        assert!(text.contains("nested too deeply"), "{open}: {text}");
    }
    assert_eq!(one("SELECT 1 + 1"), "2");
}

#[test]
fn chains_of_and_and_or_have_no_limit() {
    let session = live();
    run(
        &session,
        "CREATE TABLE t AS SELECT value AS a, value * 2 AS b FROM generate_series(1, 100)",
    )
    .unwrap();
    let mut any = "a = -1".to_owned();
    let mut all = "a <> -1".to_owned();
    for n in 0..5_000 {
        write!(any, " OR a = {n} AND b = {}", n * 2).unwrap();
        write!(all, " AND a <> {}", n + 99).unwrap();
    }
    let count = |condition: &str| {
        rows(&session, &format!("SELECT count(*) FROM t WHERE {condition}"))[0][0].clone()
    };
    assert_eq!(count(&all), "98");
    let mut few = any.split_inclusive(" OR ").take(1000).collect::<String>();
    few.push_str("false");
    assert_eq!(count(&few), "100");
}

#[test]
fn long_chains_of_set_operations_have_an_answer_or_name_the_limit() {
    let session = live();
    let some = format!("SELECT count(*) FROM ({})", chain("SELECT 1", " UNION ALL ", 500));
    assert_eq!(rows(&session, &some)[0][0], "500");
    let text = message(&session, &chain("SELECT 1", " UNION ALL ", 50_000));
    assert!(text.contains("more than 1000 set operations"), "{text}");
}

#[test]
fn select_into_makes_a_table() {
    let session = live();
    run(&session, "SELECT 1 AS a, 'x' AS b INTO made").unwrap();
    assert_eq!(rows(&session, "FROM made"), [["1", "x"]]);
    let text = message(&session, "SELECT 2 AS a INTO TEMPORARY other");
    assert!(text.contains("INTO TEMPORARY is not supported"), "{text}");
}

/// Panics over a plan in which a column has a certain name.
#[derive(Debug)]
struct Panics;

impl AnalyzerRule for Panics {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        assert!(!plan.display_indent().to_string().contains("on_purpose"), "on purpose");
        Ok(plan)
    }

    fn name(&self) -> &str {
        "panics"
    }
}

#[test]
fn a_panic_of_the_planner_is_an_error_of_its_statement() {
    let session = live();
    session.context().add_analyzer_rule(Arc::new(Panics));
    run(&session, "CREATE TABLE kept AS VALUES (1)").unwrap();
    let text = message(&session, "SELECT 1 AS on_purpose");
    assert!(text.contains("the planner panicked: on purpose"), "{text}");
    assert_eq!(rows(&session, "SELECT * FROM kept"), [["1"]]);
    // Once an unwrap in DataFusion's optimizer.
    let _ = run(&session, "PREPARE v AS SELECT DISTINCT ON (?) 42");
    assert!(run(&session, "EXECUTE v(1)").is_err());
}

#[test]
fn one_long_line_is_split_and_read_like_many_short_ones() {
    let session = live();
    let mut line = "CREATE TABLE t AS VALUES (0, 'é')".to_owned();
    for n in 1..20_000 {
        write!(line, ", ({n}, 'é;')").unwrap();
    }
    line.push_str("; SELECT 1");
    let statements = split_statements(&line).unwrap();
    assert_eq!(statements.len(), 2);
    run(&session, &statements[0].text).unwrap();
    assert_eq!(rows(&session, "SELECT count(*), max(column1) FROM t"), [["20000", "19999"]]);
    let list: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
    let query = format!("SELECT count(*) FROM t WHERE column1 IN ({})", list.join(","));
    assert_eq!(rows(&session, &query), [["20000"]]);
}
