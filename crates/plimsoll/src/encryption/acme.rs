//! A certificate that is ordered by ACME: its files, and the thread that renews it.
//!
//! It does not order ([`plimsoll_acme`] does), nor serve the certificate: the watch over the files of
//! certificates finds the new one. Invariant: until there is one, connections get a self-signed certificate.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use plimsoll_acme::limits::NAMES_MAX;
use plimsoll_acme::{CHALLENGES, Lock, Names, Network, Renewer, Settings, StateFolder};
use plimsoll_cli::WrongUsage;
use plimsoll_engine::{EngineKind, SystemFs, run_all};
use plimsoll_io::{Fs as _, Stop};
use plimsoll_proto::http::Challenges;

use super::files::Pair;
use crate::config::{AcmeSettings, Config};
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

/// Returns the file of the certificate and its key, if it was ordered already.
pub(super) fn pair(config: &Config) -> Option<Pair> {
    let acme = config.fixed.acme()?;
    let file = acme.acme_state.join("certificates").join(format!("{}.pem", acme.acme.first()?));
    file.exists().then(|| Pair { certificate: file.clone(), key: file })
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

/// Starts the thread that orders and renews the certificate, until `stop`; none without ACME.
pub(crate) fn start(config: &Config, stop: &Stop) -> anyhow::Result<()> {
    let Some(acme) = config.fixed.acme() else { return Ok(()) };
    let tls = trusted_certificates::connector(&acme.acme_ca, "--acme-ca")?;
    let lock = Arc::new(FolderLock(acme.acme_state.join("lock")));
    let renewer = Renewer::new(settings(acme)?, open(acme)?, lock);
    let stop = stop.clone();
    let run = move || {
        let ran = run_all(EngineKind::Epoll, &stop, Duration::ZERO, |io| {
            let (io, network) = (io.clone(), Network { tls, resolve: resolve(io) });
            vec![Box::pin(async move { renewer.run(&io, network, |_| {}).await })]
        });
        if let Err(error) = ran {
            tracing::error!(%error, "the certificate is not renewed any more");
        }
    };
    std::thread::Builder::new().name("acme".to_owned()).spawn(run).context("cannot start a thread")?;
    Ok(())
}

fn settings(acme: &AcmeSettings) -> anyhow::Result<Settings> {
    let too_many = || WrongUsage(format!("--acme takes {NAMES_MAX} names at most"));
    Ok(Settings {
        directory: acme.acme_directory.clone(),
        names: Names::new(acme.acme.iter().cloned()).ok_or_else(too_many)?,
        contacts: acme.acme_contact.iter().map(|mail| format!("mailto:{mail}")).collect(),
        external_account: None,
    })
}
