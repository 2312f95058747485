//! A data directory is released with the last session of its database, whatever the session did.

use std::path::Path;
use std::sync::Arc;

use atoll_placement::LiveKernel;
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{DatabaseOptions, Session};
use atoll_topology::Machine;

use crate::common::{rows, run};

fn runtime() -> Runtime {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let kernel = Arc::new(LiveKernel::new());
    Runtime::start(machine, kernel, RuntimeOptions::default()).expect("the pools start")
}

fn open(runtime: &Runtime, directory: &Path) -> Session {
    let directory = Some(directory.to_owned());
    let options = DatabaseOptions { directory, ..DatabaseOptions::default() };
    Session::new(runtime.clone(), options).expect("the directory is free")
}

const STATEMENTS: [&str; 34] = [
    "CREATE SCHEMA s",
    "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT CHECK (n + 1 > 0), g BIGINT GENERATED ALWAYS AS (n * 2))",
    "CREATE TABLE s.u AS SELECT value AS k, value % 7 AS v FROM generate_series(1, 5000)",
    "CREATE VIEW w AS SELECT id, n + 1 AS m FROM t",
    "CREATE MACRO plus(a, b) AS a + b",
    "CREATE MACRO upto(k) AS TABLE SELECT * FROM t WHERE id <= k",
    "CREATE SEQUENCE q",
    "INSERT INTO t (id, n) VALUES (1, 10)",
    "INSERT INTO t (id, n) VALUES (2, 20)",
    "INSERT INTO t (id, n) VALUES (nextval('q') + 100, 30) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n",
    "INSERT INTO t (id, n) SELECT k + 1000, v FROM s.u",
    "SELECT n + 1 FROM t WHERE id = 1",
    "SELECT n + 1 FROM t WHERE id = 2",
    "SELECT k + v FROM s.u WHERE v = 3",
    "SELECT k + v FROM s.u WHERE v = 4",
    "SELECT sum(k + 1) FROM s.u WHERE v = 3",
    "UPDATE t SET n = n + 1 WHERE id = 1",
    "UPDATE t SET n = 5 WHERE n = 6 RETURNING id",
    "UPDATE s.u SET v = 9 WHERE v = 2",
    "DELETE FROM s.u WHERE v = 1",
    "DELETE FROM t WHERE id = 1004",
    "SELECT m, plus(id, m) FROM w WHERE id < 3",
    "SELECT * FROM upto(2)",
    "SELECT relname::VARCHAR, 't'::regclass::VARCHAR FROM pg_catalog.pg_class WHERE relname = 't'",
    "SELECT format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute WHERE attname = 'n'",
    "SELECT * FROM atoll.tables",
    "SELECT * FROM atoll.snapshots",
    "PREPARE p AS SELECT n + $2 FROM t WHERE id = $1",
    "EXECUTE p(1, 3)",
    "EXECUTE p(2, 3)",
    "BEGIN",
    "UPDATE t SET n = n + 1 WHERE id = 2",
    "SELECT n FROM t WHERE id = 2 FOR UPDATE",
    "COMMIT",
];

/// The final contents of all tables.
fn contents(session: &Session) -> Vec<Vec<Vec<String>>> {
    ["SELECT * FROM t ORDER BY id", "SELECT * FROM s.u ORDER BY k", "SELECT * FROM w ORDER BY id"]
        .map(|sql| rows(session, sql))
        .to_vec()
}

/// Statements that a client prepares, and an abandoned result.
fn use_otherwise(session: &Session) {
    session.runtime().block_on(async {
        for sql in [
            "SELECT n + 1 FROM t WHERE id = $1",
            "SELECT count(*) FROM s.u WHERE v = $1",
            "UPDATE t SET n = n + 1 WHERE id = $1",
            "UPDATE s.u SET k = k + 1 WHERE v = $1",
            "DELETE FROM t WHERE id = $1",
            "SELECT x.k + y.k FROM s.u AS x, s.u AS y WHERE x.v = $1",
        ] {
            let prepared = session.prepare(sql).await.expect(sql);
            for value in [4_i64, 5] {
                let result = prepared.execute(&[ScalarValue::from(value)]).await.expect(sql);
                result.collect().await.expect(sql);
            }
        }
        let mut result = session.run("SELECT x.k FROM s.u AS x, s.u AS y").await.expect("it runs");
        result.next().await.expect("rows");
    });
    run(session, "SELECT nothing FROM t").expect_err("there is no such column");
    rows(session, "BEGIN");
    rows(session, "INSERT INTO t (id, n) VALUES (77, 7)");
}

#[test]
fn a_directory_is_released_with_the_last_session_and_keeps_commits() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("database");
    let runtime = runtime();
    let first = open(&runtime, &path);
    for sql in STATEMENTS {
        run(&first, sql).unwrap_or_else(|error| panic!("{sql}\n{error}"));
    }
    let second = first.database().session().expect("a session");
    use_otherwise(&second);
    let left = contents(&first);
    drop((first, second));
    let again = open(&runtime, &path);
    assert_eq!(contents(&again), left);
    assert_eq!(rows(&again, "SELECT nextval('q') > 1"), [["true"]]);
    let taken = DatabaseOptions { directory: Some(path), ..DatabaseOptions::default() };
    let error = Session::new(runtime, taken).expect_err("it has a session");
    assert!(error.to_string().contains("in use by process"), "{error}");
}

#[test]
fn a_prepared_transaction_waits_in_its_directory_for_a_later_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("database");
    let runtime = runtime();
    let gids = |session: &Session| rows(session, "SELECT gid FROM pg_prepared_xacts ORDER BY gid");
    let first = open(&runtime, &path);
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY, s TEXT)",
        "BEGIN",
        "INSERT INTO t SELECT value, 'row ' || value FROM generate_series(1, 5000)",
        "CREATE INDEX t_s ON t (s)",
        "PREPARE TRANSACTION 'load'",
        "BEGIN",
        "CREATE TABLE u AS SELECT 7 AS a",
        "PREPARE TRANSACTION 'create'",
    ] {
        run(&first, sql).unwrap_or_else(|error| panic!("{sql}\n{error}"));
    }
    assert_eq!(rows(&first, "SELECT count(*) FROM t"), [["0"]]);
    drop(first);
    let second = open(&runtime, &path);
    assert_eq!(gids(&second), [["create"], ["load"]]);
    rows(&second, "ROLLBACK PREPARED 'create'");
    rows(&second, "CHECKPOINT");
    drop(second);
    let third = open(&runtime, &path);
    assert_eq!(gids(&third), [["load"]]);
    rows(&third, "COMMIT PREPARED 'load'");
    assert_eq!(rows(&third, "SELECT id FROM t WHERE s = 'row 4711'"), [["4711"]]);
    drop(third);
    let last = open(&runtime, &path);
    assert_eq!(rows(&last, "SELECT count(*), max(id) FROM t"), [["5000", "5000"]]);
    assert!(gids(&last).is_empty());
    rows(&last, "CREATE TABLE u (a INT)");
}
