//! GROUP BY in batches of one and two rows, with any number of workers: the same groups as in batches of the usual
//! size, whatever the variant.

use std::sync::Arc;

use atoll_placement::{LiveKernel, Strategy};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::{DatabaseOptions, Session};
use atoll_testkit::machines;
use atoll_topology::{Bytes, Machine};

use crate::common::{fake, rows, run};

const METHODS: [&str; 5] = ["auto", "local", "ring", "migrate", "off"];

/// A session with this many workers on the machine the test runs on.
fn with_workers(threads: usize) -> Session {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let options = RuntimeOptions { threads: Some(threads), ..RuntimeOptions::default() };
    let runtime = Runtime::start(machine, Arc::new(LiveKernel::new()), options);
    let limit = Bytes(1 << 30);
    let options = DatabaseOptions { memory_limit: limit, ..DatabaseOptions::default() };
    Session::new(runtime.expect("the pools start"), options).expect("the session starts")
}

/// Several partitions without rows, with fewer rows than workers, with a hot key, and with as many groups as rows; keys
/// that are words, strings short and long, and a sorted key.
const TABLES: [&str; 4] = [
    "CREATE TABLE none (k BIGINT, s VARCHAR, v BIGINT)",
    "CREATE TABLE few AS SELECT value AS k, 'f' || value AS s, value AS v FROM generate_series(1, 3)",
    "CREATE TABLE hot AS SELECT CASE WHEN value % 10 < 9 THEN 7 ELSE value END AS k, \
     CASE WHEN value % 10 < 9 THEN NULL ELSE 'a key of many bytes, number ' || value END AS s, \
     value AS v FROM generate_series(1, 1500)",
    "CREATE TABLE many AS SELECT value AS k, 's' || (value % 400) AS s, value * 7 % 1000 AS v \
     FROM generate_series(1, 20000)",
];

const QUERIES: [&str; 6] = [
    "SELECT k, count(*), sum(v) FROM none GROUP BY k",
    "SELECT k, s, count(*), min(v) FROM (SELECT * FROM none UNION ALL SELECT * FROM few UNION ALL \
     SELECT * FROM few WHERE k > 2) GROUP BY k, s",
    "SELECT k, count(*), sum(v), avg(v) FROM (SELECT * FROM hot UNION ALL SELECT * FROM few) \
     GROUP BY k",
    "SELECT s, count(*), max(v) FROM (SELECT * FROM hot UNION ALL SELECT * FROM hot WHERE v % 2 = 0) \
     GROUP BY s",
    "SELECT k, sum(v) FROM many WHERE v % 5 = 1 GROUP BY k HAVING sum(v) > 500",
    "SELECT n, count(*), sum(t) FROM (SELECT s, count(DISTINCT v) AS n, sum(v) AS t FROM many \
     WHERE k % 16 = 3 GROUP BY s) GROUP BY n",
];

fn sorted(session: &Session, sql: &str) -> Vec<Vec<String>> {
    let mut rows = rows(session, sql);
    rows.sort();
    rows
}

fn assert_same_in_small_batches(session: &Session, name: &str) {
    for table in TABLES {
        rows(session, table);
    }
    rows(session, "SET atoll.aggregate = 'off'");
    let expected: Vec<_> = QUERIES.iter().map(|sql| sorted(session, sql)).collect();
    for batch_size in [1, 2] {
        rows(session, &format!("SET datafusion.execution.batch_size = {batch_size}"));
        for method in METHODS {
            rows(session, &format!("SET atoll.aggregate = '{method}'"));
            for (sql, expected) in QUERIES.iter().zip(&expected) {
                let found = sorted(session, sql);
                assert!(
                    found == *expected,
                    "{name}, {method}, batches of {batch_size}: {} rows for {}\n{sql}",
                    found.len(),
                    expected.len(),
                );
            }
        }
    }
}

#[test]
fn one_to_seven_workers_give_the_same_groups_in_batches_of_one_and_two_rows() {
    for threads in 1..=7 {
        assert_same_in_small_batches(&with_workers(threads), &format!("{threads} workers"));
    }
}

#[test]
fn machines_of_several_nodes_give_the_same_groups_in_batches_of_one_and_two_rows() {
    for machine in [machines::two_nodes(), machines::four_nodes(), machines::eight_uneven_nodes()] {
        let name = machine.name.clone();
        assert_same_in_small_batches(&fake(machine, Strategy::Aligned), &name);
    }
}

/// Each batch of two rows had a buffer of 1 MiB for its strings.
#[test]
fn strings_of_a_scan_in_small_batches_take_the_memory_of_their_rows() {
    let session = with_workers(3);
    rows(
        &session,
        "CREATE TABLE t AS SELECT value AS k, 'a string of many bytes, number ' || value AS s \
         FROM generate_series(1, 20000)",
    );
    rows(&session, "SET datafusion.execution.batch_size = 2");
    let batches = run(&session, "SELECT s FROM t WHERE k % 10 = 0").expect("it runs");
    let found: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    let bytes: usize = batches.iter().map(|batch| batch.get_array_memory_size()).sum();
    assert_eq!(found, 2000);
    assert!(bytes < 16 << 20, "{bytes} bytes in {} batches", batches.len());
}
