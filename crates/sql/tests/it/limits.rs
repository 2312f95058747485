//! Memory that runs short, queries that are cancelled, statements that fail.

use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_placement::LiveKernel;
use atoll_sql::{DatabaseOptions, Session};
use atoll_topology::{Bytes, Machine};

use crate::common::{live, rows, run, session};

fn with_memory(limit: u64) -> Session {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let options = DatabaseOptions { memory_limit: Bytes(limit), ..DatabaseOptions::default() };
    session(machine, Arc::new(LiveKernel::new()), options)
}

#[test]
fn a_table_beyond_the_limit_is_an_error_and_leaves_no_table() {
    let session = with_memory(8 << 20);
    let error = run(
        &session,
        "CREATE TABLE t AS SELECT value, value * 1000003 AS w FROM generate_series(1, 5000000)",
    )
    .expect_err("the table does not fit");
    assert!(error.to_string().contains("memory"), "{error}");
    let error = run(&session, "SELECT * FROM t").expect_err("there is no table");
    assert!(error.to_string().contains("relation \"t\" does not exist"), "{error}");
    rows(&session, "CREATE TABLE t AS SELECT 1 AS a");
    assert_eq!(rows(&session, "SELECT a FROM t"), [["1"]]);
}

#[test]
fn a_sort_beyond_the_limit_spills_and_is_right() {
    let session = with_memory(48 << 20);
    let sorted = rows(
        &session,
        "SELECT count(*), sum(CASE WHEN before > k THEN 1 ELSE 0 END) FROM \
         (SELECT k, lag(k) OVER (ORDER BY k) AS before FROM \
          (SELECT (value * 7919) % 2000003 AS k FROM generate_series(1, 2000000)))",
    );
    assert_eq!(sorted, [["2000000", "0"]]);
}

/// Either side takes some 150 MB as a hash table: the join is planned again, as a sort-merge join.
#[test]
fn a_join_beyond_the_limit_is_sorted_and_merged() {
    let session = with_memory(144 << 20);
    let sql = "SELECT count(*), sum(a.v + b.v) FROM \
        (SELECT value AS k, value % 10 AS v, repeat('x', 40) AS pad FROM generate_series(1, 2000000)) a \
        JOIN (SELECT value AS k, value % 10 AS v, repeat('y', 40) AS pad FROM generate_series(1, 2000000)) b \
        ON a.k = b.k WHERE a.pad < b.pad";
    assert_eq!(rows(&session, sql), [["2000000", "18000000"]]);
}

/// DataFusion's merge join reads other columns for its condition once a projection is moved below it.
#[test]
fn a_merged_join_with_a_condition_is_right_when_memory_selects_it() {
    let session = with_memory(128 << 20);
    let sql = "SELECT count(*), sum(a.k - b.k) FROM \
        (SELECT value % 7 AS v, value AS k, repeat('x', 40) AS pad FROM generate_series(1, 1000000)) a \
        JOIN (SELECT value % 5 AS w, value AS k, repeat('y', 40) AS pad FROM generate_series(1, 1000000)) b \
        ON a.k = b.k AND a.v > b.w WHERE a.pad < b.pad";
    let expected = (1..=1_000_000_u32).filter(|value| value % 7 > value % 5).count();
    assert_eq!(rows(&session, sql), [[expected.to_string(), "0".to_owned()]]);
}

/// Either all rows, or an error that says what was short; joins that preserve one side spill.
#[test]
fn nested_loop_joins_beyond_the_limit_lose_no_rows() {
    for (join, expected) in [
        ("LEFT", ["900", "900", "450", "4000", "4000"]),
        ("RIGHT", ["1100", "450", "1100", "4000", "4000"]),
        ("FULL", ["1550", "900", "1100", "4000", "4000"]),
    ] {
        for limit in [3, 4, 5, 64] {
            let session = with_memory(limit << 20);
            rows(&session, "CREATE TABLE a AS SELECT value AS k FROM generate_series(1, 900)");
            rows(&session, "CREATE TABLE b AS SELECT value AS k FROM generate_series(1, 1100)");
            let side = |name| {
                format!(
                    "(SELECT k, repeat(CAST(k % 10 AS VARCHAR), 4000) AS pad FROM {name}) {name}"
                )
            };
            let sql = format!(
                "SELECT count(*), count(a.k), count(b.k), max(length(a.pad)), max(length(b.pad)) \
                 FROM {} {join} JOIN {} ON abs(a.k - b.k * 2) < 1",
                side("a"),
                side("b")
            );
            match run(&session, &sql) {
                Ok(_) => assert_eq!(rows(&session, &sql), [expected], "{join}, {limit} MiB"),
                Err(error) => {
                    assert!(join == "FULL" && limit < 64, "{join}, {limit} MiB: {error}");
                    assert!(error.to_string().contains("memory"), "{error}");
                }
            }
        }
    }
}

#[test]
fn joins_by_merging_give_the_results_of_joins_by_hash() {
    let session = live();
    rows(
        &session,
        "CREATE TABLE a AS SELECT value % 100 AS k, value AS x FROM generate_series(1, 1000)",
    );
    rows(
        &session,
        "CREATE TABLE b AS SELECT value % 150 AS k, value AS y FROM generate_series(1, 900)",
    );
    for join in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
        let sql = format!("SELECT count(*), sum(x), sum(y) FROM a {join} b ON a.k = b.k AND x < y");
        let hashed = rows(&session, &sql);
        rows(&session, "SET atoll.join = 'merge'");
        let plan = rows(&session, &format!("EXPLAIN {sql}"));
        assert!(plan.iter().any(|row| row.join(" ").contains("SortMergeJoinExec")), "{plan:?}");
        assert_eq!(rows(&session, &sql), hashed, "{join}");
        rows(&session, "SET atoll.join = 'auto'");
    }
}

#[test]
fn dropping_a_result_ends_its_query_and_the_session_goes_on() {
    let session = live();
    rows(&session, "CREATE TABLE t AS SELECT value AS k FROM generate_series(1, 300000)");
    let endless = "SELECT sum(a.k * b.k % 7) FROM t a CROSS JOIN t b";
    session.runtime().block_on(async {
        let mut result = session.run(endless).await.expect("the query starts");
        let waited = tokio::time::timeout(Duration::from_millis(200), result.next()).await;
        assert!(waited.is_err(), "the query is too short to be cancelled");
    });
    // The workers are free again: a short query gets through long before the long one could.
    let start = Instant::now();
    assert_eq!(rows(&session, "SELECT count(*) FROM t"), [["300000"]]);
    assert!(start.elapsed() < Duration::from_secs(60), "the cancelled query still runs");
}

#[test]
fn a_failing_statement_leaves_the_session_whole() {
    let session = live();
    rows(&session, "CREATE TABLE t AS SELECT value AS k FROM generate_series(1, 10)");
    for bad in [
        "SELECT nothing FROM t",
        "SELECT * FROM tt",
        "SELEC 1",
        "INSERT INTO t SELECT CAST('x' AS BIGINT)",
        "CREATE OR REPLACE TABLE t AS SELECT 1 / 0",
        "SELECT sum(k * 9223372036854775807) OVER () FROM t",
        "SET atoll.placement = 'sideways'",
        "SELECT 'open",
        "",
        ";",
    ] {
        let error = run(&session, bad).map(|_| ());
        if let Err(error) = error {
            assert!(!error.to_string().is_empty());
        }
        assert_eq!(rows(&session, "SELECT count(*), sum(k) FROM t"), [["10", "55"]], "{bad}");
    }
}

#[test]
fn an_error_names_the_place_and_the_near_name() {
    let session = live();
    rows(&session, "CREATE TABLE orders AS SELECT 1 AS amount");
    let error = run(&session, "SELECT amount\nFROM ordres").expect_err("no such table");
    assert!(error.to_string().contains("Did you mean 'orders'?"), "{error}");
    let error = run(&session, "SELECT amuont FROM orders").expect_err("no such column");
    assert!(error.to_string().contains("Did you mean 'amount'?"), "{error}");
    assert_eq!(error.place.map(|place| (place.line, place.column)), Some((1, 8)));
    let error = run(&session, "SELECT 1 +\n FORM").expect_err("not SQL");
    assert!(error.place.is_some() || error.to_string().contains("FORM"), "{error}");
}
