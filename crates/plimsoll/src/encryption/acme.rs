//! A certificate that is ordered by ACME: its files, and the thread that renews it.
//!
//! It does not order ([`plimsoll_acme`] does), nor serve the certificate: the watch over the files of
//! certificates finds the new one. Invariant: until there is one, connections get a self-signed certificate.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use plimsoll_acme::limits::NAMES_MAX;
use plimsoll_acme::{
    ATTEMPTS, Attempts, CHALLENGES, ExternalAccount, Lock, Names, Network, Proof, Renewer, Report, Settings,
    StateFolder,
};
use plimsoll_cli::WrongUsage;
use plimsoll_engine::{EngineKind, SystemFs, run_all};
use plimsoll_io::{Cells, Fs as _, Stop};
use plimsoll_proto::http::Challenges;
use plimsoll_tls::{BadCertificate, ChallengeCertificates};
use plimsoll_wire::metrics::Metric;

use super::files::{Pair, read, read_key};
use crate::config::{AcmeChallenge, AcmeSettings, Config};
use crate::resolve::resolve;
use crate::trusted_certificates;

/// The lock of a state folder.
struct FolderLock(PathBuf);

impl Lock for FolderLock {
    fn try_lock(&self) -> io::Result<Option<Box<dyn Send>>> {
        let file = File::options().create(true).append(true).mode(0o600).open(&self.0)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The counts of renewals and the time of the next one, for metrics. Processes share them.
pub(crate) struct Renewals(Cells);

impl Renewals {
    /// The number of cells.
    pub(crate) const CELLS: usize = 3;
    const STORED: usize = 0;
    const FAILED: usize = 1;
    /// In seconds since 1970; 0 before the first report.
    const NEXT_ATTEMPT: usize = 2;

    pub(crate) fn in_cells(cells: Cells) -> Arc<Renewals> {
        Arc::new(Renewals(cells))
    }

    fn note(&self, report: &Report) {
        let next = report.next_attempt.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let values = [report.renewals, report.failures, next.unwrap_or_default().as_secs()];
        for (cell, value) in self.0.iter().zip(values) {
            cell.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the metrics in Prometheus' text format.
    pub(crate) fn metrics(&self) -> String {
        const RENEWALS: &str = "Orders of certificates by ACME, by their result.";
        const NEXT: &str = "The time of the next order, in seconds since 1970; 0 before the first one.";
        let cell = |number: usize| self.0.get(number).map_or(0, |cell| cell.load(Ordering::Relaxed));
        let [stored, failed, next] = [Renewals::STORED, Renewals::FAILED, Renewals::NEXT_ATTEMPT].map(cell);
        let mut text = String::new();
        let mut renewals = Metric::new(&mut text, "plimsoll_acme_renewals_total", "counter", RENEWALS);
        renewals.series(&[("result", "stored")], stored);
        renewals.series(&[("result", "failed")], failed);
        Metric::new(&mut text, "plimsoll_acme_next_attempt_seconds", "gauge", NEXT).value(next);
        text
    }
}

/// Returns the file of a certificate and its key that was ordered: that of the first name, which the renewer
/// writes, or until then that of another name. A file that cannot be used counts as none, and is ordered
/// again.
pub(super) fn pair(config: &Config) -> Option<Pair> {
    let acme = config.fixed.acme()?;
    let folder = acme.acme_state.join("certificates");
    let files = acme.acme.iter().map(|name| folder.join(format!("{name}.pem")));
    let mut pairs =
        files.filter(|file| file.exists()).map(|file| Pair { certificate: file.clone(), key: file });
    pairs.find(|pair| !is_unusable(pair))
}

fn is_unusable(pair: &Pair) -> bool {
    read(std::slice::from_ref(pair)).is_err_and(|error| error.is::<BadCertificate>())
}

/// Opens the state folder, and creates a missing one.
fn open(acme: &AcmeSettings) -> anyhow::Result<StateFolder> {
    let path = &acme.acme_state;
    let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
    let opened = created.and_then(|()| StateFolder::open(&SystemFs, path));
    opened.with_context(|| format!("cannot use {}; choose another folder with --acme-state", path.display()))
}

/// Returns the answers to challenges; `None` without ACME.
pub(crate) fn challenges(config: &Config) -> anyhow::Result<Option<Challenges>> {
    let Some(acme) = config.fixed.acme() else { return Ok(None) };
    open(acme)?;
    let root = SystemFs.open_root(&acme.acme_state)?;
    Ok(Some(Challenges::new(SystemFs.open_beneath(&root, CHALLENGES)?)))
}

/// Returns where the certificates of challenges are; `None` if the names are proved by HTTP.
pub(super) fn challenge_certificates(config: &Config) -> Option<Arc<ChallengeCertificates>> {
    let is_by_tls = config.fixed.acme()?.acme_challenge == AcmeChallenge::TlsAlpn;
    is_by_tls.then(Arc::default)
}

/// Returns the failed orders since the last certificate, as the state folder has them. Creates nothing.
pub(crate) fn attempts(acme: &AcmeSettings) -> Attempts {
    let text = std::fs::read(acme.acme_state.join(ATTEMPTS)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Starts the thread that orders and renews the certificate, until `stop`; none without ACME.
pub(crate) fn start(
    config: &Config,
    proof: Proof,
    renewals: &Arc<Renewals>,
    stop: &Stop,
) -> anyhow::Result<()> {
    let Some(acme) = config.fixed.acme() else { return Ok(()) };
    check(config)?;
    let tls = trusted_certificates::connector(&acme.acme_ca, "--acme-ca")?;
    let lock = Arc::new(FolderLock(acme.acme_state.join("lock")));
    let renewer = Renewer::new(settings(acme, proof)?, open(acme)?, lock);
    let (renewals, stop) = (Arc::clone(renewals), stop.clone());
    let run = move || {
        let ran = run_all(EngineKind::Epoll, &stop, Duration::ZERO, |io| {
            let (io, network) = (io.clone(), Network { tls, resolve: resolve(io) });
            vec![Box::pin(async move {
                renewer.run(&io, network, &|_| {}, &|report| renewals.note(report)).await
            })]
        });
        if let Err(error) = ran {
            tracing::error!(%error, "the certificate is not renewed any more");
        }
    };
    std::thread::Builder::new().name("acme".to_owned()).spawn(run).context("cannot start a thread")?;
    Ok(())
}

fn settings(acme: &AcmeSettings, proof: Proof) -> anyhow::Result<Settings> {
    let too_many = || WrongUsage(format!("--acme takes {NAMES_MAX} names at most"));
    Ok(Settings {
        directory: acme.acme_directory.clone(),
        names: Names::new(acme.acme.iter().cloned()).ok_or_else(too_many)?,
        contacts: acme.acme_contact.iter().map(|mail| format!("mailto:{mail}")).collect(),
        external_account: external_account(acme)?,
        proof,
    })
}

/// Reads the key of the account at the operator that the new account is bound to; `None` without one.
fn external_account(acme: &AcmeSettings) -> anyhow::Result<Option<ExternalAccount>> {
    const RULE: &str = "--acme-eab-key-file names a file with the key in base64url, as the operator gives it";
    match (&acme.acme_eab_id, &acme.acme_eab_key_file) {
        (None, None) => Ok(None),
        (Some(id), Some(path)) => {
            let account = ExternalAccount::parse(id, &read_key(path, RULE)?);
            account.with_context(|| format!("{} has no key; {RULE}", path.display())).map(Some)
        }
        _ => Err(WrongUsage("--acme-eab-id and --acme-eab-key-file need each other".to_owned()).into()),
    }
}

/// Checks the settings of ACME. Creates nothing.
pub(super) fn check(config: &Config) -> anyhow::Result<()> {
    let Some(acme) = config.fixed.acme() else { return Ok(()) };
    let fixed = &config.fixed;
    let why = match acme.acme_challenge {
        _ if fixed.https.is_empty() && !fixed.has_ftp() => {
            Some("--acme needs --https ADDR, where clients get the certificate")
        }
        AcmeChallenge::Http if fixed.http.is_empty() => {
            Some("--acme needs --http ADDR, where the ACME server gets its answers")
        }
        AcmeChallenge::TlsAlpn if fixed.https.is_empty() => {
            Some("--acme-challenge tls-alpn-01 needs --https ADDR, where the ACME server looks for it")
        }
        AcmeChallenge::TlsAlpn if fixed.engine.forks() => {
            Some("--acme-challenge tls-alpn-01 needs another engine than process, which shares none")
        }
        _ => None,
    };
    if let Some(why) = why {
        return Err(WrongUsage(why.to_owned()).into());
    }
    trusted_certificates::connector(&acme.acme_ca, "--acme-ca")?;
    settings(acme, Proof::Http).map(drop)
}
