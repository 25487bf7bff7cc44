//! The services of HTTP listeners: their routes, the status page, and the pages of operators.
//!
//! It decides nothing that the configuration leaves open. Invariant: a page reads shared
//! state, and changes none.

use std::sync::Arc;

use plimsoll_auth::DirectoryMeter;
use plimsoll_content::Site;
use plimsoll_io::{Address, Cells};
use plimsoll_proto::http::{HttpsRedirect, HttpsRules, Load, OperatorHosts, Routes, Snapshot, StatusPage};

use super::{Accounts, Shared};
use crate::config::Config;
use crate::encryption::{metrics_of, status_of};
use crate::{channels, proxying};

/// Returns the meter of the directory: of this process, or of the main process, which has the same cells.
pub(super) fn directory_meter(cells: Cells, accounts: Option<&Accounts>) -> Arc<DirectoryMeter> {
    let meter = DirectoryMeter::in_cells(cells);
    if let Some(auth) = accounts.and_then(|accounts| accounts.auth.as_ref()) {
        auth.count_directory_in(&meter);
    }
    meter
}

impl Shared {
    /// Returns the settings and routes of HTTP connections.
    pub(super) fn snapshot(self: &Arc<Self>, config: &Config, sites: Vec<Site>) -> Snapshot<Arc<Routes>> {
        let (limits, proxies) = (config.live.limits(), config.proxies());
        Snapshot { limits, proxies, service: self.routes(config, sites) }
    }

    /// Returns the settings and routes of connections to the addresses of `--metrics`.
    pub(super) fn snapshot_of_operators(self: &Arc<Self>, config: &Config) -> Snapshot<Arc<Routes>> {
        let status = self.status_page(config);
        let purging = self.proxy.as_ref().map(|current| proxying::purging(&current.get()));
        let hosts = OperatorHosts::new(config.live.operator_hosts.iter().map(ToString::to_string));
        let service = Routes::for_operators(status, hosts, purging);
        Snapshot { limits: config.live.limits(), proxies: config.proxies(), service }
    }

    fn routes(self: &Arc<Self>, config: &Config, sites: Vec<Site>) -> Arc<Routes> {
        let status = self.status_page(config);
        let api = self.accounts.as_ref().map(|accounts| Arc::clone(&accounts.api));
        Routes::new_with_https(sites, status, api, config.cors(), self.https_rules(config))
    }

    /// Returns the orders to clients about HTTPS.
    fn https_rules(&self, config: &Config) -> HttpsRules {
        let tls = &config.live.tls;
        let port = config.fixed.https.iter().find_map(|at| match at {
            Address::Ip(at) => Some(at.port()),
            Address::Unix(_) => None,
        });
        let redirect = port.filter(|_| tls.http_redirect).map(|port| {
            let certificates = Arc::clone(self.encryption.facts());
            let has_certificate =
                move |host: &str| certificates.get().iter().any(|certificate| certificate.is_for(host));
            HttpsRedirect { port, has_certificate: Box::new(has_certificate) }
        });
        let hsts = tls.hsts.0.map(|time| time.0);
        HttpsRules { redirect, hsts, challenges: self.challenges.clone() }
    }

    fn status_page(self: &Arc<Self>, config: &Config) -> StatusPage {
        let (shared, audit_log) = (Arc::clone(self), self.ftp.audit_log.clone());
        let (settings, of_channels) = (self.channels.clone(), self.channels.clone());
        let (figures, of_proxy) = (self.proxy.clone(), self.proxy.clone());
        let handshakes = Arc::clone(self.encryption.handshakes());
        let directory = Arc::clone(&self.directory);
        let renewals = config.fixed.acme().map(|_| Arc::clone(&self.renewals));
        let (certificates, of_metrics) =
            (Arc::clone(self.encryption.facts()), Arc::clone(self.encryption.facts()));
        StatusPage {
            version: env!("CARGO_PKG_VERSION"),
            engine: self.engine.to_string(),
            threads: self.threads,
            tiers: self.tiers,
            load: Box::new(move || shared.load()),
            counters: Arc::clone(&self.counters),
            hot: Arc::clone(&self.hot),
            lab: config.lab(),
            operations: Box::new(move || {
                let of_operations = match &figures {
                    Some(current) => plimsoll_proxy::metrics(&current.get()),
                    None => audit_log.meter().text(),
                };
                let of_renewals = renewals.as_ref().map(|renewals| renewals.metrics()).unwrap_or_default();
                let of_certificates = metrics_of(&of_metrics.get(), &handshakes) + &of_renewals;
                of_operations + &channels::metrics(&settings) + &of_certificates + &directory.text()
            }),
            certificates: Box::new(move || status_of(&certificates.get())),
            channel: Box::new(move || channels::figures(&of_channels)),
            proxy: of_proxy.map(|current| {
                let figures = move || plimsoll_proxy::status(&current.get());
                Box::new(figures) as Box<dyn Fn() -> serde_json::Value + Send + Sync>
            }),
            readiness: Arc::clone(&self.readiness),
        }
    }

    fn load(&self) -> Load {
        Load {
            connections_open: self.connections.open(),
            connections_max: self.connections.max(),
            connections_accepted: self.connections.accepted(),
            connections_refused: self.connections.refused(),
            connections_evicted: self.connections.evicted(),
            connections_panicked: self.connections.panicked(),
            draining: self.stop.is_ordered(),
            uptime_seconds: self.started.elapsed().as_secs(),
        }
    }
}
