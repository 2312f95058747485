//! One statement, one moment: what is published after its planning began is not in it.

use std::sync::Arc;

use atoll_placement::LiveKernel;
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_topology::Machine;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::logical_expr::LogicalPlan;

use super::Session;
use super::planner::StatementPlanner;
use super::statement::parse;
use crate::DatabaseOptions;
use crate::table::StaleStatement;

fn session() -> Session {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let kernel = Arc::new(LiveKernel::new());
    let runtime =
        Runtime::start(machine, kernel, RuntimeOptions::default()).expect("the pools start");
    Session::new(runtime, DatabaseOptions::default()).expect("the session starts")
}

async fn run(session: &Session, sql: &str) -> Vec<RecordBatch> {
    let result = session.run(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    result.collect().await.unwrap_or_else(|error| panic!("{sql}\n{error}"))
}

fn number(batches: &[RecordBatch], column: usize) -> i64 {
    batches[0].column(column).as_primitive::<Int64Type>().value(0)
}

async fn planner(session: &Session) -> StatementPlanner {
    let transaction = session.statement_transaction().expect("none failed");
    session.planner(&transaction, false).await.expect("the names can be read")
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
        let planner = planner(&session).await;
        run(&session, "INSERT INTO t SELECT value FROM generate_series(11, 30)").await;
        let sql = "SELECT count(*) AS n, (SELECT count(*) FROM t) AS t, (SELECT max(a) FROM v) AS v \
                   FROM t x JOIN t y ON x.a = y.a";
        let plan = planned(&planner, sql).await;
        run(&session, "CREATE OR REPLACE TABLE t AS SELECT 7 AS a").await;
        run(&session, "DROP TABLE t").await;
        let result = session.query(planner, plan, sql).await.expect("the query starts");
        let rows = result.collect().await.expect("the query ends");
        assert_eq!([number(&rows, 0), number(&rows, 1), number(&rows, 2)], [10, 10, 10]);
    });
}

#[test]
fn a_statement_whose_table_changed_before_it_wrote_is_told_to_run_again() {
    let session = session();
    session.runtime().block_on(async {
        run(&session, "CREATE TABLE t AS SELECT 1 AS a").await;
        let update = "UPDATE t SET a = a + 1";
        let begun = async || {
            let planner = planner(&session).await;
            (planned(&planner, update).await, planner)
        };
        for meanwhile in ["UPDATE t SET a = 5", "DELETE FROM t", "DROP TABLE t"] {
            run(&session, "INSERT INTO t VALUES (1)").await;
            let (plan, planner) = begun().await;
            run(&session, meanwhile).await;
            let error = session.write(planner, plan, update).await.expect_err(meanwhile);
            assert!(StaleStatement::ended(&error), "{meanwhile}: {error}");
        }
    });
}

#[test]
fn progress_does_not_keep_a_plan_alive() {
    let session = session();
    session.runtime().block_on(async {
        run(&session, "CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 10)").await;
        let planner = planner(&session).await;
        let plan = planned(&planner, "SELECT count(*) FROM t x JOIN t y ON x.a = y.a").await;
        let physical = super::planner::plan_physical(&planner.state, &plan).await.expect("planned");
        let progress = super::ScanProgress::of(&physical);
        let plan = Arc::downgrade(&physical);
        drop(physical);
        assert!(plan.upgrade().is_none());
        assert_eq!(progress.rows(), (0, 20));
    });
}
