use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use atoll_formats::toml::reader::read_document;
use atoll_server::{LoginRules, ServerOptions, TlsFiles};
use atoll_testkit::{Need, skip};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Error, NoTls};

use crate::console::{get, post, status};
use crate::login::{as_owner, log_in};
use crate::support::{TestServer, block_on};

const ROLES: [&str; 5] = [
    "CREATE ROLE staff",
    "CREATE ROLE office IN ROLE staff",
    "CREATE ROLE ann LOGIN PASSWORD 'a' IN ROLE office",
    "CREATE ROLE bob LOGIN PASSWORD 'b'",
    "CREATE ROLE eve LOGIN PASSWORD 'e'",
];

pub(crate) fn rules(text: &str) -> Option<LoginRules> {
    read_document(text, "atoll.toml", |top| LoginRules::read(&top)).expect("rules")
}

pub(crate) fn started(text: &str) -> TestServer {
    let server =
        TestServer::with_options(ServerOptions { rules: rules(text), ..ServerOptions::default() });
    block_on(as_owner(&server, &ROLES));
    server
}

/// The error for a refused client.
fn refusal(refused: Result<tokio_postgres::Client, Error>) -> (SqlState, String) {
    let error = refused.expect_err("it is refused");
    let told = error.as_db_error().expect("the server says why");
    (told.code().clone(), told.message().to_owned())
}

#[test]
fn the_first_rule_that_matches_decides() {
    let server = started(
        "[[login]]\nfrom = ['127.0.0.0/8']\nroles = ['eve']\nmethod = 'reject'\n\
         [[login]]\nfrom = ['127.0.0.1']\nroles = ['+staff', 'eve']\nmethod = 'scram'\n\
         [[login]]\nfrom = ['10.0.0.0/8']\nmethod = 'scram'\n",
    );
    block_on(async {
        assert!(log_in(&server, "ann", "a").await.is_ok(), "a member of a member");
        let (state, message) = refusal(log_in(&server, "ann", "x").await);
        assert_eq!(state, SqlState::INVALID_PASSWORD, "{message}");
        let (state, message) = refusal(log_in(&server, "bob", "b").await);
        assert_eq!(state, SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
        assert_eq!(message, "no login rule for host \"127.0.0.1\", user \"bob\", no encryption");
        let (state, message) = refusal(log_in(&server, "eve", "e").await);
        assert_eq!(state, SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
        let rejects = "login rule rejects connection for host \"127.0.0.1\", user \"eve\"";
        assert!(message.starts_with(rejects), "{message}");
        as_owner(&server, &["REVOKE staff FROM office"]).await;
        let (_, message) = refusal(log_in(&server, "ann", "a").await);
        assert!(message.starts_with("no login rule"), "{message}");
    });
}

#[test]
fn a_rule_for_tls_lets_no_one_in_without() {
    let server = started("[[login]]\ntls = true\nmethod = 'scram'\n");
    let (_, message) = refusal(block_on(log_in(&server, "ann", "a")));
    assert!(message.ends_with("no encryption"), "{message}");
}

/// A self-signed certificate and its key; None if openssl is missing.
pub(crate) fn certificate(directory: &Path) -> Option<TlsFiles> {
    let (certificate, key) = (directory.join("server.pem"), directory.join("server.key"));
    let mut made = Command::new("openssl");
    made.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]);
    made.args(["-days", "2", "-subj", "/CN=localhost", "-extensions", "usr_cert"]);
    made.args(["-addext", "subjectAltName=IP:127.0.0.1"]);
    let made = made.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output().ok()?;
    made.status.success().then_some(TlsFiles { certificate, key })
}

/// The error when psql logs in with these options; None if psql is missing.
pub(crate) fn psql(server: &TestServer, password: &str, options: &str) -> Option<String> {
    let port = server.address.port();
    let options = format!("host=127.0.0.1 port={port} dbname=atoll {options}");
    let ran = Command::new("psql")
        .args(["-X", "-A", "-t", "-c", "SELECT current_user", &options])
        .env("PGPASSWORD", password)
        .output();
    let ran = ran.ok()?;
    Some(format!(
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    ))
}

#[test]
fn a_rule_for_tls_lets_those_in_who_have_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(tls) = certificate(directory.path()) else {
        return skip(Need::Postgresql, "no openssl");
    };
    let verified = format!("sslmode=verify-full sslrootcert={}", tls.certificate.display());
    let server = TestServer::with_options(ServerOptions {
        rules: rules("[[login]]\nroles = ['+staff']\ntls = true\nmethod = 'scram'\n"),
        tls: Some(tls),
        ..ServerOptions::default()
    });
    block_on(as_owner(&server, &ROLES));
    let bound = format!("user=ann channel_binding=require {verified}");
    let Some(told) = psql(&server, "a", &bound) else { return skip(Need::Postgresql, "no psql") };
    assert_eq!(told, "ann\n");
    let told = |password, options: &str| psql(&server, password, options).expect("it is installed");
    let wrong = told("x", &bound);
    assert!(wrong.contains("password authentication failed"), "{wrong}");
    let bob = told("b", &format!("user=bob {verified}"));
    assert!(bob.contains("no login rule") && bob.contains("TLS encryption"), "{bob}");
    let clear = told("a", "user=ann sslmode=disable");
    assert!(clear.contains("no login rule") && clear.contains("no encryption"), "{clear}");
}

#[test]
fn rules_can_be_changed_and_bad_ones_change_nothing() {
    let server = started("[[login]]\nroles = ['ann']\nmethod = 'scram'\n");
    block_on(async {
        assert!(log_in(&server, "bob", "b").await.is_err());
        let trusting = rules("[[login]]\nmethod = 'trust'\n");
        let error = server.reloader.set_rules(trusting).expect_err("it does not trust");
        assert!(error.to_string().contains("insecure_no_password"), "{error}");
        assert!(log_in(&server, "bob", "b").await.is_err());
        assert!(log_in(&server, "ann", "a").await.is_ok());
        let others = rules("[[login]]\nroles = ['bob']\nmethod = 'scram'\n");
        server.reloader.set_rules(others).expect("rules");
        assert!(log_in(&server, "bob", "b").await.is_ok());
        assert!(log_in(&server, "ann", "a").await.is_err());
        server.reloader.set_rules(None).expect("no rules");
        assert!(log_in(&server, "ann", "a").await.is_ok());
    });
}

#[test]
fn a_server_that_trusts_asks_for_a_password_where_a_rule_says_so() {
    let text = "[[login]]\nroles = ['bob']\nmethod = 'scram'\n[[login]]\nmethod = 'trust'\n";
    let server = TestServer::with_options(ServerOptions {
        rules: rules(text),
        trusts_all: true,
        ..ServerOptions::default()
    });
    block_on(async {
        as_owner(&server, &ROLES).await;
        assert!(log_in(&server, "ann", "whatever").await.is_ok());
        assert!(log_in(&server, "bob", "whatever").await.is_err());
        assert!(log_in(&server, "bob", "b").await.is_ok());
    });
}

/// Connects over the Unix socket of a server.
async fn over_socket(
    directory: &Path,
    address: SocketAddr,
    role: &str,
    password: &str,
) -> Result<(), Error> {
    let mut config = Config::new();
    config.host_path(directory).port(address.port()).user(role).password(password).dbname("atoll");
    let (_client, connection) = config.connect(NoTls).await?;
    drop(connection);
    Ok(())
}

#[test]
fn users_of_the_machine_are_let_in_over_the_socket_as_rules_say() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = |text: &str| ServerOptions {
        socket_directory: Some(directory.path().to_owned()),
        rules: rules(text),
        ..ServerOptions::default()
    };
    let own = own_name();
    let server =
        TestServer::with_options(options("[[login]]\nfrom = ['local']\nmethod = 'peer'\n"));
    block_on(async {
        as_owner(&server, &ROLES).await;
        let socket = directory.path();
        over_socket(socket, server.address, &own, "").await.expect("the user of the process");
        let error = over_socket(socket, server.address, "ann", "a").await.expect_err("another");
        let told = error.as_db_error().expect("the server says why").message().to_owned();
        assert_eq!(told, "peer authentication failed for user \"ann\"");
        assert!(log_in(&server, "ann", "a").await.is_err(), "over TCP there is no rule");
        let passwords = rules("[[login]]\nfrom = ['local']\nmethod = 'scram'\n");
        server.reloader.set_rules(passwords).expect("rules");
        over_socket(socket, server.address, "ann", "a").await.expect("her password");
        assert!(over_socket(socket, server.address, &own, "").await.is_err(), "no password");
    });
}

/// The name of the user that runs the tests.
fn own_name() -> String {
    let name = Command::new("id").arg("-un").output().expect("id");
    String::from_utf8(name.stdout).expect("a name").trim().to_owned()
}

#[test]
fn the_console_asks_the_same_rules() {
    let server = started("[[login]]\nfrom = ['127.0.0.1']\nroles = ['ann']\nmethod = 'scram'\n");
    let body =
        |role: &str, password: &str| format!(r#"{{"user": "{role}", "password": "{password}"}}"#);
    let refused = post(server.http, "/api/login", "", &body("bob", "b"));
    assert_eq!(status(&refused), "403", "{refused}");
    assert!(refused.contains("no login rule for host"), "{refused}");
    let cookie = crate::console::log_in(server.http, "ann", "a").expect("a rule lets her in");
    assert_eq!(status(&get(server.http, "/api/session", &cookie)), "200");
    let others = rules("[[login]]\nroles = ['bob']\nmethod = 'scram'\n");
    server.reloader.set_rules(others).expect("rules");
    assert_eq!(
        status(&get(server.http, "/api/session", &cookie)),
        "401",
        "her log-in ends at once"
    );
}
