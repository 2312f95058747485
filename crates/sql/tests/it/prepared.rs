//! Statements that a client prepares and runs with different values.

use atoll_sql::arrow::datatypes::DataType;
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{Session, SqlError};

use crate::common::{live, rows, run, texts};

/// The rows of a prepared statement for each of these values.
fn executed(session: &Session, sql: &str, values: &[&[i64]]) -> Vec<Vec<String>> {
    session.runtime().block_on(async {
        let prepared = session.prepare(sql).await.expect(sql);
        let mut found = Vec::new();
        for values in values {
            let values: Vec<ScalarValue> = values.iter().map(|value| (*value).into()).collect();
            let batches = async { prepared.execute(&values).await?.collect().await };
            let batches: Result<_, SqlError> = batches.await;
            found.extend(batches.expect(sql).iter().flat_map(texts));
        }
        found
    })
}

#[test]
fn defaults_and_times_are_computed_for_each_execution() {
    let session = live();
    rows(
        &session,
        "CREATE TABLE t (id SERIAL PRIMARY KEY, n BIGINT, at TIMESTAMPTZ DEFAULT now())",
    );
    executed(&session, "INSERT INTO t (n) VALUES ($1)", &[&[10], &[20], &[30]]);
    executed(&session, "INSERT INTO t (n, at) VALUES ($1, now())", &[&[40], &[50]]);
    assert_eq!(
        rows(
            &session,
            "SELECT string_agg(id || ':' || n, ' ' ORDER BY id), count(DISTINCT at) FROM t"
        ),
        [["1:10 2:20 3:30 4:40 5:50", "5"]]
    );
}

#[test]
fn on_conflict_handles_existing_rows() {
    let session = live();
    rows(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)");
    let add = "INSERT INTO t VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n";
    executed(&session, add, &[&[1, 10], &[1, 20], &[2, 5]]);
    executed(&session, "INSERT INTO t VALUES ($1, 0) ON CONFLICT DO NOTHING", &[&[1], &[3]]);
    rows(&session, "CREATE TABLE seen (id BIGINT PRIMARY KEY, at TIMESTAMPTZ)");
    rows(&session, "INSERT INTO seen VALUES (1, NULL), (2, NULL)");
    let now = "INSERT INTO seen VALUES ($1) ON CONFLICT (id) DO UPDATE SET at = now()";
    executed(&session, now, &[&[1], &[2]]);
    assert_eq!(rows(&session, "SELECT count(DISTINCT at) FROM seen"), [["2"]]);
    assert_eq!(
        rows(&session, "SELECT * FROM t ORDER BY id"),
        [["1", "30"], ["2", "5"], ["3", "0"]]
    );
}

#[test]
fn views_are_what_they_are_when_the_statement_runs() {
    let session = live();
    rows(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)");
    rows(&session, "INSERT INTO t VALUES (1, 10)");
    rows(&session, "CREATE VIEW v AS SELECT id, n FROM t");
    let found = session.runtime().block_on(async {
        let prepared = session.prepare("SELECT n FROM v WHERE id = $1").await.expect("prepared");
        let view = "CREATE OR REPLACE VIEW v AS SELECT id, n * 2 AS n FROM t";
        session.run(view).await.expect("replaced").collect().await.expect("replaced");
        let result = prepared.execute(&[ScalarValue::from(1_i64)]).await.expect("it runs");
        result.collect().await.expect("it runs")
    });
    assert_eq!(found.iter().flat_map(texts).collect::<Vec<_>>(), [["20"]]);
}

#[test]
fn a_name_that_another_table_has_got_means_that_one() {
    for key in ["", " PRIMARY KEY"] {
        let session = live();
        let other = session.database().session().expect("a session");
        rows(&session, &format!("CREATE TABLE t (id BIGINT{key}, n BIGINT)"));
        rows(&session, "INSERT INTO t VALUES (1, 10)");
        let found = session.runtime().block_on(async {
            let prepared =
                session.prepare("SELECT n FROM t WHERE id = $1").await.expect("prepared");
            let one = [ScalarValue::from(1_i64)];
            let mut found = Vec::new();
            for change in
                ["", "ALTER TABLE t RENAME TO old", "CREATE TABLE t AS SELECT 1 AS id, 20 AS n"]
            {
                if !change.is_empty() {
                    other.run(change).await.expect(change).collect().await.expect(change);
                }
                found.push(match prepared.execute(&one).await {
                    Ok(result) => texts(&result.collect().await.expect("it runs")[0])[0][0].clone(),
                    Err(error) => error.state.code().to_owned(),
                });
            }
            found
        });
        assert_eq!(found, ["10", "42P01", "20"], "{key}");
    }
}

#[test]
fn parameters_of_on_conflict_are_values() {
    let session = live();
    rows(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT, s VARCHAR)");
    rows(&session, "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')");
    let set = "INSERT INTO t VALUES ($1, 0, 'new') ON CONFLICT (id) DO UPDATE SET n = t.n + $2, s = $3::VARCHAR \
               WHERE t.n < $4 RETURNING n";
    let types = session.runtime().block_on(async {
        let prepared = session.prepare(set).await.expect("prepared");
        prepared.parameter_types().to_vec()
    });
    assert_eq!(types, [DataType::Int64, DataType::Int32, DataType::Utf8View, DataType::Int32]);
    assert_eq!(
        executed(&session, set, &[&[1, 5, 7, 15], &[1, 5, 8, 15], &[3, 5, 9, 15]]),
        [["15"], ["0"]]
    );
    rows(
        &session,
        "PREPARE p AS INSERT INTO t VALUES (2, 0, '') ON CONFLICT (id) DO UPDATE SET n = $1, s = $2",
    );
    rows(&session, "EXECUTE p(21, 'c')");
    assert!(run(&session, "EXECUTE p(21)").is_err());
    assert_eq!(
        rows(&session, "SELECT * FROM t ORDER BY id"),
        [["1", "15", "7"], ["2", "21", "c"], ["3", "0", "new"]]
    );
    rows(
        &session,
        "PREPARE q(INT) AS INSERT INTO t VALUES (2, 0, '') ON CONFLICT (id) DO UPDATE SET n = $1",
    );
    rows(&session, "EXECUTE q(22)");
    rows(&session, "EXECUTE q(NULL)");
    assert_eq!(rows(&session, "SELECT n FROM t WHERE id = 2"), [["NULL"]]);
}

#[test]
fn each_row_is_given_a_number_of_its_own() {
    let session = live();
    rows(&session, "CREATE TABLE t (id SERIAL PRIMARY KEY, m BIGINT, n BIGINT)");
    rows(&session, "CREATE SEQUENCE s INCREMENT BY 10 MAXVALUE 101");
    let insert =
        "INSERT INTO t (m, n) VALUES (nextval('s'), $1), (nextval('S') + nextval('s'), $1)";
    executed(&session, insert, &[&[1], &[2]]);
    assert_eq!(rows(&session, "SELECT lastval(), currval('s')"), [["51", "51"]]);
    executed(&session, "INSERT INTO t (n) VALUES ($1)", &[&[3], &[4]]);
    assert_eq!(rows(&session, "SELECT lastval()"), [["6"]]);
    let twice = "INSERT INTO t (m, n) SELECT x, x + $1 FROM (SELECT nextval('s') AS x)";
    executed(&session, twice, &[&[0], &[0]]);
    for n in 5..8 {
        rows(&session, &format!("INSERT INTO t (m, n) VALUES (nextval('s'), {n})"));
    }
    assert_eq!(
        rows(&session, "SELECT * FROM t ORDER BY id"),
        [
            ["1", "1", "1"],
            ["2", "32", "1"],
            ["3", "31", "2"],
            ["4", "92", "2"],
            ["5", "NULL", "3"],
            ["6", "NULL", "4"],
            ["7", "61", "61"],
            ["8", "71", "71"],
            ["9", "81", "5"],
            ["10", "91", "6"],
            ["11", "101", "7"],
        ]
    );
    let ended = run(&session, "INSERT INTO t (m, n) VALUES (nextval('s'), 9)");
    assert_eq!(ended.expect_err("it has ended").state.code(), "2200H");
}

#[test]
fn execute_uses_the_plan_of_its_text_and_resolves_names_now() {
    let session = live();
    for sql in [
        "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)",
        "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
        "PREPARE of_id AS SELECT n + 1 FROM t WHERE id = $1",
        "PREPARE as_int (INT) AS SELECT n FROM t WHERE id = $1",
        "PREPARE added (BIGINT, BIGINT) AS UPDATE t SET n = n + $2 WHERE id = $1",
        "PREPARE made AS INSERT INTO t VALUES ($1, $2)",
        "PREPARE first_one AS SELECT n FROM t WHERE id = 1",
    ] {
        rows(&session, sql);
    }
    let found = |sql: &str| rows(&session, sql).concat().join(" ");
    assert_eq!(
        ["EXECUTE of_id(1)", "EXECUTE of_id(2)", "EXECUTE of_id(9)"].map(found),
        ["11", "21", ""]
    );
    // A value of another type than the parameter's is computed, cast or refused as usual.
    assert_eq!(found("EXECUTE of_id(1 + 1)"), "21");
    assert_eq!(found("EXECUTE as_int(2)"), "20");
    assert!(run(&session, "EXECUTE of_id('x')").is_err());
    assert!(run(&session, "EXECUTE of_id(1, 2)").is_err());
    assert!(run(&session, "EXECUTE nothing(1)").is_err());
    assert_eq!(found("EXECUTE first_one"), "10");
    rows(&session, "EXECUTE added(1, 5)");
    rows(&session, "EXECUTE made(4, -40)");
    rows(&session, "BEGIN");
    rows(&session, "EXECUTE added(1, 100)");
    assert_eq!(found("EXECUTE of_id(1)"), "116");
    rows(&session, "ROLLBACK");
    assert_eq!(found("EXECUTE of_id(1) "), "16");
    assert_eq!(found("SELECT sum(n) FROM t"), "25");
    rows(&session, "ALTER TABLE t RENAME TO old");
    rows(&session, "CREATE TABLE t AS SELECT 1 AS id, 7 AS n");
    assert_eq!(found("EXECUTE of_id(1)"), "8");
    rows(&session, "DEALLOCATE of_id");
    rows(&session, "PREPARE of_id AS SELECT n - 1 FROM t WHERE id = $1");
    assert_eq!(found("EXECUTE of_id(1)"), "6");
}

/// The result of a newly prepared statement for 1: its columns and rows, or the code of its error.
fn prepared_anew(session: &Session, sql: &str) -> String {
    session.runtime().block_on(async {
        let found = async {
            let prepared = session.prepare(sql).await?;
            let batches = prepared.execute(&[1_i64.into()]).await?.collect().await?;
            let columns = prepared.columns().map(|columns| {
                let columns = columns.fields().iter();
                columns.map(|it| format!("{} {}", it.name(), it.data_type())).collect::<Vec<_>>()
            });
            Ok::<_, SqlError>((columns, batches.iter().flat_map(texts).collect::<Vec<_>>()))
        };
        match found.await {
            Ok((columns, rows)) => format!("{:?} {rows:?}", columns.unwrap_or_default()),
            Err(error) => error.state.code().to_owned(),
        }
    })
}

#[test]
fn repeated_prepares_resolve_names_again() {
    let session = live();
    let other = session.database().session().expect("a session");
    rows(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)");
    rows(&session, "CREATE SCHEMA s");
    rows(&session, "CREATE TABLE s.t (id BIGINT PRIMARY KEY, n BIGINT)");
    rows(&session, "INSERT INTO t VALUES (1, 10)");
    rows(&session, "INSERT INTO s.t VALUES (1, 77)");
    rows(&session, "CREATE MACRO m(a) AS a");
    let statements = [
        "SELECT n FROM t WHERE id = $1",
        "SELECT n + m(1) AS n FROM t WHERE id = $1",
        "SELECT id, n FROM t WHERE n > $1",
        "UPDATE t SET n = n + 1 WHERE id = $1 RETURNING n",
        "INSERT INTO t VALUES ($1 + 1, 0) ON CONFLICT DO NOTHING",
        "DELETE FROM t WHERE id = $1 + 1",
    ];
    let changes = [
        (&other, "CREATE OR REPLACE MACRO m(a) AS a + 100"),
        (&other, "ALTER TABLE t ALTER COLUMN n TYPE INTEGER"),
        (&other, "ALTER TABLE t ADD CHECK (n < 20)"),
        (&session, "BEGIN"),
        (&session, "ALTER TABLE t RENAME COLUMN n TO k"),
        (&session, "ALTER TABLE t ADD COLUMN n VARCHAR DEFAULT 'x'"),
        (&session, "ROLLBACK"),
        (&session, "CREATE TEMPORARY TABLE t (id BIGINT PRIMARY KEY, n VARCHAR)"),
        (&session, "DROP TABLE pg_temp.t"),
        (&session, "SET search_path = s"),
        (&session, "RESET search_path"),
        (&other, "ALTER TABLE t RENAME TO u"),
        (&other, "CREATE TABLE t (id INTEGER PRIMARY KEY, n REAL)"),
        (&other, "INSERT INTO t VALUES (1, 2.5)"),
    ];
    // Runs one, and undoes its changes.
    let outcome = |sql: &str, is_open: bool| {
        if is_open {
            rows(&session, "SAVEPOINT before");
        }
        let outcome = prepared_anew(&session, sql);
        let undoing = match &sql[..6] {
            _ if is_open => "ROLLBACK TO before",
            "UPDATE" => "UPDATE t SET n = n - 1 WHERE id = 1",
            _ => "DELETE FROM t WHERE id = 2",
        };
        // If the statement failed, this may fail too.
        drop(run(&session, undoing));
        outcome
    };
    let mut is_open = false;
    for (step, (by, change)) in changes.into_iter().enumerate() {
        // Twice, so that cached plans are used before the change.
        for sql in statements.iter().chain(&statements) {
            outcome(sql, is_open);
        }
        rows(by, change);
        is_open = change == "BEGIN" || is_open && change != "ROLLBACK";
        for sql in statements {
            // With blanks after it, it is another text.
            let unknown = format!("{sql}{}", " ".repeat(step + 1));
            let first = outcome(&unknown, is_open);
            assert_eq!(outcome(sql, is_open), first, "{sql} after {change}");
        }
    }
}
