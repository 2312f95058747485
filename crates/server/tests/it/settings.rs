use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::SqlState;

use crate::support::{ENDLESS, TestServer, block_on};

#[test]
fn settings_of_drivers_are_set_and_shown() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client
            .batch_execute("SET application_name = 'my app'; SET extra_float_digits = 3")
            .await
            .expect("set");
        let shown = client.simple_query("SHOW application_name").await.expect("shown");
        let shown = shown.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        assert_eq!(shown, Some("my app"));
        let row = client.query_one("SHOW server_version", &[]).await.expect("a row");
        assert!(row.get::<_, &str>(0).starts_with("15"));
        let row = client.query_one("SELECT current_setting('application_name')", &[]).await;
        assert_eq!(row.expect("a row").get::<_, &str>(0), "my app");
        assert_eq!(server.database.activity().sessions()[0].client.application, "my app");
        client.batch_execute("RESET ALL; DISCARD ALL").await.expect("reset");
        let error =
            client.batch_execute("SET client_encoding = 'LATIN1'").await.expect_err("refused");
        assert_eq!(error.code(), Some(&SqlState::INVALID_PARAMETER_VALUE));
    });
}

#[test]
fn the_first_schema_of_the_path_is_the_default() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "CREATE SCHEMA s; CREATE TABLE s.t (a INT); CREATE TABLE t (b TEXT); INSERT INTO s.t VALUES (1)";
        client.batch_execute(sql).await.expect("tables");
        assert_eq!(
            client.query("SELECT * FROM t WHERE b = 'x'", &[]).await.expect("none").len(),
            0
        );
        client.batch_execute("SET search_path TO s, public").await.expect("set");
        assert_eq!(client.query("SELECT a FROM t WHERE a = 1", &[]).await.expect("a row").len(), 1);
    });
}

#[test]
fn a_statement_ends_after_its_time() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("SET statement_timeout = '20ms'").await.expect("set");
        let error = client.simple_query(ENDLESS).await.expect_err("it takes too long");
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
        client.batch_execute("BEGIN; SET LOCAL statement_timeout = 0; COMMIT").await.expect("set");
        assert!(client.simple_query(ENDLESS).await.is_err());
    });
}

#[test]
fn a_wait_for_a_lock_ends_after_its_time() {
    let server = TestServer::start();
    block_on(async {
        let (holder, other) = (server.connect().await, server.connect().await);
        let sql = "CREATE TABLE t (k INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2)";
        holder.batch_execute(sql).await.expect("a table");
        holder.batch_execute("BEGIN; UPDATE t SET v = 2 WHERE k = 1").await.expect("locked");
        other.batch_execute("SET lock_timeout = '10ms'").await.expect("set");
        for sql in ["UPDATE t SET v = 3 WHERE k = 1", "ALTER TABLE t ADD COLUMN w INT"] {
            let error = other.batch_execute(sql).await.expect_err("it is locked");
            assert_eq!(error.code(), Some(&SqlState::LOCK_NOT_AVAILABLE), "{sql}");
        }
        other.batch_execute("UPDATE t SET v = 3 WHERE k = 2").await.expect("it is free");
        holder.batch_execute("COMMIT").await.expect("released");
        other.batch_execute("UPDATE t SET v = 3 WHERE k = 1").await.expect("it is free now");
    });
}

#[test]
fn options_of_a_connection_are_settings() {
    let server = TestServer::start();
    block_on(async {
        let first = server.connect().await;
        first.batch_execute("CREATE SCHEMA s; CREATE TABLE s.t (a INT)").await.expect("a table");
        let connect = |options: &'static str| {
            let mut config = tokio_postgres::Config::new();
            config.host(server.address.ip().to_string()).port(server.address.port());
            config.user("ann").dbname("atoll").options(options);
            async move { config.connect(tokio_postgres::NoTls).await }
        };
        let options = "-c search_path=s -c statement_timeout=20ms --atoll.shared-scan=off";
        let (client, connection) = connect(options).await.expect("a session");
        tokio::spawn(connection);
        assert_eq!(client.query("SELECT a FROM t", &[]).await.expect("it is found").len(), 0);
        let row = client.query_one("SHOW atoll.shared_scan", &[]).await.expect("a row");
        assert_eq!(row.get::<_, &str>(row.len() - 1), "off");
        let error = client.simple_query(ENDLESS).await.expect_err("it takes too long");
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
        for (options, state) in [("-c nothing=1", "22023"), ("-x", "42601"), ("-c a;b=1", "42704")]
        {
            let error = connect(options).await.err().expect("refused");
            assert_eq!(error.code().map(SqlState::code), Some(state), "{options}: {error:?}");
        }
    });
}
