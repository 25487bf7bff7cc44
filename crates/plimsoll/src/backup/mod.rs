//! Backups of a server's data, and their restores.
//!
//! A backup is a folder. `data` has the files of the data folder. `directory.sqlite` has the accounts, or
//! `directory.dump` is a dump of their database. `manifest` has each entry with its digest. A backup changes
//! nothing in the data. Invariants: a folder without a complete manifest is no backup,
//! so one that was interrupted never passes for complete. Nothing is linked to a file of the server, and
//! every file is read back from the disk before the manifest is written. A restore writes only to a folder
//! that is new or empty.

mod beneath;
mod directory;
mod entry;
mod lists;
mod manifest;
mod mirror;
mod report;
mod restoring;
mod taking;
mod unit;

pub(crate) use report::Taken;
pub(crate) use restoring::{Ends, Restored, UNFINISHED_RESTORE, restore};
pub(crate) use taking::take;

/// The files of the data folder, in a backup.
const DATA: &str = "data";
/// The copied directory of accounts, in a backup.
const DIRECTORY: &str = "directory.sqlite";
/// The dump of the database that has the accounts, in a backup.
const DUMP: &str = "directory.dump";
/// The list of the backup's entries, which is written last.
const MANIFEST: &str = "manifest";
/// The folder that has everything until the backup is complete.
const UNFINISHED: &str = "unfinished";

/// Returns the message of an entry that cannot be copied.
fn at(path: &[u8]) -> String {
    match path {
        [] => "cannot copy the data folder".to_owned(),
        path => format!("cannot copy {}", plimsoll_cli::output::text(path)),
    }
}
