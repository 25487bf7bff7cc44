//! The TLS of a connection to a database, as a URL demands it.
//!
//! The keys and values are those of PostgreSQL's URLs. It reads the files that a URL names; it connects
//! to nothing. Invariants: each key is obeyed, or the URL is rejected. A key that others can read is
//! rejected.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use plimsoll_tls::{BlockingConnector, Identity, Roots, ServerCheck, SessionTerms};
use zeroize::Zeroizing;

use super::url::Url;
use crate::directory::open::BadUrl;
use crate::directory::transfer::TlsTerms;

/// Whether a connection is encrypted.
#[derive(Clone, Debug)]
pub(in crate::directory) enum Encryption {
    Never,
    /// If the server offers it. An attacker can remove the offer.
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres")),
        allow(dead_code, reason = "no other server offers TLS")
    )]
    IfOffered(BlockingConnector),
    Always(BlockingConnector),
}

/// The names of the keys of a URL. Each has the names that the database's own clients use.
#[derive(Clone, Copy)]
pub(in crate::directory) struct TlsKeys {
    pub(in crate::directory) mode: &'static [&'static str],
    pub(in crate::directory) authorities: &'static [&'static str],
    pub(in crate::directory) certificate: &'static [&'static str],
    pub(in crate::directory) key: &'static [&'static str],
    /// The mode of a URL without one.
    pub(in crate::directory) default: Mode,
}

/// The protection that a URL demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::directory) enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyAuthority,
    VerifyName,
}

/// The values of a mode: PostgreSQL's, and MySQL's.
const MODES: [(&str, Mode); 10] = [
    ("disable", Mode::Disable),
    ("DISABLED", Mode::Disable),
    ("prefer", Mode::Prefer),
    ("PREFERRED", Mode::Prefer),
    ("require", Mode::Require),
    ("REQUIRED", Mode::Require),
    ("verify-ca", Mode::VerifyAuthority),
    ("VERIFY_CA", Mode::VerifyAuthority),
    ("verify-full", Mode::VerifyName),
    ("VERIFY_IDENTITY", Mode::VerifyName),
];

impl Encryption {
    /// Reads the keys of a URL. A Unix socket, which `is_local` says, has no TLS.
    pub(in crate::directory) fn of(url: &Url, keys: TlsKeys, is_local: bool) -> Result<Encryption, BadUrl> {
        let value =
            |names: &[&str]| match names.iter().filter_map(|name| url.value(name)).collect::<Vec<_>>()[..] {
                [] => Ok(None),
                [value] => Ok(Some(value)),
                _ => Err(url.bad(&format!("give only one of {}", names.join(" and ")))),
            };
        let mode = value(keys.mode)?.map_or(Ok(keys.default), |mode| mode_of(mode, url))?;
        let authorities = value(keys.authorities)?;
        let files = (value(keys.certificate)?, value(keys.key)?);
        if is_local && !matches!(mode, Mode::Disable | Mode::Prefer) {
            return Err(url.bad("a Unix socket has no TLS, and needs none: leave sslmode out"));
        }
        let is_unused = match mode {
            Mode::Disable => authorities.is_some() || files != (None, None),
            Mode::Prefer => authorities.is_some() || (is_local && files != (None, None)),
            _ => false,
        };
        if is_unused {
            return Err(url.bad("certificates need TLS: add sslmode=verify-full"));
        }
        if mode == Mode::Disable || is_local {
            return Ok(Encryption::Never);
        }
        let identity = identity(files, url)?;
        let check = check(mode, authorities, url)?;
        let connector = BlockingConnector::new(&check, identity.as_ref());
        let connector = connector.map_err(|error| url.bad(&error.to_string()))?;
        Ok(if mode == Mode::Prefer {
            Encryption::IfOffered(connector)
        } else {
            Encryption::Always(connector)
        })
    }

    /// Returns the terms of the latest encrypted connection.
    pub(in crate::directory) fn latest_terms(&self) -> Option<TlsTerms> {
        let latest = match self {
            Encryption::Never => None,
            Encryption::IfOffered(connector) | Encryption::Always(connector) => connector.latest_terms(),
        };
        let SessionTerms { version, is_verified, certificate } = latest?;
        Some(TlsTerms { version, is_verified, certificate })
    }

    /// Returns the means to encrypt a connection to a server that offers TLS or not; `None` if it stays
    /// plain.
    ///
    /// # Errors
    /// TLS is demanded and not offered.
    #[cfg(any(feature = "mysql", test))]
    pub(in crate::directory) fn connector(
        &self,
        is_offered: bool,
    ) -> Result<Option<&BlockingConnector>, &'static str> {
        match self {
            Encryption::Always(connector) | Encryption::IfOffered(connector) if is_offered => {
                Ok(Some(connector))
            }
            Encryption::Always(_) => Err("it offers no TLS, which sslmode demands"),
            Encryption::Never | Encryption::IfOffered(_) => Ok(None),
        }
    }
}

fn mode_of(name: &str, url: &Url) -> Result<Mode, BadUrl> {
    let known = MODES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode);
    known.ok_or_else(|| {
        url.bad(&format!("sslmode={name} is not disable, prefer, require, verify-ca or verify-full"))
    })
}

/// As PostgreSQL's client: `require` verifies the authority if the URL names one.
fn check(mode: Mode, authorities: Option<&str>, url: &Url) -> Result<ServerCheck, BadUrl> {
    if mode == Mode::Prefer || (mode == Mode::Require && authorities.is_none()) {
        return Ok(ServerCheck::Nothing);
    }
    let roots = match authorities {
        None | Some("system") => Roots::of_system().map_err(|error| url.bad(&error.to_string()))?,
        Some(path) => Roots::read(&read(path, url)?).map_err(|error| url.bad(&format!("{path}: {error}")))?,
    };
    Ok(if mode == Mode::VerifyName { ServerCheck::Name(roots) } else { ServerCheck::Authority(roots) })
}

/// Reads the certificate and the key of this client.
fn identity(files: (Option<&str>, Option<&str>), url: &Url) -> Result<Option<Identity>, BadUrl> {
    let (certificate, key) = match files {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        _ => return Err(url.bad("a certificate of the client needs its key, and a key its certificate")),
    };
    let mode = fs::metadata(key).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o007 != 0 {
        return Err(url.bad(&format!("every user can read the key {key}: chmod 600 {key}")));
    }
    let identity = Identity::read(&read(certificate, url)?, &read(key, url)?);
    identity.map(Some).map_err(|error| url.bad(&format!("{certificate} with {key}: {error}")))
}

fn read(path: &str, url: &Url) -> Result<Zeroizing<Vec<u8>>, BadUrl> {
    fs::read(path).map(Zeroizing::new).map_err(|error| url.bad(&format!("cannot read {path}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: TlsKeys = TlsKeys {
        mode: &["sslmode", "ssl-mode"],
        authorities: &["sslrootcert"],
        certificate: &["sslcert"],
        key: &["sslkey"],
        default: Mode::Disable,
    };
    const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tls");

    fn of(query: &str, is_local: bool) -> Result<Encryption, String> {
        let url = format!("mysql://me:secret@db/files?{query}");
        let keys = ["sslmode", "ssl-mode", "sslrootcert", "sslcert", "sslkey"];
        let url = Url::parse(&url, &keys).unwrap();
        Encryption::of(&url, KEYS, is_local).map_err(|error| error.to_string())
    }

    #[test]
    fn a_mode_decides_whether_a_connection_is_encrypted() {
        for query in ["", "sslmode=disable", "ssl-mode=DISABLED"] {
            assert!(matches!(of(query, false).unwrap(), Encryption::Never), "{query}");
        }
        for query in ["sslmode=prefer", "ssl-mode=PREFERRED"] {
            let encryption = of(query, false).unwrap();
            assert!(encryption.connector(true).unwrap().is_some(), "{query}");
            assert!(encryption.connector(false).unwrap().is_none(), "{query}");
            assert!(matches!(of(query, true).unwrap(), Encryption::Never), "{query}");
        }
        let verified = format!("sslmode=verify-full&sslrootcert={TESTS}/ca.pem");
        for query in ["sslmode=require", "ssl-mode=REQUIRED", verified.as_str()] {
            let encryption = of(query, false).unwrap();
            assert!(encryption.connector(true).unwrap().is_some(), "{query}");
            encryption.connector(false).unwrap_err();
        }
    }

    #[test]
    fn a_url_whose_tls_cannot_be_obeyed_is_rejected_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let open_key = folder.path().join("key");
        fs::copy(format!("{TESTS}/client.key"), &open_key).unwrap();
        fs::set_permissions(&open_key, fs::Permissions::from_mode(0o644)).unwrap();
        let with_open_key =
            format!("sslmode=require&sslcert={TESTS}/client.pem&sslkey={}", open_key.display());
        for (query, reason) in [
            ("sslmode=allow", "verify-full"),
            ("sslmode=require&ssl-mode=REQUIRED", "only one of"),
            ("sslrootcert=/nowhere", "sslmode=verify-full"),
            ("sslmode=prefer&sslrootcert=/nowhere", "sslmode=verify-full"),
            ("sslmode=verify-ca&sslrootcert=/nowhere", "cannot read /nowhere"),
            ("sslmode=verify-ca&sslrootcert=/dev/null", "PEM"),
            ("sslmode=require&sslcert=/nowhere", "needs its key"),
            (with_open_key.as_str(), "chmod 600"),
        ] {
            let error = of(query, false).unwrap_err();
            assert!(error.contains(reason) && !error.contains("secret"), "{query}: {error}");
        }
        for query in ["sslmode=require", "sslmode=verify-full", "sslmode=prefer&sslcert=/a&sslkey=/b"] {
            let error = of(query, true).unwrap_err();
            assert!(error.contains("TLS"), "{error}");
        }
    }
}
