//! The OpenTelemetry collector that receives the spans.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use hyper::Request;
use hyper::client::conn::http1::handshake;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::ServerError;

/// A collector.
#[derive(Clone)]
pub struct Collector {
    /// The address and port for the Host header.
    authority: String,
    path: String,
    /// Set for `https`.
    tls: Option<CollectorTls>,
}

/// TLS settings of a collector: the configuration and the expected server name.
#[derive(Clone)]
struct CollectorTls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Collector {
    /// The collector at a URL such as `http://127.0.0.1:4318` or `https://collector.example:4318`. Its certificate is
    /// checked against the file `authorities` (PEM) or, without one, against those that the operating system trusts.
    ///
    /// # Errors
    /// For any other URL, and for `https` if there is no certificate to check against.
    pub fn parse(url: &str, authorities: Option<&Path>) -> Result<Self, ServerError> {
        let wrong = || ServerError::Collector(url.to_owned());
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = authority.rsplit_once(':').ok_or_else(wrong)?;
        let is_plain = |char: char| char.is_ascii_graphic() && char != '@';
        if port.parse::<u16>().is_err() || !rest.chars().all(is_plain) {
            return Err(wrong());
        }
        let tls = match scheme {
            "http" => None,
            "https" => Some(CollectorTls::for_host(host, authorities)?.ok_or_else(wrong)?),
            _ => return Err(wrong()),
        };
        let path = match path.trim_end_matches('/') {
            "" => "/v1/traces".to_owned(),
            path if path.ends_with("v1/traces") => format!("/{path}"),
            path => format!("/{path}/v1/traces"),
        };
        Ok(Self { authority: authority.to_owned(), path, tls })
    }

    /// The address for messages.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Sends spans as JSON.
    pub(super) async fn send(&self, body: String) -> io::Result<()> {
        let stream = TcpStream::connect(&self.authority).await?;
        match &self.tls {
            None => self.post(TokioIo::new(stream), body).await,
            Some(CollectorTls { connector, name }) => {
                let stream = connector.connect(name.clone(), stream).await?;
                self.post(TokioIo::new(stream), body).await
            }
        }
    }

    async fn post(
        &self,
        stream: impl Read + Write + Unpin + Send + 'static,
        body: String,
    ) -> io::Result<()> {
        let (mut sender, connection) = handshake(stream).await.map_err(io::Error::other)?;
        let connection = tokio::spawn(connection);
        let request = Request::post(&self.path)
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(io::Error::other)?;
        let answer = sender.send_request(request).await.map_err(io::Error::other);
        connection.abort();
        match answer?.status() {
            status if status.is_success() => Ok(()),
            status => Err(io::Error::other(format!("it answered {status}"))),
        }
    }
}

impl CollectorTls {
    /// None if `host` is neither a name nor an address.
    fn for_host(host: &str, authorities: Option<&Path>) -> Result<Option<Self>, ServerError> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let Ok(name) = ServerName::try_from(bare.unwrap_or(host).to_owned()) else {
            return Ok(None);
        };
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| ServerError::CollectorTls(error.to_string()))?
            .with_root_certificates(roots(authorities)?)
            .with_no_client_auth();
        Ok(Some(Self { connector: TlsConnector::from(Arc::new(config)), name }))
    }
}

/// The certificates of trusted authorities.
fn roots(authorities: Option<&Path>) -> Result<RootCertStore, ServerError> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(path) => {
            let failed = |error: String| ServerError::Tls { path: path.to_owned(), error };
            let all = CertificateDer::pem_file_iter(path);
            for certificate in all.map_err(|error| failed(error.to_string()))? {
                let certificate = certificate.map_err(|error| failed(error.to_string()))?;
                roots.add(certificate).map_err(|error| failed(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(failed("it contains no certificate".to_owned()));
            }
        }
        None => {
            // A certificate that cannot be read is skipped; the others remain.
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let errors = found.errors.iter().map(|error| format!(": {error}"));
                return Err(ServerError::CollectorTls(format!(
                    "this machine has no certificates to verify the collector's{}",
                    errors.collect::<String>()
                )));
            }
        }
    }
    Ok(roots)
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_an_address_over_http() {
        for (url, authority, path) in [
            ("http://127.0.0.1:4318", "127.0.0.1:4318", "/v1/traces"),
            ("http://[::1]:4318/", "[::1]:4318", "/v1/traces"),
            ("http://collector:80/otlp/", "collector:80", "/otlp/v1/traces"),
            ("http://collector:80/a/v1/traces", "collector:80", "/a/v1/traces"),
        ] {
            let collector = Collector::parse(url, None).expect(url);
            assert_eq!((collector.authority.as_str(), collector.path.as_str()), (authority, path));
        }
        for url in [
            "ftp://a:4318",
            "a:4318",
            "http://a",
            "https://a",
            "https://a b:1",
            "http://a:x",
            "http://u:p@a:1",
            "https://u:p@a:1",
            "http://a:1/ b",
        ] {
            let error = Collector::parse(url, None).expect_err(url).to_string();
            assert!(error.contains(url), "{error}");
        }
    }

    #[test]
    fn authorities_are_certificates_in_a_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let missing = directory.path().join("missing.pem");
        let empty = directory.path().join("empty.pem");
        std::fs::write(&empty, "no certificate\n").expect("written");
        for path in [missing, empty] {
            let error = Collector::parse("https://a:1", Some(&path)).expect_err("no certificates");
            assert!(matches!(error, ServerError::Tls { .. }), "{error}");
        }
    }
}
