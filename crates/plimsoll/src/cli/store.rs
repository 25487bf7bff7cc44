//! `plimsoll store`: the arguments and the greeting of a storage server.
//!
//! [`super::alone`] runs the server, not this module. Invariants: it never starts without a secret. It
//! stores the files of accounts and has no other service, even if a configuration file enables one.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use plimsoll_io::Address;

use crate::assemble::Server;
use crate::cli::alone::Alone;
use crate::cli::check::{CheckFlags, Plan};
use crate::cli::tier_tls::TierTls;
use crate::config::{AuthAt, Config, ENGINES, Loaded, ServerCommand, StoreAt};
use crate::listening::Addresses;

/// The flags that turn off the services of `plimsoll serve` that a storage server lacks. It has the
/// accounts' files, and so their data folder.
const APART: [&str; 4] = ["--accounts=true", "--access-log=off", "--transfer-log=off", "--xferlog=off"];

/// Run a storage server, which keeps the files of remote fronts
#[derive(Args)]
#[command(after_help = "Examples:
  head -c 32 /dev/urandom | base64 > secret && chmod 600 secret
  plimsoll store --secret-file secret --data ./files
  plimsoll serve --store http://127.0.0.1:8090 --secret-file secret
  plimsoll store --listen unix:/run/plimsoll/store.sock --secret-file secret --data ./files
  plimsoll store --listen 10.0.0.6:8090 --data /srv/files --secret-file /etc/plimsoll/secret \\
    --certificate store.pem --key store.key --client-ca ca.pem

Other settings are those of plimsoll serve, in the file or the environment; see docs/tiers.md.")]
pub(crate) struct StoreServer {
    /// Where to listen: IP:PORT, :PORT for loopback, or unix:PATH; several may be given
    #[arg(long, value_name = "ADDR", value_delimiter = ',', default_value = "127.0.0.1:8090")]
    listen: Vec<Address>,

    #[command(flatten)]
    tls: TierTls,

    /// The folder that the files of accounts are kept in
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// The file with the secret that this server and its fronts share; default: DATA/secret
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,

    /// The condition for confirming an upload, as for plimsoll serve
    #[arg(long, value_name = "full|none")]
    durability: Option<String>,

    /// The engine that runs connections, as for plimsoll serve
    #[arg(long, value_parser = PossibleValuesParser::new(ENGINES), hide_possible_values = true)]
    engine: Option<String>,

    /// Event loops of the engines epoll and uring
    #[arg(long, value_name = "N")]
    threads: Option<String>,

    /// A file of settings in TOML, as for plimsoll serve
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_CONFIG")]
    config: Option<PathBuf>,

    #[command(flatten)]
    checking: CheckFlags,
}

impl StoreServer {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let loaded = Loaded::of(ServerCommand::Store, self.flags(), self.config.clone(), of_store)?;
        let checking = self.checking;
        Alone { checking, plan, open: Server::of_store, forked: None, greeting }.live(&loaded)
    }

    /// Returns the flags of `plimsoll serve` with the same effect.
    fn flags(&self) -> Vec<OsString> {
        let given = [
            ("--secret-file=", self.secret_file.clone().map(OsString::from)),
            ("--data=", self.data.clone().map(OsString::from)),
            ("--durability=", self.durability.clone().map(OsString::from)),
            ("--engine=", self.engine.clone().map(OsString::from)),
            ("--threads=", self.threads.clone().map(OsString::from)),
        ];
        let given = self.tls.flags().into_iter().chain(given).filter_map(|(name, value)| {
            let mut flag = OsString::from(name);
            flag.push(value?);
            Some(flag)
        });
        let listen = self.listen.iter().map(|at| format!("--http={at}").into());
        APART.into_iter().map(OsString::from).chain(listen).chain(given).collect()
    }
}

/// Adapts the settings of `plimsoll serve` to this server.
fn of_store(config: &mut Config, _: &dyn Fn(&str) -> bool) {
    config.of_tier();
    let Config { fixed, live } = config;
    (fixed.auth, fixed.store) = (AuthAt::Embedded, StoreAt::Local);
    live.of_fronts();
}

fn plan(config: &Config) -> Plan {
    let fixed = &config.fixed;
    let listen = fixed.http.iter().chain(&fixed.https).map(|at| ("listen", at.to_string()));
    let (data, durability) = (config.fixed.data.display(), config.fixed.durability);
    let engine = config.fixed.engine;
    listen
        .chain([
            ("keep", format!("files in {data}, durability {durability}")),
            ("run", format!("engine {engine}")),
        ])
        .collect()
}

fn greeting(config: &Config, addresses: &Addresses) -> String {
    let (version, engine) = (env!("CARGO_PKG_VERSION"), config.fixed.engine);
    let (data, urls) = (config.fixed.data.display(), addresses.urls());
    let first = urls.first().map_or("", String::as_str);
    format!(
        "plimsoll {version} keeps files, engine {engine}\n  {:<24} {data}\n  {}\n\n\
         A front asks it: plimsoll serve --store {first} --secret-file FILE\nTo end: SIGTERM.\n",
        "files",
        urls.join("\n  "),
    )
}
