//! Threads that share a session.

use std::thread::{self, ScopedJoinHandle};

use crate::common::{live, rows};

/// Calls `check` until the other thread is done, and some times more.
fn until_done<T>(other: &ScopedJoinHandle<'_, T>, mut check: impl FnMut()) {
    let mut left = 10;
    while left > 0 {
        check();
        left -= usize::from(other.is_finished());
    }
}

#[test]
fn a_query_sees_one_moment_while_others_replace_and_extend_its_tables() {
    let session = live();
    let table = |version: usize| {
        format!(
            "CREATE OR REPLACE TABLE t AS \
             SELECT value AS a, {version} AS version FROM generate_series(1, 100)"
        )
    };
    rows(&session, &table(0));
    rows(&session, "CREATE VIEW v AS SELECT a, version FROM t");
    rows(&session, "PREPARE p AS SELECT count(*) FROM t x JOIN t y ON x.a = y.a");
    let self_join = "SELECT count(*) AS n, (SELECT count(*) FROM t) AS t, \
                     (SELECT count(*) FROM v) AS v, max(x.version) - min(y.version) FROM t x JOIN v y ON x.a = y.a";
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for version in 1..=40 {
                rows(&session, &table(version));
                rows(&session, "INSERT INTO t SELECT a + 100, version FROM t");
            }
        });
        until_done(&writer, || {
            let row = rows(&session, self_join).remove(0);
            assert!(["100", "200"].contains(&row[0].as_str()), "{row:?}");
            assert_eq!((&row[1], &row[2], row[3].as_str()), (&row[0], &row[0], "0"), "{row:?}");
            let row = rows(&session, "EXECUTE p").remove(0);
            assert!(["100", "200"].contains(&row[0].as_str()), "{row:?}");
            rows(&session, "SELECT * FROM atoll.tables");
            rows(&session, "SELECT * FROM information_schema.columns");
        });
    });
    assert_eq!(rows(&session, "SELECT count(*), min(version) FROM t"), [["200", "40"]]);
}

#[test]
fn rows_that_two_threads_insert_are_all_there() {
    let session = live();
    rows(&session, "CREATE TABLE t (a BIGINT)");
    thread::scope(|scope| {
        for start in [0, 1000] {
            let session = &session;
            scope.spawn(move || {
                for row in start..start + 50 {
                    rows(session, &format!("INSERT INTO t VALUES ({row})"));
                }
            });
        }
    });
    let found = rows(&session, "SELECT count(*), count(DISTINCT a), sum(a) FROM t");
    assert_eq!(found, [["100", "100", "52450"]]);
}

#[test]
fn a_replacement_that_read_its_table_does_not_lose_rows_of_others() {
    let session = live();
    rows(&session, "CREATE TABLE t AS SELECT 0 AS a");
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (1..=50).for_each(|row| drop(rows(&session, &format!("INSERT INTO t VALUES ({row})"))));
        });
        until_done(&writer, || {
            rows(&session, "CREATE OR REPLACE TABLE t AS SELECT a FROM t");
        });
    });
    let found = rows(&session, "SELECT count(*), sum(a) FROM t");
    assert_eq!(found, [["51", "1275"]]);
}
