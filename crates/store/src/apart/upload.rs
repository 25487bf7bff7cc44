//! An upload on its way to a store elsewhere: one request, whose body comes as its bytes do; or, where
//! uploads are spooled, when all of it is here.
//!
//! It does not read from a client's connection. What must hold: nothing is asked of a client before the store
//! has begun the upload; no more is in memory than the store has room to take; when it is dropped, its
//! connection breaks, and the store has it broken off.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use plimsoll_client::http::{Body, Piece, Source};
use plimsoll_io::{Detached, File, Io, Lease, Segment};

use super::ask::{Ended, Ending, NewArrival};
use super::frames;
use super::remote::{CALL, FILES, Remote, away};
use super::spool::Spool;
use super::to_ascii;
use crate::error::{Error, Result};
use crate::limits::{HELD_BYTES_MAX, STORE_LONG_ANSWER_TIME, STORE_SILENT_TIME};
use crate::path::Path;
use crate::write::{Algorithm, CommitGuard, Committed, TakeBack};

/// An upload under way.
pub(crate) struct Upload {
    /// The request; none once it has ended, or before all has come that is spooled.
    sending: Option<Sending>,
    pipe: Rc<Pipe>,
    spooled: Option<Spooled>,
    to: Path,
    announced: Option<u64>,
    begun_at: u64,
    bytes: u64,
    /// None if nobody asked for it.
    take_back: Option<TakeBack>,
    /// The time of modification that the file gets, since 1970.
    modified: Option<Duration>,
}

/// What waits here until all of it has come, and what is to be asked then.
struct Spooled {
    spool: Spool,
    remote: Arc<Remote>,
    io: Io,
    arrival: NewArrival,
    bytes_max: Option<u64>,
}

/// A request on its way, and what the store has answered.
type Sending = Pin<Box<dyn Future<Output = Result<Ended>>>>;

/// What is to be sent.
#[derive(Default)]
struct Pipe {
    ahead: RefCell<VecDeque<Segment>>,
    /// Whether the store has given leave to send.
    is_open: Cell<bool>,
    /// Whether nothing more comes.
    is_over: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// The end of it that sends.
struct Out(Rc<Pipe>);

impl Source for Out {
    fn next(&mut self) -> Piece<'_> {
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
        remote: &Arc<Remote>,
        io: &Io,
        arrival: NewArrival,
        to: Path,
        announced: Option<u64>,
        begun_at: u64,
    ) -> Result<Upload> {
        let pipe = Rc::<Pipe>::default();
        let sending: Sending = Box::pin(send(Arc::clone(remote), io.clone(), arrival, Out(Rc::clone(&pipe))));
        let bytes = begun_at;
        let (sending, spooled) = (Some(sending), None);
        let (take_back, modified) = (None, None);
        let mut upload =
            Upload { sending, pipe, spooled, to, announced, begun_at, bytes, take_back, modified };
        upload.until(|pipe| pipe.is_open.get()).await?;
        Ok(upload)
    }

    /// As [`Upload::begin`], of one whose bytes wait in `folder`, here, until all of them have come.
    pub(super) async fn begin_spooled(
        remote: &Arc<Remote>,
        io: &Io,
        arrival: NewArrival,
        (to, announced, bytes_max): (Path, Option<u64>, Option<u64>),
        folder: &File,
    ) -> Result<Upload> {
        // What would be refused is refused before a byte comes; the commit asks again.
        let mut asked = Upload::begin(remote, io, arrival.clone(), to.clone(), announced, 0).await?;
        asked.end(Ending::GiveUp).await?;
        let spool = Spool::new(io, folder).await?;
        let spooled = Spooled { spool, remote: Arc::clone(remote), io: io.clone(), arrival, bytes_max };
        let (pipe, spooled) = (Rc::default(), Some(spooled));
        let (sending, begun_at, bytes, take_back, modified) = (None, 0, 0, None, None);
        Ok(Upload { sending, pipe, spooled, to, announced, begun_at, bytes, take_back, modified })
    }

    /// Sends what was spooled on its way.
    async fn send_spooled(&mut self) -> Result<()> {
        let Some(Spooled { spool, remote, io, arrival, .. }) = self.spooled.take() else { return Ok(()) };
        let mut upload = Upload::begin(&remote, &io, arrival, self.to.clone(), self.announced, 0).await?;
        while upload.bytes < self.bytes {
            match spool.read(upload.bytes).await? {
                nothing if nothing.is_empty() => {
                    return Err(Error::Failed(std::io::ErrorKind::UnexpectedEof.into()));
                }
                part => upload.write_all([Lease::owned(part).detach()]).await?,
            }
        }
        (upload.take_back, upload.modified) = (self.take_back.take(), self.modified);
        *self = upload;
        Ok(())
    }

    /// Lets the request go on until the pipe is as wanted.
    async fn until(&mut self, enough: impl Fn(&Pipe) -> bool) -> Result<()> {
        let Upload { sending, pipe, .. } = self;
        poll_fn(|cx| {
            let Some(going) = sending else { return Poll::Ready(Err(Error::InUse)) };
            if let Poll::Ready(ended) = going.as_mut().poll(cx) {
                *sending = None;
                // That it has ended well is nothing that could be said by now.
                return Poll::Ready(Err(ended.err().unwrap_or(Error::Away)));
            }
            if enough(pipe) { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }

    pub(crate) fn begun_at(&self) -> u64 {
        self.begun_at
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn to(&self) -> &Path {
        &self.to
    }

    pub(crate) fn take_back(&mut self) -> TakeBack {
        self.take_back.get_or_insert_default().clone()
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
            for part in piece.chunks(HELD_BYTES_MAX) {
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
        if self.take_back.as_ref().is_some_and(TakeBack::is_taken) {
            self.end_by_giving_up().await;
            return Err(Error::TakenBack);
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

    pub(crate) async fn give_up(mut self) {
        self.end_by_giving_up().await;
    }

    async fn end_by_giving_up(&mut self) {
        // Of what is spooled, the store knows nothing.
        if self.spooled.is_none()
            && let Err(error) = self.end(Ending::GiveUp).await
        {
            tracing::info!(%error, "an upload that was given up is settled later");
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
    /// No more than the home may have: the store, which weighs it, hears of it late.
    async fn write_all(&mut self, pieces: Vec<Detached>) -> Result<()> {
        self.spool.write_all(pieces).await?;
        if self.bytes_max.is_some_and(|most| self.spool.bytes() > most) { Err(Error::Quota) } else { Ok(()) }
    }
}

/// Sends all that comes, and waits for what has become of it.
async fn send(remote: Arc<Remote>, io: Io, arrival: NewArrival, mut out: Out) -> Result<Ended> {
    let _turn = remote.transfer(&io).await?;
    let request = remote.request("PUT", FILES).field(CALL, to_ascii(&arrival));
    let request = request.body(Body::Stream { length: None, source: &mut out });
    let client = remote.client(&io, STORE_LONG_ANSWER_TIME).with_leave(STORE_SILENT_TIME);
    let response = client.send_along(request).await.map_err(|error| away(&error))?;
    remote.told(&io, response).await
}
