//! Materialized views through restarts and exports, and beside other sessions.

use std::path::Path;
use std::sync::Arc;

use atoll_placement::LiveKernel;
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::{DatabaseOptions, Identity, Session};
use atoll_topology::Machine;

use crate::common::{live, rows, run};

fn open(directory: &Path) -> Session {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let kernel = Arc::new(LiveKernel::new());
    let runtime =
        Runtime::start(machine, kernel, RuntimeOptions::default()).expect("the pools start");
    let directory = Some(directory.to_owned());
    let options = DatabaseOptions { directory, ..DatabaseOptions::default() };
    Session::new(runtime, options).expect("the directory is free")
}

fn make(session: &Session) {
    for sql in [
        "CREATE SCHEMA s",
        "CREATE TABLE t AS SELECT value AS id, value % 10 AS k FROM generate_series(1, 50000)",
        "CREATE MATERIALIZED VIEW s.m (k, n) AS SELECT k, count(*) AS c FROM t GROUP BY k -- counts",
        "CREATE UNIQUE INDEX m_k ON s.m (k)",
        "CREATE VIEW v AS SELECT sum(n) AS n FROM s.m",
        "CREATE MATERIALIZED VIEW all_rows AS SELECT id FROM t",
        "CREATE MATERIALIZED VIEW a_of_v AS SELECT n + 1 AS n FROM v",
        "CREATE MATERIALIZED VIEW empty AS SELECT * FROM a_of_v WITH NO DATA",
        "COMMENT ON MATERIALIZED VIEW s.m IS 'counts'",
    ] {
        rows(session, sql);
    }
}

fn check(session: &Session) {
    assert_eq!(rows(session, "SELECT n FROM s.m WHERE k = 3"), [["5000"]]);
    assert_eq!(rows(session, "SELECT count(*), max(id) FROM all_rows"), [["50000", "50000"]]);
    assert_eq!(rows(session, "SELECT n FROM a_of_v"), [["50001"]]);
    let error = run(session, "SELECT * FROM empty").expect_err("it has no rows");
    assert_eq!(error.state.code(), "55000");
    let listed = "SELECT matviewname, hasindexes, ispopulated FROM pg_matviews ORDER BY 1";
    let wanted = [
        ["a_of_v", "false", "true"],
        ["all_rows", "false", "true"],
        ["empty", "false", "false"],
        ["m", "true", "true"],
    ];
    assert_eq!(rows(session, listed), wanted);
    for sql in
        ["INSERT INTO s.m VALUES (1, 1)", "DELETE FROM s.m", "DROP TABLE s.m", "DROP TABLE t"]
    {
        run(session, sql).expect_err(sql);
    }
}

fn check_refresh(session: &Session) {
    rows(session, "DELETE FROM t WHERE k = 3 OR id > 40000");
    for name in ["s.m", "all_rows", "a_of_v", "empty"] {
        rows(session, &format!("REFRESH MATERIALIZED VIEW {name}"));
    }
    assert_eq!(rows(session, "SELECT n FROM s.m WHERE k = 3"), Vec::<Vec<String>>::new());
    assert_eq!(rows(session, "SELECT n FROM s.m WHERE k = 4"), [["4000"]]);
    assert_eq!(rows(session, "SELECT count(*) FROM all_rows"), [["36000"]]);
    assert_eq!(rows(session, "SELECT n FROM empty"), [["36001"]]);
}

#[test]
fn materialized_views_survive_restarts() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("db");
    let session = open(&place);
    make(&session);
    check(&session);
    drop(session);
    let session = open(&place);
    check(&session);
    check_refresh(&session);
    rows(&session, "CHECKPOINT");
    rows(&session, "ALTER MATERIALIZED VIEW empty RENAME TO full_one");
    drop(session);
    let session = open(&place);
    assert_eq!(rows(&session, "SELECT n FROM full_one"), [["36001"]]);
    rows(&session, "INSERT INTO t VALUES (1, 1)");
    rows(&session, "REFRESH MATERIALIZED VIEW CONCURRENTLY s.m");
    rows(&session, "REFRESH MATERIALIZED VIEW a_of_v");
    assert_eq!(rows(&session, "SELECT n FROM a_of_v"), [["36002"]]);
    rows(&session, "DROP TABLE t CASCADE");
    assert_eq!(rows(&session, "SELECT count(*) FROM pg_matviews"), [["0"]]);
}

#[test]
fn an_export_creates_them_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let exported = directory.path().join("exported");
    let session = live();
    make(&session);
    rows(&session, &format!("EXPORT DATABASE TO '{}'", exported.display()));
    let other = live();
    rows(&other, &format!("IMPORT DATABASE FROM '{}'", exported.display()));
    check(&other);
    check_refresh(&other);
}

#[test]
fn show_create_table_shows_the_statement() {
    let session = live();
    rows(&session, "CREATE TABLE t (a INT)");
    rows(&session, "CREATE MATERIALIZED VIEW m (b) AS SELECT a FROM t WITH NO DATA");
    let shown = rows(&session, "SHOW CREATE TABLE m");
    let wanted = "CREATE MATERIALIZED VIEW m (b) AS SELECT a FROM t WITH NO DATA";
    assert_eq!(shown[0][3], wanted);
}

#[test]
fn others_read_the_old_rows_until_a_refresh_commits() {
    let session = live();
    rows(&session, "CREATE TABLE t AS SELECT 1 AS a");
    rows(&session, "CREATE MATERIALIZED VIEW m AS SELECT * FROM t");
    let other = session.database().session().expect("a session");
    rows(&session, "BEGIN");
    rows(&session, "INSERT INTO t VALUES (2)");
    rows(&session, "REFRESH MATERIALIZED VIEW m");
    assert_eq!(rows(&session, "SELECT count(*) FROM m"), [["2"]]);
    assert_eq!(rows(&other, "SELECT count(*) FROM m"), [["1"]]);
    rows(&session, "COMMIT");
    assert_eq!(rows(&other, "SELECT count(*) FROM m"), [["2"]]);
}

#[test]
fn a_prepared_query_follows_refreshes() {
    let session = live();
    rows(&session, "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT)");
    rows(&session, "INSERT INTO t VALUES (1, 10)");
    rows(&session, "CREATE MATERIALIZED VIEW m AS SELECT * FROM t");
    rows(&session, "CREATE UNIQUE INDEX ON m (a)");
    rows(&session, "PREPARE p AS SELECT b FROM m WHERE a = $1");
    assert_eq!(rows(&session, "EXECUTE p(1)"), [["10"]]);
    rows(&session, "UPDATE t SET b = 20");
    assert_eq!(rows(&session, "EXECUTE p(1)"), [["10"]]);
    rows(&session, "REFRESH MATERIALIZED VIEW m");
    assert_eq!(rows(&session, "EXECUTE p(1)"), [["20"]]);
    rows(&session, "REFRESH MATERIALIZED VIEW m WITH NO DATA");
    assert_eq!(run(&session, "EXECUTE p(1)").expect_err("no rows").state.code(), "55000");
}

#[test]
fn only_the_owner_refreshes() {
    let session = live();
    rows(&session, "CREATE TABLE t AS SELECT 1 AS a");
    rows(&session, "CREATE MATERIALIZED VIEW m AS SELECT * FROM t");
    rows(&session, "CREATE ROLE ann");
    let identity = Identity { user: "ann".into(), ..Identity::default() };
    let ann = session.database().session_of(identity).expect("a session");
    let refused = |sql: &str| {
        let error = run(&ann, sql).expect_err(sql);
        assert_eq!(error.state.code(), "42501", "{sql}: {error}");
    };
    refused("SELECT * FROM m");
    rows(&session, "GRANT SELECT ON m TO ann");
    assert_eq!(rows(&ann, "SELECT * FROM m"), [["1"]]);
    refused("REFRESH MATERIALIZED VIEW m");
    refused("DROP MATERIALIZED VIEW m");
    refused("ALTER MATERIALIZED VIEW m RENAME TO n");
}
