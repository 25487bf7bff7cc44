//! The rows of a file, for dumps and moves.
//!
//! Invariants: all rows are read in one transaction. A session that was revoked on a full disk is not among
//! them.

use rusqlite::Row;

use super::{SqliteDirectory, failed, one, run};
use crate::directory::transfer::{
    DirectoryRows, StoredAccount, StoredLink, StoredLock, StoredNetwork, StoredRow, StoredSession,
    StoredShare, Table,
};
use crate::directory::{DirectoryError, Schema, migrations};
use crate::sessions::SessionId;

/// Returns the statement that reads a table.
pub(super) fn select(table: Table) -> String {
    // A share's column has another name here.
    let columns = table.columns().replace("writes", "permission");
    format!("SELECT {columns} FROM {}", table.name())
}

fn read(table: Table, row: &Row<'_>) -> rusqlite::Result<StoredRow> {
    Ok(match table {
        Table::Accounts => StoredRow::Account(StoredAccount {
            id: row.get(0)?,
            name: row.get(1)?,
            hash: row.get(2)?,
            version: row.get(3)?,
            quota_bytes: row.get(4)?,
            quota_files: row.get(5)?,
            permissions: row.get(6)?,
            enabled: row.get(7)?,
            created: row.get(8)?,
        }),
        Table::Sessions => StoredRow::Session(StoredSession {
            id: row.get(0)?,
            account: row.get(1)?,
            created: row.get(2)?,
            expires: row.get(3)?,
        }),
        Table::Shares => StoredRow::Share(StoredShare {
            id: row.get(0)?,
            owner: row.get(1)?,
            holder: row.get(2)?,
            path: row.get(3)?,
            writes: row.get(4)?,
            created: row.get(5)?,
            expires: row.get(6)?,
        }),
        Table::Networks => StoredRow::Network(StoredNetwork {
            account: row.get(0)?,
            network: row.get(1)?,
            seen: row.get(2)?,
        }),
        Table::Links => StoredRow::Link(link(row)?),
        Table::Locks => StoredRow::Lock(lock(row)?),
    })
}

/// Reads a lock.
pub(super) fn lock(row: &Row<'_>) -> rusqlite::Result<StoredLock> {
    Ok(StoredLock {
        id: row.get(0)?,
        owner: row.get(1)?,
        holder: row.get(2)?,
        path: row.get(3)?,
        shared: row.get(4)?,
        deep: row.get(5)?,
        about: row.get(6)?,
        created: row.get(7)?,
        expires: row.get(8)?,
    })
}

/// Reads a link.
pub(super) fn link(row: &Row<'_>) -> rusqlite::Result<StoredLink> {
    Ok(StoredLink {
        id: row.get(0)?,
        owner: row.get(1)?,
        path: row.get(2)?,
        uploads: row.get(3)?,
        created: row.get(4)?,
        expires: row.get(5)?,
        password: row.get(6)?,
        secret: row.get(7)?,
        uses_max: row.get(8)?,
        uses: row.get(9)?,
        bytes_max: row.get(10)?,
        bytes: row.get(11)?,
    })
}

fn insert(connection: &rusqlite::Connection, row: &StoredRow) -> Result<usize, DirectoryError> {
    match row {
        StoredRow::Account(row) => run(
            connection,
            "INSERT INTO accounts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            (
                row.id,
                &row.name,
                &row.hash,
                row.version,
                row.quota_bytes,
                row.quota_files,
                row.permissions,
                row.enabled,
                row.created,
            ),
        ),
        StoredRow::Session(row) => run(
            connection,
            "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4)",
            (&row.id, row.account, row.created, row.expires),
        ),
        StoredRow::Share(row) => run(
            connection,
            "INSERT INTO shares VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (&row.id, row.owner, row.holder, &row.path, row.writes, row.created, row.expires),
        ),
        StoredRow::Network(row) => {
            run(connection, "INSERT INTO networks VALUES (?1, ?2, ?3)", (row.account, &row.network, row.seen))
        }
        StoredRow::Link(row) => insert_link(connection, row),
        StoredRow::Lock(row) => insert_lock(connection, row),
    }
}

/// Stores a lock.
pub(super) fn insert_lock(
    connection: &rusqlite::Connection,
    row: &StoredLock,
) -> Result<usize, DirectoryError> {
    run(
        connection,
        "INSERT INTO locks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            &row.id,
            row.owner,
            row.holder,
            &row.path,
            row.shared,
            row.deep,
            &row.about,
            row.created,
            row.expires,
        ),
    )
}

/// Stores a link.
pub(super) fn insert_link(
    connection: &rusqlite::Connection,
    row: &StoredLink,
) -> Result<usize, DirectoryError> {
    run(
        connection,
        "INSERT INTO links VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        (
            &row.id,
            row.owner,
            &row.path,
            row.uploads,
            row.created,
            row.expires,
            &row.password,
            &row.secret,
            row.uses_max,
            row.uses,
            row.bytes_max,
            row.bytes,
        ),
    )
}

impl DirectoryRows for SqliteDirectory {
    fn schema(&mut self) -> Result<Schema, DirectoryError> {
        migrations::schema(&mut self.connection)
    }

    fn close(&mut self, reason: &str) -> Result<(), DirectoryError> {
        run(&self.connection, "UPDATE state SET closed = ?1", [reason]).map(drop)
    }

    fn read_rows(
        &mut self,
        each: &mut dyn FnMut(StoredRow) -> Result<(), DirectoryError>,
    ) -> Result<(), DirectoryError> {
        self.revoked.refresh();
        let transaction = self.connection.unchecked_transaction().map_err(failed)?;
        for table in Table::ALL {
            let mut prepared = transaction.prepare(&select(table)).map_err(failed)?;
            let rows = prepared.query_map((), |row| read(table, row)).map_err(failed)?;
            for row in rows {
                let row = row.map_err(failed)?;
                if !is_revoked(&self.revoked, &row) {
                    each(row)?;
                }
            }
        }
        Ok(())
    }

    fn write_rows(&mut self, rows: &[StoredRow]) -> Result<(), DirectoryError> {
        let transaction = self.begin()?;
        for row in rows {
            insert(&transaction, row)?;
        }
        transaction.commit().map_err(failed)
    }

    fn remove_rows(&mut self) -> Result<(), DirectoryError> {
        let transaction = self.begin()?;
        for table in Table::ALL.into_iter().rev() {
            run(&transaction, &format!("DELETE FROM {}", table.name()), ())?;
        }
        transaction.commit().map_err(failed)
    }

    fn find_damage(&mut self) -> Result<Option<String>, DirectoryError> {
        let found = one(&self.connection, "PRAGMA integrity_check", (), |row| row.get::<_, String>(0))?;
        Ok(found.filter(|found| found != "ok"))
    }
}

fn is_revoked(revoked: &super::Revoked, row: &StoredRow) -> bool {
    let StoredRow::Session(session) = row else { return false };
    session.id.as_slice().try_into().is_ok_and(|id| revoked.contains(SessionId(id)))
}
