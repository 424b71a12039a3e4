//! TLS for probes and hooks. As upstream's they look at no certificate: the node asks its own pod, by its address.

use std::sync::{Arc, LazyLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, InvalidMessage, SignatureScheme};

use super::dial::{ConnectionError, in_words};

/// HTTP/2 as ALPN calls it.
pub(super) const H2: &[u8] = b"h2";
/// What HTTP may be spoken in, best first.
pub(super) const HTTP: &[&[u8]] = &[H2, b"http/1.1"];
/// What gRPC is spoken in.
pub(super) const GRPC: &[&[u8]] = &[H2];

/// Speaks TLS on a connection, and in it one of `protocols` if the server chooses one.
pub(super) async fn connect(
    tcp: TcpStream,
    host: &str,
    protocols: &[&[u8]],
) -> Result<TlsStream<TcpStream>, ConnectionError> {
    let mut config = CONFIG.clone().map_err(ConnectionError::Tls)?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| ConnectionError::Tls(error.to_string()))?;
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await.map_err(|error| {
        let tls = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
        match tls {
            Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => ConnectionError::NotTls,
            Some(error) => ConnectionError::Tls(error.to_string()),
            None => ConnectionError::Tls(in_words(&error)),
        }
    })
}

/// What the server chose.
pub(super) fn agreed(stream: &TlsStream<TcpStream>) -> Option<&[u8]> {
    stream.get_ref().1.alpn_protocol()
}

static CONFIG: LazyLock<Result<ClientConfig, String>> = LazyLock::new(|| {
    let provider = Arc::new(ring::default_provider());
    let any = Arc::new(AnyCertificate(provider.clone()));
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let mut config = builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth();
    // A probe never comes back to a session.
    config.resumption = Resumption::disabled();
    Ok(config)
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
