//! File transfers of a storage server over HTTP, for fronts that have presented the secret.
//!
//! It decides nothing: files are sent like an account's. Invariants: during long work the front receives
//! interim responses. An upload whose body ends before its last frame is aborted, and nothing of it is
//! confirmed.

use std::pin::pin;
use std::sync::Arc;

use plimsoll_content::{Found, Visibility};
use plimsoll_proto::http::site;
use plimsoll_proto::http::{Answer, Api, Body, DecodedTarget, PendingAnswer, Request, RpcServer, StatusPage};
use plimsoll_store::backend::{Ended, Ending, StatJson};
use plimsoll_store::limits::STORE_TELLS_EVERY;
use plimsoll_store::remote::{
    CALL, ERROR, FILES, Frame, Frames, STAT, StoreRequest, StoreServer, encode_result, from_ascii, to_ascii,
};
use plimsoll_store::{Error, Path, Store, Upload};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;
use serde::de::DeserializeOwned;

use crate::conditions;
use crate::files::digests;
use crate::refusal::Refusal;

/// The file transfers of a storage server.
struct StoreTransfers {
    server: Arc<StoreServer>,
}

/// Adds the methods and the file transfers of `store` to an RPC server.
pub fn with_store(rpc: RpcServer, store: Store) -> RpcServer {
    let server = Arc::new(StoreServer::new(store, conditions::parse_stored));
    rpc.with(Arc::clone(&server) as _).with_transfers(Arc::new(StoreTransfers { server }))
}

impl StoreTransfers {
    async fn serve(&self, request: &mut Request<'_>, path: &[u8]) -> Result<Answer, Refusal> {
        match (request.method(), path) {
            (Method::Get | Method::Head, path) if path == FILES.as_bytes() => self.send(request).await,
            (Method::Put, path) if path == FILES.as_bytes() => Box::pin(self.receive(request)).await,
            _ => Err(Refusal::new(Status::NOT_FOUND, "There is no such question.")),
        }
    }

    /// Sends a file, or the part of it that the front's request selects.
    async fn send(&self, request: &mut Request<'_>) -> Result<Answer, Refusal> {
        let asked = call(request)?;
        Ok(self.send_file(request, asked).await.unwrap_or_else(|error| error_answer(&error)))
    }

    async fn send_file(&self, request: &mut Request<'_>, asked: StoreRequest<Path>) -> Result<Answer, Error> {
        let (location, io) = self.server.locate(request.io, asked).await?;
        if digests::are_wanted(request) {
            let sending = digests::send_with_digest(request, &io, location, Some(STORE_TELLS_EVERY));
            let (answer, stat) = Box::pin(sending).await?.ok_or(Error::IsFolder)?;
            return Ok(answer.field(STAT, to_ascii(&StatJson(stat))));
        }
        match site::lookup(request, &io, &location, Visibility::Private).run().await? {
            Found::File(found) => {
                let stat = to_ascii(&StatJson(found.stat));
                Ok(site::send(request, found).field(STAT, stat))
            }
            Found::Folder | Found::FolderWithoutSlash => Err(Error::IsFolder),
        }
    }

    /// Receives an upload. Reading the first bytes sends 100 (Continue), which tells the front that the
    /// upload has begun.
    async fn receive(&self, request: &mut Request<'_>) -> Result<Answer, Refusal> {
        let asked = call(request)?;
        let beginning = self.server.begin_upload(request.io, asked);
        let upload = match request.body.with_interims(STORE_TELLS_EVERY, beginning).await {
            Ok(upload) => upload,
            Err(error) => return Ok(in_json(encode_result::<Ended>(Err(error)))),
        };
        let (upload, ending) = match receive_all(request, upload).await? {
            Ok(received) => received,
            Err(error) => return Ok(in_json(encode_result::<Ended>(Err(error)))),
        };
        let ending = self.server.end_upload(upload, ending);
        Ok(in_json(encode_result(request.body.with_interims(STORE_TELLS_EVERY, ending).await)))
    }
}

/// Writes the body to the upload, up to the last frame.
async fn receive_all(
    request: &mut Request<'_>,
    mut upload: Upload,
) -> Result<Result<(Upload, Ending), Error>, Refusal> {
    let (mut frames, mut ending) = (Frames::default(), None);
    loop {
        let come = upload.soon(pin!(request.body.recv())).await;
        let lease = match come {
            Some(Ok(Some(lease))) => lease,
            Some(Ok(None)) => break,
            Some(Err(broken)) => return Err(broken.into()),
            None => match request.body.with_interims(STORE_TELLS_EVERY, upload.write_buffer()).await {
                Ok(()) => continue,
                Err(error) => return Ok(Err(error)),
            },
        };
        let come = frames.read(lease).map_err(|_| Refusal::bad("The body is not in frames."))?;
        for frame in come {
            let done = match frame {
                Frame::Bytes(bytes) => {
                    request.body.with_interims(STORE_TELLS_EVERY, upload.write(bytes)).await
                }
                Frame::Prepare => request.body.with_interims(STORE_TELLS_EVERY, upload.prepare()).await,
                Frame::End(end) => {
                    ending = Some(end);
                    Ok(())
                }
            };
            if let Err(error) = done {
                return Ok(Err(error));
            }
        }
    }
    match ending {
        Some(ending) => Ok(Ok((upload, ending))),
        None => Err(Refusal::bad("The body is incomplete: its last frame is missing.")),
    }
}

/// Parses the field that describes the request.
fn call<T: DeserializeOwned>(request: &Request<'_>) -> Result<T, Refusal> {
    let call = request.head.named(request.block, CALL).and_then(from_ascii);
    call.ok_or_else(|| Refusal::bad(format!("Say what it is about: {CALL}.")))
}

fn in_json(body: Vec<u8>) -> Answer {
    let answer = Answer::new(Status::OK).field("Content-Type", "application/json");
    answer.field("Cache-Control", "no-store").body(Body::Bytes(body))
}

/// Returns the response for a file that cannot be sent.
fn error_answer(error: &Error) -> Answer {
    if matches!(error, Error::Failed(_) | Error::Denied(_)) {
        tracing::error!(%error, "a file could not be read");
    }
    Answer::new(Status::OK).field(ERROR, to_ascii(error))
}

impl Api for StoreTransfers {
    fn answer<'a>(
        &'a self,
        request: &'a mut Request<'_>,
        called: DecodedTarget<'a>,
        _: &'a StatusPage,
    ) -> PendingAnswer<'a> {
        Box::pin(async move {
            let answered = self.serve(request, &called.path).await;
            answered.unwrap_or_else(|refusal| refusal.answer(request))
        })
    }
}
