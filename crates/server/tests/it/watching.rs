use atoll_sql::activity::Interrupt;
use futures::TryStreamExt;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::ends::running;
use crate::login::{as_owner, log_in};
use crate::support::{ENDLESS, TestServer, block_on};

async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let rows = client.query(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn monitoring_roles_see_all_statements() {
    const STATEMENTS: &str =
        "SELECT statement FROM atoll.sessions WHERE \"user\" = 'ann' AND statement IS NOT NULL";
    const QUERIES: &str = "SELECT statement FROM atoll.queries WHERE \"user\" = 'ann'";
    const ACTIVITY: &str =
        "SELECT query FROM pg_stat_activity WHERE usename = 'ann' AND query <> ''";
    let server = TestServer::with_passwords();
    block_on(async {
        let roles = ["CREATE ROLE ann LOGIN PASSWORD 'a'", "CREATE ROLE bob LOGIN PASSWORD 'b'"];
        as_owner(&server, &roles).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        let bob = log_in(&server, "bob", "b").await.expect("bob");
        let watched = async {
            running(&server, 1).await;
            for sql in [STATEMENTS, QUERIES, ACTIVITY] {
                assert_eq!(rows(&bob, sql).await, [""; 0], "{sql}");
            }
            as_owner(&server, &["GRANT pg_monitor TO bob"]).await;
            for sql in [STATEMENTS, QUERIES, ACTIVITY] {
                assert_eq!(rows(&bob, sql).await, [ENDLESS], "{sql}");
            }
            let error =
                bob.simple_query("SELECT pg_cancel_backend(1)").await.expect_err("not this");
            assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
            assert!(server.database.activity().interrupt(1, Interrupt::Cancel));
        };
        let (ended, ()) = tokio::join!(ann.simple_query(ENDLESS), watched);
        assert_eq!(ended.expect_err("cancelled").code(), Some(&SqlState::QUERY_CANCELED));
    });
}

#[test]
fn locks_are_listed_with_holders_and_waiters() {
    let server = TestServer::start();
    block_on(async {
        let (holder, waiter, other) =
            (server.connect().await, server.connect().await, server.connect().await);
        let sql = "CREATE TABLE t (k INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)";
        holder.batch_execute(sql).await.expect("a table");
        holder.batch_execute("BEGIN; UPDATE t SET v = 2 WHERE k = 1").await.expect("locked");
        let watched = async {
            let waits = "SELECT waits_for FROM atoll.queries WHERE waits_for = 'lock'";
            while rows(&other, waits).await.is_empty() {}
            let sql = "SELECT mode || ' ' || granted::VARCHAR || ' ' || session::VARCHAR || ' ' || table_name FROM atoll.locks \
                       WHERE kind = 'row' ORDER BY granted DESC";
            let locks = rows(&other, sql).await;
            assert_eq!(locks, ["exclusive true 1 t", "exclusive false 2 t"]);
            let sql = "SELECT l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation \
                       WHERE c.relname = 't' AND l.pid = 1 AND l.granted ORDER BY 1";
            assert_eq!(rows(&other, sql).await, ["ExclusiveLock", "RowExclusiveLock"]);
            holder.batch_execute("COMMIT").await.expect("released");
        };
        let (changed, ()) =
            tokio::join!(waiter.batch_execute("UPDATE t SET v = 3 WHERE k = 1"), watched);
        changed.expect("it is free now");
        assert!(rows(&other, "SELECT kind FROM atoll.locks").await.is_empty());
    });
}

#[test]
fn statements_show_their_progress() {
    let server = TestServer::start();
    block_on(async {
        let (client, other) = (server.connect().await, server.connect().await);
        let sql = "CREATE TABLE t AS SELECT x AS a, x::VARCHAR || repeat('abcdefghij', 60) AS b FROM range(100000) t(x)";
        client.batch_execute(sql).await.expect("a table");
        // The client takes the first rows and then waits.
        let stream = client.copy_out("COPY (SELECT * FROM t) TO STDOUT").await.expect("it begins");
        futures::pin_mut!(stream);
        let first = stream.try_next().await.expect("rows");
        assert!(first.is_some());
        let sql = "SELECT rows_read::VARCHAR || ' ' || rows_total::VARCHAR || ' ' || (bytes_local + bytes_remote <= bytes_total)::VARCHAR \
                   FROM atoll.queries WHERE session = 1 AND state = 'running' AND waits_for = 'client'";
        let mut told = rows(&other, sql).await;
        while told.is_empty() {
            told = rows(&other, sql).await;
        }
        let [read, total, fits] = told[0].split(' ').collect::<Vec<_>>()[..] else {
            panic!("{told:?}")
        };
        assert_eq!((total, fits), ("100000", "true"));
        assert!((1..100_000).contains(&read.parse::<u64>().expect("a number")), "{read}");
        while stream.try_next().await.expect("rows").is_some() {}
    });
}

#[test]
fn statements_of_a_class_wait_for_each_other_and_not_for_others() {
    const QUEUED: &str = "SELECT state FROM atoll.queries WHERE waits_for = 'queue'";
    const COUNT: &str = "SELECT count(*)::VARCHAR FROM t WHERE b LIKE '%x%'";
    let server = TestServer::start();
    block_on(async {
        let (busy, waiting, holder) =
            (server.connect().await, server.connect().await, server.connect().await);
        let other = server.connect().await;
        let sql = "CREATE TABLE t AS SELECT x AS a, x::VARCHAR || 'abcdefghijklmnop' AS b FROM range(300000) t(x);
                   CREATE TABLE k (k INT PRIMARY KEY); INSERT INTO k VALUES (1); SET atoll.small_statements = 1";
        for sql in sql.split(';') {
            other.batch_execute(sql).await.expect(sql);
        }
        waiting.batch_execute("SET atoll.shared_scan = 'off'").await.expect("set");
        let endless = "SELECT sum(x.a + y.a) FROM t x, t y";
        let watched = async {
            running(&server, 1).await;
            while rows(
                &other,
                "SELECT statement FROM atoll.queries WHERE state = 'running' AND bytes_total > 0",
            )
            .await
            .is_empty()
            {}
            let cancel = busy.cancel_token();
            let counted = waiting.query_one(COUNT, &[]);
            let watched = async {
                while rows(&other, QUEUED).await != ["queued"] {}
                // Neither point queries nor statements of lock holders wait.
                assert_eq!(rows(&other, "SELECT k::VARCHAR FROM k").await, ["1"]);
                holder
                    .batch_execute("BEGIN; UPDATE k SET k = 2 WHERE k = 1")
                    .await
                    .expect("locked");
                assert_eq!(rows(&holder, COUNT).await, ["0"]);
                holder.batch_execute("COMMIT").await.expect("committed");
                assert_eq!(rows(&other, QUEUED).await, ["queued"]);
                cancel.cancel_query(tokio_postgres::NoTls).await.expect("it can be asked for");
            };
            let (counted, ()) = tokio::join!(counted, watched);
            assert_eq!(counted.expect("its turn").get::<_, &str>(0), "0");
        };
        let (ended, ()) = tokio::join!(busy.simple_query(endless), watched);
        assert_eq!(ended.expect_err("cancelled").code(), Some(&SqlState::QUERY_CANCELED));
        assert!(rows(&other, QUEUED).await.is_empty());
    });
}

#[test]
fn a_session_has_its_own_limit_of_memory() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client
            .batch_execute("SET atoll.session_memory = '1MiB'; SET atoll.aggregate = 'off'")
            .await
            .expect("set");
        let sql = "SELECT count(*) FROM (SELECT array_agg(x) AS a FROM range(3000000) t(x)) WHERE len(a) > 0";
        let error = client.simple_query(sql).await.expect_err("it takes more");
        assert_eq!(error.code(), Some(&SqlState::OUT_OF_MEMORY), "{error:?}");
        let told = format!("{error:?}");
        assert!(told.contains("atoll.session_memory"), "{told}");
        client.batch_execute("RESET atoll.session_memory").await.expect("reset");
        let memory = "SELECT memory_bytes::BIGINT::VARCHAR FROM atoll.sessions WHERE session = 1";
        let left: u64 = rows(&client, memory).await[0].parse().expect("a number");
        assert!(left < 1 << 20, "{left}");
        let error = client
            .batch_execute("SET atoll.session_memory = 'lots'")
            .await
            .expect_err("not a size");
        assert!(format!("{error:?}").contains("a size such as"), "{error:?}");
    });
}
