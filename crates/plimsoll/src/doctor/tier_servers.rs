//! Checks that the authentication server and the storage server of a front answer and accept the shared
//! secret.
//!
//! It neither logs in nor signs up, and opens no home. Invariant: a local tier gets no finding.

use plimsoll_client::http::Url;
use plimsoll_engine::{EngineKind, block_on};
use plimsoll_io::Io;
use plimsoll_rpc::ServerAddress;

use super::Finding;
use crate::config::{AuthAt, Config, StoreAt};
use crate::tiers::tier_server;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if !config.fixed.accounts {
        return Vec::new();
    }
    let auth = match &config.fixed.auth {
        AuthAt::Remote(url) => {
            Some(judge(config, ("auth server", "plimsoll auth"), url, |server, io| async move {
                plimsoll_auth::check_server(server, &io).await
            }))
        }
        AuthAt::Embedded => None,
    };
    let store = match &config.fixed.store {
        StoreAt::Remote(url) => {
            Some(judge(config, ("store", "plimsoll store"), url, |server, io| async move {
                plimsoll_store::remote::check_server(server, &io).await
            }))
        }
        StoreAt::Local => None,
    };
    auth.into_iter().chain(store).collect()
}

/// Asks the server of a tier, which `command` starts.
fn judge<F: Future<Output = Result<(), String>> + 'static>(
    config: &Config,
    (check, command): (&'static str, &str),
    url: &Url,
    ask: impl FnOnce(ServerAddress, Io) -> F,
) -> Finding {
    let address = match tier_server(&config.fixed, url) {
        Ok(address) => address,
        Err(error) => return Finding::fail(check, format!("{error:#}")),
    };
    let tried = block_on(EngineKind::Epoll, |io| ask(address, io));
    match tried.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(()) => Finding::ok(check, format!("{url} answers, and takes the secret")),
        Err(reason) => Finding::fail(check, format!("{url} does not answer us: {reason}")).with_fix(
            format!("start it with {command}, and see that the address is right and the secret the same"),
            "docs/tiers.md has the commands",
        ),
    }
}
