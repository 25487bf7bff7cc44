//! `plimsoll proxy`: the arguments and the life cycle of a reverse proxy.
//!
//! It does not assemble the parts ([`crate::assemble`] does). Invariants: all errors of the configuration are
//! found before the first connection. It serves no files and no accounts, even if a configuration file names
//! some.

use std::ffi::OsString;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use plimsoll_channel::Settings as ChannelSettings;
use plimsoll_cli::WrongUsage;
use plimsoll_io::{Address, Network};

use crate::assemble::Server;
use crate::cli::check::{CheckFlags, Plan};
use crate::config::{
    Channel, Config, ENGINES, ForwardHost, HeaderVersion, Loaded, Origin, ServerCommand, TlsVersion,
    unknown_variables,
};
use crate::exposure;
use crate::forked::{self, Role};
use crate::listening::{Addresses, Listening};
use crate::locked_folder::check_cache_folder;
use crate::operator_log::{OperatorLog, warn_of_lab};
use crate::proxying;
use crate::reloading::{self, Reloading};
use crate::stopping;

/// The flags that turn off the services of `plimsoll serve` that a proxy lacks.
const APART: [&str; 5] =
    ["--accounts=false", "--transfer-log=off", "--xferlog=off", "--hot-bytes=0", "--prefetch=false"];

/// The default address. It differs from that of `plimsoll serve`, which may be the origin.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);

/// Run a reverse proxy in front of HTTP servers
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll proxy --origin http://127.0.0.1:8080
  plimsoll proxy --listen :8000 --origin http://10.0.0.5:8080 --origin http://10.0.0.6:8080
  plimsoll proxy --listen 0.0.0.0:80 --origin unix:/run/plimsoll/http.sock --metrics 127.0.0.1:9100
  plimsoll proxy --listen-tls :8443 --self-signed --origin http://127.0.0.1:8080
  plimsoll proxy --origin https://files.example:8443 --origin-ca ca.pem
  plimsoll proxy --origin http://127.0.0.1:8080 --forward files.example --trusted-proxy 10.0.0.0/8
  plimsoll proxy --config /etc/plimsoll/plimsoll.toml

Proxy and origins start in either order. SIGHUP reads the configuration again for new connections.
Limits and logs are those of plimsoll serve, in the file or the environment; see docs/reverse-proxy.md.")]
pub(crate) struct ProxyServer {
    /// Where to listen: IP:PORT, :PORT for loopback, or unix:PATH; several may be given;
    /// default: 127.0.0.1:8000
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    listen: Vec<Address>,

    /// Where to listen for clients over TLS: IP:PORT, or :PORT for loopback; several may be given. Needs
    /// --certificate and --key, or --self-signed
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    listen_tls: Vec<Address>,

    /// A file with a certificate and those that vouch for it, in PEM, as for plimsoll serve; several may be
    /// given
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    certificate: Vec<PathBuf>,

    /// The file with the private key of a certificate; one for each certificate, in the same order
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    key: Vec<PathBuf>,

    /// Make a certificate for development, as plimsoll serve does
    #[arg(long)]
    self_signed: bool,

    /// The server behind the proxy: https://HOST:PORT, http://HOST:PORT or unix:PATH; several with the same
    /// content may be given
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    origin: Vec<Origin>,

    /// The certificate in PEM of the authority that signs those of https origins, or their own; default: the
    /// authorities that this system trusts
    #[arg(long, value_name = "FILE")]
    origin_ca: Option<PathBuf>,

    /// The channel to the origins, which their URLs must fit: auto (by the URLs), tcp, unix, shm (shared
    /// memory to --channel of a plimsoll server, which passes open files) or shm-copy
    #[arg(long, value_name = "auto|tcp|unix|shm|shm-copy", hide_possible_values = true)]
    channel: Option<Channel>,

    /// Frames and open files of an origin, in each connection by shared memory, that this proxy has not taken
    /// yet: 1 to 64; default: 16. The origin has a limit of its own
    #[arg(long, value_name = "N")]
    channel_slots: Option<String>,

    /// A host that requests with a whole URL as target may name: HOST or HOST:PORT; several may be given
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    forward: Vec<ForwardHost>,

    /// Where to listen for operators: /metrics, /api/status, /healthz and /readyz, for every client
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    metrics: Vec<Address>,

    /// The same over TLS, with the certificates of --listen-tls; several may be given
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    metrics_tls: Vec<Address>,

    /// The oldest version of TLS that clients may use: 1.2, or 1.3 alone
    #[arg(long, value_name = "1.2|1.3", hide_possible_values = true)]
    tls_min_version: Option<TlsVersion>,

    /// The folder of the cache; without it, nothing is cached
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    /// Bytes that the cache may have in that folder, such as 10GiB; default: 1GiB
    #[arg(long, value_name = "SIZE", requires = "cache")]
    cache_size: Option<String>,

    /// A proxy in front of this one, trusted to name its clients: an address, a network such as 10.0.0.0/8,
    /// or unix; several may be given
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    trusted_proxy: Vec<Network>,

    /// Expect a header of the PROXY protocol, version 1 or 2, from the trusted proxies, or from every peer if
    /// there are none
    #[arg(long)]
    proxy_protocol: bool,

    /// Begin each connection to an origin with a header of the PROXY protocol: off, v1 or v2
    #[arg(long, value_name = "off|v1|v2", hide_possible_values = true)]
    send_proxy_protocol: Option<HeaderVersion>,

    /// The engine that runs connections, as for plimsoll serve
    #[arg(long, value_parser = PossibleValuesParser::new(ENGINES), hide_possible_values = true)]
    engine: Option<String>,

    /// Event loops of the engines epoll and uring, or workers of the engine pool
    #[arg(long, value_name = "N")]
    threads: Option<String>,

    /// How the engine pool treats new connections when all workers are busy: block or refuse
    #[arg(long, value_name = "block|refuse")]
    queue: Option<String>,

    /// Where requests are logged, in the common log format: - for standard output, off, or a file
    #[arg(long, value_name = "FILE")]
    access_log: Option<String>,

    /// How long open connections may continue after the first signal, such as 30s or 5m
    #[arg(long, value_name = "TIME")]
    grace: Option<String>,

    /// A file of settings in TOML, as for plimsoll serve; the table proxy has the origins
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_CONFIG")]
    config: Option<PathBuf>,

    #[command(flatten)]
    checking: CheckFlags,
}

impl ProxyServer {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let loaded = Loaded::of(ServerCommand::Proxy, self.flags(), self.config.clone(), of_proxy)?;
        let config = &loaded.config;
        if config.fixed.proxy_cache.0.is_some() && config.fixed.engine.forks() {
            const ADVICE: &str = "the engine process has no cache, because its processes share no memory; \
                                  choose another engine, or leave out --cache";
            return Err(WrongUsage(ADVICE.to_owned()).into());
        }
        if config.fixed.engine.forks() && !self.checking.check {
            proxying::settings(config, &ChannelSettings::default(), None)?;
            return forked::serve(loaded, Role::Front, greet);
        }
        let log = OperatorLog::start(config.fixed.log_format, config.live.log_level);
        let log = log.context("cannot start the log")?;
        plimsoll_engine::check_kernel()?;
        config.fixed.engine.check()?;
        proxying::settings(config, &ChannelSettings::default(), None)?;
        if self.checking.check {
            config.fixed.access_log.check_as("access-log")?;
            config.fixed.proxy_cache.0.as_deref().map(check_cache_folder).transpose()?;
            return self.checking.report(config, plan(config));
        }
        let server = Server::new(config, Vec::new())?;
        let listening = Listening::at(config)?;
        let addresses = listening.addresses();
        stopping::watch(server.stop(), &addresses).context("cannot watch for signals")?;
        let (parts, level) = (Box::new(server.reloadable()), log.level());
        let status = reloading::status("forwarding", &addresses);
        Reloading { loaded: loaded.clone(), parts, level, status }.watch(server.stop())?;
        greet(config, &addresses)?;
        let served = server.serve(listening).context("the server ended early");
        log.finish();
        served
    }

    /// Returns the flags of `plimsoll serve` with the same effect.
    fn flags(&self) -> Vec<OsString> {
        let mut flags: Vec<String> = APART.map(str::to_owned).to_vec();
        flags.extend(self.listen.iter().map(|at| format!("--http={at}")));
        flags.extend(self.listen_tls.iter().map(|at| format!("--https={at}")));
        flags.extend(self.certificate.iter().map(|file| format!("--certificate={}", file.display())));
        flags.extend(self.key.iter().map(|file| format!("--key={}", file.display())));
        flags.extend(self.self_signed.then(|| "--self-signed=true".to_owned()));
        flags.extend(self.origin.iter().map(|origin| format!("--proxy-origin={}", origin.0)));
        flags.extend(self.origin_ca.iter().map(|file| format!("--proxy-origin-ca={}", file.display())));
        flags.extend(self.channel.map(|channel| format!("--proxy-channel={channel}")));
        flags.extend(self.forward.iter().map(|host| format!("--proxy-forward={}", host.host)));
        flags.extend(self.metrics.iter().map(|at| format!("--metrics={at}")));
        flags.extend(self.metrics_tls.iter().map(|at| format!("--metrics-tls={at}")));
        flags.extend(self.tls_min_version.map(|version| format!("--tls-min-version={version}")));
        flags.extend(self.trusted_proxy.iter().map(|network| format!("--trusted-proxy={network}")));
        flags.extend(self.proxy_protocol.then(|| "--proxy-protocol=http".to_owned()));
        flags.extend(self.send_proxy_protocol.map(|version| format!("--proxy-header={version}")));
        flags.extend(self.cache.iter().map(|folder| format!("--proxy-cache={}", folder.display())));
        let given = [
            ("--engine", &self.engine),
            ("--threads", &self.threads),
            ("--queue", &self.queue),
            ("--access-log", &self.access_log),
            ("--grace", &self.grace),
            ("--proxy-cache-size", &self.cache_size),
            ("--channel-slots", &self.channel_slots),
        ];
        flags.extend(
            given.into_iter().filter_map(|(flag, value)| Some(format!("{flag}={}", value.as_ref()?))),
        );
        flags.into_iter().map(OsString::from).collect()
    }
}

/// Adapts the settings of `plimsoll serve` to a proxy.
fn of_proxy(config: &mut Config, is_given: &dyn Fn(&str) -> bool) {
    let Config { fixed, live } = config;
    if !is_given("http") {
        fixed.http = vec![Address::Ip(LISTEN)];
    }
    fixed.ftp.clear();
    live.ftp.ftp_guests = false;
    fixed.classic.clear();
    live.site.clear();
}

fn plan(config: &Config) -> Plan {
    let (fixed, live) = (&config.fixed, &config.live);
    let listen = Addresses::wanted(config).urls().into_iter().map(|url| ("listen", url));
    let origins = live.proxy.proxy_origin.iter().map(|origin| ("use", format!("the origin {}", origin.0)));
    let forward = live.proxy.proxy_forward.iter().map(|host| ("forward", format!("to {}", host.host)));
    let run = format!("engine {}, grace {}", fixed.engine, fixed.grace);
    let cache = config.fixed.proxy_cache.0.as_ref();
    let cache = cache.map(|folder| ("cache", format!("{} in {}", fixed.proxy_cache_size, folder.display())));
    let rest = [("run", run), ("log", format!("requests {}", fixed.access_log))];
    listen.chain(origins).chain(forward).chain(cache).chain(rest).collect()
}

fn greet(config: &Config, addresses: &Addresses) -> anyhow::Result<()> {
    warn_of_lab(&config.lab());
    exposure::warn(config);
    for variable in unknown_variables() {
        tracing::warn!(variable, "a variable of the environment is ignored");
    }
    let text = greeting(config, addresses);
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot write to standard output")
}

fn greeting(config: &Config, addresses: &Addresses) -> String {
    let (version, engine) = (env!("CARGO_PKG_VERSION"), config.fixed.engine);
    let origins =
        config.live.proxy.proxy_origin.iter().map(|origin| format!("  {:<24} {}\n", "origin", origin.0));
    let urls = addresses.urls().join("\n  ");
    let first = addresses.urls().into_iter().next().unwrap_or_default();
    let try_it = if first.starts_with("http") { format!("\nTry it: curl {first}/\n") } else { String::new() };
    format!(
        "plimsoll {version} forwards, engine {engine}\n{}  {urls}\n{try_it}To end: SIGTERM.\n",
        origins.collect::<String>(),
    )
}
