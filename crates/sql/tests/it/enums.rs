//! ENUMs after a restart, in other sessions, as parameters, and in exported databases.

use std::path::Path;
use std::sync::Arc;

use atoll_placement::LiveKernel;
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{DatabaseOptions, PgType, Session};
use atoll_topology::Machine;

use crate::common::{live, rows, run, session, texts};

fn durable(directory: &Path) -> Session {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let directory = Some(directory.to_owned());
    let options = DatabaseOptions { directory, ..DatabaseOptions::default() };
    session(machine, Arc::new(LiveKernel::new()), options)
}

fn fill(session: &Session) {
    for sql in [
        "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
        "CREATE TABLE p (n INT PRIMARY KEY, m mood NOT NULL DEFAULT 'ok')",
        "INSERT INTO p VALUES (1, 'happy'), (2, 'sad')",
        "INSERT INTO p(n) VALUES (3)",
        "CREATE VIEW v AS SELECT n, m FROM p WHERE m > 'sad'",
    ] {
        rows(session, sql);
    }
}

fn sorted(session: &Session) -> Vec<Vec<String>> {
    rows(session, "SELECT n, m FROM p ORDER BY m")
}

#[test]
fn types_and_values_outlive_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let before = {
        let session = durable(directory.path());
        fill(&session);
        rows(&session, "CHECKPOINT");
        rows(&session, "ALTER TYPE mood ADD VALUE 'meh' AFTER 'sad'");
        rows(&session, "INSERT INTO p VALUES (4, 'meh')");
        sorted(&session)
    };
    let expected = [["2", "sad"], ["4", "meh"], ["3", "ok"], ["1", "happy"]];
    assert_eq!(before, expected);
    let session = durable(directory.path());
    assert_eq!(sorted(&session), before);
    assert_eq!(rows(&session, "SELECT max(m) FROM v"), [["happy"]]);
    assert!(run(&session, "DROP TYPE mood").is_err());
}

#[test]
fn a_transaction_that_is_rolled_back_leaves_no_type() {
    let session = live();
    for sql in ["BEGIN", "CREATE TYPE mood AS ENUM ('sad')", "CREATE TABLE p (m mood)", "ROLLBACK"]
    {
        rows(&session, sql);
    }
    assert!(run(&session, "SELECT 'sad'::mood").is_err());
    fill(&session);
    assert_eq!(rows(&session, "SELECT min(m) FROM p"), [["sad"]]);
}

#[test]
fn labels_that_another_session_adds_are_known_to_prepared_statements() {
    let session = live();
    fill(&session);
    let other = session.database().session().expect("the session starts");
    let text = "SELECT n FROM p WHERE m = 'ok'";
    for _ in 0..3 {
        assert_eq!(rows(&session, text), [["3"]]);
    }
    rows(&session, "PREPARE q AS SELECT m FROM p WHERE n = $1");
    assert_eq!(rows(&session, "EXECUTE q(3)"), [["ok"]]);
    rows(&other, "ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'");
    assert_eq!(rows(&session, "EXECUTE q(3)"), [["fine"]]);
    assert!(run(&session, text).is_err());
    assert_eq!(rows(&session, "SELECT n FROM p WHERE m = 'fine'"), [["3"]]);
}

#[test]
fn parameters_are_labels_and_have_the_oid_of_their_type() {
    let session = live();
    fill(&session);
    let oid = rows(&session, "SELECT oid FROM pg_type WHERE typname = 'mood'");
    let runtime = session.runtime();
    runtime.block_on(async {
        let select = session.prepare("SELECT m FROM p WHERE m = $1").await.expect("it is valid");
        assert_eq!(select.parameter_oid(0).to_string(), oid[0][0]);
        let columns = select.columns().expect("it has rows");
        assert_eq!(PgType::of_field(columns.field(0)).oid.to_string(), oid[0][0]);
        let found = select.execute(&[ScalarValue::from("ok")]).await.expect("ok is a label");
        let found = found.collect().await.expect("the query runs");
        assert_eq!(found.iter().flat_map(texts).collect::<Vec<_>>(), [["ok"]]);
        let refused = select.execute(&[ScalarValue::from("x")]).await;
        let refused = match refused {
            Ok(result) => result.collect().await.err(),
            Err(error) => Some(error),
        };
        assert!(refused.expect("x is not a label").message.contains("enum mood: \"x\""));
        let insert = session.prepare("INSERT INTO p VALUES ($1, $2)").await.expect("valid");
        let values = [ScalarValue::Int32(Some(9)), ScalarValue::from("happy")];
        let inserted = insert.execute(&values).await.expect("the values fit");
        inserted.collect().await.expect("the row is new");
        let by_key = session.prepare("SELECT m FROM p WHERE n = $1").await.expect("it is valid");
        let found = by_key.execute(&[ScalarValue::Int32(Some(9))]).await.expect("it runs");
        let found = found.collect().await.expect("it runs");
        assert_eq!(found.iter().flat_map(texts).collect::<Vec<_>>(), [["happy"]]);
    });
}

#[test]
fn an_exported_database_has_its_types() {
    let (session, directory) = (live(), tempfile::tempdir().expect("a directory"));
    let directory = directory.path().join("out").display().to_string();
    fill(&session);
    rows(&session, &format!("EXPORT DATABASE TO '{directory}'"));
    let other = live();
    rows(&other, &format!("IMPORT DATABASE FROM '{directory}'"));
    assert_eq!(sorted(&other), sorted(&session));
    rows(&other, "INSERT INTO p(n) VALUES (7)");
    assert_eq!(rows(&other, "SELECT m FROM v WHERE n = 7"), [["ok"]]);
    assert!(run(&other, "INSERT INTO p VALUES (8, 'x')").is_err());
    let shown = rows(&other, "SHOW CREATE TABLE p").concat().concat();
    assert!(shown.contains("m mood NOT NULL DEFAULT 'ok'"), "{shown}");
}

#[test]
fn files_hold_labels() {
    let (session, directory) = (live(), tempfile::tempdir().expect("a directory"));
    fill(&session);
    for ending in ["csv", "parquet", "json", "arrow"] {
        let file = directory.path().join(format!("p.{ending}")).display().to_string();
        rows(&session, &format!("COPY (SELECT n, m FROM p ORDER BY n) TO '{file}'"));
        let read = rows(&session, &format!("SELECT n, m FROM '{file}' ORDER BY n"));
        assert_eq!(read, [["1", "happy"], ["2", "sad"], ["3", "ok"]], "{ending}");
        rows(&session, "CREATE OR REPLACE TABLE r (n INT, m mood)");
        rows(&session, &format!("COPY r FROM '{file}'"));
        let read = rows(&session, "SELECT n, m FROM r ORDER BY m");
        assert_eq!(read, [["2", "sad"], ["3", "ok"], ["1", "happy"]], "{ending}");
    }
}
