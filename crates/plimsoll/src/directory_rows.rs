//! The rows of a directory of accounts: written to a dump, and stored from one or from another directory.
//!
//! It knows no store. Invariants: a directory that rows are being written to is closed to servers until they
//! are read back and found equal.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use plimsoll_auth::directory::{
    self, DirectoryError, DirectoryRows, DumpReader, DumpWriter, NotOpened, Opening, Schema, StoredRow,
    Summary, file_of, without_password,
};
use plimsoll_cli::WrongUsage;

use crate::access;
use crate::locked_folder::is_folder_held;

/// Why a directory is closed while rows are written to it. Stored, so another text would not be recognised.
const RESTORING: &str = "rows were being written to it, and that has not ended well; repeat plimsoll \
                         directory restore or move, with --replace";

/// The reader of rows, which passes each on.
pub(crate) type Each<'a> = &'a mut dyn FnMut(StoredRow) -> Result<(), DirectoryError>;

/// Opens the rows of the directory that `url` names.
pub(crate) fn open(url: &str, opening: Opening) -> anyhow::Result<Box<dyn DirectoryRows>> {
    access::check_directory(url)?;
    directory::open_rows(url, opening).map_err(|not_opened| match not_opened {
        NotOpened::Url(bad) => WrongUsage(bad.to_string()).into(),
        NotOpened::Store(error) => anyhow::Error::new(error)
            .context(format!("cannot open the directory of accounts {}", without_password(url))),
    })
}

/// Opens a directory that has accounts.
pub(crate) fn open_existing(url: &str, opening: Opening) -> anyhow::Result<Box<dyn DirectoryRows>> {
    if let Some(file) = file_of(url) {
        ensure!(file.exists(), "There is no directory of accounts at {}", file.display());
    }
    open(url, opening)
}

/// Fails if a restore or move into the directory was interrupted, so that rows may be missing.
pub(crate) fn refuse_partial(directory: &mut dyn DirectoryRows) -> anyhow::Result<()> {
    let closed = directory.schema()?.closed;
    ensure!(closed != RESTORING, "the directory of accounts is not whole: {closed}");
    Ok(())
}

/// Opens a directory that has all its accounts and the tables of this program, and upgrades nothing.
pub(crate) fn open_current(url: &str) -> anyhow::Result<Box<dyn DirectoryRows>> {
    let mut directory = open_existing(url, Opening::Inspect)?;
    let Schema { store, version, known, .. } = directory.schema()?;
    ensure!(
        version == known,
        "the tables in {store} are of version {version}, and those of this program of version {known}: use \
         the program that made them, or let a server of this program upgrade them"
    );
    refuse_partial(&mut *directory)?;
    Ok(directory)
}

/// Fails if a server runs on the data folder that has the directory.
pub(crate) fn refuse_running_server(url: &str) -> anyhow::Result<()> {
    let file = file_of(url);
    let folder = file.as_deref().and_then(Path::parent).filter(|folder| is_folder_held(folder));
    match folder {
        Some(folder) => anyhow::bail!("a plimsoll runs on {}: end it first", folder.display()),
        None => Ok(()),
    }
}

/// Creates a file for a dump, which only its owner can read.
pub(crate) fn create_dump(path: &Path) -> anyhow::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.with_context(|| match path.exists() {
        true => format!("{} is there already; name another file, or remove it", path.display()),
        false => format!("cannot write {}", path.display()),
    })
}

/// Dumps a directory to a new file, and syncs that.
pub(crate) fn dump_to_file(directory: &mut dyn DirectoryRows, file: File) -> anyhow::Result<Summary> {
    let (writer, summary) = dump(directory, BufWriter::new(file))?;
    writer.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
    Ok(summary)
}

/// Writes a dump.
pub(crate) fn dump<W: Write>(directory: &mut dyn DirectoryRows, to: W) -> anyhow::Result<(W, Summary)> {
    let schema = directory.schema()?;
    let mut writer = DumpWriter::new(to, &schema, env!("CARGO_PKG_VERSION"))?;
    directory
        .read_rows(&mut |row| writer.row(&row).map_err(|error| DirectoryError::Failed(error.to_string())))?;
    Ok(writer.end()?)
}

/// Returns whether a file begins as a dump of this program, and not of a database's own tool.
pub(crate) fn is_dump(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| DumpReader::new(BufReader::new(file)).is_ok())
}

/// A dump in a file or on standard input.
pub(crate) type Dump = DumpReader<Box<dyn BufRead + Send>>;

/// Begins to read a dump.
pub(crate) fn read_dump(from: impl Read + Send + 'static) -> anyhow::Result<Dump> {
    let from: Box<dyn BufRead + Send> = Box::new(BufReader::new(from));
    Ok(DumpReader::new(from)?)
}

/// Opens a dump in a file, and checks that it is whole.
pub(crate) fn open_dump(path: &Path) -> anyhow::Result<Dump> {
    read_dump(File::open(path)?)?.read_rows(&mut |_| Ok(()))?;
    read_dump(File::open(path)?)
}

/// Replaces the rows of a directory by those that `read` passes on, and reads them back. `agree` is called if
/// there are any. The directory stays closed to servers.
pub(crate) fn fill(
    directory: &mut dyn DirectoryRows,
    agree: impl FnOnce(&Summary) -> anyhow::Result<()>,
    read: impl FnOnce(Each<'_>) -> Result<(), DirectoryError>,
) -> anyhow::Result<Summary> {
    let before = Summary::of(directory)?;
    if !before.is_empty() {
        agree(&before)?;
    }
    directory.close(RESTORING)?;
    if !before.is_empty() {
        directory.remove_rows()?;
    }
    Ok(directory::transfer(read, directory)?)
}
