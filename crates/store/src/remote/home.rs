//! A home at a storage server: each operation on it is sent as a request.
//!
//! It decides nothing. Invariant: each response is that of a home in the server's own process.

use std::sync::Arc;

use plimsoll_io::{Entry, Io, ListingPage};

use super::client::StoreClient;
use super::request::{EntryJson, ListRequest, PageJson, StoreRequest};
use super::spool::SpooledUpload;
use super::upload::ServerUpload;
use crate::backend::{
    BegunUpload, FileRequest, HomeBackend, HomeRequest, HomeResponse, Pending, RemoteFile, UploadBackend,
    UploadStart,
};
use crate::error::Result;
use crate::owner::HomeOwner;
use crate::path::Path;
use crate::write::{Begin, ResumableUpload};

/// A home at a storage server. Clones share the home.
#[derive(Clone)]
pub(super) struct ServerHome {
    pub(super) client: Arc<StoreClient>,
    pub(super) owner: HomeOwner,
}

impl ServerHome {
    /// Returns a request on behalf of the owner of `io`.
    pub(super) fn request<T>(&self, io: &Io, request: T) -> StoreRequest<T> {
        StoreRequest { owner: self.owner.clone(), caller: io.owner().number(), request }
    }

    async fn execute(&self, io: &Io, request: HomeRequest) -> Result<HomeResponse> {
        self.client.call(io, &self.request(io, request)).await
    }

    async fn begin(&self, io: &Io, mut start: UploadStart) -> Result<BegunUpload> {
        let (to, announced, start_offset) = self.describe(io, &mut start).await?;
        let upload: Box<dyn UploadBackend> = match (start, self.client.spool()) {
            (UploadStart::Whole(terms, expected), Some(folder)) => {
                Box::new(SpooledUpload::begin(self, io, (terms, expected), folder).await?)
            }
            (start, _) => Box::new(ServerUpload::begin(self, io, start).await?),
        };
        Ok(BegunUpload { to, announced, start_offset, upload })
    }

    /// Returns the path, the announced length and the offset of an upload that is about to begin. The server
    /// has to begin it at that offset.
    async fn describe(&self, io: &Io, start: &mut UploadStart) -> Result<(Path, Option<u64>, u64)> {
        Ok(match start {
            UploadStart::Whole(terms, expected) => (terms.to.clone(), expected.bytes, 0),
            UploadStart::From { terms, begin, keep, at } => {
                let offset = match *begin {
                    Begin::Start => 0,
                    Begin::Offset(offset) | Begin::EndAt(offset) => offset,
                    Begin::End => {
                        let request = HomeRequest::EndOf { path: terms.to.clone(), keep: *keep };
                        self.execute(io, request).await?.content()?
                    }
                };
                *at = Some(offset);
                (terms.to.clone(), None, offset)
            }
            UploadStart::Resume { id, offset, .. } => {
                let request = HomeRequest::ResumableUpload(*id);
                let upload: ResumableUpload = self.execute(io, request).await?.content()?;
                (upload.to, upload.bytes, *offset)
            }
            UploadStart::Parts { terms, bytes, .. } => (terms.to.clone(), Some(*bytes), *bytes),
        })
    }
}

impl HomeBackend for ServerHome {
    fn owner(&self) -> &HomeOwner {
        &self.owner
    }

    fn call<'a>(&'a self, io: &'a Io, request: HomeRequest) -> Pending<'a, HomeResponse> {
        Box::pin(self.execute(io, request))
    }

    fn list<'a>(
        &'a self,
        io: &'a Io,
        path: &'a Path,
        entries_max: usize,
        page: Option<&'a ListingPage>,
    ) -> Pending<'a, Vec<Entry>> {
        let request = ListRequest { path: path.clone(), entries_max, page: page.map(PageJson::from) };
        Box::pin(async move {
            let named: Vec<EntryJson> = self.client.call(io, &self.request(io, request)).await?;
            Ok(named.into_iter().map(|EntryJson(entry)| entry).collect())
        })
    }

    fn open<'a>(&'a self, io: &'a Io, path: &'a Path, request: FileRequest) -> Pending<'a, RemoteFile> {
        Box::pin(self.get(io, path, request))
    }

    fn begin_upload<'a>(&'a self, io: &'a Io, start: UploadStart) -> Pending<'a, BegunUpload> {
        Box::pin(self.begin(io, start))
    }
}
