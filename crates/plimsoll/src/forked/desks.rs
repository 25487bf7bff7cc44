//! The desks at which the processes of connections ask the program for accounts and files.
//!
//! They are those of a server of a tier, at a socket in the data folder that nobody else can reach. What
//! must hold: whoever asks shows a secret that is drawn at the start and is nowhere but in the memory of
//! this server's processes; they answer until the last connection has gone.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use plimsoll_auth::{Auth, Place, Secret};
use plimsoll_engine::Kind;
use plimsoll_io::{Address, Stop};
use plimsoll_operations::{Operations, Recorder};
use plimsoll_proto::http::Api;
use plimsoll_store::{Store, apart};
use plimsoll_web::AuthTier;
use zeroize::Zeroizing;

use super::Role;
use crate::assemble::Server;
use crate::config::{Config, StoreAt};
use crate::listening::Listening;
use crate::tiers::{auth_settings, open_auth, open_auth_here, open_store_apart, open_store_here};

/// The socket, in the data folder.
const SOCKET: &str = "desk.sock";
/// The same of an authentication server, which may have the folder beside a server that has its files.
const SOCKET_OF_AUTH: &str = "auth-desk.sock";
/// Bytes that are drawn for the secret; each is two digits of it.
const SECRET_BYTES: usize = 32;

/// Where the desks are, and what is shown there.
pub(super) struct Desks {
    at: Address,
    secret: String,
    role: Role,
}

/// Desks that answer.
pub(super) struct Open {
    pub(super) auth: Auth,
    at: Address,
    stop: Stop,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Desks {
    /// Those of a server with this configuration, with a secret that is drawn now.
    pub(super) fn of(config: &Config, role: &Role) -> io::Result<Desks> {
        let mut drawn = [0; SECRET_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut drawn)?;
        let secret = drawn.iter().map(|byte| format!("{byte:02x}")).collect();
        let data = std::path::absolute(&config.fixed.data)?;
        let socket = match role {
            Role::Front => SOCKET,
            Role::Auth(_) => SOCKET_OF_AUTH,
        };
        Ok(Desks { at: Address::Unix(data.join(socket)), secret, role: role.clone() })
    }

    /// Where a process asks for accounts.
    pub(super) fn place(&self) -> anyhow::Result<Place> {
        let url = self.at.to_string().parse().context("the data folder cannot be named in a URL")?;
        Ok(Place { url, secret: Secret::from(self.secret.as_str()) })
    }

    /// What a process has of accounts and files: ways to ask here.
    pub(super) fn ask(&self, config: &Config, recorder: &Recorder) -> anyhow::Result<Operations> {
        let place = self.place()?;
        let url = place.url.clone();
        let auth = Auth::beside(place, auth_settings(config));
        let store = match &config.fixed.store {
            StoreAt::Local => {
                let (secret, directory) = (Zeroizing::new(self.secret.clone()), String::new());
                Store::apart(apart::Place { url, secret, directory, spool: None, resolve: None })
            }
            StoreAt::Apart(url) => open_store_apart(url, &config.fixed)?,
        };
        Ok(Operations::new(auth, store, recorder.clone()))
    }

    /// Opens what is asked for, and answers on threads of its own. The data folder is this process' from
    /// then on.
    pub(super) fn open(&self, folder: Option<File>, config: &Config) -> anyhow::Result<Open> {
        let (auth, api) = self.answering(config)?;
        let config = self.adjusted(config);
        let server = Server::of_desks(&config, auth.clone(), api, folder)?;
        let listening = Listening::at(&config).with_context(|| {
            format!(
                "cannot make the socket {}; if its path is too long, choose another data folder with --data",
                self.at
            )
        })?;
        let stop = server.stop().clone();
        let named = std::thread::Builder::new().name("desks".to_owned());
        let thread = named.spawn(move || server.serve(listening)).context("cannot start a thread")?;
        Ok(Open { auth, at: self.at.clone(), stop, thread })
    }

    /// Opens what is asked for, and what answers.
    fn answering(&self, config: &Config) -> anyhow::Result<(Auth, Arc<dyn Api>)> {
        let secret = Secret::from(self.secret.as_str());
        let (auth, api): (_, Arc<dyn Api>) = match self.role {
            Role::Auth(_) => {
                let auth = open_auth_here(config)?;
                (auth.clone(), AuthTier::new(auth, secret))
            }
            Role::Front => {
                let auth = open_auth(config)?;
                let store = match config.fixed.store {
                    StoreAt::Local => Some(open_store_here(config)?),
                    StoreAt::Apart(_) => None,
                };
                (auth.clone(), plimsoll_web::Desks::new(auth, store, &secret))
            }
        };
        Ok((auth, api))
    }

    /// What the settings of the server are to its desks.
    fn adjusted(&self, config: &Config) -> Config {
        let mut config = config.clone();
        config.fixed.engine = Kind::Epoll;
        config.fixed.http = vec![self.at.clone()];
        config.fixed.ftp.clear();
        config.fixed.classic.clear();
        config.fixed.prefetch = false;
        config.live.site.clear();
        config.live.of_fronts();
        config
    }
}

impl Open {
    /// Ends them: who could ask has gone.
    pub(super) fn finish(self) {
        self.stop.order();
        if !matches!(self.thread.join(), Ok(Ok(()))) {
            tracing::error!("what answers for accounts and files did not end well");
        }
        if let Address::Unix(socket) = &self.at {
            // If it stays, the next server replaces it.
            let _ = std::fs::remove_file(socket);
        }
    }
}
