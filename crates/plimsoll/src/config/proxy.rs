//! Settings of `plimsoll proxy` alone: its origins, and how it reaches them.
//!
//! Limits on clients are in [`super::live`]. Invariants: an origin is a server, and not a path on it. No
//! limit is zero or unbounded.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use plimsoll_channel::Bodies;
use plimsoll_client::http::Url;
use plimsoll_proxy::{FieldRules, OriginTimes};
use plimsoll_wire::http::is_token;
use plimsoll_wire::proxy::Version;
use plimsoll_wire::units::{DAY, Time, time_within};

use super::values::{number_within, words};

/// The shortest time that a limit may be set to.
const SHORT: &str = "10ms";

/// The reloadable settings of a proxy. `plimsoll serve` has no use for them.
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct ProxySettings {
    /// The server behind the proxy: https://HOST:PORT, http://HOST:PORT or unix:PATH; several may be given
    #[arg(long, value_name = "URL", env = "PLIMSOLL_PROXY_ORIGIN", value_delimiter = ',', hide = true)]
    pub(crate) proxy_origin: Vec<Origin>,

    /// The certificate in PEM of the authority that signs those of https origins, or their own; or system
    #[arg(
        long,
        value_name = "FILE|system",
        env = "PLIMSOLL_PROXY_ORIGIN_CA",
        default_value = "system",
        hide = true
    )]
    pub(crate) proxy_origin_ca: CertificateFile,

    /// A host that requests in absolute-form may name: HOST or HOST:PORT; several may be given
    #[arg(long, value_name = "HOST", env = "PLIMSOLL_PROXY_FORWARD", value_delimiter = ',', hide = true)]
    pub(crate) proxy_forward: Vec<ForwardHost>,

    /// The channel to the origins, which their URLs must fit: auto (by the URLs), tcp, unix, shm (shared
    /// memory to --channel of a plimsoll server, which passes open files) or shm-copy
    #[arg(
        long,
        value_name = "auto|tcp|unix|shm|shm-copy",
        env = "PLIMSOLL_PROXY_CHANNEL",
        default_value = "auto",
        hide = true
    )]
    pub(crate) proxy_channel: Channel,

    /// The header of the PROXY protocol at the start of each connection to an origin: off, v1 or v2
    #[arg(long, value_name = "off|v1|v2", env = "PLIMSOLL_PROXY_HEADER", default_value = "off", hide = true)]
    pub(crate) proxy_header: HeaderVersion,

    /// Names of the fields that requests may have: usual (letters, digits and hyphens) or any
    #[arg(
        long,
        value_name = "usual|any",
        env = "PLIMSOLL_PROXY_FIELD_NAMES",
        default_value = "usual",
        hide = true
    )]
    proxy_field_names: FieldNames,

    /// A field that is removed from requests, such as X-Original-URL; several may be given
    #[arg(
        long,
        value_name = "NAME",
        env = "PLIMSOLL_PROXY_REMOVE_FIELDS",
        value_delimiter = ',',
        hide = true
    )]
    proxy_remove_fields: Vec<FieldName>,

    /// Connections to one origin that may be in use; other requests wait, and clients take turns
    #[arg(
        long,
        value_name = "COUNT",
        env = "PLIMSOLL_PROXY_ORIGIN_CONNECTIONS",
        default_value = "128",
        hide = true
    )]
    #[arg(value_parser = number_within(1, 1_000_000))]
    pub(crate) proxy_origin_connections: usize,

    /// Time for connecting to each address of an origin
    #[arg(
        long,
        value_name = "TIME",
        env = "PLIMSOLL_PROXY_CONNECT_TIME",
        default_value = "10s",
        hide = true
    )]
    #[arg(value_parser = time_within(SHORT, DAY))]
    proxy_connect_time: Time,

    /// Time from the end of a request to the head of its response
    #[arg(
        long,
        value_name = "TIME",
        env = "PLIMSOLL_PROXY_RESPONSE_TIME",
        default_value = "2m",
        hide = true
    )]
    #[arg(value_parser = time_within(SHORT, DAY))]
    proxy_response_time: Time,

    /// Time in which an origin must send, or take, at least one byte of a body
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_PROXY_BODY_TIME", default_value = "1m", hide = true)]
    #[arg(value_parser = time_within(SHORT, DAY))]
    proxy_body_time: Time,

    /// Time without a byte in a connection that was upgraded to WebSocket
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_PROXY_TUNNEL_TIME", default_value = "10m", hide = true)]
    #[arg(value_parser = time_within(SHORT, DAY))]
    proxy_tunnel_time: Time,
}

impl ProxySettings {
    /// Returns the timeouts for origins.
    pub(crate) fn times(&self) -> OriginTimes {
        OriginTimes {
            connect: self.proxy_connect_time.0,
            first_byte: self.proxy_response_time.0,
            between_bytes: self.proxy_body_time.0,
            tunnel_idle: self.proxy_tunnel_time.0,
        }
    }

    /// Returns the rules for the fields of requests.
    pub(crate) fn field_rules(&self) -> FieldRules {
        FieldRules {
            keeps_unusual_names: self.proxy_field_names == FieldNames::Any,
            removed: self.proxy_remove_fields.iter().map(|name| name.0.clone()).collect(),
        }
    }

    /// Returns the first origin that the channel cannot reach.
    pub(crate) fn unfit_origin(&self) -> Option<&Url> {
        let fits = |url: &Url| match self.proxy_channel {
            Channel::Auto => true,
            Channel::Tcp => !url.is_unix(),
            Channel::Unix | Channel::Shm | Channel::ShmCopy => url.is_unix(),
        };
        self.proxy_origin.iter().map(|origin| &origin.0).find(|url| !fits(url))
    }

    /// Returns the first origin that an earlier one names already.
    pub(crate) fn repeated_origin(&self) -> Option<&Url> {
        let urls = || self.proxy_origin.iter().map(|origin| &origin.0);
        urls()
            .enumerate()
            .find(|(index, url)| urls().take(*index).any(|other| other.is_same_server(url)))
            .map(|(_, url)| url)
    }
}

/// A file of trusted certificates; `None` for those that the operating system trusts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CertificateFile(pub(crate) Option<PathBuf>);

impl FromStr for CertificateFile {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<CertificateFile, Infallible> {
        Ok(CertificateFile((text != "system").then(|| text.into())))
    }
}

/// The folder of the cache, if there is one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CacheFolder(pub(crate) Option<PathBuf>);

impl FromStr for CacheFolder {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<CacheFolder, Infallible> {
        Ok(CacheFolder((text != "off").then(|| text.into())))
    }
}

/// The URL of an origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Origin(pub(crate) Url);

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Origin, String> {
        let url: Url = text.parse().map_err(|bad| format!("{bad}"))?;
        if !url.base_path().is_empty() {
            return Err(
                "an origin has no path: write https://HOST:PORT, http://HOST:PORT or unix:PATH".to_owned()
            );
        }
        refuse_port_0(&url)?;
        Ok(Origin(url))
    }
}

/// No server can be connected to at port 0.
fn refuse_port_0(url: &Url) -> Result<(), String> {
    if url.port() == Some(0) { Err("write a port from 1 to 65535".to_owned()) } else { Ok(()) }
}

/// A host that requests may be forwarded to, and its URL.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ForwardHost {
    pub(crate) host: String,
    pub(crate) url: Url,
}

impl FromStr for ForwardHost {
    type Err = String;

    fn from_str(text: &str) -> Result<ForwardHost, String> {
        const FORM: &str = "write HOST or HOST:PORT, such as files.example";
        let url: Url = format!("http://{text}").parse().map_err(|_| FORM.to_owned())?;
        if url.authority() != text {
            return Err(FORM.to_owned());
        }
        refuse_port_0(&url)?;
        Ok(ForwardHost { host: text.to_owned(), url })
    }
}

/// The name of a field that is removed from requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldName(String);

impl FromStr for FieldName {
    type Err = String;

    fn from_str(text: &str) -> Result<FieldName, String> {
        if is_token(text.as_bytes()) {
            Ok(FieldName(text.to_owned()))
        } else {
            Err("write the name of a field, such as X-Original-URL".to_owned())
        }
    }
}

/// The names of the fields that requests may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldNames {
    /// Letters, digits and hyphens.
    Usual,
    Any,
}

/// The channel to the origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// By the URLs of the origins.
    Auto,
    Tcp,
    Unix,
    /// By shared memory; files are passed as descriptors.
    Shm,
    /// By shared memory, with bodies copied.
    ShmCopy,
}

impl Channel {
    /// Returns how bodies arrive over shared memory, if it is used.
    pub(crate) fn bodies(self) -> Option<Bodies> {
        match self {
            Channel::Shm => Some(Bodies::Passed),
            Channel::ShmCopy => Some(Bodies::Copied),
            _ => None,
        }
    }
}

/// The version of the PROXY protocol for origins, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeaderVersion(pub(crate) Option<Version>);

const CHANNELS: [(&str, Channel); 5] = [
    ("auto", Channel::Auto),
    ("tcp", Channel::Tcp),
    ("unix", Channel::Unix),
    ("shm", Channel::Shm),
    ("shm-copy", Channel::ShmCopy),
];
const FIELD_NAMES: [(&str, FieldNames); 2] = [("usual", FieldNames::Usual), ("any", FieldNames::Any)];
const HEADERS: [(&str, HeaderVersion); 3] = [
    ("off", HeaderVersion(None)),
    ("v1", HeaderVersion(Some(Version::Line))),
    ("v2", HeaderVersion(Some(Version::Binary))),
];

words!(Channel: CHANNELS, FieldNames: FIELD_NAMES, HeaderVersion: HEADERS);

#[cfg(test)]
mod tests {
    use plimsoll_proxy::limits::{ORIGIN_CONNECTIONS_MAX, SPOOL_BYTES_MAX};

    use super::super::Config;
    use super::*;

    #[test]
    fn the_default_times_are_those_of_the_proxy() {
        assert_eq!(Config::of(&[]).live.proxy.times(), OriginTimes::default());
    }

    #[test]
    fn the_default_numbers_are_those_of_the_proxy() {
        let config = Config::of(&[]);
        assert_eq!(config.live.proxy.proxy_origin_connections, ORIGIN_CONNECTIONS_MAX);
        assert_eq!(config.fixed.proxy_spool_size.0, SPOOL_BYTES_MAX);
    }

    #[test]
    fn an_origin_is_a_server_without_a_path() {
        assert!("http://127.0.0.1:8080".parse::<Origin>().is_ok() && "unix:/a".parse::<Origin>().is_ok());
        assert!("http://a/b".parse::<Origin>().unwrap_err().contains("no path"));
        assert!("https://a".parse::<Origin>().is_ok() && "https://a:0".parse::<Origin>().is_err());
        assert!("http://127.0.0.1:0".parse::<Origin>().unwrap_err().contains("from 1 to 65535"));
    }

    #[test]
    fn a_forwarded_host_is_a_name_with_an_optional_port() {
        assert!("files.example".parse::<ForwardHost>().is_ok() && "a:81".parse::<ForwardHost>().is_ok());
        for bad in ["", "a/b", "http://a", "a b", "a?b", "u@a", "a:0"] {
            assert!(bad.parse::<ForwardHost>().is_err(), "{bad}");
        }
    }

    #[test]
    fn fields_are_removed_by_name_and_unusual_names_are_dropped_by_default() {
        let rules = |args: &[&str]| Config::of(args).live.proxy.field_rules();
        assert!(!rules(&[]).keeps_unusual_names && rules(&[]).removed.is_empty());
        let args = ["--proxy-field-names=any", "--proxy-remove-fields=X-Host,X-Original-URL"];
        assert!(rules(&args).keeps_unusual_names);
        assert_eq!(rules(&args).removed, ["X-Host", "X-Original-URL"]);
        assert!("X Host".parse::<FieldName>().is_err() && "".parse::<FieldName>().is_err());
    }

    #[test]
    fn an_origin_that_is_named_twice_is_found() {
        let twice = |args: &[&str]| Config::of(args).live.proxy.repeated_origin().map(Url::to_string);
        assert_eq!(twice(&["--proxy-origin=http://a,http://b,unix:/a"]), None);
        assert_eq!(twice(&["--proxy-origin=http://a,http://b,http://A:80"]).as_deref(), Some("http://A:80"));
    }

    #[test]
    fn origins_must_fit_the_channel() {
        let unfit = |args: &[&str]| Config::of(args).live.proxy.unfit_origin().is_some();
        let origin = "--proxy-origin=http://127.0.0.1:1,unix:/a";
        assert!(!unfit(&[origin]));
        assert!(unfit(&[origin, "--proxy-channel=tcp"]) && unfit(&[origin, "--proxy-channel=unix"]));
    }
}
