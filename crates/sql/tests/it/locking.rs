//! Visibility between transactions of several sessions: locked rows and snapshots.

use std::thread;

use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{Session, SqlError};

use crate::common::{live, rows, run, texts};

/// A session of the same database.
fn beside(session: &Session) -> Session {
    session.database().session().expect("a session")
}

/// A table of three rows.
fn with_rows() -> Session {
    let session = live();
    rows(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)");
    rows(&session, "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
    session
}

async fn prepared(
    session: &Session,
    sql: &str,
    values: &[i64],
) -> Result<Vec<Vec<String>>, SqlError> {
    let values: Vec<ScalarValue> = values.iter().map(|value| (*value).into()).collect();
    let statement = session.prepare(sql).await?;
    let batches = statement.execute(&values).await?.collect().await?;
    Ok(batches.iter().flat_map(texts).collect())
}

/// The error code of a statement.
fn code<T>(result: Result<T, SqlError>) -> String {
    result.err().map(|error| error.state.code().to_owned()).unwrap_or_default()
}

#[test]
fn a_prepared_select_for_update_locks_its_row() {
    let session = with_rows();
    let other = beside(&session);
    let query = "SELECT n FROM t WHERE id = $1 FOR UPDATE NOWAIT";
    session.runtime().block_on(async {
        session.run("BEGIN").await.expect("it begins");
        assert_eq!(prepared(&session, query, &[2]).await.expect("it locks"), [["20"]]);
        assert_eq!(code(prepared(&other, query, &[2]).await), "55P03");
        assert_eq!(prepared(&other, query, &[1]).await.expect("another row"), [["10"]]);
        session.run("COMMIT").await.expect("it commits");
        assert_eq!(prepared(&other, query, &[2]).await.expect("it is free"), [["20"]]);
    });
}

#[test]
fn counting_with_prepared_locks_loses_nothing() {
    let session = with_rows();
    let count = |session: Session| async move {
        for _ in 0..20 {
            session.run("BEGIN").await.expect("it begins");
            let found = prepared(&session, "SELECT n FROM t WHERE id = $1 FOR UPDATE", &[1]).await;
            let n: i64 = found.expect("the row")[0][0].parse().expect("a number");
            let set = "UPDATE t SET n = $1 WHERE id = $2";
            prepared(&session, set, &[n + 1, 1]).await.expect("it is locked");
            session.run("COMMIT").await.expect("it commits");
        }
    };
    session.runtime().block_on(async {
        futures::join!(count(beside(&session)), count(beside(&session)), count(beside(&session)));
    });
    assert_eq!(rows(&session, "SELECT n FROM t WHERE id = 1"), [["70"]]);
}

#[test]
fn a_query_that_sql_prepares_locks_its_rows() {
    let session = with_rows();
    let other = beside(&session);
    rows(&session, "PREPARE p AS SELECT n FROM t WHERE id = $1 FOR UPDATE");
    rows(&session, "BEGIN");
    assert_eq!(rows(&session, "EXECUTE p(3)"), [["30"]]);
    let skipping = "SELECT id FROM t ORDER BY id DESC LIMIT 1 FOR UPDATE SKIP LOCKED";
    assert_eq!(rows(&other, skipping), [["2"]]);
    rows(&session, "ROLLBACK");
    assert_eq!(rows(&other, skipping), [["3"]]);
}

#[test]
fn rows_of_joins_are_locked_where_they_are_named() {
    let session = with_rows();
    let other = beside(&session);
    rows(&session, "CREATE TABLE u (k BIGINT, v VARCHAR)");
    rows(&session, "INSERT INTO u VALUES (1, 'a'), (2, 'b'), (2, 'c')");
    rows(&session, "BEGIN");
    let join = "SELECT u.*, n AS m FROM t JOIN u ON t.id = u.k WHERE id > 1 ORDER BY m, v OFFSET 1";
    let found = rows(&session, &format!("{join} FOR UPDATE OF u"));
    assert_eq!(found, [["2", "c", "20"]]);
    let free = |sql: &str| run(&other, sql).is_ok();
    assert!(free("SELECT * FROM t FOR UPDATE NOWAIT"), "OF u leaves t alone");
    assert!(!free("SELECT * FROM u WHERE v = 'c' FOR UPDATE NOWAIT"));
    assert!(free("SELECT * FROM u WHERE v = 'b' FOR UPDATE NOWAIT"), "OFFSET leaves it out");
    rows(&session, &format!("{join} FOR SHARE OF t FOR UPDATE OF u"));
    assert!(free("SELECT * FROM t WHERE id = 2 FOR SHARE NOWAIT"));
    assert!(!free("SELECT * FROM t WHERE id = 2 FOR UPDATE NOWAIT"));
    let left =
        "SELECT v, n FROM t LEFT JOIN u ON t.id = u.k ORDER BY n, v LIMIT 2 FOR UPDATE SKIP LOCKED";
    assert_eq!(rows(&other, left), [["a", "10"], ["NULL", "30"]], "2 is locked");
    let all = "WITH w AS (SELECT 3 AS k) SELECT t.* FROM t JOIN w ON w.k = t.id FOR UPDATE";
    assert_eq!(rows(&session, all), [["3", "30"]]);
    let nested = "SELECT * FROM (SELECT a.v FROM (SELECT * FROM u) a) s";
    assert!(!free(&format!("{nested} WHERE v = 'c' FOR UPDATE NOWAIT")), "within subqueries");
    assert!(free(&format!("{nested} WHERE v = 'b' FOR UPDATE NOWAIT")));
    let natural = "SELECT * FROM t NATURAL JOIN (SELECT 1 AS id) AS s";
    let locked = rows(&session, &format!("{natural} FOR UPDATE OF t"));
    assert_eq!(locked, rows(&session, natural));
    assert_eq!(locked.len(), 1);
    for (refused, why) in [
        ("SELECT * FROM t, u FOR UPDATE OF x", "'x'"),
        ("SELECT * FROM t, (SELECT count(*) FROM u) AS s FOR UPDATE", "one by one"),
        ("SELECT id, count(*) FROM t GROUP BY id FOR UPDATE", "one by one"),
        ("SELECT count(*) FROM t, u FOR UPDATE", "one by one"),
        ("SELECT missing FROM t FOR UPDATE", "missing"),
    ] {
        let error = run(&other, refused).expect_err(refused);
        assert!(error.message.contains(why), "{refused}: {error}");
    }
}

#[test]
fn what_waited_for_a_lock_sees_what_came_of_it() {
    let session = with_rows();
    let other = beside(&session);
    rows(&session, "BEGIN");
    rows(&session, "UPDATE t SET n = n + 1 WHERE id = 1");
    let found = session.runtime().block_on(async {
        let query =
            "SELECT t.n, o.n FROM t JOIN t AS o ON o.id = t.id + 1 WHERE t.id = $1 FOR UPDATE";
        let waiting = prepared(&other, query, &[1]);
        let ending = async { session.run("COMMIT").await.map(drop) };
        let (found, ended) = futures::join!(waiting, ending);
        ended.expect("it commits");
        found
    });
    assert_eq!(found.expect("both rows"), [["11", "20"]]);
}

#[test]
fn a_transaction_that_only_reads_sees_one_moment() {
    let session = with_rows();
    let other = beside(&session);
    let sum = "SELECT sum(n) FROM t";
    for (begin, after) in [
        ("BEGIN READ ONLY", "60"),
        ("START TRANSACTION READ ONLY", "61"),
        ("BEGIN READ ONLY, ISOLATION LEVEL READ COMMITTED", "63"),
        ("BEGIN READ WRITE", "64"),
    ] {
        rows(&session, begin);
        let before = rows(&session, sum);
        rows(&other, "UPDATE t SET n = n + 1 WHERE id = 1");
        assert_eq!(rows(&session, sum), [[after]], "{begin}, after {before:?}");
        rows(&session, "COMMIT");
    }
    rows(&session, "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY");
    rows(&session, "BEGIN");
    assert_eq!(rows(&session, sum), [["64"]]);
    rows(&other, "UPDATE t SET n = n + 1 WHERE id = 1");
    assert_eq!(rows(&session, sum), [["64"]]);
    rows(&session, "COMMIT");
}

#[test]
fn a_transaction_that_failed_lets_go_of_its_locks() {
    let session = with_rows();
    let other = beside(&session);
    let change = "UPDATE t SET n = 0 WHERE id = 1";
    for failing in ["SELECT 1 / (SELECT 0)", "INSERT INTO t VALUES (2, 0)", "SELECT missing FROM t"]
    {
        rows(&session, "BEGIN");
        rows(&session, change);
        run(&session, failing).expect_err(failing);
        rows(&other, "SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT");
        assert_eq!(rows(&other, "SELECT n FROM t WHERE id = 1"), [["10"]], "{failing}");
        assert_eq!(code(run(&session, "SELECT 1")), "25P02", "{failing}");
        rows(&session, "COMMIT");
    }
    // Versions that a savepoint may return to are kept.
    rows(&session, "BEGIN");
    rows(&session, change);
    rows(&session, "SAVEPOINT s");
    run(&session, "SELECT 1 / (SELECT 0)").expect_err("a division by zero");
    assert_eq!(code(run(&other, "SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT")), "55P03");
    rows(&session, "ROLLBACK TO s");
    rows(&session, "COMMIT");
    assert_eq!(rows(&other, "SELECT n FROM t WHERE id = 1"), [["0"]]);
}

#[test]
fn an_upsert_evaluates_its_condition_for_the_newest_row() {
    let session = with_rows();
    let other = beside(&session);
    let upsert = "INSERT INTO t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n WHERE t.n > 20";
    rows(&session, "BEGIN");
    rows(&session, "UPDATE t SET n = 50 WHERE id = 1");
    session.runtime().block_on(async {
        let waiting = async { other.run(upsert).await?.collect().await };
        let ending = async { session.run("COMMIT").await.map(drop) };
        let (waited, ended) = futures::join!(waiting, ending);
        ended.expect("it commits");
        waited.expect("it waits for the row");
    });
    assert_eq!(rows(&session, "SELECT n FROM t WHERE id = 1"), [["55"]]);
}

#[test]
fn statements_in_with_are_prepared_without_running_and_take_values_in_all_parts() {
    let session = with_rows();
    let sql = "WITH up AS (UPDATE t SET n = n + $1 WHERE id = $2 RETURNING id, n), \
               down AS (DELETE FROM t WHERE id = $3) SELECT n FROM up WHERE id < $4";
    session.runtime().block_on(async {
        session.prepare(sql).await.expect("it is prepared");
        assert_eq!(prepared(&session, sql, &[5, 2, 3, 9]).await.expect("it runs"), [["25"]]);
    });
    assert_eq!(rows(&session, "SELECT * FROM t ORDER BY id"), [["1", "10"], ["2", "25"]]);
}

#[test]
fn statements_in_with_run_again_together_where_others_changed_their_rows() {
    let session = with_rows();
    rows(&session, "CREATE TABLE log (n BIGINT)");
    let count = "WITH logged AS (INSERT INTO log VALUES (1) RETURNING n), \
                 up AS (UPDATE t SET n = t.n + logged.n FROM logged WHERE id = 1 RETURNING t.n) \
                 SELECT n FROM up";
    thread::scope(|scope| {
        for _ in 0..2 {
            let session = beside(&session);
            scope.spawn(move || (0..20).for_each(|_| drop(rows(&session, count))));
        }
    });
    let counted = "SELECT n, (SELECT count(*) FROM log) FROM t WHERE id = 1";
    assert_eq!(rows(&session, counted), [["50", "40"]]);
}
