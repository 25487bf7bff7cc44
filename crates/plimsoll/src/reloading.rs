//! Handles SIGHUP: reloads the configuration and opens the log files again. Polls the files of certificates.
//!
//! It does not know the effects of a configuration ([`crate::assemble`] does). Invariants: a wrong
//! configuration changes nothing, and its error names the line. Open connections are not affected.

use std::io::{self, ErrorKind, IsTerminal as _, Read as _};
use std::os::unix::net::UnixStream;

use anyhow::Context as _;
use plimsoll_io::Stop;
use signal_hook::consts::SIGHUP;
use signal_hook::low_level::pipe;

use crate::config::{Config, Loaded};
use crate::limits::CERTIFICATE_POLL_TIME;
use crate::listening::Addresses;
use crate::operator_log::{Level, warn_of_lab};
use crate::service_manager;

/// The replaceable parts of a running server.
pub(crate) trait Replace: Send {
    /// Applies the reloadable settings, all of them or none.
    fn apply(&self, config: &Config) -> anyhow::Result<()>;

    /// Uses the certificates again if their files have changed; returns whether the present ones can be used.
    fn refresh_certificates(&self, config: &Config) -> bool;

    /// Opens the log files again, which log rotation may have renamed.
    fn reopen_logs(&self);
}

/// A running server, and its initial configuration.
pub(crate) struct Reloading {
    pub(crate) loaded: Loaded,
    pub(crate) parts: Box<dyn Replace>,
    pub(crate) level: Level,
    /// The status text for the service manager.
    pub(crate) status: String,
}

/// Returns the status text for the service manager: the service and its addresses.
pub(crate) fn status(does: &str, addresses: &Addresses) -> String {
    format!("{does} at {}", addresses.urls().join(", "))
}

impl Reloading {
    /// Watches for the signal on its own thread, then notifies the service manager that the server is
    /// ready. The manager may order a reload from then on. A closed terminal also sends SIGHUP: a server
    /// that was started on it stops.
    pub(crate) fn watch(self, stop: &Stop) -> anyhow::Result<()> {
        let status = self.status.clone();
        self.watch_on_thread(stop.clone()).context("cannot watch for signals")?;
        service_manager::ready(&status);
        Ok(())
    }

    fn watch_on_thread(mut self, stop: Stop) -> io::Result<()> {
        let (mut signals, signalled) = UnixStream::pair()?;
        pipe::register(SIGHUP, signalled)?;
        signals.set_read_timeout(Some(CERTIFICATE_POLL_TIME))?;
        let on_terminal = io::stdin().is_terminal();
        std::thread::Builder::new().name("reload".to_owned()).spawn(move || {
            loop {
                // A byte for each signal. Several that come together are one order.
                match signals.read(&mut [0; 64]) {
                    Ok(0) => return,
                    Ok(_) if on_terminal && !io::stdin().is_terminal() => {
                        tracing::info!("the terminal is gone; stopping");
                        stop.order();
                    }
                    Ok(_) => self.reload(),
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                        self.parts.refresh_certificates(&self.loaded.config);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        })?;
        Ok(())
    }

    fn reload(&mut self) {
        service_manager::reloading();
        self.parts.reopen_logs();
        match self.read_again() {
            Ok(()) => tracing::info!("the configuration was reloaded; new connections have it"),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "nothing was reloaded; the server keeps its configuration");
            }
        }
        service_manager::ready(&self.status);
    }

    fn read_again(&mut self) -> anyhow::Result<()> {
        let mut new = self.loaded.again()?;
        let kept = self.loaded.changes_of_fixed(&new);
        if !kept.is_empty() {
            tracing::warn!(settings = kept.join(", "), "these need a restart and stay as they were");
        }
        new.config.fixed = self.loaded.config.fixed.clone();
        self.parts.apply(&new.config)?;
        self.level.set(new.config.live.log_level);
        warn_of_lab(&new.config.lab());
        self.loaded.config = new.config;
        Ok(())
    }
}
