//! Unique indexes with conditions and expressions: between sessions, after a restart, and compared with the rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use atoll_placement::LiveKernel;
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::{DatabaseOptions, Session};
use atoll_sys::SplitMix64;
use atoll_topology::Machine;

use crate::common::{live, rows};

const TABLE: [&str; 3] = [
    "CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT, b TEXT, gone BIGINT, live BOOLEAN)",
    "CREATE UNIQUE INDEX t_a ON t (a) WHERE gone IS NULL AND live",
    "CREATE UNIQUE INDEX t_b ON t (lower(b)) WHERE gone >= 2 OR gone IS NULL",
];

fn code(session: &Session, sql: &str) -> String {
    let result = session.runtime().block_on(async { session.run(sql).await.map(drop) });
    result.err().map(|error| error.state.code().to_owned()).unwrap_or_default()
}

fn beside(session: &Session) -> Session {
    session.database().session().expect("a session")
}

fn made() -> Session {
    let session = live();
    TABLE.iter().for_each(|sql| drop(rows(&session, sql)));
    session
}

#[test]
fn a_writer_waits_for_another_that_moves_a_row_out_of_the_condition() {
    for end in ["COMMIT", "ROLLBACK"] {
        let session = made();
        rows(&session, "INSERT INTO t VALUES (1, 5, 'x', NULL, true)");
        rows(&session, "BEGIN");
        rows(&session, "UPDATE t SET gone = 1 WHERE id = 1");
        let other = beside(&session);
        let insert =
            thread::spawn(move || code(&other, "INSERT INTO t VALUES (2, 5, 'y', NULL, true)"));
        let waiting = "SELECT kind FROM atoll.locks WHERE NOT granted";
        while rows(&session, waiting).is_empty() && !insert.is_finished() {
            thread::yield_now();
        }
        assert!(!insert.is_finished(), "it waits for the key");
        rows(&session, end);
        let expected = if end == "COMMIT" { "" } else { "23505" };
        assert_eq!(insert.join().expect("it ends"), expected, "{end}");
    }
}

#[test]
fn one_of_many_writers_wins_each_key() {
    let session = made();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let own = beside(&session);
            thread::spawn(move || {
                let mut won = 0;
                for key in 0..50 {
                    let id = writer * 1000 + key;
                    let spelled = if writer % 2 == 0 { "k" } else { "K" };
                    let sql = format!(
                        "INSERT INTO t VALUES ({id}, {key}, '{spelled}{key}', NULL, true) ON CONFLICT (a) WHERE live \
                         AND gone IS NULL DO NOTHING"
                    );
                    won += usize::from(code(&own, &sql).is_empty());
                }
                won
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| assert!(writer.join().expect("it ends") > 0));
    let counts = "SELECT count(*), count(DISTINCT a), count(DISTINCT lower(b)) FROM t";
    assert_eq!(rows(&session, counts), [["50", "50", "50"]]);
}

#[test]
fn queries_that_imply_the_condition_or_equate_the_expression_use_the_index() {
    let session = made();
    rows(&session, "INSERT INTO t SELECT i, i, 'B' || i, NULL, true FROM range(1000) r(i)");
    for (condition, index) in [
        ("a = 5 AND live AND gone IS NULL", "t_a"),
        ("gone IS NULL AND live = true AND a = 5 AND id < 10", "t_a"),
        ("lower(b) = 'b5' AND gone IS NULL", "t_b"),
        ("'b5' = lower(b) AND gone >= 2 ", "t_b"),
    ] {
        let sql = format!("SELECT id FROM t WHERE {condition}");
        let plan = rows(&session, &format!("EXPLAIN {sql}")).concat().join("\n");
        assert!(plan.contains(&format!("index={index}, key=(")), "{condition}: {plan}");
        let found = if condition.contains(">= 2") { 0 } else { 1 };
        assert_eq!(rows(&session, &sql).len(), found, "{condition}");
    }
    for condition in [
        "a = 5",
        "a = 5 AND live",
        "a = 5 OR gone IS NULL",
        "lower(b) = 'b5'",
        "b = 'b5'",
        "upper(b) = 'B5'",
    ] {
        let sql = format!("EXPLAIN SELECT id FROM t WHERE {condition}");
        let plan = rows(&session, &sql).concat().join("\n");
        assert!(!plan.contains("index="), "{condition}: {plan}");
    }
}

#[test]
fn an_ordered_index_of_a_function_serves_conditions_on_it_and_on_nothing_else() {
    let session = live();
    for sql in [
        "CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT, b TEXT)",
        "INSERT INTO t SELECT i, i % 7, CASE WHEN i % 2 = 0 THEN 'Name ' ELSE 'nAME ' END || (i % 5000) FROM range(20000) r(i)",
        "CREATE TABLE s AS SELECT * FROM t",
        "CREATE INDEX t_b ON t (lower(b), a)",
        "CREATE INDEX t_u ON t (a, upper(b) DESC)",
    ] {
        rows(&session, sql);
    }
    let change = "UPDATE # SET b = 'NAME 17' WHERE id < 3";
    ["t", "s"].iter().for_each(|table| drop(rows(&session, &change.replace('#', table))));
    rows(&session, "ALTER TABLE t RENAME COLUMN b TO name");
    rows(&session, "ALTER TABLE s RENAME COLUMN b TO name");
    rows(&session, "ALTER TABLE t ADD COLUMN c INT");
    for (condition, index) in [
        ("lower(name) = 'name 17'", "index=t_b"),
        ("'name 17' = lower(name)", "index=t_b"),
        ("lower(name) IN ('name 17', 'name 18', 'Name 19') AND a < 5", "index=t_b"),
        ("lower(name) > 'name 999' AND lower(name) < 'name 9991'", "index=t_b"),
        ("lower(name) = 'name 17' AND a = 3", "index=t_b"),
        ("lower(name) = 'name 17' OR lower(name) = 'NAME 17'", "index=t_b"),
        ("a = 3 AND upper(name) = 'NAME 17'", "index=t_u"),
        ("lower(name) = 'name 17' OR name = 'NAME 18'", ""),
        ("name = 'nAME 17'", ""),
        ("upper(name) = 'NAME 17'", ""),
        ("lower(name) = name AND a = 3", ""),
        ("lower(name) IS NULL", "index=t_b"),
    ] {
        let sql = format!("SELECT id FROM # WHERE {condition} ORDER BY id");
        let plan = rows(&session, &format!("EXPLAIN {}", sql.replace('#', "t"))).concat();
        let plan = plan.join("\n");
        match index {
            "" => assert!(!plan.contains("index=t_b"), "{condition}: {plan}"),
            index => assert!(plan.contains(index), "{condition}: {plan}"),
        }
        let answers = ["t", "s"].map(|table| rows(&session, &sql.replace('#', table)));
        assert_eq!(answers[0], answers[1], "{condition}");
    }
    for rest in [
        "ORDER BY name LIMIT 3",
        "ORDER BY lower(name), id LIMIT 3",
        "WHERE a = 3 ORDER BY name, id LIMIT 3",
    ] {
        let answers = ["t", "s"]
            .map(|table| rows(&session, &format!("SELECT lower(name), name FROM {table} {rest}")));
        assert_eq!(answers[0].len(), 3, "{rest}");
        assert_eq!(answers[0][0], answers[1][0], "{rest}");
    }
}

/// Applies statements at random and compares their outcome with that of the rules.
#[test]
fn statements_fail_when_the_rows_that_they_leave_have_a_key_twice() {
    for seed in 1..4 {
        let session = made();
        let mut random = SplitMix64::new(seed);
        for round in 0..400 {
            let mut below = |bound: u64| random.next() % bound;
            let gone = ["NULL", "1", "2"][below(3) as usize];
            let live = ["true", "false", "NULL"][below(3) as usize];
            let (a, id) = (below(12), below(40));
            let b = ["'x1'", "'X1'", "'x2'", "'y'", "'Y'", "NULL"][below(6) as usize];
            let sql = match below(7) {
                0 | 1 => format!("INSERT INTO t VALUES ({round} + 100, {a}, {b}, {gone}, {live})"),
                2 => format!("UPDATE t SET gone = {gone} WHERE id % 40 = {id}"),
                3 => format!("UPDATE t SET live = {live}, a = {a} WHERE id % 20 = {}", id % 20),
                4 => format!("UPDATE t SET b = {b} WHERE a = {a}"),
                5 => format!("DELETE FROM t WHERE a = {a}"),
                _ => format!(
                    "INSERT INTO t SELECT {round} * 1000 + i, {a} + i, b, {gone}, {live} FROM t, range(2) r(i) WHERE t.id = \
                     (SELECT max(id) FROM t)"
                ),
            };
            rows(&session, "BEGIN");
            let code = code(&session, &sql);
            assert!(code.is_empty() || code == "23505", "{sql}: {code}");
            rows(&session, if code.is_empty() { "COMMIT" } else { "ROLLBACK" });
            if code.is_empty() {
                assert_eq!(duplicates(&session), [0, 0], "seed {seed}: {sql}");
            } else {
                // The same on a table without the indexes leaves duplicates.
                let copy = [
                    "CREATE TABLE u AS SELECT * FROM t".to_owned(),
                    "ALTER TABLE t RENAME TO kept".to_owned(),
                    "ALTER TABLE u RENAME TO t".to_owned(),
                    sql.clone(),
                ];
                rows(&session, "BEGIN");
                copy.iter().for_each(|sql| drop(rows(&session, sql)));
                assert_ne!(duplicates(&session), [0, 0], "seed {seed}: {sql}");
                rows(&session, "ROLLBACK");
            }
        }
    }
}

/// How many keys of each index several rows have.
fn duplicates(session: &Session) -> [usize; 2] {
    let keys = [
        "SELECT a::text FROM t WHERE gone IS NULL AND live AND a IS NOT NULL",
        "SELECT lower(b) FROM t WHERE (gone >= 2 OR gone IS NULL) AND b IS NOT NULL",
    ];
    keys.map(|sql| {
        let mut counts = BTreeMap::<String, usize>::new();
        for row in rows(session, sql) {
            *counts.entry(row.concat()).or_default() += 1;
        }
        counts.values().filter(|count| **count > 1).count()
    })
}

fn open(runtime: &Runtime, directory: &Path) -> Session {
    let directory = Some(directory.to_owned());
    let options = DatabaseOptions { directory, ..DatabaseOptions::default() };
    Session::new(runtime.clone(), options).expect("the directory is free")
}

#[test]
fn indexes_are_the_same_after_a_restart_with_and_without_a_checkpoint() {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let kernel = Arc::new(LiveKernel::new());
    let runtime = Runtime::start(machine, kernel, RuntimeOptions::default()).expect("they start");
    let directory = tempfile::tempdir().expect("a directory");
    let definitions = "SELECT indexname, indexdef FROM pg_indexes ORDER BY 1";
    let expected = {
        let session = open(&runtime, directory.path());
        TABLE.iter().for_each(|sql| drop(rows(&session, sql)));
        rows(&session, "CREATE UNIQUE INDEX t_c ON t (COALESCE(gone, 7) DESC, id) INCLUDE (b)");
        rows(&session, "CREATE INDEX t_d ON t (gone) WHERE a + 1 > 2");
        rows(&session, "CREATE INDEX t_e ON t (lower(b) DESC, id)");
        rows(&session, "CREATE INDEX t_f ON t USING gin (b gin_trgm_ops, (a + 1)) WHERE a > 1");
        rows(&session, "CREATE INDEX t_g ON t USING hash (b text_pattern_ops)");
        rows(&session, "CREATE UNIQUE INDEX t_h ON t (a, gone) NULLS NOT DISTINCT");
        rows(
            &session,
            "INSERT INTO t SELECT i, i, 'Text ' || i, CASE WHEN i % 2 = 0 THEN 1 END, true FROM range(20000) r(i)",
        );
        rows(&session, definitions)
    };
    for checkpoint in [false, true, true] {
        let session = open(&runtime, directory.path());
        assert_eq!(rows(&session, definitions), expected);
        let found = "SELECT id FROM t WHERE lower(b) = 'text 11'";
        assert_eq!(rows(&session, found), [["11"]]);
        let plan = rows(&session, &format!("EXPLAIN {found}")).concat().join("\n");
        assert!(plan.contains("index=t_e"), "{plan}");
        for sql in [
            "INSERT INTO t VALUES (-1, 7, 'z', NULL, true)",
            "INSERT INTO t VALUES (-1, -1, 'TEXT 11', NULL, true)",
            "UPDATE t SET gone = NULL, a = 5 WHERE id = 10",
        ] {
            assert_eq!(code(&session, sql), "23505", "{sql}");
        }
        rows(&session, "INSERT INTO t VALUES (-1, 8, 'Text 8', NULL, true)");
        assert_eq!(code(&session, "INSERT INTO t VALUES (-2, 8, 'u', NULL, true)"), "23505");
        rows(&session, "DELETE FROM t WHERE id = -1");
        if checkpoint {
            rows(&session, "CHECKPOINT");
        }
    }
}

#[test]
fn an_exported_database_has_its_indexes() {
    let (session, directory) = (live(), tempfile::tempdir().expect("a directory"));
    let directory = directory.path().join("out").display().to_string();
    for sql in [
        "CREATE TABLE u (id INT PRIMARY KEY, a INT UNIQUE NULLS NOT DISTINCT, b TEXT, j JSONB)",
        "CREATE UNIQUE INDEX u_1 ON u (lower(b), a) NULLS NOT DISTINCT WHERE b LIKE 'a%' AND id > a",
        "CREATE INDEX u_2 ON u USING gin (j jsonb_path_ops) WHERE a > 1",
        "CREATE INDEX u_3 ON u ((j ->> 'a'), b DESC, (a + 1))",
        "CREATE INDEX u_4 ON u USING hash (b text_pattern_ops)",
        "INSERT INTO u VALUES (1, NULL, 'a', '{}'), (2, 1, 'A', '{}')",
    ] {
        rows(&session, sql);
    }
    let definitions = "SELECT indexdef FROM pg_indexes ORDER BY 1";
    let expected = rows(&session, definitions);
    assert_eq!(expected.len(), 6);
    rows(&session, &format!("EXPORT DATABASE TO '{directory}'"));
    let other = live();
    rows(&other, &format!("IMPORT DATABASE FROM '{directory}'"));
    assert_eq!(rows(&other, definitions), expected);
    assert_eq!(code(&other, "INSERT INTO u VALUES (3, NULL, 'b', '{}')"), "23505");
}
