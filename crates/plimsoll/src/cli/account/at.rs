//! Which directory of accounts: the arguments that every command of an operator has, and how they are obeyed.
//!
//! It is not the configuration, only the way to the one that a server has. What must hold: the same flags,
//! variables and file lead to the same directory as those of `plimsoll serve`.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use plimsoll_auth::directory::file_of;
use plimsoll_auth::{Auth, Error};
use plimsoll_engine::{Kind, block_on};
use plimsoll_io::Io;

use crate::access::as_owner;
use crate::config::{Config, LogLevel};
use crate::exposure::warn_of_arguments;
use crate::operator_log::OperatorLog;
use crate::tiers::{auth_settings, make_data_folder, open_directory};

/// Which directory.
#[derive(Args)]
pub(super) struct At {
    /// The file of settings that the server has
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_CONFIG")]
    config: Option<PathBuf>,

    /// The data folder that the server has; else the settings', else ./plimsoll-data
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_DATA")]
    data: Option<PathBuf>,

    /// Where accounts are kept; else as the settings say, else in the data folder
    #[arg(long, value_name = "URL", env = "PLIMSOLL_DIRECTORY", hide_env_values = true)]
    directory: Option<String>,
}

/// A directory that is open, and what a server on it would do.
pub(super) struct Opened {
    pub(super) io: Io,
    pub(super) auth: Auth,
    pub(super) config: Config,
}

impl At {
    /// Runs a command on a directory that is there. The superuser acts as the owner of the data.
    pub(super) fn run<T: Send + 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
        &self,
        command: impl FnOnce(Opened) -> F + Send,
    ) -> anyhow::Result<T> {
        let config = self.config()?;
        as_owner(&config, || {
            // On a server, there is a directory where there is a database: its tables are made when it is
            // opened.
            if let Some(path) = file_of(&config.fixed.directory)
                && is_missing(&path)
            {
                bail!(
                    "There is no directory of accounts at {}. Name the server's data folder with --data DIR, \
                     or make the first account: plimsoll account add NAME",
                    path.display()
                );
            }
            run_on(config.clone(), command)
        })
    }

    /// Runs a command on a directory that is made if it is not there. The superuser acts as the owner of the
    /// data, so that the server of that user can use what is made.
    pub(super) fn run_making<T: Send + 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
        &self,
        command: impl FnOnce(Opened) -> F + Send,
    ) -> anyhow::Result<T> {
        let config = self.config()?;
        as_owner(&config, || {
            if config.fixed.has_directory_in_data() {
                make_data_folder(&config.fixed.data)?;
            }
            run_on(config.clone(), command)
        })
    }

    fn config(&self) -> anyhow::Result<Config> {
        let data = self.data.as_deref().map(|data| flag("--data=", data));
        let directory = self.directory.as_ref().map(|url| flag("--directory=", url));
        Config::of_server(data.into_iter().chain(directory), self.config.clone())
    }
}

fn flag(name: &str, value: impl AsRef<Path>) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(value.as_ref());
    flag
}

/// A directory that this user may not look at is not missing.
fn is_missing(path: &Path) -> bool {
    path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn run_on<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
    config: Config,
    command: impl FnOnce(Opened) -> F,
) -> anyhow::Result<T> {
    // What the auth tier does not tell its callers, it tells the log.
    let log = OperatorLog::start(config.fixed.log_format, LogLevel(tracing::Level::WARN));
    let log = log.context("cannot start the log")?;
    warn_of_arguments();
    let done = open_directory(&config.fixed.directory).and_then(|directory| {
        let auth = Auth::here(directory, auth_settings(&config));
        block_on(Kind::Epoll, |io| command(Opened { io, auth, config })).context("cannot run the command")?
    });
    log.finish();
    done
}

/// What the auth tier says of the account `name`, in the words of whoever runs the server.
pub(super) fn refused(name: &str) -> impl FnOnce(Error) -> anyhow::Error {
    move |error| match error {
        Error::NotFound | Error::BadName(_) => {
            anyhow!("There is no account {name:?}. See which there are: plimsoll account list")
        }
        other => unanswered(other),
    }
}

/// Why there is no answer, whichever account it is about.
pub(super) fn unanswered(error: Error) -> anyhow::Error {
    match error {
        Error::Unavailable => anyhow!("The directory of accounts gives no answer; the line above says why."),
        other => other.into(),
    }
}
