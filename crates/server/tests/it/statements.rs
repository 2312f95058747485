use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::support::{self, TestServer, block_on, message};

/// The rows of all statements as text, and the count in each tag.
async fn answers(client: &Client, sql: &str) -> Vec<String> {
    let messages =
        client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let text = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            let values = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
            Some(values.collect::<Vec<_>>().join("|"))
        }
        SimpleQueryMessage::CommandComplete(count) => Some(format!("#{count}")),
        _ => None,
    };
    messages.iter().filter_map(text).collect()
}

#[test]
fn several_statements_are_answered_in_their_order() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL); \
                   SELECT a, b FROM t ORDER BY a; ; DELETE FROM t WHERE a = 1";
        assert_eq!(answers(&client, sql).await, ["#0", "#2", "1|x", "2|NULL", "#2", "#1"]);
        assert_eq!(answers(&client, " ; ").await, ["#0"]);
    });
}

#[test]
fn arrays_and_prepared_statements_are_shown_as_in_postgresql() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "PREPARE two(int, text) AS SELECT $1, $2; \
                   SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements";
        let statement = "PREPARE two(int, text) AS SELECT $1, $2";
        let shown = format!("two|{statement}|{{integer,text}}|t");
        assert_eq!(answers(&client, sql).await, ["#0", &shown, "#1"]);
        let sql = "CREATE SEQUENCE s; SELECT data_type FROM pg_sequences; \
                   SELECT ARRAY[[1, 2], [3, 4]], '{\"a b\",NULL,c}'::TEXT[]::TEXT";
        let shown = "{{1,2},{3,4}}|{\"a b\",NULL,c}";
        assert_eq!(answers(&client, sql).await, ["#0", "bigint", "#1", shown, "#1"]);
    });
}

#[test]
fn statements_sent_together_are_one_transaction() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        answers(&client, "CREATE TABLE t (a INT)").await;
        let failed = client.simple_query("INSERT INTO t VALUES (1); SELECT 1 / 0").await;
        let error = failed.expect_err("a division by zero");
        assert_eq!(error.code(), Some(&SqlState::DIVISION_BY_ZERO), "{error:?}");
        assert_eq!(answers(&client, "SELECT count(*) FROM t").await, ["0", "#1"]);
        // Work before COMMIT is committed.
        let failed = client
            .simple_query(
                "INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (2); SELECT 1 / 0",
            )
            .await;
        assert!(failed.is_err());
        assert_eq!(answers(&client, "SELECT a FROM t").await, ["1", "#1"]);
        // BEGIN makes the transaction explicit, so it continues.
        answers(&client, "INSERT INTO t VALUES (3); BEGIN; INSERT INTO t VALUES (4)").await;
        answers(&client, "ROLLBACK").await;
        assert_eq!(answers(&client, "SELECT a FROM t").await, ["1", "#1"]);
    });
}

#[test]
fn a_failed_transaction_refuses_all_but_its_end() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        answers(&client, "BEGIN").await;
        assert!(client.simple_query("SELECT nothing").await.is_err());
        for refused in ["SELECT 1", "BEGIN"] {
            let error = client.simple_query(refused).await.expect_err("it is aborted");
            assert_eq!(error.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION), "{refused}");
        }
        answers(&client, "ROLLBACK").await;
        assert_eq!(answers(&client, "SELECT 1").await, ["1", "#1"]);
    });
}

#[test]
fn errors_have_a_code_and_a_position() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let error = client.simple_query("SELECT 'ä';\n SELECT nix FROM (SELECT 1 AS a) t").await;
        let error = error.expect_err("there is no such column");
        let error = error.as_db_error().expect("a server error");
        assert_eq!(error.code(), &SqlState::UNDEFINED_COLUMN);
        let place = tokio_postgres::error::ErrorPosition::Original(21);
        assert_eq!(error.position(), Some(&place), "{error:?}");
    });
}

#[test]
fn values_are_written_as_in_postgresql() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        for (sql, text) in [
            ("TRUE", "t"),
            ("1.50::DECIMAL(10,2)", "1.50"),
            ("1e20::DOUBLE", "1e+20"),
            ("DATE '2024-02-29'", "2024-02-29"),
            ("TIMESTAMP '2024-02-29 12:30:00.25'", "2024-02-29 12:30:00.25"),
            ("TIMESTAMPTZ '2024-02-29 12:30:00+00'", "2024-02-29 12:30:00+00"),
            ("TIME '01:02:03'", "01:02:03"),
            ("INTERVAL '1 month 2 days'", "1 mon 2 days"),
            ("[1, NULL, 3]", "{1,NULL,3}"),
            ("['a b', 'c']", "{\"a b\",c}"),
            ("{'a': 1, 'b': 'x\"y'}", "{\"a\":1,\"b\":\"x\\\"y\"}"),
            ("[[1], [2, 3]]", "{{1},{2,3}}"),
            ("'{{1,2},{3,NULL}}'::INT[]", "{{1,2},{3,NULL}}"),
            ("'ab'::CHAR(4)", "ab  "),
            ("'ab'::BLOB", "\\x6162"),
            ("NULL", "NULL"),
        ] {
            assert_eq!(answers(&client, &format!("SELECT {sql}")).await[0], text, "{sql}");
        }
    });
}

#[test]
fn a_large_result_arrives_whole() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let rows = answers(&client, "SELECT x AS n, x * 2 FROM range(100000) t(x)").await;
        assert_eq!(rows.len(), 100_001);
        assert_eq!(rows[99_999].split('|').count(), 2);
    });
}

#[test]
fn errors_name_their_objects_and_a_remedy() {
    let server = TestServer::start();
    block_on(async {
        let (ann, other) = (server.connect().await, server.connect().await);
        let table = "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL CHECK (n > 0)); \
                     INSERT INTO t VALUES (1, 10), (2, 20)";
        ann.batch_execute(table).await.expect("a table");
        let refused = async |client: &Client, sql: &str| {
            let error = client.batch_execute(sql).await.expect_err(sql);
            error.as_db_error().expect("the server's error").clone()
        };
        let error = refused(&ann, "INSERT INTO t VALUES (3, NULL)").await;
        assert_eq!(error.code().code(), "23502");
        assert_eq!((error.table(), error.column()), (Some("t"), Some("n")));
        let error = refused(&ann, "INSERT INTO t VALUES (3, 0)").await;
        assert_eq!(error.code().code(), "23514");
        assert_eq!((error.table(), error.constraint()), (Some("t"), Some("t_n_check")));
        let error = refused(&ann, "INSERT INTO t VALUES (1, 1)").await;
        assert_eq!(error.detail(), Some("Key (id)=(1) already exists."));
        assert_eq!(error.constraint(), Some("t_pkey"));
        ann.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.expect("it begins");
        ann.batch_execute("SELECT * FROM t").await.expect("it reads");
        other.batch_execute("UPDATE t SET n = 11 WHERE id = 1").await.expect("it changes");
        let error = refused(&ann, "UPDATE t SET n = 12 WHERE id = 1").await;
        assert_eq!(error.code().code(), "40001");
        assert_eq!(error.hint(), Some("Repeat the transaction."));
        ann.batch_execute("ROLLBACK").await.expect("it ends");
        for (client, id) in [(&ann, 1), (&other, 2)] {
            client.batch_execute("BEGIN").await.expect("it begins");
            let own = format!("UPDATE t SET n = n + 1 WHERE id = {id}");
            client.batch_execute(&own).await.expect("it is free");
        }
        let update = async |client: &Client, id: i32| {
            let result =
                client.batch_execute(&format!("UPDATE t SET n = n + 1 WHERE id = {id}")).await;
            client.batch_execute("ROLLBACK").await.expect("it ends");
            result
        };
        let (one, two) = tokio::join!(update(&ann, 2), update(&other, 1));
        let error = [one, two].into_iter().find_map(Result::err).expect("a deadlock");
        let error = error.as_db_error().expect("the server's error");
        assert_eq!(error.code().code(), "40P01");
        let detail = error.detail().expect("the wait cycle");
        assert!(detail.lines().count() == 2 && detail.contains("waits for"), "{detail}");
    });
}

#[test]
fn unnamed_columns_are_named_as_in_postgresql() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let table = "CREATE TABLE t (a INT, count INT); INSERT INTO t VALUES (1, 9), (10, 7), (2, 8), (2, 8)";
        client.batch_execute(table).await.expect("a table");
        for (sql, names) in [
            ("SELECT count(*), a + 1, 1, a::TEXT FROM t GROUP BY a", "count,?column?,?column?,a"),
            ("SELECT count(*), count(a) FROM t UNION ALL SELECT 1, 2", "count,count"),
            ("INSERT INTO t VALUES (5, 5) RETURNING a, a + 1", "a,?column?"),
            ("SELECT * FROM (SELECT max(a) FROM t) s", "max(a)"),
        ] {
            let prepared = client.prepare(sql).await.expect(sql);
            let found: Vec<_> = prepared.columns().iter().map(|it| it.name()).collect();
            assert_eq!(found.join(","), names, "{sql}");
        }
        let by_name = "SELECT a, count(*) FROM t GROUP BY a ORDER BY count DESC, a LIMIT 2";
        assert_eq!(answers(&client, by_name).await, ["2|2", "1|1", "#2"]);
        let by_column = "SELECT a, count(*) FROM t GROUP BY a, count ORDER BY t.count";
        assert_eq!(answers(&client, by_column).await, ["10|1", "2|2", "1|1", "#3"]);
        let as_text = "SELECT a::TEXT FROM t ORDER BY a";
        assert_eq!(answers(&client, as_text).await, ["1", "10", "2", "2", "#4"]);
        let row = client.query_one("SELECT 1, -(2), CASE WHEN true THEN 3 END", &[]).await;
        let row = row.expect("a row");
        let found = (row.get::<_, i32>(0), row.get::<_, i32>(1), row.get::<_, Option<i32>>(2));
        assert_eq!(found, (1, -2, Some(3)));
        client.batch_execute("SET atoll.column_names = text").await.expect("set");
        is_named(&client, "SELECT count(*) FROM t", "count(*)").await;
        client.batch_execute("RESET atoll.column_names").await.expect("reset");
        is_named(&client, "SELECT count(*) FROM t", "count").await;
    });
}

async fn is_named(client: &Client, sql: &str, name: &str) {
    let prepared = client.prepare(sql).await.expect(sql);
    assert_eq!(prepared.columns()[0].name(), name, "{sql}");
}

#[test]
fn a_transaction_that_is_not_open_is_not_prepared() {
    let server = TestServer::start();
    let query = |sql: &str| message(b'Q', format!("{sql}\0").as_bytes());
    let told = support::answers(&server, &[query("PREPARE TRANSACTION 'a'")]);
    let told = String::from_utf8_lossy(&told).into_owned();
    for part in ["WARNING", "25P01", "there is no transaction in progress", "C\0\0\0\rROLLBACK\0"] {
        assert!(told.contains(part), "{part}: {told:?}");
    }
    let told = support::answers(&server, &[query("PREPARE transaction AS SELECT 1")]);
    assert!(String::from_utf8_lossy(&told).contains("PREPARE\0"));
}

#[test]
fn plans_are_explained_in_json() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE t (a INT)").await.expect("a table");
        client.batch_execute("INSERT INTO t VALUES (1), (2), (3)").await.expect("rows");
        for (options, rows) in [
            ("FORMAT JSON", None),
            ("ANALYZE, FORMAT JSON", Some(2)),
            ("FORMAT json, ANALYZE true, BUFFERS, COSTS off", Some(2)),
            ("ANALYZE off, VERBOSE, FORMAT JSON", None),
        ] {
            let sql = format!("EXPLAIN ({options}) SELECT a FROM t WHERE a > 1");
            let prepared = client.prepare(&sql).await.expect(&sql);
            assert_eq!(prepared.columns()[0].type_().oid(), 114);
            let found = client.simple_query(&sql).await.expect(&sql);
            let plan = found.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            });
            let plan: serde_json::Value =
                serde_json::from_str(plan.expect("a plan")).expect("it is JSON");
            let root = &plan[0];
            assert!(root["Plan"]["Node Type"].is_string(), "{plan}");
            assert_eq!(root["Plan"]["Actual Rows"].as_u64(), rows, "{plan}");
            assert_eq!(root["Execution Time"].is_number(), rows.is_some(), "{plan}");
        }
        let sql = "EXPLAIN (ANALYZE, FORMAT JSON) INSERT INTO t VALUES (4)";
        client.simple_query(sql).await.expect("it runs");
        let row = client.query_one("SELECT count(*) FROM t", &[]).await.expect("a row");
        assert_eq!(row.get::<_, i64>(0), 4);
    });
}

#[test]
fn a_select_without_columns_has_rows() {
    let server = TestServer::start();
    let query = |sql: &str| message(b'Q', format!("{sql}\0").as_bytes());
    for (sql, rows) in [
        ("SELECT", 1),
        ("SELECT;", 1),
        ("SELECT WHERE false", 0),
        ("SELECT FROM (VALUES (1), (2)) AS s (a)", 2),
        ("SELECT UNION ALL SELECT", 2),
    ] {
        let told = support::answers(&server, &[query(sql)]);
        let row = b"D\0\0\0\x06\0\0";
        let count = told.windows(row.len()).filter(|part| part == row).count();
        let text = String::from_utf8_lossy(&told).into_owned();
        assert_eq!(count, rows, "{sql}: {text:?}");
        assert!(text.contains(&format!("SELECT {rows}\0")), "{sql}: {text:?}");
        assert!(told.windows(7).any(|part| part == b"T\0\0\0\x06\0\0"), "{sql}: {text:?}");
    }
}
