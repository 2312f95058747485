use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::support::{TestServer, block_on};

/// Sends data in pieces; how many rows were inserted.
async fn copy_in(client: &Client, sql: &str, data: &str) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in(sql).await?;
    futures::pin_mut!(sink);
    for piece in data.as_bytes().chunks(7) {
        sink.send(Bytes::copy_from_slice(piece)).await?;
    }
    sink.finish().await
}

async fn copy_out(client: &Client, sql: &str) -> String {
    let stream = client.copy_out(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let pieces: Vec<Bytes> = stream.try_collect().await.expect("all of it");
    String::from_utf8(pieces.concat()).expect("it is text")
}

#[test]
fn rows_come_back_as_they_were_sent() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let table = "CREATE TABLE t (a INT, b TEXT, c BLOB, d DOUBLE, e DATE, f BOOLEAN)";
        client.batch_execute(table).await.expect("a table");
        let text = "1\tx\\ty\\\\\t\\\\x00ff\t0.5\t2024-02-29\tt\n2\t\\N\t\\N\t\\N\t\\N\t\\N\n";
        assert_eq!(copy_in(&client, "COPY t FROM STDIN", text).await.expect("rows"), 2);
        assert_eq!(copy_out(&client, "COPY t TO STDOUT").await, text);
        let csv = "a,b\n3,\"x,\"\"y\"\"\n\"\n4,\n5,\"\"\n";
        let sql = "COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER)";
        assert_eq!(copy_in(&client, sql, csv).await.expect("rows"), 3);
        let sql = "COPY (SELECT a, b FROM t WHERE a > 2 ORDER BY a) TO STDOUT WITH CSV HEADER";
        assert_eq!(copy_out(&client, sql).await, csv);
    });
}

#[test]
fn a_copy_that_fails_leaves_nothing_and_the_connection_usable() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE t (a INT PRIMARY KEY)").await.expect("a table");
        for (data, state) in
            [("1\n2\t3\n", SqlState::BAD_COPY_FILE_FORMAT), ("1\n1\n", SqlState::UNIQUE_VIOLATION)]
        {
            let error = copy_in(&client, "COPY t FROM STDIN", data).await.expect_err(data);
            assert_eq!(error.code(), Some(&state), "{error:?}");
        }
        assert!(copy_in(&client, "COPY t FROM STDIN", "x\n").await.is_err());
        assert!(client.batch_execute("COPY nowhere FROM STDIN").await.is_err());
        assert_eq!(copy_out(&client, "COPY t TO STDOUT").await, "");
    });
}

#[test]
fn a_large_copy_is_one_statement() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE t (a BIGINT)").await.expect("a table");
        let sink = client.copy_in("COPY t FROM STDIN").await.expect("it begins");
        futures::pin_mut!(sink);
        for part in 0..10 {
            let lines: String = (0..5000).map(|at| format!("{}\n", part * 5000 + at)).collect();
            sink.send(Bytes::from(lines)).await.expect("sent");
        }
        assert_eq!(sink.finish().await.expect("rows"), 50_000);
        let row = client.query_one("SELECT sum(a)::BIGINT FROM t", &[]).await.expect("a row");
        assert_eq!(row.get::<_, i64>(0), 50_000 * 49_999 / 2);
    });
}
