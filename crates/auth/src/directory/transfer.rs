//! The rows of a directory as every store has them: to dump, restore, move and compare directories.
//!
//! It decides nothing about accounts, and no server calls it. Invariants: a row is the same in every store.
//! The digest does not depend on the order of rows, because Redis has none. A dump ends with the number and
//! the digest of its rows, so that a part of a dump is not taken for a whole one.

use std::io::{self, BufRead, Read as _, Write};

use serde::{Deserialize, Serialize};

use super::{DirectoryError, Schema};
use crate::limits::{DUMP_LINE_BYTES_MAX, TRANSFER_ROWS};

/// The number of the format of dumps. A new kind of row, or a new field, gets the next one.
const FORMAT: u32 = 3;

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredRow {
    /// An account.
    Account(StoredAccount),
    /// A session.
    Session(StoredSession),
    /// A share.
    Share(StoredShare),
    /// A network that an account logged in from.
    Network(StoredNetwork),
    /// A public link.
    Link(StoredLink),
    /// A lock.
    Lock(StoredLock),
}

/// An account, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredAccount {
    /// Its number.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// The hash of its password.
    pub hash: String,
    /// The version of its password.
    pub version: i64,
    /// The quota of bytes.
    pub quota_bytes: Option<i64>,
    /// The quota of files.
    pub quota_files: Option<i64>,
    /// The bits of its permissions.
    pub permissions: i64,
    /// Whether it may log in.
    pub enabled: bool,
    /// Creation time, in milliseconds since 1970.
    pub created: i64,
}

/// A session, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredSession {
    /// Its number: the hash of its token.
    #[serde(with = "hex_digits")]
    pub id: Vec<u8>,
    /// The number of its account.
    pub account: i64,
    /// When it began.
    pub created: i64,
    /// When it ends.
    pub expires: i64,
}

/// A share, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredShare {
    /// Its id.
    pub id: String,
    /// The number of the account that gives it.
    pub owner: i64,
    /// The number of the account that receives it.
    pub holder: i64,
    /// The path, in canonical form.
    #[serde(with = "hex_digits")]
    pub path: Vec<u8>,
    /// Whether it permits changes.
    pub writes: bool,
    /// Creation time.
    pub created: i64,
    /// When it ends.
    pub expires: Option<i64>,
}

/// A network that an account logged in from, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredNetwork {
    /// The number of the account.
    pub account: i64,
    /// The keyed hash of the network.
    #[serde(with = "hex_digits")]
    pub network: Vec<u8>,
    /// The time of the last log-in.
    pub seen: i64,
}

/// A public link, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredLink {
    /// Its id: a hash of its token.
    pub id: String,
    /// The number of the account that gives it.
    pub owner: i64,
    /// The path, in canonical form.
    #[serde(with = "hex_digits")]
    pub path: Vec<u8>,
    /// Whether it permits uploads, and nothing else.
    pub uploads: bool,
    /// Creation time.
    pub created: i64,
    /// When it ends.
    pub expires: Option<i64>,
    /// The hash of its password, in PHC form; empty if it has none.
    pub password: String,
    /// The key of the grants of its visitors.
    #[serde(with = "hex_digits")]
    pub secret: Vec<u8>,
    /// How many downloads it permits, or how many uploads.
    pub uses_max: Option<i64>,
    /// How many there were.
    pub uses: i64,
    /// How many bytes it permits to upload.
    pub bytes_max: Option<i64>,
    /// How many were uploaded.
    pub bytes: i64,
}

/// A lock, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredLock {
    /// Its id, which its token contains.
    pub id: String,
    /// The number of the account whose home has the path.
    pub owner: i64,
    /// The number of the account that took it.
    pub holder: i64,
    /// The path, in canonical form.
    #[serde(with = "hex_digits")]
    pub path: Vec<u8>,
    /// Whether others may take a shared lock, too.
    pub shared: bool,
    /// Whether everything below the path is locked, too.
    pub deep: bool,
    /// The element `owner` of the LOCK request, as XML.
    pub about: String,
    /// Creation time.
    pub created: i64,
    /// When it ends.
    pub expires: i64,
}

mod hex_digits {
    use plimsoll_wire::hex;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let digits = String::deserialize(deserializer)?;
        hex::decode(digits.as_bytes())
            .ok_or_else(|| serde::de::Error::custom("hexadecimal digits are expected"))
    }
}

/// A table, with its columns in the order of the fields of its row. A dialect adds its own prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Accounts,
    Sessions,
    Shares,
    Networks,
    Links,
    Locks,
}

impl Table {
    /// All tables. A row refers only to rows of earlier tables.
    pub(super) const ALL: [Table; 6] =
        [Table::Accounts, Table::Sessions, Table::Shares, Table::Networks, Table::Links, Table::Locks];

    pub(super) fn name(self) -> &'static str {
        match self {
            Table::Accounts => "accounts",
            Table::Sessions => "sessions",
            Table::Shares => "shares",
            Table::Networks => "networks",
            Table::Links => "links",
            Table::Locks => "locks",
        }
    }

    pub(super) fn columns(self) -> &'static str {
        match self {
            Table::Accounts => {
                "id, name, hash, version, quota_bytes, quota_files, permissions, enabled, created"
            }
            Table::Sessions => "id, account, created, expires",
            Table::Shares => "id, owner, holder, path, writes, created, expires",
            Table::Networks => "account, network, seen",
            Table::Links => {
                "id, owner, path, uploads, created, expires, password, secret, uses_max, uses, \
                 bytes_max, bytes"
            }
            Table::Locks => "id, owner, holder, path, shared, deep, about, created, expires",
        }
    }
}

/// The terms of an encrypted connection to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsTerms {
    /// The version, such as TLS 1.3.
    pub version: &'static str,
    /// Whether a trusted certificate vouches for the server's.
    pub is_verified: bool,
    /// The server's certificate, in DER.
    pub certificate: Vec<u8>,
}

/// The rows of a directory.
pub trait DirectoryRows: Send {
    /// Returns the version of the tables, and whether servers may use the directory.
    fn schema(&mut self) -> Result<Schema, DirectoryError>;

    /// Closes the directory to servers, for this reason; opens it if that is empty. A running server notices
    /// within a second.
    fn close(&mut self, reason: &str) -> Result<(), DirectoryError>;

    /// Calls `each` with every row, accounts first. A row refers only to rows that were passed on before.
    /// The rows are of one moment. In Redis, those of one account are, if servers change others meanwhile.
    fn read_rows(
        &mut self,
        each: &mut dyn FnMut(StoredRow) -> Result<(), DirectoryError>,
    ) -> Result<(), DirectoryError>;

    /// Returns whether the rows that were last read are all of one moment.
    fn is_of_one_moment(&self) -> bool {
        true
    }

    /// Adds rows: all or none, except in Redis. Accounts are there before the rows that refer to them.
    fn write_rows(&mut self, rows: &[StoredRow]) -> Result<(), DirectoryError>;

    /// Removes all rows.
    fn remove_rows(&mut self) -> Result<(), DirectoryError>;

    /// Makes a round trip to a database server.
    fn ping(&mut self) -> Result<(), DirectoryError> {
        Ok(())
    }

    /// Returns the terms of TLS; `None` if the connection to the store is not encrypted.
    fn tls(&self) -> Option<TlsTerms> {
        None
    }

    /// Has the store check its own data. Returns what it finds damaged.
    fn find_damage(&mut self) -> Result<Option<String>, DirectoryError> {
        Ok(None)
    }
}

/// The number of rows, and their digest: the sum of the BLAKE3 hashes of all rows, modulo 2^256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Accounts.
    pub accounts: u64,
    /// Sessions, expired ones included.
    pub sessions: u64,
    /// Shares, expired ones included.
    pub shares: u64,
    /// Networks that accounts logged in from.
    pub networks: u64,
    /// Public links, expired ones included. Dumps of older programs have none.
    #[serde(default)]
    pub links: u64,
    /// Locks, expired ones included. Dumps of older programs have none.
    #[serde(default)]
    pub locks: u64,
    /// The sum of the hashes.
    #[serde(with = "digest_digits")]
    pub digest: [u8; 32],
}

mod digest_digits {
    use plimsoll_wire::hex;
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
        let bytes = super::hex_digits::deserialize(deserializer)?;
        bytes.try_into().map_err(|_| serde::de::Error::custom("a digest has 64 digits"))
    }
}

impl Summary {
    /// Counts a row.
    pub fn add(&mut self, row: &StoredRow) {
        match row {
            StoredRow::Account(_) => self.accounts += 1,
            StoredRow::Session(_) => self.sessions += 1,
            StoredRow::Share(_) => self.shares += 1,
            StoredRow::Network(_) => self.networks += 1,
            StoredRow::Link(_) => self.links += 1,
            StoredRow::Lock(_) => self.locks += 1,
        }
        let hash = blake3::hash(&line(row));
        let mut carry = 0;
        for (sum, byte) in self.digest.iter_mut().zip(hash.as_bytes()) {
            let added = u16::from(*sum) + u16::from(*byte) + carry;
            (*sum, carry) = (added.to_le_bytes()[0], added >> 8);
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.accounts + self.sessions + self.shares + self.networks + self.links + self.locks == 0
    }

    /// Reads all rows of a directory.
    ///
    /// # Errors
    /// The error of the store.
    pub fn of(directory: &mut dyn DirectoryRows) -> Result<Summary, DirectoryError> {
        let mut summary = Summary::default();
        directory.read_rows(&mut |row| {
            summary.add(&row);
            Ok(())
        })?;
        Ok(summary)
    }
}

/// The line of a row in a dump, without its end.
fn line(row: &StoredRow) -> Vec<u8> {
    // It has no maps with other keys than text, which alone could fail.
    serde_json::to_vec(row).unwrap_or_default()
}

/// Adds rows to a directory, many at once.
struct Batch<'a> {
    to: &'a mut dyn DirectoryRows,
    rows: Vec<StoredRow>,
    summary: Summary,
}

impl Batch<'_> {
    fn add(&mut self, row: StoredRow) -> Result<(), DirectoryError> {
        self.summary.add(&row);
        self.rows.push(row);
        if self.rows.len() < TRANSFER_ROWS { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<(), DirectoryError> {
        self.to.write_rows(&self.rows)?;
        self.rows.clear();
        Ok(())
    }
}

/// Adds all rows that `read` passes on to the directory `to`, which is empty. Reads them back, and compares.
///
/// # Errors
/// The error of either side, or that the rows read back are not those that were written.
pub fn transfer(
    read: impl FnOnce(&mut dyn FnMut(StoredRow) -> Result<(), DirectoryError>) -> Result<(), DirectoryError>,
    to: &mut dyn DirectoryRows,
) -> Result<Summary, DirectoryError> {
    let mut batch = Batch { to, rows: Vec::new(), summary: Summary::default() };
    read(&mut |row| batch.add(row))?;
    batch.write()?;
    let (written, found) = (batch.summary, Summary::of(batch.to)?);
    if written == found { Ok(written) } else { Err(different(&written, &found)) }
}

fn different(written: &Summary, found: &Summary) -> DirectoryError {
    let counts = |summary: &Summary| {
        let Summary { accounts, sessions, shares, networks, links, locks, .. } = summary;
        format!(
            "{accounts} accounts, {sessions} sessions, {shares} shares, {networks} networks, {links} links, \
             {locks} locks"
        )
    };
    DirectoryError::Failed(format!(
        "the rows read back are not those that were written: {} instead of {}",
        counts(found),
        counts(written)
    ))
}

/// Calls `each` with all rows of pages. `page` returns the rows after the given one; a page that is not full
/// is the last.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) fn read_pages(
    mut page: impl FnMut(Option<&StoredRow>) -> Result<Vec<StoredRow>, DirectoryError>,
    each: &mut dyn FnMut(StoredRow) -> Result<(), DirectoryError>,
) -> Result<(), DirectoryError> {
    let mut last = None;
    loop {
        let rows = page(last.as_ref())?;
        let is_last = rows.len() < TRANSFER_ROWS;
        last = rows.last().cloned();
        rows.into_iter().try_for_each(&mut *each)?;
        if is_last {
            return Ok(());
        }
    }
}

/// The first line of a dump.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The format.
    plimsoll_directory: u32,
    /// The version of the program, and the store that the dump is of.
    program: String,
    store: String,
}

/// The last line of a dump.
#[derive(Serialize, Deserialize)]
struct End {
    end: Summary,
}

/// Writes a dump: JSON lines.
pub struct DumpWriter<W: Write> {
    to: W,
    summary: Summary,
}

impl<W: Write> DumpWriter<W> {
    /// Begins a dump of a directory with this schema, by this version of the program.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn new(mut to: W, schema: &Schema, program: &str) -> io::Result<DumpWriter<W>> {
        let (program, store) = (program.to_owned(), schema.store.to_owned());
        serde_json::to_writer(&mut to, &Head { plimsoll_directory: FORMAT, program, store })?;
        to.write_all(b"\n")?;
        Ok(DumpWriter { to, summary: Summary::default() })
    }

    /// Writes a row.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn row(&mut self, row: &StoredRow) -> io::Result<()> {
        self.summary.add(row);
        self.to.write_all(&line(row))?;
        self.to.write_all(b"\n")
    }

    /// Ends the dump.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn end(mut self) -> io::Result<(W, Summary)> {
        serde_json::to_writer(&mut self.to, &End { end: self.summary })?;
        self.to.write_all(b"\n")?;
        self.to.flush()?;
        Ok((self.to, self.summary))
    }
}

/// Reads a dump.
pub struct DumpReader<R: BufRead> {
    from: R,
    line: u64,
}

impl<R: BufRead> DumpReader<R> {
    /// Reads the first line of a dump.
    ///
    /// # Errors
    /// The error of the reader, or that it is no dump, or one of a newer program.
    pub fn new(from: R) -> Result<DumpReader<R>, DirectoryError> {
        let mut reader = DumpReader { from, line: 0 };
        let head = reader.next()?.and_then(|line| serde_json::from_slice::<Head>(&line).ok());
        match head {
            None => Err(reader.wrong("it does not begin as a dump of plimsoll directory dump")),
            Some(head) if head.plimsoll_directory > FORMAT => Err(reader.wrong(&format!(
                "a newer plimsoll ({}) made the dump: restore it with that one",
                head.program
            ))),
            Some(_) => Ok(reader),
        }
    }

    /// Calls `each` with every row. Returns their number and digest, as the dump has them.
    ///
    /// # Errors
    /// The error of the reader or of `each`, or that the dump is not whole.
    pub fn read_rows(
        &mut self,
        each: &mut dyn FnMut(StoredRow) -> Result<(), DirectoryError>,
    ) -> Result<Summary, DirectoryError> {
        let mut summary = Summary::default();
        loop {
            let Some(line) = self.next()? else {
                return Err(self.wrong("the dump has no end: it is not whole"));
            };
            if let Ok(End { end }) = serde_json::from_slice(&line) {
                return match self.next()? {
                    Some(_) => Err(self.wrong("the dump goes on after its end")),
                    None if end != summary => Err(self.wrong("the rows are not those that were dumped")),
                    None => Ok(summary),
                };
            }
            let row = serde_json::from_slice(&line).map_err(|error| self.wrong(&error.to_string()))?;
            summary.add(&row);
            each(row)?;
        }
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, DirectoryError> {
        let mut line = Vec::new();
        self.line += 1;
        let read = (&mut self.from).take(DUMP_LINE_BYTES_MAX).read_until(b'\n', &mut line);
        read.map_err(|error| self.wrong(&error.to_string()))?;
        Ok(Some(line).filter(|line| !line.is_empty()))
    }

    fn wrong(&self, why: &str) -> DirectoryError {
        DirectoryError::Failed(format!("line {}: {why}", self.line))
    }
}

#[cfg(test)]
mod tests;
