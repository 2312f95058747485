//! One statement, one moment: what is published after its planning began is not in it.

use std::sync::Arc;

use atoll_placement::LiveKernel;
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_topology::Machine;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::logical_expr::LogicalPlan;

use super::planner::StatementPlanner;
use super::statement::parse;
use super::{Session, SessionOptions};

fn session() -> Session {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let kernel = Arc::new(LiveKernel::new());
    let runtime =
        Runtime::start(machine, kernel, RuntimeOptions::default()).expect("the pools start");
    Session::new(runtime, SessionOptions::default()).expect("the session starts")
}

async fn run(session: &Session, sql: &str) -> Vec<RecordBatch> {
    let result = session.run(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    result.collect().await.unwrap_or_else(|error| panic!("{sql}\n{error}"))
}

fn number(batches: &[RecordBatch], column: usize) -> i64 {
    batches[0].column(column).as_primitive::<Int64Type>().value(0)
}

async fn planned(planner: &StatementPlanner, sql: &str) -> LogicalPlan {
    let statement = parse(sql, &planner.state).expect("the statement can be parsed").statement;
    planner.plan(statement).await.expect("the statement can be planned")
}

#[test]
fn all_scans_of_a_statement_see_the_rows_that_were_there_when_its_planning_began() {
    let session = session();
    session.runtime().block_on(async {
        run(&session, "CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 10)").await;
        run(&session, "CREATE VIEW v AS SELECT a FROM t").await;
        let planner = session.planner();
        run(&session, "INSERT INTO t SELECT value FROM generate_series(11, 30)").await;
        let sql = "SELECT count(*) AS n, (SELECT count(*) FROM t) AS t, (SELECT max(a) FROM v) AS v \
                   FROM t x JOIN t y ON x.a = y.a";
        let plan = planned(&planner, sql).await;
        run(&session, "CREATE OR REPLACE TABLE t AS SELECT 7 AS a").await;
        run(&session, "DROP TABLE t").await;
        let result = session.query(planner.state, plan, sql).await.expect("the query starts");
        let rows = result.collect().await.expect("the query ends");
        assert_eq!([number(&rows, 0), number(&rows, 1), number(&rows, 2)], [10, 10, 10]);
    });
}

#[test]
fn an_insert_appends_to_the_table_that_has_the_name_when_it_is_done() {
    let session = session();
    session.runtime().block_on(async {
        run(&session, "CREATE TABLE t AS SELECT 1 AS a").await;
        let insert = "INSERT INTO t SELECT a + 1 FROM t";
        let begun = async || {
            let planner = session.planner();
            (planned(&planner, insert).await, planner)
        };
        let (plan, planner) = begun().await;
        run(&session, "CREATE OR REPLACE TABLE t AS SELECT 10 AS a").await;
        let result = session.query(planner.state, plan, insert).await.expect("the insert starts");
        result.collect().await.expect("the insert ends");
        let rows = run(&session, "SELECT count(*), min(a), max(a) FROM t").await;
        assert_eq!([number(&rows, 0), number(&rows, 1), number(&rows, 2)], [2, 2, 10]);

        let (plan, planner) = begun().await;
        run(&session, "CREATE OR REPLACE TABLE t AS SELECT 'x' AS a").await;
        let result = session.query(planner.state, plan, insert).await.expect("the insert starts");
        let error = result.collect().await.expect_err("the columns are others").to_string();
        assert!(error.contains("'t' was replaced by one with other columns"), "{error}");

        run(&session, "CREATE OR REPLACE TABLE t AS SELECT 1 AS a").await;
        let (plan, planner) = begun().await;
        run(&session, "DROP TABLE t").await;
        let result = session.query(planner.state, plan, insert).await.expect("the insert starts");
        let error = result.collect().await.expect_err("the table is gone").to_string();
        assert!(error.contains("'t' was dropped"), "{error}");
    });
}

#[test]
fn progress_does_not_keep_a_plan_alive() {
    let session = session();
    session.runtime().block_on(async {
        run(&session, "CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 10)").await;
        let planner = session.planner();
        let plan = planned(&planner, "SELECT count(*) FROM t x JOIN t y ON x.a = y.a").await;
        let physical = super::planner::plan_physical(&planner.state, &plan).await.expect("planned");
        let progress = super::ScanProgress::of(&physical);
        let plan = Arc::downgrade(&physical);
        drop(physical);
        assert!(plan.upgrade().is_none());
        assert_eq!(progress.rows(), (0, 20));
    });
}
