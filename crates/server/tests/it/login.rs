use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error, NoTls};

use crate::support::{ENDLESS, TestServer, block_on};

/// Logs in with a password.
pub(crate) async fn log_in(
    server: &TestServer,
    user: &str,
    password: &str,
) -> Result<Client, Error> {
    let mut config = Config::new();
    config.host(server.address.ip().to_string()).port(server.address.port());
    let (client, connection) =
        config.user(user).password(password).dbname("atoll").connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Runs statements as the owner of the process.
pub(crate) async fn as_owner(server: &TestServer, statements: &[&str]) {
    let session = server.database.session().expect("a session");
    for sql in statements {
        session.run(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[test]
fn a_role_logs_in_only_with_its_password() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(
            &server,
            &["CREATE ROLE ann LOGIN PASSWORD 'pencil'", "CREATE ROLE bob PASSWORD 'pencil'"],
        )
        .await;
        let client = log_in(&server, "ann", "pencil").await.expect("it is her password");
        let row = client.query_one("SELECT current_user", &[]).await.expect("a row");
        assert_eq!(row.get::<_, &str>(0), "ann");
        for (user, password) in [("ann", "pencils"), ("eve", "pencil"), ("bob", "pencil")] {
            let error = log_in(&server, user, password).await.expect_err(user);
            assert_eq!(error.code(), Some(&SqlState::INVALID_PASSWORD), "{error:?}");
        }
        as_owner(
            &server,
            &["/* a comment /* in another */ */ ALTER ROLE ann -- and\n PASSWORD 'chalk'"],
        )
        .await;
        assert!(log_in(&server, "ann", "chalk").await.is_ok());
        as_owner(&server, &["ALTER ROLE ann PASSWORD NULL"]).await;
        assert!(log_in(&server, "ann", "pencil").await.is_err());
    });
}

#[test]
fn guessing_is_refused() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &["CREATE ROLE ann LOGIN PASSWORD 'pencil'"]).await;
        for guess in 0..10 {
            let error = log_in(&server, "ann", &format!("guess {guess}")).await.expect_err("wrong");
            assert_eq!(error.code(), Some(&SqlState::INVALID_PASSWORD));
        }
        let error = log_in(&server, "ann", "pencil").await.expect_err("too many guesses");
        assert_eq!(error.code(), Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION));
    });
}

#[test]
fn concurrent_guesses_are_limited() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &["CREATE ROLE ann LOGIN PASSWORD 'pencil'"]).await;
        let server = &server;
        let many = (0..40)
            .map(|guess| async move { log_in(server, "ann", &format!("guess {guess}")).await });
        let many = futures::future::join_all(many).await;
        let seen = many.iter().filter(|guess| {
            let error = guess.as_ref().expect_err("a wrong password");
            error.code() == Some(&SqlState::INVALID_PASSWORD)
        });
        assert_eq!(seen.count(), 10);
    });
}

#[test]
fn a_pool_may_open_many_connections_at_once() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &["CREATE ROLE ann LOGIN PASSWORD 'pencil'"]).await;
        let many = (0..40).map(|_| log_in(&server, "ann", "pencil"));
        for client in futures::future::join_all(many).await {
            client.expect("her password");
        }
    });
}

#[test]
fn leaving_at_the_password_prompt_is_not_a_guess() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &["CREATE ROLE ann LOGIN PASSWORD 'pencil'"]).await;
        for _ in 0..20 {
            let mut config = Config::new();
            config.host(server.address.ip().to_string()).port(server.address.port());
            let asked = config.user("ann").dbname("atoll").connect(NoTls).await;
            assert!(asked.err().expect("it has no password").code().is_none());
        }
        log_in(&server, "ann", "pencil").await.expect("her password");
    });
}

#[test]
fn role_attributes_decide_what_is_allowed() {
    let server = TestServer::with_passwords();
    block_on(async {
        let roles =
            ["CREATE ROLE ann LOGIN PASSWORD 'a'", "CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'b'"];
        as_owner(&server, &roles).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        for sql in [
            "CREATE ROLE eve",
            "ALTER ROLE ann SUPERUSER",
            "ALTER ROLE boss PASSWORD 'x'",
            "DROP ROLE boss",
            "GRANT boss TO ann",
        ] {
            let error = ann.batch_execute(sql).await.expect_err(sql);
            assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{sql}: {error:?}");
        }
        for sql in ["DROP SCHEMA pg_authid CASCADE", "CREATE TABLE pg_authid.x (a INT)"] {
            assert!(ann.batch_execute(sql).await.is_err(), "{sql}");
        }
        ann.batch_execute("ALTER ROLE ann PASSWORD 'c'").await.expect("her own password");
        assert!(log_in(&server, "ann", "a").await.is_err());
        assert!(log_in(&server, "ann", "c").await.is_ok());
        let boss = log_in(&server, "boss", "b").await.expect("boss");
        boss.batch_execute("CREATE ROLE eve; DROP ROLE eve, ann").await.expect("a superuser");
        assert!(log_in(&server, "ann", "c").await.is_err());
    });
}

#[test]
fn server_files_need_a_right() {
    let server = TestServer::with_passwords();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("secret.csv");
    std::fs::write(&file, "a\n1\n").expect("a file");
    let file = file.display();
    block_on(async {
        let roles =
            ["CREATE ROLE ann LOGIN PASSWORD 'a'", "CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'b'"];
        as_owner(&server, &roles).await;
        as_owner(&server, &["GRANT CREATE ON SCHEMA public TO ann"]).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        ann.batch_execute("CREATE TABLE t (a INT)").await.expect("a table");
        for sql in [
            format!("SELECT * FROM '{file}'"),
            format!("SELECT * FROM read_csv('{file}')"),
            format!("SELECT * FROM read_text('{file}')"),
            format!("SELECT * FROM glob('{}/*')", directory.path().display()),
            format!("COPY t FROM '{file}'"),
            format!("COPY t TO '{file}.out'"),
            format!("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{file}'"),
            format!("BACKUP DATABASE TO '{}/backup'", directory.path().display()),
            format!("EXPORT DATABASE TO '{}/export'", directory.path().display()),
            format!("IMPORT DATABASE FROM '{}/export'", directory.path().display()),
        ] {
            assert!(ann.simple_query(&sql).await.is_err(), "{sql}");
            assert!(ann.query(&sql, &[]).await.is_err(), "{sql}");
        }
        let boss = log_in(&server, "boss", "b").await.expect("boss");
        let sql = format!("SELECT * FROM '{file}'");
        assert!(boss.simple_query(&sql).await.is_ok());
        boss.batch_execute("GRANT pg_read_write_server_files TO ann").await.expect("granted");
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        assert!(ann.simple_query(&sql).await.is_ok());
    });
}

#[test]
fn passwords_are_not_shown() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &["CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'b'"]).await;
        let boss = log_in(&server, "boss", "b").await.expect("boss");
        boss.batch_execute("ALTER ROLE boss PASSWORD 'very secret'").await.expect("changed");
        let seen = server.database.activity().sessions();
        assert!(seen.iter().all(|it| !format!("{it:?}").contains("very secret")), "{seen:?}");
        let error = boss.batch_execute("ALTER ROLE boss PASSWORD 'very secret' NONSENSE").await;
        let error = format!("{:?}", error.expect_err("a syntax error"));
        assert!(!error.contains("very secret"), "{error}");
    });
}

#[test]
fn terminating_a_session_needs_a_right() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(
            &server,
            &["CREATE ROLE ann LOGIN PASSWORD 'a'", "CREATE ROLE bob LOGIN PASSWORD 'b'"],
        )
        .await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        let bob = log_in(&server, "bob", "b").await.expect("bob");
        let number = ann.query_one("SELECT pg_backend_pid()", &[]).await.expect("a row");
        let number: i64 = number.get(0);
        let end = format!("SELECT pg_terminate_backend({number})");
        for sql in [&end, &format!("KILL {number}"), &format!("KILL QUERY {number}")] {
            let error = bob.simple_query(sql).await.expect_err("it is ann's");
            assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{sql}");
        }
        let other = log_in(&server, "ann", "a").await.expect("ann");
        other.simple_query(&end).await.expect("it is her own");
        let error = ann.simple_query("SELECT 1").await.expect_err("it has ended");
        assert!(error.is_closed() || error.code() == Some(&SqlState::ADMIN_SHUTDOWN), "{error:?}");
    });
}

#[test]
fn a_statement_is_cancelled_and_its_session_killed() {
    let server = TestServer::start();
    block_on(async {
        let (one, other) = (server.connect().await, server.connect().await);
        let number = one.query_one("SELECT pg_backend_pid()", &[]).await.expect("a row");
        let number: i64 = number.get(0);
        for cancel in
            [format!("KILL QUERY {number}"), format!("SELECT pg_cancel_backend({number})")]
        {
            let runs =
                format!("SELECT 1 FROM pg_stat_activity WHERE pid = {number} AND state = 'active'");
            let cancelled = async {
                while other.query(&runs, &[]).await.expect("rows").is_empty() {}
                other.simple_query(&cancel).await.expect("it may");
            };
            let (ended, ()) = tokio::join!(one.simple_query(ENDLESS), cancelled);
            let error = ended.expect_err("it never ends");
            assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{cancel}");
        }
        other.simple_query(&format!("KILL {number}")).await.expect("it may");
        let error = one.simple_query("SELECT 1").await.expect_err("it has ended");
        assert!(error.is_closed() || error.code() == Some(&SqlState::ADMIN_SHUTDOWN), "{error:?}");
        let row = other.query_one("KILL 4000000000", &[]).await.expect("a row");
        assert!(!row.get::<_, bool>(0), "there is no such session");
    });
}

#[test]
fn roles_cannot_escalate_their_rights() {
    let server = TestServer::with_passwords();
    block_on(async {
        let roles = [
            "CREATE ROLE maker CREATEROLE LOGIN PASSWORD 'pencil'",
            "CREATE ROLE filer LOGIN PASSWORD 'pencil' IN ROLE pg_read_write_server_files",
            "CREATE TABLE t AS SELECT 1 AS a",
        ];
        as_owner(&server, &roles).await;
        let maker = log_in(&server, "maker", "pencil").await.expect("logged in");
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("out.csv");
        let copy = format!("COPY (SELECT 1 AS a) TO '{}' STORED AS CSV", file.display());
        for sql in [
            "ALTER ROLE maker IN ROLE pg_read_write_server_files",
            "ALTER ROLE filer PASSWORD 'other'",
            "DROP ROLE filer",
            "SET atoll.durability = 'off'",
            "RESET datafusion.runtime.memory_limit",
            "SET datafusion.runtime.memory_limit = '1000G'",
            "SET datafusion.runtime.temp_directory = '/tmp/atoll-of-a-role'",
            copy.as_str(),
            &format!("EXPLAIN {copy}"),
            &format!("EXPLAIN ANALYZE {copy}"),
        ] {
            let error = maker.simple_query(sql).await.expect_err(sql);
            assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{sql}: {error:?}");
        }
        assert!(!file.exists());
    });
}

#[test]
fn revoking_the_right_to_files_takes_effect() {
    let server = TestServer::with_passwords();
    block_on(async {
        let role = "CREATE ROLE filer LOGIN PASSWORD 'pencil' IN ROLE pg_read_write_server_files";
        as_owner(&server, &[role]).await;
        let filer = log_in(&server, "filer", "pencil").await.expect("logged in");
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("in.csv");
        std::fs::write(&file, "a\n7\n").expect("written");
        let read = format!("SELECT a FROM '{}'", file.display());
        assert!(filer.simple_query(&read).await.is_ok());
        as_owner(&server, &["REVOKE pg_read_write_server_files FROM filer"]).await;
        assert!(filer.simple_query(&read).await.is_err());
    });
}
