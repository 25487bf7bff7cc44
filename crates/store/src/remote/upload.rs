//! An upload to a storage server: one request, with a body that is sent as its bytes are received.
//!
//! It does not read from a client's connection. Invariants: no bytes are requested from a client before the
//! server has begun the upload. No more is in memory than the server has room to take. Dropping an upload
//! breaks its connection, and the server then treats the upload as interrupted.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use plimsoll_io::{Detached, Io, Segment};
use plimsoll_rpc::transport::{Body, NextSegment, Source};

use super::client::{CALL, StoreClient, broken};
use super::frames;
use super::home::ServerHome;
use super::request::{FILES, StoreRequest};
use super::to_ascii;
use crate::backend::{Ended, Ending, Pending, UploadBackend, UploadStart};
use crate::error::{Error, Result};
use crate::limits::{BUFFERED_BYTES_MAX, STORE_LONG_ANSWER_TIME, STORE_SILENT_TIME};

/// An upload in progress.
pub(super) struct ServerUpload {
    /// The request; none once it has ended.
    sending: Option<Sending>,
    pipe: Rc<Pipe>,
}

/// A request in progress, with the server's response as its output.
type Sending = Pin<Box<dyn Future<Output = Result<Ended>>>>;

/// The queue of segments to be sent.
#[derive(Default)]
struct Pipe {
    ahead: RefCell<VecDeque<Segment>>,
    /// Whether the server has permitted the body.
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

impl ServerUpload {
    pub(super) async fn begin(home: &ServerHome, io: &Io, start: UploadStart) -> Result<ServerUpload> {
        let pipe = Rc::<Pipe>::default();
        let (client, request) = (Arc::clone(&home.client), home.request(io, start));
        let sending: Sending = Box::pin(send(client, io.clone(), request, Out(Rc::clone(&pipe))));
        let mut upload = ServerUpload { sending: Some(sending), pipe };
        upload.until(|pipe| pipe.is_open.get()).await?;
        Ok(upload)
    }

    /// Polls the request until the queue satisfies `enough`.
    async fn until(&mut self, enough: impl Fn(&Pipe) -> bool) -> Result<()> {
        let ServerUpload { sending, pipe } = self;
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
}

impl UploadBackend for ServerUpload {
    fn write(&mut self, pieces: Vec<Detached>) -> Pending<'_, ()> {
        for piece in pieces {
            for part in piece.chunks(BUFFERED_BYTES_MAX) {
                let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
                self.pipe.push(Segment::Owned([&frames::data_head(length), part].concat()));
            }
        }
        Box::pin(self.until(Pipe::is_empty))
    }

    fn prepare(&mut self) -> Pending<'_, ()> {
        self.pipe.push(Segment::Owned(frames::prepare()));
        Box::pin(self.until(Pipe::is_empty))
    }

    fn end(&mut self, ending: Ending) -> Pending<'_, Ended> {
        self.pipe.is_over.set(true);
        self.pipe.push(Segment::Owned(frames::ending(&ending)));
        match self.sending.take() {
            Some(sending) => sending,
            None => Box::pin(async { Err(Error::InUse) }),
        }
    }
}

/// Sends the body as it is received, and waits for the result.
async fn send(
    client: Arc<StoreClient>,
    io: Io,
    request: StoreRequest<UploadStart>,
    mut out: Out,
) -> Result<Ended> {
    let _permit = client.transfer(&io).await?;
    let request = client.request("PUT", FILES).field(CALL, to_ascii(&request));
    let request = request.body(Body::Stream { length: None, source: &mut out });
    let sender = client.client(&io, STORE_LONG_ANSWER_TIME).with_required_continue(STORE_SILENT_TIME);
    let response = sender.send_owned(request).await.map_err(broken)?;
    client.receive(&io, response).await
}
