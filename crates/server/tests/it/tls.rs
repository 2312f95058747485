use std::fs;

use atoll_server::{Server, ServerError, ServerOptions, TlsFiles};
use atoll_testkit::{Need, skip};
use tokio_postgres::error::SqlState;

use crate::login::{as_owner, log_in};
use crate::rules::{certificate, psql};
use crate::support::{TestServer, block_on};

const ANN: &str = "CREATE ROLE ann LOGIN PASSWORD 'a'";

#[test]
fn a_server_that_requires_tls_lets_no_one_in_without() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(tls) = certificate(directory.path()) else {
        return skip(Need::Postgresql, "no openssl");
    };
    let options = ServerOptions { tls: Some(tls), tls_required: true, ..ServerOptions::default() };
    let server = TestServer::with_options(options);
    block_on(async {
        as_owner(&server, &[ANN]).await;
        let refused = log_in(&server, "ann", "a").await.expect_err("it is in the clear");
        assert_eq!(refused.code(), Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION));
        let message = refused.as_db_error().map(|error| error.message().to_owned());
        assert_eq!(message.as_deref(), Some("this server requires TLS"));
    });
    let Some(told) = psql(&server, "a", "user=ann sslmode=require") else {
        return skip(Need::Postgresql, "no psql");
    };
    assert_eq!(told, "ann\n");
}

#[test]
fn an_invalid_key_prevents_the_start() {
    let [one, other] = [0; 2].map(|_| tempfile::tempdir().expect("a directory"));
    let (Some(one), Some(other)) = (certificate(one.path()), certificate(other.path())) else {
        return skip(Need::Postgresql, "no openssl");
    };
    let server = TestServer::start();
    let no_key = other.certificate.clone();
    let missing = one.key.with_file_name("nothing");
    for key in [other.key, no_key, missing] {
        let tls = TlsFiles { certificate: one.certificate.clone(), key };
        let options = ServerOptions { tls: Some(tls), ..ServerOptions::default() };
        let bound = block_on(Server::bind(server.database.clone(), options));
        assert!(matches!(bound, Err(ServerError::Tls { .. })), "{bound:?}");
    }
}

#[test]
fn a_reloaded_certificate_applies_to_new_connections() {
    let [one, other] = [0; 2].map(|_| tempfile::tempdir().expect("a directory"));
    let (Some(used), Some(new)) = (certificate(one.path()), certificate(other.path())) else {
        return skip(Need::Postgresql, "no openssl");
    };
    let first = one.path().join("first.pem");
    fs::copy(&used.certificate, &first).expect("copied");
    let options = ServerOptions { tls: Some(used.clone()), ..ServerOptions::default() };
    let server = TestServer::with_options(options);
    block_on(as_owner(&server, &[ANN]));
    let told = |root: &std::path::Path| {
        let options = format!("user=ann sslmode=verify-full sslrootcert={}", root.display());
        psql(&server, "a", &options)
    };
    let Some(before) = told(&first) else { return skip(Need::Postgresql, "no psql") };
    assert_eq!(before, "ann\n");
    fs::copy(&new.certificate, &used.certificate).expect("copied");
    assert!(server.reloader.reload_certificate().is_err(), "the key is of the other one");
    assert_eq!(told(&first).as_deref(), Some("ann\n"));
    fs::copy(&new.key, &used.key).expect("copied");
    assert!(server.reloader.reload_certificate().expect("they fit"));
    assert_eq!(told(&new.certificate).as_deref(), Some("ann\n"));
    let old = told(&first).expect("it is installed");
    assert!(old.contains("certificate verify failed"), "{old}");
}
