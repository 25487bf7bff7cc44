//! The rows of a directory in Redis, for dumps and moves.
//!
//! They are read in parts, while servers may change them. Invariants: a row that is there from the begin of
//! a dump to its end is in it, once. The rows of one account are of one moment, so no two contradict each
//! other. A row is in it only if the accounts that it refers to are.

use std::collections::BTreeSet;

use super::connection::{Connection, Reply, strange};
use super::schema::Upgrade;
use super::{RedisDirectory, flag, text};
use crate::directory::database::deadline::Deadline;
use crate::directory::transfer::{
    DirectoryRows, StoredAccount, StoredLink, StoredLock, StoredNetwork, StoredRow, StoredSession,
    StoredShare, Table, TlsTerms,
};
use crate::directory::{DirectoryError, Schema, migrations};
use crate::limits::{DATABASE_TIME, TRANSFER_ROWS};
use plimsoll_wire::hex;

fn digits(reply: &Reply) -> Result<Vec<u8>, DirectoryError> {
    hex::decode(reply.bytes()?).ok_or_else(strange)
}

fn read(table: Table, row: &Reply) -> Result<StoredRow, DirectoryError> {
    let int = |at| row.at(at)?.int();
    let is_set = |at| Ok::<_, DirectoryError>(row.at(at)?.bytes()? == b"1");
    Ok(match table {
        Table::Accounts => StoredRow::Account(StoredAccount {
            id: int(0)?,
            name: row.at(1)?.text()?.to_owned(),
            hash: row.at(2)?.text()?.to_owned(),
            version: int(3)?,
            quota_bytes: row.at(4)?.maybe_int()?,
            quota_files: row.at(5)?.maybe_int()?,
            permissions: int(6)?,
            enabled: is_set(7)?,
            created: int(8)?,
        }),
        Table::Sessions => StoredRow::Session(StoredSession {
            id: digits(row.at(0)?)?,
            account: int(1)?,
            created: int(2)?,
            expires: int(3)?,
        }),
        Table::Shares => StoredRow::Share(StoredShare {
            id: row.at(0)?.text()?.to_owned(),
            owner: int(1)?,
            holder: int(2)?,
            path: row.at(3)?.bytes()?.to_vec(),
            writes: is_set(4)?,
            created: int(5)?,
            expires: row.at(6)?.maybe_int()?,
        }),
        Table::Networks => StoredRow::Network(StoredNetwork {
            account: int(0)?,
            network: digits(row.at(1)?)?,
            seen: int(2)?,
        }),
        Table::Links => StoredRow::Link(link(row)?),
        Table::Locks => StoredRow::Lock(lock(row)?),
    })
}

/// Reads a lock.
pub(super) fn lock(row: &Reply) -> Result<StoredLock, DirectoryError> {
    let int = |at| row.at(at)?.int();
    let is_set = |at| Ok::<_, DirectoryError>(row.at(at)?.bytes()? == b"1");
    Ok(StoredLock {
        id: row.at(0)?.text()?.to_owned(),
        owner: int(1)?,
        holder: int(2)?,
        path: row.at(3)?.bytes()?.to_vec(),
        shared: is_set(4)?,
        deep: is_set(5)?,
        about: row.at(6)?.text()?.to_owned(),
        created: int(7)?,
        expires: int(8)?,
    })
}

/// Returns the values of a lock, in the order of its columns.
pub(super) fn lock_words(row: &StoredLock) -> Vec<Vec<u8>> {
    let texts = [row.id.clone(), text(row.owner), text(row.holder)];
    let last = [
        flag(row.shared).to_owned(),
        flag(row.deep).to_owned(),
        row.about.clone(),
        text(row.created),
        text(row.expires),
    ];
    let first = texts.into_iter().map(String::into_bytes).chain([row.path.clone()]);
    first.chain(last.into_iter().map(String::into_bytes)).collect()
}

/// Reads a link.
pub(super) fn link(row: &Reply) -> Result<StoredLink, DirectoryError> {
    let int = |at| row.at(at)?.int();
    let maybe_int = |at| row.at(at)?.maybe_int();
    Ok(StoredLink {
        id: row.at(0)?.text()?.to_owned(),
        owner: int(1)?,
        path: row.at(2)?.bytes()?.to_vec(),
        uploads: row.at(3)?.bytes()? == b"1",
        created: int(4)?,
        expires: maybe_int(5)?,
        password: row.at(6)?.text()?.to_owned(),
        secret: digits(row.at(7)?)?,
        uses_max: maybe_int(8)?,
        uses: int(9)?,
        bytes_max: maybe_int(10)?,
        bytes: int(11)?,
    })
}

/// Returns the values of a link, in the order of its columns.
pub(super) fn link_words(row: &StoredLink) -> Vec<Vec<u8>> {
    let texts = [
        flag(row.uploads).to_owned(),
        text(row.created),
        maybe(row.expires),
        row.password.clone(),
        hex::encode(&row.secret),
        maybe(row.uses_max),
        text(row.uses),
        maybe(row.bytes_max),
        text(row.bytes),
    ];
    let first = [row.id.clone().into_bytes(), text(row.owner).into_bytes(), row.path.clone()];
    first.into_iter().chain(texts.map(String::into_bytes)).collect()
}

/// Formats a number; `None` is an empty text.
fn maybe(number: Option<i64>) -> String {
    number.map(text).unwrap_or_default()
}

/// Returns the command of the script that stores a row, and its arguments.
fn words(row: &StoredRow) -> (&'static [u8], Vec<Vec<u8>>) {
    let bytes = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
    match row {
        StoredRow::Account(row) => (
            b"store_account",
            bytes(&[
                &text(row.id),
                &row.name,
                &row.hash,
                &text(row.version),
                &maybe(row.quota_bytes),
                &maybe(row.quota_files),
                &text(row.permissions),
                flag(row.enabled),
                &text(row.created),
            ]),
        ),
        StoredRow::Session(row) => (
            b"store_session",
            bytes(&[&hex::encode(&row.id), &text(row.account), &text(row.created), &text(row.expires)]),
        ),
        StoredRow::Share(row) => {
            let (writes, created, expires) = (flag(row.writes), text(row.created), maybe(row.expires));
            let mut words: Vec<Vec<u8>> = bytes(&[&row.id, &text(row.owner), &text(row.holder)]);
            words.push(row.path.clone());
            words.extend::<Vec<Vec<u8>>>(bytes(&[writes, &created, &expires]));
            (b"store_share", words)
        }
        StoredRow::Network(row) => {
            (b"store_network", bytes(&[&text(row.account), &hex::encode(&row.network), &text(row.seen)]))
        }
        StoredRow::Link(row) => (b"store_link", link_words(row)),
        StoredRow::Lock(row) => (b"store_lock", lock_words(row)),
    }
}

/// Repeats a command of the script with the position that it returns, until that is 0. Calls `each` with the
/// replies.
fn in_parts(
    connection: &mut Connection,
    question: &[u8],
    mut each: impl FnMut(&Reply) -> Result<(), DirectoryError>,
) -> Result<(), DirectoryError> {
    let (mut position, count) = (b"0".to_vec(), TRANSFER_ROWS.to_string());
    loop {
        connection.set_deadline(Deadline::after(DATABASE_TIME));
        let reply = connection.ask(&[question, &position, count.as_bytes()])?;
        each(&reply)?;
        reply.at(0)?.bytes()?.clone_into(&mut position);
        if position == b"0" {
            return Ok(());
        }
    }
}

/// Calls `each` with every account. Returns their numbers, sorted.
fn read_accounts(
    connection: &mut Connection,
    each: &mut dyn FnMut(StoredRow) -> Result<(), DirectoryError>,
) -> Result<Vec<i64>, DirectoryError> {
    // The cursor may return a name twice. The second may be of another account, if the first was removed.
    let (mut names, mut numbers) = (BTreeSet::new(), Vec::new());
    in_parts(connection, b"stored_accounts", |reply| {
        for row in reply.at(1)?.many()? {
            let row = read(Table::Accounts, row)?;
            if let StoredRow::Account(account) = &row
                && names.insert(account.name.clone())
            {
                numbers.push(account.id);
                each(row)?;
            }
        }
        Ok(())
    })?;
    numbers.sort_unstable();
    Ok(numbers)
}

/// Calls `each` with the rows of these accounts, except shares with others.
fn read_rows_of(
    connection: &mut Connection,
    accounts: &[i64],
    each: &mut dyn FnMut(StoredRow) -> Result<(), DirectoryError>,
) -> Result<(), DirectoryError> {
    let (mut left, count) = (accounts, TRANSFER_ROWS.to_string());
    while !left.is_empty() {
        let part: Vec<String> = left.iter().take(TRANSFER_ROWS).map(|id| text(*id)).collect();
        let words =
            [b"stored_of".as_slice(), count.as_bytes()].into_iter().chain(part.iter().map(String::as_bytes));
        connection.set_deadline(Deadline::after(DATABASE_TIME));
        let reply = connection.ask(&words.collect::<Vec<_>>())?;
        let tables = [Table::Sessions, Table::Shares, Table::Networks, Table::Links, Table::Locks];
        for (at, table) in (1..).zip(tables) {
            for row in reply.at(at)?.many()? {
                let row = read(table, row)?;
                // An account that was created meanwhile is not in the dump.
                let holder = match &row {
                    StoredRow::Share(row) => Some(row.holder),
                    StoredRow::Lock(row) => Some(row.holder),
                    _ => None,
                };
                let is_partial = holder.is_some_and(|holder| accounts.binary_search(&holder).is_err());
                if !is_partial {
                    each(row)?;
                }
            }
        }
        let done = usize::try_from(reply.at(0)?.int()?).ok().filter(|done| *done > 0);
        left = done.and_then(|done| left.get(done..)).ok_or_else(strange)?;
    }
    Ok(())
}

impl DirectoryRows for RedisDirectory {
    fn schema(&mut self) -> Result<Schema, DirectoryError> {
        self.database.call(|connection| migrations::schema(&mut Upgrade::new(connection)))
    }

    fn close(&mut self, reason: &str) -> Result<(), DirectoryError> {
        self.ask("close", &[reason]).map(drop)
    }

    fn read_rows(
        &mut self,
        each: &mut dyn FnMut(StoredRow) -> Result<(), DirectoryError>,
    ) -> Result<(), DirectoryError> {
        let changed = self.database.call(|connection| {
            let before = connection.ask(&[b"row_counts"])?;
            let accounts = read_accounts(connection, each)?;
            read_rows_of(connection, &accounts, each)?;
            Ok(connection.ask(&[b"row_counts"])? != before)
        });
        self.changed_meanwhile = changed?;
        Ok(())
    }

    fn is_of_one_moment(&self) -> bool {
        !self.changed_meanwhile
    }

    fn write_rows(&mut self, rows: &[StoredRow]) -> Result<(), DirectoryError> {
        self.database.call(|connection| {
            for row in rows {
                let (question, words) = words(row);
                let all = [question].into_iter().chain(words.iter().map(Vec::as_slice)).collect::<Vec<_>>();
                connection.set_deadline(Deadline::after(DATABASE_TIME));
                connection.ask(&all)?;
            }
            Ok(())
        })
    }

    fn remove_rows(&mut self) -> Result<(), DirectoryError> {
        self.database.call(|connection| in_parts(connection, b"remove_rows", |_| Ok(())))
    }

    fn ping(&mut self) -> Result<(), DirectoryError> {
        self.database.call(|connection| connection.ask(&[b"state"])).map(drop)
    }

    fn tls(&self) -> Option<TlsTerms> {
        self.database.address().encryption.latest_terms()
    }
}
