use std::io::Write;
use std::time::Duration;

use atoll_server::ServerOptions;
use atoll_topology::NodeId;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

use crate::login::{as_owner, log_in};
use crate::support::{ENDLESS, TestServer, begin, block_on, message};

/// The session's home node, and the node that its serving thread is bound to.
async fn place(client: &Client) -> (Option<i64>, Option<i64>) {
    let sql = "SELECT home, node FROM atoll.sessions WHERE state = 'running'";
    let row = client.query_one(sql, &[]).await.expect("the session");
    (row.get(0), row.get(1))
}

async fn setting(client: &Client, name: &str) -> String {
    let row = client.query_one(&format!("SHOW {name}"), &[]).await;
    let row = row.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    row.get(row.len() - 1)
}

#[test]
fn a_session_is_served_by_the_threads_of_its_home() {
    let trusts_all = ServerOptions { trusts_all: true, ..ServerOptions::default() };
    let mut server = TestServer::on_two_nodes(trusts_all);
    block_on(async {
        let client = server.connect().await;
        assert_eq!(place(&client).await, (None, None));
        client.batch_execute("CREATE TABLE t (a INT PRIMARY KEY)").await.expect("a table");
        client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.expect("a row");
        let one = client.prepare("SELECT a FROM t WHERE a = $1").await.expect("prepared");
        for (set, home) in [("= 1", Some(1)), ("= '0'", Some(0)), ("TO 1", Some(1))] {
            client.batch_execute(&format!("SET atoll.home {set}")).await.expect(set);
            assert_eq!(place(&client).await, (home, home), "{set}");
            // The transaction and prepared statements are still there.
            assert_eq!(client.query(&one, &[&1]).await.expect("the row").len(), 1);
        }
        client.batch_execute("ROLLBACK").await.expect("it is open");
        assert!(client.query(&one, &[&1]).await.expect("none").is_empty());
        let error = client.batch_execute("SET atoll.home = 7").await.expect_err("no such node");
        let told = error.as_db_error().expect("the server's").message();
        assert!(told.contains("unknown node 7; the machine's nodes: 0, 1"), "{told}");
        assert!(client.batch_execute("SET atoll.home = 'near'").await.is_err());
        assert_eq!(place(&client).await, (Some(1), Some(1)));
        client.batch_execute("RESET atoll.home").await.expect("reset");
        assert_eq!(place(&client).await, (None, None));
        // A client that vanishes during a statement, and one that is idle when the server stops, both at home.
        drop(client);
        let mut vanishes = begin(&server, &[]);
        for text in ["SET atoll.home = 1\0", &format!("{ENDLESS}\0")] {
            vanishes.write_all(&message(b'Q', text.as_bytes())).expect("sent");
        }
        let runs = || {
            server
                .database
                .activity()
                .sessions()
                .iter()
                .any(|it| it.node == Some(NodeId(1)) && it.is_running)
        };
        while !runs() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(vanishes);
        while !server.database.activity().sessions().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let waits = server.connect().await;
        waits.batch_execute("SET atoll.home = 1").await.expect("set");
        server.stop();
        assert!(waits.simple_query("SELECT 1").await.is_err());
    });
}

#[test]
fn sessions_of_a_role_begin_with_its_settings() {
    let server = TestServer::on_two_nodes(ServerOptions::default());
    block_on(async {
        let made = [
            "CREATE ROLE ann LOGIN PASSWORD 'a'",
            "CREATE ROLE bob LOGIN PASSWORD 'b'",
            "ALTER ROLE ann SET atoll.home = 1",
            "ALTER ROLE ann SET statement_timeout TO '5s'",
        ];
        as_owner(&server, &made).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        assert_eq!(place(&ann).await, (Some(1), Some(1)));
        assert_eq!(setting(&ann, "atoll.home").await, "1");
        assert_eq!(setting(&ann, "statement_timeout").await, "5s");
        // psql's \drds runs this query.
        let told = "SELECT array_to_string(setconfig, ';'), array_to_string(rolconfig, ';')
                    FROM pg_db_role_setting JOIN pg_roles AS r ON r.oid = setrole WHERE rolname = 'ann'";
        let told = ann.query_one(told, &[]).await.expect("settings of roles");
        let wanted = "atoll.home=1;statement_timeout=5s";
        assert_eq!((told.get::<_, &str>(0), told.get::<_, &str>(1)), (wanted, wanted));
        // The client's own settings take precedence.
        let mut config = Config::new();
        config.host(server.address.ip().to_string()).port(server.address.port()).dbname("atoll");
        config.user("ann").password("a").options("-c atoll.home=0");
        let (other, connection) = config.connect(NoTls).await.expect("ann");
        tokio::spawn(connection);
        assert_eq!(place(&other).await, (Some(0), Some(0)));
        drop(other);
        for reset in ["RESET atoll.home", "RESET ALL", "DISCARD ALL"] {
            ann.batch_execute("SET atoll.home = 0").await.expect("a node");
            assert_eq!(setting(&ann, "atoll.home").await, "0");
            ann.batch_execute(reset).await.expect(reset);
            assert_eq!(setting(&ann, "atoll.home").await, "1", "{reset}");
            assert_eq!(place(&ann).await, (Some(1), Some(1)), "{reset}");
        }
        for (sql, state) in [
            ("ALTER ROLE ann SET atoll.home = 7", SqlState::DATA_EXCEPTION),
            ("ALTER ROLE ann SET atoll.nothing = 7", SqlState::UNDEFINED_OBJECT),
            ("ALTER ROLE ann SET statement_timeout = 'soon'", SqlState::INVALID_PARAMETER_VALUE),
            ("ALTER ROLE ann SET atoll.cores = 1", SqlState::FEATURE_NOT_SUPPORTED),
            ("ALTER ROLE bob SET atoll.home = 1", SqlState::INSUFFICIENT_PRIVILEGE),
        ] {
            let error = ann.batch_execute(sql).await.expect_err(sql);
            assert_eq!(error.code(), Some(&state), "{sql}: {error:?}");
        }
        ann.batch_execute("ALTER ROLE ann RESET atoll.home").await.expect("her own");
        let again = log_in(&server, "ann", "a").await.expect("ann");
        assert_eq!(place(&again).await.0, None);
        again.batch_execute("ALTER ROLE ann RESET ALL").await.expect("her own");
        let again = log_in(&server, "ann", "a").await.expect("ann");
        assert_eq!(setting(&again, "statement_timeout").await, "0");
    });
}
