//! The rows of a MySQL database, for dumps and moves.
//!
//! Invariants: all rows are read in one read-only transaction, of one snapshot. Text is in a statement as
//! hexadecimal digits only.

use super::MysqlDirectory;
use super::connection::{Connection, MysqlRow};
use super::rows::literal;
use crate::directory::database::DatabaseConnection as _;
use crate::directory::database::deadline::Deadline;
use crate::directory::transfer::{
    DirectoryRows, StoredAccount, StoredLink, StoredLock, StoredNetwork, StoredRow, StoredSession,
    StoredShare, Table, TlsTerms, read_pages,
};
use crate::directory::{DirectoryError, Schema, migrations};
use crate::limits::{DATABASE_MIGRATION_TIME, DATABASE_TIME, TRANSFER_ROWS};

fn read(table: Table, row: &MysqlRow) -> Result<StoredRow, DirectoryError> {
    Ok(match table {
        Table::Accounts => StoredRow::Account(StoredAccount {
            id: row.int(0)?,
            name: row.text(1)?.to_owned(),
            hash: row.text(2)?.to_owned(),
            version: row.int(3)?,
            quota_bytes: row.maybe_int(4)?,
            quota_files: row.maybe_int(5)?,
            permissions: row.int(6)?,
            enabled: row.int(7)? != 0,
            created: row.int(8)?,
        }),
        Table::Sessions => StoredRow::Session(StoredSession {
            id: row.bytes(0)?.to_vec(),
            account: row.int(1)?,
            created: row.int(2)?,
            expires: row.int(3)?,
        }),
        Table::Shares => StoredRow::Share(StoredShare {
            id: row.text(0)?.to_owned(),
            owner: row.int(1)?,
            holder: row.int(2)?,
            path: row.bytes(3)?.to_vec(),
            writes: row.int(4)? != 0,
            created: row.int(5)?,
            expires: row.maybe_int(6)?,
        }),
        Table::Networks => StoredRow::Network(StoredNetwork {
            account: row.int(0)?,
            network: row.bytes(1)?.to_vec(),
            seen: row.int(2)?,
        }),
        Table::Links => StoredRow::Link(link(row)?),
        Table::Locks => StoredRow::Lock(lock(row)?),
    })
}

/// Reads a lock.
pub(super) fn lock(row: &MysqlRow) -> Result<StoredLock, DirectoryError> {
    Ok(StoredLock {
        id: row.text(0)?.to_owned(),
        owner: row.int(1)?,
        holder: row.int(2)?,
        path: row.bytes(3)?.to_vec(),
        shared: row.int(4)? != 0,
        deep: row.int(5)? != 0,
        about: row.text(6)?.to_owned(),
        created: row.int(7)?,
        expires: row.int(8)?,
    })
}

/// Returns the values of a lock, in the order of its columns.
pub(super) fn lock_values(row: &StoredLock) -> String {
    let StoredLock { owner, holder, shared, deep, created, expires, .. } = row;
    let texts = [row.id.as_bytes(), &row.path, row.about.as_bytes()];
    let [id, path, owner_xml] = texts.map(literal);
    format!("{id}, {owner}, {holder}, {path}, {shared}, {deep}, {owner_xml}, {created}, {expires}")
}

/// Reads a link.
pub(super) fn link(row: &MysqlRow) -> Result<StoredLink, DirectoryError> {
    Ok(StoredLink {
        id: row.text(0)?.to_owned(),
        owner: row.int(1)?,
        path: row.bytes(2)?.to_vec(),
        uploads: row.int(3)? != 0,
        created: row.int(4)?,
        expires: row.maybe_int(5)?,
        password: row.text(6)?.to_owned(),
        secret: row.bytes(7)?.to_vec(),
        uses_max: row.maybe_int(8)?,
        uses: row.int(9)?,
        bytes_max: row.maybe_int(10)?,
        bytes: row.int(11)?,
    })
}

/// Returns the values of a link, in the order of its columns.
pub(super) fn link_values(row: &StoredLink) -> String {
    [
        literal(&row.id),
        row.owner.to_string(),
        literal(&row.path),
        row.uploads.to_string(),
        row.created.to_string(),
        maybe(row.expires),
        literal(&row.password),
        literal(&row.secret),
        maybe(row.uses_max),
        row.uses.to_string(),
        maybe(row.bytes_max),
        row.bytes.to_string(),
    ]
    .join(", ")
}

fn maybe(number: Option<i64>) -> String {
    number.map_or("NULL".to_owned(), |number| number.to_string())
}

fn insert(row: &StoredRow) -> String {
    match row {
        StoredRow::Account(row) => format!(
            "INSERT INTO plimsoll_accounts ({}) VALUES ({}, {}, {}, {}, {}, {}, {}, {}, {})",
            Table::Accounts.columns(),
            row.id,
            literal(&row.name),
            literal(&row.hash),
            row.version,
            maybe(row.quota_bytes),
            maybe(row.quota_files),
            row.permissions,
            row.enabled,
            row.created
        ),
        StoredRow::Session(row) => format!(
            "INSERT INTO plimsoll_sessions ({}) VALUES ({}, {}, {}, {})",
            Table::Sessions.columns(),
            literal(&row.id),
            row.account,
            row.created,
            row.expires
        ),
        StoredRow::Share(row) => {
            let path = literal(&row.path);
            format!(
                "INSERT INTO plimsoll_shares ({}, path_hash)
                VALUES ({}, {}, {}, {path}, {}, {}, {}, UNHEX(SHA2({path}, 256)))",
                Table::Shares.columns(),
                literal(&row.id),
                row.owner,
                row.holder,
                row.writes,
                row.created,
                maybe(row.expires)
            )
        }
        StoredRow::Network(row) => format!(
            "INSERT INTO plimsoll_networks ({}) VALUES ({}, {}, {})",
            Table::Networks.columns(),
            row.account,
            literal(&row.network),
            row.seen
        ),
        StoredRow::Lock(row) => {
            format!("INSERT INTO plimsoll_locks ({}) VALUES ({})", Table::Locks.columns(), lock_values(row))
        }
        StoredRow::Link(row) => {
            format!("INSERT INTO plimsoll_links ({}) VALUES ({})", Table::Links.columns(), link_values(row))
        }
    }
}

/// Returns the condition for rows after this one, and their order.
fn after(table: Table, last: Option<&StoredRow>) -> (String, &'static str) {
    let condition = match last {
        None => "TRUE".to_owned(),
        Some(StoredRow::Account(row)) => format!("id > {}", row.id),
        Some(StoredRow::Session(row)) => format!("id > {}", literal(&row.id)),
        Some(StoredRow::Share(row)) => format!("id > {}", literal(&row.id)),
        Some(StoredRow::Link(row)) => format!("id > {}", literal(&row.id)),
        Some(StoredRow::Lock(row)) => format!("id > {}", literal(&row.id)),
        Some(StoredRow::Network(row)) => {
            let (account, network) = (row.account, literal(&row.network));
            format!("(account > {account} OR (account = {account} AND network > {network}))")
        }
    };
    (condition, if table == Table::Networks { "account, network" } else { "id" })
}

/// Reads the rows of a table after `last`.
fn page(
    connection: &mut Connection,
    table: Table,
    last: Option<&StoredRow>,
) -> Result<Vec<StoredRow>, DirectoryError> {
    connection.set_deadline(Deadline::after(DATABASE_TIME));
    let ((condition, order), columns, name) = (after(table, last), table.columns(), table.name());
    let sql = format!(
        "SELECT {columns} FROM plimsoll_{name} WHERE {condition} ORDER BY {order} LIMIT {TRANSFER_ROWS}"
    );
    connection.run(&[sql])?[0].rows.iter().map(|row| read(table, row)).collect()
}

impl DirectoryRows for MysqlDirectory {
    fn schema(&mut self) -> Result<Schema, DirectoryError> {
        self.database.call(migrations::schema)
    }

    fn close(&mut self, reason: &str) -> Result<(), DirectoryError> {
        let sql = match reason {
            "" => "DELETE FROM plimsoll_closed".to_owned(),
            reason => format!("REPLACE INTO plimsoll_closed VALUES (1, {})", literal(reason)),
        };
        self.change_by(&[sql]).map(drop)
    }

    fn read_rows(
        &mut self,
        each: &mut dyn FnMut(StoredRow) -> Result<(), DirectoryError>,
    ) -> Result<(), DirectoryError> {
        self.database.call(|connection| {
            connection.run(&[
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ".to_owned(),
                "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY".to_owned(),
            ])?;
            for table in Table::ALL {
                read_pages(|last| page(connection, table, last), each)?;
            }
            connection.run(&["COMMIT".to_owned()]).map(drop)
        })
    }

    fn write_rows(&mut self, rows: &[StoredRow]) -> Result<(), DirectoryError> {
        self.change_by(&rows.iter().map(insert).collect::<Vec<_>>()).map(drop)
    }

    fn remove_rows(&mut self) -> Result<(), DirectoryError> {
        let raise = "UPDATE plimsoll_state SET changes = LAST_INSERT_ID(changes + 1)".to_owned();
        self.database.call(|connection| {
            connection.set_deadline(Deadline::after(DATABASE_MIGRATION_TIME));
            for table in Table::ALL.into_iter().rev() {
                // In parts, each within the server's limit on the time of a statement.
                let part = format!("DELETE FROM plimsoll_{} LIMIT {}", table.name(), 50 * TRANSFER_ROWS);
                while connection.run(std::slice::from_ref(&part))?[0].count > 0 {}
            }
            connection.run(std::slice::from_ref(&raise)).map(drop)
        })
    }

    fn ping(&mut self) -> Result<(), DirectoryError> {
        self.rows("SELECT 1".to_owned()).map(drop)
    }

    fn tls(&self) -> Option<TlsTerms> {
        self.database.address().encryption.latest_terms()
    }
}
