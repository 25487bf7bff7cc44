//! `plimsoll auth`: the arguments and the greeting of an authentication server.
//!
//! [`super::alone`] runs the server, not this module. Invariants: it never starts without a secret. It
//! answers auth requests and has no other service, even if a configuration file enables one.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use plimsoll_auth::Secret;
use plimsoll_auth::directory::without_password;
use plimsoll_io::Address;

use crate::assemble::Server;
use crate::cli::alone::Alone;
use crate::cli::check::{CheckFlags, Plan};
use crate::cli::tier_tls::TierTls;
use crate::config::{Config, ENGINES, Loaded, ServerCommand, SignUp};
use crate::forked::Role;
use crate::listening::Addresses;

/// The flags that turn off the services of `plimsoll serve` that an authentication server lacks.
const APART: [&str; 5] =
    ["--accounts=true", "--access-log=off", "--transfer-log=off", "--xferlog=off", "--hot-bytes=0"];

/// Run an authentication server, which serves the accounts of remote fronts
#[derive(Args)]
#[command(after_help = "Examples:
  head -c 32 /dev/urandom | base64 > secret && chmod 600 secret
  plimsoll auth --secret-file secret --data ./accounts
  plimsoll serve --auth http://127.0.0.1:8070 --secret-file secret --data ./files
  plimsoll auth --listen unix:/run/plimsoll/auth.sock --secret-file secret
  plimsoll auth --listen 10.0.0.5:8070 --data /srv/accounts --secret-file /etc/plimsoll/secret \\
    --certificate auth.pem --key auth.key --client-ca ca.pem

Accounts are added where the directory is: plimsoll account add alice --data DIR
Other settings are those of plimsoll serve, in the file or the environment; see docs/tiers.md.")]
pub(crate) struct AuthServer {
    /// Where to listen: IP:PORT, :PORT for loopback, or unix:PATH; several may be given
    #[arg(long, value_name = "ADDR", value_delimiter = ',', default_value = "127.0.0.1:8070")]
    listen: Vec<Address>,

    #[command(flatten)]
    tls: TierTls,

    /// The file with the secret that this server and its fronts share; default: DATA/secret
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,

    /// Where accounts, sessions and shares are kept; default: by the configuration, else in the data folder
    #[arg(long, value_name = "URL")]
    directory: Option<String>,

    /// The file with the password for the URL of --directory; default: by the configuration
    #[arg(long, value_name = "FILE")]
    directory_password_file: Option<PathBuf>,

    /// The folder of a directory that is a file; a front or a storage server needs another one
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

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

impl AuthServer {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let loaded = Loaded::of(ServerCommand::Auth, self.flags(), self.config.clone(), of_auth)?;
        let forked = Some(Role::Auth as fn(Secret) -> Role);
        Alone { checking: self.checking, plan, open: Server::of_auth, forked, greeting }.live(&loaded)
    }

    /// Returns the flags of `plimsoll serve` with the same effect.
    fn flags(&self) -> Vec<OsString> {
        let given = [
            ("--secret-file=", self.secret_file.clone().map(OsString::from)),
            ("--directory=", self.directory.clone().map(OsString::from)),
            ("--directory-password-file=", self.directory_password_file.clone().map(OsString::from)),
            ("--data=", self.data.clone().map(OsString::from)),
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
fn of_auth(config: &mut Config, is_given: &dyn Fn(&str) -> bool) {
    config.of_tier();
    // Each front has its own sign-up setting. This server closes sign-up for all fronts only if its
    // settings say so.
    if !is_given("signup") {
        config.live.signup = SignUp::Open;
    }
}

fn plan(config: &Config) -> Plan {
    let fixed = &config.fixed;
    let listen = fixed.http.iter().chain(&fixed.https).map(|at| ("listen", at.to_string()));
    let directory = without_password(&config.fixed.directory);
    let engine = config.fixed.engine;
    listen
        .chain([("keep", format!("accounts in {directory}")), ("run", format!("engine {engine}"))])
        .collect()
}

fn greeting(config: &Config, addresses: &Addresses) -> String {
    let (version, engine) = (env!("CARGO_PKG_VERSION"), config.fixed.engine);
    let (directory, urls) = (without_password(&config.fixed.directory), addresses.urls());
    let first = urls.first().map_or("", String::as_str);
    format!(
        "plimsoll {version} answers for accounts, engine {engine}\n  {:<24} {directory}\n  {}\n\n\
         A front asks it: plimsoll serve --auth {first} --secret-file FILE\nTo end: SIGTERM.\n",
        "accounts",
        urls.join("\n  "),
    )
}
