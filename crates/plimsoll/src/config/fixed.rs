//! Settings that are fixed until the server ends: addresses, engine, data folder and others.
//!
//! Reloadable settings are not here ([`super::live`] has them). Invariant: a reload changes none of these,
//! and reports the ones whose values differ.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Args};
use plimsoll_auth::directory::file_of;
use plimsoll_channel::limits::SLOTS_MAX;
use plimsoll_engine::{EngineKind, PerAddress, WhenFull};
use plimsoll_io::Address;
use plimsoll_wire::units::{DAY, Size, Time, size_within, time_within};

use super::acme::AcmeSettings;
use super::ftp::ftp_address;
use super::proxy::{CacheFolder, CertificateFile};
use super::server_command::ServerCommand;
use super::values::{
    AuthAt, Durability, LogFormat, Proxied, Relay, StoreAt, Threads, TlsVersion, engine_name, number_within,
};
use crate::log_file::Destination;

/// The placeholder for the data folder in the defaults below.
const DATA: &str = "DATA";
const DIRECTORY: &str = "sqlite:DATA/directory.sqlite";
const TRANSFER_LOG: &str = "DATA/transfers.jsonl";
const SECRET: &str = "DATA/secret";

/// The settings that are fixed until the server ends.
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct Fixed {
    /// Where to listen: IP:PORT, :PORT or localhost:PORT for loopback, or unix:PATH; several may be given
    #[arg(long, value_name = "ADDR", env = "PLIMSOLL_HTTP", default_value = "127.0.0.1:8080")]
    #[arg(value_delimiter = ',')]
    pub(crate) http: Vec<Address>,

    /// Where to listen for HTTPS, such as :8443 or 0.0.0.0:443; several may be given. Needs --certificate and
    /// --key, --acme, or --self-signed
    #[arg(long, value_name = "ADDR", env = "PLIMSOLL_HTTPS", value_delimiter = ',')]
    pub(crate) https: Vec<Address>,

    /// The oldest version of TLS that is accepted, by every listener and by tiers: 1.2, or 1.3 alone
    #[arg(
        long,
        value_name = "1.2|1.3",
        hide_possible_values = true,
        env = "PLIMSOLL_TLS_MIN_VERSION",
        default_value = "1.2"
    )]
    pub(crate) tls_min_version: TlsVersion,

    #[command(flatten)]
    pub(crate) acme: AcmeSettings,

    /// Where to listen for FTP, such as :2121 or 0.0.0.0:21; several may be given
    #[arg(long, value_name = "ADDR", env = "PLIMSOLL_FTP", value_delimiter = ',')]
    #[arg(value_parser = ftp_address)]
    pub(crate) ftp: Vec<SocketAddr>,

    /// Where to listen for FTP that begins with TLS (implicit), such as 0.0.0.0:990; several may be given. At
    /// --ftp, sessions start TLS by AUTH TLS. Needs --certificate and --key, or --self-signed
    #[arg(long, value_name = "ADDR", env = "PLIMSOLL_FTPS", value_delimiter = ',')]
    #[arg(value_parser = ftp_address)]
    pub(crate) ftps: Vec<SocketAddr>,

    /// Where to listen for classic, one connection for each request in lines of text, such as :9000;
    /// several may be given
    #[arg(long, value_name = "ADDR", env = "PLIMSOLL_CLASSIC", value_delimiter = ',')]
    pub(crate) classic: Vec<Address>,

    /// Where to listen for proxies on this machine that connect by shared memory: the path of a Unix socket;
    /// several may be given
    #[arg(long, value_name = "PATH", env = "PLIMSOLL_CHANNEL", value_delimiter = ',')]
    pub(crate) channel: Vec<PathBuf>,

    /// Memory of each of the two rings of a channel's connection, rounded up to a power of two
    #[arg(long, value_name = "SIZE", env = "PLIMSOLL_CHANNEL_RING", default_value = "64KiB")]
    #[arg(value_parser = size_within("4KiB", "4MiB"))]
    pub(crate) channel_ring: Size,

    /// Slots of each direction of a channel's connection: frames and open files that the other side has not
    /// taken yet; 1 to 64
    #[arg(long, value_name = "N", env = "PLIMSOLL_CHANNEL_SLOTS", default_value = "16")]
    #[arg(value_parser = number_within(1, SLOTS_MAX))]
    pub(crate) channel_slots: usize,

    /// Where to listen for operators: /metrics, /api/status, /healthz and /readyz, for every client;
    /// several may be given
    #[arg(long, value_name = "ADDR", env = "PLIMSOLL_METRICS", value_delimiter = ',')]
    pub(crate) metrics: Vec<Address>,

    /// The same over TLS, with the certificates of HTTPS, such as 10.0.0.5:9443; several may be given
    #[arg(long, value_name = "ADDR", env = "PLIMSOLL_METRICS_TLS", value_delimiter = ',')]
    pub(crate) metrics_tls: Vec<Address>,

    /// Listeners on which proxies send a header of the PROXY protocol, version 1 or 2, before anything else:
    /// http, ftp, classic, or all; without a value, all
    #[arg(long, value_name = "all|http|ftp|classic", env = "PLIMSOLL_PROXY_PROTOCOL", value_delimiter = ',')]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) proxy_protocol: Vec<Proxied>,

    /// The folder of everything that belongs to accounts
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_DATA", default_value = "./plimsoll-data")]
    pub(crate) data: PathBuf,

    /// Whether people have accounts; false serves sites and nothing else
    #[arg(long, value_name = "true|false", env = "PLIMSOLL_ACCOUNTS", default_value = "true")]
    #[arg(action = ArgAction::Set, hide_possible_values = true)]
    pub(crate) accounts: bool,

    /// Where accounts are served: embedded (by this server), or the URL of an authentication server:
    /// http://HOST:PORT or unix:PATH
    #[arg(long, value_name = "embedded|URL", env = "PLIMSOLL_AUTH", default_value = "embedded")]
    pub(crate) auth: AuthAt,

    /// Where files are kept: local (by this server, in its data folder), or the URL of a storage
    /// server: http://HOST:PORT or unix:PATH
    #[arg(long, value_name = "local|URL", env = "PLIMSOLL_STORE", default_value = "local")]
    pub(crate) store: StoreAt,

    /// How uploads go to a storage server: stream (as they arrive), or spool (onto this server's disk
    /// first, and sent on when complete)
    #[arg(
        long,
        value_name = "stream|spool",
        hide_possible_values = true,
        env = "PLIMSOLL_RELAY",
        default_value = "stream"
    )]
    pub(crate) relay: Relay,

    /// The file with the secret that this server shares with those of its tiers
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_SECRET_FILE", default_value = SECRET)]
    pub(crate) secret_file: PathBuf,

    /// The certificate of the authority that signs those of the tiers with https URLs, or their own, in PEM;
    /// or system: the authorities that this system trusts
    #[arg(long, value_name = "FILE|system", env = "PLIMSOLL_TIER_CA", default_value = "system")]
    pub(crate) tier_ca: CertificateFile,

    /// The certificate by which this server proves itself to its tiers, in PEM
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_TIER_CERTIFICATE", value_delimiter = ',')]
    pub(crate) tier_certificate: Vec<PathBuf>,

    /// The file with the private key of that certificate, in PEM and without a password
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_TIER_KEY", value_delimiter = ',')]
    pub(crate) tier_key: Vec<PathBuf>,

    /// Where accounts, sessions and shares are kept: sqlite:PATH,
    /// postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or redis://HOST/NUMBER
    // The value may contain a password.
    #[arg(long, value_name = "URL", env = "PLIMSOLL_DIRECTORY", default_value = DIRECTORY)]
    #[arg(hide_env_values = true)]
    pub(crate) directory: String,

    /// The file with the password for the URL of --directory, which then has none; or put the password into
    /// PLIMSOLL_DIRECTORY_PASSWORD
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_DIRECTORY_PASSWORD_FILE")]
    pub(crate) directory_password_file: Option<PathBuf>,

    /// When uploads are confirmed: full (once they survive a power cut) or none
    #[arg(
        long,
        value_name = "full|none",
        hide_possible_values = true,
        env = "PLIMSOLL_DURABILITY",
        default_value = "full"
    )]
    pub(crate) durability: Durability,

    /// The engine, which runs connections: auto, epoll (an event loop per core), uring (the same on
    /// io_uring), thread (a thread per connection), pool (a number of worker threads, and a queue) or
    /// process (a process per connection)
    #[arg(long, env = "PLIMSOLL_ENGINE", default_value = "auto")]
    #[arg(value_parser = engine_name(), hide_possible_values = true)]
    pub(crate) engine: EngineKind,

    /// Event loops of the engines epoll and uring, auto is one per core; workers of the engine pool, auto
    /// is 16 per core
    #[arg(long, value_name = "N", env = "PLIMSOLL_THREADS", default_value = "auto")]
    pub(crate) threads: Threads,

    /// How the engine pool treats new connections when all workers are busy and the queue is full: block
    /// (they wait) or refuse (they get a refusal, also after a second in the queue)
    #[arg(long, value_name = "block|refuse", env = "PLIMSOLL_QUEUE", default_value = "block")]
    pub(crate) queue: WhenFull,

    /// Connections that one address may have, an IPv6 address by its first 64 bits: auto (half of all, and
    /// a sixteenth while they run short), none for no bound, or a number
    #[arg(long, value_name = "COUNT", env = "PLIMSOLL_CONNECTIONS_PER_ADDRESS", default_value = "auto")]
    pub(crate) connections_per_address: PerAddress,

    /// Memory of the hot cache, for files that are ready to send, such as 64MiB; 0 caches none
    #[arg(long, value_name = "SIZE", env = "PLIMSOLL_HOT_BYTES", default_value = "64MiB")]
    #[arg(value_parser = size_within("0", "1TiB"))]
    pub(crate) hot_bytes: Size,

    /// Larger files that the hot cache may keep open; at most an eighth of the limit of open files
    #[arg(long, value_name = "COUNT", env = "PLIMSOLL_HOT_FILES", default_value = "1024")]
    pub(crate) hot_files: u64,

    /// How long a file's change by another program may go unnoticed; 0s checks at each request
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_HOT_TIME", default_value = "1s")]
    #[arg(value_parser = time_within("0s", DAY))]
    pub(crate) hot_time: Time,

    /// The folder of a proxy's cache, or off
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_PROXY_CACHE", default_value = "off", hide = true)]
    pub(crate) proxy_cache: CacheFolder,

    /// Bytes that a proxy's cache may have on disk
    #[arg(long, value_name = "SIZE", env = "PLIMSOLL_PROXY_CACHE_SIZE", default_value = "1GiB", hide = true)]
    #[arg(value_parser = size_within("1MiB", "1024TiB"))]
    pub(crate) proxy_cache_size: Size,

    /// Memory that a proxy's cache has for small responses
    #[arg(
        long,
        value_name = "SIZE",
        env = "PLIMSOLL_PROXY_CACHE_MEMORY",
        default_value = "64MiB",
        hide = true
    )]
    #[arg(value_parser = size_within("1MiB", "1TiB"))]
    pub(crate) proxy_cache_memory: Size,

    /// Whether bodies in a proxy's cache on disk have checksums, which are verified when they are read
    #[arg(
        long,
        value_name = "true|false",
        env = "PLIMSOLL_PROXY_CACHE_CHECKSUMS",
        default_value = "true",
        hide = true
    )]
    #[arg(action = ArgAction::Set, hide_possible_values = true)]
    pub(crate) proxy_cache_checksums: bool,

    /// The folder of files, without names, for responses that a proxy's clients take slowly
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_PROXY_SPOOL", default_value = "/var/tmp", hide = true)]
    pub(crate) proxy_spool: PathBuf,

    /// Bytes that these may have
    #[arg(long, value_name = "SIZE", env = "PLIMSOLL_PROXY_SPOOL_SIZE", default_value = "1GiB", hide = true)]
    #[arg(value_parser = size_within("0", "1024TiB"))]
    pub(crate) proxy_spool_size: Size,

    /// Read the sites' files before the first connection, as many as fit into the hot cache
    #[arg(long, value_name = "true|false", env = "PLIMSOLL_PREFETCH", default_value = "false")]
    #[arg(action = ArgAction::Set, hide_possible_values = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) prefetch: bool,

    /// How long open connections may continue after the first signal, such as 30s or 5m
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_GRACE", default_value = "30s")]
    #[arg(value_parser = time_within("0s", DAY), allow_hyphen_values = true)]
    pub(crate) grace: Time,

    /// Where requests are logged, in the common log format: - for standard output, off, or a file
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_ACCESS_LOG", default_value = "-")]
    pub(crate) access_log: Destination,

    /// Where transfers of files are logged, one JSON object per line: - for standard output, off, or a file
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_TRANSFER_LOG", default_value = TRANSFER_LOG)]
    pub(crate) transfer_log: Destination,

    /// Where uploads and downloads are logged in the xferlog format: - for standard output, off, or a file
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_XFERLOG", default_value = "off")]
    pub(crate) xferlog: Destination,

    /// The format of the server's own log on standard error: text, or json (an object per line)
    #[arg(
        long,
        value_name = "text|json",
        hide_possible_values = true,
        env = "PLIMSOLL_LOG_FORMAT",
        default_value = "text"
    )]
    pub(crate) log_format: LogFormat,

    /// Sync each file and folder by itself, to measure what grouped syncs save: for a laboratory only
    #[arg(long, env = "PLIMSOLL_LAB_SYNC_EACH", default_value = "false", hide = true)]
    #[arg(action = ArgAction::Set)]
    pub(crate) lab_sync_each: bool,

    /// The command that runs the server, which no setting says.
    #[arg(skip)]
    pub(crate) command: ServerCommand,

    /// Hold transfers over FTP until there are so many, and begin them together: for a laboratory only
    #[arg(long, value_name = "COUNT", env = "PLIMSOLL_LAB_HOLD_TRANSFERS", default_value = "0", hide = true)]
    pub(crate) lab_hold_transfers: usize,
}

impl Fixed {
    /// Replaces the placeholder in the defaults by the data folder.
    pub(super) fn settle(&mut self) {
        if self.directory == DIRECTORY {
            self.directory = DIRECTORY.replace(DATA, &self.data.to_string_lossy());
        }
        if self.secret_file == Path::new(SECRET) {
            self.secret_file = self.data.join("secret");
        }
        self.acme.settle(&self.data);
        if self.transfer_log == Destination::File(TRANSFER_LOG.into()) {
            let name = Path::new(TRANSFER_LOG).file_name().unwrap_or_default();
            let in_data = Destination::File(self.data.join(name));
            // Without accounts there is no data folder, and none is created only for a log.
            self.transfer_log = if self.accounts { in_data } else { Destination::Off };
        }
    }

    /// Returns whether this is a proxy (`plimsoll proxy`).
    pub(crate) fn is_proxy(&self) -> bool {
        self.command == ServerCommand::Proxy
    }

    /// Returns the settings of ACME if this server orders its certificate. The other commands do not, and may
    /// share a file with it.
    pub(crate) fn acme(&self) -> Option<&AcmeSettings> {
        let orders = self.command == ServerCommand::Serve && !self.acme.acme.is_empty();
        orders.then_some(&self.acme)
    }

    /// Returns whether the directory of accounts is a file in the data folder.
    pub(crate) fn has_directory_in_data(&self) -> bool {
        file_of(&self.directory).is_some_and(|file| file.parent() == Some(self.data.as_path()))
    }

    /// Returns whether clients can perform operations: with an account, or as guests over FTP.
    pub(crate) fn has_operations(&self) -> bool {
        self.accounts || self.has_ftp()
    }

    /// Returns whether FTP is served, in clear or encrypted.
    pub(crate) fn has_ftp(&self) -> bool {
        self.ftp_addresses().next().is_some()
    }

    /// Returns the addresses of FTP, in clear or encrypted.
    pub(crate) fn ftp_addresses(&self) -> impl Iterator<Item = &SocketAddr> {
        self.ftp.iter().chain(&self.ftps)
    }

    /// Returns whether only programs on this machine can connect to the protocols.
    pub(crate) fn is_local(&self) -> bool {
        let is_local = |at: &Address| match at {
            Address::Ip(at) => at.ip().is_loopback(),
            Address::Unix(_) => true,
        };
        self.http.iter().chain(&self.https).chain(&self.classic).all(is_local)
            && self.ftp_addresses().all(|at| at.ip().is_loopback())
    }

    /// Returns whether this process caches files. A connection process would cache them only for itself.
    pub(crate) fn keeps_hot_files(&self) -> bool {
        self.hot_bytes.0 > 0 && !self.engine.forks()
    }
}
