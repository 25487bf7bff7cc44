//! The servers of each command and of each process: a front, an authentication server, a storage server, and
//! what the processes of the engine `process` serve.
//!
//! It opens no listener. Invariant: a data folder is locked before anything in it is opened, by this process
//! or by the main process.

use std::sync::Arc;

use plimsoll_auth::{Auth, AuthServer, Secret, ServerAddress, forwarder};
use plimsoll_content::Site;
use plimsoll_operations::Operations;
use plimsoll_proto::http::{Api, Counters, RpcServer};
use plimsoll_rpc::{SecretCheck, Service as RpcService};
use plimsoll_store::Store;
use plimsoll_web::{Web, with_store};

use super::{Accounts, Parts, Server};
use crate::common_cells::CommonCells;
use crate::config::{Config, Fixed, StoreAt};
use crate::encryption;
use crate::locked_folder::{FolderLock, share_data_folder, take_data_folder};
use crate::log_sinks::{Logs, Sinks};
use crate::sites::open_sites;
use crate::tiers::{auth_settings, open_auth_here, open_operations, open_store_of_fronts};

impl Server {
    /// Builds a server for `sites` by the rules of `config`.
    pub(crate) fn new(config: &Config, sites: Vec<Site>) -> anyhow::Result<Server> {
        let fixed = &config.fixed;
        let counters = Arc::<Counters>::default();
        // Before the logs, which may be in the data folder.
        let folder = fixed.accounts.then(|| take_data_folder(&fixed.data)).transpose()?;
        let logs = Logs::open(fixed)?;
        let sinks = logs.sinks(&counters);
        let operations = folder.as_ref().map(|_| open_operations(config, &sinks.audit_log)).transpose()?;
        let accounts = operations.as_ref().map(|operations| accounts(operations, fixed));
        let data = folder.is_some().then(|| fixed.data.clone());
        let cells = CommonCells::own();
        let parts = Parts { counters, cells, accounts, operations, sinks, logs, data, folder };
        let server = Server::made_of(parts, config, sites)?;
        let proof = server.shared.encryption.proof();
        encryption::start_acme(config, proof, &server.shared.renewals, server.stop())?;
        Ok(server)
    }

    /// Builds the server of a fork master. Its counters are shared between processes, and another process
    /// writes its logs.
    pub(crate) fn of_master(
        config: &Config,
        counters: Arc<Counters>,
        cells: CommonCells,
        sinks: Sinks,
        operations: Option<Operations>,
    ) -> anyhow::Result<Server> {
        let data = operations.is_some().then(|| config.fixed.data.clone());
        let accounts = operations.as_ref().map(|operations| Accounts {
            store: Some(operations.store().clone()),
            ..accounts(operations, &config.fixed)
        });
        let (logs, folder) = (Logs::default(), None);
        let parts = Parts { counters, cells, accounts, operations, sinks, logs, data, folder };
        Server::made_of(parts, config, open_sites(config)?)
    }

    /// Builds the RPC servers of the main process, which answer the connection processes.
    pub(crate) fn of_rpc_servers(
        config: &Config,
        auth: Auth,
        api: Arc<dyn Api>,
        folder: Option<FolderLock>,
    ) -> anyhow::Result<Server> {
        let accounts = Some(Accounts { auth: Some(auth), store: None, homes: None, api });
        let mut config = config.clone();
        config.without_tls();
        Server::of_tier(&config, accounts, Logs::default(), folder)
    }

    /// Builds the server of an authentication server's fork master. It forwards requests to `main_process`.
    pub(crate) fn of_auth_master(
        config: &Config,
        counters: Arc<Counters>,
        cells: CommonCells,
        main_process: ServerAddress,
        secret: Secret,
    ) -> anyhow::Result<Server> {
        let auth = Auth::of_main_process(main_process.clone(), auth_settings(config));
        let api = auth_server(SecretCheck::of_one_connection(secret), Arc::new(forwarder(main_process)));
        let accounts = Some(Accounts { auth: Some(auth), store: None, homes: None, api });
        let (logs, folder, data) = (Logs::default(), None, None);
        let (operations, sinks) = (None, logs.sinks(&counters));
        let parts = Parts { counters, cells, accounts, operations, sinks, logs, data, folder };
        Server::made_of(parts, config, Vec::new())
    }

    /// Builds an authentication server. It answers remote fronts and has no other service.
    pub(crate) fn of_auth(config: &Config, secret: Secret) -> anyhow::Result<Server> {
        let fixed = &config.fixed;
        let folder = fixed.has_directory_in_data().then(|| share_data_folder(&fixed.data)).transpose()?;
        let logs = Logs::open(fixed)?;
        let auth = open_auth_here(config)?;
        let api = auth_server(SecretCheck::new(secret), Arc::new(AuthServer::for_fronts(auth.clone())));
        let accounts = Some(Accounts { auth: Some(auth), store: None, homes: None, api });
        Server::of_tier(config, accounts, logs, folder)
    }

    /// Builds a storage server. It stores the files of remote fronts and has no other service.
    pub(crate) fn of_store(config: &Config, secret: Secret) -> anyhow::Result<Server> {
        let folder = Some(take_data_folder(&config.fixed.data)?);
        let logs = Logs::open(&config.fixed)?;
        let store = open_store_of_fronts(config)?;
        let api = store_server(store.clone(), SecretCheck::new(secret));
        let accounts = Some(Accounts { auth: None, store: None, homes: Some(store), api });
        Server::of_tier(config, accounts, logs, folder)
    }

    /// Builds a server of a single tier, without sites or operations.
    fn of_tier(
        config: &Config,
        accounts: Option<Accounts>,
        logs: Logs,
        folder: Option<FolderLock>,
    ) -> anyhow::Result<Server> {
        let counters = Arc::<Counters>::default();
        let (sinks, cells, operations) = (logs.sinks(&counters), CommonCells::own(), None);
        let data = folder.is_some().then(|| config.fixed.data.clone());
        let parts = Parts { counters, cells, accounts, operations, sinks, logs, data, folder };
        Server::made_of(parts, config, Vec::new())
    }
}

/// Returns the RPC server of accounts.
pub(crate) fn auth_server(secret: SecretCheck, service: Arc<dyn RpcService>) -> Arc<RpcServer> {
    Arc::new(RpcServer::new(secret, "an authentication server", "plimsoll auth").with(service))
}

/// Returns the RPC server of files.
fn store_server(store: Store, secret: SecretCheck) -> Arc<RpcServer> {
    Arc::new(with_store(RpcServer::new(secret, "a storage server", "plimsoll store"), store))
}

fn accounts(operations: &Operations, fixed: &Fixed) -> Accounts {
    let (api, is_local) = (Web::new(operations.clone()), fixed.store == StoreAt::Local);
    let [store, homes] = [!is_local, is_local].map(|is_it| is_it.then(|| operations.store().clone()));
    Accounts { auth: Some(operations.auth().clone()), store, homes, api }
}
