//! The RPC servers of the main process, which connection processes call for accounts and files.
//!
//! They are the RPC servers of the two tiers, at a Unix socket in the data folder
//! ([`socket`](super::socket)). Invariants: a caller must present a secret. It is drawn at the start and
//! kept only in the memory of this server's processes. The RPC servers run until the last connection has
//! ended.

use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use plimsoll_auth::{Auth, AuthServer, DirectoryMeter, Secret, ServerAddress};
use plimsoll_io::Stop;
use plimsoll_operations::{AuditLog, Operations};
use plimsoll_proto::http::{Api, RpcServer};
use plimsoll_rpc::SecretCheck;
use plimsoll_store::{Store, remote};
use plimsoll_web::with_store;

use super::Role;
use super::socket::Socket;
use crate::assemble::{Server, auth_server};
use crate::bounded_thread::BoundedThread;
use crate::config::{Config, StoreAt};
use crate::listening::Listening;
use crate::locked_folder::FolderLock;
use crate::open_files::of_rpc_servers;
use crate::tiers::{auth_settings, open_auth, open_auth_here, open_remote_store, open_store_here};

/// Random bytes of the secret, each written as two hexadecimal digits.
const SECRET_BYTES: usize = 32;
/// Random bytes of the socket's name.
const NAME_BYTES: usize = 4;
/// The least time that the end waits for the RPC servers. No caller is left by then.
const FINISH_TIME_MIN: Duration = Duration::from_secs(2);

/// The address and secret of the RPC servers.
pub(super) struct RpcServers {
    at: Socket,
    secret: String,
    role: Role,
}

/// Running RPC servers.
pub(super) struct Open {
    pub(super) auth: Auth,
    /// The store, if its homes are in this process.
    pub(super) homes: Option<Store>,
    at: Socket,
    stop: Stop,
    thread: BoundedThread<anyhow::Result<()>>,
}

impl RpcServers {
    /// Chooses an address and a secret for a server with this configuration.
    pub(super) fn of(config: &Config, role: &Role) -> io::Result<RpcServers> {
        let at = Socket::in_folder(&config.fixed.data, &drawn::<NAME_BYTES>()?)?;
        Ok(RpcServers { at, secret: drawn::<SECRET_BYTES>()?, role: role.clone() })
    }

    /// Returns the address and secret of the auth RPC server.
    pub(super) fn address(&self) -> anyhow::Result<ServerAddress> {
        let url =
            self.at.address().to_string().parse().context("the data folder cannot be named in a URL")?;
        Ok(ServerAddress { url, secret: Secret::from(self.secret.as_str()), resolve: None, tls: None })
    }

    /// Returns the operations of a connection process, which call these RPC servers.
    pub(super) fn ask(&self, config: &Config, audit_log: &AuditLog) -> anyhow::Result<Operations> {
        let server = self.address()?;
        let auth = Auth::of_main_process(server.clone(), auth_settings(config));
        let store = match &config.fixed.store {
            StoreAt::Local => {
                Store::remote(remote::StoreAddress { server, directory: String::new(), spool: None })
            }
            StoreAt::Remote(url) => open_remote_store(url, &config.fixed)?,
        };
        Ok(Operations::new(auth, store, audit_log.clone()))
    }

    /// Opens accounts and files, and starts the RPC servers on threads of their own. They keep the data
    /// folder locked.
    pub(super) fn open(
        &self,
        folder: Option<FolderLock>,
        config: &Config,
        meter: &Arc<DirectoryMeter>,
    ) -> anyhow::Result<Open> {
        let (auth, homes, api) = self.answering(config)?;
        auth.count_directory_in(meter);
        let mut config = of_rpc_servers(config);
        self.at.clear_others().context("cannot look through the data folder")?;
        config.fixed.http = vec![self.at.new_address()];
        let server = Server::of_rpc_servers(&config, auth.clone(), api, folder)?;
        let not_made = || {
            let at = self.at.address();
            format!(
                "cannot make the socket {at}; if its path is too long, choose another data folder with --data"
            )
        };
        let listening = Listening::at(&config).with_context(not_made)?;
        self.at.publish().with_context(not_made)?;
        let stop = server.stop().clone();
        let thread = BoundedThread::spawn("desks", move || server.serve(listening));
        let thread = thread.context("cannot start a thread")?;
        Ok(Open { auth, homes, at: self.at.clone(), stop, thread })
    }

    /// Opens accounts and files, and returns the API of the RPC servers.
    fn answering(&self, config: &Config) -> anyhow::Result<(Auth, Option<Store>, Arc<dyn Api>)> {
        let secret = SecretCheck::new(Secret::from(self.secret.as_str()));
        let (auth, homes, api): (_, _, Arc<dyn Api>) = match self.role {
            Role::Auth(_) => {
                let auth = open_auth_here(config)?;
                (auth.clone(), None, auth_server(secret, Arc::new(AuthServer::for_fronts(auth))))
            }
            Role::Front => {
                let store = match config.fixed.store {
                    StoreAt::Local => Some(open_store_here(config)?),
                    StoreAt::Remote(_) => None,
                };
                let auth = open_auth(config)?;
                let accounts = AuthServer::for_connection_processes(auth.clone());
                let server = RpcServer::new(secret, "the main process", "plimsoll serve");
                let server = server.with(Arc::new(accounts));
                let server = match store.clone() {
                    Some(store) => with_store(server, store),
                    None => server,
                };
                (auth, store, Arc::new(server))
            }
        };
        Ok((auth, homes, api))
    }
}

/// Returns random bytes in hexadecimal.
fn drawn<const BYTES: usize>() -> io::Result<String> {
    let mut drawn = [0; BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut drawn)?;
    Ok(drawn.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Open {
    /// Stops the RPC servers after their last caller has ended. Waits for `time`, but at least 2 s.
    pub(super) fn finish(self, time: Duration) {
        // Removed first: another server may take the data folder as soon as this one unlocks it.
        self.at.remove();
        self.stop.order();
        match self.thread.join_within(time.max(FINISH_TIME_MIN)) {
            Some(Ok(Ok(()))) => {}
            Some(_) => tracing::error!("the server of accounts and files did not end cleanly"),
            None => tracing::error!("the server of accounts and files does not end; it is abandoned"),
        }
    }
}
