//! Selections that share scans find the same rows as each does alone.

use std::sync::Arc;

use atoll_placement::{LiveKernel, Strategy};
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{DatabaseOptions, PreparedStatement, Session};
use atoll_sys::SplitMix64;
use atoll_testkit::machines;
use atoll_topology::{Bytes, Machine};
use futures::future::join_all;

use crate::common::{fake, live, rows, run, session, texts};

/// Columns of every kind that is tested, with NULLs, and few enough values that tests hit.
const TABLE: &str = "CREATE TABLE t AS SELECT
    i AS id,
    CASE WHEN i % 11 = 0 THEN NULL ELSE i % 50 END AS small,
    i * 1000003 % 7919 AS large,
    CASE i % 9 WHEN 0 THEN NULL WHEN 1 THEN 'nan'::DOUBLE WHEN 2 THEN -0.0 ELSE (i % 40) / 4.0 END AS real,
    (i % 100)::DECIMAL(12, 2) / 4 AS price,
    DATE '2024-01-01' + (i % 60)::INT AS day,
    i % 3 = 0 AS flag,
    CASE WHEN i % 13 = 0 THEN NULL ELSE 'city ' || (i % 70) END AS city,
    'a note of some length about ' || (i * 31 % 5000) AS note
    FROM generate_series(1, 20000) AS s(i)";

/// Filters with two parameters each, whose types follow from what they are compared with.
const FILTERS: [&str; 18] = [
    "small = $1 AND large < $2",
    "large BETWEEN $1 AND $2",
    "large > $1 AND large <= $2 AND small IN (1, 2, 3, NULL)",
    "small <> $1 AND id < $2",
    "small NOT IN ($1, 7) AND id > $2",
    "small NOT IN ($1, NULL) AND id > $2",
    "small IS NULL AND id > $1 AND id > $2",
    "small IS NOT NULL AND id = $1 AND large = $2",
    "id = $1 OR id = $2",
    "real = $1::DOUBLE AND id > $2",
    "real > $1::DOUBLE AND id < $2",
    "real = 'nan'::DOUBLE AND small > $1 AND large > $2",
    "price >= 3.25 AND price < 4.5 AND small = $1 AND id > $2",
    "day >= DATE '2024-02-01' AND small = $1 AND id > $2",
    "flag AND small = $1 AND id > $2",
    "city = 'city ' || $1 AND id > $2",
    "city LIKE 'city 1%' AND small = $1 AND id > $2",
    "note > 'a note of some length about 4' AND note LIKE '%9' AND small = $1 AND id > $2",
];

const LISTS: [&str; 7] = [
    "count(*), sum(large), min(note), max(price), avg(real)",
    "DISTINCT city, flag",
    "id, row_number() OVER (ORDER BY id) AS number",
    "id, small, city",
    "note, real, price, id",
    "id, small + large AS sum, upper(city), $1 AS first",
    "id, day, flag, city",
];

/// The clauses after conditions, if the list has the id.
const RESTS: [&str; 4] = ["", "", "ORDER BY id DESC LIMIT 3", "ORDER BY id LIMIT 2 OFFSET 1"];

fn value(random: &mut SplitMix64) -> ScalarValue {
    match random.next() % 12 {
        0 => ScalarValue::Int64(None),
        1 => ScalarValue::Int64(Some(i64::MAX)),
        2 => ScalarValue::Int64(Some(-1)),
        n if n < 8 => ScalarValue::Int64(Some((random.next() % 60) as i64)),
        _ => ScalarValue::Int64(Some((random.next() % 8000) as i64)),
    }
}

async fn answer(statement: &PreparedStatement, values: &[ScalarValue]) -> Vec<Vec<String>> {
    let batches = statement.execute(values).await.expect("it runs").collect().await;
    let mut rows: Vec<Vec<String>> = batches.expect("it ends").iter().flat_map(texts).collect();
    rows.sort();
    rows
}

/// Statistics of a table's shared scans: cycles, queries, the largest batch.
fn scans(session: &Session) -> Vec<u64> {
    let found = rows(session, "SELECT cycles, queries, batch_max FROM atoll.scans");
    found.first().into_iter().flatten().map(|number| number.parse().expect("a number")).collect()
}

fn ask_many(session: &Session, seed: u64, rounds: usize) {
    rows(session, TABLE);
    let random = &mut SplitMix64::new(seed);
    let alone = session.database().session().expect("a session");
    rows(&alone, "SET atoll.shared_scan = off");
    for round in 0..rounds {
        let asked: Vec<(String, [ScalarValue; 2])> = (0..60)
            .map(|_| {
                let filter = FILTERS[random.next() as usize % FILTERS.len()];
                let list = LISTS[random.next() as usize % LISTS.len()];
                let rest = RESTS[random.next() as usize % RESTS.len()];
                let sql = match list.contains("id,") {
                    true => format!("SELECT {list} FROM t WHERE {filter} {rest}"),
                    false => format!("SELECT {list} FROM t WHERE {filter}"),
                };
                (sql, [value(random), value(random)])
            })
            .collect();
        session.runtime().block_on(async {
            let together = asked.iter().map(async |(sql, values)| {
                let statement = session.prepare(sql).await.expect(sql);
                answer(&statement, values).await
            });
            for (found, (sql, values)) in join_all(together).await.into_iter().zip(&asked) {
                let statement = alone.prepare(sql).await.expect(sql);
                assert_eq!(found, answer(&statement, values).await, "{sql} with {values:?}");
            }
        });
        rows(
            session,
            &format!("UPDATE t SET small = small + 1, city = city || '!' WHERE id % 17 = {round}"),
        );
        rows(session, &format!("DELETE FROM t WHERE id % 23 = {round}"));
        rows(session, "INSERT INTO t (id, small, note) SELECT max(id) + 1, 5, 'new' FROM t");
    }
    let [cycles, queries, batch_max] = scans(session)[..] else { panic!("no scans") };
    assert!(cycles < queries && batch_max > 1, "{cycles} cycles, {queries} queries");
}

#[test]
fn shared_selections_find_the_same_rows_as_separate_ones() {
    ask_many(&live(), 1, 3);
}

#[test]
fn so_they_do_on_a_machine_of_eight_nodes() {
    ask_many(&fake(machines::eight_uneven_nodes(), Strategy::Aligned), 2, 2);
}

#[test]
fn a_client_sees_its_own_writes_and_no_partial_writes_of_others() {
    let session = live();
    rows(&session, "CREATE TABLE account (id BIGINT PRIMARY KEY, owner BIGINT, amount BIGINT)");
    rows(&session, "INSERT INTO account SELECT i, i % 2, 100 FROM generate_series(0, 999) AS s(i)");
    session.runtime().block_on(async {
        // Money moves between the two owners; a reader of both owners' accounts always sees all of it.
        let writers = (0..4_u64).map(|number| {
            let session = session.database().session().expect("a session");
            async move {
                let random = &mut SplitMix64::new(number);
                let read = session.prepare("SELECT amount FROM account WHERE owner = $1 AND id = $2");
                let read = read.await.expect("prepared");
                for _ in 0..40 {
                    let (from, to) = (random.next() % 1000, random.next() % 1000);
                    let moves = format!(
                        "UPDATE account SET amount = amount + CASE WHEN id = {from} THEN -1 ELSE 1 END \
                         WHERE id IN ({from}, {to}) AND {from} <> {to}"
                    );
                    session.run(&moves).await.expect("written").collect().await.expect("written");
                    let mine = 10_000 + number * 1000 + random.next() % 1000;
                    let new = format!("INSERT INTO account VALUES ({mine}, 7, {mine}) ON CONFLICT DO NOTHING");
                    session.run(&new).await.expect("written").collect().await.expect("written");
                    let found = answer(&read, &[7_i64.into(), (mine as i64).into()]).await;
                    assert_eq!(found, [[mine.to_string()]], "a client's own row is missing");
                }
            }
        });
        let readers = (0..4).map(|_| {
            let session = session.database().session().expect("a session");
            async move {
                let read = session.prepare("SELECT amount FROM account WHERE owner >= $1 AND owner <= $2");
                let read = read.await.expect("prepared");
                for _ in 0..60 {
                    let found = answer(&read, &[0_i64.into(), 1_i64.into()]).await;
                    let sum: i64 = found.iter().map(|row| row[0].parse::<i64>().expect("an amount")).sum();
                    assert_eq!((found.len(), sum), (1000, 100_000));
                }
            }
        });
        tokio::join!(join_all(writers), join_all(readers));
    });
}

/// Conditions with values as they are written.
const WRITTEN: [&str; 16] = [
    "city > 'city 6' AND small = 9 ORDER BY id DESC LIMIT 2",
    "large < 50 GROUP BY id, note, price HAVING count(*) = 1",
    "large = 77",
    "small = -1 OR id = 5",
    "large BETWEEN 100 AND 110 AND small <> 3",
    "price = 2.5 AND id < 500",
    "price < 2.505 AND id < 500",
    "price = '2.50' AND id < 500",
    "real = 2.5 AND id < 700",
    "id < 300.5",
    "id = 9223372036854775807",
    "id = 99999999999999999999",
    "day = '2024-02-03' AND id < 900",
    "city = 'city 7' AND note <> 'x'' y'",
    "city LIKE 'city 1%' AND id IN (14, 15, -3, NULL)",
    "flag = true AND id > 19990 AND 19995 > id",
];

#[test]
fn selections_as_text_find_the_same_together() {
    let session = live();
    rows(&session, TABLE);
    let alone = session.database().session().expect("a session");
    rows(&alone, "SET atoll.shared_scan = off");
    for mode in ["auto", "on"] {
        rows(&session, &format!("SET atoll.shared_scan = {mode}"));
        session.runtime().block_on(async {
            let asked: Vec<String> = (0..5)
                .flat_map(|_| WRITTEN)
                .map(|filter| format!("SELECT id, note, price FROM t WHERE {filter}"))
                .collect();
            let together = asked.iter().map(|sql| written(&session, sql));
            for (found, sql) in join_all(together).await.into_iter().zip(&asked) {
                assert_eq!(found, written(&alone, sql).await, "{sql}");
            }
        });
    }
    let [_, queries, _] = scans(&session)[..] else { panic!("no scans") };
    assert!(queries > 40, "{queries} queries");
    // The meaning of a name is not cached beyond its validity.
    rows(&session, "CREATE TEMP VIEW v AS SELECT id FROM t");
    assert_eq!(rows(&session, "SELECT id FROM v WHERE id = 3"), [["3"]]);
    rows(&session, "CREATE OR REPLACE TEMP VIEW v AS SELECT id + 1 AS id FROM t");
    assert_eq!(rows(&session, "SELECT id FROM v WHERE id = 1"), Vec::<Vec<String>>::new());
}

async fn written(session: &Session, sql: &str) -> Vec<Vec<String>> {
    let result = match session.run(sql).await {
        Ok(result) => result.collect().await,
        Err(error) => Err(error),
    };
    match result {
        Ok(batches) => {
            let mut rows: Vec<Vec<String>> = batches.iter().flat_map(texts).collect();
            rows.sort();
            rows
        }
        Err(error) => vec![vec![error.message]],
    }
}

#[test]
fn a_thousand_clients_share_cycles() {
    let session = live();
    rows(&session, TABLE);
    let found: usize = session.runtime().block_on(async {
        let statement = session.prepare("SELECT id FROM t WHERE large = $1 AND small < $2");
        let statement = statement.await.expect("prepared");
        let clients = (0..1024_i64).map(|number| {
            let statement = &statement;
            async move { answer(statement, &[number.into(), 60_i64.into()]).await.len() }
        });
        join_all(clients).await.into_iter().sum()
    });
    // Read before the count below, which may ride too.
    let [cycles, queries, _] = scans(&session)[..] else { panic!("no scans") };
    assert_eq!(queries, 1024);
    assert!(cycles < queries, "{cycles} cycles");
    let counted = rows(&session, "SELECT count(*) FROM t WHERE large < 1024 AND small < 60");
    assert_eq!(counted, [[found.to_string()]]);
}

#[test]
fn clients_that_leave_harm_none_that_stay() {
    let session = live();
    rows(&session, TABLE);
    session.runtime().block_on(async {
        let statement = session.prepare("SELECT id FROM t WHERE large = $1 AND id > $2");
        let statement = statement.await.expect("prepared");
        for _ in 0..20 {
            let third = [3_i64.into(), 0_i64.into()];
            let stay = answer(&statement, &third);
            let leave = (0..50_i64).map(|number| {
                let values = [ScalarValue::from(number), ScalarValue::from(0_i64)];
                let statement = &statement;
                async move {
                    let asked = statement.execute(&values);
                    tokio::time::timeout(std::time::Duration::from_micros(50), asked).await.is_ok()
                }
            });
            let (found, _) = tokio::join!(stay, join_all(leave));
            assert_eq!(found.len(), 3);
        }
    });
}

#[test]
fn a_table_that_is_altered_or_gone_is_seen_as_it_is() {
    let session = live();
    rows(
        &session,
        "CREATE TABLE t AS SELECT i AS a, i * 2 AS b FROM generate_series(1, 100) AS s(i)",
    );
    session.runtime().block_on(async {
        let statement = session.prepare("SELECT b FROM t WHERE a = $1").await.expect("prepared");
        let one = [ScalarValue::from(7_i64)];
        assert_eq!(answer(&statement, &one).await, [["14"]]);
        let alter = "ALTER TABLE t ADD COLUMN c BIGINT DEFAULT 5";
        session.run(alter).await.expect("altered").collect().await.expect("altered");
        assert_eq!(answer(&statement, &one).await, [["14"]]);
        let replace = "CREATE OR REPLACE TABLE t AS SELECT 7 AS a, 1 AS b";
        session.run(replace).await.expect("replaced").collect().await.expect("replaced");
        assert_eq!(answer(&statement, &one).await, [["1"]]);
        session.run("DROP TABLE t").await.expect("dropped").collect().await.expect("dropped");
        let error = statement.execute(&one).await.expect_err("there is no table");
        assert!(error.message.contains("does not exist"), "{}", error.message);
    });
}

#[test]
fn a_text_has_the_meaning_of_its_session() {
    let first = live();
    let second = first.database().session().expect("a session");
    rows(
        &first,
        "CREATE TABLE t AS SELECT i AS a, i * 2 AS b FROM generate_series(1, 100) AS s(i)",
    );
    let sql = "SELECT b FROM t WHERE a = 7";
    for session in [&first, &second] {
        rows(session, "SET atoll.shared_scan = on");
        assert_eq!(rows(session, sql), [["14"]]);
    }
    rows(&second, "ALTER TABLE t RENAME TO old");
    rows(&second, "CREATE TABLE t AS SELECT 7 AS a, 'new' AS b");
    for session in [&first, &second] {
        assert_eq!(rows(session, sql), [["new"]]);
    }
    rows(&second, "CREATE SCHEMA other");
    rows(&second, "CREATE TABLE other.t AS SELECT 7 AS a, 'other' AS b");
    if run(&second, "SET datafusion.catalog.default_schema = 'other'").is_ok() {
        assert_eq!(rows(&second, sql), [["other"]]);
    }
    assert_eq!(rows(&first, sql), [["new"]]);
}

#[test]
fn a_transaction_sees_its_own_changes() {
    let session = live();
    rows(&session, "CREATE TABLE t AS SELECT i AS a FROM generate_series(1, 100) AS s(i)");
    rows(&session, "BEGIN");
    rows(&session, "INSERT INTO t VALUES (1)");
    session.runtime().block_on(async {
        let statement = session.prepare("SELECT a FROM t WHERE a = $1").await.expect("prepared");
        assert_eq!(answer(&statement, &[1_i64.into()]).await, [["1"], ["1"]]);
    });
    rows(&session, "ROLLBACK");
    assert!(run(&session, "SET atoll.shared_scan = maybe").is_err());
}

#[test]
fn explain_says_whether_a_selection_shares_scans() {
    let session = live();
    rows(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT, b BIGINT)");
    let says = |sql: &str| {
        let found = rows(&session, sql).into_iter().find(|row| row[0] == "shared_scan");
        found.map(|row| row[1].clone())
    };
    let rides = says("EXPLAIN SELECT count(*) FROM t WHERE a = 5 AND b < 7").expect("it is said");
    assert!(rides.starts_with("with others that wait: "), "{rides}");
    let no = says("EXPLAIN SELECT b FROM t WHERE a + b = 5").expect("it is said");
    assert!(no.starts_with("no: ") && no.contains("is not a comparison"), "{no}");
    for other in [
        "EXPLAIN SELECT b FROM t WHERE id = 5",
        "EXPLAIN SELECT b FROM t",
        "EXPLAIN SELECT * FROM t JOIN t AS u ON t.a = u.b WHERE t.a = 7",
    ] {
        assert_eq!(says(other), None, "{other}");
    }
    rows(&session, "SET atoll.shared_scan = off");
    assert_eq!(says("EXPLAIN SELECT b FROM t WHERE a = 5"), None);
}

/// Statements that change rows by their columns, with two parameters.
const CHANGES: [&str; 7] = [
    "UPDATE t SET small = $1, note = note || '+' WHERE large BETWEEN $2 AND 4000",
    "UPDATE t SET city = upper(city), price = price * 2 WHERE small = $1 AND large < $2",
    "UPDATE t SET real = large / 2.0, small = NULL WHERE city = 'city ' || $1 AND id > $2",
    "UPDATE t SET id = id + 0 WHERE small IS NULL AND large > $1 AND id < $2",
    "DELETE FROM t WHERE large = $1 AND id > $2",
    "DELETE FROM t WHERE small = $1 AND large < $2 AND flag",
    "DELETE FROM t WHERE note LIKE 'a note of some length about 7%' AND small = $1 AND id > $2",
];

#[test]
fn changes_by_shared_scans_match_normal_execution() {
    for session in [live(), fake(machines::four_nodes(), Strategy::Aligned)] {
        rows(&session, TABLE);
        rows(&session, &TABLE.replacen("TABLE t", "TABLE u", 1));
        let alone = session.database().session().expect("a session");
        rows(&alone, "SET atoll.shared_scan = off");
        let random = &mut SplitMix64::new(9);
        for round in 0..30 {
            let sql = CHANGES[round % CHANGES.len()];
            let values = [value(random), value(random)];
            let counts = session.runtime().block_on(async {
                let shared = session.prepare(sql).await.expect(sql);
                let own = sql.replace(" t ", " u ");
                let own = alone.prepare(&own).await.expect(sql);
                (answer(&shared, &values).await, answer(&own, &values).await)
            });
            assert_eq!(counts.0, counts.1, "{sql} with {values:?}");
        }
        let all = |table: &str| rows(&session, &format!("SELECT * FROM {table} ORDER BY id"));
        assert_eq!(all("t"), all("u"));
        let shared = rows(&session, "SELECT queries FROM atoll.scans WHERE table_name = 't'");
        assert!(shared[0][0].parse::<usize>().expect("a number") > 10, "{shared:?} changes rode");
    }
}

#[test]
fn no_change_is_lost_where_clients_change_the_same_rows() {
    let session = live();
    rows(
        &session,
        "CREATE TABLE t AS SELECT i AS id, i % 3 AS part, 0 AS n FROM generate_series(1, 30) AS s(i)",
    );
    session.runtime().block_on(async {
        let clients = (0..12_i64).map(|client| {
            let session = session.database().session().expect("a session");
            async move {
                let sql = "UPDATE t SET n = n + 1 WHERE part = $1 AND id <= $2";
                let update = session.prepare(sql).await.expect(sql);
                for round in 0..15 {
                    let values = [((client + round) % 3).into(), 30_i64.into()];
                    assert_eq!(answer(&update, &values).await, [["10"]]);
                }
            }
        });
        join_all(clients).await;
    });
    assert_eq!(rows(&session, "SELECT DISTINCT n FROM t"), [["60"]]);
}

#[test]
fn rows_beyond_the_memory_limit_use_normal_execution() {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let options = DatabaseOptions { memory_limit: Bytes(64 << 20), ..DatabaseOptions::default() };
    let session = session(machine, Arc::new(LiveKernel::new()), options);
    rows(
        &session,
        "CREATE TABLE t AS SELECT i AS id, i % 2 AS part, i || repeat('x', 400) AS text
         FROM generate_series(1, 60000) AS s(i)",
    );
    let statement = session.runtime().block_on(async {
        let statement = session.prepare("SELECT text FROM t WHERE part = $1 AND id > $2");
        let statement = statement.await.expect("prepared");
        let clients = (0..8_i64).map(|client| {
            let (statement, values) = (&statement, [(client % 2).into(), 0_i64.into()]);
            async move {
                let mut result = statement.execute(&values).await.expect("it runs");
                let mut count = 0;
                while let Some(batch) = result.next().await.expect("it goes on") {
                    count += batch.num_rows();
                }
                count
            }
        });
        assert_eq!(join_all(clients).await, [30_000; 8]);
        statement
    });
    // A cycle is counted after it has answered.
    let counted = |queries: u64| loop {
        let found = rows(&session, "SELECT answered_elsewhere, queries FROM atoll.scans");
        let [refused, asked] = [0, 1].map(|at| found[0][at].parse::<u64>().expect("a number"));
        if asked >= queries {
            return [refused, asked];
        }
    };
    let [refused, asked] = counted(8);
    assert!(refused > 0 && asked == 8, "{refused} of {asked}");
    session.runtime().block_on(async {
        let few = answer(&statement, &[1_i64.into(), 59_990_i64.into()]).await;
        assert_eq!(few.len(), 5);
    });
    assert_eq!(counted(9), [refused, 9]);
}

#[test]
fn a_dropped_table_leaves_the_shared_scans() {
    let session = live();
    // A cycle is counted, and releases its table, after its queries are answered.
    let soon = |is: fn(&[u64]) -> bool| (0..10_000).any(|_| is(&scans(&session)));
    for _ in 0..3 {
        rows(&session, "CREATE TABLE t AS SELECT i AS a FROM generate_series(1, 9) AS s(i)");
        session.runtime().block_on(async {
            let statement =
                session.prepare("SELECT a FROM t WHERE a = $1").await.expect("prepared");
            assert_eq!(answer(&statement, &[4_i64.into()]).await, [["4"]]);
        });
        assert!(soon(|scans| scans.get(1) == Some(&1)));
        rows(&session, "DROP TABLE t");
        assert!(soon(<[u64]>::is_empty));
    }
}
