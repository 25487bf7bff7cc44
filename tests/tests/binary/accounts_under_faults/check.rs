//! Compares the server's state after a fault with each user's ledger.
//!
//! Each account and each credential in the ledgers must be checked. A recovered server answers, so that 503
//! is accepted only for a while.

use plimsoll_tests::binary::{PATIENCE, Server, Visitor, reached_within, until};

use super::ledger::{Account, Credentials};
use super::load::{Load, People};
use super::person::{WHO_AM_I, ask, log_in};

/// Waits until all servers are ready.
pub(super) fn until_ready(servers: &[&Server]) {
    for server in servers {
        until("the server is ready", || {
            let mut visitor = Visitor::connect(server.at()).expect("it runs");
            visitor.get("/readyz").is_ok_and(|reply| reply.status == 200)
        });
    }
}

/// Checks all accounts, each at one of the fronts. Accounts with an uncertain password are settled, and
/// then removed from the ledgers.
pub(super) fn check(load: &Load, people: &mut People) {
    let mut looking = Looking { load, front: 0, visitors: (0..load.fronts()).map(|_| None).collect() };
    for person in &mut people.0 {
        for account in &person.accounts {
            looking.front = (looking.front + 1) % load.fronts();
            looking.at(account);
        }
        person.accounts.retain(Account::is_known);
    }
}

struct Looking<'a> {
    load: &'a Load,
    front: usize,
    visitors: Vec<Option<Visitor>>,
}

impl Looking<'_> {
    fn at(&mut self, account: &Account) {
        if account.is_made {
            for shown in account.good() {
                assert_eq!(self.who_am_i(&shown), 200, "{shown:?} of {account:#?}");
            }
            self.settle(account);
        } else {
            let made = self.log_in(account, &account.password);
            assert!([201, 401].contains(&made), "{made} for what may be there: {account:#?}");
        }
        for shown in account.bad() {
            assert_eq!(self.who_am_i(&shown), 401, "{shown:?} of {account:#?}");
        }
        assert_eq!(self.log_in(account, "never a password"), 401, "{account:#?}");
    }

    /// Asserts that exactly one password opens the account: the last confirmed one, or its possible
    /// successor.
    fn settle(&mut self, account: &Account) {
        let Some(perhaps) = &account.perhaps else {
            assert_eq!(self.log_in(account, &account.password), 201, "{account:#?}");
            return;
        };
        let mut counts = (0, 0);
        // A database completes late writes soon, and cached entries are soon looked up again.
        let is_settled = reached_within(PATIENCE, || {
            counts = (self.log_in(account, &account.password), self.log_in(account, perhaps));
            matches!(counts, (201, 401) | (401, 201))
        });
        assert!(is_settled, "{counts:?}: one of the two, and not both: {account:#?}");
    }

    fn log_in(&mut self, account: &Account, password: &str) -> u16 {
        self.status(None, || log_in(&account.name, password))
    }

    fn who_am_i(&mut self, shown: &Credentials) -> u16 {
        self.status(Some(shown), || WHO_AM_I)
    }

    fn status<'w>(
        &mut self,
        shown: Option<&Credentials>,
        wanted: impl Fn() -> (&'w str, &'w str, Option<serde_json::Value>),
    ) -> u16 {
        let mut status = None;
        until("the server that is back answers", || {
            let counts = ask((self.load, self.front), &mut self.visitors, shown, wanted());
            status = counts.ok().map(|reply| reply.status);
            status.is_some()
        });
        status.expect("the reply was received")
    }
}
