//! The lists of what was copied, one file for each unit, while the backup is being made.
//!
//! They are on disk, so that memory holds the entries of one home at a time. Invariant: a list is complete
//! before the next pass reads it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use plimsoll_wire::hex;

use super::entry::Entry;

/// The entries of a unit, by path.
pub(super) type Entries = BTreeMap<Vec<u8>, Entry>;

/// The folder of the lists.
pub(super) struct Lists(PathBuf);

impl Lists {
    /// The folder must exist.
    pub(super) fn of(folder: &Path) -> Lists {
        Lists(folder.to_owned())
    }

    /// Reads the entries of a unit; none if it has no list yet.
    pub(super) fn read(&self, unit: &[u8]) -> io::Result<Entries> {
        let file = match File::open(self.file(unit)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Entries::new()),
            opened => opened?,
        };
        let mut entries = Entries::new();
        for line in BufReader::new(file).lines() {
            let entry: Entry = serde_json::from_str(&line?)?;
            entries.insert(entry.path.0.clone(), entry);
        }
        Ok(entries)
    }

    /// Writes the entries of a unit in place of earlier ones.
    pub(super) fn write(&self, unit: &[u8], entries: &Entries) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(self.file(unit))?);
        for entry in entries.values() {
            serde_json::to_writer(&mut file, entry)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    }

    /// Forgets a unit.
    pub(super) fn remove(&self, unit: &[u8]) -> io::Result<()> {
        std::fs::remove_file(self.file(unit))
    }

    /// Returns all units that have a list, in the order of their names.
    pub(super) fn units(&self) -> io::Result<Vec<Vec<u8>>> {
        let names = std::fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name()));
        let names: Vec<_> = names.collect::<io::Result<_>>()?;
        let units =
            names.iter().filter_map(|name| hex::decode(name.as_encoded_bytes().strip_suffix(b".list")?));
        let mut units: Vec<Vec<u8>> = units.collect();
        units.sort();
        Ok(units)
    }

    fn file(&self, unit: &[u8]) -> PathBuf {
        self.0.join(format!("{}.list", hex::encode(unit)))
    }
}
