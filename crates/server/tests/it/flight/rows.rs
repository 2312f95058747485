use std::time::{Duration, Instant};

use arrow_flight::{Action, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus};
use atoll_sql::arrow::array::{AsArray, RecordBatch};
use atoll_sql::arrow::datatypes::DataType;
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use tonic::Code;

use super::{connect, fetch, query, state, status, text, update};
use crate::ends::running;
use crate::support::{ENDLESS, TestServer, block_on};

/// How long an abandoned query may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// An endless query.
const ROWS: &str = "SELECT value, value * 2 AS twice, 'text ' || value AS t FROM range(1000000000)";

#[test]
fn rows_have_the_announced_types() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        let sql = "SELECT * FROM (VALUES (1, 'short', NULL), (2, NULL, 0.5), (3, 'longer than twelve bytes', 1)) t(a, b, c) ORDER BY a";
        let info = client.execute(sql.to_owned(), None).await.expect("a ticket");
        let announced = info.clone().try_decode_schema().expect("columns");
        let rows = fetch(&mut client, info).await.expect("rows");
        assert_eq!(rows[0].schema_ref().as_ref(), &announced);
        assert_eq!(rows[0].column(1).data_type(), &DataType::Utf8);
        assert_eq!(text(&rows), "1,short, 2,,0.5 3,longer than twelve bytes,1.0");
        for (sql, wanted) in [
            ("SELECT arrow_cast('x', 'Dictionary(Int32, Utf8)') AS d", "x"),
            ("SELECT NULL AS n, [1, NULL, 3] AS l", ",[1, , 3]"),
            ("SELECT {'a': 1, 'b': 'text'} AS s", "{a: 1, b: text}"),
            ("SELECT DATE '2024-02-29' AS d, true AS b", "2024-02-29,true"),
            ("SELECT 12.50::DECIMAL(10,2) AS d, X'00ff' AS b", "12.50,00ff"),
            ("SHOW server_version_num", "150000"),
        ] {
            let rows =
                query(&mut client, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            if !sql.starts_with("SHOW") {
                assert_eq!(text(&rows), wanted, "{sql}");
            }
        }
    });
}

#[test]
fn an_empty_result_has_columns() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        let info = client.execute("SELECT 1 AS a, 'x' AS b WHERE false".to_owned(), None).await;
        let ticket = info.expect("a ticket").endpoint[0].ticket.clone().expect("a ticket");
        let mut rows = client.do_get(ticket).await.expect("it runs");
        let mut count = 0;
        while let Some(batch) = rows.next().await {
            count += batch.expect("rows").num_rows();
        }
        let names: Vec<_> = rows.schema().expect("columns").fields().iter().collect();
        assert_eq!((count, names.len()), (0, 2));
    });
}

#[test]
fn statements_that_change_something_are_carried_out_at_once() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        for sql in [
            "CREATE TABLE t (a INT)",
            "INSERT INTO t VALUES (1), (2)",
            "CREATE TABLE u AS SELECT a, a AS b FROM t",
            "SET search_path = public",
        ] {
            // Clients that expect no rows do not fetch them.
            let info = client.execute(sql.to_owned(), None).await.expect(sql);
            let columns = info.clone().try_decode_schema().expect("columns");
            assert!(columns.fields().is_empty(), "{sql}: {columns}");
            assert_eq!(text(&fetch(&mut client, info).await.expect(sql)), "", "{sql}");
        }
        for table in ["t", "u"] {
            let sum = query(&mut client, &format!("SELECT sum(a) FROM {table}")).await;
            assert_eq!(text(&sum.expect("a row")), "3");
        }
        let returned = query(&mut client, "DELETE FROM t WHERE a = 1 RETURNING a").await;
        assert_eq!(text(&returned.expect("a row")), "1");
    });
}

#[test]
fn large_batches_are_cut_into_messages_that_clients_accept() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        let sql = "SELECT value, repeat('x', 20000) AS t FROM range(3000)";
        let rows = query(&mut client, sql).await.expect("none is larger than 4 MiB");
        assert!(rows.len() > 10, "{} messages", rows.len());
        assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 3000);
        let longest = rows.iter().flat_map(|batch| batch.column(1).as_string::<i32>().iter());
        assert!(longest.flatten().all(|text| text.len() == 20_000));
    });
}

#[test]
fn errors_have_a_code_and_a_sqlstate() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        for (sql, wanted, code) in [
            ("SELECT * FROM nothing", "42P01", Code::NotFound),
            ("SELEC 1", "42601", Code::InvalidArgument),
            ("SELECT 1 / (value - 5) FROM range(10)", "22012", Code::InvalidArgument),
            ("BEGIN", "0A000", Code::Unimplemented),
            ("COMMIT", "0A000", Code::Unimplemented),
        ] {
            let error = status(query(&mut client, sql).await.expect_err(sql));
            assert_eq!(error.code(), code, "{sql}: {error}");
            assert!(error.message().ends_with(&format!("(SQLSTATE {wanted})")), "{sql}: {error}");
            assert_eq!(error.metadata().get("x-sqlstate").expect("a state"), wanted, "{sql}");
            assert_eq!(state(update(&mut client, sql).await.expect_err(sql)), wanted, "{sql}");
        }
        assert_eq!(text(&query(&mut client, "SELECT 1").await.expect("it goes on")), "1");
    });
}

#[test]
fn a_stream_that_is_dropped_ends_its_query() {
    let server = TestServer::start();
    block_on(async {
        for sql in [ROWS, ENDLESS] {
            let mut client = connect(&server).await;
            let info = client.execute(sql.to_owned(), None).await.expect("a ticket");
            let ticket = info.endpoint[0].ticket.clone().expect("a ticket");
            let mut rows = client.do_get(ticket).await.expect("it runs");
            if sql == ROWS {
                rows.try_next().await.expect("a batch").expect("there are many");
            }
            running(&server, 1).await;
            let dropped = Instant::now();
            drop(rows);
            running(&server, 0).await;
            assert!(dropped.elapsed() < ENDS_WITHIN, "{sql}: {:?}", dropped.elapsed());
        }
    });
}

#[test]
fn a_query_whose_rows_are_not_read_waits_and_can_be_cancelled() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        let info = client.execute(ROWS.to_owned(), None).await.expect("a ticket");
        let ticket = info.endpoint[0].ticket.clone().expect("a ticket");
        let mut rows = client.do_get(ticket).await.expect("it runs");
        rows.try_next().await.expect("a batch").expect("there are many");
        let mut other = connect(&server).await;
        let running = "FROM atoll.sessions WHERE statement LIKE 'SELECT value, value%'";
        let found = query(&mut other, &format!("SELECT state, \"user\" {running}")).await;
        assert_eq!(text(&found.expect("a session")), "running,atoll");
        let cancel = format!("SELECT pg_cancel_backend(session) {running}");
        assert_eq!(text(&query(&mut other, &cancel).await.expect("a row")), "true");
        let error = loop {
            match rows.try_next().await {
                Ok(batch) => drop(batch.expect("an error comes before the end")),
                Err(error) => break error,
            }
        };
        assert_eq!(state(error), "57014");
    });
}

#[test]
fn a_flight_is_cancelled_while_it_waits_and_while_it_runs() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        let info = client.execute(ENDLESS.to_owned(), None).await.expect("a ticket");
        let cancel = |info| {
            let request = CancelFlightInfoRequest::new(info);
            Action::new("CancelFlightInfo", request.encode_to_vec())
        };
        let answer =
            |body: &[u8]| CancelFlightInfoResult::decode(body).expect("an answer").status();
        for wanted in [CancelStatus::Cancelled, CancelStatus::NotCancellable] {
            let mut answers = client.do_action(cancel(info.clone())).await.expect("an answer");
            let body = answers.message().await.expect("an answer").expect("one").body;
            assert_eq!(answer(&body), wanted);
        }
        assert_eq!(state(fetch(&mut client, info).await.expect_err("it is gone")), "34000");
        let info = client.execute(ENDLESS.to_owned(), None).await.expect("a ticket");
        let mut second = client.clone();
        let cancelling = async {
            running(&server, 1).await;
            let mut answers = second.do_action(cancel(info.clone())).await.expect("an answer");
            let body = answers.message().await.expect("an answer").expect("one").body;
            assert_eq!(answer(&body), CancelStatus::Cancelled);
        };
        let (fetched, ()) = tokio::join!(fetch(&mut client, info.clone()), cancelling);
        assert_eq!(state(fetched.expect_err("it is cancelled")), "57014");
    });
}

#[test]
fn settings_last_as_long_as_the_connection() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        update(&mut client, "SET statement_timeout = 100").await.expect("it is set");
        assert_eq!(state(query(&mut client, ENDLESS).await.expect_err("too long")), "57014");
        let mut other = connect(&server).await;
        let shown = query(&mut other, "SHOW statement_timeout").await.expect("a row");
        assert_eq!(text(&shown), "0");
    });
}

#[test]
fn requests_end_before_the_server_stops() {
    let mut server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        update(&mut client, "CREATE TABLE t (a INT)").await.expect("a table");
        server.stop();
        assert!(query(&mut client, "SELECT 1").await.is_err());
        assert!(server.database.activity().sessions().is_empty());
    });
}
