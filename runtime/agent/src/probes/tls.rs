//! TLS for probes and hooks. As upstream's they look at no certificate: the node asks its own pod, by its address.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, InvalidMessage, SignatureScheme};

/// Why there is no TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsError {
    /// The answer wasn't TLS at all.
    NotTls,
    /// For people.
    Other(String),
}

/// Speaks TLS on a connection.
pub(crate) async fn connect(tcp: TcpStream, ip: IpAddr) -> Result<TlsStream<TcpStream>, TlsError> {
    let config = CONFIG.clone().map_err(TlsError::Other)?;
    TlsConnector::from(config).connect(ServerName::from(ip), tcp).await.map_err(|error| {
        let tls = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
        match tls {
            Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => TlsError::NotTls,
            Some(error) => TlsError::Other(error.to_string()),
            None => TlsError::Other(super::connection::in_words(&error)),
        }
    })
}

static CONFIG: LazyLock<Result<Arc<ClientConfig>, String>> = LazyLock::new(|| {
    let provider = Arc::new(ring::default_provider());
    let any = Arc::new(AnyCertificate(provider.clone()));
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let mut config = builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // An address is no name to ask for, and a probe never comes back to a session.
    config.enable_sni = false;
    config.resumption = tokio_rustls::rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
});

/// Takes every certificate, also those that can't be parsed: since nobody has to prove anything, there is nothing to check.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
