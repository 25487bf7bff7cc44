//! The tiers of one process: data folder, directory of accounts, store, and the connections between them.
//!
//! It serves nothing. Invariant: the data folder is locked by the caller before anything in it is opened
//! ([`crate::locked_folder`]).

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use plimsoll_auth::directory::{self, NotOpened, file_of};
use plimsoll_auth::{Argon2Settings, Auth, Directory, Secret, ServerAddress};
use plimsoll_cli::WrongUsage;
use plimsoll_client::http::Url;
use plimsoll_engine::{EngineKind, SystemFs, block_on};
use plimsoll_io::Fs as _;
use plimsoll_operations::{AuditLog, Operations};
use plimsoll_store::{Store, remote};
use plimsoll_tls::Connector;
use zeroize::Zeroizing;

use crate::config::{AuthAt, Config, Durability, Fixed, Relay, StoreAt};
use crate::directory_name::directory_name;
use crate::locked_folder::make_data_folder;
use crate::resolve::resolve;
use crate::trusted_certificates::{connector_since, identity};
use crate::{access, homes, open_files};

/// The cost of the laboratory's fast password hashes: next to none, so they give no protection.
const FAST: Argon2Settings = Argon2Settings { memory_kib: 8, passes: 1, lanes: 1 };

/// Opens accounts and files, local or remote. The caller has locked the data folder.
pub(crate) fn open_operations(config: &Config, audit_log: &AuditLog) -> anyhow::Result<Operations> {
    check_tier_tls(&config.fixed)?;
    let store = match &config.fixed.store {
        StoreAt::Local => open_store_here(config)?,
        StoreAt::Remote(url) => {
            empty_spool(&config.fixed)?;
            open_remote_store(url, &config.fixed)?
        }
    };
    Ok(Operations::new(open_auth(config)?, store, audit_log.clone()))
}

/// Opens the store of this process, in the data folder. Must be called before the directory of accounts is
/// opened, because a directory that is missing by then was lost.
pub(crate) fn open_store_here(config: &Config) -> anyhow::Result<Store> {
    homes::settle(config)?;
    open_store_of_fronts(config)
}

/// Opens the store of a data folder whose accounts only the fronts know.
pub(crate) fn open_store_of_fronts(config: &Config) -> anyhow::Result<Store> {
    let data = &config.fixed.data;
    Store::open(&SystemFs, data, store_settings(config))
        .with_context(|| format!("cannot open the data folder {}", data.display()))
}

/// Returns the storage server at `url`, which may be unreachable now.
pub(crate) fn open_remote_store(url: &Url, fixed: &Fixed) -> anyhow::Result<Store> {
    Ok(Store::remote(remote::StoreAddress {
        server: tier_server(fixed, url)?,
        // Only a directory in a file of this front has a name; a shared directory never had one.
        directory: match fixed.auth == AuthAt::Embedded && file_of(&fixed.directory).is_some() {
            true => directory_name(&fixed.data)?,
            false => String::new(),
        },
        spool: open_spool(fixed)?,
    }))
}

/// Returns the folder that buffers complete uploads, if the configuration has one.
fn spool(fixed: &Fixed) -> anyhow::Result<Option<PathBuf>> {
    if fixed.relay == Relay::Stream || fixed.store == StoreAt::Local {
        return Ok(None);
    }
    let folder = fixed.data.join("spool");
    make_data_folder(&folder)?;
    Ok(Some(folder))
}

fn open_spool(fixed: &Fixed) -> anyhow::Result<Option<plimsoll_io::File>> {
    let Some(folder) = spool(fixed)? else { return Ok(None) };
    let opened = SystemFs.open_root(&folder);
    opened.map(Some).with_context(|| format!("cannot open the folder {}", folder.display()))
}

/// Removes files that a killed server left between creating and unlinking them. The caller has locked the
/// data folder: otherwise, another server's uploads would be removed.
pub(crate) fn empty_spool(fixed: &Fixed) -> anyhow::Result<()> {
    let Some(folder) = spool(fixed)? else { return Ok(()) };
    empty(&folder).with_context(|| format!("cannot empty the folder {}", folder.display()))
}

fn empty(folder: &Path) -> io::Result<()> {
    std::fs::read_dir(folder)?.try_for_each(|entry| std::fs::remove_file(entry?.path()))
}

/// A shorter secret could be guessed.
const SECRET_BYTES_MIN: usize = 16;

/// Opens the auth tier that the configuration names: in this process or remote.
pub(crate) fn open_auth(config: &Config) -> anyhow::Result<Auth> {
    match &config.fixed.auth {
        AuthAt::Embedded => open_auth_here(config),
        AuthAt::Remote(url) => {
            let auth = Auth::remote(tier_server(&config.fixed, url)?, auth_settings(config));
            follow_changes(auth.clone()).context("cannot start a thread")?;
            Ok(auth)
        }
    }
}

/// Returns the server of a tier at `url`, with the shared secret.
pub(crate) fn tier_server(fixed: &Fixed, url: &Url) -> anyhow::Result<ServerAddress> {
    let tls = if url.is_https() { Some(tier_tls(fixed)?) } else { None };
    Ok(ServerAddress { url: url.clone(), secret: read_secret(fixed)?, resolve: Some(resolve), tls })
}

/// Returns the means to encrypt connections to tiers, with this server's certificate, if it has one.
fn tier_tls(fixed: &Fixed) -> anyhow::Result<Connector> {
    let tls = connector_since(fixed.tls_min_version.0, &fixed.tier_ca, "--tier-ca")?;
    match (fixed.tier_certificate.as_slice(), fixed.tier_key.as_slice()) {
        ([], []) => Ok(tls),
        ([certificate], [key]) => Ok(tls.with_identity(&identity(certificate, key)?)),
        _ => {
            Err(WrongUsage("give one --tier-certificate FILE, and the --tier-key FILE of its key".to_owned())
                .into())
        }
    }
}

/// Refuses settings for tiers over TLS if there are none: they would have no effect.
fn check_tier_tls(fixed: &Fixed) -> anyhow::Result<()> {
    let is_https = matches!(&fixed.auth, AuthAt::Remote(url) if url.is_https())
        || matches!(&fixed.store, StoreAt::Remote(url) if url.is_https());
    let is_given =
        fixed.tier_ca.0.is_some() || !fixed.tier_certificate.is_empty() || !fixed.tier_key.is_empty();
    if is_given && !is_https {
        const ADVICE: &str = "--tier-ca, --tier-certificate and --tier-key are for --auth and --store \
                              with https://; there is none";
        return Err(WrongUsage(ADVICE.to_owned()).into());
    }
    Ok(())
}

/// Applies the changes that an authentication server reports until the process ends. It has a thread of
/// its own, because serving threads may end earlier.
fn follow_changes(auth: Auth) -> io::Result<()> {
    let follow = move || {
        let ended = block_on(EngineKind::Epoll, |io| async move {
            if let Some(following) = auth.follow_changes(&io) {
                following.await;
            }
        });
        tracing::error!(?ended, "changes of the auth server are no longer followed");
    };
    std::thread::Builder::new().name("changes".to_owned()).spawn(follow).map(drop)
}

/// Opens the auth tier in this process.
pub(crate) fn open_auth_here(config: &Config) -> anyhow::Result<Auth> {
    let directory = open_directory(&directory_url(&config.fixed)?)?;
    Ok(Auth::local(directory, auth_settings(config)))
}

/// The command that generates a secret.
const MAKE_SECRET: &str = "head -c 32 /dev/urandom | base64 > FILE && chmod 600 FILE";

/// Reads the secret that the tiers share: the first line of its file.
pub(crate) fn read_secret(fixed: &Fixed) -> anyhow::Result<Secret> {
    let (file, shown) = (&fixed.secret_file, fixed.secret_file.display());
    let text = std::fs::read(file).map(Zeroizing::new);
    let text = text.map_err(|error| {
        WrongUsage(format!(
            "cannot read the secret that a server of a tier and its fronts share, {shown}: {error}; \
             name its file with --secret-file FILE; one is made by: {MAKE_SECRET}"
        ))
    })?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    if line.len() < SECRET_BYTES_MIN || !line.iter().all(u8::is_ascii_graphic) {
        anyhow::bail!(
            "the secret in {shown} must be a line of at least {SECRET_BYTES_MIN} letters, digits or signs; \
             one is made by: {MAKE_SECRET}"
        );
    }
    Ok(Secret::from(line))
}

/// Returns the settings of the auth tier.
pub(crate) fn auth_settings(config: &Config) -> plimsoll_auth::Settings {
    let (live, defaults) = (&config.live, plimsoll_auth::Settings::default());
    let sign_up =
        if config.sign_up_is_open() { plimsoll_auth::SignUp::Open } else { plimsoll_auth::SignUp::Closed };
    plimsoll_auth::Settings {
        argon2: if live.lab.lab_fast_passwords { FAST } else { defaults.argon2 },
        session_time: live.session_time.0,
        sign_up,
        links: config.has_links(),
        quota: plimsoll_auth::Quota { bytes: live.quota_bytes.0, files: live.quota_files.0 },
        remembered_time: if live.lab.lab_connect_each { Duration::ZERO } else { defaults.remembered_time },
        connect_each: live.lab.lab_connect_each,
        hashes_at_once: 2 * std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
        attempts: if live.lab.lab_no_attempt_limits { None } else { defaults.attempts },
    }
}

fn store_settings(config: &Config) -> plimsoll_store::Settings {
    let durability = match config.fixed.durability {
        Durability::Full if config.fixed.lab_sync_each => plimsoll_store::Durability::Each,
        Durability::Full => plimsoll_store::Durability::Full,
        Durability::None => plimsoll_store::Durability::None,
    };
    let homes_open_max = open_files::homes_max(open_files::raise());
    let trash_time = trash_time(config);
    plimsoll_store::Settings { durability, homes_open_max, trash_time, ..plimsoll_store::Settings::default() }
}

/// Returns how long deleted files stay in the trash.
pub(crate) fn trash_time(config: &Config) -> Duration {
    Duration::from_secs(24 * 60 * 60) * config.live.trash_days
}

/// The variable with the password of a directory of accounts.
pub(crate) const DIRECTORY_PASSWORD: &str = "PLIMSOLL_DIRECTORY_PASSWORD";

/// Returns the URL of the directory of accounts, with the password from its file or from the environment.
pub(crate) fn directory_url(fixed: &Fixed) -> anyhow::Result<Zeroizing<String>> {
    let from_environment = std::env::var_os(DIRECTORY_PASSWORD).filter(|text| !text.is_empty());
    let from_environment = from_environment.map(std::ffi::OsString::into_string).transpose();
    let from_environment =
        from_environment.map_err(|_| WrongUsage(format!("{DIRECTORY_PASSWORD} must be UTF-8")))?;
    let password = match (&fixed.directory_password_file, from_environment.map(Zeroizing::new)) {
        (None, None) => return Ok(Zeroizing::new(fixed.directory.clone())),
        (None, Some(password)) => password,
        (Some(file), None) => read_directory_password(file)?,
        (Some(_), Some(_)) => {
            let advice = format!("give only one of --directory-password-file and {DIRECTORY_PASSWORD}");
            return Err(WrongUsage(advice).into());
        }
    };
    with_password(&fixed.directory, &password)
}

/// Returns the URL of a directory of accounts, with the password of a file.
pub(crate) fn url_with_password_of(url: &str, file: &Path) -> anyhow::Result<Zeroizing<String>> {
    with_password(url, &read_directory_password(file)?)
}

fn with_password(url: &str, password: &str) -> anyhow::Result<Zeroizing<String>> {
    directory::with_password(url, password).map_err(|bad| WrongUsage(bad.to_string()).into())
}

/// Reads the first line of a file.
fn read_directory_password(file: &Path) -> anyhow::Result<Zeroizing<String>> {
    let path = file.display();
    let text = std::fs::read_to_string(file).map(Zeroizing::new);
    let text = text.map_err(|error| {
        WrongUsage(format!("cannot read the password of the directory of accounts, {path}: {error}"))
    })?;
    match text.lines().next().unwrap_or_default() {
        "" => Err(WrongUsage(format!("the first line of {path} must be the password, and is empty")).into()),
        line => Ok(Zeroizing::new(line.to_owned())),
    }
}

/// Opens the directory of accounts that a URL names.
pub(crate) fn open_directory(url: &str) -> anyhow::Result<Box<dyn Directory>> {
    access::check_directory(url)?;
    directory::open(url).map_err(|not_opened| match not_opened {
        NotOpened::Url(bad) => WrongUsage(bad.to_string()).into(),
        NotOpened::Store(trouble) => anyhow::Error::new(trouble)
            .context(format!("cannot open the directory of accounts {}", directory::without_password(url))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_the_spool_keeps_its_files_until_the_data_folder_is_locked() {
        let data = tempfile::tempdir().unwrap();
        let at = data.path().to_str().unwrap();
        let config = Config::of(&["--store", "http://127.0.0.1:1", "--relay", "spool", "--data", at]);
        let of_another = data.path().join("spool/1");
        assert!(open_spool(&config.fixed).unwrap().is_some());
        std::fs::write(&of_another, "").unwrap();
        assert!(open_spool(&config.fixed).unwrap().is_some());
        assert!(of_another.exists());
        empty_spool(&config.fixed).unwrap();
        assert!(!of_another.exists());
        let streams = Config::of(&["--store", "http://127.0.0.1:1", "--data", at]);
        assert!(open_spool(&streams.fixed).unwrap().is_none());
    }
}
