//! A test user in a loop of sign-ups, logins, password changes and logouts, with attempts by invalid
//! credentials.
//!
//! An accepted ended credential, or a refused good one, must fail the test at once, under any fault. A
//! missing answer is recorded as unknown.

use std::time::Duration;

use plimsoll_tests::binary::visitor::base64;
use plimsoll_tests::binary::{Reply, Visitor};
use serde_json::{Value, json};

use super::ledger::{Account, Credentials};
use super::load::{Load, Unknown};
use crate::durable::chance::Chance;

/// The number of accounts in use: the latest known ones.
const ACCOUNTS_AT_HAND: usize = 6;
/// The pause after a step, so that work is left to do after the fault.
const THINK_TIME: Duration = Duration::from_millis(3);
/// The pause after a refusal. No condition depends on it.
const REFUSED_TIME: Duration = Duration::from_millis(30);

pub(super) struct Person {
    name: String,
    chance: Chance,
    made: usize,
    pub(super) accounts: Vec<Account>,
}

/// A request's method, target and body.
type ApiRequest<'a> = (&'a str, &'a str, Option<Value>);

pub(super) const WHO_AM_I: ApiRequest<'_> = ("GET", "/api/whoami", None);

/// Sends a request with the given credentials.
pub(super) fn ask(
    (load, front): (&Load, usize),
    visitors: &mut [Option<Visitor>],
    shown: Option<&Credentials>,
    (method, target, body): ApiRequest<'_>,
) -> Result<Reply, Unknown> {
    let mut fields = match shown {
        Some(Credentials::Token(token)) => format!("Authorization: Bearer {token}\r\n"),
        Some(Credentials::Password(name, password)) => {
            format!("Authorization: Basic {}\r\n", base64(format!("{name}:{password}").as_bytes()))
        }
        None => String::new(),
    };
    if body.is_some() {
        fields.push_str("Content-Type: application/json\r\n");
    }
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    load.ask(front, visitors, (method, target, &fields, body.as_bytes()))
}

/// Returns a login's method, target and body.
pub(super) fn log_in(name: &str, password: &str) -> ApiRequest<'static> {
    ("POST", "/api/sessions", Some(json!({ "name": name, "password": password })))
}

fn assert_is(reply: &Reply, status: u16, request: &str, account: &Account) {
    assert_eq!(reply.status, status, "{request}: {} {account:#?}", reply.text());
}

/// A user's connections to some fronts, for the duration of a load.
struct Visit<'a> {
    load: &'a Load,
    front: usize,
    visitors: Vec<Option<Visitor>>,
}

impl Visit<'_> {
    fn ask(&mut self, shown: Option<&Credentials>, wanted: ApiRequest<'_>) -> Result<Reply, Unknown> {
        ask((self.load, self.front), &mut self.visitors, shown, wanted)
    }

    /// Asserts that the credentials are refused at every front.
    fn opens_nothing(&mut self, shown: &Credentials, account: &Account) -> Result<(), Unknown> {
        for front in 0..self.load.fronts() {
            let reply = ask((self.load, front), &mut self.visitors, Some(shown), WHO_AM_I)?;
            assert_is(&reply, 401, &format!("{shown:?} at front {front}"), account);
        }
        Ok(())
    }
}

impl Person {
    pub(super) fn new(name: String, chance: Chance) -> Person {
        Person { name, chance, made: 0, accounts: Vec::new() }
    }

    /// Runs steps until the load is over.
    pub(super) fn live(&mut self, load: &Load) {
        let mut visit = Visit { load, front: 0, visitors: (0..load.fronts()).map(|_| None).collect() };
        while !load.is_over() {
            visit.front = self.chance.below(load.fronts());
            let pause = if self.step(&mut visit).is_ok() { THINK_TIME } else { REFUSED_TIME };
            std::thread::sleep(pause);
        }
    }

    fn step(&mut self, visit: &mut Visit<'_>) -> Result<(), Unknown> {
        let known = (0..self.accounts.len()).rev().filter(|at| self.accounts[*at].is_known());
        let known: Vec<usize> = known.take(ACCOUNTS_AT_HAND).collect();
        if known.is_empty() || self.chance.below(16) == 0 {
            return self.sign_up(visit);
        }
        let at = known[self.chance.below(known.len())];
        let act = self.chance.below(10);
        let account = &mut self.accounts[at];
        match act {
            0 => self.change_password(visit, at),
            1 => log_out(visit, account),
            2 | 3 => begin(visit, account),
            4 | 5 => {
                let bad = account.bad();
                visit.opens_nothing(&bad[self.chance.below(bad.len())], account)
            }
            6 => wrong_log_in(visit, account, &mut self.chance),
            _ => {
                let good = account.good();
                let shown = &good[self.chance.below(good.len())];
                let reply = visit.ask(Some(shown), WHO_AM_I)?;
                assert_is(&reply, 200, &format!("{shown:?}"), account);
                Ok(())
            }
        }
    }

    fn new_password(&mut self) -> String {
        self.made += 1;
        format!("password {} of {}", self.made, self.name)
    }

    fn sign_up(&mut self, visit: &mut Visit<'_>) -> Result<(), Unknown> {
        let password = self.new_password();
        let account = Account::new(format!("{}-{}", self.name, self.made), password);
        let body = json!({ "name": account.name, "password": account.password });
        self.accounts.push(account);
        let reply = visit.ask(None, ("POST", "/api/accounts", Some(body)))?;
        if let Some(account) = self.accounts.last_mut() {
            assert_is(&reply, 201, "a fresh name", account);
            account.is_made = true;
        }
        Ok(())
    }

    /// Changes the password with a token, which stays the only valid one.
    fn change_password(&mut self, visit: &mut Visit<'_>, at: usize) -> Result<(), Unknown> {
        let new = self.new_password();
        let account = &mut self.accounts[at];
        let Some(token) = account.alive.pop() else { return begin(visit, account) };
        let others = std::mem::replace(&mut account.alive, vec![token.clone()]);
        account.perhaps = Some(new.clone());
        let body = json!({ "old": account.password, "new": new });
        let reply = visit.ask(Some(&Credentials::Token(token)), ("PUT", "/api/password", Some(body)))?;
        assert_is(&reply, 204, "another password", account);
        let old = std::mem::replace(&mut account.password, new);
        account.perhaps = None;
        account.replaced.push(old.clone());
        account.ended.extend(others.iter().cloned());
        for ended in others.into_iter().map(Credentials::Token).chain([account.with(&old)]) {
            visit.opens_nothing(&ended, account)?;
        }
        Ok(())
    }
}

fn begin(visit: &mut Visit<'_>, account: &mut Account) -> Result<(), Unknown> {
    let reply = visit.ask(None, log_in(&account.name, &account.password))?;
    assert_is(&reply, 201, "the password", account);
    let token = reply.json()["token"].as_str().expect("a token").to_owned();
    account.alive.push(token);
    Ok(())
}

fn log_out(visit: &mut Visit<'_>, account: &mut Account) -> Result<(), Unknown> {
    let Some(token) = account.alive.pop() else { return begin(visit, account) };
    let shown = Credentials::Token(token.clone());
    let reply = visit.ask(Some(&shown), ("DELETE", "/api/sessions/current", None))?;
    assert_is(&reply, 204, "log out", account);
    account.ended.push(token);
    visit.opens_nothing(&shown, account)
}

/// Logs in with a replaced password, or with one that was never valid.
fn wrong_log_in(visit: &mut Visit<'_>, account: &Account, chance: &mut Chance) -> Result<(), Unknown> {
    let never = "never a password".to_owned();
    let wrong: Vec<&String> = account.replaced.iter().chain([&never]).collect();
    let reply = visit.ask(None, log_in(&account.name, wrong[chance.below(wrong.len())]))?;
    assert_is(&reply, 401, "a wrong password", account);
    Ok(())
}
