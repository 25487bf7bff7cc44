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
pub(crate) enum FileLocation {
    /// Beneath a folder that is open in this process.
    Local(File, Vec<u8>),
    /// At a remote store.
    Remote(Elsewhere, Path),
}

/// An open file and its status.
pub(crate) enum Opened {
    /// A local file.
    Local(File, Stat),
    /// A file at a remote store, received while it is read.
    Remote(Box<Contents>),
}

impl Opened {
    pub(crate) fn stat(&self) -> Stat {
        match self {
            Opened::Local(_, stat) => *stat,
            Opened::Remote(contents) => contents.stat(),
        }
    }
}

impl FileLocation {
    pub(crate) fn new(files: Files, path: Path) -> FileLocation {
        match files {
            Files::Here { folder, .. } => FileLocation::Local(folder, path.to_open()),
            Files::Apart(home) => FileLocation::Remote(home, path),
        }
    }

    /// Whether this is the root of a home, or the shared file or folder itself.
    pub(crate) fn is_root_itself(&self) -> bool {
        match self {
            FileLocation::Local(_, name) => name.is_empty() || name.ends_with(BOUNDARY),
            FileLocation::Remote(_, path) => path.is_root() || path.to_open().ends_with(BOUNDARY),
        }
    }

    /// Opens the file, to be read from `offset` on.
    pub(crate) async fn open(self, io: &Io, shown: &Shown, offset: u64) -> Result<Opened, Error> {
        match self {
            FileLocation::Local(root, name) => open_local(io, root, name, shown).await,
            FileLocation::Remote(home, path) => open_remote(io, &home, &path, shown, offset).await,
        }
    }
}

async fn open_local(io: &Io, root: File, name: Vec<u8>, shown: &Shown) -> Result<Opened, Error> {
    let opened = io.files(move |fs| {
        let file = fs.open_beneath(&root, &name)?;
        let stat = fs.stat(&file)?;
        Ok((file, stat))
    });
    let (file, stat) = opened.await.map_err(open_error)?;
    match (stat.kind, shown) {
        (FileKind::File, Shown::All) => Ok(Opened::Local(file, stat)),
        (FileKind::Folder, _) => Err(StoreError::IsFolder.into()),
        _ => Err(Error::NOT_FOUND),
    }
}

async fn open_remote(
    io: &Io,
    home: &Elsewhere,
    path: &Path,
    shown: &Shown,
    offset: u64,
) -> Result<Opened, Error> {
    if *shown != Shown::All {
        // Files above shares cannot be read; that a folder exists may be reported.
        let stat = home.stat(io, path).await.map_err(remote_open_error)?;
        let is_folder = stat.kind == FileKind::Folder;
        return Err(if is_folder { StoreError::IsFolder.into() } else { Error::NOT_FOUND });
    }
    let mut wanted = Wanted::default();
    if offset > 0 {
        wanted.fields.push(("Range", format!("bytes={offset}-")));
    }
    let contents = home.get(io, path, wanted).await.map_err(remote_open_error)?;
    Ok(Opened::Remote(Box::new(contents)))
}

/// Converts the error of an open. A name that no file can have is "not found".
pub(crate) fn open_error(error: io::Error) -> Error {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound | Kind::NotADirectory | Kind::InvalidInput | Kind::InvalidFilename => Error::NOT_FOUND,
        _ => StoreError::from(error).into(),
    }
}

/// As [`open_error`], for a remote store.
pub(crate) fn remote_open_error(error: StoreError) -> Error {
    match error {
        StoreError::NotFolder | StoreError::Path(_) => Error::NOT_FOUND,
        other => other.into(),
    }
}
