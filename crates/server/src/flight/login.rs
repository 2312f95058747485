//! Authentication: a handshake with name and password returns a token that identifies later requests.

use std::sync::Arc;

use arrow_flight::{BasicAuth, HandshakeRequest, HandshakeResponse};
use atoll_sql::{ColumnNames, Identity};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use futures::stream::BoxStream;
use prost::Message;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Extensions, Request, Response, Status, Streaming};

use super::connection::FlightConnection;
use super::session::FlightSession;
use crate::log_ins::{LogInKey, NAME_MAX, OWNER, TokenClient};
use crate::rules::LoginMethod;
use crate::shared::Shared;
use crate::wire::ErrorFields;

/// Flight SQL's name in the audit log.
const OVER: &str = "flight";

/// The authorization header and its two schemes.
const AUTHORIZATION: &str = "authorization";
const BASIC: &str = "basic ";
const BEARER: &str = "bearer ";

/// Base64 with padding or, as Go's clients send it, without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The key of clients that need no log-in and did none.
const ANYONE: LogInKey = [0; 32];

/// Characters of a client's application name, at most.
const AGENT_MAX: usize = 200;

/// The response stream of a handshake.
pub(super) type HandshakeStream = BoxStream<'static, Result<HandshakeResponse, Status>>;

/// The client of a request.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) user: Arc<str>,
    is_owner: bool,
    pub(super) key: LogInKey,
    pub(super) connection: Arc<FlightConnection>,
    /// The client's application name.
    pub(super) agent: String,
}

impl Caller {
    /// The owner of the session with this number.
    pub(super) fn identity(&self, number: u32) -> Identity {
        let (user, column_names) = (Arc::clone(&self.user), ColumnNames::Text);
        Identity { user, is_owner: self.is_owner, number, column_names }
    }

    /// The event of its log-in.
    pub(super) fn client(&self) -> TokenClient<'_> {
        client(&self.connection, &self.user, &self.agent)
    }

    /// Whether it is accepted without a log-in.
    pub(super) fn is_anyone(&self) -> bool {
        self.key == ANYONE
    }

    /// The session of this log-in over this connection.
    pub(super) fn session(&self, server: &Arc<Shared>) -> Result<Arc<FlightSession>, ErrorFields> {
        self.connection.session(self.key, || FlightSession::open(server, self))
    }
}

/// The caller that the guard identified.
pub(super) fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let found = request.extensions().get::<Caller>().cloned();
    found.ok_or_else(|| ErrorFields::error("28000", "the request is not authenticated").into())
}

/// Identifies the caller.
pub(super) fn identify<T>(server: &Arc<Shared>, request: &mut Request<T>) -> Result<(), Status> {
    let connection = connection(request.extensions())?;
    let headers = request.metadata();
    let agent = agent(headers);
    let method = |role: &str| client(&connection, role, &agent).method(server);
    let log_in = credentials(headers, BEARER)
        .and_then(|token| server.flight().log_ins.current(server, token, method));
    let (user, key, is_owner) = match log_in {
        Some((log_in, is_owner)) => (log_in.user.into(), log_in.key, is_owner),
        None if matches!(method(OWNER), Ok(LoginMethod::Trust)) => (OWNER.into(), ANYONE, true),
        None => {
            let error = ErrorFields::error("28000", "the request has no valid token");
            let hint =
                "log in with name and password (Handshake), and send the token from the response";
            return Err(error.hint(hint).into());
        }
    };
    connection.admit(server)?;
    let caller = Caller { user, is_owner, key, connection, agent };
    request.extensions_mut().insert(caller);
    Ok(())
}

/// Checks name and password; returns a token for later requests.
pub(super) async fn handshake(
    server: &Arc<Shared>,
    request: Request<Streaming<HandshakeRequest>>,
) -> Result<Response<HandshakeStream>, Status> {
    let connection = connection(request.extensions())?;
    let agent = agent(request.metadata());
    let (user, password) = match named(request.metadata())? {
        Some(named) => named,
        None => named_in_message(request.into_inner()).await?,
    };
    if user.len() > NAME_MAX || password.len() > NAME_MAX {
        let message = format!("name or password is longer than {NAME_MAX} bytes");
        return Err(ErrorFields::error("28000", message).into());
    }
    let user = if user.is_empty() { OWNER } else { &user };
    let client = client(&connection, user, &agent);
    let token = client.log_in(server, &server.flight().log_ins, password).await;
    let token = token.map_err(|refused| refused.error)?;
    connection.admit(server)?;
    let header = MetadataValue::try_from(format!("Bearer {token}"));
    let header = header.map_err(|error| Status::internal(error.to_string()))?;
    let answer = HandshakeResponse { protocol_version: 0, payload: token.into() };
    let answer: HandshakeStream = Box::pin(futures::stream::iter([Ok(answer)]));
    let mut response = Response::new(answer);
    response.metadata_mut().insert(AUTHORIZATION, header);
    Ok(response)
}

fn client<'a>(connection: &FlightConnection, role: &'a str, agent: &'a str) -> TokenClient<'a> {
    let (address, is_encrypted) = (connection.address, connection.is_encrypted);
    TokenClient { role, address, is_encrypted, over: OVER, application: agent }
}

/// The client's application name.
fn agent(headers: &MetadataMap) -> String {
    let agent = headers.get("user-agent").and_then(|agent| agent.to_str().ok());
    agent.unwrap_or_default().chars().take(AGENT_MAX).collect()
}

fn connection(extensions: &Extensions) -> Result<Arc<FlightConnection>, Status> {
    let found = extensions.get::<Arc<FlightConnection>>().cloned();
    found.ok_or_else(|| Status::internal("the request has no connection"))
}

/// The credentials after a scheme in the authorization header.
fn credentials<'a>(headers: &'a MetadataMap, word: &str) -> Option<&'a str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (found, credentials) = header.split_at_checked(word.len())?;
    found.eq_ignore_ascii_case(word).then(|| credentials.trim())
}

/// Name and password from the header, as most clients send them.
fn named(headers: &MetadataMap) -> Result<Option<(String, String)>, ErrorFields> {
    let Some(encoded) = credentials(headers, BASIC) else { return Ok(None) };
    let decoded = BASE64.decode(encoded).ok();
    let text = decoded.and_then(|decoded| String::from_utf8(decoded).ok());
    let named = text.as_deref().and_then(|text| text.split_once(':'));
    let named = named.map(|(user, password)| (user.to_owned(), password.to_owned()));
    let expected = "expected 'authorization: Basic' with name:password in base64";
    named.map(Some).ok_or_else(|| ErrorFields::error("28000", expected))
}

/// Name and password from the handshake's first message, as older clients send them; None if it is empty.
async fn named_in_message(
    mut messages: Streaming<HandshakeRequest>,
) -> Result<(String, String), Status> {
    let payload = messages.message().await?.unwrap_or_default().payload;
    let named = BasicAuth::decode(payload);
    let named = named.map_err(|_| {
        let expected = "expected name and password in a header or as BasicAuth";
        ErrorFields::error("28000", expected)
    })?;
    Ok((named.username, named.password))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named_by(header: &str) -> Result<Option<(String, String)>, ErrorFields> {
        let mut headers = MetadataMap::new();
        headers.insert(AUTHORIZATION, header.parse().expect("a header"));
        named(&headers)
    }

    #[test]
    fn credentials_are_those_of_basic_authentication() {
        let ann = Some(("ann".to_owned(), "pen:cil".to_owned()));
        assert_eq!(named_by("Basic YW5uOnBlbjpjaWw=").expect("it is right"), ann);
        assert_eq!(named_by("basic YW5uOnBlbjpjaWw").expect("case and padding are ignored"), ann);
        assert_eq!(named_by("Bearer x").expect("something else"), None);
        for wrong in ["Basic", "Basic x", "Basic YW5u", "Basic /w=="] {
            assert!(!matches!(named_by(wrong), Ok(Some(_))), "{wrong}");
        }
    }
}
