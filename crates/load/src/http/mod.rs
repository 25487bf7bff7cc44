//! A user that speaks HTTP/1.1: downloads existing files, uploads under new names.
//!
//! It is not the client library, which does more for each request. Invariants: a body that is not verified
//! is discarded without a copy if the kernel can. A connection is reused only if no bytes are left over on
//! it. A file's request is built once.

mod answer;

use std::io;
use std::sync::Arc;

use plimsoll_io::{Io, Segment, Stream, Want};
use plimsoll_tls::Handshake;
use plimsoll_wire::http::head::Method;

use crate::checking::Taking;
use crate::failure::Failure;
use crate::limits::ONE_RECEIVE_BYTES_MAX;
use crate::measure::CorrectResponse;
use crate::plan::{Plan, PlannedRequests, Uploaded};
use crate::user::Protocol;
use answer::{Answer, receive_answer};

/// A user that speaks HTTP.
pub(crate) struct HttpUser {
    io: Io,
    plan: Arc<Plan>,
    number: u64,
    /// The keep-alive connection. Taken out during a request, so that a cancelled request closes it.
    connection: Option<Stream>,
    /// Index of the address that last accepted a connection.
    address: usize,
    /// Length of the last body: the next is often as long.
    last_bytes: u64,
    uploaded: Uploaded,
    /// The handshake of the present request's connection.
    handshake: Option<Handshake>,
}

impl HttpUser {
    pub(crate) fn new(io: &Io, plan: &Arc<Plan>, number: u64, uploaded: &Uploaded) -> HttpUser {
        HttpUser {
            io: io.clone(),
            plan: Arc::clone(plan),
            number,
            connection: None,
            address: 0,
            last_bytes: 0,
            uploaded: uploaded.clone(),
            handshake: None,
        }
    }

    async fn connect(&mut self) -> Result<Stream, Failure> {
        let addresses = &self.plan.addresses;
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for step in 0..addresses.len() {
            let at = (self.address + step) % addresses.len();
            match self.io.connect(&addresses[at]).await {
                Ok(stream) => {
                    self.address = at;
                    return self.encrypted(stream).await;
                }
                Err(error) => failed = error,
            }
        }
        Err(Failure::Connect(failed))
    }

    /// Encrypts a new connection, if the server is to be reached so.
    async fn encrypted(&mut self, mut stream: Stream) -> Result<Stream, Failure> {
        let Some((tls, name)) = &self.plan.tls else { return Ok(stream) };
        let done = tls.handshake(&self.io, &mut stream, name).await;
        self.handshake = Some(done.map_err(|error| Failure::Connect(io::Error::other(error)))?);
        Ok(stream)
    }

    /// Sends a request, and receives the whole response. Its body goes to `taking`, or is discarded.
    async fn exchange(
        &mut self,
        method: Method,
        segments: impl IntoIterator<Item = Segment>,
        taking: &mut Option<Taking>,
    ) -> Result<Answer, Failure> {
        let mut stream = match self.connection.take() {
            Some(stream) => stream,
            None => self.connect().await?,
        };
        for segment in segments {
            stream.tx.push(segment);
        }
        let want = if self.last_bytes <= ONE_RECEIVE_BYTES_MAX { Want::Body } else { Want::Head };
        let answer = receive_answer(&mut stream.rx, method, want, taking).await?;
        self.last_bytes = answer.bytes;
        self.put_back(stream, &answer);
        if answer.status / 100 == 2 { Ok(answer) } else { Err(Failure::Status(answer.status)) }
    }

    /// Keeps a reusable connection, and closes any other cleanly.
    fn put_back(&mut self, mut stream: Stream, answer: &Answer) {
        if answer.keeps_alive && self.plan.keeps && stream.tx.unsent() == 0 {
            self.connection = Some(stream);
        } else if stream.tx.unsent() == 0 {
            stream.tx.finish();
        }
    }

    /// Downloads a file, and verifies it if `is_due`.
    async fn download(&mut self, file: u64, is_due: bool) -> Result<CorrectResponse, Failure> {
        let mut taking = self.plan.taking(is_due);
        let request = Segment::Shared(self.plan.asked(file));
        let answer = self.exchange(Method::Get, [request], &mut taking).await?;
        let handshakes = self.handshake.take().into_iter().collect();
        Ok(CorrectResponse { handshakes, ..self.plan.judge(file, answer.bytes, taking)? })
    }

    /// Uploads the body under a new name.
    async fn upload(
        &mut self,
        body: &Arc<[u8]>,
        request: u64,
        is_due: bool,
    ) -> Result<CorrectResponse, Failure> {
        let target = self.plan.fresh_target(self.number, request);
        let head = Segment::Owned(self.plan.upload_head(&target, body.len()));
        self.exchange(Method::Put, [head, Segment::Shared(Arc::clone(body))], &mut None).await?;
        self.uploaded.note(is_due, target);
        let (bytes, handshakes) = (body.len() as u64, self.handshake.take().into_iter().collect());
        Ok(CorrectResponse { bytes, handshakes, ..CorrectResponse::default() })
    }
}

impl Protocol for HttpUser {
    async fn get_ready(&mut self) -> Result<(), Failure> {
        for file in self.plan.references_of(self.number) {
            self.download(file, true).await?;
        }
        if self.plan.keeps && self.connection.is_none() {
            self.connection = Some(self.connect().await?);
        }
        // It precedes the measurement.
        self.handshake = None;
        Ok(())
    }

    async fn ask(&mut self, request: u64) -> Result<CorrectResponse, Failure> {
        let plan = Arc::clone(&self.plan);
        let is_due = plan.checked.is_due(plan.seed, self.number, request);
        match &plan.requests {
            PlannedRequests::Download { files, pick, .. } => {
                self.download(pick.file(self.number, request, files.count()), is_due).await
            }
            PlannedRequests::Upload { body } => self.upload(body, request, is_due).await,
            PlannedRequests::SignUp => Err(Failure::Malformed("accounts are made over classic")),
        }
    }

    async fn verify_upload(&mut self, target: &str) -> Result<(), Failure> {
        let mut taking = Some(Taking::to_verify());
        let request = Segment::Owned(self.plan.get_head(target));
        self.exchange(Method::Get, [request], &mut taking).await?;
        self.plan.judge_upload(taking)
    }

    async fn leave(mut self) {
        if let Some(mut stream) = self.connection.take() {
            stream.tx.finish();
        }
    }
}
