//! Cancellation: a query ends when its result is dropped, even amid a step of a primitive.

use std::sync::Arc;
use std::time::Duration;

use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::physical_plan::{collect, displayable};

use crate::session::plan::steps::{cancel_token, plan_physical};
use crate::{DatabaseOptions, Session};
use atoll_sql_parse::parse::parse;

fn session() -> Session {
    let machine = Arc::new(machines::two_nodes());
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let runtime = Runtime::start(machine, kernel, RuntimeOptions::default());
    let runtime = runtime.expect("the pools start");
    Session::new(runtime, DatabaseOptions::default()).expect("the session starts")
}

/// A table of several partitions, and a sorted one of a single partition.
const TABLES: [&str; 2] = [
    "CREATE TABLE t AS SELECT value AS k, value % 7 AS v FROM generate_series(1, 40000)",
    "CREATE TABLE small AS SELECT value AS k, value % 7 AS v FROM generate_series(1, 9000)",
];

#[test]
fn dropping_a_result_raises_the_token_of_its_query() {
    let session = session();
    session.runtime().block_on(async {
        let result = session.run("SELECT 1").await.expect("it starts");
        let token = result.cancel_token().expect("it runs").clone();
        assert!(!token.is_cancelled());
        drop(result);
        assert!(token.is_cancelled());
    });
}

#[test]
fn a_raised_token_ends_grouping_of_every_kind_and_method() {
    let session = session();
    session.runtime().block_on(async {
        for table in TABLES {
            session.run(table).await.expect("the table is made");
        }
        for method in ["auto", "local", "ring", "migrate"] {
            let set = format!("SET atoll.aggregate = '{method}'");
            session.run(&set).await.expect("it is a method");
            for (sql, kind) in [
                ("SELECT k, sum(v) FROM small GROUP BY k", "runs"),
                ("SELECT v, sum(k) FROM t GROUP BY v", "exchanged"),
                ("SELECT v, sum(k) FROM small GROUP BY v", "partitioned"),
            ] {
                let transaction = session.statement_transaction().expect("none failed");
                let planner = session.planner(&transaction, false).await.expect("planned");
                let parsed = parse(sql, &planner.state).expect("it is SQL");
                let logical = planner.plan(parsed).await.expect("it can be planned");
                let state = planner.state;
                let plan = plan_physical(&state, &logical).await.expect("it can be planned");
                let shown = displayable(plan.as_ref()).indent(false).to_string();
                assert!(shown.contains("GroupExec") && shown.contains(kind), "{kind}:\n{shown}");
                cancel_token(&state).cancel();
                let error = collect(plan, state.task_ctx()).await.expect_err(sql);
                assert_eq!(error.find_root().strip_backtrace(), "Execution error: cancelled");
            }
        }
    });
}

/// Two tables whose pairs take many turns, and the pairs that are near.
const NEAR: &str = "abs(a.k - b.k * 7) < 3";

#[test]
fn joins_of_any_type_find_the_same_pairs_in_many_turns() {
    let session = session();
    let near = |a: i64, b: i64| (a - b * 7).abs() < 3;
    let (a, b) = (1..=20_000_i64, 1..=3_000_i64);
    let pairs = b.clone().map(|b| a.clone().filter(|a| near(*a, b)).count()).sum::<usize>();
    let without_b = a.clone().filter(|a| !b.clone().any(|b| near(*a, b))).count();
    let without_a = b.clone().filter(|b| !a.clone().any(|a| near(a, *b))).count();
    assert!(pairs > 0 && without_b > 0 && without_a > 0);
    session.runtime().block_on(async {
        for (table, rows) in [("a", 20_000), ("b", 3_000)] {
            let sql = format!(
                "CREATE TABLE {table} AS SELECT value AS k FROM generate_series(1, {rows})"
            );
            session.run(&sql).await.expect("the table is made");
        }
        for (sql, wanted) in [
            (format!("FROM a JOIN b ON {NEAR}"), pairs),
            (format!("FROM a LEFT JOIN b ON {NEAR}"), pairs + without_b),
            (format!("FROM a RIGHT JOIN b ON {NEAR}"), pairs + without_a),
            (format!("FROM a FULL JOIN b ON {NEAR}"), pairs + without_a + without_b),
            (format!("FROM a WHERE EXISTS (SELECT 1 FROM b WHERE {NEAR})"), 20_000 - without_b),
            (format!("FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {NEAR})"), without_b),
        ] {
            let result = session.run(&format!("SELECT count(*) {sql}")).await.expect(&sql);
            let batches = result.collect().await.expect(&sql);
            let count = batches[0].column(0).as_primitive::<Int64Type>().value(0);
            assert_eq!(count, wanted as i64, "{sql}");
        }
    });
}

#[test]
fn long_joins_without_rows_leave_turns_to_others_and_end_when_they_are_dropped() {
    let session = session();
    session.runtime().block_on(async {
        let table = "CREATE TABLE t AS SELECT value AS k FROM generate_series(1, 300000)";
        session.run(table).await.expect("the table is made");
        let other = session.database().session().expect("a session");
        let before = session.database().pool().reserved();
        // Each would take all workers for minutes.
        let endless = "SELECT count(*) FROM t x JOIN t y ON x.k * 2 + y.k * 2 = 7";
        let mut running = Vec::new();
        for _ in 0..4 {
            running.push(session.run(endless).await.expect("it starts"));
        }
        let sum = "SELECT sum(k) FROM t";
        let batches = other.run(sum).await.expect(sum).collect().await.expect(sum);
        let sum = batches[0].column(0).as_primitive::<Int64Type>().value(0);
        assert_eq!(sum, 300_000 * 300_001 / 2);
        let tokens: Vec<_> = running.iter().filter_map(|it| it.cancel_token().cloned()).collect();
        drop(running);
        assert!(tokens.iter().all(|token| token.is_cancelled()));
        // The tables that they built are given back when their tasks have ended.
        while session.database().pool().reserved() > before + (1 << 20) {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn sleeping_statements_leave_turns_to_others_and_end_when_they_are_dropped() {
    let session = session();
    session.runtime().block_on(async {
        let other = session.database().session().expect("a session");
        let mut running = Vec::new();
        for sql in ["SELECT pg_sleep(1000)", "SELECT pg_sleep('infinity'::DOUBLE)"] {
            running.push(session.run(sql).await.expect("it starts"));
        }
        for sql in ["SELECT 1", "SELECT pg_sleep(0.001)"] {
            let batches = other.run(sql).await.expect(sql).collect().await.expect(sql);
            assert_eq!(batches[0].num_rows(), 1);
        }
        drop(running);
        let wait = Duration::from_millis(50);
        let slept = session.run("SELECT pg_sleep(1000)").await.expect("it starts").collect();
        assert!(tokio::time::timeout(wait, slept).await.is_err());
    });
}
