use std::sync::Arc;

use arrow_flight::error::FlightError;
use arrow_flight::sql::{
    CommandStatementIngest, EndTransaction, TableDefinitionOptions, TableExistsOption,
    TableNotExistOption,
};
use atoll_sql::arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray,
};
use atoll_sql::arrow::datatypes::Int32Type;
use bytes::Bytes;
use futures::{StreamExt, stream};

use super::{FlightClient, connect, fetch, query, query_in, state, text, update};
use crate::ends::running;
use crate::support::{TestServer, block_on};

/// Batches of an ingestion.
const BATCHES: i64 = 10;
const BATCH_ROWS: i64 = 10_000;

fn numbers(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn batch(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter(columns.iter().cloned()).expect("columns of the same length")
}

async fn count(client: &mut FlightClient, table: &str) -> String {
    text(&query(client, &format!("SELECT count(*) FROM {table}")).await.expect("a row"))
}

#[test]
fn updates_return_the_number_of_changed_rows() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        for (sql, rows) in [
            ("CREATE TABLE t (a INT PRIMARY KEY)", 0),
            ("INSERT INTO t SELECT value FROM range(100)", 100),
            ("UPDATE t SET a = a + 1000 WHERE a < 10", 10),
            ("DELETE FROM t WHERE a >= 1000", 10),
            ("TRUNCATE t", 0),
        ] {
            assert_eq!(update(&mut client, sql).await.expect(sql), rows, "{sql}");
        }
        update(&mut client, "INSERT INTO t VALUES (1)").await.expect("a row");
        let again = update(&mut client, "INSERT INTO t VALUES (1)").await;
        assert_eq!(state(again.expect_err("the key is taken")), "23505");
    });
}

#[test]
fn prepared_statements_take_parameters() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        update(&mut client, "CREATE TABLE t (a INT, b TEXT)").await.expect("a table");
        let insert = "INSERT INTO t VALUES ($1, $2)".to_owned();
        let mut insert = client.prepare(insert, None).await.expect("it is planned");
        assert!(insert.dataset_schema().expect("a schema").fields().is_empty());
        assert_eq!(insert.parameter_schema().expect("a schema").fields().len(), 2);
        let values = [("1", numbers(&[1, 2, 3])), ("2", texts(&["x", "y", "z"]))];
        insert.set_parameters(batch(&values)).expect("values");
        assert_eq!(insert.execute_update().await.expect("three rows"), 3);
        let bad = [("1", texts(&["4", "no number"])), ("2", texts(&["x", "y"]))];
        insert.set_parameters(batch(&bad)).expect("values");
        assert!(insert.execute_update().await.is_err());
        assert_eq!(count(&mut client, "t").await, "3", "all rows or none");

        let select = "SELECT b FROM t WHERE a >= $1 AND b <> $2 ORDER BY a".to_owned();
        let mut select = client.prepare(select, None).await.expect("it is planned");
        for (from, but, wanted) in [(1, "y", "x z"), (2, "q", "y z"), (9, "q", "")] {
            let words: DictionaryArray<Int32Type> = [Some(but)].into_iter().collect();
            let values = [("a", numbers(&[from])), ("b", Arc::new(words) as ArrayRef)];
            select.set_parameters(batch(&values)).expect("values");
            let info = select.execute().await.expect("a ticket");
            assert_eq!(text(&fetch(&mut client, info).await.expect("rows")), wanted);
        }
        select.set_parameters(batch(&[("a", numbers(&[1]))])).expect("values");
        assert_eq!(state(select.execute().await.expect_err("too few")), "08P01");

        let mut sum =
            client.prepare("SELECT $1 + $2 AS s".to_owned(), None).await.expect("planned");
        let values: [(&str, ArrayRef); 2] =
            [("a", numbers(&[1, 2])), ("b", Arc::new(Float64Array::from(vec![0.5, 0.25])))];
        sum.set_parameters(batch(&values)).expect("values");
        let info = sum.execute().await.expect("a ticket");
        assert_eq!(text(&fetch(&mut client, info).await.expect("a row for each")), "1.5 2.25");
        let mut closed = sum.clone();
        sum.close().await.expect("it is closed");
        assert_eq!(state(closed.execute().await.expect_err("it is gone")), "26000");
    });
}

#[test]
fn transactions_are_committed_and_rolled_back() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        update(&mut client, "CREATE TABLE t (a INT PRIMARY KEY)").await.expect("a table");
        let insert = |value| format!("INSERT INTO t VALUES ({value})");
        for (value, action, rows) in
            [(1, EndTransaction::Commit, "1"), (2, EndTransaction::Rollback, "1")]
        {
            let id = client.begin_transaction().await.expect("a transaction");
            client.execute_update(insert(value), Some(id.clone())).await.expect("a row");
            let inside = query_in(&mut client, "SELECT max(a) FROM t", Some(&id)).await;
            assert_eq!(text(&inside.expect("a row")), value.to_string());
            client.end_transaction(id.clone(), action).await.expect("it ends");
            assert_eq!(count(&mut client, "t").await, rows);
            let late = client.execute_update(insert(9), Some(id)).await;
            assert_eq!(state(late.expect_err("it has ended")), "25P01");
        }
        let id = client.begin_transaction().await.expect("a transaction");
        client.execute_update(insert(3), Some(id.clone())).await.expect("a row");
        assert!(client.execute_update(insert(1), Some(id.clone())).await.is_err());
        let failed = client.execute_update(insert(4), Some(id.clone())).await;
        assert_eq!(state(failed.expect_err("it has failed")), "25P02");
        let committed = end(&mut client, id, EndTransaction::Commit).await;
        assert_eq!(state(committed.expect_err("it is rolled back")), "25P02");
        assert_eq!(count(&mut client, "t").await, "1");
    });
}

/// Ends a transaction, and waits for the response.
async fn end(
    client: &mut FlightClient,
    id: Bytes,
    action: EndTransaction,
) -> Result<(), FlightError> {
    client.end_transaction(id, action).await
}

#[test]
fn a_transaction_ends_with_its_connection() {
    let server = TestServer::start();
    block_on(async {
        let (mut first, mut second) = (connect(&server).await, connect(&server).await);
        update(&mut first, "CREATE TABLE t (a INT PRIMARY KEY)").await.expect("a table");
        let id = first.begin_transaction().await.expect("a transaction");
        let insert = "INSERT INTO t VALUES (1)".to_owned();
        first.execute_update(insert.clone(), Some(id)).await.expect("a row");
        drop(first);
        // This waits for the other transaction, whose end rolls back its row.
        assert_eq!(second.execute_update(insert, None).await.expect("a row"), 1);
        while server.database.activity().sessions().len() > 1 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_transaction_that_waits_too_long_or_is_ended_by_others_is_rolled_back() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        update(&mut client, "CREATE TABLE t (a INT)").await.expect("a table");
        let insert = "INSERT INTO t VALUES (1)".to_owned();
        let id = client.begin_transaction().await.expect("a transaction");
        client.execute_update(insert.clone(), Some(id.clone())).await.expect("a row");
        let mut other = connect(&server).await;
        let kill = "SELECT pg_terminate_backend(session) FROM atoll.sessions WHERE statement LIKE 'INSERT%'";
        assert_eq!(text(&query(&mut other, kill).await.expect("a row")), "true");
        // The session ends a little later.
        while server.database.activity().sessions().len() > 2 {
            tokio::task::yield_now().await;
        }
        let ended = client.execute_update(insert.clone(), Some(id)).await.expect_err("it ended");
        assert!(["25P01", "57P01"].contains(&state(ended).as_str()));

        update(&mut client, "SET idle_in_transaction_session_timeout = 50").await.expect("set");
        let id = client.begin_transaction().await.expect("a transaction");
        client.execute_update(insert.clone(), Some(id.clone())).await.expect("a row");
        while server.database.activity().sessions().len() > 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            state(end(&mut client, id, EndTransaction::Commit).await.expect_err("it timed out")),
            "25P01"
        );
        assert_eq!(count(&mut client, "t").await, "0");
    });
}

fn ingestion(
    table: &str,
    if_not_exist: TableNotExistOption,
    if_exists: TableExistsOption,
) -> CommandStatementIngest {
    let options =
        TableDefinitionOptions { if_not_exist: if_not_exist.into(), if_exists: if_exists.into() };
    CommandStatementIngest {
        table_definition_options: Some(options),
        table: table.to_owned(),
        schema: None,
        catalog: None,
        temporary: false,
        transaction_id: None,
        options: Default::default(),
    }
}

fn rows_from(start: i64) -> RecordBatch {
    let ids: Vec<i64> = (start..start + BATCH_ROWS).collect();
    let words: StringArray =
        ids.iter().map(|id| (id % 3 > 0).then(|| format!("word {id}"))).collect();
    let times = TimestampNanosecondArray::from(ids.clone());
    batch(&[("id", numbers(&ids)), ("Word", Arc::new(words)), ("at", Arc::new(times))])
}

#[test]
fn batches_are_ingested_into_existing_and_new_tables() {
    use {TableExistsOption as There, TableNotExistOption as Missing};
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        let all = || stream::iter((0..BATCHES).map(|at| Ok(rows_from(at * BATCH_ROWS))));
        let create = ingestion("Sale", Missing::Create, There::Fail);
        let count = client.execute_ingest(create.clone(), all()).await.expect("it is made");
        assert_eq!(count, BATCHES * BATCH_ROWS);
        let sums = "SELECT count(*), sum(id), count(\"Word\"), max(at) FROM \"Sale\"";
        let sums = query(&mut client, sums).await.expect("a row");
        assert_eq!(text(&sums), "100000,4999950000,66666,1970-01-01T00:00:00.000099999");
        let again = client.execute_ingest(create, all()).await.expect_err("it exists");
        assert_eq!(state(again), "42P07");
        let append = ingestion("Sale", Missing::Fail, There::Append);
        assert_eq!(client.execute_ingest(append, all()).await.expect("more"), 100_000);
        assert_eq!(super::writes::count(&mut client, "\"Sale\"").await, "200000");
        let replace = ingestion("Sale", Missing::Create, There::Replace);
        let one = || stream::iter([Ok(rows_from(0))]);
        assert_eq!(client.execute_ingest(replace, one()).await.expect("replaced"), BATCH_ROWS);
        assert_eq!(super::writes::count(&mut client, "\"Sale\"").await, "10000");
        let missing = ingestion("nothing", Missing::Fail, There::Append);
        assert_eq!(state(client.execute_ingest(missing, one()).await.expect_err("none")), "42P01");
        let temporary = CommandStatementIngest {
            temporary: true,
            ..ingestion("x", Missing::Create, There::Fail)
        };
        assert_eq!(client.execute_ingest(temporary, one()).await.expect("its own"), BATCH_ROWS);
        assert_eq!(super::writes::count(&mut client, "x").await, "10000");
        let mut other = connect(&server).await;
        assert_eq!(state(query(&mut other, "SELECT * FROM x").await.expect_err("none")), "42P01");
    });
}

#[test]
fn a_failed_ingestion_is_rolled_back() {
    use {TableExistsOption as There, TableNotExistOption as Missing};
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        let create = ingestion("t", Missing::Create, There::Fail);
        let some = stream::iter([Ok(rows_from(0)), Ok(rows_from(BATCH_ROWS))]);
        let ingesting = client.execute_ingest(create, some.chain(stream::pending()));
        tokio::select! {
            _ = ingesting => panic!("it waits for more"),
            () = running(&server, 1) => {}
        }
        while server.database.activity().sessions().iter().any(|session| session.is_running) {
            tokio::task::yield_now().await;
        }
        assert_eq!(state(query(&mut client, "SELECT * FROM t").await.expect_err("none")), "42P01");

        update(&mut client, "CREATE TABLE u (id BIGINT PRIMARY KEY)").await.expect("a table");
        let twice = stream::iter([Ok(batch(&[("id", numbers(&[1, 2, 1]))]))]);
        let append = ingestion("u", Missing::Fail, There::Append);
        let taken = client.execute_ingest(append.clone(), twice).await;
        assert_eq!(state(taken.expect_err("a key twice")), "23505");
        assert_eq!(count(&mut client, "u").await, "0");

        let id = client.begin_transaction().await.expect("a transaction");
        let append = CommandStatementIngest { transaction_id: Some(id.clone()), ..append };
        let one = stream::iter([Ok(batch(&[("id", numbers(&[7]))]))]);
        assert_eq!(client.execute_ingest(append, one).await.expect("a row"), 1);
        client.end_transaction(id, EndTransaction::Rollback).await.expect("it ends");
        assert_eq!(count(&mut client, "u").await, "0");
    });
}
