//! The interface of a store that is not the local file system: a storage server, an object store.
//!
//! An implementation is one folder, and nothing outside of it matches on implementations: the handles that
//! other crates see (`tier/`) know the local store, which they call directly, and these traits. It does not
//! check permissions: `operations` does. Invariants of every implementation: a file is complete or the old
//! one stays; conditions and quotas are evaluated at the moment of the change; a confirmed change is
//! durable; every wait is bounded.

mod file;
mod request;

use std::pin::Pin;
use std::sync::Arc;

use plimsoll_io::{Detached, Entry, Io, ListingPage};

use crate::error::Result;
use crate::owner::HomeOwner;
use crate::path::Path;

pub use crate::json::StatJson;
pub use file::{FileRequest, RemoteFile, SentPart};
pub use request::{Destination, Ended, Ending, HomeRequest, HomeResponse, Removal, ResumeTerms, UploadStart};

/// The result of an operation, boxed: one allocation for each operation.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// Accounts' homes.
pub trait StoreBackend: Send + Sync {
    /// Returns a home, without contacting a server. A missing one is created with the first change.
    fn home(self: Arc<Self>, owner: HomeOwner) -> Arc<dyn HomeBackend>;

    /// Checks that the store responds.
    ///
    /// # Errors
    /// [`crate::Error::Away`].
    fn check<'a>(&'a self, io: &'a Io) -> Pending<'a, ()>;
}

/// The files of one account. The owner of `io` is the caller, on whose behalf the work is done.
pub trait HomeBackend: Send + Sync {
    /// The home's account.
    fn owner(&self) -> &HomeOwner;

    /// Executes an operation.
    ///
    /// # Errors
    /// As the method of [`crate::Home`] that sends the request.
    fn call<'a>(&'a self, io: &'a Io, request: HomeRequest) -> Pending<'a, HomeResponse>;

    /// Lists the folder `path`, in no order, if it has at most `entries_max` entries. With a `page`, all
    /// entries may be returned, regardless of their number, or only that page and the entry after it.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::NotFolder`], [`crate::Error::TooManyEntries`].
    fn list<'a>(
        &'a self,
        io: &'a Io,
        path: &'a Path,
        entries_max: usize,
        page: Option<&'a ListingPage>,
    ) -> Pending<'a, Vec<Entry>>;

    /// Opens a file, to send the bytes that the request selects.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::IsFolder`].
    fn open<'a>(&'a self, io: &'a Io, path: &'a Path, request: FileRequest) -> Pending<'a, RemoteFile>;

    /// Begins an upload.
    ///
    /// # Errors
    /// Errors that are known before the first byte, as the methods of [`crate::Home`] that begin uploads.
    fn begin_upload<'a>(&'a self, io: &'a Io, start: UploadStart) -> Pending<'a, BegunUpload>;
}

/// An upload that has begun.
pub struct BegunUpload {
    /// The path that it is to have.
    pub to: Path,
    /// The announced length in bytes, if any.
    pub announced: Option<u64>,
    /// The offset at which it begins.
    pub start_offset: u64,
    /// The upload.
    pub upload: Box<dyn UploadBackend>,
}

/// An upload in progress. Dropping it aborts it; a resumable one is kept, to be resumed. [`crate::Upload`]
/// counts its bytes, and compares them with the announced length.
pub trait UploadBackend {
    /// Takes the next bytes, in this order.
    ///
    /// # Errors
    /// The upload cannot continue.
    fn write(&mut self, pieces: Vec<Detached>) -> Pending<'_, ()>;

    /// Has the received bytes synced, so that a commit has little to wait for.
    ///
    /// # Errors
    /// As [`UploadBackend::write`].
    fn prepare(&mut self) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Sends buffered bytes, before the right to commit is checked for the last time.
    ///
    /// # Errors
    /// As [`UploadBackend::write`].
    fn flush(&mut self) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Ends the upload.
    ///
    /// # Errors
    /// Any error that prevents the commit, or the pause.
    fn end(&mut self, ending: Ending) -> Pending<'_, Ended>;
}
