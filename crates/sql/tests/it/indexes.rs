//! Queries that an index serves, and those that it does not; their answers equal those of scans.

use std::sync::Arc;

use atoll_placement::LiveKernel;
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{DatabaseOptions, Session};
use atoll_sys::SplitMix64;
use atoll_topology::Machine;

use crate::common::{live, rows};

/// Two tables of the same rows, of which `t` has indexes.
const TABLES: [&str; 7] = [
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, c DOUBLE, d DATE, n NUMERIC(30, 2))",
    "INSERT INTO t SELECT i, CASE WHEN i % 11 > 0 THEN (i * 7919) % 2003 END, CASE WHEN i % 7 > 0 THEN 'a common \
     beginning ' || (i * 31) % 977 END, CASE i % 401 WHEN 0 THEN 'NaN'::DOUBLE WHEN 1 THEN '-0.0'::DOUBLE WHEN 2 THEN \
     'Infinity'::DOUBLE ELSE (i % 613 - 300)::DOUBLE / 8 END, DATE '2020-01-01' + ((i * 13) % 500)::int, ((i * 17) % 701 - 300) * 1e20 \
     FROM range(30000) r(i)",
    "CREATE TABLE s AS SELECT * FROM t",
    "CREATE INDEX t_a ON t (a)",
    "CREATE INDEX t_b_d ON t (b, d DESC)",
    "CREATE INDEX t_c ON t (c)",
    "CREATE INDEX t_n ON t (n)",
];

fn tables() -> Session {
    let session = live();
    TABLES.iter().for_each(|sql| drop(rows(&session, sql)));
    session
}

fn plan(session: &Session, sql: &str) -> String {
    rows(session, &format!("EXPLAIN {sql}")).concat().join("\n")
}

#[test]
fn explain_names_the_index_and_counts_its_candidates() {
    let session = tables();
    for (condition, index) in [
        ("a = 5", "t_a"),
        ("5 = a", "t_a"),
        ("a IN (5, 7)", "t_a"),
        ("a = 5 OR a = 7", "t_a"),
        ("a BETWEEN 100 AND 101", "t_a"),
        ("a > 2001 AND c < 0", "t_a"),
        ("c = 12.5", "t_c"),
    ] {
        let text = plan(&session, &format!("SELECT id FROM t WHERE {condition}"));
        let lookup = format!("LookupExec: table=t, index={index}, candidates=");
        assert!(text.contains(&lookup), "{condition}: {text}");
    }
    // Texts that begin alike have the same words: the index finds all of them.
    let alike = "b = 'a common beginning 7'";
    for condition in ["a > 5", "a IS NULL", "a <> 5", "d = DATE '2020-01-05'", "a + 0 = 5", alike] {
        let text = plan(&session, &format!("SELECT id FROM t WHERE {condition}"));
        assert!(text.contains("ScanExec: table=t"), "{condition}: {text}");
    }
    for sql in ["UPDATE t SET c = 1 WHERE a = 5", "DELETE FROM t WHERE a = 5"] {
        assert!(plan(&session, sql).contains("index=t_a"), "{sql}");
    }
    let text = plan(&session, "SELECT * FROM t x JOIN t y ON x.id = y.id WHERE x.a = 7");
    let build = text.find("LookupExec").zip(text.find("ScanExec"));
    assert!(
        build.is_some_and(|(lookup, scan)| lookup < scan),
        "few rows are the build side: {text}"
    );
    let text = plan(&session, "SELECT id FROM t WHERE a > 2001");
    assert!(text.contains("no: an index has the column"), "it does not share scans: {text}");
}

/// A condition by chance over the columns of the tables.
fn condition(random: &mut SplitMix64) -> String {
    let below = |random: &mut SplitMix64, bound: u64| random.next() % bound;
    let text = |random: &mut SplitMix64| format!("'a common beginning {}'", below(random, 1100));
    let values: [String; 5] = [
        below(random, 2100).to_string(),
        text(random),
        ["'NaN'", "0.0", "-0.0", "'Infinity'", "'-Infinity'", "12.5"][below(random, 6) as usize]
            .to_owned(),
        format!("DATE '2020-01-01' + {}", below(random, 520)),
        format!("{}e20", below(random, 800) as i64 - 400),
    ];
    let columns = ["a", "b", "c", "d", "n"];
    let at = below(random, 5) as usize;
    let (column, value) = (columns[at], &values[at]);
    match below(random, 6) {
        0 | 1 => format!("{column} = {value}"),
        2 => format!("{column} IN ({value}, NULL, {value})"),
        3 => format!("{column} {} {value}", ["<", "<=", ">", ">="][below(random, 4) as usize]),
        4 => format!("{column} BETWEEN {value} AND {value}"),
        _ => format!("{column} IS NULL"),
    }
}

#[test]
fn answers_with_indexes_equal_those_without() {
    let session = tables();
    let mut random = SplitMix64::new(11);
    for round in 0..300 {
        let count = 1 + random.next() % 3;
        let conditions: Vec<String> = (0..count).map(|_| condition(&mut random)).collect();
        let condition = conditions.join(" AND ");
        let answer = |table: &str| {
            let sql = format!("SELECT id, a, b, c, d FROM {table} WHERE {condition} ORDER BY id");
            rows(&session, &sql)
        };
        assert_eq!(answer("t"), answer("s"), "{condition}");
        if round % 10 == 0 {
            let change = match random.next() % 4 {
                0 => format!("DELETE FROM # WHERE {condition} AND id % 3 = 0"),
                1 => format!("UPDATE # SET a = a + 1, b = b || 'x' WHERE {condition}"),
                2 => format!("UPDATE # SET c = NULL, d = d + 1 WHERE id % 50 = {}", round % 50),
                _ => format!(
                    "INSERT INTO # SELECT (SELECT max(id) FROM #) + row_number() OVER (ORDER BY id), a, b, c, d, n \
                     FROM # WHERE {condition}"
                ),
            };
            for table in ["t", "s"] {
                rows(&session, &change.replace('#', table));
            }
        }
    }
}

#[test]
fn the_first_rows_of_an_order_come_from_an_index() {
    let session = tables();
    rows(&session, "CREATE INDEX t_a_d ON t (a, d)");
    rows(&session, "CREATE INDEX t_d ON t (d)");
    for (rest, index) in [
        ("ORDER BY a LIMIT 5", "t_a, order=a"),
        ("ORDER BY d DESC, id LIMIT 5 OFFSET 2", "t_d, order=d DESC"),
        ("ORDER BY c, b, id LIMIT 3", "t_c, order=c"),
        ("WHERE a = 5 ORDER BY d DESC, id LIMIT 2", "t_a_d, order=d DESC"),
    ] {
        let text = plan(&session, &format!("SELECT id, a FROM t {rest}"));
        // Few rows have one value of a: the lookup by it comes first.
        let lookup = format!("LookupExec: table=t, index={index}");
        let by_value = "LookupExec: table=t, index=t_a";
        assert!(
            text.contains(&lookup) || (rest.contains("WHERE") && text.contains(by_value)),
            "{rest}: {text}"
        );
    }
    // NULL is the last value of an index, and a long run of equal values, here of NULL, is scanned.
    for rest in [
        "a DESC LIMIT 5",
        "a NULLS FIRST LIMIT 5",
        "a DESC NULLS LAST LIMIT 5",
        "b LIMIT 5",
        "a + 0 LIMIT 5",
        "a LIMIT 5000",
    ] {
        let text = plan(&session, &format!("SELECT id FROM t ORDER BY {rest}"));
        assert!(text.contains("ScanExec: table=t"), "{rest}: {text}");
    }
}

#[test]
fn the_first_rows_of_an_order_equal_those_of_a_sort() {
    let session = tables();
    // One value of `a` has too many rows to be looked up.
    for table in ["t", "s"] {
        rows(&session, &format!("UPDATE {table} SET a = 5 WHERE id % 3 = 0"));
    }
    rows(&session, "CREATE INDEX t_a_c ON t (a, c)");
    rows(&session, "CREATE INDEX t_a_b ON t (a, b)");
    let mut random = SplitMix64::new(23);
    for round in 0..120 {
        let mut below = |bound: u64| random.next() % bound;
        let direction = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"][below(4) as usize];
        let column = ["a", "b", "c", "d", "n"][below(5) as usize];
        let second = ["id", "d DESC, id", "c, id DESC"][below(3) as usize];
        let condition =
            ["", "WHERE a = 5", "WHERE a = 7", "WHERE a = 5 AND c > 0"][below(4) as usize];
        let (limit, offset) = (below(12), below(4));
        let answer = |table: &str| {
            let order = format!("ORDER BY {column}{direction}, {second}");
            let sql = format!(
                "SELECT id, a, c FROM {table} {condition} {order} LIMIT {limit} OFFSET {offset}"
            );
            (rows(&session, &sql), sql)
        };
        assert_eq!(answer("t").0, answer("s").0, "{}", answer("t").1);
        if round % 10 == 0 {
            for table in ["t", "s"] {
                rows(
                    &session,
                    &format!(
                        "UPDATE {table} SET c = c - 7, b = NULL WHERE id % 40 = {}",
                        round % 40
                    ),
                );
                rows(
                    &session,
                    &format!("DELETE FROM {table} WHERE a IS NULL AND id % 30 = {}", round % 30),
                );
            }
        }
    }
    let text = plan(&session, "SELECT id FROM t WHERE a = 5 ORDER BY c DESC LIMIT 3");
    assert!(text.contains("index=t_a_c, order=c DESC"), "{text}");
}

#[test]
fn prepared_selections_find_all_rows_with_a_key() {
    let session = tables();
    let runtime = session.runtime().clone();
    let sql = "SELECT id, b, a + $1 FROM t WHERE a = $1";
    let prepared = runtime.block_on(session.prepare(sql)).expect(sql);
    let executed = |value: Option<i32>| {
        let rows = runtime.block_on(async {
            let result = prepared.execute(&[ScalarValue::Int32(value)]).await.expect("it runs");
            result.collect().await.expect("it ends")
        });
        let mut ids: Vec<String> =
            rows.iter().flat_map(crate::common::texts).map(|row| row[0].clone()).collect();
        ids.sort_by_key(|id| id.parse::<i64>().expect("a number"));
        ids
    };
    let expected = |value: i32| -> Vec<String> {
        rows(&session, &format!("SELECT id FROM s WHERE a = {value} ORDER BY id")).concat()
    };
    for value in [0, 5, 77, 2002, 5000, -1] {
        assert_eq!(executed(Some(value)), expected(value), "{value}");
    }
    assert!(executed(None).is_empty());
    // More than are read one by one.
    rows(&session, "UPDATE t SET a = 5 WHERE id % 5 = 0");
    rows(&session, "UPDATE s SET a = 5 WHERE id % 5 = 0");
    assert_eq!(executed(Some(5)), expected(5));
    rows(&session, "DROP INDEX t_a");
    assert_eq!(executed(Some(5)), expected(5));
}

#[test]
fn indexes_are_there_after_a_restart_with_and_without_a_checkpoint() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = || {
        let machine = Arc::new(Machine::discover().expect("the machine can be read"));
        let kernel = Arc::new(LiveKernel::new());
        let runtime =
            Runtime::start(machine, kernel, RuntimeOptions::default()).expect("the pools start");
        let directory = Some(directory.path().to_owned());
        let options = DatabaseOptions { directory, ..DatabaseOptions::default() };
        Session::new(runtime, options).expect("the directory is free")
    };
    let session = open();
    TABLES.iter().for_each(|sql| drop(rows(&session, sql)));
    rows(&session, "CREATE UNIQUE INDEX t_id_a ON t (id, a)");
    let check = |session: &Session| {
        let definitions =
            "SELECT indexdef FROM pg_indexes WHERE tablename = 't' ORDER BY indexname";
        assert_eq!(rows(session, definitions).len(), 6);
        assert!(plan(session, "SELECT id FROM t WHERE a = 5").contains("index=t_a"));
        for condition in ["a = 5", "b = 'a common beginning 7'", "c = -0.0"] {
            let ids = |table: &str| {
                rows(session, &format!("SELECT id FROM {table} WHERE {condition} ORDER BY id"))
            };
            assert_eq!(ids("t"), ids("s"), "{condition}");
        }
    };
    check(&session);
    drop(session);
    let session = open();
    check(&session);
    for table in ["t", "s"] {
        rows(&session, &format!("UPDATE {table} SET a = 5 WHERE id % 1000 = 1"));
    }
    rows(&session, "CHECKPOINT");
    for table in ["t", "s"] {
        rows(&session, &format!("DELETE FROM {table} WHERE a = 5 AND id % 2 = 0"));
    }
    drop(session);
    check(&open());
}
