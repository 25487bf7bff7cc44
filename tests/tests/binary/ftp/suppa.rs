//! suppaftp, as a Rust program uses it: in clear, and over TLS.

use std::io::{Cursor, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_tests::binary::EngineKind;
use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion, version};
use suppaftp::types::FileType;
use suppaftp::{FtpError, FtpResult, FtpStream, ImplFtpStream, Mode, Status, TlsConnector, TlsStream};

use super::Served;
use super::tls::{data, over_tls};

fn log_in<T: TlsStream>(mut ftp: ImplFtpStream<T>, mode: Mode) -> ImplFtpStream<T> {
    if mode == Mode::Active {
        ftp = ftp.active_mode(Duration::from_secs(10));
    }
    ftp.set_mode(mode);
    ftp.login("alice", PASSWORD).unwrap();
    ftp.transfer_type(FileType::Binary).unwrap();
    ftp
}

fn go_through<T: TlsStream>(ftp: &mut ImplFtpStream<T>) {
    let bytes = noise(4, 2_000_000);
    assert_eq!(ftp.pwd().unwrap(), "/");
    ftp.mkdir("folder").unwrap();
    ftp.cwd("folder").unwrap();
    ftp.put_file("a b", &mut Cursor::new(&bytes)).unwrap();
    assert!(ftp.retr_as_buffer("a b").unwrap().into_inner() == bytes);
    assert_eq!(ftp.size("a b").unwrap(), bytes.len());
    assert_eq!(ftp.nlst(None).unwrap(), ["a b"]);
    assert_eq!(ftp.list(None).unwrap().len(), 1);
    assert!(ftp.mlsd(None).unwrap()[0].ends_with(" a b"));
    ftp.mdtm("a b").unwrap();
    assert!(ftp.feat().unwrap().contains_key("MLST"));
    ftp.resume_transfer(1_000_000).unwrap();
    assert!(ftp.retr_as_buffer("a b").unwrap().into_inner() == bytes[1_000_000..]);
    ftp.append_file("a b", &mut Cursor::new(b"more")).unwrap();
    assert_eq!(ftp.size("a b").unwrap(), bytes.len() + 4);
    ftp.rename("a b", "c").unwrap();
    // More than the kernel's buffers hold, so that the transfer is in progress when it is aborted.
    ftp.put_file("large", &mut Cursor::new(vec![0; 30_000_000])).unwrap();
    let mut reading = ftp.retr_as_stream("large").unwrap();
    reading.read_exact(&mut [0; 1_000]).unwrap();
    ftp.abort(reading).unwrap();
    ftp.rm("large").unwrap();
    let mut writing = ftp.put_with_stream("d").unwrap();
    writing.write_all(b"half").unwrap();
    ftp.abort(writing).unwrap();
    assert_eq!(ftp.nlst(None).unwrap(), ["c"], "what was stopped is not there");
    match ftp.rm("none") {
        Err(FtpError::UnexpectedResponse(response)) => assert_eq!(response.status, Status::FileUnavailable),
        other => panic!("{other:?}"),
    }
    ftp.rm("c").unwrap();
    ftp.cdup().unwrap();
    ftp.rmdir("folder").unwrap();
}

fn a_program_in_rust_goes_through_it(kind: EngineKind) {
    let served = Served::new(kind);
    for mode in [Mode::Passive, Mode::ExtendedPassive, Mode::Active] {
        let mut ftp = log_in(FtpStream::connect(served.server.ftp_at()).unwrap(), mode);
        go_through(&mut ftp);
        ftp.quit().unwrap();
    }
    assert!(super::held(&served.home()).is_empty());
}

/// The sessions of a client, which it resumes.
#[derive(Debug)]
struct Sessions(Arc<ClientConfig>);

#[derive(Debug)]
struct Encrypted(StreamOwned<ClientConnection, TcpStream>);

impl TlsConnector for Sessions {
    type Stream = Encrypted;

    fn connect(&self, name: &str, stream: TcpStream) -> FtpResult<Encrypted> {
        let refused = |error: &dyn std::error::Error| FtpError::SecureError(error.to_string());
        let name = ServerName::try_from(name.to_owned()).map_err(|error| refused(&error))?;
        let session = ClientConnection::new(Arc::clone(&self.0), name).map_err(|error| refused(&error))?;
        Ok(Encrypted(StreamOwned::new(session, stream)))
    }
}

impl TlsStream for Encrypted {
    type InnerStream = StreamOwned<ClientConnection, TcpStream>;

    fn tcp_stream(self) -> FtpResult<TcpStream> {
        self.get_ref().try_clone().map_err(FtpError::ConnectionError)
    }

    fn get_ref(&self) -> &TcpStream {
        &self.0.sock
    }

    fn mut_ref(&mut self) -> &mut Self::InnerStream {
        &mut self.0
    }
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        self.0.conn.send_close_notify();
        // The server may have gone.
        let _ = self.0.flush();
    }
}

fn sessions(version: &'static SupportedProtocolVersion) -> Sessions {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(data("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
    Sessions(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// More uploads than a client of TLS 1.3 has tickets for, because it reads none on their connections.
fn upload_often(ftp: &mut ImplFtpStream<Encrypted>) {
    for _ in 0..12 {
        ftp.put_file("often", &mut Cursor::new(b"again")).unwrap();
    }
    assert_eq!(ftp.retr_as_buffer("often").unwrap().into_inner(), b"again");
    ftp.rm("often").unwrap();
}

/// suppaftp does not resume by itself, but rustls does if the settings are the same ones.
fn a_program_in_rust_goes_through_it_over_tls(kind: EngineKind) {
    let served = over_tls(kind, &["--ftp-tls", "require"]);
    for version in [&version::TLS12, &version::TLS13] {
        for mode in [Mode::ExtendedPassive, Mode::Active] {
            let plain = ImplFtpStream::connect(served.server.ftp_at()).unwrap();
            let mut ftp = log_in(plain.into_secure(sessions(version), "localhost").unwrap(), mode);
            go_through(&mut ftp);
            upload_often(&mut ftp);
            ftp.quit().unwrap();
        }
        let implicit = served.server.ftps_at();
        let ftp = ImplFtpStream::connect_secure_implicit(implicit, sessions(version), "localhost").unwrap();
        let mut ftp = log_in(ftp, Mode::ExtendedPassive);
        upload_often(&mut ftp);
        ftp.quit().unwrap();
    }
    assert!(super::held(&served.home()).is_empty());
}

on_each_engine!(forks: a_program_in_rust_goes_through_it, a_program_in_rust_goes_through_it_over_tls);
