//! Serializable transactions: whatever reads a table, the commit fails if another transaction has changed it since.

use atoll_sql::Session;
use atoll_sql::datafusion::common::ScalarValue;

use crate::common::{live, rows, run};

fn two_sessions() -> [Session; 2] {
    let one = live();
    for sql in [
        "CREATE TABLE account (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)",
        "CREATE INDEX account_n ON account (n)",
        "INSERT INTO account SELECT value, value * 10 FROM generate_series(1, 100) r(value)",
        "CREATE TABLE log (id BIGINT PRIMARY KEY, n BIGINT)",
        "INSERT INTO log VALUES (1, 1)",
        "CREATE VIEW total AS SELECT sum(n) AS n FROM account",
        "CREATE MATERIALIZED VIEW kept AS SELECT sum(n) AS n FROM account",
        "CREATE MACRO above(x) AS TABLE SELECT * FROM account WHERE n > x",
    ] {
        rows(&one, sql);
    }
    let other = one.database().session().expect("the session starts");
    [one, other]
}

fn state(session: &Session, sql: &str) -> String {
    run(session, sql).err().map_or_else(|| "none".to_owned(), |error| error.state.to_string())
}

#[test]
fn what_was_read_must_be_unchanged() {
    let [one, other] = two_sessions();
    for (at, reading) in [
        "SELECT sum(n) FROM account",
        "SELECT count(*) FROM account",
        "SELECT max(id) FROM account",
        "SELECT id FROM account WHERE n = 70",
        "SELECT id FROM account ORDER BY n LIMIT 1",
        "SELECT 1 WHERE EXISTS (SELECT FROM account WHERE id > 500)",
        "SELECT * FROM log l WHERE l.n IN (SELECT n FROM account)",
        "SELECT * FROM log l LEFT JOIN account a ON a.id = l.n",
        "SELECT * FROM log l, LATERAL (SELECT count(*) FROM account a WHERE a.id < l.id)",
        "WITH a AS (SELECT * FROM account WHERE id < 3) SELECT count(*) FROM a",
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION SELECT a.id FROM account a JOIN r ON a.id = r.i + 1) \
         SELECT count(*) FROM r",
        "SELECT * FROM total",
        "SELECT count(*) FROM above(500)",
        "SELECT id FROM account WHERE id < 3 FOR SHARE",
        "SELECT count(*) FROM account TABLESAMPLE BERNOULLI (50)",
        "SELECT n FROM log UNION SELECT n FROM account WHERE n = 20",
        "INSERT INTO log SELECT 1000, sum(n) FROM account",
        "INSERT INTO log VALUES (1001, (SELECT max(n) FROM account))",
        "UPDATE log SET n = (SELECT min(n) FROM account)",
        "UPDATE log SET n = account.n FROM account WHERE account.id = log.id",
        "DELETE FROM log USING account WHERE account.id = log.n AND account.n = -1",
        "UPDATE account SET n = 0 WHERE id > 12345",
        "DELETE FROM account WHERE n = 12345",
        "MERGE INTO log USING account ON log.id = account.id + 100000 WHEN MATCHED THEN UPDATE SET n = 1",
        "CREATE TABLE copied AS SELECT * FROM account",
        "REFRESH MATERIALIZED VIEW kept",
        "DO $$ BEGIN INSERT INTO log SELECT 1002, sum(n) FROM account; END $$",
        "EXPLAIN ANALYZE SELECT sum(n) FROM account",
    ]
    .into_iter()
    .enumerate()
    {
        rows(&one, "BEGIN ISOLATION LEVEL SERIALIZABLE");
        rows(&one, reading);
        rows(&other, &format!("INSERT INTO account VALUES ({}, 5)", 200 + at));
        rows(&one, &format!("INSERT INTO log VALUES ({}, 0)", 2000 + at));
        assert_eq!(state(&one, "COMMIT"), "40001", "{reading}");
        let written = format!("SELECT count(*) FROM log WHERE id >= {}", 1000);
        assert_eq!(rows(&one, &written), [["0"]], "{reading}");
    }
}

#[test]
fn prepared_statements_note_what_they_read() {
    let [one, other] = two_sessions();
    let by_key = "SELECT n FROM account WHERE id = $1";
    let prepared = one.runtime().block_on(one.prepare(by_key)).expect("it is prepared");
    rows(&one, "PREPARE by_key AS SELECT n FROM account WHERE id = $1");
    let read = || {
        one.runtime().block_on(async {
            let value = [ScalarValue::Int64(Some(7))];
            prepared.execute(&value).await?.collect().await
        })
    };
    for round in 0..3 {
        for is_named in [true, false] {
            rows(&one, "BEGIN ISOLATION LEVEL SERIALIZABLE");
            match is_named {
                true => drop(rows(&one, "EXECUTE by_key(7)")),
                false => drop(read().expect("it is read")),
            }
            let changed = if round == 1 { 50 } else { 7 };
            rows(&other, &format!("UPDATE account SET n = n + 1 WHERE id = {changed}"));
            rows(&one, &format!("INSERT INTO log VALUES ({}, 0)", 5000 + round));
            let wanted = if round == 1 { "none" } else { "40001" };
            assert_eq!(state(&one, "COMMIT"), wanted, "round {round}, named {is_named}");
            rows(&one, "DELETE FROM log WHERE id >= 5000");
        }
    }
}

/// Statements that find a row by its key conflict with changes of that row alone.
#[test]
fn rows_found_by_their_keys_count_alone() {
    let [one, other] = two_sessions();
    for (reading, change, wanted) in [
        ("SELECT n FROM account WHERE id = 7", "UPDATE account SET n = 1 WHERE id = 7", "40001"),
        ("SELECT n FROM account WHERE id = 7", "UPDATE account SET n = 1 WHERE id = 8", "none"),
        ("SELECT n FROM account WHERE id = 9", "DELETE FROM account WHERE id = 9", "40001"),
        ("SELECT n FROM account WHERE id = 9", "INSERT INTO account VALUES (9, 1)", "40001"),
        ("SELECT n FROM account WHERE id = 777", "INSERT INTO account VALUES (776, 1)", "none"),
        ("SELECT n FROM account WHERE id = 777", "INSERT INTO account VALUES (777, 1)", "40001"),
        ("SELECT n FROM account WHERE id = NULL", "DELETE FROM account WHERE id > 700", "none"),
        (
            "SELECT n FROM account WHERE id = 5",
            "UPDATE account SET id = 55555 WHERE id = 5",
            "40001",
        ),
        ("SELECT n FROM account WHERE id = 6", "ALTER TABLE account ADD COLUMN x INT", "40001"),
        (
            "UPDATE account SET n = n + 1 WHERE id = 1",
            "UPDATE account SET n = n + 1 WHERE id = 2",
            "none",
        ),
        (
            "UPDATE account SET n = 1 WHERE id = 4444",
            "INSERT INTO account VALUES (4444, 1)",
            "40001",
        ),
        (
            "SELECT * FROM log JOIN account ON account.id = log.id WHERE log.id = 1",
            "UPDATE account SET n = n + 1 WHERE id = 1",
            "40001",
        ),
        (
            "SELECT n FROM account WHERE id = 1 AND n > 5",
            "UPDATE account SET n = 7 WHERE id = 1",
            "40001",
        ),
        (
            "SELECT n FROM account WHERE id = 1 OR n = 5",
            "UPDATE account SET n = 7 WHERE id = 2",
            "40001",
        ),
    ] {
        rows(&one, "BEGIN ISOLATION LEVEL SERIALIZABLE");
        rows(&one, reading);
        rows(&other, change);
        rows(&one, "INSERT INTO log VALUES (6000, 0)");
        assert_eq!(state(&one, "COMMIT"), wanted, "{reading}; {change}");
        rows(&one, "DELETE FROM log WHERE id = 6000");
    }
}

#[test]
fn write_skew_is_refused_in_either_order() {
    let [one, other] = two_sessions();
    for (first, second) in [(&one, &other), (&other, &one)] {
        for session in [&one, &other] {
            rows(session, "BEGIN ISOLATION LEVEL SERIALIZABLE");
            rows(session, "SELECT sum(n) FROM account WHERE id IN (1, 2)");
        }
        rows(&one, "UPDATE account SET n = n - 10 WHERE id = 1");
        rows(&other, "UPDATE account SET n = n - 10 WHERE id = 2");
        rows(first, "COMMIT");
        let error = run(second, "COMMIT").expect_err("it read what the first changed");
        assert_eq!(
            error.message,
            "could not serialize access due to read/write dependencies among transactions"
        );
    }
}

#[test]
fn other_changes_do_not_matter() {
    let [one, other] = two_sessions();
    // It only reads.
    rows(&one, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    rows(&one, "SELECT sum(n) FROM account");
    rows(&other, "UPDATE account SET n = n + 1");
    rows(&one, "COMMIT");
    // Others change what it does not read.
    rows(&one, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    rows(&one, "SELECT sum(n) FROM account");
    rows(&one, "INSERT INTO log VALUES (10, 0)");
    rows(&other, "INSERT INTO log VALUES (11, 0)");
    rows(&one, "COMMIT");
    // Both insert.
    rows(&one, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    rows(&one, "INSERT INTO log VALUES (12, 0)");
    rows(&other, "INSERT INTO log VALUES (13, 0)");
    rows(&one, "INSERT INTO log VALUES (12, 0) ON CONFLICT DO NOTHING");
    rows(&one, "COMMIT");
    // A conflict with a row that it does not see.
    rows(&one, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    rows(&one, "INSERT INTO log VALUES (14, 0)");
    rows(&other, "INSERT INTO log VALUES (15, 0)");
    assert_eq!(state(&one, "INSERT INTO log VALUES (15, 0) ON CONFLICT DO NOTHING"), "40001");
    rows(&one, "ROLLBACK");
    // The same as REPEATABLE READ, which is as before.
    rows(&one, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    rows(&one, "SELECT sum(n) FROM account");
    rows(&other, "UPDATE account SET n = n + 1");
    rows(&one, "INSERT INTO log VALUES (20, 0)");
    rows(&one, "COMMIT");
    // Single statements are transactions of their own.
    rows(&one, "SET default_transaction_isolation = 'serializable'");
    rows(&one, "UPDATE log SET n = n + 1 WHERE id = 20");
    assert_eq!(rows(&one, "SELECT n FROM log WHERE id = 20"), [["1"]]);
    assert_eq!(rows(&one, "SHOW transaction_isolation"), [["serializable"]]);
}
