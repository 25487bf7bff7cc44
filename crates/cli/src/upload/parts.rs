//! Uploads a large file in parts by tus 1.0, so that an interrupted upload resumes.
//!
//! The server keeps the bytes; the state folder maps files to uploads. Invariants: a changed file is never
//! resumed, but starts over. The last part carries the digest of the whole file.

use std::os::unix::ffi::OsStrExt as _;

use plimsoll_client::http::{Body, Request};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::tus::write_metadata;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::LocalFile;
use super::reading::{Version, repr_digest};
use super::source::FileSource;
use crate::api_client::ApiClient;
use crate::download::digest_of;
use crate::failure::{Failure, Refusal};
use crate::limits::{FIRST_PART_BYTES, JSON_BYTES_MAX, LAST_PART_BYTES};
use crate::progress::FileProgress;
use crate::remote_path::RemotePath;
use crate::retry::RetryPolicy;
use crate::state::{StateFolder, key};

const TUS: (&str, &str) = ("Tus-Resumable", "1.0.0");

/// The stored state of an upload in progress.
#[derive(Serialize, Deserialize)]
struct Begun {
    target: String,
    of: Version,
}

/// An upload in progress.
struct Parts<'a, 'o> {
    server: &'a mut ApiClient,
    opened: &'a LocalFile<'o>,
    to: &'a RemotePath,
    progress: &'a FileProgress<'a>,
    state: StateFolder,
    key: String,
    /// The upload's path on the server; `None` if it is not created yet.
    target: Option<String>,
    /// The number of bytes that the server has.
    at: u64,
    /// Whether the upload is complete and committed.
    done: bool,
    /// The digest of the file's first bytes, and their number.
    hash: (Sha256, u64),
    sent: u64,
}

/// Uploads a file; returns how many bytes this command sent.
pub(super) async fn put(
    server: &mut ApiClient,
    opened: &LocalFile<'_>,
    to: &RemotePath,
    progress: &FileProgress<'_>,
) -> Result<u64, Failure> {
    let from = opened.path.canonicalize().map_err(|error| Failure::local("cannot be read", &error))?;
    let key = key(&[server.identity().as_bytes(), to.target().as_bytes(), from.as_os_str().as_bytes()]);
    let state = StateFolder::of("uploads")?;
    let begun = state.load::<Begun>(&key)?;
    let hash = (Sha256::new(), 0);
    let mut parts =
        Parts { server, opened, to, progress, state, key, target: None, at: 0, done: false, hash, sent: 0 };
    parts.take_up(begun).await?;
    let mut retries = RetryPolicy::default();
    while !parts.done {
        let before = parts.at;
        if let Err(failure) = parts.resume().await {
            parts.after(failure, &mut retries).await?;
        }
        if parts.at > before {
            retries.reset();
        }
    }
    parts.state.forget(&parts.key)?;
    Ok(parts.sent)
}

impl Parts<'_, '_> {
    /// Resumes an earlier upload of the same version of the file; discards one of another version.
    async fn take_up(&mut self, begun: Option<Begun>) -> Result<(), Failure> {
        match begun {
            Some(begun) if begun.of == self.opened.version => {
                self.target = Some(begun.target);
                self.look_up().await
            }
            Some(begun) => {
                // Fails if the upload has ended already, which is as good.
                let _ = self
                    .server
                    .send_and_discard(Request::new("DELETE", &begun.target).field(TUS.0, TUS.1))
                    .await;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Asks the server for its offset.
    async fn look_up(&mut self) -> Result<(), Failure> {
        let Some(target) = self.target.clone() else { return Ok(()) };
        let account = self.server.account();
        let response = self.server.send(Request::new("HEAD", &target).field(TUS.0, TUS.1)).await?;
        let offset = response.field("Upload-Offset").and_then(|value| value.parse().ok());
        match (response.status(), offset) {
            (Status::OK | Status::NO_CONTENT, Some(offset)) if offset <= self.opened.version.bytes => {
                self.at = offset;
                self.progress.at(offset);
                Ok(())
            }
            (Status::NOT_FOUND | Status::GONE, _) => {
                (self.target, self.at) = (None, 0);
                Ok(())
            }
            _ => Err(Failure::Refused(Refusal::of(response, account.as_deref()).await)),
        }
    }

    /// Takes the next step: creates the upload, or sends a part.
    async fn resume(&mut self) -> Result<(), Failure> {
        match self.target.clone() {
            None => self.begin().await,
            Some(target) => self.send_part(&target).await,
        }
    }

    async fn begin(&mut self) -> Result<(), Failure> {
        let mut metadata = Vec::new();
        write_metadata("path", &self.to.path, &mut metadata);
        let request = Request::new("POST", "/uploads")
            .field(TUS.0, TUS.1)
            .field("Upload-Length", self.opened.version.bytes.to_string())
            .field("Upload-Metadata", String::from_utf8_lossy(&metadata));
        let mut response = self.server.send_ok(request).await?;
        let id = response.field("Location").and_then(|at| at.rsplit('/').next()).map(str::to_owned);
        response.bytes(JSON_BYTES_MAX).await?;
        let no_location =
            || Failure::Unexpected("an upload was begun, but the response has no Location".to_owned());
        let target = format!("/uploads/{}", id.ok_or_else(no_location)?);
        let begun = Begun { target: target.clone(), of: self.opened.version.clone() };
        self.state.save(&self.key, &begun)?;
        (self.target, self.at) = (Some(target), 0);
        Ok(())
    }

    async fn send_part(&mut self, target: &str) -> Result<(), Failure> {
        let (at, bytes) = (self.at, self.opened.version.bytes);
        let to = match bytes - at {
            0..=FIRST_PART_BYTES => bytes,
            _ if at == 0 => FIRST_PART_BYTES,
            _ => bytes - LAST_PART_BYTES,
        };
        let mut request = Request::new("PATCH", target)
            .field(TUS.0, TUS.1)
            .field("Content-Type", "application/offset+octet-stream")
            .field("Upload-Offset", at.to_string())
            .field("X-OC-Mtime", self.opened.version.mtime());
        self.hash_to(at).await?;
        let before = self.hash.0.clone();
        if to == bytes {
            self.hash_to(to).await?;
            self.opened.check_unchanged()?;
            request = request.field("Repr-Digest", repr_digest(self.hash.0.clone()));
        } else {
            // The server hashes while it receives, so that it need not read the file again for the last
            // part.
            request = request.field("Want-Repr-Digest", "sha-256=1");
        }
        let io = self.server.io.clone();
        let mut source = FileSource::new(&io, &self.opened.file, (at, to), before, self.progress);
        let result = self
            .server
            .send_and_discard(request.body(Body::Stream { length: Some(to - at), source: &mut source }))
            .await;
        self.sent += source.at - at;
        result?;
        if let Some(hash) = source.into_hash() {
            self.hash = (hash, to);
        }
        (self.at, self.done) = (to, to == bytes);
        Ok(())
    }

    /// Extends the digest to the first `to` bytes.
    async fn hash_to(&mut self, to: u64) -> Result<(), Failure> {
        let (hash, from) = std::mem::take(&mut self.hash);
        let (hash, from) = if from <= to { (hash, from) } else { (Sha256::new(), 0) };
        self.hash = (self.opened.digest(&self.server.io, hash, from, to).await?, to);
        Ok(())
    }

    /// Handles a failure: gives up, or waits and asks the server for its offset.
    async fn after(&mut self, failure: Failure, retries: &mut RetryPolicy) -> Result<(), Failure> {
        match failure.status() {
            // It has expired, or was deleted.
            Some(Status::NOT_FOUND | Status::GONE) if self.target.is_some() => {
                let renewed = Failure::Local("The server lost the upload. Put the file again.".to_owned());
                (self.target, self.at) = (None, 0);
                return retries.count_attempt(renewed);
            }
            // The server's offset is not ours.
            Some(Status::CONFLICT) if self.target.is_some() => {
                self.look_up().await?;
                return retries.count_attempt(failure);
            }
            Some(Status::UNPROCESSABLE_CONTENT) => {
                // The server discarded the upload, because its digest was wrong.
                let _ = self.state.forget(&self.key);
                return Err(failure);
            }
            _ => retries.wait_before_retry(self.server, failure).await?,
        }
        loop {
            match self.look_up_all().await {
                Ok(()) => return Ok(()),
                Err(failure) => retries.wait_before_retry(self.server, failure).await?,
            }
        }
    }

    /// Asks the server for its offset. A missing upload may be complete, if only the response to its last
    /// part was lost; the digest tells.
    async fn look_up_all(&mut self) -> Result<(), Failure> {
        self.look_up().await?;
        let (hash, hashed) = &self.hash;
        if self.target.is_none() && *hashed == self.opened.version.bytes {
            let ours: [u8; 32] = hash.clone().finalize().into();
            self.done = digest_of(self.server, self.to, None).await? == Some(ours);
        }
        Ok(())
    }
}
