//! Checks that the authentication server of a front answers and accepts the shared secret.
//!
//! It neither logs in nor signs up. Invariant: a server with a local auth tier gets no finding.

use plimsoll_auth::check_server;
use plimsoll_engine::{EngineKind, block_on};

use super::Finding;
use crate::config::{AuthAt, Config};
use crate::tiers::tier_server;

const CHECK: &str = "auth server";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let AuthAt::Apart(url) = &config.fixed.auth else { return Vec::new() };
    if !config.fixed.accounts {
        return Vec::new();
    }
    let address = match tier_server(&config.fixed, url) {
        Ok(address) => address,
        Err(error) => return vec![Finding::fail(CHECK, format!("{error:#}"))],
    };
    let tried = block_on(EngineKind::Epoll, |io| async move { check_server(address, &io).await });
    let tried = tried.unwrap_or_else(|error| Err(error.to_string()));
    vec![match tried {
        Ok(()) => Finding::ok(CHECK, format!("{url} answers, and takes the secret")),
        Err(reason) => Finding::fail(CHECK, format!("{url} does not answer us: {reason}")).mend(
            "start it with plimsoll auth, and see that the address is right and the secret the same",
            "docs/tiers.md has the commands",
        ),
    }]
}
