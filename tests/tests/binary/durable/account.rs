//! Accounts that are created, and sessions that begin and end, while the server may be killed at any
//! moment.
//!
//! A confirmed change must survive; an unconfirmed one may or may not.

use std::net::SocketAddr;

use plimsoll_tests::binary::member::{PASSWORD, log_in, send};
use plimsoll_tests::binary::{Broken, Server, Visitor};
use serde_json::json;

/// The confirmed accounts.
#[derive(Clone, Default)]
pub(super) struct Accounts {
    made: u64,
    /// The last confirmed account.
    last: Option<String>,
    /// Its token, once confirmed.
    alive: Option<String>,
    /// The last token whose end was confirmed.
    dead: Option<String>,
}

fn with(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

impl Accounts {
    /// Signs up, logs in and logs out until the connection breaks, or `each` returns `false`.
    pub(super) fn make(&mut self, at: SocketAddr, mut each: impl FnMut(&Accounts) -> bool) {
        let Ok(mut visitor) = Visitor::connect(at) else { return };
        while each(self) && self.one(&mut visitor).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
    }

    fn one(&mut self, visitor: &mut Visitor) -> Result<(), Broken> {
        self.made += 1;
        let name = format!("new-{}", self.made);
        let reply = send(visitor, "POST", "/api/accounts", &json!({ "name": name, "password": PASSWORD }))?;
        assert_eq!(reply.status, 201, "{}", reply.text());
        (self.last, self.alive) = (Some(name.clone()), None);
        let token = log_in(visitor, &name)?;
        self.alive = Some(token);
        if self.made.is_multiple_of(2) {
            let token = self.alive.take().unwrap();
            let reply = visitor.ask("DELETE", "/api/sessions/current", &with(&token), b"")?;
            assert_eq!(reply.status, 204, "{}", reply.text());
            self.dead = Some(token);
        }
        Ok(())
    }

    /// Asserts that the confirmed changes are in effect.
    pub(super) fn check(&self, server: &Server) {
        let mut visitor = server.visit();
        let mut status =
            |token: &str| visitor.ask("GET", "/api/whoami", &with(token), b"").expect("an answer").status;
        for (token, expected) in [(&self.alive, 200), (&self.dead, 401)] {
            if let Some(token) = token {
                assert_eq!(status(token), expected, "after {} accounts", self.made);
            }
        }
        if let Some(name) = &self.last {
            log_in(&mut server.visit(), name).expect("an answer");
        }
    }
}
