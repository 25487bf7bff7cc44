//! The RPC server of a store: answers the requests of fronts.
//!
//! It decides nothing: it calls the store in this process, as an operation in this process would.
//! Invariants: a condition that is received as text is checked with the change. A name that no account can
//! have is never used for a folder.

use plimsoll_io::{Io, ListingPage};
use plimsoll_rpc::{Call, CallRefused, Service, encode, parse};
use serde::Serialize;

use super::listing::JsonEntries;
use super::request::{LISTINGS, ListRequest, READY, REQUESTS, StoreRequest};
use crate::backend::{Ended, Ending, HomeRequest, HomeResponse, UploadStart};
use crate::condition::ParseCondition;
use crate::error::{Error, Result};
use crate::path::Path;
use crate::{Home, Location, Store, Upload};

/// Answers requests for a store.
pub struct StoreServer {
    store: Store,
    parse_condition: ParseCondition,
}

impl StoreServer {
    /// Creates a server for `store`.
    pub fn new(store: Store, parse_condition: ParseCondition) -> StoreServer {
        StoreServer { store, parse_condition }
    }

    /// Returns the home that a request is about, the engine for work on behalf of the caller, and the request
    /// itself.
    async fn open<T>(&self, io: &Io, asked: StoreRequest<T>) -> Result<(Home, Io, T)> {
        let io = io.for_owner(asked.job_owner());
        Ok((self.store.home_of(&io, asked.owner).await?, io, asked.request))
    }

    async fn execute(&self, io: &Io, asked: StoreRequest<HomeRequest>) -> Result<HomeResponse> {
        let (home, io, mut request) = self.open(io, asked).await?;
        request.parse_condition(self.parse_condition);
        home.call(&io, request).await
    }

    async fn list(&self, io: &Io, asked: StoreRequest<ListRequest>) -> Result<Vec<u8>> {
        let (home, io, ListRequest { path, entries_max, page }) = self.open(io, asked).await?;
        let page = page.map(ListingPage::from);
        home.location(path).list(&io, entries_max, page.as_ref(), JsonEntries::new(page.clone())).await
    }

    /// Returns the location of a requested file, and the engine for work on behalf of the caller.
    ///
    /// # Errors
    /// Any error of opening the home.
    pub async fn locate(&self, io: &Io, asked: StoreRequest<Path>) -> Result<(Location, Io)> {
        let (home, io, path) = self.open(io, asked).await?;
        Ok((home.location(path), io))
    }

    /// Begins an upload.
    ///
    /// # Errors
    /// As the methods of [`Home`] that begin uploads.
    pub async fn begin_upload(&self, io: &Io, asked: StoreRequest<UploadStart>) -> Result<Upload> {
        let (home, io, mut start) = self.open(io, asked).await?;
        start.parse_condition(self.parse_condition);
        let expected = if let UploadStart::From { at, .. } = &start { *at } else { None };
        let upload = home.begin_upload(&io, start).await?;
        // Otherwise, the upload has grown since its offset was reported to the front.
        if expected.is_none_or(|at| at == upload.start_offset()) { Ok(upload) } else { Err(Error::InUse) }
    }

    /// Ends an upload after all its bytes were received.
    ///
    /// # Errors
    /// As [`Upload::commit_whole`] and [`Upload::pause`].
    pub async fn end_upload(&self, mut upload: Upload, ending: Ending) -> Result<Ended> {
        match ending {
            Ending::Commit { digests, modified, spare_name } => {
                modified.into_iter().for_each(|modified| upload.set_modified(modified));
                spare_name.into_iter().for_each(|name| upload.set_spare_name(name));
                upload.commit_whole(digests).await.map(Ended::Committed)
            }
            Ending::Pause => upload.pause().await.map(Ended::Paused),
            Ending::Abort => {
                upload.abort().await;
                Ok(Ended::Aborted)
            }
        }
    }
}

impl Service for StoreServer {
    fn has(&self, path: &str) -> bool {
        [REQUESTS, LISTINGS, READY].contains(&path)
    }

    fn call<'a>(
        &'a self,
        io: &'a Io,
        path: &str,
        request: &[u8],
    ) -> std::result::Result<Call<'a>, CallRefused> {
        match path {
            REQUESTS => {
                let asked: StoreRequest<HomeRequest> = parse(request)?;
                let is_aborted_with_client =
                    matches!(asked.request, HomeRequest::Digest(..) | HomeRequest::Copy(..));
                let response = async move { encode_result(self.execute(io, asked).await) };
                Ok(Call { is_aborted_with_client, ..Call::new(response) })
            }
            LISTINGS => {
                let asked = parse(request)?;
                let list = async move { self.list(io, asked).await.unwrap_or_else(encode_error) };
                Ok(Call { is_aborted_with_client: true, ..Call::new(list) })
            }
            READY => Ok(Call::new(async { encode_result(Ok(())) })),
            _ => Err(CallRefused::NoSuchMethod),
        }
    }
}

fn encode_error(error: Error) -> Vec<u8> {
    encode_result::<()>(Err(error))
}

/// Serialises a result as a response. Logs errors of the operating system; the response has their text,
/// too.
pub fn encode_result<T: Serialize>(result: Result<T>) -> Vec<u8> {
    if let Err(error @ (Error::Failed(_) | Error::Denied(_))) = &result {
        tracing::error!(%error, "an operation on files failed");
    }
    encode(result)
}
