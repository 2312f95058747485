//! Domains and lengths of VARCHAR after a restart, in other sessions, in prepared statements, and in exported databases.

use std::path::Path;
use std::sync::Arc;

use atoll_placement::LiveKernel;
use atoll_sql::{DatabaseOptions, PgType, Session};
use atoll_topology::Machine;

use crate::common::{live, rows, run, session};

fn durable(directory: &Path) -> Session {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let directory = Some(directory.to_owned());
    let options = DatabaseOptions { directory, ..DatabaseOptions::default() };
    session(machine, Arc::new(LiveKernel::new()), options)
}

fn fill(session: &Session) {
    for sql in [
        "CREATE DOMAIN positive AS INT DEFAULT 5 CHECK (VALUE > 0)",
        "CREATE DOMAIN word AS VARCHAR(4) NOT NULL CONSTRAINT small CHECK (VALUE = lower(VALUE))",
        "CREATE TABLE t (n positive, w word, v VARCHAR(3), c CHAR(3))",
        "INSERT INTO t VALUES (1, 'one', 'abc', 'ab ')",
        "INSERT INTO t(w) VALUES ('five')",
    ] {
        rows(session, sql);
    }
}

fn refused(session: &Session, sql: &str) -> String {
    let error = run(session, sql).expect_err(sql);
    format!("{} {}", error.state.code(), error.message)
}

/// Every constraint is there.
fn check(session: &Session) {
    let all = rows(session, "SELECT n, w, v, c, pg_typeof(n) FROM t ORDER BY n");
    assert_eq!(
        all,
        [["1", "one", "abc", "ab", "positive"], ["5", "five", "NULL", "NULL", "positive"]]
    );
    for (row, expected) in [
        (
            "(0, 'a')",
            "23514 value for domain positive violates check constraint \"positive_check\"",
        ),
        ("(1, 'A')", "23514 value for domain word violates check constraint \"small\""),
        ("(1, NULL)", "23502 domain word does not allow null values"),
        ("(1, 'words')", "22001 value too long for type character varying(4)"),
        ("(1, 'a', 'abcd')", "22001 value too long for type character varying(3)"),
        ("(1, 'a', 'abc', 'abcd')", "22001 value too long for type character(3)"),
    ] {
        assert_eq!(refused(session, &format!("INSERT INTO t VALUES {row}")), expected);
    }
    let shown = rows(session, "SHOW CREATE TABLE t").concat().concat();
    assert!(shown.contains("n positive DEFAULT 5, w word, v VARCHAR(3), c CHAR(3)"), "{shown}");
}

#[test]
fn domains_and_lengths_outlive_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    {
        let session = durable(directory.path());
        fill(&session);
        check(&session);
        rows(&session, "CHECKPOINT");
    }
    {
        let session = durable(directory.path());
        check(&session);
        rows(&session, "ALTER DOMAIN positive ADD CONSTRAINT few CHECK (VALUE < 100)");
    }
    let session = durable(directory.path());
    check(&session);
    assert!(refused(&session, "INSERT INTO t VALUES (100, 'a')").ends_with("\"few\""));
}

#[test]
fn exported_databases_have_domains_and_lengths() {
    let (session, directory) = (live(), tempfile::tempdir().expect("a directory"));
    let directory = directory.path().join("out").display().to_string();
    fill(&session);
    rows(&session, &format!("EXPORT DATABASE TO '{directory}'"));
    let other = live();
    rows(&other, &format!("IMPORT DATABASE FROM '{directory}'"));
    check(&other);
}

#[test]
fn prepared_statements_follow_changes_of_domains() {
    let session = live();
    fill(&session);
    let other = session.database().session().expect("a session");
    rows(&session, "PREPARE p AS INSERT INTO t VALUES ($1, 'a')");
    rows(&session, "PREPARE q AS SELECT $1::positive");
    rows(&session, "EXECUTE p(7)");
    rows(&session, "EXECUTE q(7)");
    rows(&other, "ALTER DOMAIN positive ADD CONSTRAINT few CHECK (VALUE < 10)");
    assert!(refused(&session, "EXECUTE p(70)").ends_with("\"few\""));
    assert!(refused(&session, "EXECUTE q(70)").ends_with("\"few\""));
    rows(&other, "ALTER DOMAIN positive DROP CONSTRAINT few");
    rows(&session, "EXECUTE p(70)");
    assert_eq!(rows(&session, "EXECUTE q(70)"), [["70"]]);
}

#[test]
fn clients_see_base_types_and_lengths() {
    let session = live();
    fill(&session);
    session.runtime().block_on(async {
        let select = session.prepare("SELECT n, v, c FROM t WHERE n = $1").await.expect("valid");
        let columns = select.columns().expect("it has rows");
        let of = |at: usize| {
            let of = PgType::of_field(columns.field(at));
            (of.oid, of.modifier)
        };
        assert_eq!([of(0), of(1), of(2)], [(23, -1), (1043, 7), (1042, 7)]);
    });
}
