//! Runs a server of a single tier, from its settings to its end.
//!
//! It does not assemble the parts ([`crate::assemble`] does). Invariants: the server never starts without a
//! secret. All errors of the settings are found before the first connection.

use std::io::Write as _;

use anyhow::Context as _;
use plimsoll_auth::Secret;
use plimsoll_cli::WrongUsage;
use plimsoll_engine::EngineKind;

use crate::assemble::Server;
use crate::cli::check::{CheckFlags, Plan};
use crate::config::{Config, Loaded, unknown_variables};
use crate::encryption;
use crate::exposure;
use crate::forked::{self, Role};
use crate::listening::{Addresses, Listening};
use crate::operator_log::{OperatorLog, warn_of_lab};
use crate::reloading::{self, Reloading};
use crate::stopping;
use crate::tiers::read_secret;

/// The engine `pool` is refused, because fronts keep many connections open or use them for slow transfers.
const NO_POOL: &str = "a pool of workers is soon taken by the connections that fronts keep; choose \
                       --engine epoll, uring or thread";

/// Under the engine `process`, each connection process would forward all file bytes to the main process.
const NO_PROCESS: &str = "a storage server for whose connections there is a process each would hand on all \
                          bytes of files; choose --engine epoll, uring or thread";

/// The differences between the servers of single tiers.
pub(super) struct Alone {
    /// The flags of `--check`.
    pub(super) checking: CheckFlags,
    /// Returns the steps that a check prints.
    pub(super) plan: fn(&Config) -> Plan,
    /// Opens the server.
    pub(super) open: fn(&Config, Secret) -> anyhow::Result<Server>,
    /// Returns the role under the engine `process`; `None` if the tier does not support it.
    pub(super) forked: Option<fn(Secret) -> Role>,
    /// Returns the text that the server prints when it has started.
    pub(super) greeting: fn(&Config, &Addresses) -> String,
}

impl Alone {
    /// Runs the server by these settings, or only checks them.
    pub(super) fn live(&self, loaded: &Loaded) -> anyhow::Result<()> {
        let config = &loaded.config;
        if config.fixed.engine.forks() && !self.checking.check {
            return self.live_forked(loaded);
        }
        let log = OperatorLog::start(config.fixed.log_format, config.live.log_level);
        let log = log.context("cannot start the log")?;
        plimsoll_engine::check_kernel()?;
        config.fixed.engine.check()?;
        if config.fixed.engine == EngineKind::Pool {
            return Err(WrongUsage(NO_POOL.to_owned()).into());
        }
        if config.fixed.engine.forks() && self.forked.is_none() {
            return Err(no_process());
        }
        encryption::check(config)?;
        let secret = read_secret(&config.fixed)?;
        if self.checking.check {
            return self.checking.report(config, (self.plan)(config));
        }
        let listening = Listening::at(config)?;
        let server = (self.open)(config, secret)?;
        let addresses = listening.addresses();
        stopping::watch(server.stop(), &addresses).context("cannot watch for signals")?;
        let (parts, level) = (Box::new(server.reloadable()), log.level());
        let status = reloading::status("answering", &addresses);
        Reloading { loaded: loaded.clone(), parts, level, status }.watch(server.stop())?;
        self.greet(config, &addresses)?;
        let served = server.serve(listening).context("the server ended early");
        log.finish();
        served
    }
}

impl Alone {
    /// Like [`Alone::live`], under the engine `process`.
    fn live_forked(&self, loaded: &Loaded) -> anyhow::Result<()> {
        let role = self.forked.ok_or_else(no_process)?(read_secret(&loaded.config.fixed)?);
        forked::serve(loaded.clone(), role, |config, addresses| self.greet(config, addresses))
    }

    fn greet(&self, config: &Config, addresses: &Addresses) -> anyhow::Result<()> {
        warn(config);
        print_greeting(&(self.greeting)(config, addresses))
    }
}

fn no_process() -> anyhow::Error {
    WrongUsage(NO_PROCESS.to_owned()).into()
}

fn warn(config: &Config) {
    warn_of_lab(&config.lab());
    exposure::warn(config);
    for variable in unknown_variables() {
        tracing::warn!(variable, "a variable of the environment is ignored");
    }
}

fn print_greeting(text: &str) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot write to standard output")
}
