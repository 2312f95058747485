//! Statements sent as text with cached plans give the same results as when planned with their values.

use atoll_sql::Session;
use atoll_sys::SplitMix64;

use crate::common::{live, rows, run, texts};

const TABLE: &str = "CREATE TABLE t (id BIGINT PRIMARY KEY, tiny TINYINT, small SMALLINT, n INT, big BIGINT,
    real DOUBLE, price DECIMAL(6, 2), name VARCHAR, day DATE, at TIMESTAMP, flag BOOLEAN, u UINTEGER, f REAL,
    CHECK (small < 1000))";

const COLUMNS: [&str; 12] =
    ["tiny", "small", "n", "big", "real", "price", "name", "day", "at", "flag", "u", "f"];

/// Values that are written and compared: limits of types, other types, and expressions that are not values.
const VALUES: [&str; 34] = [
    "0",
    "1",
    "-1",
    "7",
    "100",
    "127",
    "128",
    "-128",
    "999",
    "1000",
    "32767",
    "32768",
    "2147483647",
    "-2147483648",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "1.5",
    "-0.5",
    "0.005",
    "9999.99",
    "1e3",
    "NULL",
    "TRUE",
    "'abc'",
    "''",
    "'5'",
    "'2024-02-29'",
    "'2024-02-30'",
    "'2024-01-01 10:00:00'",
    "DATE '2024-01-02'",
    "1 + 1",
    "'a' || 'b'",
    "abs(-3)",
];

/// Statements with a key, two columns and two values.
const FORMS: [&str; 21] = [
    "INSERT INTO t (id, {a}) VALUES ({key}, {x})",
    "INSERT INTO t (id, {a}, {b}) VALUES ({key}, {x}, {y})",
    "INSERT INTO t (id, {a}) VALUES ({key}, {x}), ({key} + 100, {y})",
    "INSERT INTO t (id, {a}) VALUES ({key}, {x}) ON CONFLICT (id) DO UPDATE SET {a} = excluded.{a}, n = t.n + 1",
    "INSERT INTO t (id, {a}) VALUES ({key}, {x}), ({key} + 1, {y}) ON CONFLICT DO NOTHING",
    "INSERT INTO t (id, {a}, big) VALUES ({key}, {x}, nextval('s') * 0), ({key} + 200, {y}, 0 * nextval('s'))",
    "INSERT INTO t (id, {a}) VALUES ({key}, {x}) RETURNING *",
    "INSERT INTO t (id, {a}) VALUES ({key}, {x}) ON CONFLICT (id) DO UPDATE SET n = t.n + 1 RETURNING id, {b}, n",
    "UPDATE t SET {a} = {x} WHERE id = {key} RETURNING id, {a}, {b} AS other",
    "DELETE FROM t WHERE id = {key} RETURNING *",
    "UPDATE t SET {a} = {x} WHERE id = {key}",
    "UPDATE t SET {a} = {a} + {x} WHERE id = {key}",
    "UPDATE t SET {a} = {a} - {x}, {b} = {y} WHERE id = {key}",
    "UPDATE t SET {a} = {b} + {x} WHERE id = {key}",
    "UPDATE t SET {a} = {x} WHERE {b} = {y}",
    "UPDATE t SET n = n + 1 WHERE {a} > {x} AND {b} < {y}",
    "DELETE FROM t WHERE id = {key}",
    "DELETE FROM t WHERE {a} = {x} AND id > {key}",
    "SELECT * FROM t WHERE id = {key}",
    "SELECT id, {a}, {x} FROM t WHERE {b} = {y} ORDER BY id",
    "SELECT id FROM t WHERE id = {x}",
];

/// The outcome of a statement: its rows, or the code of its error.
fn outcome(session: &Session, sql: &str) -> String {
    match run(session, sql) {
        Ok(batches) => format!("{:?}", batches.iter().flat_map(texts).collect::<Vec<_>>()),
        Err(error) => error.state.code().to_owned(),
    }
}

/// The same, planned with its values: a statement prepared with its values has no parameters.
fn planned_outcome(session: &Session, sql: &str, step: usize) -> String {
    match run(session, &format!("PREPARE planned_{step} AS {sql}")) {
        Ok(_) => outcome(session, &format!("EXECUTE planned_{step}")),
        Err(error) => error.state.code().to_owned(),
    }
}

#[test]
fn cached_texts_match_planned_ones_for_all_kinds_of_values() {
    let (kept, planned) = (live(), live());
    for session in [&kept, &planned] {
        rows(session, TABLE);
        rows(session, "CREATE SEQUENCE s");
        rows(
            session,
            "INSERT INTO t SELECT i, i, i, i, i, i, i, i, DATE '2024-01-01', NULL, TRUE, i, i
            FROM generate_series(1, 20) AS s(i)",
        );
    }
    let mut random = SplitMix64::new(5);
    let mut pick = |from: usize| random.below(from as u64) as usize;
    let both = |sql| [&kept, &planned].iter().for_each(|session| drop(rows(session, sql)));
    let mut transaction = 0;
    for step in 0..1500 {
        if transaction == 0 && pick(12) == 0 {
            transaction = 1 + pick(4);
            both("BEGIN");
        }
        let (a, b) = (COLUMNS[pick(12)], COLUMNS[pick(12)]);
        let (x, y) = (VALUES[pick(VALUES.len())], VALUES[pick(VALUES.len())]);
        let key = pick(40).to_string();
        let form = FORMS[pick(FORMS.len())];
        let sql = form.replace("{a}", a).replace("{b}", b).replace("{key}", &key);
        let sql = sql.replace("{x}", x).replace("{y}", y);
        assert_eq!(
            outcome(&kept, &sql),
            planned_outcome(&planned, &sql, step),
            "step {step}: {sql}"
        );
        if transaction > 0 {
            transaction -= 1;
            if transaction == 0 {
                let end = if pick(2) == 0 { "COMMIT" } else { "ROLLBACK" };
                both(end);
            }
        }
    }
    let all = "SELECT * FROM t ORDER BY id";
    assert_eq!(rows(&kept, all), rows(&planned, all));
}

#[test]
fn a_cached_text_sees_definitions_of_its_transaction() {
    let session = live();
    rows(&session, "CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    for id in 0..3 {
        rows(&session, &format!("INSERT INTO t VALUES ({id}, 10)"));
        rows(&session, &format!("UPDATE t SET a = a + {id} WHERE id = {id}"));
    }
    rows(&session, "BEGIN");
    rows(&session, "ALTER TABLE t RENAME COLUMN a TO b");
    rows(&session, "ALTER TABLE t ADD COLUMN a INT DEFAULT 5");
    rows(&session, "INSERT INTO t VALUES (7, 8, 9)");
    rows(&session, "UPDATE t SET a = a + 1 WHERE id = 1");
    assert_eq!(rows(&session, "SELECT b, a FROM t WHERE id = 1"), [["11", "6"]]);
    rows(&session, "ROLLBACK");
    rows(&session, "UPDATE t SET a = a + 1 WHERE id = 1");
    assert_eq!(rows(&session, "SELECT a FROM t WHERE id = 1"), [["12"]]);
    rows(&session, "DROP TABLE t");
    rows(&session, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR)");
    rows(&session, "INSERT INTO t VALUES (1, 'x')");
    assert_eq!(outcome(&session, "UPDATE t SET a = a + 1 WHERE id = 1").len(), 5, "an error");
    assert_eq!(rows(&session, "SELECT a FROM t WHERE id = 1"), [["x"]]);
}
