//! A query whose result was dropped ends, primitives in the midst of a step included.

use std::sync::Arc;

use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use datafusion::physical_plan::{collect, displayable};

use super::planner::{cancel_token, plan_physical};
use crate::parse::parse;
use crate::{DatabaseOptions, Session};

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
