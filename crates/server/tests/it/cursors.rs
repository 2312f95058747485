//! DECLARE, FETCH, MOVE and CLOSE over both protocols.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::support::{TestServer, answers, block_on, message};

/// The rows of a statement, or its SQLSTATE.
async fn rows(client: &Client, sql: &str) -> Result<Vec<String>, SqlState> {
    let messages = client.simple_query(sql).await;
    let messages = messages.map_err(|error| error.code().expect("it is refused").clone())?;
    let row = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    Ok(messages.iter().filter_map(row).collect())
}

async fn with_rows(server: &TestServer) -> Client {
    let client = server.connect().await;
    let table = "CREATE TABLE t (a INT); INSERT INTO t SELECT x FROM range(10000) r(x)";
    client.batch_execute(table).await.expect("a table");
    client
}

#[test]
fn a_cursor_returns_the_rows_of_its_snapshot() {
    let server = TestServer::start();
    block_on(async {
        let client = with_rows(&server).await;
        let of =
            async |sql: &str| rows(&client, sql).await.unwrap_or_else(|it| panic!("{sql}: {it:?}"));
        of("BEGIN").await;
        of("DECLARE c NO SCROLL CURSOR WITHOUT HOLD FOR SELECT a FROM t ORDER BY a").await;
        of("DECLARE \"D d\" CURSOR FOR TABLE t ORDER BY a DESC").await;
        assert_eq!(of("FETCH c").await, ["0"]);
        of("INSERT INTO t VALUES (-1), (20000)").await;
        assert_eq!(of("FETCH FORWARD 2 FROM c").await, ["1", "2"]);
        assert_eq!(of("FETCH 1 IN \"D d\"").await, ["9999"]);
        let moved = client.simple_query("MOVE 9990 FROM c").await.expect("it moves");
        assert!(matches!(moved[..], [SimpleQueryMessage::CommandComplete(9990)]), "{moved:?}");
        assert_eq!(
            of("FETCH ALL FROM c").await,
            ["9993", "9994", "9995", "9996", "9997", "9998", "9999"]
        );
        assert_eq!(of("FETCH NEXT FROM c").await, [""; 0]);
        of("CLOSE c").await;
        of("DECLARE c CURSOR FOR VALUES (7)").await;
        assert_eq!(of("FETCH c").await, ["7"]);
        of("CLOSE ALL").await;
        of("COMMIT").await;
        assert_eq!(of("BEGIN; DECLARE c CURSOR FOR SELECT 5; FETCH c; COMMIT").await, ["5"]);
    });
}

#[test]
fn unsupported_cursor_options_are_refused() {
    let server = TestServer::start();
    block_on(async {
        let client = with_rows(&server).await;
        let outside = rows(&client, "DECLARE c CURSOR FOR SELECT 1").await;
        assert_eq!(outside, Err(SqlState::NO_ACTIVE_SQL_TRANSACTION));
        for (statements, state) in [
            ("FETCH c", SqlState::INVALID_CURSOR_NAME),
            ("CLOSE c", SqlState::INVALID_CURSOR_NAME),
            (
                "DECLARE c CURSOR FOR SELECT 1; DECLARE c CURSOR FOR SELECT 2",
                SqlState::DUPLICATE_CURSOR,
            ),
            (
                "DECLARE c CURSOR FOR SELECT 1; FETCH PRIOR FROM c",
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            ),
            ("DECLARE c SCROLL NO SCROLL CURSOR FOR SELECT 1", SqlState::INVALID_CURSOR_DEFINITION),
            ("DECLARE c CURSOR FOR SELECT nix FROM t", SqlState::UNDEFINED_COLUMN),
            (
                "DECLARE c CURSOR FOR SELECT 1 / (a - 5) FROM t; FETCH ALL c",
                SqlState::DIVISION_BY_ZERO,
            ),
            (
                "DECLARE c CURSOR FOR SELECT 1; COMMIT; BEGIN; FETCH c",
                SqlState::INVALID_CURSOR_NAME,
            ),
        ] {
            assert_eq!(
                rows(&client, &format!("BEGIN; {statements}")).await,
                Err(state),
                "{statements}"
            );
            let failed = rows(&client, "FETCH c").await;
            assert_eq!(failed, Err(SqlState::IN_FAILED_SQL_TRANSACTION), "{statements}");
            client.batch_execute("ROLLBACK").await.expect("rolled back");
        }
        // A cursor ends with its transaction.
        client
            .batch_execute("BEGIN; DECLARE c CURSOR FOR TABLE t; COMMIT; BEGIN")
            .await
            .expect("both");
        assert_eq!(rows(&client, "FETCH c").await, Err(SqlState::INVALID_CURSOR_NAME));
    });
}

#[test]
fn a_cursor_takes_parameters_and_returns_binary_values() {
    let server = TestServer::start();
    block_on(async {
        let mut client = with_rows(&server).await;
        let transaction = client.transaction().await.expect("a transaction");
        let declare = "DECLARE c CURSOR FOR SELECT a FROM t WHERE a >= $1 ORDER BY a";
        transaction.execute(declare, &[&9_997_i32]).await.expect("declared");
        let fetched = transaction.query("FETCH FORWARD 2 FROM c", &[]).await.expect("rows");
        let fetched: Vec<i32> = fetched.iter().map(|row| row.get(0)).collect();
        assert_eq!(fetched, [9997, 9998]);
        assert_eq!(transaction.execute("MOVE c", &[]).await.expect("it moves"), 1);
        assert!(transaction.query("FETCH ALL c", &[]).await.expect("rows").is_empty());
        transaction.execute("CLOSE c", &[]).await.expect("closed");
        let error = transaction.query("FETCH c", &[]).await.expect_err("it is closed");
        assert_eq!(error.code(), Some(&SqlState::INVALID_CURSOR_NAME));
    });
}

#[test]
fn a_cursor_with_hold_outlives_its_transaction() {
    let server = TestServer::start();
    block_on(async {
        let client = with_rows(&server).await;
        let of =
            async |sql: &str| rows(&client, sql).await.unwrap_or_else(|it| panic!("{sql}: {it:?}"));
        of("DECLARE c CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a").await;
        assert_eq!(of("FETCH 2 FROM c").await, ["0", "1"]);
        of("DELETE FROM t WHERE a < 100").await;
        of("BEGIN; DECLARE d CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a; COMMIT").await;
        assert_eq!(rows(&client, "SELECT 1 / 0").await, Err(SqlState::DIVISION_BY_ZERO));
        assert_eq!(of("FETCH 2 FROM c").await, ["2", "3"]);
        assert_eq!(of("FETCH d").await, ["100"]);
        of("CLOSE c").await;
        assert_eq!(rows(&client, "FETCH c").await, Err(SqlState::INVALID_CURSOR_NAME));
    });
}

/// The texts of one column in the rows of an answer.
fn row_texts(answer: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = answer;
    while let [kind, a, b, c, d, after @ ..] = rest {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize - 4;
        let (body, next) = after.split_at(length);
        if *kind == b'D' {
            texts.push(String::from_utf8_lossy(&body[6..]).into_owned());
        }
        rest = next;
    }
    texts
}

#[test]
fn move_runs_a_portal_that_was_only_bound() {
    let server = TestServer::start();
    let sql = "SELECT x FROM (VALUES (1), (2), (3), (4), (5)) t(x)";
    let parse = message(b'P', format!("\0{sql}\0\0\0").as_bytes());
    let bind = message(b'B', b"c\0\0\0\0\0\0\0\0");
    let execute = message(b'E', b"c\0\0\0\0\x02");
    let move_on = message(b'P', b"\0MOVE FORWARD 2 c\0\0\0");
    let move_on = [move_on, message(b'B', &[0; 8]), message(b'E', &[0; 5])].concat();
    let sync = message(b'S', b"");
    let answer = answers(&server, &[parse, bind, move_on, execute.clone(), execute, sync]);
    assert_eq!(row_texts(&answer), ["3", "4", "5"]);
}

/// The rows of several statements, or the tag's count for those without rows, one text for each.
async fn told(client: &Client, sql: &str) -> Vec<String> {
    let mut told = Vec::new();
    for statement in sql.split(';') {
        let messages = client.simple_query(statement).await;
        let messages = messages.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        let text = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            SimpleQueryMessage::CommandComplete(count) => Some(format!("({count})")),
            _ => None,
        };
        told.push(messages.iter().filter_map(text).collect::<Vec<_>>().join(" "));
    }
    told
}

#[test]
fn a_scrollable_cursor_moves_as_in_postgresql() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client
            .batch_execute("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT x FROM range(1, 6) r(x)")
            .await
            .expect("a cursor");
        // PostgreSQL 15's answers, over generate_series(1, 5).
        for (sql, wanted) in [
            ("FETCH 0 c", "(0)"),
            ("FETCH c", "1 (1)"),
            ("FETCH 0 c", "1 (1)"),
            ("FETCH LAST c", "5 (1)"),
            ("FETCH NEXT c", "(0)"),
            ("FETCH RELATIVE 0 c", "(0)"),
            ("FETCH PRIOR c", "5 (1)"),
            ("FETCH PRIOR c", "4 (1)"),
            ("FETCH BACKWARD 2 c", "3 2 (2)"),
            ("FETCH BACKWARD ALL c", "1 (1)"),
            ("FETCH BACKWARD ALL c", "(0)"),
            ("FETCH ABSOLUTE 3 c", "3 (1)"),
            ("FETCH ABSOLUTE -2 c", "4 (1)"),
            ("FETCH RELATIVE -2 c", "2 (1)"),
            ("FETCH RELATIVE 1 c", "3 (1)"),
            ("FETCH ABSOLUTE 0 c", "(0)"),
            ("FETCH FIRST c", "1 (1)"),
            ("FETCH ABSOLUTE 9 c", "(0)"),
            ("FETCH PRIOR c", "5 (1)"),
            ("FETCH ABSOLUTE -9 c", "(0)"),
            ("FETCH NEXT c", "1 (1)"),
            ("MOVE BACKWARD ALL c", "(0)"),
            ("MOVE 3 c", "(3)"),
            ("MOVE BACKWARD ALL c", "(2)"),
            ("MOVE ALL c", "(5)"),
            ("MOVE BACKWARD ALL c", "(5)"),
            ("MOVE LAST c", "(1)"),
            ("MOVE PRIOR c", "(1)"),
            ("MOVE FIRST c", "(1)"),
            ("MOVE ABSOLUTE 0 c", "(0)"),
            ("MOVE RELATIVE 0 c", "(0)"),
            ("MOVE RELATIVE 2 c", "(1)"),
            ("MOVE 0 c", "(1)"),
            ("FETCH -1 c", "1 (1)"),
            ("FETCH FORWARD -1 c", "(0)"),
            ("FETCH BACKWARD -1 c", "1 (1)"),
            ("FETCH BACKWARD 0 c", "1 (1)"),
            ("MOVE ABSOLUTE 99 c", "(0)"),
            ("MOVE RELATIVE -2 c", "(1)"),
            ("FETCH BACKWARD c", "3 (1)"),
            ("FETCH FORWARD 0 FROM c", "3 (1)"),
            ("FETCH ALL FROM c", "4 5 (2)"),
        ] {
            assert_eq!(told(&client, sql).await, [wanted], "{sql}");
        }
        client.batch_execute("COMMIT").await.expect("committed");
        let empty = "BEGIN;DECLARE c SCROLL CURSOR FOR SELECT 1 WHERE false;FETCH LAST c;FETCH FIRST c;\
                     FETCH PRIOR c;MOVE 1 c;MOVE LAST c;COMMIT";
        assert_eq!(told(&client, empty).await[2..7], ["(0)", "(0)", "(0)", "(0)", "(0)"]);
    });
}

#[test]
fn a_scrollable_cursor_crosses_batches_and_transactions() {
    let server = TestServer::start();
    block_on(async {
        let client = with_rows(&server).await;
        client
            .batch_execute("INSERT INTO t SELECT 10000 + x FROM range(40000) r(x)")
            .await
            .expect("more rows");
        let declare = "DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a";
        client.batch_execute(declare).await.expect("declared");
        client.batch_execute("DELETE FROM t").await.expect("deleted");
        let of =
            async |sql: &str| rows(&client, sql).await.unwrap_or_else(|it| panic!("{sql}: {it:?}"));
        assert_eq!(of("FETCH ABSOLUTE 30001 c").await, ["30000"]);
        assert_eq!(of("FETCH BACKWARD 20000 c").await.len(), 20_000);
        assert_eq!(of("FETCH NEXT c").await, ["10001"]);
        let all = of("FETCH ALL c").await;
        assert_eq!((all.len(), all[0].as_str()), (39_998, "10002"));
        let back = of("FETCH BACKWARD ALL c").await;
        assert_eq!((back.len(), back[0].as_str(), back[49_999].as_str()), (50_000, "49999", "0"));
        assert_eq!(rows(&client, "SELECT 1 / 0").await, Err(SqlState::DIVISION_BY_ZERO));
        assert_eq!(of("FETCH LAST c; CLOSE c").await, ["49999"]);
    });
}

#[test]
fn other_cursors_only_move_forward() {
    let server = TestServer::start();
    block_on(async {
        let client = with_rows(&server).await;
        for option in ["", "NO SCROLL"] {
            let declare = format!(
                "BEGIN;DECLARE c {option} CURSOR FOR SELECT a FROM t WHERE a < 5 ORDER BY a"
            );
            told(&client, &declare).await;
            let forward = "FETCH ABSOLUTE 0 c;MOVE 2 c;MOVE 0 c;MOVE BACKWARD 0 c;FETCH ABSOLUTE 4 c;\
                           FETCH RELATIVE 1 c;FETCH c;FETCH ALL c";
            assert_eq!(
                told(&client, forward).await,
                ["(0)", "(2)", "(1)", "(1)", "3 (1)", "4 (1)", "(0)", "(0)"]
            );
            client.batch_execute("ROLLBACK").await.expect("rolled back");
            for back in [
                "FETCH PRIOR c",
                "FETCH BACKWARD ALL c",
                "FETCH -1 c",
                "MOVE RELATIVE -1 c",
                "FETCH FIRST c",
                "FETCH ABSOLUTE 0 c",
                "FETCH LAST c",
                "FETCH 0 c",
                "FETCH RELATIVE 0 c",
            ] {
                for before in ["MOVE 2 c", "MOVE ALL c"] {
                    // Behind the last row there is no current one to return again.
                    if before == "MOVE ALL c"
                        && back.ends_with("0 c")
                        && back != "FETCH ABSOLUTE 0 c"
                    {
                        continue;
                    }
                    told(&client, &format!("{declare};{before}")).await;
                    let error = client.simple_query(back).await.expect_err(back);
                    let error = error.as_db_error().expect("of the server");
                    assert_eq!(error.message(), "cursor can only scan forward", "{back}");
                    assert_eq!(
                        error.hint(),
                        Some("Declare it with SCROLL option to enable backward scan.")
                    );
                    assert_eq!(*error.code(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
                    client.batch_execute("ROLLBACK").await.expect("rolled back");
                }
            }
        }
    });
}

#[test]
fn a_binary_cursor_returns_binary_values_to_plain_fetches() {
    let server = TestServer::start();
    let query = |sql: &str| message(b'Q', format!("{sql}\0").as_bytes());
    let begin = query("BEGIN; DECLARE c BINARY SCROLL CURSOR FOR SELECT 65::INT");
    let answer = answers(&server, &[begin, query("FETCH c"), query("FETCH 0 c")]);
    assert_eq!(row_texts(&answer), ["\0\0\0A", "\0\0\0A"]);
}
