use std::io::{Read, Write};
use std::net::TcpStream;

use arrow_flight::error::FlightError;
use arrow_flight::{Action, FlightData, FlightDescriptor, Ticket};
use atoll_server::{ServerError, ServerOptions};
use futures::stream;
use tokio_postgres::error::SqlState;
use tonic::Code;

use super::{connect, fetch, log_in, query, state, status, text, update};
use crate::login;
use crate::rules::{rules, started};
use crate::support::{TestServer, block_on};

const ROLES: [&str; 2] =
    ["CREATE ROLE ann LOGIN PASSWORD 'pencil'", "CREATE ROLE bob LOGIN PASSWORD 'chalk'"];

#[test]
fn a_log_in_ends_when_its_password_changes() {
    let server = TestServer::with_passwords();
    block_on(async {
        login::as_owner(&server, &ROLES).await;
        let mut stranger = connect(&server).await;
        let refused = status(query(&mut stranger, "SELECT 1").await.expect_err("no token"));
        assert_eq!(refused.code(), Code::Unauthenticated);
        stranger.set_token("0".repeat(64));
        assert_eq!(state(query(&mut stranger, "SELECT 1").await.expect_err("no log-in")), "28000");
        let mut ann = log_in(&server, "ann", "pencil").await;
        let user = query(&mut ann, "SELECT current_user").await.expect("a row");
        assert_eq!(text(&user), "ann");
        for (user, password) in [("ann", "pencils"), ("eve", "pencil"), ("", "")] {
            let error = connect(&server).await.handshake(user, password).await;
            let told = error.expect_err(user).to_string();
            assert!(told.contains("password authentication failed"), "{told}");
        }
        login::as_owner(&server, &["ALTER ROLE ann PASSWORD 'ink'"]).await;
        assert_eq!(state(query(&mut ann, "SELECT 1").await.expect_err("it ended")), "28000");
        let mut ann = log_in(&server, "ann", "ink").await;
        assert!(query(&mut ann, "SELECT 1").await.is_ok());
        login::as_owner(&server, &["DROP ROLE ann"]).await;
        assert_eq!(state(query(&mut ann, "SELECT 1").await.expect_err("she is gone")), "28000");
    });
}

#[test]
fn failed_log_ins_count_together_with_those_of_postgresql_s_protocol() {
    let server = TestServer::with_passwords();
    block_on(async {
        login::as_owner(&server, &ROLES).await;
        for guess in 0..5 {
            let mut client = connect(&server).await;
            assert!(client.handshake("ann", &format!("guess {guess}")).await.is_err());
            assert!(login::log_in(&server, "ann", &format!("guess {guess}")).await.is_err());
        }
        let told = connect(&server).await.handshake("ann", "pencil").await;
        let told = told.expect_err("too many guesses").to_string();
        assert!(told.contains("too many log-ins from this address have failed"), "{told}");
        let error = login::log_in(&server, "ann", "pencil").await.expect_err("the same");
        assert_eq!(error.code(), Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION));
    });
}

#[test]
fn handles_of_a_log_in_are_useless_to_others() {
    let server = TestServer::with_passwords();
    block_on(async {
        login::as_owner(&server, &ROLES).await;
        let (mut ann, mut bob) =
            (log_in(&server, "ann", "pencil").await, log_in(&server, "bob", "chalk").await);
        let info = ann.execute("SELECT 1 AS a".to_owned(), None).await.expect("a ticket");
        assert_eq!(state(fetch(&mut bob, info.clone()).await.expect_err("ann's")), "34000");
        let mut again = connect(&server).await;
        again.set_token(ann.token().expect("a token").clone());
        assert_eq!(text(&fetch(&mut again, info.clone()).await.expect("ann's")), "1");
        assert_eq!(state(fetch(&mut ann, info).await.expect_err("used")), "34000");
        let transaction = ann.begin_transaction().await.expect("a transaction");
        let error = bob.execute("SELECT 1".to_owned(), Some(transaction)).await;
        assert_eq!(state(error.expect_err("ann's")), "25P01");
        let info = ann.execute("SELECT 2 AS a".to_owned(), None).await.expect("a ticket");
        drop(ann);
        let mut late = connect(&server).await;
        late.set_token(again.token().expect("it has one").clone());
        while !matches!(fetch(&mut late, info.clone()).await, Err(FlightError::Tonic(_))) {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn roles_have_their_rights() {
    let server = TestServer::with_passwords();
    block_on(async {
        login::as_owner(&server, &ROLES).await;
        login::as_owner(&server, &["CREATE TABLE t (a INT)", "GRANT SELECT ON t TO ann"]).await;
        let mut ann = log_in(&server, "ann", "pencil").await;
        assert!(query(&mut ann, "SELECT * FROM t").await.is_ok());
        let refused = status(update(&mut ann, "INSERT INTO t VALUES (1)").await.expect_err("ann"));
        assert_eq!(refused.code(), Code::PermissionDenied);
        let mut bob = log_in(&server, "bob", "chalk").await;
        let refused = query(&mut bob, "SELECT * FROM t").await.expect_err("bob may not");
        assert_eq!(state(refused), "42501");
    });
}

#[test]
fn login_rules_apply_to_flight_sql() {
    let server = started("[[login]]\nfrom = ['127.0.0.1']\nroles = ['ann']\nmethod = 'scram'\n");
    block_on(async {
        let refused = connect(&server).await.handshake("bob", "b").await;
        let told = refused.expect_err("no rule lets him in").to_string();
        assert!(told.contains("no login rule for host"), "{told}");
        let mut ann = log_in(&server, "ann", "a").await;
        assert!(query(&mut ann, "SELECT 1").await.is_ok());
        let others = rules("[[login]]\nroles = ['bob']\nmethod = 'scram'\n");
        server.reloader.set_rules(others).expect("rules");
        let out = query(&mut ann, "SELECT 1").await.expect_err("her log-in ends at once");
        assert_eq!(state(out), "28000");
    });
}

#[test]
fn public_addresses_are_refused_as_for_postgresql_s_protocol() {
    let server = TestServer::start();
    block_on(async {
        let flight = Some("0.0.0.0:0".parse().expect("an address"));
        let options = ServerOptions { flight, ..ServerOptions::default() };
        let bind = |options| atoll_server::Server::bind(server.database.clone(), options);
        let refused = bind(options.clone()).await.expect_err("in the clear");
        assert!(matches!(refused, ServerError::InClear(_)), "{refused}");
        let trusting =
            ServerOptions { trusts_all: true, listens_in_clear: true, ..options.clone() };
        let refused = bind(trusting).await.expect_err("without a password");
        assert!(matches!(refused, ServerError::NoPassword(_)), "{refused}");
        let clear = ServerOptions { listens_in_clear: true, ..options };
        assert!(bind(clear).await.is_ok());
    });
}

#[test]
fn what_is_not_the_protocol_is_an_error() {
    let server = TestServer::start();
    block_on(async {
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01\x00\x05hello", &[0xff; 4000]] {
            let mut stream = TcpStream::connect(server.flight).expect("it listens");
            // The server may close the connection before it has read everything.
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let mut client = connect(&server).await.into_inner();
        for junk in [&b""[..], b"x", &[0x0a, 0xff, 0xff], &[7; 300]] {
            let ticket = Ticket::new(junk.to_vec());
            assert!(client.do_get(ticket).await.is_err(), "{junk:?}");
            let descriptor = FlightDescriptor::new_cmd(junk.to_vec());
            assert!(client.get_flight_info(descriptor.clone()).await.is_err(), "{junk:?}");
            for kind in ["CreatePreparedStatement", "CancelFlightInfo", "EndTransaction", "x"] {
                let done = client.do_action(Action::new(kind, junk.to_vec())).await;
                let is_nothing = kind == "CancelFlightInfo" && junk.is_empty();
                assert!(done.is_err() || is_nothing, "{kind} {junk:?}");
            }
            let data =
                FlightData::new().with_descriptor(descriptor).with_data_header(junk.to_vec());
            assert!(client.do_put(stream::iter([data])).await.is_err(), "{junk:?}");
        }
        let mut other = connect(&server).await;
        assert_eq!(text(&query(&mut other, "SELECT 1").await.expect("it goes on")), "1");
    });
}
