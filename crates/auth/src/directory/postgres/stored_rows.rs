//! The rows of a PostgreSQL database, for dumps and moves.
//!
//! Invariant: all rows are read in one read-only transaction, of one snapshot.

use super::connection::Value::{Bool, Bytes, Int, Text};
use super::connection::{BEGIN, Connection, PostgresRow, Value};
use super::{PostgresDirectory, number};
use crate::directory::database::deadline::Deadline;
use crate::directory::transfer::{
    DirectoryRows, StoredAccount, StoredLink, StoredLock, StoredNetwork, StoredRow, StoredSession,
    StoredShare, Table, TlsTerms, read_pages,
};
use crate::directory::{DirectoryError, Schema, migrations};
use crate::limits::{DATABASE_MIGRATION_TIME, DATABASE_TIME, TRANSFER_ROWS};

/// Returns the columns that order the pages of a table.
fn key(table: Table) -> &'static str {
    match table {
        Table::Accounts | Table::Sessions | Table::Shares | Table::Links | Table::Locks => "id",
        Table::Networks => "account, network",
    }
}

/// Returns the values of a row's [`key`].
fn key_of(row: &StoredRow) -> Vec<Value<'_>> {
    match row {
        StoredRow::Account(row) => vec![number(row.id)],
        StoredRow::Session(row) => vec![Bytes(Some(&row.id))],
        StoredRow::Share(row) => vec![Text(&row.id)],
        StoredRow::Link(row) => vec![Text(&row.id)],
        StoredRow::Lock(row) => vec![Text(&row.id)],
        StoredRow::Network(row) => vec![number(row.account), Bytes(Some(&row.network))],
    }
}

fn read(table: Table, row: &PostgresRow) -> Result<StoredRow, DirectoryError> {
    Ok(match table {
        Table::Accounts => StoredRow::Account(StoredAccount {
            id: row.int(0)?,
            name: row.text(1)?.to_owned(),
            hash: row.text(2)?.to_owned(),
            version: row.int(3)?,
            quota_bytes: row.maybe_int(4)?,
            quota_files: row.maybe_int(5)?,
            permissions: row.int(6)?,
            enabled: row.is_true(7)?,
            created: row.int(8)?,
        }),
        Table::Sessions => StoredRow::Session(StoredSession {
            id: row.bytes(0)?,
            account: row.int(1)?,
            created: row.int(2)?,
            expires: row.int(3)?,
        }),
        Table::Shares => StoredRow::Share(StoredShare {
            id: row.text(0)?.to_owned(),
            owner: row.int(1)?,
            holder: row.int(2)?,
            path: row.bytes(3)?,
            writes: row.is_true(4)?,
            created: row.int(5)?,
            expires: row.maybe_int(6)?,
        }),
        Table::Networks => StoredRow::Network(StoredNetwork {
            account: row.int(0)?,
            network: row.bytes(1)?,
            seen: row.int(2)?,
        }),
        Table::Links => StoredRow::Link(link(row)?),
        Table::Locks => StoredRow::Lock(lock(row)?),
    })
}

/// Reads a lock.
pub(super) fn lock(row: &PostgresRow) -> Result<StoredLock, DirectoryError> {
    Ok(StoredLock {
        id: row.text(0)?.to_owned(),
        owner: row.int(1)?,
        holder: row.int(2)?,
        path: row.bytes(3)?,
        shared: row.is_true(4)?,
        deep: row.is_true(5)?,
        about: row.text(6)?.to_owned(),
        created: row.int(7)?,
        expires: row.int(8)?,
    })
}

/// Returns the values of a lock, in the order of its columns.
pub(super) fn lock_values(row: &StoredLock) -> Vec<Value<'_>> {
    vec![
        Text(&row.id),
        number(row.owner),
        number(row.holder),
        Bytes(Some(&row.path)),
        Bool(row.shared),
        Bool(row.deep),
        Text(&row.about),
        number(row.created),
        number(row.expires),
    ]
}

/// Reads a link.
pub(super) fn link(row: &PostgresRow) -> Result<StoredLink, DirectoryError> {
    Ok(StoredLink {
        id: row.text(0)?.to_owned(),
        owner: row.int(1)?,
        path: row.bytes(2)?,
        uploads: row.is_true(3)?,
        created: row.int(4)?,
        expires: row.maybe_int(5)?,
        password: row.text(6)?.to_owned(),
        secret: row.bytes(7)?,
        uses_max: row.maybe_int(8)?,
        uses: row.int(9)?,
        bytes_max: row.maybe_int(10)?,
        bytes: row.int(11)?,
    })
}

/// Returns the values of a link, in the order of its columns.
pub(super) fn link_values(row: &StoredLink) -> Vec<Value<'_>> {
    vec![
        Text(&row.id),
        number(row.owner),
        Bytes(Some(&row.path)),
        Bool(row.uploads),
        number(row.created),
        Int(row.expires),
        Text(&row.password),
        Bytes(Some(&row.secret)),
        Int(row.uses_max),
        number(row.uses),
        Int(row.bytes_max),
        number(row.bytes),
    ]
}

fn values(row: &StoredRow) -> (Table, Vec<Value<'_>>) {
    match row {
        StoredRow::Account(row) => (
            Table::Accounts,
            vec![
                number(row.id),
                Text(&row.name),
                Text(&row.hash),
                number(row.version),
                Int(row.quota_bytes),
                Int(row.quota_files),
                number(row.permissions),
                Bool(row.enabled),
                number(row.created),
            ],
        ),
        StoredRow::Session(row) => (
            Table::Sessions,
            vec![Bytes(Some(&row.id)), number(row.account), number(row.created), number(row.expires)],
        ),
        StoredRow::Share(row) => (
            Table::Shares,
            vec![
                Text(&row.id),
                number(row.owner),
                number(row.holder),
                Bytes(Some(&row.path)),
                Bool(row.writes),
                number(row.created),
                Int(row.expires),
            ],
        ),
        StoredRow::Network(row) => {
            (Table::Networks, vec![number(row.account), Bytes(Some(&row.network)), number(row.seen)])
        }
        StoredRow::Link(row) => (Table::Links, link_values(row)),
        StoredRow::Lock(row) => (Table::Locks, lock_values(row)),
    }
}

fn insert(table: Table, count: usize) -> String {
    let places = (1..=count).map(|at| format!("${at}")).collect::<Vec<_>>().join(", ");
    let (name, columns) = (table.name(), table.columns());
    format!("INSERT INTO {name} ({columns}) OVERRIDING SYSTEM VALUE VALUES ({places})")
}

/// Reads the rows of a table after `last`.
fn page(
    connection: &mut Connection,
    table: Table,
    last: Option<&StoredRow>,
) -> Result<Vec<StoredRow>, DirectoryError> {
    connection.set_deadline(Deadline::after(DATABASE_TIME));
    let after = last.map(key_of).unwrap_or_default();
    let condition = match after.len() {
        0 => String::new(),
        1 => format!("WHERE {} > $1", key(table)),
        _ => format!("WHERE ({}) > ($1, $2)", key(table)),
    };
    let (columns, name, order) = (table.columns(), table.name(), key(table));
    let sql = format!("SELECT {columns} FROM {name} {condition} ORDER BY {order} LIMIT {TRANSFER_ROWS}");
    connection.read((&sql, &after))?.rows.iter().map(|row| read(table, row)).collect()
}

impl DirectoryRows for PostgresDirectory {
    fn schema(&mut self) -> Result<Schema, DirectoryError> {
        self.database.call(migrations::schema)
    }

    fn close(&mut self, reason: &str) -> Result<(), DirectoryError> {
        self.run(&[("UPDATE state SET closed = $1", &[Text(reason)])]).map(drop)
    }

    fn read_rows(
        &mut self,
        each: &mut dyn FnMut(StoredRow) -> Result<(), DirectoryError>,
    ) -> Result<(), DirectoryError> {
        self.database.call(|connection| {
            connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
            for table in Table::ALL {
                read_pages(|last| page(connection, table, last), each)?;
            }
            connection.script("COMMIT")
        })
    }

    fn write_rows(&mut self, rows: &[StoredRow]) -> Result<(), DirectoryError> {
        let rows: Vec<_> = rows.iter().map(values).collect();
        let texts: Vec<String> = rows.iter().map(|(table, values)| insert(*table, values.len())).collect();
        let batch: Vec<_> =
            texts.iter().zip(&rows).map(|(text, (_, values))| (text.as_str(), values.as_slice())).collect();
        self.run(&batch).map(drop)
    }

    fn remove_rows(&mut self) -> Result<(), DirectoryError> {
        self.database.call(|connection| {
            connection.set_deadline(Deadline::after(DATABASE_MIGRATION_TIME));
            connection.script(&format!(
                "{BEGIN}; SET LOCAL statement_timeout = {}; TRUNCATE accounts, sessions, shares,
                networks, links, locks;
                UPDATE state SET changes = changes + 1; COMMIT",
                DATABASE_MIGRATION_TIME.as_millis()
            ))
        })
    }

    fn ping(&mut self) -> Result<(), DirectoryError> {
        self.read("SELECT 1", &[]).map(drop)
    }

    fn tls(&self) -> Option<TlsTerms> {
        self.database.address().encryption.latest_terms()
    }
}
