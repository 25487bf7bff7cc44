//! A server between a client and PostgreSQL that ends the TLS of each and reads everything.
//!
//! It has a certificate of its own. Only a log-in that is bound to the certificate notices it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The message with which a client of PostgreSQL requests TLS.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Trusts every server.
#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
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
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// Starts one before `server`, with this certificate and key in PEM. It runs until the process ends.
pub(crate) fn start(server: SocketAddr, certificate: &Path, key: &Path) -> SocketAddr {
    let provider = Arc::new(default_provider());
    let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
    let to_client = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap())
        .unwrap();
    let to_server = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting))
        .with_no_client_auth();
    let acceptor = TlsAcceptor::from(Arc::new(to_client));
    let connector = TlsConnector::from(Arc::new(to_server));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        runtime.block_on(async {
            loop {
                let client = listener.accept().await.unwrap().0;
                // A client or a server that refuses the other ends the connection.
                let _ = pass(client, server, &acceptor, &connector).await;
            }
        });
    });
    address
}

async fn pass(
    mut client: TcpStream,
    server: SocketAddr,
    acceptor: &TlsAcceptor,
    connector: &TlsConnector,
) -> std::io::Result<()> {
    client.read_exact(&mut [0; SSL_REQUEST.len()]).await?;
    client.write_all(b"S").await?;
    let mut client = acceptor.accept(client).await?;
    let mut server_stream = TcpStream::connect(server).await?;
    server_stream.write_all(&SSL_REQUEST).await?;
    server_stream.read_exact(&mut [0]).await?;
    let mut server = connector.connect(server.ip().into(), server_stream).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}
