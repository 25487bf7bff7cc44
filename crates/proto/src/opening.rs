//! Opens files for reading: beneath a local folder, or at a remote store.
//!
//! This module does not check permissions. Invariants: a name that no file can have is "not found"; only
//! regular files are opened.

use std::io;

use plimsoll_io::{BOUNDARY, File, FileKind, Io, Stat};
use plimsoll_operations::{Error, Shown};
use plimsoll_store::apart::{Contents, Elsewhere, Wanted};
use plimsoll_store::{Error as StoreError, Files, Path};

/// The location of a readable file.
#[derive(Clone)]
pub(crate) enum At {
    /// Beneath a folder that is open in this process.
    Folder(File, Vec<u8>),
    /// At a remote store.
    Elsewhere(Elsewhere, Path),
}

/// An open file and its status.
pub(crate) enum Opened {
    /// A local file.
    Here(File, Stat),
    /// A file at a remote store, received while it is read.
    Elsewhere(Box<Contents>),
}

impl Opened {
    pub(crate) fn stat(&self) -> Stat {
        match self {
            Opened::Here(_, stat) => *stat,
            Opened::Elsewhere(contents) => contents.stat(),
        }
    }
}

impl At {
    pub(crate) fn new(files: Files, path: Path) -> At {
        match files {
            Files::Here { folder, .. } => At::Folder(folder, path.to_open()),
            Files::Apart(home) => At::Elsewhere(home, path),
        }
    }

    /// Whether this is the root of a home, or the shared file or folder itself.
    pub(crate) fn is_top(&self) -> bool {
        match self {
            At::Folder(_, name) => name.is_empty() || name.ends_with(BOUNDARY),
            At::Elsewhere(_, path) => path.is_root() || path.to_open().ends_with(BOUNDARY),
        }
    }

    /// Opens the file, to be read from `offset` on.
    pub(crate) async fn open(self, io: &Io, shown: &Shown, offset: u64) -> Result<Opened, Error> {
        match self {
            At::Folder(root, name) => open_here(io, root, name, shown).await,
            At::Elsewhere(home, path) => open_elsewhere(io, &home, &path, shown, offset).await,
        }
    }
}

async fn open_here(io: &Io, root: File, name: Vec<u8>, shown: &Shown) -> Result<Opened, Error> {
    let opened = io.files(move |fs| {
        let file = fs.open_beneath(&root, &name)?;
        let stat = fs.stat(&file)?;
        Ok((file, stat))
    });
    let (file, stat) = opened.await.map_err(not_read)?;
    match (stat.kind, shown) {
        (FileKind::File, Shown::All) => Ok(Opened::Here(file, stat)),
        (FileKind::Folder, _) => Err(StoreError::IsFolder.into()),
        _ => Err(Error::NOT_FOUND),
    }
}

async fn open_elsewhere(
    io: &Io,
    home: &Elsewhere,
    path: &Path,
    shown: &Shown,
    offset: u64,
) -> Result<Opened, Error> {
    if *shown != Shown::All {
        // Files above shares cannot be read; that a folder exists may be reported.
        let stat = home.stat(io, path).await.map_err(not_read_elsewhere)?;
        let is_folder = stat.kind == FileKind::Folder;
        return Err(if is_folder { StoreError::IsFolder.into() } else { Error::NOT_FOUND });
    }
    let mut wanted = Wanted::default();
    if offset > 0 {
        wanted.fields.push(("Range", format!("bytes={offset}-")));
    }
    let contents = home.get(io, path, wanted).await.map_err(not_read_elsewhere)?;
    Ok(Opened::Elsewhere(Box::new(contents)))
}

/// Converts the error of an open. A name that no file can have is "not found".
pub(crate) fn not_read(error: io::Error) -> Error {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound | Kind::NotADirectory | Kind::InvalidInput | Kind::InvalidFilename => Error::NOT_FOUND,
        _ => StoreError::from(error).into(),
    }
}

/// As [`not_read`], for a remote store.
pub(crate) fn not_read_elsewhere(error: StoreError) -> Error {
    match error {
        StoreError::NotFolder | StoreError::Path(_) => Error::NOT_FOUND,
        other => other.into(),
    }
}
