//! The operator's output about accounts: as a table, as text, as JSON.
//!
//! It does not look them up. Invariant: printed permissions can be typed again.

use plimsoll_auth::{Account, Permissions, Quota};
use plimsoll_cli::output::{columns, files as files_of, print, print_json, size, time};
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use serde::Serialize;

/// An account in JSON output. Its number is internal and not included.
#[derive(Serialize)]
pub(super) struct AccountJson {
    name: String,
    enabled: bool,
    quota: Quota,
    permissions: Permissions,
    created: String,
}

impl From<&Account> for AccountJson {
    fn from(account: &Account) -> AccountJson {
        AccountJson {
            name: account.name.clone(),
            enabled: account.enabled,
            quota: account.quota,
            permissions: account.permissions,
            created: created(account),
        }
    }
}

/// Prints the result of a change: the account as JSON, or `text`.
pub(super) fn print_done(json: bool, account: &Account, text: &str) -> anyhow::Result<()> {
    if json { print_json(&AccountJson::from(account)) } else { print(format!("{text}\n")) }
}

/// Prints a table of all `accounts`, or a JSON array.
pub(super) fn print_all(json: bool, accounts: &[Account]) -> anyhow::Result<()> {
    if json {
        return print_json(&accounts.iter().map(AccountJson::from).collect::<Vec<_>>());
    }
    if accounts.is_empty() {
        return print("There are no accounts yet. Add one: plimsoll account add NAME\n");
    }
    let head = ["name", "bytes", "files", "may", "log-in", "created"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(accounts.iter().map(row)).collect();
    print(columns(&rows, &[1, 2]))
}

fn row(account: &Account) -> Vec<String> {
    vec![
        account.name.clone(),
        account.quota.bytes.map_or_else(|| "none".to_owned(), size),
        account.quota.files.map_or_else(|| "none".to_owned(), |files| files.to_string()),
        permissions(account.permissions),
        log_in(account).to_owned(),
        time(&created(account)),
    ]
}

/// Formats permissions as they are typed for `permit`.
pub(super) fn permissions(may: Permissions) -> String {
    let words = [
        ("read", may.read),
        ("write", may.write),
        ("delete", may.delete),
        ("share", may.share),
        ("operate", may.operate),
    ];
    let words: Vec<&str> = words.into_iter().filter(|(_, may)| *may).map(|(word, _)| word).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(",") }
}

/// Formats a quota.
pub(super) fn bounds(quota: Quota) -> String {
    let bytes = quota.bytes.map_or_else(|| "no bound of bytes".to_owned(), size);
    let files = quota.files.map_or_else(|| "no bound of files".to_owned(), files_of);
    format!("{bytes}, {files}")
}

/// Returns whether the account may log in, as a word.
pub(super) fn log_in(account: &Account) -> &'static str {
    if account.enabled { "enabled" } else { "disabled" }
}

/// Returns the time of creation, in UTC.
pub(super) fn created(account: &Account) -> String {
    format_rfc3339(since_1970(account.created))
}
