//! The arguments that name the directory of accounts, and the execution of operator commands on it.
//!
//! It has no settings of its own. Invariant: the same flags, variables and file lead to the same directory
//! as those of `plimsoll serve`.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use plimsoll_auth::directory::file_of;
use plimsoll_auth::{Auth, Error};
use plimsoll_engine::{EngineKind, block_on};
use plimsoll_io::Io;

use crate::access::as_owner;
use crate::config::{Config, LogLevel};
use crate::exposure::warn_of_arguments;
use crate::locked_folder::make_data_folder;
use crate::operator_log::OperatorLog;
use crate::tiers::{auth_settings, directory_url, open_directory};

/// The arguments that name the directory.
#[derive(Args)]
pub(in crate::cli) struct DirectoryArgs {
    /// The configuration file of the server
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_CONFIG")]
    config: Option<PathBuf>,

    /// The data folder of the server; default: by the configuration, else ./plimsoll-data
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_DATA")]
    data: Option<PathBuf>,

    /// Where accounts are kept; default: by the configuration, else in the data folder
    #[arg(long, value_name = "URL", env = "PLIMSOLL_DIRECTORY", hide_env_values = true)]
    directory: Option<String>,

    /// The file with the password for the URL of --directory; default: by the configuration
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_DIRECTORY_PASSWORD_FILE")]
    directory_password_file: Option<PathBuf>,
}

/// An open directory, with the settings of a server that uses it.
pub(super) struct Opened {
    pub(super) io: Io,
    pub(super) auth: Auth,
    pub(super) config: Config,
}

impl DirectoryArgs {
    /// Runs a command on an existing directory. The superuser acts as the owner of the data.
    pub(super) fn run<T: Send + 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
        &self,
        command: impl FnOnce(Opened) -> F + Send,
    ) -> anyhow::Result<T> {
        let config = self.config()?;
        as_owner(&config, || {
            // Only a file can be missing. On a database server, opening the directory creates its tables.
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

    /// Runs a command on a directory that is created if it is missing. The superuser acts as the owner of
    /// the data, so that the server of that user can use the created files.
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

    /// Returns the configuration of the server that these arguments name.
    pub(in crate::cli) fn config(&self) -> anyhow::Result<Config> {
        let data = self.data.as_deref().map(|data| flag("--data=", data));
        let directory = self.directory.as_ref().map(|url| flag("--directory=", url));
        let password = self.directory_password_file.as_deref();
        let password = password.map(|file| flag("--directory-password-file=", file));
        Config::of_server(data.into_iter().chain(directory).chain(password), self.config.clone())
    }
}

fn flag(name: &str, value: impl AsRef<Path>) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(value.as_ref());
    flag
}

/// Returns whether a directory is missing. One that this user may not look up is not.
fn is_missing(path: &Path) -> bool {
    path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn run_on<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
    config: Config,
    command: impl FnOnce(Opened) -> F,
) -> anyhow::Result<T> {
    // The auth tier logs details that its errors do not contain.
    let log = OperatorLog::start(config.fixed.log_format, LogLevel(tracing::Level::WARN));
    let log = log.context("cannot start the log")?;
    warn_of_arguments();
    let directory = directory_url(&config.fixed).and_then(|url| open_directory(&url));
    let done = directory.and_then(|directory| {
        let auth = Auth::local(directory, auth_settings(&config));
        block_on(EngineKind::Epoll, |io| command(Opened { io, auth, config }))
            .context("cannot run the command")?
    });
    log.finish();
    done
}

/// Converts an error about the account `name` into a message for the operator.
pub(super) fn refused(name: &str) -> impl FnOnce(Error) -> anyhow::Error {
    move |error| match error {
        Error::NotFound | Error::BadName(_) => {
            anyhow!("There is no account {name:?}. See which there are: plimsoll account list")
        }
        other => unanswered(other),
    }
}

/// Converts an error that does not depend on the account.
pub(super) fn unanswered(error: Error) -> anyhow::Error {
    match error {
        Error::Unavailable => anyhow!("The directory of accounts gives no answer; the line above says why."),
        other => other.into(),
    }
}
