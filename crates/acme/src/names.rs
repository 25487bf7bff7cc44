//! The names that a certificate is ordered for.
//!
//! It resolves none. Invariant: a name is a valid name of a file, in lower case.

use std::fmt;
use std::str::FromStr;

use crate::limits::{LABEL_BYTES_MAX, NAME_BYTES_MAX, NAMES_MAX};

/// A domain name, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DomainName(String);

/// A name that no certificate is ordered for, with advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDomainName {
    /// `*.example.org`
    #[error(
        "a certificate for a wildcard needs changes of DNS (DNS-01), which this server does not make; order \
         it with another ACME client, and give its files by --certificate and --key"
    )]
    Wildcard,
    /// An IP address.
    #[error("certificates are ordered for names, not for IP addresses")]
    Ip,
    /// Anything else.
    #[error("this is no domain name; a name with other letters than a to z is written as xn--…")]
    Form,
}

/// The names of one certificate: at least one, and at most [`NAMES_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    first: DomainName,
    others: Vec<DomainName>,
}

impl Names {
    /// Returns the names without repetitions; `None` if there are none, or too many.
    pub fn new(names: impl IntoIterator<Item = DomainName>) -> Option<Names> {
        let mut names = names.into_iter();
        let (first, mut others) = (names.next()?, Vec::new());
        for name in names {
            if name != first && !others.contains(&name) {
                others.push(name);
            }
        }
        (others.len() < NAMES_MAX).then_some(Names { first, others })
    }

    /// The first name, by which the certificate is stored.
    pub fn first(&self) -> &DomainName {
        &self.first
    }

    /// All names, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &DomainName> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl DomainName {
    /// Parses a name.
    ///
    /// # Errors
    /// It cannot be in a certificate that is ordered by HTTP-01.
    pub fn parse(text: &str) -> Result<DomainName, BadDomainName> {
        if text.starts_with("*.") {
            return Err(BadDomainName::Wildcard);
        }
        if text.parse::<core::net::IpAddr>().is_ok() {
            return Err(BadDomainName::Ip);
        }
        let name = text.to_ascii_lowercase();
        let is_label = |label: &str| {
            let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            (1..=LABEL_BYTES_MAX).contains(&label.len())
                && label.bytes().all(is_letter)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let is_name = name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label);
        if is_name { Ok(DomainName(name)) } else { Err(BadDomainName::Form) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DomainName {
    type Err = BadDomainName;

    fn from_str(text: &str) -> Result<DomainName, BadDomainName> {
        DomainName::parse(text)
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_accepted_in_lower_case() {
        for (text, name) in [
            ("files.example.org", "files.example.org"),
            ("Files.Example.ORG", "files.example.org"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(DomainName::parse(text).unwrap().as_str(), name);
        }
    }

    #[test]
    fn a_certificate_has_each_name_once_and_not_too_many() {
        let parse = |text: &str| DomainName::parse(text).unwrap();
        let names = Names::new(["b.org", "a.org", "B.org", "a.org"].map(parse)).unwrap();
        assert_eq!(names.iter().map(DomainName::as_str).collect::<Vec<_>>(), ["b.org", "a.org"]);
        assert_eq!(names.first().as_str(), "b.org");
        let many = |count| (0..count).map(|number| parse(&format!("n{number}.org")));
        assert_eq!(Names::new(many(0)), None);
        assert!(Names::new(many(NAMES_MAX)).is_some());
        assert_eq!(Names::new(many(NAMES_MAX + 1)), None);
    }

    #[test]
    fn other_names_are_refused_with_the_reason() {
        assert_eq!(DomainName::parse("*.example.org"), Err(BadDomainName::Wildcard));
        for text in ["192.0.2.1", "2001:db8::1"] {
            assert_eq!(DomainName::parse(text), Err(BadDomainName::Ip));
        }
        let long = "a.".repeat(127) + "aa";
        for text in
            ["", ".", "..", "a..b", "a/b", "a b", "-a", "a-", "ü.example", "a.example.", "a:80", &long]
        {
            assert_eq!(DomainName::parse(text), Err(BadDomainName::Form), "{text}");
        }
        assert_eq!(DomainName::parse(&("a".repeat(64) + ".org")), Err(BadDomainName::Form));
    }
}
