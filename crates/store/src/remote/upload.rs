//! An upload to a remote store: one request, with a body that is sent as its bytes are received. A spooled
//! upload is sent once it is complete in this process.
//!
//! It does not read from a client's connection. Invariants: no bytes are requested from a client before the
//! store has begun the upload. No more is in memory than the store has room to take. Dropping an upload
//! breaks its connection, and the store then treats the upload as interrupted.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use plimsoll_io::{Detached, EndProbe, File, Io, Lease, Segment};
use plimsoll_rpc::transport::{Body, NextSegment, Source};

use super::client::{CALL, FILES, StoreClient, broken};
use super::frames;
use super::request::{BeginUpload, Ended, Ending};
use super::spool::Spool;
use super::to_ascii;
use crate::error::{Error, Result};
use crate::limits::{BUFFERED_BYTES_MAX, STORE_LONG_ANSWER_TIME, STORE_SILENT_TIME};
use crate::path::Path;
use crate::write::{Algorithm, CancelHandle, CommitGuard, Committed};

/// An upload in progress.
pub(crate) struct Upload {
    /// The request; none once it has ended, and none while the upload is spooled.
    sending: Option<Sending>,
    pipe: Rc<Pipe>,
    spooled: Option<Spooled>,
    to: Path,
    announced: Option<u64>,
    start_offset: u64,
    bytes: u64,
    /// None until a handle was requested.
    cancel: Option<CancelHandle>,
    /// The modification time that the file gets, since 1970.
    modified: Option<Duration>,
}

/// A spooled upload, and the request to be sent once it is complete.
struct Spooled {
    spool: Spool,
    remote: Arc<StoreClient>,
    io: Io,
    begin: BeginUpload,
    bytes_max: Option<u64>,
}

/// A request in progress, with the store's response as its output.
type Sending = Pin<Box<dyn Future<Output = Result<Ended>>>>;

/// The queue of segments to be sent.
#[derive(Default)]
struct Pipe {
    ahead: RefCell<VecDeque<Segment>>,
    /// Whether the store has permitted the body.
    is_open: Cell<bool>,
    /// Whether the body is complete.
    is_over: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// The sending end of the queue.
struct Out(Rc<Pipe>);

impl Source for Out {
    fn next(&mut self) -> NextSegment<'_> {
        self.0.is_open.set(true);
        Box::pin(poll_fn(|cx| match self.0.ahead.borrow_mut().pop_front() {
            Some(segment) => Poll::Ready(Ok(Some(segment))),
            None if self.0.is_over.get() => Poll::Ready(Ok(None)),
            None => {
                *self.0.waker.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        }))
    }
}

impl Pipe {
    fn push(&self, segment: Segment) {
        self.ahead.borrow_mut().push_back(segment);
        let waker = self.waker.borrow_mut().take();
        waker.into_iter().for_each(Waker::wake);
    }

    fn is_empty(&self) -> bool {
        self.ahead.borrow().is_empty()
    }
}

impl Upload {
    pub(super) async fn begin(
        remote: &Arc<StoreClient>,
        io: &Io,
        begin: BeginUpload,
        to: Path,
        announced: Option<u64>,
        start_offset: u64,
    ) -> Result<Upload> {
        let pipe = Rc::<Pipe>::default();
        let sending: Sending = Box::pin(send(Arc::clone(remote), io.clone(), begin, Out(Rc::clone(&pipe))));
        let bytes = start_offset;
        let (sending, spooled) = (Some(sending), None);
        let (cancel, modified) = (None, None);
        let mut upload =
            Upload { sending, pipe, spooled, to, announced, start_offset, bytes, cancel, modified };
        upload.until(|pipe| pipe.is_open.get()).await?;
        Ok(upload)
    }

    /// As [`Upload::begin`], for an upload that is spooled in the local `folder` until it is complete.
    pub(super) async fn begin_spooled(
        remote: &Arc<StoreClient>,
        io: &Io,
        begin: BeginUpload,
        (to, announced, bytes_max): (Path, Option<u64>, Option<u64>),
        folder: &File,
    ) -> Result<Upload> {
        // Begun and aborted at once, to report errors before the first byte. The commit makes the same
        // checks again.
        let mut asked = Upload::begin(remote, io, begin.clone(), to.clone(), announced, 0).await?;
        asked.end(Ending::Abort).await?;
        let spool = Spool::new(io, folder).await?;
        let spooled = Spooled { spool, remote: Arc::clone(remote), io: io.clone(), begin, bytes_max };
        let (pipe, spooled) = (Rc::default(), Some(spooled));
        let (sending, start_offset, bytes, cancel, modified) = (None, 0, 0, None, None);
        Ok(Upload { sending, pipe, spooled, to, announced, start_offset, bytes, cancel, modified })
    }

    /// Sends the spooled bytes to the store.
    async fn send_spooled(&mut self) -> Result<()> {
        let Some(Spooled { spool, remote, io, begin, .. }) = self.spooled.take() else { return Ok(()) };
        let mut upload = Upload::begin(&remote, &io, begin, self.to.clone(), self.announced, 0).await?;
        while upload.bytes < self.bytes {
            match spool.read(upload.bytes).await? {
                nothing if nothing.is_empty() => {
                    return Err(Error::Failed(std::io::ErrorKind::UnexpectedEof.into()));
                }
                part => upload.write_all([Lease::owned(part).detach()]).await?,
            }
        }
        (upload.cancel, upload.modified) = (self.cancel.take(), self.modified);
        *self = upload;
        Ok(())
    }

    /// Polls the request until the queue satisfies `enough`.
    async fn until(&mut self, enough: impl Fn(&Pipe) -> bool) -> Result<()> {
        let Upload { sending, pipe, .. } = self;
        poll_fn(|cx| {
            let Some(going) = sending else { return Poll::Ready(Err(Error::InUse)) };
            if let Poll::Ready(ended) = going.as_mut().poll(cx) {
                *sending = None;
                // It cannot have succeeded before the body is complete.
                return Poll::Ready(Err(ended.err().unwrap_or(Error::Away)));
            }
            if enough(pipe) { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }

    pub(crate) fn start_offset(&self) -> u64 {
        self.start_offset
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn to(&self) -> &Path {
        &self.to
    }

    pub(crate) fn cancel_handle(&mut self, client: Option<EndProbe>) -> CancelHandle {
        self.cancel.insert(CancelHandle::new(client)).clone()
    }

    pub(crate) fn announced(&self) -> Option<u64> {
        self.announced
    }

    pub(crate) fn set_modified(&mut self, modified: Duration) {
        self.modified = Some(modified);
    }

    pub(crate) async fn write_all(&mut self, pieces: impl IntoIterator<Item = Detached>) -> Result<()> {
        let pieces: Vec<Detached> = pieces.into_iter().collect();
        self.bytes += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        if self.announced.is_some_and(|most| self.bytes > most) {
            return Err(Error::Length);
        }
        if let Some(spooled) = &mut self.spooled {
            return spooled.write_all(pieces).await;
        }
        for piece in pieces {
            for part in piece.chunks(BUFFERED_BYTES_MAX) {
                let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
                self.pipe.push(Segment::Owned([&frames::data_head(length), part].concat()));
            }
        }
        self.until(Pipe::is_empty).await
    }

    pub(crate) async fn prepare(&mut self) -> Result<()> {
        if self.spooled.is_some() {
            return Ok(());
        }
        self.pipe.push(Segment::Owned(frames::prepare()));
        self.until(Pipe::is_empty).await
    }

    /// Runs the guard right before it sends the request to commit.
    pub(crate) async fn try_commit(
        &mut self,
        digests: Vec<(Algorithm, Vec<u8>)>,
        guard: Option<CommitGuard>,
    ) -> Result<Option<Committed>> {
        if self.announced.is_some_and(|most| self.bytes != most) {
            return Err(Error::Length);
        }
        self.send_spooled().await?;
        if self.cancel.as_ref().is_some_and(CancelHandle::is_cancelled) {
            self.end_by_aborting().await;
            return Err(Error::Cancelled);
        }
        if !guard.as_ref().is_none_or(CommitGuard::holds) {
            return Ok(None);
        }
        let ending = match self.modified {
            None => Ending::Commit(digests),
            Some(modified) => Ending::CommitDated(digests, modified),
        };
        match self.end(ending).await? {
            Ended::Committed(committed) => Ok(Some(committed)),
            _ => Err(Error::Away),
        }
    }

    pub(crate) async fn pause(mut self) -> Result<u64> {
        match self.end(Ending::Pause).await? {
            Ended::Paused(offset) => Ok(offset),
            _ => Err(Error::Away),
        }
    }

    pub(crate) async fn abort(mut self) {
        self.end_by_aborting().await;
    }

    async fn end_by_aborting(&mut self) {
        // The store does not know of a spooled upload.
        if self.spooled.is_none()
            && let Err(error) = self.end(Ending::Abort).await
        {
            tracing::info!(%error, "an aborted upload is settled later");
        }
    }

    async fn end(&mut self, ending: Ending) -> Result<Ended> {
        self.pipe.is_over.set(true);
        self.pipe.push(Segment::Owned(frames::ending(&ending)));
        match self.sending.take() {
            Some(sending) => sending.await,
            None => Err(Error::InUse),
        }
    }
}

impl Spooled {
    /// Spools bytes, and fails above the home's quota: the store checks that too, but only once the upload
    /// is complete.
    async fn write_all(&mut self, pieces: Vec<Detached>) -> Result<()> {
        self.spool.write_all(pieces).await?;
        if self.bytes_max.is_some_and(|most| self.spool.bytes() > most) { Err(Error::Quota) } else { Ok(()) }
    }
}

/// Sends the body as it is received, and waits for the result.
async fn send(remote: Arc<StoreClient>, io: Io, begin: BeginUpload, mut out: Out) -> Result<Ended> {
    let _turn = remote.transfer(&io).await?;
    let request = remote.request("PUT", FILES).field(CALL, to_ascii(&begin));
    let request = request.body(Body::Stream { length: None, source: &mut out });
    let client = remote.client(&io, STORE_LONG_ANSWER_TIME).with_required_continue(STORE_SILENT_TIME);
    let response = client.send_owned(request).await.map_err(broken)?;
    remote.receive(&io, response).await
}
