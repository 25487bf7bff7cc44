//! What is so when a fault is over, compared with what each person knows.
//!
//! What must hold: each account and each credential in the ledgers is looked at; a server that is back
//! answers, so that "later" is taken for an answer only for a while.

use plimsoll_tests::binary::{PATIENCE, Server, Visitor, reached_within, until};

use super::ledger::{Account, Shown};
use super::load::{Load, People};
use super::person::{WHO_AM_I, ask, log_in};

/// Waits until all of these can be given work.
pub(super) fn until_ready(servers: &[&Server]) {
    for server in servers {
        until("the server is ready", || {
            let mut visitor = Visitor::connect(server.at()).expect("it runs");
            visitor.get("/readyz").is_ok_and(|reply| reply.status == 200)
        });
    }
}

/// Looks at everything, each account at one of the fronts. What was not known is settled then, and is
/// nobody's any more.
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

    /// One password opens the account: the last one that was confirmed, or the one that may have its place.
    fn settle(&mut self, account: &Account) {
        let Some(perhaps) = &account.perhaps else {
            assert_eq!(self.log_in(account, &account.password), 201, "{account:#?}");
            return;
        };
        let mut told = (0, 0);
        // What a database does late, it has done soon; and what is remembered is soon looked up again.
        let is_settled = reached_within(PATIENCE, || {
            told = (self.log_in(account, &account.password), self.log_in(account, perhaps));
            matches!(told, (201, 401) | (401, 201))
        });
        assert!(is_settled, "{told:?}: one of the two, and not both: {account:#?}");
    }

    fn log_in(&mut self, account: &Account, password: &str) -> u16 {
        self.status(None, || log_in(&account.name, password))
    }

    fn who_am_i(&mut self, shown: &Shown) -> u16 {
        self.status(Some(shown), || WHO_AM_I)
    }

    fn status<'w>(
        &mut self,
        shown: Option<&Shown>,
        wanted: impl Fn() -> (&'w str, &'w str, Option<serde_json::Value>),
    ) -> u16 {
        let mut status = None;
        until("the server that is back answers", || {
            let told = ask((self.load, self.front), &mut self.visitors, shown, wanted());
            status = told.ok().map(|reply| reply.status);
            status.is_some()
        });
        status.expect("it was told")
    }
}
