//! The trust in a server over TLS: by a fingerprint, by a file of certificates, or by those of this system.
//!
//! It sends no request. Invariants: a certificate that no authority vouches for is trusted only if a person
//! says so. One that differs from the remembered one is an error, never a question.

use std::io;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use plimsoll_client::http::{Error, Url};
use plimsoll_io::{Deadline, Instant, Io};
use plimsoll_tls::{Clock, Connector, Distrust, Fingerprint, HandshakeError, Roots, Trust, Untrusted};
use serde::{Deserialize, Serialize};

use crate::state::{StateFolder, key};
use crate::{ApiClient, Failure, Runtime, Session, terminal};

/// The environment variable of the file of certificates.
const VARIABLE: &str = "PLIMSOLL_CA";
/// The kind of the remembered fingerprints in the state folder.
const KNOWN_SERVERS: &str = "known-servers";
/// The protocol of a client command over TLS (ALPN).
const PROTOCOLS: [&str; 1] = ["http/1.1"];

/// The arguments by which a server over TLS is trusted.
#[derive(Args, Clone)]
pub(crate) struct TrustArgs {
    /// The certificate of the authority that signs the server's, in PEM, or the server's own; default:
    /// $PLIMSOLL_CA, else the authorities that this system trusts
    #[arg(long, value_name = "FILE", conflicts_with = "fingerprint")]
    ca: Option<PathBuf>,

    /// The fingerprint (SHA-256) of the server's certificate, which is remembered
    #[arg(long, value_name = "DIGITS")]
    fingerprint: Option<Fingerprint>,
}

/// A server that is trusted by the fingerprint of its certificate, as it is remembered.
#[derive(Serialize, Deserialize)]
struct KnownServer {
    server: String,
    fingerprint: String,
}

/// The reason for which a server is trusted.
enum Source {
    /// The person names the fingerprint, or has agreed to it.
    Person(Fingerprint),
    /// The fingerprint was remembered.
    Known(Fingerprint),
    /// The person names a file of certificates.
    File(PathBuf),
    /// The environment names a file of certificates.
    Variable(PathBuf),
    System,
}

/// Returns a client of the server at `url`. Over TLS, it is connected to a server that is trusted. Before a
/// person is asked whether to trust it, the command's `deadline` is switched off.
pub(crate) async fn open(
    io: &Io,
    runtime: Runtime,
    (url, session): (Url, Option<Session>),
    args: &TrustArgs,
    deadline: &Deadline,
) -> anyhow::Result<ApiClient> {
    if !url.is_https() {
        return Ok(ApiClient::new(io, runtime, url, session, None));
    }
    let mut source = Source::of(args, &url)?;
    loop {
        let tls = Some(source.connector()?);
        let mut server = ApiClient::new(io, runtime, url.clone(), session.clone(), tls);
        match server.connect_early().await {
            Ok(()) => {
                source.remember(&url)?;
                return Ok(server);
            }
            Err(Error::Tls { source: HandshakeError::Untrusted(untrusted), .. }) => {
                deadline.set(Instant::NEVER);
                source = source.ask(&url, &untrusted)?;
            }
            Err(error) => return Err(Failure::NoResponse(error).into()),
        }
    }
}

impl Source {
    fn of(args: &TrustArgs, url: &Url) -> anyhow::Result<Source> {
        if let Some(fingerprint) = args.fingerprint {
            return Ok(Source::Person(fingerprint));
        }
        if let Some(path) = &args.ca {
            return Ok(Source::File(path.clone()));
        }
        if let Some(known) = known(url)? {
            return Ok(Source::Known(known));
        }
        let variable = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
        Ok(variable.map_or(Source::System, |path| Source::Variable(path.into())))
    }

    fn connector(&self) -> anyhow::Result<Connector> {
        let trust = match self {
            Source::Person(fingerprint) | Source::Known(fingerprint) => Trust::Fingerprint(*fingerprint),
            Source::File(path) | Source::Variable(path) => {
                let read = std::fs::read(path).map_err(anyhow::Error::from);
                let roots = read.and_then(|pem| Ok(Roots::read(&pem)?));
                Trust::from(
                    &roots.with_context(|| format!("cannot use the certificates in {}", path.display()))?,
                )
            }
            Source::System => Trust::from(&Roots::of_system()?),
        };
        Connector::new(trust, &PROTOCOLS, Clock::new()).context("cannot set up TLS")
    }

    /// Asks the person whether to trust a server that no authority vouches for.
    fn ask(self, url: &Url, untrusted: &Untrusted) -> anyhow::Result<Source> {
        let Untrusted { fingerprint, reason } = untrusted;
        match (self, reason) {
            (Source::System | Source::Variable(_), Distrust::UnknownAuthority) => {}
            (Source::Known(before), _) => bail!(
                "The certificate of {url} is not the one that is remembered. It had the fingerprint\n  \
                 {before}\nand now has\n  {fingerprint}\nAnother machine may be between you and the server. \
                 If its operator has replaced the certificate, trust the new one: give --fingerprint \
                 {fingerprint}, or --ca FILE; or remove {}",
                StateFolder::of(KNOWN_SERVERS)?.path(&key_of(url)).display()
            ),
            (Source::Person(_), _) => bail!(
                "The certificate of {url} has another fingerprint:\n  {fingerprint}\nCheck that this is the \
                 right server, and that --fingerprint is that of its certificate."
            ),
            (Source::File(path), Distrust::UnknownAuthority) => bail!(
                "The certificate of {url} is signed by no authority in {}. Its fingerprint is\n  \
                 {fingerprint}\nGive the file of its authority by --ca FILE.",
                path.display()
            ),
            _ => bail!("{url} is not trusted: {untrusted}. The fingerprint is\n  {fingerprint}"),
        }
        let unknown = format!(
            "The certificate of {url} is signed by no authority that is trusted here. Its fingerprint \
             (SHA-256) is\n  {fingerprint}\n"
        );
        let Some(terminal) = terminal::open() else {
            bail!(
                "{unknown}If that is the server's, give --fingerprint with it; or give --ca FILE, or set \
                 {VARIABLE}, with the certificate of its authority."
            );
        };
        let question =
            format!("{unknown}Does the server's operator confirm it? `yes` trusts it from now on (yes/no) ");
        let answer = terminal::read_line(&terminal, &question).context("cannot read the answer")?;
        if agrees(&answer, *fingerprint) {
            return Ok(Source::Person(*fingerprint));
        }
        bail!("{url} is not trusted, and nothing was sent.")
    }

    /// Remembers the fingerprint that the person trusts.
    fn remember(&self, url: &Url) -> anyhow::Result<()> {
        let Source::Person(fingerprint) = self else { return Ok(()) };
        if known(url)? == Some(*fingerprint) {
            return Ok(());
        }
        let known = KnownServer { server: url.to_string(), fingerprint: fingerprint.to_string() };
        StateFolder::of(KNOWN_SERVERS)?.save(&key_of(url), &known)
    }
}

/// Whether the answer is yes, or the fingerprint itself.
fn agrees(answer: &[u8], fingerprint: Fingerprint) -> bool {
    let answer = String::from_utf8_lossy(answer);
    answer.trim().eq_ignore_ascii_case("yes") || answer.parse() == Ok(fingerprint)
}

/// Returns the remembered fingerprint of a server.
fn known(url: &Url) -> anyhow::Result<Option<Fingerprint>> {
    let known = StateFolder::of(KNOWN_SERVERS)?.load::<KnownServer>(&key_of(url))?;
    let parsed = known.map(|known| known.fingerprint.parse::<Fingerprint>()).transpose();
    parsed
        .map_err(|bad| io::Error::new(io::ErrorKind::InvalidData, bad))
        .context("the remembered fingerprint")
}

fn key_of(url: &Url) -> String {
    let host = url.host().to_ascii_lowercase();
    key(&[host.as_bytes(), &url.port().unwrap_or_default().to_be_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yes_and_the_fingerprint_itself_agree() {
        let fingerprint = Fingerprint::of(b"a certificate");
        for answer in ["yes", "Yes\r", &fingerprint.to_string(), &fingerprint.to_string().to_lowercase()] {
            assert!(agrees(answer.as_bytes(), fingerprint), "{answer}");
        }
        for answer in ["", "y", "no", &Fingerprint::of(b"another").to_string()] {
            assert!(!agrees(answer.as_bytes(), fingerprint), "{answer}");
        }
    }

    #[test]
    fn a_server_is_the_same_with_and_without_its_default_port_and_its_path() {
        let key = |text: &str| key_of(&text.parse().unwrap());
        assert_eq!(key("https://Files.example/a"), key("https://files.example:443"));
        assert_ne!(key("https://files.example"), key("https://files.example:8443"));
    }
}
