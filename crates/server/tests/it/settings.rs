use atoll_server::ServerOptions;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::support::{ENDLESS, TestServer, block_on, startup};

/// The single value of a statement's first row.
async fn value(client: &Client, sql: &str) -> Option<String> {
    let rows = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    rows.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(row.len() - 1).map(str::to_owned),
        _ => None,
    })
}

async fn is(client: &Client, sql: &str, wanted: &str) {
    assert_eq!(value(client, sql).await.as_deref(), Some(wanted), "{sql}");
}

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
        is(&client, "SHOW max_connections", &ServerOptions::default().connections_max.to_string())
            .await;
        is(&client, "SHOW SESSION AUTHORIZATION", "ann").await;
        client.batch_execute("RESET ALL; DISCARD ALL").await.expect("reset");
        let error =
            client.batch_execute("SET client_encoding = 'klingon'").await.expect_err("refused");
        assert_eq!(error.code(), Some(&SqlState::INVALID_PARAMETER_VALUE));
    });
}

#[test]
fn custom_settings_are_supported() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("SET my.tenant = '7'").await.expect("set");
        is(&client, "SHOW my.tenant", "7").await;
        client.batch_execute("BEGIN; SET LOCAL my.tenant = '8'").await.expect("set");
        is(&client, "SELECT current_setting('my.tenant')", "8").await;
        client.batch_execute("COMMIT").await.expect("committed");
        is(&client, "SHOW my.tenant", "7").await;
        let error = client.batch_execute("SHOW my.other").await.expect_err("never set");
        assert_eq!(error.code(), Some(&SqlState::UNDEFINED_OBJECT));
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
fn a_prepared_statement_follows_the_search_path() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "CREATE SCHEMA s; CREATE TABLE s.t (id INT PRIMARY KEY, a TEXT); INSERT INTO s.t VALUES (1, 's');
                   CREATE TABLE t (id INT PRIMARY KEY, a TEXT); INSERT INTO t VALUES (1, 'public')";
        client.batch_execute(sql).await.expect("tables");
        let statement = client.prepare("SELECT a FROM t WHERE id = $1").await.expect("prepared");
        for (path, wanted) in [("s, public", "s"), ("nowhere, public", "public"), ("s", "s")] {
            client.batch_execute(&format!("SET search_path = {path}")).await.expect("set");
            let row = client.query_one(&statement, &[&1_i32]).await.expect("a row");
            assert_eq!(row.get::<_, String>(0), wanted, "{path}");
        }
    });
}

#[test]
fn statement_timeout_ends_a_statement() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("SET statement_timeout = '20ms'").await.expect("set");
        for sql in [ENDLESS, "SELECT pg_sleep(1000)"] {
            let error = client.simple_query(sql).await.expect_err("it takes too long");
            assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
        }
        client.batch_execute("BEGIN; SET LOCAL statement_timeout = 0; COMMIT").await.expect("set");
        assert!(client.simple_query(ENDLESS).await.is_err());
        client.batch_execute("RESET statement_timeout").await.expect("reset");
        let sql = format!("SET statement_timeout = 20; {ENDLESS}");
        let error = client.simple_query(&sql).await.expect_err("it holds for what follows");
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    });
}

#[test]
fn lock_timeout_ends_a_wait() {
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
        let options = "-c search_path=s -c statement_timeout=2000ms --atoll.shared-scan=off";
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

#[test]
fn a_session_begins_in_the_time_zone_of_its_client() {
    let server = TestServer::start();
    let begun = startup(&server, &[("TimeZone", "Europe/Berlin")]);
    let told = String::from_utf8_lossy(&begun).into_owned();
    assert!(told.contains("TimeZone\0Europe/Berlin\0"), "{told:?}");
    // pgjdbc sends the JVM's zone +02:00 like this.
    let begun = startup(&server, &[("TimeZone", "GMT-02:00")]);
    assert!(String::from_utf8_lossy(&begun).contains("TimeZone\0GMT-02:00\0"));
    let refused = startup(&server, &[("TimeZone", "Nowhere/X")]);
    let told = String::from_utf8_lossy(&refused).into_owned();
    assert!(told.contains("22023") && told.contains("Nowhere/X"), "{told:?}");
    let refused = startup(&server, &[("statement_timeout", "soon")]);
    assert!(String::from_utf8_lossy(&refused).contains("22023"));
}

#[test]
fn the_time_zone_is_set_shown_and_reset() {
    const NOON: &str = "SELECT TIMESTAMPTZ '2024-07-01 12:00:00+00'";
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        is(&client, "SELECT current_setting('timezone')", "UTC").await;
        is(&client, "SELECT set_config('TimeZone', 'Asia/Tokyo', false)", "Asia/Tokyo").await;
        is(&client, NOON, "2024-07-01 21:00:00+09").await;
        client.batch_execute("SET TIME ZONE -5").await.expect("set");
        is(&client, "SHOW TimeZone", "<-05>+05").await;
        is(&client, "SHOW datafusion.execution.time_zone", "-05:00").await;
        is(&client, NOON, "2024-07-01 07:00:00-05").await;
        client.batch_execute("BEGIN; SET LOCAL timezone TO 'UTC'").await.expect("set");
        is(&client, NOON, "2024-07-01 12:00:00+00").await;
        client.batch_execute("COMMIT").await.expect("committed");
        is(&client, NOON, "2024-07-01 07:00:00-05").await;
        client.batch_execute("RESET TIME ZONE").await.expect("reset");
        is(&client, "SHOW TIME ZONE", "UTC").await;
        let error = client.batch_execute("SET timezone = 'Nowhere/X'").await.expect_err("refused");
        assert_eq!(error.code(), Some(&SqlState::INVALID_PARAMETER_VALUE));
    });
}

#[test]
fn search_path_follows_the_scope_of_its_setting() {
    const WHERE: &str = "SELECT a FROM t LIMIT 1";
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "CREATE SCHEMA s; CREATE TABLE s.t (a TEXT); INSERT INTO s.t VALUES ('s');
                   CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('public')";
        client.batch_execute(sql).await.expect("tables");
        is(&client, "SELECT set_config('search_path', 's', false)", "s").await;
        is(&client, WHERE, "s").await;
        client.batch_execute("RESET search_path").await.expect("reset");
        is(&client, WHERE, "public").await;
        for end in ["COMMIT", "ROLLBACK"] {
            client.batch_execute("BEGIN; SET LOCAL search_path = s").await.expect("set");
            is(&client, WHERE, "s").await;
            client.batch_execute(end).await.expect("ended");
            is(&client, WHERE, "public").await;
        }
        client.batch_execute("BEGIN; SAVEPOINT a; SET search_path = s").await.expect("set");
        is(&client, WHERE, "s").await;
        client.batch_execute("ROLLBACK TO a").await.expect("rolled back");
        is(&client, WHERE, "public").await;
        client.batch_execute("SET search_path = s; ROLLBACK").await.expect("rolled back");
        is(&client, WHERE, "public").await;
        client.batch_execute("BEGIN; SET search_path = s; COMMIT").await.expect("committed");
        is(&client, WHERE, "s").await;
    });
}

#[test]
fn transaction_modes_are_shown() {
    const SHOWN: &str = "SHOW transaction_isolation";
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        is(&client, SHOWN, "read committed").await;
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.expect("one");
        is(&client, SHOWN, "repeatable read").await;
        is(&client, "SELECT current_setting('transaction_read_only')", "on").await;
        client.batch_execute("COMMIT").await.expect("committed");
        is(&client, SHOWN, "read committed").await;
        client
            .batch_execute("BEGIN; SET transaction_isolation = 'repeatable read'")
            .await
            .expect("set");
        is(&client, "SHOW TRANSACTION ISOLATION LEVEL", "repeatable read").await;
        client.batch_execute("ROLLBACK").await.expect("rolled back");
        let all = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ";
        client.batch_execute(all).await.expect("set");
        is(&client, SHOWN, "repeatable read").await;
        is(&client, "SHOW default_transaction_isolation", "repeatable read").await;
        client.batch_execute("SET default_transaction_read_only = true").await.expect("set");
        let error =
            client.batch_execute("CREATE TABLE t (a INT)").await.expect_err("it only reads");
        assert_eq!(error.code(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION));
        client.batch_execute("RESET ALL").await.expect("reset");
        client.batch_execute("CREATE TABLE t (a INT)").await.expect("it may write");
        let error =
            client.batch_execute("BEGIN; SELECT nothing").await.expect_err("no such column");
        assert_eq!(error.code(), Some(&SqlState::UNDEFINED_COLUMN));
        let error = client.batch_execute("SET application_name = 'x'").await.expect_err("aborted");
        assert_eq!(error.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
        client.batch_execute("ROLLBACK").await.expect("rolled back");
    });
}

#[test]
fn discard_all_resets_the_session() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "SET atoll.join = 'merge'; SET datafusion.execution.batch_size = 100; SET TIME ZONE 'Asia/Tokyo';
                   SET application_name = 'x'; SET VARIABLE v = 7; PREPARE p AS SELECT 1";
        for sql in sql.split(';') {
            client.batch_execute(sql).await.expect(sql);
        }
        let prepared = client.prepare("SELECT 2").await.expect("prepared");
        let first = value(&server.connect().await, "SHOW datafusion.execution.batch_size").await;
        client.batch_execute("DISCARD ALL").await.expect("discarded");
        is(&client, "SHOW atoll.join", "auto").await;
        is(&client, "SHOW datafusion.execution.batch_size", &first.expect("a value")).await;
        is(&client, "SHOW timezone", "UTC").await;
        is(&client, "SHOW application_name", "").await;
        assert_eq!(value(&client, "SELECT getvariable('v')").await, None);
        let error = client.simple_query("EXECUTE p").await.expect_err("it is gone");
        assert_eq!(error.code(), Some(&SqlState::INVALID_SQL_STATEMENT_NAME));
        let error = client.query(&prepared, &[]).await.expect_err("it is gone");
        assert_eq!(error.code(), Some(&SqlState::INVALID_SQL_STATEMENT_NAME));
    });
}
