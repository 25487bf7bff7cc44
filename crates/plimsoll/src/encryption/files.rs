//! The files of certificates and their keys: reading them, and noticing a change.
//!
//! It writes nothing. Invariants: a key that other users can read is refused. The error of a file names the
//! file and the remedy. Keys are wiped from memory after use.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use plimsoll_tls::Certificates;
use zeroize::Zeroizing;

use super::{acme, self_signed};
use crate::config::Config;
use crate::limits::CERTIFICATE_FILE_BYTES_MAX;

/// Rights of users beyond a file's owner and group. Debian keeps keys in a group (`ssl-cert`).
const OTHERS: u32 = 0o007;

/// The files of a certificate chain and its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// The certificate files of a configuration, from one lookup. A lookup can read files, so callers reuse its
/// result.
#[derive(Default)]
pub(super) struct CertificateFiles {
    /// In order.
    pub(super) pairs: Vec<Pair>,
    /// Whether the server makes the certificate itself.
    pub(super) is_self_signed: bool,
}

impl CertificateFiles {
    fn self_signed(config: &Config) -> CertificateFiles {
        CertificateFiles { pairs: vec![self_signed::pair(config)], is_self_signed: true }
    }

    fn of(pairs: impl IntoIterator<Item = Pair>) -> CertificateFiles {
        CertificateFiles { pairs: pairs.into_iter().collect(), is_self_signed: false }
    }

    /// Returns whether clients get a self-signed certificate because none was ordered yet.
    pub(super) fn is_stand_in(&self, config: &Config) -> bool {
        self.is_self_signed && config.fixed.acme().is_some()
    }
}

/// Finds the certificates of a configuration.
pub(super) fn find(config: &Config) -> Result<CertificateFiles, String> {
    let tls = &config.live.tls;
    let (certificates, keys) = (tls.certificate.len(), tls.key.len());
    if tls.self_signed && certificates + keys > 0 {
        return Err(
            "--self-signed makes a certificate, and --certificate names one; choose one of them".into()
        );
    }
    if certificates != keys {
        return Err(format!(
            "each --certificate FILE needs the --key FILE of its private key, in the same order; there are \
             {certificates} and {keys}"
        ));
    }
    if config.fixed.acme().is_some() {
        if tls.self_signed || certificates > 0 {
            return Err("--acme orders the certificate; leave out --certificate and --self-signed".into());
        }
        // Until the first order is complete.
        let ordered = acme::pair(config).map(|pair| CertificateFiles::of([pair]));
        return Ok(ordered.unwrap_or_else(|| CertificateFiles::self_signed(config)));
    }
    if tls.self_signed {
        return Ok(CertificateFiles::self_signed(config));
    }
    let files = tls.certificate.iter().cloned().zip(tls.key.iter().cloned());
    Ok(CertificateFiles::of(files.map(|(certificate, key)| Pair { certificate, key })))
}

/// Returns the files of the private keys of a configuration.
pub(crate) fn key_files(config: &Config) -> Vec<PathBuf> {
    find(config).unwrap_or_default().pairs.into_iter().map(|pair| pair.key).collect()
}

/// Reads pairs of certificates and keys; `None` if there are none.
pub(super) fn read(pairs: &[Pair]) -> anyhow::Result<Option<Certificates>> {
    if pairs.is_empty() {
        return Ok(None);
    }
    let read = |pair: &Pair| {
        let certificate = read_file(&pair.certificate, "--certificate names a PEM file")?.0;
        anyhow::Ok((certificate, read_key(&pair.key, "--key names a PEM file")?))
    };
    let contents: Vec<_> = pairs.iter().map(read).collect::<Result<_, _>>()?;
    let contents = contents.iter().map(|(certificate, key)| (certificate.as_slice(), key.as_slice()));
    let usable = Certificates::read(contents).map_err(|(number, bad)| {
        let named = pairs.get(number).map(|Pair { certificate, key }| {
            format!("cannot use the certificate {} with the key {}", certificate.display(), key.display())
        });
        anyhow::Error::new(bad).context(named.unwrap_or_default())
    });
    usable.map(Some)
}

/// Reads a private key, which no other user can read. `rule` says which flag names a file of which form.
pub(crate) fn read_key(path: &Path, rule: &str) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let (bytes, mode) = read_file(path, rule)?;
    let file = path.display();
    anyhow::ensure!(
        mode & OTHERS == 0,
        "other users can read the private key {file} (mode {mode:o}), and could pose as this server: \
         chmod 600 {file}; if they may have read it, replace it, and its certificate if it has one"
    );
    Ok(bytes)
}

/// Returns the contents and the mode of a file.
fn read_file(path: &Path, rule: &str) -> anyhow::Result<(Zeroizing<Vec<u8>>, u32)> {
    let context = || format!("cannot read {}; {rule}", path.display());
    // A pipe could block.
    let is_file = path.metadata().with_context(context)?.is_file();
    anyhow::ensure!(is_file, "{} is no file; {rule}", path.display());
    let file = File::open(path).with_context(context)?;
    let found = file.metadata().with_context(context)?;
    anyhow::ensure!(found.len() <= CERTIFICATE_FILE_BYTES_MAX, "{} is too long; {rule}", path.display());
    // Long enough: growing would leave a copy of a key in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0) + 1));
    file.take(found.len()).read_to_end(&mut bytes).with_context(context)?;
    Ok((bytes, found.mode() & 0o7777))
}

/// The state of a file: device, inode, size, and the times of its last changes. `None` if there is none.
type Stamp = Option<[i128; 5]>;

/// The states of the files of a configuration's certificates.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<Stamp>);

impl Stamps {
    /// Returns the present states.
    pub(crate) fn of(config: &Config) -> Stamps {
        Stamps::of_found(&find(config).unwrap_or_default(), config)
    }

    /// Returns the present states. Taken before the files are read, so that a later change is noticed.
    pub(super) fn of_found(found: &CertificateFiles, config: &Config) -> Stamps {
        let files = found.pairs.iter().flat_map(|pair| [&pair.certificate, &pair.key]);
        Stamps(files.chain(&config.live.tls.client_ca).map(|file| stamp(file)).collect())
    }
}

/// Notices files of certificates that are not in use yet. Clients of a network file system learn of no change
/// but by polling.
#[derive(Default)]
pub(crate) struct FilesWatch(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    used: Stamps,
    /// The last error since those were used.
    error: Option<String>,
}

impl FilesWatch {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether files in these states are in use.
    pub(crate) fn has_used(&self, stamps: &Stamps) -> bool {
        self.lock().used == *stamps
    }

    /// Notes that files in these states are in use.
    pub(crate) fn note_used(&self, stamps: Stamps) {
        *self.lock() = Watched { used: stamps, error: None };
    }

    /// Notes an error of files that are not in use, which are tried again. Returns whether it is a new one.
    pub(crate) fn note_error(&self, error: &anyhow::Error) -> bool {
        let error = Some(format!("{error:#}"));
        let mut watched = self.lock();
        std::mem::replace(&mut watched.error, error.clone()) != error
    }
}

fn stamp(file: &Path) -> Stamp {
    let found = file.metadata().ok()?;
    let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Some([
        found.dev().into(),
        found.ino().into(),
        found.size().into(),
        nanoseconds(found.mtime(), found.mtime_nsec()),
        nanoseconds(found.ctime(), found.ctime_nsec()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_are_tried_until_they_are_used_and_each_error_is_reported_once() {
        let (watch, stamps) = (FilesWatch::default(), |number| Stamps(vec![Some([number; 5])]));
        watch.note_used(stamps(1));
        let (disk, pair) = (anyhow::anyhow!("the disk failed"), anyhow::anyhow!("another certificate's key"));
        for (error, is_new) in [(&disk, true), (&disk, false), (&pair, true), (&pair, false)] {
            assert!(!watch.has_used(&stamps(2)));
            assert_eq!(watch.note_error(error), is_new, "{error}");
        }
        watch.note_used(stamps(2));
        assert!(watch.has_used(&stamps(2)) && !watch.has_used(&stamps(1)));
        assert!(watch.note_error(&pair), "the files were used meanwhile");
    }
}
