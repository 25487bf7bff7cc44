//! Setting values that are one of a few words, or a number or URL instead.
//!
//! It has no defaults. Invariant: an invalid word is refused with the list of valid ones.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use crate::limits::THREADS_MAX;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use plimsoll_client::http::Url;
use plimsoll_engine::EngineKind;
use plimsoll_tls::MinVersion;
use plimsoll_wire::units::{Size, Time};

/// The engines as `--engine` names them, in the order for shell completion.
pub(crate) const ENGINES: [&str; 6] = ["auto", "epoll", "uring", "thread", "pool", "process"];

/// Returns a parser of an engine's name.
pub(crate) fn engine_name() -> impl TypedValueParser<Value = EngineKind> {
    // Every valid word parses; others are refused before.
    PossibleValuesParser::new(ENGINES).try_map(|name| name.parse::<EngineKind>())
}

/// Returns a parser of a whole number between two bounds.
pub(crate) fn number_within(
    least: usize,
    most: usize,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("write a whole number from {least} to {most}"))
    }
}

/// A name by which operators reach an address of `--metrics`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OperatorHost(String);

impl FromStr for OperatorHost {
    type Err = String;

    fn from_str(text: &str) -> Result<OperatorHost, String> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if text.is_empty() || !text.bytes().all(is_name) {
            return Err("write a host name without a port, such as server1.example".to_owned());
        }
        Ok(OperatorHost(text.to_owned()))
    }
}

impl fmt::Display for OperatorHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The condition for confirming an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The upload survives a power cut.
    Full,
    /// The kernel has the bytes.
    None,
}

/// The location of the auth tier.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AuthAt {
    /// In this process.
    Embedded,
    /// On an authentication server.
    Remote(Url),
}

impl FromStr for AuthAt {
    type Err = String;

    fn from_str(text: &str) -> Result<AuthAt, String> {
        if text == "embedded" {
            return Ok(AuthAt::Embedded);
        }
        let url = text.parse().map_err(|bad| format!("{bad} Or write embedded."))?;
        Ok(AuthAt::Remote(url))
    }
}

impl fmt::Display for AuthAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthAt::Embedded => f.write_str("embedded"),
            AuthAt::Remote(url) => url.fmt(f),
        }
    }
}

/// The location of the store.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StoreAt {
    /// By this process, in its data folder.
    Local,
    /// On a storage server.
    Remote(Url),
}

impl FromStr for StoreAt {
    type Err = String;

    fn from_str(text: &str) -> Result<StoreAt, String> {
        if text == "local" {
            return Ok(StoreAt::Local);
        }
        let url = text.parse().map_err(|bad| format!("{bad} Or write local."))?;
        Ok(StoreAt::Remote(url))
    }
}

impl fmt::Display for StoreAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreAt::Local => f.write_str("local"),
            StoreAt::Remote(url) => url.fmt(f),
        }
    }
}

/// How uploads are relayed to a storage server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relay {
    /// As their bytes arrive.
    Stream,
    /// Once the whole upload is on this server's disk.
    Spool,
}

/// Whether every client may create an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignUp {
    Open,
    Closed,
}

/// Whether accounts may make public links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    On,
    Off,
}

/// The connections on which clients may present passwords.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PlainPasswords {
    /// Encrypted ones, and those of this machine.
    #[default]
    Loopback,
    /// All.
    Allow,
}

/// The ways to prove to an ACME server that a name leads here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcmeChallenge {
    /// By a file over HTTP.
    Http,
    /// By a certificate over TLS.
    TlsAlpn,
}

/// The protocols whose listeners expect the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proxied {
    All,
    Http,
    Ftp,
    Classic,
}

/// The format of the operator's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The least severe level in the operator's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogLevel(pub(crate) tracing::Level);

/// The number of threads that serve connections; `None` depends on the engine and the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Threads(Option<usize>);

/// An upper bound, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtMost(pub(crate) Option<u64>);

/// The oldest version of TLS that is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TlsVersion(pub(crate) MinVersion);

/// A time, or off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeOrOff(pub(crate) Option<Time>);

const DURABILITIES: [(&str, Durability); 2] = [("full", Durability::Full), ("none", Durability::None)];
const RELAYS: [(&str, Relay); 2] = [("stream", Relay::Stream), ("spool", Relay::Spool)];
const LINKS: [(&str, Links); 2] = [("on", Links::On), ("off", Links::Off)];
const SIGN_UPS: [(&str, SignUp); 2] = [("open", SignUp::Open), ("closed", SignUp::Closed)];
const PLAIN_PASSWORDS: [(&str, PlainPasswords); 2] =
    [("loopback", PlainPasswords::Loopback), ("allow", PlainPasswords::Allow)];
const ACME_CHALLENGES: [(&str, AcmeChallenge); 2] =
    [("http-01", AcmeChallenge::Http), ("tls-alpn-01", AcmeChallenge::TlsAlpn)];
const TLS_VERSIONS: [(&str, TlsVersion); 2] =
    [("1.2", TlsVersion(MinVersion::Tls12)), ("1.3", TlsVersion(MinVersion::Tls13))];
const PROXIED: [(&str, Proxied); 4] =
    [("all", Proxied::All), ("http", Proxied::Http), ("ftp", Proxied::Ftp), ("classic", Proxied::Classic)];
const FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];
const LEVELS: [(&str, LogLevel); 5] = [
    ("error", LogLevel(tracing::Level::ERROR)),
    ("warn", LogLevel(tracing::Level::WARN)),
    ("info", LogLevel(tracing::Level::INFO)),
    ("debug", LogLevel(tracing::Level::DEBUG)),
    ("trace", LogLevel(tracing::Level::TRACE)),
];

pub(super) fn one_of<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("write one of: {}", words.join(", "))
    })
}

pub(super) fn word_of<T: PartialEq>(value: &T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, of)| of == value).map_or("", |(word, _)| word)
}

/// Implements parsing and formatting for types with a list of words.
macro_rules! words {
    ($($kind:ty: $words:ident),* $(,)?) => { $(
        // Lists the words for shell completion.
        impl clap::builder::ValueParserFactory for $kind {
            type Parser = clap::builder::ValueParser;

            fn value_parser() -> clap::builder::ValueParser {
                use clap::builder::TypedValueParser as _;

                let words = $words.iter().map(|(word, _)| *word);
                clap::builder::PossibleValuesParser::new(words).try_map(|word| word.parse::<$kind>()).into()
            }
        }

        impl std::str::FromStr for $kind {
            type Err = String;

            fn from_str(text: &str) -> Result<$kind, String> {
                $crate::config::values::one_of(text, &$words)
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::config::values::word_of(self, &$words))
            }
        }
    )* };
}
pub(super) use words;

words!(Durability: DURABILITIES, Relay: RELAYS, SignUp: SIGN_UPS, Proxied: PROXIED);
words!(PlainPasswords: PLAIN_PASSWORDS, Links: LINKS);
words!(AcmeChallenge: ACME_CHALLENGES);
words!(TlsVersion: TLS_VERSIONS);
words!(LogFormat: FORMATS, LogLevel: LEVELS);

impl Proxied {
    /// Returns whether this is, or includes, `protocol`.
    pub(crate) fn includes(self, protocol: Proxied) -> bool {
        self == Proxied::All || self == protocol
    }
}

impl Threads {
    pub(crate) fn number(self, engine: EngineKind) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.0.unwrap_or_else(|| engine.threads(cores()))
    }
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Threads, String> {
        if text == "auto" {
            return Ok(Threads(None));
        }
        let number = text.parse().ok().filter(|number| (1..=THREADS_MAX).contains(number));
        number
            .map(|number| Threads(Some(number)))
            .ok_or_else(|| format!("write auto, or a whole number from 1 to {THREADS_MAX}"))
    }
}

impl FromStr for AtMost {
    type Err = String;

    fn from_str(text: &str) -> Result<AtMost, String> {
        match text {
            "none" => Ok(AtMost(None)),
            _ => text
                .parse()
                .map(|size: Size| AtMost(Some(size.0)))
                .map_err(|wrong| format!("{wrong}, or none for no bound")),
        }
    }
}

impl FromStr for TimeOrOff {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeOrOff, String> {
        match text {
            "off" => Ok(TimeOrOff(None)),
            _ => match text.parse::<Time>() {
                Ok(time) => Ok(TimeOrOff(Some(time))),
                Err(wrong) => Err(format!("{wrong}, or off")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_back_as_it_was_written() {
        for word in ["open", "closed"] {
            assert_eq!(word.parse::<SignUp>().unwrap().to_string(), word);
        }
        for word in ["error", "warn", "info", "debug", "trace"] {
            assert_eq!(word.parse::<LogLevel>().unwrap().to_string(), word);
        }
    }

    #[test]
    fn another_word_is_refused_with_those_that_are() {
        let refused = "maybe".parse::<Durability>().unwrap_err();
        assert_eq!(refused, "write one of: full, none");
    }

    #[test]
    fn a_bound_is_a_size_or_none() {
        assert_eq!("none".parse(), Ok(AtMost(None)));
        assert_eq!("2KiB".parse(), Ok(AtMost(Some(2048))));
        assert!("much".parse::<AtMost>().unwrap_err().contains("none"));
    }
}
