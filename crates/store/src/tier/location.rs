//! A file or folder as its readers find it: in this process, or in another store.
//!
//! It changes nothing. Invariants: each operation has the same meaning for both. A name that no file can have
//! is not found. Reading a local file allocates nothing for the other stores.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use plimsoll_io::{
    BOUNDARY, EntryCollector, EntryWriter, File, FileKind, FolderListing, Fs, Io, ListingPage, ListingParts,
    Stat, Work,
};

use super::listing::{ListingStream, RestOfListing};
use crate::backend::{FileRequest, HomeBackend, HomeRequest, HomeResponse, RemoteFile, StatJson};
use crate::error::{Error, Result};
use crate::generation::Generation;
use crate::home::LocalHome;
use crate::path::Path;
use crate::write::{Algorithm, FileDigest};

/// The location of a file or folder that is read.
#[derive(Clone)]
pub struct Location {
    backend: Backend,
    /// Whether it is a home itself, or a shared file or folder itself.
    is_top: bool,
}

#[derive(Clone)]
enum Backend {
    /// Beneath a folder of this process.
    Local {
        root: Root,
        /// The name beneath the root, as [`Path::to_open`]. A slash at its end requests a folder.
        name: Vec<u8>,
        generation: Option<Generation>,
    },
    /// A path in a home of another store.
    Other(Arc<dyn HomeBackend>, Path),
}

/// The folder that local names begin at.
#[derive(Clone)]
enum Root {
    /// A folder that no account owns.
    Folder(File),
    /// A home.
    Home(LocalHome),
}

impl Root {
    fn folder(&self) -> &File {
        match self {
            Root::Folder(folder) => folder,
            Root::Home(home) => home.files(),
        }
    }
}

/// A file that [`Location::open`] has opened.
pub enum Opened<T> {
    /// The result of the closure that resolved the name.
    Local(T),
    /// A file that is received from a remote store.
    Remote(Box<RemoteFile>),
}

impl Location {
    /// The location of `name` beneath a folder that no account owns. A slash at the end of the name requests
    /// a folder. Lookups may be cached under the generation; without one, none is.
    pub fn in_folder(folder: File, name: Vec<u8>, generation: Option<Generation>) -> Location {
        let is_top = name.is_empty();
        Location { backend: Backend::Local { root: Root::Folder(folder), name, generation }, is_top }
    }

    pub(crate) fn in_home(home: LocalHome, path: &Path) -> Location {
        let name = path.to_open();
        // The generation first: a file that is opened after it is at least as new.
        let generation = Some(home.generation());
        let backend = Backend::Local { root: Root::Home(home), name, generation };
        Location { backend, is_top: path.is_top() }
    }

    pub(super) fn in_other_home(home: Arc<dyn HomeBackend>, path: Path) -> Location {
        let is_top = path.is_top();
        Location { backend: Backend::Other(home, path), is_top }
    }

    /// Returns the location of the entry `name` of this folder, as a listing of it has the name.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is too long.
    pub fn entry(&self, name: &[u8]) -> Result<Location> {
        let backend = match &self.backend {
            Backend::Local { root, name: folder, .. } => {
                let slash: &[u8] = if folder.is_empty() || folder.ends_with(b"/") { b"" } else { b"/" };
                let name = [folder, slash, name].concat();
                Backend::Local { root: root.clone(), name, generation: None }
            }
            Backend::Other(home, path) => Backend::Other(Arc::clone(home), path.entry(name)?),
        };
        Ok(Location { backend, is_top: false })
    }

    /// Returns the same location, looked up in the file system and not in a cache, so that the file is open.
    #[must_use]
    pub fn uncached(mut self) -> Location {
        if let Backend::Local { generation, .. } = &mut self.backend {
            *generation = None;
        }
        self
    }

    /// Whether it is a home itself, or a shared file or folder itself.
    pub fn is_top(&self) -> bool {
        self.is_top
    }

    /// The name that selects the media type, and that lookups are cached under.
    pub fn name(&self) -> &[u8] {
        match &self.backend {
            Backend::Local { name, .. } => file_name(name),
            Backend::Other(_, path) => path.as_bytes(),
        }
    }

    /// The generation of the files that lookups may be cached under, before any of them is opened. `None` if
    /// they may not be cached.
    pub fn generation(&self) -> Option<Generation> {
        match &self.backend {
            Backend::Local { generation, .. } => *generation,
            Backend::Other(..) => None,
        }
    }

    /// Opens a file. In this process, `resolve` opens the name beneath the folder, where it may block. From a
    /// remote store, exactly the bytes that `request` selects are received.
    ///
    /// # Errors
    /// [`Error::NotFound`]; the error of `resolve`. From a remote store, [`Error::IsFolder`];
    /// [`Error::Busy`] while many transfers are in progress.
    pub async fn open<T: Send + 'static>(
        &self,
        io: &Io,
        request: impl FnOnce() -> FileRequest,
        resolve: impl Fn(&dyn Fs, &File, &[u8]) -> io::Result<T> + Send + 'static,
    ) -> Result<Opened<T>> {
        match &self.backend {
            Backend::Local { root, name, .. } => {
                let (folder, name) = (root.folder().clone(), file_name(name).to_vec());
                let resolved = io.files(move |fs| resolve(fs, &folder, &name)).await;
                resolved.map(Opened::Local).map_err(read_error)
            }
            Backend::Other(home, path) => {
                let opened = home.open(io, path, request()).await;
                opened.map(|file| Opened::Remote(Box::new(file))).map_err(not_found)
            }
        }
    }

    /// Returns the metadata of the file or folder.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn stat(&self, io: &Io) -> Result<Stat> {
        match &self.backend {
            Backend::Local { root, name, .. } => {
                let (folder, name) = (root.folder().clone(), name.clone());
                io.files(move |fs| fs.stat(&fs.open_beneath(&folder, &name)?)).await.map_err(read_error)
            }
            Backend::Other(home, path) => {
                let response = home.call(io, HomeRequest::Stat(path.clone())).await;
                let StatJson(stat) = response.and_then(HomeResponse::content).map_err(not_found)?;
                Ok(stat)
            }
        }
    }

    /// Lists the folder, if it has at most `entries_max` entries. With a `page`, a remote store sends only
    /// that page and one entry more, regardless of the folder's size.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::TooManyEntries`]; [`Error::Busy`] while many listings are in progress.
    pub async fn list<C: EntryCollector>(
        &self,
        io: &Io,
        entries_max: usize,
        page: Option<&ListingPage>,
        collector: C,
    ) -> Result<C::Output> {
        let listing = match &self.backend {
            Backend::Local { root, name, .. } => {
                let entries_max = if page.is_some() { usize::MAX } else { entries_max };
                FolderListing::of_folder(root.folder().clone(), name.clone(), entries_max, collector)
            }
            Backend::Other(home, path) => {
                let entries = home.list(io, path, entries_max, page).await.map_err(not_found)?;
                FolderListing::of_entries(entries, collector)
            }
        };
        io.list(listing).await.map_err(listing_error)
    }

    /// Lists the folder in no order, in parts that `writer` writes, however many entries it has.
    pub fn list_in_parts<W: EntryWriter>(&self, writer: W) -> ListingStream<W> {
        match &self.backend {
            Backend::Local { root, name, .. } => {
                let parts = ListingParts::of_folder(root.folder().clone(), name.clone(), writer);
                ListingStream::new(parts, None)
            }
            Backend::Other(home, path) => {
                let rest = RestOfListing::whole(Arc::clone(home), path.clone());
                ListingStream::new(ListingParts::of_entries(writer), Some(rest))
            }
        }
    }

    /// Returns the digest of a whole file, and the metadata of that very file. Dropping the future abandons
    /// the digest.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::IsFolder`]; [`Error::Busy`] if the owner of `io`, or all owners
    /// together, have too many digests in progress.
    pub async fn digest(&self, io: &Io, algorithm: Algorithm) -> Result<(Stat, Vec<u8>)> {
        let (folder, name) = match &self.backend {
            Backend::Local { root, name, .. } => (root.folder().clone(), name.clone()),
            Backend::Other(home, path) => {
                let response = home.call(io, HomeRequest::Digest(path.clone(), algorithm)).await;
                let content = response.and_then(HomeResponse::content).map_err(not_found)?;
                let (StatJson(stat), digest) = content;
                return Ok((stat, digest));
            }
        };
        let opened = io.files(move |fs| {
            let file = fs.open_beneath(&folder, &name)?;
            let stat = fs.stat(&file)?;
            Ok((file, stat))
        });
        let (file, stat) = opened.await.map_err(read_error)?;
        match stat.kind {
            FileKind::File => Ok((stat, self.digest_of(io, file, algorithm).await?)),
            FileKind::Folder => Err(Error::IsFolder),
            FileKind::Other => Err(Error::NotFound),
        }
    }

    /// Returns the SHA-256 of the file that `stat` describes, if it is known.
    pub fn known_sha256(&self, stat: &Stat) -> Option<[u8; 32]> {
        self.home()?.common().known_digests.get(stat)
    }

    /// Computes the SHA-256 of `file`, which has been opened here and which `stat` describes.
    ///
    /// # Errors
    /// As [`Location::digest`].
    pub async fn sha256_of(&self, io: &Io, file: File, stat: &Stat) -> Result<[u8; 32]> {
        let digest = self.digest_of(io, file, Algorithm::Sha256).await?;
        let sha256 = digest.try_into().map_err(|_| Error::Failed(io::ErrorKind::InvalidData.into()))?;
        if let Some(home) = self.home() {
            home.common().known_digests.note(stat, sha256);
        }
        Ok(sha256)
    }

    async fn digest_of(&self, io: &Io, file: File, algorithm: Algorithm) -> Result<Vec<u8>> {
        let slots = &self.home().ok_or(Error::NotFound)?.common().digest_slots;
        // The slot is occupied until the digest is complete or abandoned.
        let _slot = slots.take(io.owner()).ok_or(Error::Busy)?;
        let mut digest = FileDigest::new(algorithm, file);
        loop {
            // One slice at a time, so that digests for other owners proceed in between.
            match io.ask(Work::Chores, move |fs| digest.step(fs)).await? {
                ControlFlow::Continue(rest) => digest = rest,
                ControlFlow::Break(digest) => return Ok(digest),
            }
        }
    }

    fn home(&self) -> Option<&LocalHome> {
        match &self.backend {
            Backend::Local { root: Root::Home(home), .. } => Some(home),
            _ => None,
        }
    }
}

/// The name of a shared file itself, which has no name in it. In a listing of a shared folder, the boundary
/// at the end hides links that lead out of it.
fn file_name(name: &[u8]) -> &[u8] {
    name.strip_suffix(BOUNDARY).unwrap_or(name)
}

/// Converts the error of opening or reading a name.
fn read_error(error: io::Error) -> Error {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotADirectory | Kind::InvalidInput => Error::NotFound,
        _ => error.into(),
    }
}

pub(super) fn listing_error(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::QuotaExceeded => Error::TooManyEntries,
        _ => read_error(error),
    }
}

/// As [`read_error`], of another store's error.
pub(super) fn not_found(error: Error) -> Error {
    match error {
        Error::NotFolder | Error::Path(_) => Error::NotFound,
        other => other,
    }
}
