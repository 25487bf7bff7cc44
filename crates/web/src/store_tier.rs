//! The store tier over HTTP: remote fronts keep homes here, with the secret that only they and this
//! server have.
//!
//! It decides nothing: the RPC server answers, and files are sent like an account's. Invariants: a
//! request without the secret reveals nothing; during long work the front receives interim responses. An
//! upload whose body ends before its last frame is aborted, and nothing of it is confirmed.

use std::pin::pin;
use std::sync::Arc;

use plimsoll_auth::{Secret, TierSecret};
use plimsoll_proto::http::site::{self, Found, FoundFile, Manner, Root};
use plimsoll_proto::http::{Answer, Api, Body, DecodedTarget, PendingAnswer, Request};
use plimsoll_store::apart::{
    Asked, CALL, Desk, Ended, Ending, FILES, Frame, Frames, Get, NewArrival, QUESTIONS, Question, READY,
    STAT, Seen, TROUBLE, Trouble, from_ascii, to_ascii, told,
};
use plimsoll_store::limits::STORE_TELLS_EVERY;
use plimsoll_store::{Algorithm, Error, Files, KnownDigests, Store, Upload};
use plimsoll_wire::http::digest::sha256_digest;
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;
use serde::de::DeserializeOwned;

use crate::files::{digests, file_name, why_not};
use crate::refusal::Refusal;
use crate::{conditions, credentials, json};

/// The store tier's HTTP service for fronts.
pub struct StoreTier {
    desk: Desk,
    secret: TierSecret,
}

impl StoreTier {
    /// Creates the service of `store` for clients that present `secret`.
    pub fn new(store: Store, secret: Secret) -> Arc<StoreTier> {
        let secret = TierSecret::new(secret);
        Arc::new(StoreTier { desk: Desk::new(store, conditions::again), secret })
    }

    async fn serve(&self, request: &mut Request<'_>, path: &[u8]) -> Result<Answer, Refusal> {
        credentials::tier(request, &self.secret, "a storage server", "plimsoll store").await?;
        request.authenticated();
        match (request.method(), path) {
            (Method::Post, path) if path == QUESTIONS.as_bytes() => {
                let asked: Asked = json::read(request).await?;
                let is_aborted_with_front = matches!(
                    asked.question,
                    Question::Digest(..) | Question::List { .. } | Question::Copy(..)
                );
                // Boxed, so that the future of a file transfer does not contain it.
                let answer = Box::pin(self.desk.answer(request.io, asked));
                if !is_aborted_with_front {
                    return Ok(in_json(request.body.with_interims(STORE_TELLS_EVERY, answer).await));
                }
                // Long work for a front that has disconnected is aborted: it would only delay others.
                let answer = request.body.while_connected(Some(STORE_TELLS_EVERY), answer).await;
                Ok(in_json(answer.unwrap_or_else(|| told::<()>(Err(Error::Away)))))
            }
            (Method::Get, path) if path == READY.as_bytes() => Ok(in_json(told(Ok(())))),
            (Method::Get | Method::Head, path) if path == FILES.as_bytes() => self.send(request).await,
            (Method::Put, path) if path == FILES.as_bytes() => Box::pin(self.receive(request)).await,
            _ => Err(Refusal::new(Status::NOT_FOUND, "There is no such question.")),
        }
    }

    /// Sends a file, or the part of it that the front's request selects.
    async fn send(&self, request: &mut Request<'_>) -> Result<Answer, Refusal> {
        let get: Get = call(request)?;
        match self.look_up(request, &get).await {
            Ok((found, known)) => self.send_found(request, &get, found, &known).await,
            Err(error) => Ok(trouble(error)),
        }
    }

    async fn look_up(&self, request: &Request<'_>, get: &Get) -> Result<(FoundFile, KnownDigests), Error> {
        let home = self.desk.home_of(request.io, get).await?;
        let Files::Here { folder, edition, digests: known } = home.files() else { return Err(Error::Away) };
        // To compute a digest, the file must be open.
        let root = Root { folder, edition: Some(edition).filter(|_| !digests::are_wanted(request)) };
        match site::look_up(request, &root, &file_name(&get.path), Manner::Private).await {
            Ok(Found::File(found)) => Ok((found, known)),
            Ok(Found::Folder | Found::FolderWithoutSlash) => Err(Error::IsFolder),
            Err(error) => Err(why_not(error)),
        }
    }

    async fn send_found(
        &self,
        request: &mut Request<'_>,
        get: &Get,
        found: FoundFile,
        known: &KnownDigests,
    ) -> Result<Answer, Refusal> {
        let (stat, io) = (found.stat, request.io);
        let is_wanted = digests::are_wanted(request);
        let file = found.file().filter(|_| is_wanted && !digests::delay_bytes(request, stat.size)).cloned();
        let mut answer = site::send(request, found);
        let is_sent = matches!(answer.status(), Status::OK | Status::PARTIAL_CONTENT);
        if let Some(digest) = known.get(&stat).filter(|_| is_sent && is_wanted) {
            answer = answer.field("Repr-Digest", sha256_digest(&digest));
        } else if let Some(file) = file.filter(|_| is_sent) {
            let making = async {
                let digest = self.desk.digest_for(io, get, file, Algorithm::Sha256).await?;
                if let Ok(sha256) = digest.as_slice().try_into() {
                    known.note(&stat, sha256);
                }
                Ok(digest)
            };
            match Box::pin(digests::with(request, answer, Some(STORE_TELLS_EVERY), making)).await {
                Ok(with_digest) => answer = with_digest,
                Err(plimsoll_operations::Error::Store(error)) => return Ok(trouble(error)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(answer.field(STAT, to_ascii(&Seen(stat))))
    }

    /// Receives an upload. Reading the first bytes sends 100 (Continue), which tells the front that the
    /// upload has begun.
    async fn receive(&self, request: &mut Request<'_>) -> Result<Answer, Refusal> {
        let arrival: NewArrival = call(request)?;
        let beginning = self.desk.begin(request.io, arrival);
        let upload = match request.body.with_interims(STORE_TELLS_EVERY, beginning).await {
            Ok(upload) => upload,
            Err(error) => return Ok(in_json(told::<Ended>(Err(error)))),
        };
        let (upload, ending) = match receive_all(request, upload).await? {
            Ok(received) => received,
            Err(error) => return Ok(in_json(told::<Ended>(Err(error)))),
        };
        let ending = self.desk.end_upload(upload, ending);
        Ok(in_json(told(request.body.with_interims(STORE_TELLS_EVERY, ending).await)))
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
        None => Err(Refusal::bad("The body ended before its last frame.")),
    }
}

/// Parses the field that describes the request.
fn call<T: DeserializeOwned>(request: &Request<'_>) -> Result<T, Refusal> {
    let said = request.head.named(request.block, CALL).and_then(from_ascii);
    said.ok_or_else(|| Refusal::bad(format!("Say what it is about: {CALL}.")))
}

fn in_json(body: Vec<u8>) -> Answer {
    let answer = Answer::new(Status::OK).field("Content-Type", "application/json");
    answer.field("Cache-Control", "no-store").body(Body::Bytes(body))
}

/// Returns the response for a file that cannot be sent.
fn trouble(error: Error) -> Answer {
    if matches!(error, Error::Failed(_) | Error::Denied(_)) {
        tracing::error!(%error, "a file could not be read");
    }
    Answer::new(Status::OK).field(TROUBLE, to_ascii(&Trouble::from(error)))
}

impl Api for StoreTier {
    fn answer<'a>(&'a self, request: &'a mut Request<'_>, called: DecodedTarget<'a>) -> PendingAnswer<'a> {
        Box::pin(async move {
            let answered = self.serve(request, &called.path).await;
            answered.unwrap_or_else(|refusal| refusal.answer(request))
        })
    }

    fn is_private(&self) -> bool {
        true
    }
}
