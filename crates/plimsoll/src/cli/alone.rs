//! The life of a server that is one tier alone: from its settings to its end.
//!
//! It is not the assembly of the parts ([`crate::assemble`]). What must hold: it never starts without a
//! secret; everything that can be wrong with the settings is found before the first connection.

use std::io::Write as _;

use anyhow::Context as _;
use plimsoll_auth::Secret;
use plimsoll_engine::Kind;

use crate::assemble::Server;
use crate::cli::WrongUsage;
use crate::cli::check::{CheckFlags, Plan};
use crate::config::{Config, Loaded, unknown_variables};
use crate::exposure;
use crate::forked::{self, Role};
use crate::listening::{Addresses, Listening};
use crate::operator_log::{OperatorLog, warn_of_lab};
use crate::reloading::{self, Reloading};
use crate::stopping;
use crate::tiers::read_secret;

/// Fronts have many connections, which stay or carry what is slow, and its workers would be all taken.
const NO_POOL: &str = "a pool of workers is soon taken by the connections that fronts keep; choose \
                       --engine epoll, uring or thread";

/// A process for each connection would hand on what it is there for.
const NO_PROCESS: &str = "a storage server for whose connections there is a process each would hand on all \
                          bytes of files; choose --engine epoll, uring or thread";

/// What one tier has that another has not.
pub(super) struct Alone {
    /// Whether it only checks the settings.
    pub(super) checking: CheckFlags,
    /// What a check prints.
    pub(super) plan: fn(&Config) -> Plan,
    /// Opens what it serves.
    pub(super) open: fn(&Config, Secret) -> anyhow::Result<Server>,
    /// What it is where each connection is a process; none if that cannot be.
    pub(super) forked: Option<fn(Secret) -> Role>,
    /// What it says when it has started.
    pub(super) greeting: fn(&Config, &Addresses) -> String,
}

impl Alone {
    /// Lives as these settings have it.
    pub(super) fn live(&self, loaded: &Loaded) -> anyhow::Result<()> {
        let config = &loaded.config;
        if config.fixed.engine == Kind::Process && !self.checking.check {
            return self.live_forked(loaded);
        }
        let log = OperatorLog::start(config.fixed.log_format, config.live.log_level);
        let log = log.context("cannot start the log")?;
        plimsoll_engine::check_kernel()?;
        config.fixed.engine.check()?;
        match config.fixed.engine {
            Kind::Pool => return Err(WrongUsage(NO_POOL.to_owned()).into()),
            Kind::Process if self.forked.is_none() => return Err(no_process()),
            Kind::Process | Kind::Thread | Kind::Epoll | Kind::Uring => {}
        }
        let secret = read_secret(&config.fixed)?;
        if self.checking.check {
            return self.checking.report(config, (self.plan)(config));
        }
        let listening = Listening::at(config)?;
        let server = (self.open)(config, secret)?;
        let addresses = listening.addresses();
        stopping::watch(server.stop(), &addresses.http).context("cannot watch for signals")?;
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
    /// The same, with a process for each connection.
    fn live_forked(&self, loaded: &Loaded) -> anyhow::Result<()> {
        let role = self.forked.ok_or_else(no_process)?(read_secret(&loaded.config.fixed)?);
        forked::serve(loaded.clone(), role, |config, addresses| self.greet(config, addresses))
    }

    fn greet(&self, config: &Config, addresses: &Addresses) -> anyhow::Result<()> {
        warn(config);
        say(&(self.greeting)(config, addresses))
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

fn say(text: &str) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot write to standard output")
}
