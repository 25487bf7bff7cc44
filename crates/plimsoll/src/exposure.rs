//! Secrets and data that other users of this machine can read or change. The server warns of them when it
//! starts, and `plimsoll doctor` shows the same.
//!
//! This module changes nothing. Invariant: each warning names its remedy, and shows no secret.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use plimsoll_auth::directory::{file_of, without_password};
use plimsoll_io::Address;
use rustix::process::{Uid, geteuid};

use crate::access::user;
use crate::config::{Config, PlainPasswords};
use crate::encryption::key_files;

/// Rights of users other than a file's owner.
const OTHERS: u32 = 0o077;
/// Rights of others to look up a name in a folder whose name they know.
const OTHERS_ENTER: u32 = 0o011;

/// One thing that other users can reach.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exposure {
    /// The finding, as a sentence.
    pub(crate) seen: String,
    /// The remedy.
    pub(crate) remedy: String,
}

/// The process that reports exposures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reporter {
    Server,
    /// With sudo it runs as root, and the owner of the data shows that the server does not.
    Doctor,
}

/// Writes each exposure to the log, as a warning.
pub(crate) fn warn(config: &Config) {
    let data = config.fixed.accounts.then(|| of_data(&config.fixed.data)).flatten();
    for Exposure { seen, remedy } in data.into_iter().chain(exposures(config, Reporter::Server)) {
        tracing::warn!(remedy, "{seen}");
    }
}

/// Warns of what unencrypted connections from other machines can do, or can no longer do.
pub(crate) fn warn_of_plain_passwords(config: &Config) {
    match of_plain_passwords(config) {
        // The proxies may do so already, which only they know.
        Some(Exposure { seen, remedy }) if config.plain_beyond_loopback().is_empty() => {
            tracing::info!(remedy, "{seen}");
        }
        Some(Exposure { seen, remedy }) => tracing::warn!(remedy, "{seen}"),
        None => {}
    }
}

/// Passwords over unencrypted connections from other machines: refused, or readable by others.
pub(crate) fn of_plain_passwords(config: &Config) -> Option<Exposure> {
    let (fixed, tls) = (&config.fixed, &config.live.tls);
    let plain = config.plain_beyond_loopback();
    let has_proxies = !config.live.trusted_proxy.is_empty() || !fixed.proxy_protocol.is_empty();
    let has_sockets = fixed.http.iter().any(|at| matches!(at, Address::Unix(_)));
    if !fixed.accounts || (plain.is_empty() && !has_proxies && !has_sockets) {
        return None;
    }
    let protocols = plain.join(", ");
    match tls.plain_passwords {
        PlainPasswords::Allow if plain.is_empty() => None,
        PlainPasswords::Allow => Some(Exposure {
            seen: format!("passwords over {protocols} from other machines are not encrypted"),
            remedy: "--https ADDR --certificate FILE --key FILE, and --plain-passwords loopback".to_owned(),
        }),
        PlainPasswords::Loopback if plain.is_empty() && has_sockets => Some(Exposure {
            seen: "passwords over a Unix socket are accepted unless the proxy that connects reports http"
                .to_owned(),
            remedy: "let a proxy that also accepts clients without HTTPS send X-Forwarded-Proto".to_owned(),
        }),
        PlainPasswords::Loopback if plain.is_empty() => Some(Exposure {
            seen: "passwords from other machines are refused unless the trusted proxy reports https"
                .to_owned(),
            remedy:
                "let the proxy send X-Forwarded-Proto, Forwarded with proto, or the TLS field of the PROXY \
                     protocol, version 2; or --plain-passwords allow"
                    .to_owned(),
        }),
        PlainPasswords::Loopback => Some(Exposure {
            seen: format!("passwords over {protocols} from other machines are refused"),
            remedy: match fixed.https.is_empty() {
                true => "--https ADDR --certificate FILE --key FILE; or --plain-passwords allow".to_owned(),
                false => "clients use https://, or TLS over FTP; or --plain-passwords allow".to_owned(),
            },
        }),
    }
}

/// Warns of passwords among the arguments of this process.
pub(crate) fn warn_of_arguments() {
    if let Some(Exposure { seen, remedy }) = of_arguments(std::env::args_os()) {
        tracing::warn!(remedy, "{seen}");
    }
}

/// All that a server with this configuration exposes beside the data folder.
pub(crate) fn exposures(config: &Config, reporter: Reporter) -> Vec<Exposure> {
    let fixed = &config.fixed;
    let data = fixed.accounts.then_some(fixed.data.as_path());
    let mut found: Vec<Exposure> = of_root(geteuid(), data, reporter).into_iter().collect();
    found.extend(of_file(&fixed.secret_file, "the secret that the tiers share"));
    found.extend(key_files(config).iter().filter_map(|file| of_file(file, "a private key of TLS")));
    found.extend(file_of(&fixed.directory).and_then(|file| of_directory(&file)));
    let password = fixed.directory_password_file.as_deref();
    found.extend(password.and_then(|file| of_file(file, "the password of the directory of accounts")));
    found.extend(config_file(std::env::args_os()).and_then(|file| of_config(&file, &fixed.directory)));
    found.extend(of_arguments(std::env::args_os()));
    found
}

fn of_root(uid: Uid, data: Option<&Path>, reporter: Reporter) -> Option<Exposure> {
    if !uid.is_root() {
        return None;
    }
    let others = data.and_then(|data| Some((data, data.metadata().ok().filter(|found| found.uid() != 0)?)));
    Some(match others {
        Some(_) if reporter == Reporter::Doctor => return None,
        Some((data, found)) => {
            let (data, owner) = (data.display(), user(Uid::from_raw(found.uid())));
            Exposure {
                seen: format!("plimsoll runs as root on {data}, which belongs to {owner}"),
                remedy: format!("run it as {owner}, who cannot use what root makes there"),
            }
        }
        None => Exposure {
            seen: "plimsoll runs as root: a fault in it would reach the whole machine".to_owned(),
            remedy: "run it as a user of its own, and give that user the data: chown -R USER: DATA; \
                     packaging/systemd/plimsoll.service does both"
                .to_owned(),
        },
    })
}

/// A data folder that others can read or change.
pub(crate) fn of_data(data: &Path) -> Option<Exposure> {
    let mode = mode(&data.metadata().ok()?);
    let access = match mode & OTHERS {
        0 => return None,
        others if others & 0o022 != 0 => "can be changed",
        _ => "can be read",
    };
    let data = data.display();
    Some(Exposure {
        seen: format!("the data folder {data} {access} by other users (mode {mode:o})"),
        remedy: format!("chmod 700 {data}"),
    })
}

/// A file of secrets that others can read.
pub(crate) fn of_file(file: &Path, contents: &str) -> Option<Exposure> {
    let mode = mode(&file.metadata().ok()?);
    let file = file.display();
    (mode & OTHERS != 0).then(|| Exposure {
        seen: format!("other users can read {contents}, {file} (mode {mode:o})"),
        remedy: format!("chmod 600 {file}"),
    })
}

/// The directory's file, unless other users cannot enter its folder.
fn of_directory(file: &Path) -> Option<Exposure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_open = mode(&folder.metadata().ok()?) & OTHERS_ENTER != 0;
    of_file(file, "the hashes of all passwords").filter(|_| is_open)
}

fn of_config(file: &Path, directory: &str) -> Option<Exposure> {
    let has_password = without_password(directory) != directory;
    let text = std::fs::read_to_string(file).ok().filter(|text| has_password && text.contains(directory));
    text.and_then(|_| of_file(file, "the password of the directory of accounts"))
}

/// A URL with a password in an argument, which `ps` shows to every user.
fn of_arguments(mut args: impl Iterator<Item = OsString>) -> Option<Exposure> {
    let has_password = |arg: OsString| {
        let arg = arg.to_string_lossy();
        without_password(&arg) != arg
    };
    args.any(has_password).then(|| Exposure {
        seen: "the command line has a URL with a password, which ps shows to every user of this machine"
            .to_owned(),
        remedy: "put the password into a file of mode 600 that --directory-password-file names, or into the \
                 environment (PLIMSOLL_DIRECTORY_PASSWORD); then change it"
            .to_owned(),
    })
}

/// The file of settings that this process was started with.
fn config_file(args: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    let mut args = args.skip_while(|arg| !arg.as_bytes().starts_with(b"--config"));
    let typed = args.next().and_then(|arg| match arg.as_bytes().strip_prefix(b"--config=") {
        Some(file) => Some(OsStr::from_bytes(file).to_owned()),
        None => args.next(),
    });
    typed.or_else(|| std::env::var_os("PLIMSOLL_CONFIG")).map(PathBuf::from)
}

fn mode(found: &Metadata) -> u32 {
    found.mode() & 0o7777
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn set(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_folder_or_file_that_others_can_use_is_exposed_until_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "").unwrap();
        for (mode, expected) in [(0o777, "can be changed"), (0o755, "can be read")] {
            set(folder.path(), mode);
            let found = of_data(folder.path()).unwrap();
            assert!(found.seen.contains(expected) && found.remedy.starts_with("chmod 700 "), "{found:?}");
        }
        set(&secret, 0o644);
        assert!(of_file(&secret, "it").unwrap().remedy.starts_with("chmod 600 "));
        assert!(of_directory(&secret).is_some());
        set(folder.path(), 0o700);
        assert_eq!((of_data(folder.path()), of_directory(&secret)), (None, None));
        set(&secret, 0o600);
        assert_eq!(of_file(&secret, "it"), None);
        assert_eq!(of_file(&folder.path().join("not-there"), "it"), None);
    }

    #[test]
    fn a_password_is_found_in_arguments_and_in_a_file_of_settings_and_is_not_shown() {
        let args = |args: &[&str]| args.iter().map(OsString::from).collect::<Vec<_>>().into_iter();
        let url = "postgres://me:sesame@db/files";
        for typed in [&["--directory", url][..], &["--directory=postgres://me:sesame@db/files"]] {
            let found = of_arguments(args(typed)).unwrap();
            assert!(
                !found.seen.contains("sesame") && found.remedy.contains("PLIMSOLL_DIRECTORY"),
                "{found:?}"
            );
        }
        assert_eq!(of_arguments(args(&["--directory", "postgres://me@db/files"])), None);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plimsoll.toml");
        std::fs::write(&file, format!("directory = \"{url}\"\n")).unwrap();
        set(&file, 0o644);
        assert!(!of_config(&file, url).unwrap().seen.contains("sesame"));
        assert_eq!(of_config(&file, "postgres://me@db/files"), None);
        set(&file, 0o600);
        assert_eq!(of_config(&file, url), None);
        let path = file.to_str().unwrap();
        assert_eq!(config_file(args(&["serve", "--config", path])), Some(file.clone()));
        assert_eq!(config_file(args(&["serve", &format!("--config={path}")])), Some(file));
    }

    #[test]
    fn passwords_that_are_refused_or_not_encrypted_are_reported_before_people_find_out() {
        let of =
            |args: &[&str]| of_plain_passwords(&Config::of(args)).map(|found| found.seen + &found.remedy);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["--http", "0.0.0.0:80", "--accounts", "false"]), None);
        let https = ["--https", "0.0.0.0:443", "--certificate", "a", "--key", "b"];
        assert_eq!(of(&https), None);
        for (args, words) in [
            (&["--http", "0.0.0.0:80"][..], &["http", "refused", "--certificate"][..]),
            (&["--http", "[::]:80", "--ftp", "0.0.0.0:21"], &["http, ftp", "--plain-passwords allow"]),
            (&["--http", "0.0.0.0:80", "--plain-passwords", "allow"], &["http", "not encrypted"]),
            (&["--trusted-proxy", "127.0.0.1"], &["proxy", "X-Forwarded-Proto"]),
            (&["--http", "unix:/run/p"], &["Unix socket", "accepted", "X-Forwarded-Proto"]),
            (&["--http", "unix:/run/p", "--trusted-proxy", "unix"], &["Unix socket", "accepted"]),
        ] {
            let text = of(args).unwrap_or_default();
            assert!(words.iter().all(|word| text.contains(word)), "{args:?}: {text}");
        }
        assert_eq!(of(&["--trusted-proxy", "127.0.0.1", "--plain-passwords", "allow"]), None);
        let both = of(&[&https[..], &["--http", "0.0.0.0:80"]].concat()).unwrap();
        assert!(both.contains("https://") && !both.contains("--certificate"), "{both}");
    }

    #[test]
    fn the_superuser_is_exposed_and_no_other_user() {
        for reporter in [Reporter::Server, Reporter::Doctor] {
            assert!(of_root(Uid::ROOT, None, reporter).unwrap().remedy.contains("chown"));
            assert_eq!(of_root(Uid::from_raw(1000), None, reporter), None);
        }
    }
}
