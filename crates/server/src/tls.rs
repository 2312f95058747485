//! TLS: the server's certificate and key, which can be reloaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgwire::api::auth::sasl::scram::ScramServerAuth;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;

use crate::error::ServerError;

/// The PEM files of the certificate and its key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, followed by those of its issuers.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The TLS settings of connections.
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// The same with HTTP/2 over ALPN.
    pub(crate) http2: TlsAcceptor,
    /// The certificate's hash for channel binding, which detects a man in the middle.
    pub(crate) scram: ScramServerAuth,
}

impl Tls {
    /// Reads the files.
    pub(crate) fn load(files: &TlsFiles) -> Result<Self, ServerError> {
        let TlsFiles { certificate, key } = files;
        let failed = |path: &Path, error: String| ServerError::Tls { path: path.to_owned(), error };
        let pem = std::fs::read(certificate);
        let pem = pem.map_err(|error| failed(certificate, error.to_string()))?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let chain = chain.map_err(|error| failed(certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(failed(certificate, "it contains no certificate".to_owned()));
        }
        let own = PrivateKeyDer::from_pem_file(key);
        let own = own.map_err(|error| failed(key, error.to_string()))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(certificate, error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, own)
            .map_err(|error| failed(key, error.to_string()))?;
        let mut scram = ScramServerAuth::new();
        let bound = scram.configure_certificate(&pem);
        bound.map_err(|error| failed(certificate, error.to_string()))?;
        let mut http2 = config.clone();
        http2.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = |config| TlsAcceptor::from(Arc::new(config));
        Ok(Self { acceptor: acceptor(config), http2: acceptor(http2), scram })
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}
