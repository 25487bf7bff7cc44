//! A certificate that the server makes and signs for itself, for development and for clients that compare its
//! fingerprint.
//!
//! It is no substitute for one that clients trust. Invariants: a certificate that can be used is kept,
//! because clients may have noted its fingerprint. The private key never leaves the data folder.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use plimsoll_io::Address;
use plimsoll_tls::{BadCertificate, Certificates};
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use zeroize::Zeroizing;

use super::facts::Facts;
use super::files::{self, Pair};
use super::private_file::replace;
use crate::config::Config;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the certificate is valid.
const VALID: Duration = Duration::from_secs(365 * DAY.as_secs());
/// Days before its end when it is made anew.
const DUE_DAYS: i64 = 30;
/// How far a client's clock may be behind.
const CLOCK_SKEW: Duration = DAY;

/// Returns the files of the certificate and its key.
pub(super) fn pair(config: &Config) -> Pair {
    let folder = config.fixed.data.join("tls");
    Pair { certificate: folder.join("self-signed.pem"), key: folder.join("self-signed.key") }
}

/// Returns whether the certificate is to be made anew. One that cannot be read is not.
pub(super) fn is_due(config: &Config) -> bool {
    files::read(&[pair(config)]).is_ok_and(|read| read.is_some_and(|certificates| ends_soon(&certificates)))
}

fn ends_soon(certificates: &Certificates) -> bool {
    let now = SystemTime::now();
    Facts::of_all(certificates).iter().any(|facts| facts.days_left(now) < DUE_DAYS)
}

/// Makes the certificate, unless there is one that can be used.
pub(super) fn ensure(config: &Config) -> anyhow::Result<()> {
    let pair = pair(config);
    let is_missing =
        |file: &Path| fs::metadata(file).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if !is_missing(&pair.certificate) && !is_missing(&pair.key) {
        match files::read(std::slice::from_ref(&pair)) {
            Ok(Some(certificates)) if ends_soon(&certificates) => {}
            // A crash between the two writes leaves a key without its certificate.
            Err(error) if error.is::<BadCertificate>() => {}
            read => return read.map(drop),
        }
    }
    make(config, &pair, VALID).with_context(|| {
        let folder = pair.certificate.parent().unwrap_or(&pair.certificate).display();
        format!("cannot make a self-signed certificate in {folder}; choose another folder with --data")
    })
}

fn make(config: &Config, pair: &Pair, valid: Duration) -> anyhow::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut parameters = CertificateParams::new(names(config))?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "plimsoll, self-signed");
    parameters.not_before = rcgen::date_time_ymd(1970, 1, 1) + now.saturating_sub(CLOCK_SKEW);
    parameters.not_after = rcgen::date_time_ymd(1970, 1, 1) + now + valid;
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = parameters.self_signed(&key)?;
    replace(&pair.key, Zeroizing::new(key.serialize_pem()).as_bytes())?;
    replace(&pair.certificate, certificate.pem().as_bytes())?;
    Ok(())
}

/// Returns the names and addresses of this machine, as far as they are known.
fn names(config: &Config) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let host = Some(host.trim().to_owned()).filter(|host| !host.is_empty() && host.bytes().all(is_name));
    let listening = config.fixed.https.iter().filter_map(|at| match at {
        Address::Ip(at) if !at.ip().is_unspecified() => Some(at.ip().to_string()),
        _ => None,
    });
    let own = crate::doctor::own_addresses().into_iter().map(|ip| ip.to_string());
    for name in host.into_iter().chain(listening).chain(own) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stand-in of a certificate that ACME does not order, and one that the configuration asks for.
    #[test]
    fn a_self_signed_certificate_is_made_anew_before_it_ends_and_not_sooner() {
        for args in [&["--acme", "files.example.org"][..], &["--self-signed"]] {
            let data = tempfile::tempdir().unwrap();
            let config = Config::of(&[args, &["--data", data.path().to_str().unwrap()]].concat());
            let found = files::find(&config).unwrap();
            assert!(found.is_self_signed && !is_due(&config), "{args:?}: there is none yet");
            make(&config, &found.pairs[0], VALID).unwrap();
            assert!(!is_due(&config), "{args:?}");
            make(&config, &found.pairs[0], DAY).unwrap();
            assert!(is_due(&config), "{args:?}");
            ensure(&config).unwrap();
            assert!(!is_due(&config), "{args:?}");
        }
    }
}
