//! The memory limit is respected, and spilling operators make do with little.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use atoll_sql::{DatabaseOptions, Session};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_topology::{Bytes, Machine};

use crate::common::{rows, run, session};

/// Some 30 MB of texts.
const TEXTS: &str = "(SELECT value AS k, (value * 7919) % 300007 AS r, \
    repeat(lpad(to_hex(value * 40503 % 65536), 8, 'x'), 12) AS s FROM generate_series(1, 300000))";

/// Two workers, whatever machine the test runs on: shares of the limit are by worker.
fn with(memory_limit: u64, heap: Option<fn() -> Bytes>) -> Session {
    let machine = Arc::new(Machine::synthetic("node:1 core:2").expect("a machine"));
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let memory_limit = Bytes(memory_limit);
    session(machine, kernel, DatabaseOptions { memory_limit, heap, ..DatabaseOptions::default() })
}

fn error(session: &Session, sql: &str) -> String {
    run(session, sql).expect_err("memory is short").to_string()
}

#[test]
fn sorted_texts_reach_a_file() {
    let session = with(32 << 20, None);
    let folder = tempfile::tempdir().unwrap();
    let file = |suffix: &str| folder.path().join(format!("sorted.{suffix}"));
    for suffix in ["csv", "parquet"] {
        let target = file(suffix);
        let copy =
            format!("COPY (SELECT s, k FROM {TEXTS} ORDER BY s, k) TO '{}'", target.display());
        assert_eq!(rows(&session, &copy), [["300000"]]);
    }
    let text = std::fs::read_to_string(file("csv")).unwrap();
    let line = |line: &str| {
        let (text, number) = line.split_once(',').unwrap();
        (text.to_owned(), number.parse::<u64>().unwrap())
    };
    let lines: Vec<(String, u64)> = text.lines().skip(1).map(line).collect();
    assert_eq!(lines.len(), 300_000);
    assert!(lines.is_sorted());
}

#[test]
fn a_large_offset_is_sorted_on_disk() {
    let session = with(32 << 20, None);
    let page = "ORDER BY r LIMIT 2 OFFSET 250000";
    let plan = rows(&session, &format!("EXPLAIN SELECT r, s FROM {TEXTS} {page}")).concat();
    assert!(!plan.concat().contains("TopK"), "{plan:?}");
    let all = rows(&with(1 << 30, None), &format!("SELECT r, s FROM {TEXTS} {page}"));
    assert_eq!(all.len(), 2);
    assert_eq!(rows(&session, &format!("SELECT r, s FROM {TEXTS} {page}")), all);
    let few = rows(&session, &format!("EXPLAIN SELECT r, s FROM {TEXTS} ORDER BY r LIMIT 2"));
    assert!(few.concat().concat().contains("TopK"), "{few:?}");
}

#[test]
fn rows_that_a_window_keeps_are_reserved() {
    let session = with(32 << 20, None);
    let error = error(&session, &format!("SELECT max(s) OVER () FROM {TEXTS}"));
    assert!(error.contains("WindowAggExec") && error.contains("32.0 MiB"), "{error}");
    let few =
        format!("SELECT max(n) FROM (SELECT max(k) OVER () AS n FROM {TEXTS} WHERE k < 1000)");
    assert_eq!(rows(&session, &few), [["999"]]);
}

#[test]
fn texts_put_together_are_charged_with_their_copies() {
    let session = with(64 << 20, None);
    let long = error(&session, &format!("SELECT length(string_agg(s, ',')) FROM {TEXTS}"));
    assert!(long.contains("AggregateStream") && long.contains("64.0 MiB"), "{long}");
    let few = format!("SELECT length(string_agg(s, ',')) FROM {TEXTS} WHERE k <= 1000");
    assert_eq!(rows(&session, &few), [["96999"]]);
}

#[test]
fn one_call_makes_no_more_than_there_is_memory_for() {
    let session = with(64 << 20, None);
    for sql in [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT lpad('x', 2000000000, 'ab')",
        "SELECT array_length(range(0, 5000000000))",
        "SELECT array_length(generate_series(TIMESTAMP '2000-01-01', TIMESTAMP '2020-01-01', INTERVAL '1' SECOND))",
        "SELECT array_length(array_repeat(7, 1000000000))",
        "SELECT length(replace(repeat('x', 100000), 'x', repeat('y', 100000)))",
        "SELECT max(length(repeat('x', k * 100000))) FROM generate_series(7000, 8000) AS t(k)",
    ] {
        let error = error(&session, sql);
        assert!(error.contains("would make") && error.contains("1.0 GiB"), "{sql}\n{error}");
    }
    let error = error(&session, "SELECT length(repeat('x', 500000000))");
    assert!(error.contains("repeat") && error.contains("64.0 MiB"), "{error}");
    assert_eq!(rows(&session, "SELECT length(repeat('x', 5000000))"), [["5000000"]]);
}

#[test]
fn a_large_constant_is_left_to_the_execution() {
    let session = with(1 << 30, None);
    let plan = rows(&session, "EXPLAIN SELECT repeat('x', 100000000), repeat('y', 3)");
    let plan = plan.concat().concat();
    assert!(plan.contains("repeat(x") && plan.contains("yyy"), "{plan}");
    let kept = "SELECT length(s) FROM (VALUES (repeat('x', 1000000))) AS t(s)";
    assert_eq!(rows(&session, kept), [["1000000"]]);
}

static HEAP: AtomicU64 = AtomicU64::new(0);

fn heap() -> Bytes {
    Bytes(HEAP.load(Ordering::Relaxed))
}

#[test]
fn a_query_ends_where_more_is_allocated_than_it_reserves() {
    let session = with(64 << 20, Some(heap));
    let queries = [
        "SELECT count(k % 7) FROM t",
        "SELECT count(*) FROM generate_series(1, 100000)",
        "SELECT k, count(*) FROM t GROUP BY k",
        "INSERT INTO t SELECT * FROM t",
    ];
    rows(&session, "CREATE TABLE t AS SELECT value AS k FROM generate_series(1, 100000)");
    HEAP.store(200 << 20, Ordering::Relaxed);
    for sql in queries {
        let error = error(&session, sql);
        assert!(error.contains("memory") && error.contains("64.0 MiB"), "{sql}\n{error}");
    }
    // Metadata and statements with small results continue, or no table could be dropped.
    rows(&session, "SELECT 1");
    HEAP.store(0, Ordering::Relaxed);
    rows(&session, queries[3]);
    assert_eq!(rows(&session, queries[0]), [["200000"]]);
}

#[test]
fn a_dropped_table_is_the_kernels_again() {
    let session = with(1 << 30, None);
    rows(&session, "CREATE TABLE t AS SELECT value AS k FROM generate_series(1, 1000000)");
    rows(&session, "CREATE OR REPLACE TABLE t AS SELECT value AS k FROM generate_series(1, 10)");
    assert!(session.arena().kept().0 > 1 << 20, "the next table can have it");
    rows(&session, "DROP TABLE t");
    assert_eq!(session.arena().kept(), Bytes(0));
}
