//! Several sessions of one database.

use std::sync::Arc;
use std::thread;

use atoll_placement::LiveKernel;
use atoll_sql::{DatabaseOptions, Session, SqlError, TransactionState};
use atoll_topology::Machine;

use crate::common::{live, rows, run, session};

fn beside(session: &Session) -> Session {
    session.database().session().expect("the session starts")
}

/// A table of accounts with 100 each.
fn accounts(count: usize) -> Session {
    let session = live();
    rows(&session, "CREATE TABLE account (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)");
    let insert = format!("INSERT INTO account SELECT value, 100 FROM generate_series(1, {count})");
    rows(&session, &insert);
    session
}

fn state(result: Result<impl Sized, SqlError>) -> String {
    result.err().map_or_else(|| "none".to_owned(), |error| error.state.to_string())
}

#[test]
fn a_hot_row_counts_every_update_of_many_sessions() {
    let session = accounts(1);
    thread::scope(|scope| {
        for number in 0..16 {
            let session = beside(&session);
            scope.spawn(move || {
                for _ in 0..5 {
                    let sql = match number % 2 {
                        0 => "UPDATE account SET n = n + 1 WHERE id = 1",
                        _ => {
                            "INSERT INTO account VALUES (1, 0) \
                              ON CONFLICT (id) DO UPDATE SET n = account.n + 1"
                        }
                    };
                    rows(&session, sql);
                }
            });
        }
    });
    assert_eq!(rows(&session, "SELECT n FROM account"), [["180"]]);
}

#[test]
fn repeatable_read_refuses_lost_updates_and_allows_write_skew() {
    let one = accounts(2);
    let other = beside(&one);
    for session in [&one, &other] {
        rows(session, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        assert_eq!(rows(session, "SELECT sum(n) FROM account"), [["200"]]);
    }
    rows(&one, "UPDATE account SET n = -90 WHERE id = 1");
    rows(&other, "UPDATE account SET n = -90 WHERE id = 2");
    rows(&one, "COMMIT");
    rows(&other, "COMMIT");
    assert_eq!(rows(&one, "SELECT sum(n) FROM account"), [["-180"]]);

    rows(&other, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(rows(&other, "SELECT n FROM account WHERE id = 1"), [["-90"]]);
    rows(&one, "UPDATE account SET n = 7 WHERE id = 1");
    assert_eq!(state(run(&other, "UPDATE account SET n = n + 1 WHERE id = 1")), "40001");
    rows(&other, "ROLLBACK");
    assert_eq!(rows(&other, "SELECT n FROM account WHERE id = 1"), [["7"]]);
}

#[test]
fn of_two_sessions_that_wait_for_each_other_one_ends_and_the_other_goes_on() {
    let one = accounts(2);
    let other = beside(&one);
    rows(&one, "BEGIN");
    rows(&other, "BEGIN");
    rows(&one, "UPDATE account SET n = n + 1 WHERE id = 1");
    rows(&other, "UPDATE account SET n = n + 1 WHERE id = 2");
    let cross = |session: &Session, id: u8| {
        let done = run(session, &format!("UPDATE account SET n = n + 1 WHERE id = {id}"));
        rows(session, "COMMIT");
        state(done)
    };
    let states = thread::scope(|scope| {
        let first = scope.spawn(|| cross(&one, 2));
        let second = scope.spawn(|| cross(&other, 1));
        [first.join().expect("it ends"), second.join().expect("it ends")]
    });
    let deadlocks = states.iter().filter(|state| *state == "40P01").count();
    assert_eq!((deadlocks, states.contains(&"none".to_owned())), (1, true), "{states:?}");
    assert_eq!(rows(&one, "SELECT sum(n) FROM account"), [["202"]]);
}

#[test]
fn a_statement_that_is_given_up_while_it_waits_fails_its_transaction() {
    let one = accounts(2);
    let other = beside(&one);
    rows(&one, "BEGIN");
    rows(&one, "UPDATE account SET n = 0 WHERE id = 1");
    for given_up in [
        "UPDATE account SET n = n + 1",
        "INSERT INTO account VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = 1",
        "ALTER TABLE account ADD COLUMN more BIGINT DEFAULT 1",
        "TRUNCATE account",
    ] {
        for within in ["BEGIN", ""] {
            if !within.is_empty() {
                rows(&other, within);
                rows(&other, "INSERT INTO account VALUES (3, 3)");
            }
            other.runtime().block_on(async {
                let looked = async {
                    for _ in 0..3 {
                        let looked = one.run("SELECT count(*) FROM account").await;
                        looked.expect("it is read").collect().await.expect("it is read");
                    }
                };
                tokio::select! {
                    _ = other.run(given_up) => panic!("{given_up} did not wait"),
                    () = looked => {}
                }
            });
            if !within.is_empty() {
                assert_eq!(other.transaction_state(), TransactionState::Failed, "{given_up}");
                rows(&other, "COMMIT");
            }
            assert_eq!(rows(&other, "SELECT count(*), sum(n) FROM account"), [["2", "200"]]);
        }
    }
    rows(&one, "COMMIT");
    rows(&other, "UPDATE account SET n = n + 1");
    assert_eq!(rows(&one, "SELECT count(*), sum(n) FROM account"), [["2", "102"]]);
}

#[test]
fn tables_come_and_go_while_others_write_them() {
    let session = live();
    let create = "CREATE OR REPLACE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)";
    rows(&session, create);
    thread::scope(|scope| {
        for number in 0..3 {
            let session = beside(&session);
            scope.spawn(move || {
                for row in 0..30 {
                    for sql in [
                        &format!("INSERT INTO t (id, n) VALUES ({row}, 1) ON CONFLICT DO NOTHING"),
                        &format!("UPDATE t SET n = n + 1 WHERE id % 3 = {number}"),
                        &format!("DELETE FROM t WHERE id = {row} - 5"),
                    ] {
                        if let Err(error) = run(&session, sql) {
                            let known = ["not found", "does not exist", "deadlock"];
                            let text = error.to_string();
                            assert!(
                                known.iter().any(|known| text.contains(known)),
                                "{sql}: {text}"
                            );
                        }
                    }
                }
            });
        }
        for round in 0..20 {
            for sql in match round % 4 {
                0 => vec!["DROP TABLE t", create],
                1 => vec!["ALTER TABLE t ADD COLUMN more BIGINT DEFAULT 3"],
                2 => vec!["ALTER TABLE t DROP COLUMN more"],
                _ => vec!["TRUNCATE t"],
            } {
                rows(&session, sql);
            }
        }
    });
    let [counts] = &rows(&session, "SELECT count(*), count(DISTINCT id) FROM t")[..] else {
        panic!("one row")
    };
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn acknowledged_commits_of_every_durability_survive_closing() {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    for durability in ["off", "async", "fsync"] {
        let directory = tempfile::tempdir().expect("a directory");
        let open = || {
            let directory = Some(directory.path().join("database"));
            let options = DatabaseOptions { directory, ..DatabaseOptions::default() };
            session(Arc::clone(&machine), Arc::new(LiveKernel::new()), options)
        };
        let (one, set) = (open(), format!("SET atoll.durability = '{durability}'"));
        let other = beside(&one);
        rows(&other, "SET atoll.durability = 'async'");
        rows(&one, &set);
        let now = rows(&other, "SELECT durability FROM atoll.database");
        assert_eq!(now, [[durability]], "the last one that was set, also where it is the default");
        rows(&one, "CREATE TABLE t (a BIGINT PRIMARY KEY)");
        rows(&other, "INSERT INTO t VALUES (1), (2)");
        drop((one, other));
        assert_eq!(rows(&open(), "SELECT count(*) FROM t"), [["2"]], "{durability}");
    }
}
