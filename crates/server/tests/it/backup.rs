//! BACKUP DATABASE: a consistent copy of a database while clients write.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll_server::ServerOptions;

use crate::support::{TestServer, block_on};

fn server(directory: &Path) -> TestServer {
    TestServer::over(ServerOptions::default(), Some(directory.to_owned()))
}

/// Runs statements as the owner of the process, with all rights.
async fn run(server: &TestServer, statements: &[&str]) {
    let session = server.database.session().expect("a session");
    for sql in statements {
        let result = session.run(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        result.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// A number that a statement returns.
async fn number(server: &TestServer, sql: &str) -> String {
    let session = server.database.session().expect("a session");
    let rows = session.run(sql).await.expect(sql).collect().await.expect(sql);
    atoll_sql::arrow::util::display::array_value_to_string(rows[0].column(0), 0).expect("a text")
}

#[test]
fn a_backup_during_writes_is_consistent() {
    let home = tempfile::tempdir().expect("a directory");
    let at = |name: &str| home.path().join(name);
    let copies: Vec<_> = (0..3).map(|copy| at(&format!("copy{copy}"))).collect();
    let server_of_data = server(&at("data"));
    let done = AtomicBool::new(false);
    block_on(async {
        let made = [
            "CREATE TABLE one (id INT PRIMARY KEY, amount BIGINT)",
            "CREATE TABLE two (id INT PRIMARY KEY, amount BIGINT)",
            "CREATE TABLE loaded (n BIGINT)",
            "INSERT INTO one SELECT value, 1000 FROM generate_series(1, 200)",
            "INSERT INTO two SELECT value, 1000 FROM generate_series(1, 200)",
            "CREATE ROLE ann LOGIN PASSWORD 'a'",
        ];
        run(&server_of_data, &made).await;
        let moves = async {
            let mut id = 0;
            while !done.load(Ordering::Relaxed) {
                id = id % 200 + 1;
                let take = format!("UPDATE one SET amount = amount - 7 WHERE id = {id}");
                let give = format!("UPDATE two SET amount = amount + 7 WHERE id = {}", 201 - id);
                run(&server_of_data, &["BEGIN", &take, &give, "COMMIT"]).await;
            }
        };
        let loads = async {
            while !done.load(Ordering::Relaxed) {
                let load = "INSERT INTO loaded SELECT value FROM generate_series(1, 30000)";
                run(&server_of_data, &[load, "DELETE FROM loaded WHERE n % 3 = 0"]).await;
            }
        };
        let backups = async {
            for copy in &copies {
                let backup = format!("BACKUP DATABASE TO '{}'", copy.display());
                run(&server_of_data, &[&backup]).await;
            }
            done.store(true, Ordering::Relaxed);
        };
        tokio::join!(moves, loads, backups);
    });
    for copy in &copies {
        let opened = server(copy);
        block_on(async {
            let sum = "SELECT (SELECT sum(amount) FROM one) + (SELECT sum(amount) FROM two)";
            assert_eq!(number(&opened, sum).await, "400000");
            let loads = "SELECT count(*) FILTER (WHERE n % 3 = 1) - count(*) FILTER (WHERE n % 3 = 2) FROM loaded";
            assert_eq!(number(&opened, loads).await, "0");
            let roles = "SELECT count(*) FROM atoll.roles WHERE role = 'ann'";
            assert_eq!(number(&opened, roles).await, "1");
            run(&opened, &["INSERT INTO loaded VALUES (1)", "CHECKPOINT"]).await;
        });
    }
}

#[test]
fn a_failed_backup_reports_the_reason() {
    let home = tempfile::tempdir().expect("a directory");
    let (with_data, in_memory) = (server(&home.path().join("data")), TestServer::with_passwords());
    let refused = async |server: &TestServer, before: &[&str], sql: &str| {
        let session = server.database.session().expect("a session");
        for sql in before {
            drop(session.run(sql).await.expect(sql).collect().await.expect(sql));
        }
        let error = session.run(sql).await.expect_err(sql);
        (error.state.code(), error.message)
    };
    block_on(async {
        let to = |name: &str| format!("BACKUP DATABASE TO '{}'", home.path().join(name).display());
        assert_eq!(refused(&with_data, &[], &to("data")).await.0, "58P02");
        assert_eq!(refused(&with_data, &[], &to("no/such/place")).await.0, "58030");
        assert_eq!(refused(&with_data, &["BEGIN"], &to("copy")).await.0, "25001");
        let in_memory = refused(&in_memory, &[], &to("copy")).await;
        assert!(in_memory.0 == "0A000" && in_memory.1.contains("EXPORT DATABASE"), "{in_memory:?}");
        let unclear = refused(&with_data, &[], "BACKUP DATABASE 'copy'").await;
        assert!(unclear.1.contains("expected BACKUP DATABASE TO 'directory'"), "{unclear:?}");
    });
    let names = std::fs::read_dir(home.path()).expect("a directory");
    assert_eq!(names.count(), 1, "nothing is left of them");
}
