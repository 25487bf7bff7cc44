//! The operator's output about accounts: as a table, as text, as JSON.
//!
//! It does not look them up. Invariant: printed permissions can be typed again.

use anyhow::Context as _;
use plimsoll_auth::{Account, Permissions, Quota};
use plimsoll_cli::output::{columns, files as files_of, print, print_json, size, time};
use plimsoll_engine::SystemFs;
use plimsoll_store::{Stored, Usage, stored};
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use serde::Serialize;

use crate::config::{Config, StoreAt};

/// An account in JSON output. Its number is internal and not included.
#[derive(Serialize)]
pub(super) struct AccountJson {
    name: String,
    enabled: bool,
    quota: Quota,
    permissions: Permissions,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uploads: Option<UploadsJson>,
}

/// Interrupted uploads, which count against the quota.
#[derive(Serialize)]
struct UploadsJson {
    count: u64,
    bytes: u64,
}

/// An account, and what its home stores, if that was counted.
pub(super) struct Counted {
    pub(super) account: Account,
    pub(super) stored: Option<Stored>,
}

impl Counted {
    /// Counts the account's home in the data folder of a server with these settings. None is counted if the
    /// files are at a storage server.
    pub(super) fn of(account: Account, config: &Config) -> anyhow::Result<Counted> {
        let stored = match config.fixed.store {
            StoreAt::Local => stored(&SystemFs, &config.fixed.data, &account.name)
                .with_context(|| format!("cannot count the files of {}", account.name))?
                .or(Some(Stored::default())),
            StoreAt::Remote(_) => None,
        };
        Ok(Counted { account, stored })
    }

    /// Formats the interrupted uploads.
    pub(super) fn uploads(&self) -> String {
        match self.stored {
            None => "unknown".to_owned(),
            Some(Stored { uploads: 0, .. }) => "none".to_owned(),
            Some(stored) => format!("{}, {}", stored.uploads, size(stored.upload_bytes)),
        }
    }
}

impl From<&Counted> for AccountJson {
    fn from(counted: &Counted) -> AccountJson {
        let stored = counted.stored;
        AccountJson {
            usage: stored.map(|stored| stored.usage),
            uploads: stored.map(|stored| UploadsJson { count: stored.uploads, bytes: stored.upload_bytes }),
            ..AccountJson::from(&counted.account)
        }
    }
}

impl From<&Account> for AccountJson {
    fn from(account: &Account) -> AccountJson {
        AccountJson {
            name: account.name.clone(),
            enabled: account.enabled,
            quota: account.quota,
            permissions: account.permissions,
            created: created(account),
            usage: None,
            uploads: None,
        }
    }
}

/// Prints the result of a change: the account as JSON, or `text`.
pub(super) fn print_done(json: bool, account: &Account, text: &str) -> anyhow::Result<()> {
    if json { print_json(&AccountJson::from(account)) } else { print(format!("{text}\n")) }
}

/// Prints a table of all `accounts`, or a JSON array.
pub(super) fn print_all(json: bool, accounts: &[Counted]) -> anyhow::Result<()> {
    if json {
        return print_json(&accounts.iter().map(AccountJson::from).collect::<Vec<_>>());
    }
    if accounts.is_empty() {
        return print("There are no accounts yet. Add one: plimsoll account add NAME\n");
    }
    let head = ["name", "stored", "uploads", "bytes", "files", "may", "log-in", "created"];
    let head = head.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(accounts.iter().map(row)).collect();
    print(columns(&rows, &[1, 2, 3, 4]))
}

fn row(counted: &Counted) -> Vec<String> {
    let account = &counted.account;
    vec![
        account.name.clone(),
        counted.stored.map_or_else(|| "unknown".to_owned(), |stored| size(stored.usage.bytes)),
        counted.uploads(),
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
        ("parents", may.parents),
        ("administer", may.administer),
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
