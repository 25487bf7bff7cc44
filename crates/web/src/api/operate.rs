//! `/api/operate/…`: accounts, and their sessions, shares and public links, for accounts with the right
//! `administer`.
//!
//! The right is not checked here. Invariants: a response is bounded, and has no secret and no name of a file
//! that is neither shared nor linked; following `next` lists every account that exists throughout.

use plimsoll_auth::limits::ACCOUNTS_PER_PAGE_MAX;
use plimsoll_auth::{Account, Change, Error as AuthError, Permissions, Quota};
use plimsoll_operations::{Caller, Error};
use plimsoll_proto::http::Answer;
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use plimsoll_wire::http::form_urlencoded::value_of;
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;
use serde::{Deserialize, Serialize};

use super::shares::Paging;
use super::whoami::Used;
use super::{links, shares};
use crate::limits::{LINKS_PER_PAGE_MAX, SHARES_PER_PAGE_MAX};
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials, json};

/// A resource below `/api/operate`. The first text is the name of an account.
#[derive(Clone)]
pub(crate) enum OperatorPoint {
    /// All accounts.
    Accounts,
    /// One account.
    Account(String),
    /// Its sessions.
    Sessions(String),
    /// The shares that it gives.
    Shares(String),
    /// One of them, by its id.
    Share(String, String),
    /// Its public links.
    Links(String),
    /// One of them, by its id.
    Link(String, String),
}

impl OperatorPoint {
    /// Returns the endpoint of a path below `/api/operate/`.
    pub(crate) fn of(rest: &str) -> Option<OperatorPoint> {
        let parts: Vec<&str> = rest.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        Some(match *parts {
            ["accounts"] => OperatorPoint::Accounts,
            ["accounts", name] => OperatorPoint::Account(name.to_owned()),
            ["accounts", name, "sessions"] => OperatorPoint::Sessions(name.to_owned()),
            ["accounts", name, "shares"] => OperatorPoint::Shares(name.to_owned()),
            ["accounts", name, "shares", id] => OperatorPoint::Share(name.to_owned(), id.to_owned()),
            ["accounts", name, "links"] => OperatorPoint::Links(name.to_owned()),
            ["accounts", name, "links", id] => OperatorPoint::Link(name.to_owned(), id.to_owned()),
            _ => return None,
        })
    }

    pub(crate) fn methods(&self) -> &'static [Method] {
        use Method::{Delete, Get, Head, Patch};
        match self {
            OperatorPoint::Accounts | OperatorPoint::Shares(_) | OperatorPoint::Links(_) => &[Get, Head],
            OperatorPoint::Account(_) => &[Get, Head, Patch],
            OperatorPoint::Sessions(_) | OperatorPoint::Share(..) | OperatorPoint::Link(..) => &[Delete],
        }
    }
}

/// A change of an account. What is not sent stays as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountChange {
    quota: Option<NewQuota>,
    permissions: Option<NewPermissions>,
    enabled: Option<bool>,
}

/// New limits, both of which have to be sent. `null` is no limit but the disk.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewQuota {
    #[serde(deserialize_with = "Option::deserialize")]
    bytes: Option<u64>,
    #[serde(deserialize_with = "Option::deserialize")]
    files: Option<u64>,
}

/// New permissions, all of which have to be sent: one that was left out would be lost.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPermissions {
    read: bool,
    write: bool,
    delete: bool,
    share: bool,
    operate: bool,
    parents: bool,
    administer: bool,
}

impl From<NewPermissions> for Change {
    fn from(new: NewPermissions) -> Change {
        let NewPermissions { read, write, delete, share, operate, parents, administer } = new;
        Change::Permissions(Permissions { read, write, delete, share, operate, parents, administer })
    }
}

/// The JSON of an account, for operators.
#[derive(Serialize)]
struct AccountJson {
    name: String,
    enabled: bool,
    created: String,
    quota: Quota,
    permissions: Permissions,
    /// In the response about one account only: counting the files of a home may take long.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Used>,
}

/// A page of accounts, by name. `next` is the last name, if more follow.
#[derive(Serialize)]
struct Page {
    accounts: Vec<AccountJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl AccountJson {
    fn new(account: Account, usage: Option<Used>) -> AccountJson {
        let Account { name, quota, permissions, enabled, created, .. } = account;
        let created = format_rfc3339(since_1970(created));
        AccountJson { name, enabled, created, quota, permissions, usage }
    }
}

/// Returns the response of an endpoint to one of its methods.
pub(super) async fn answer(
    ask: RoutedRequest<'_, '_>,
    method: Method,
    point: OperatorPoint,
) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    check_session(&caller)?;
    let operations = &ask.web.operations;
    match &point {
        OperatorPoint::Accounts => list(ask, &caller).await,
        OperatorPoint::Account(name) if method == Method::Patch => change(ask, &caller, name).await,
        OperatorPoint::Account(name) => {
            let (account, usage) =
                operations.look_at_account_of(&caller, name).await.map_err(|error| absent(error, &point))?;
            Ok(json::answer(Status::OK, &AccountJson::new(account, Some(Used::from(usage)))))
        }
        OperatorPoint::Sessions(name) => done(operations.end_sessions_of(&caller, name).await, &point),
        OperatorPoint::Shares(name) => {
            let asked = Paging::from_query(ask.called.query, SHARES_PER_PAGE_MAX)?;
            let given = operations.shares_of(&caller, name).await.map_err(|error| absent(error, &point))?;
            Ok(shares::page(&asked, given))
        }
        OperatorPoint::Share(name, id) => done(operations.end_share_of(&caller, name, id).await, &point),
        OperatorPoint::Links(name) => {
            let asked = Paging::from_query(ask.called.query, LINKS_PER_PAGE_MAX)?;
            let made = operations.links_of(&caller, name).await.map_err(|error| absent(error, &point))?;
            Ok(links::page(&asked, made))
        }
        OperatorPoint::Link(name, id) => done(operations.end_link_of(&caller, name, id).await, &point),
    }
}

/// Checks that a caller with the right has a session, by which the auth tier verifies the right. One without
/// the right is refused by the operation, which notes that in the transfer log.
///
/// # Errors
/// The caller has presented a password.
pub(crate) fn check_session(caller: &Caller) -> Result<(), Refusal> {
    if caller.identity.account.permissions.administer && caller.identity.session().is_none() {
        let detail = "This takes the token of a session, and no password. Log in: POST /api/sessions.";
        return Err(Refusal::new(Status::FORBIDDEN, detail));
    }
    Ok(())
}

/// Returns the name behind which a list starts.
pub(crate) fn after_of(query: Option<&[u8]>) -> Option<String> {
    let after = value_of(query?, "after")?;
    // A name has no space: a plus sign that a client did not encode is one.
    Some(String::from_utf8_lossy(&after).replace(' ', "+"))
}

async fn list(ask: RoutedRequest<'_, '_>, caller: &Caller) -> Result<Answer, Refusal> {
    let asked = Paging::from_query(ask.called.query, ACCOUNTS_PER_PAGE_MAX)?;
    let after = after_of(ask.called.query);
    let listed = ask.web.operations.list_accounts(caller, after).await?;
    let (accounts, next) = asked.page_of(listed, |account| &account.name);
    let accounts = accounts.into_iter().map(|account| AccountJson::new(account, None)).collect();
    Ok(json::answer(Status::OK, &Page { accounts, next }))
}

async fn change(ask: RoutedRequest<'_, '_>, caller: &Caller, name: &str) -> Result<Answer, Refusal> {
    let AccountChange { quota, permissions, enabled } = json::read(ask.request).await?;
    let quota = quota.map(|NewQuota { bytes, files }| Change::Quota(Quota { bytes, files }));
    let changes = [quota, permissions.map(Change::from), enabled.map(Change::Enabled)];
    let changes: Vec<Change> = changes.into_iter().flatten().collect();
    if changes.is_empty() {
        return Err(Refusal::bad("Send what to change: \"quota\", \"permissions\" or \"enabled\"."));
    }
    let point = OperatorPoint::Account(name.to_owned());
    let changed = ask.web.operations.change_account(caller, name, changes).await;
    let changed = changed.map_err(|error| absent(error, &point))?;
    Ok(json::answer(Status::OK, &AccountJson::new(changed, None)))
}

fn done(ended: Result<(), Error>, point: &OperatorPoint) -> Result<Answer, Refusal> {
    ended.map_err(|error| absent(error, point))?;
    Ok(Answer::new(Status::NO_CONTENT))
}

/// Names what is missing: the account, or its share or link.
fn absent(error: Error, point: &OperatorPoint) -> Refusal {
    let detail = match (error, point) {
        (
            Error::Auth(AuthError::NotFound),
            OperatorPoint::Share(name, id) | OperatorPoint::Link(name, id),
        ) => {
            format!("There is no account {name:?}, or it gives no {id:?}. List what it gives, and try again.")
        }
        (
            Error::Auth(AuthError::NotFound),
            OperatorPoint::Account(name)
            | OperatorPoint::Sessions(name)
            | OperatorPoint::Shares(name)
            | OperatorPoint::Links(name),
        ) => format!("There is no account {name:?}. See those there are: GET /api/operate/accounts"),
        (error, _) => return error.into(),
    };
    Refusal::new(Status::NOT_FOUND, detail)
}
