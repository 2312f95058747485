//! A statement sees one version: it does not see what is published after its planning began.

use std::sync::Arc;

use atoll_placement::LiveKernel;
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_topology::Machine;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::logical_expr::LogicalPlan;

use crate::DatabaseOptions;
use crate::session::Session;
use crate::session::cache::statement_texts::TextRide;
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::parsed_statement::parse;
use crate::table::StaleStatement;
use atoll_sql_exec::admission::StatementClass;
use atoll_sql_exec::watch::StatementWait;

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
        run(&session, "DROP TABLE t CASCADE").await;
        let result = session.query(planner, plan, sql).await.expect("the query starts");
        let rows = result.collect().await.expect("the query ends");
        assert_eq!([number(&rows, 0), number(&rows, 1), number(&rows, 2)], [10, 10, 10]);
    });
}

#[test]
fn a_statement_whose_table_changed_before_it_wrote_runs_again() {
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
        let physical = crate::session::plan::steps::plan_physical(&planner.state, &plan)
            .await
            .expect("planned");
        let progress = atoll_sql_exec::scan::ScanProgress::for_plan(&physical);
        let plan = Arc::downgrade(&physical);
        drop(physical);
        assert!(plan.upgrade().is_none());
        assert_eq!(progress.rows(), (0, 20));
    });
}

#[test]
fn statements_are_driven_on_the_home_of_their_session() {
    let machine = Arc::new(atoll_testkit::machines::four_nodes());
    let kernel = Arc::new(atoll_testkit::kernel::SimulatedKernel::new(Arc::clone(&machine)));
    let runtime = Runtime::start(machine, kernel, RuntimeOptions::default()).expect("pools");
    let session = Session::new(runtime, DatabaseOptions::default()).expect("the session starts");
    let runtime = session.runtime().clone();
    let here = async || {
        let runtime = runtime.clone();
        session.on_worker(async move { Ok(runtime.current_node()) }).await.expect("it runs")
    };
    runtime.block_on(async {
        assert_eq!(here().await, Some(atoll_topology::NodeId(0)));
        for node in [3, 2] {
            run(&session, &format!("SET atoll.home = {node}")).await;
            assert_eq!(here().await, Some(atoll_topology::NodeId(node)));
            let rows = run(&session, "SELECT sum(value) FROM generate_series(1, 10)").await;
            assert_eq!(number(&rows, 0), 55);
        }
        run(&session, "RESET ALL").await;
        assert_eq!(here().await, Some(atoll_topology::NodeId(0)));
    });
}

#[test]
fn plans_that_are_kept_keep_no_rows() {
    let session = session();
    session.runtime().block_on(async {
        let table = "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT CHECK (n + 1 > 0), \
                     g BIGINT GENERATED ALWAYS AS (n + 1))";
        run(&session, table).await;
        run(&session, "INSERT INTO t (id, n) SELECT value, value FROM range(9000) r(value)").await;
        let prepared =
            ["SELECT n + 1 FROM t WHERE id = $1", "UPDATE t SET n = n + 1 WHERE id = $1"];
        let mut kept = Vec::new();
        for sql in prepared {
            kept.push(session.prepare(sql).await.expect(sql));
        }
        let mut versions = Vec::new();
        for sql in [
            "SELECT n + 1 FROM t WHERE id = 1",
            "SELECT id + 1 FROM t WHERE n = 1",
            "SELECT sum(id + 1) FROM t WHERE n = 1",
            "UPDATE t SET n = n + 1 WHERE id = 1",
            "UPDATE t SET n = 7 WHERE n = 3",
            "DELETE FROM t WHERE id = 2",
            "INSERT INTO t (id, n) VALUES (10000, 1)",
            "INSERT INTO t (id, n) VALUES (10000, 1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
        ] {
            versions.push((sql, Arc::downgrade(&session.database().store().published())));
            run(&session, sql).await;
            run(&session, "INSERT INTO t (id, n) SELECT max(id) + 1, 1 FROM t").await;
        }
        for (sql, version) in versions {
            // Tasks may end a moment after the last row is out.
            for _ in 0..1_000_000 {
                if version.strong_count() == 0 {
                    break;
                }
                tokio::task::yield_now().await;
            }
            assert_eq!(version.strong_count(), 0, "{sql}");
        }
        drop(kept);
    });
}

#[test]
fn create_table_as_and_explain_analyze_wait_for_admission() {
    let session = session();
    session.runtime().block_on(async {
        let table =
            "CREATE TABLE t AS SELECT x, x::VARCHAR || 'abcdefgh' AS s FROM range(300000) r(x)";
        run(&session, table).await;
        run(&session, "SET atoll.small_statements = 1").await;
        for sql in [
            "CREATE TABLE u AS SELECT count(*) AS n FROM t WHERE s LIKE '%x%'",
            "EXPLAIN ANALYZE SELECT count(*) FROM t WHERE s LIKE '%x%'",
            "INSERT INTO u SELECT count(*) FROM t WHERE s LIKE '%x%'",
        ] {
            let place = session.database().admission().enter(StatementClass::Small).await;
            let statement = run(&session, sql);
            let watched = async {
                while session.watch.waits() != StatementWait::Queue {
                    tokio::task::yield_now().await;
                }
                drop(place);
            };
            tokio::join!(statement, watched);
        }
        assert_eq!(number(&run(&session, "SELECT count(*) FROM u").await, 0), 2);
    });
}

#[test]
fn execute_is_planned_once_where_its_values_are_of_the_types_of_its_parameters() {
    let session = session();
    session.runtime().block_on(async {
        run(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)").await;
        for prepare in [
            "PREPARE read AS SELECT n FROM t WHERE id = $1",
            "PREPARE changed (BIGINT) AS UPDATE t SET n = n + 1 WHERE id = $1",
            "PREPARE made AS INSERT INTO t VALUES ($1, $2)",
            "PREPARE as_float (DOUBLE) AS SELECT n FROM t WHERE id = $1",
        ] {
            run(&session, prepare).await;
        }
        for (sql, rides) in [
            ("EXECUTE made(1, 10)", true),
            ("EXECUTE read(1)", true),
            ("EXECUTE changed(1)", true),
            ("EXECUTE read(1 + 1)", false),
            ("EXECUTE read('1')", false),
            ("EXECUTE as_float(1)", false),
            ("EXECUTE read(1, 2)", false),
            ("EXECUTE unknown(1)", false),
        ] {
            let statement = session.parse(sql).expect(sql).statement;
            let ride = session.ride_text(&statement, sql).await.expect(sql);
            assert_eq!(matches!(ride, TextRide::Done(_)), rides, "{sql}");
        }
        assert_eq!(number(&run(&session, "EXECUTE read(1)").await, 0), 11);
    });
}

#[test]
fn repeated_prepares_use_the_cache_with_parameters_and_without_operators() {
    let session = session();
    session.runtime().block_on(async {
        run(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)").await;
        for (sql, is_found) in [
            ("SELECT n FROM t WHERE id = $1", true),
            ("SELECT id FROM t WHERE n > $1", true),
            ("UPDATE t SET n = n + 1 WHERE id = $1", true),
            ("INSERT INTO t VALUES ($1, $2)", true),
            ("SELECT n FROM t WHERE id = 1", false),
            ("SELECT a.n FROM t AS a JOIN t AS b ON a.id = b.n WHERE b.id = $1", false),
            ("BEGIN", false),
        ] {
            session.prepare(sql).await.expect(sql);
            let published = session.database().store().published();
            let found = session.prepared_before(sql, &[], &published).await;
            assert_eq!(found.is_some(), is_found, "{sql}");
        }
        run(&session, "ALTER TABLE t ADD COLUMN k INT").await;
        let published = session.database().store().published();
        let sql = "SELECT n FROM t WHERE id = $1";
        assert!(session.prepared_before(sql, &[], &published).await.is_none(), "after ALTER TABLE");
        session.prepare(sql).await.expect(sql);
        assert!(session.prepared_before(sql, &[], &published).await.is_some(), "kept anew");
    });
}
