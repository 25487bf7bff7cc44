//! A request for a file at a storage server.
//!
//! It receives no bytes: [`RemoteFile`] does. Invariant: a response without metadata is an error, whatever
//! its status.

use std::sync::Arc;

use plimsoll_io::Io;
use plimsoll_rpc::CallPermit;
use plimsoll_rpc::transport::Response;
use plimsoll_wire::http::digest::parse_digests;

use super::client::{CALL, ERROR, STAT, StoreClient, broken, check_status};
use super::home::ServerHome;
use super::request::FILES;
use super::{from_ascii, to_ascii};
use crate::backend::{FileRequest, RemoteFile, SentPart, StatJson};
use crate::error::{Error, Result};
use crate::limits::{STORE_ANSWER_TIME, STORE_LONG_ANSWER_TIME};
use crate::path::Path;

impl ServerHome {
    /// Requests a file.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::IsFolder`]; [`Error::Away`]; [`Error::Busy`] while many transfers are
    /// in progress.
    pub(super) async fn get(&self, io: &Io, path: &Path, request: FileRequest) -> Result<RemoteFile> {
        let FileRequest { head_only, fields, is_long } = request;
        let client = Arc::clone(&self.client);
        let method = if head_only { "HEAD" } else { "GET" };
        let mut request =
            client.request(method, FILES).field(CALL, to_ascii(&self.request(io, path.clone())));
        request.fields.extend(fields);
        let permit = if head_only { None } else { Some(client.transfer(io).await?) };
        let patience = if is_long { STORE_LONG_ANSWER_TIME } else { STORE_ANSWER_TIME };
        let response = client.client(io, patience).send_owned(request).await.map_err(broken)?;
        received(io, client, response, permit).await
    }
}

/// Returns the file of a response. `permit` is released when all of it is received.
async fn received(
    io: &Io,
    client: Arc<StoreClient>,
    response: Response<'static>,
    permit: Option<CallPermit>,
) -> Result<RemoteFile> {
    if let Some(error) = response.field(ERROR) {
        let error = from_ascii(error.as_bytes());
        client.keep(io, response);
        return Err(error.unwrap_or(Error::Away));
    }
    let Some(StatJson(stat)) = response.field(STAT).and_then(|stat| from_ascii(stat.as_bytes())) else {
        check_status(&response)?;
        return Err(Error::Away);
    };
    let part = SentPart::of(&response).ok_or(Error::Away)?;
    let digest = response.field("Repr-Digest").and_then(|value| parse_digests([value.as_bytes()]).ok());
    let announced = response.field("Content-Length").and_then(|length| length.parse().ok());
    let length = response.length().ok_or(Error::Away)?;
    let is_sent = matches!(part, SentPart::Whole | SentPart::Range(_) | SentPart::Multipart(_));
    let io = io.clone();
    let keep = move |response| {
        drop(permit);
        client.keep(&io, response);
    };
    let mut file = RemoteFile::of_response(response, (stat, part), length, keep)
        .with_sha256(digest.and_then(|digests| digests.sha256))
        .with_length(announced.unwrap_or(length));
    if !is_sent {
        // The text of a refusal: the front has its own.
        while file.next().await.map_err(|_| Error::Away)?.is_some() {}
    }
    Ok(file)
}
