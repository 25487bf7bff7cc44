//! An upload on its way to a store elsewhere: one request, whose body comes as its bytes do.
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

use plimsoll_client::http::{Body, Piece, Source};
use plimsoll_io::{Detached, Io, Segment};

use super::ask::{Ended, Ending, NewArrival};
use super::frames;
use super::remote::{CALL, FILES, Remote, away};
use super::to_ascii;
use crate::error::{Error, Result};
use crate::limits::{HELD_BYTES_MAX, STORE_LONG_ANSWER_TIME, STORE_SILENT_TIME};
use crate::path::Path;
use crate::write::{Algorithm, Committed};

/// An upload under way.
pub(crate) struct Upload {
    /// The request; none once it has ended.
    sending: Option<Sending>,
    pipe: Rc<Pipe>,
    to: Path,
    announced: Option<u64>,
    begun_at: u64,
    bytes: u64,
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
        let mut upload = Upload { sending: Some(sending), pipe, to, announced, begun_at, bytes };
        upload.until(|pipe| pipe.is_open.get()).await?;
        Ok(upload)
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

    pub(crate) fn announced(&self) -> Option<u64> {
        self.announced
    }

    pub(crate) async fn write_all(&mut self, pieces: impl IntoIterator<Item = Detached>) -> Result<()> {
        for piece in pieces {
            self.bytes += piece.len() as u64;
            if self.announced.is_some_and(|most| self.bytes > most) {
                return Err(Error::Length);
            }
            for part in piece.chunks(HELD_BYTES_MAX) {
                let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
                self.pipe.push(Segment::Owned([&frames::data_head(length), part].concat()));
            }
        }
        self.until(Pipe::is_empty).await
    }

    pub(crate) async fn prepare(&mut self) -> Result<()> {
        self.pipe.push(Segment::Owned(frames::prepare()));
        self.until(Pipe::is_empty).await
    }

    pub(crate) async fn commit_whole(self, digests: Vec<(Algorithm, Vec<u8>)>) -> Result<Committed> {
        if self.announced.is_some_and(|most| self.bytes != most) {
            return Err(Error::Length);
        }
        match self.end(Ending::Commit(digests)).await? {
            Ended::Committed(committed) => Ok(committed),
            _ => Err(Error::Away),
        }
    }

    pub(crate) async fn pause(self) -> Result<u64> {
        match self.end(Ending::Pause).await? {
            Ended::Paused(offset) => Ok(offset),
            _ => Err(Error::Away),
        }
    }

    pub(crate) async fn give_up(self) {
        if let Err(error) = self.end(Ending::GiveUp).await {
            tracing::info!(%error, "an upload that was given up is settled later");
        }
    }

    async fn end(mut self, ending: Ending) -> Result<Ended> {
        self.pipe.is_over.set(true);
        self.pipe.push(Segment::Owned(frames::ending(&ending)));
        match self.sending.take() {
            Some(sending) => sending.await,
            None => Err(Error::InUse),
        }
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
