//! Facts about certificates for operators: names, end and fingerprint.
//!
//! It verifies nothing. Invariant: nothing of a key is here.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use plimsoll_proto::http::CertificateStatus;
use plimsoll_tls::{Certificates, Handshakes, Outcome};
use plimsoll_wire::metrics::Metric;
use sha2::{Digest as _, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use super::files;
use crate::config::Config;
use crate::limits::CERTIFICATE_WARNING_DAYS;

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// Facts about a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The names and addresses for which it is valid.
    pub(crate) names: Vec<String>,
    /// Its end, in seconds since 1970.
    pub(crate) not_after: i64,
    not_before: i64,
    /// SHA-256 of the certificate, as clients show it.
    pub(crate) fingerprint: String,
}

/// Returns the facts about the certificates of a configuration, from their files. Creates nothing.
pub(crate) fn facts_of(config: &Config) -> Vec<Facts> {
    let found = files::find(config).unwrap_or_default();
    let certificates = files::read(&found.pairs).ok().flatten();
    certificates.map(|certificates| Facts::of_all(&certificates)).unwrap_or_default()
}

impl Facts {
    /// Returns the facts about each of the certificates.
    pub(super) fn of_all(certificates: &Certificates) -> Vec<Facts> {
        certificates.leaves().filter_map(Facts::of).collect()
    }

    pub(crate) fn of(der: &[u8]) -> Option<Facts> {
        let (_, certificate) = parse_x509_certificate(der).ok()?;
        let names = certificate.subject_alternative_name().ok().flatten();
        let names =
            names.iter().flat_map(|names| &names.value.general_names).filter_map(text_of_name).collect();
        let validity = certificate.validity();
        let (not_before, not_after) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        Some(Facts { names, not_after, not_before, fingerprint: fingerprint(der) })
    }

    /// Returns the first name.
    pub(crate) fn name(&self) -> &str {
        self.names.first().map_or("none", String::as_str)
    }

    /// Returns whether it is valid for a name or address. A wildcard stands for one label.
    pub(crate) fn is_for(&self, host: &str) -> bool {
        self.names.iter().any(|name| match name.strip_prefix('*') {
            Some(rest) => host.split_once('.').is_some_and(|(_, domain)| {
                rest.strip_prefix('.').is_some_and(|rest| rest.eq_ignore_ascii_case(domain))
            }),
            None => name.eq_ignore_ascii_case(host),
        })
    }

    /// Returns the number of whole days until its end; negative after that.
    pub(crate) fn days_left(&self, now: SystemTime) -> i64 {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).as_ref().map_or(0, Duration::as_secs);
        (self.not_after - i64::try_from(now).unwrap_or(i64::MAX)).div_euclid(DAY_SECONDS)
    }

    /// Returns whether a certificate with so many days left should have been renewed. Some are valid for a
    /// few days only.
    pub(crate) fn is_near_its_end(&self, days: i64) -> bool {
        days < CERTIFICATE_WARNING_DAYS.min((self.not_after - self.not_before) / DAY_SECONDS / 4)
    }
}

/// Returns the metrics of certificates in Prometheus' text format.
pub(crate) fn metrics_of(certificates: &[Facts], handshakes: &Handshakes) -> String {
    const HANDSHAKES: &str = "TLS handshakes, by their result.";
    const NOT_AFTER: &str = "The end of a certificate, in seconds since 1970.";
    if certificates.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    let mut metric = Metric::new(&mut text, "plimsoll_tls_handshakes_total", "counter", HANDSHAKES);
    for (outcome, name) in Outcome::ALL {
        metric.series(&[("result", name)], handshakes.count(outcome));
    }
    let mut metric = Metric::new(&mut text, "plimsoll_certificate_not_after_seconds", "gauge", NOT_AFTER);
    let mut names: Vec<&str> = Vec::new();
    for certificate in certificates {
        let name = certificate.name();
        // A name may have two certificates, with different kinds of keys. A series is written once.
        if !names.contains(&name) {
            names.push(name);
            metric.series(&[("name", name)], certificate.not_after);
        }
    }
    text
}

/// Returns the certificates for `/api/status`.
pub(crate) fn status_of(certificates: &[Facts]) -> Vec<CertificateStatus> {
    let now = SystemTime::now();
    let status =
        |facts: &Facts| CertificateStatus { names: facts.names.clone(), days_left: facts.days_left(now) };
    certificates.iter().map(status).collect()
}

fn text_of_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)).ok().map(|ip| ip.to_string())
        }
        _ => None,
    }
}

/// Returns the SHA-256 of a certificate, in pairs of hexadecimal digits.
fn fingerprint(der: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in Sha256::digest(der).iter().enumerate() {
        let colon = if at == 0 { "" } else { ":" };
        // Writing to a string does not fail.
        let _ = write!(text, "{colon}{byte:02X}");
    }
    text
}
