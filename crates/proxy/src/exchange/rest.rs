//! The part of a response that its client gets after the connection to the origin is free.
//!
//! It receives nothing of an origin. Invariants: a client that receives slowly keeps no connection to an
//! origin for it. A body that ends early is visible as such to the client.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_io::{Deadline, FileRange, Io, Phase, Rx, Segment, Tx, keeping_upstream, select};
use plimsoll_io::{Either, Elapsed};
use plimsoll_proto::drain;

use super::download::Download;
use super::signals::Signals;
use super::{Exchange, Failure, OutcomeEnding, ending_of};
use crate::body::{BodyReader, OutFraming};
use crate::cache::fetch::Follower;
use crate::cache::limits::RECORD_BYTES_MAX;
use crate::cache::policy::{CacheRequest, CacheStatus, FieldLines, StoredHead};
use crate::cache::store::Object;
use crate::caching::{ClientSide, StoredAnswer};
use crate::limits::{RELAY_AHEAD_BYTES_MAX, RELAYED_PART_BYTES_MAX, SLOW_CLIENT_TIME};
use crate::proxy::Shared;
use crate::spool::Spool;

/// The unsent part of a response that the origin has sent.
pub(super) enum Unsent<'r> {
    /// A body that was spooled, and its end.
    Spooled(Spool, OutFraming, Vec<u8>),
    /// A body in a file that the origin has passed.
    File(FileRange, OutFraming),
    /// A part of a body that was recorded by the cache.
    Recorded(Box<UnsentRecording<'r>>),
    /// All of a response that is looked up again, or a part that the cache cannot read: the exchange ends so.
    Elsewhere(OutcomeEnding),
    /// All of a stored response.
    Stored(Box<StoredAnswer<'r>>),
}

/// A part of a recorded body.
pub(super) struct UnsentRecording<'r> {
    pub(super) request: CacheRequest<'r>,
    pub(super) head: StoredHead,
    pub(super) follower: Follower,
    pub(super) range: Range<u64>,
    /// The length of the whole, if it was announced.
    pub(super) length: Option<u64>,
}

/// The result of spooling a body.
enum Spooled {
    /// All of it is received.
    All(Spool),
    /// The spool was sent, and has room for no more.
    Part,
}

/// The way of a body to its client.
struct Sender<'a> {
    shared: &'a Shared,
    tx: &'a mut Tx,
    signals: &'a Signals,
    deadline: &'a Deadline,
    framing: OutFraming,
}

impl Sender<'_> {
    /// Pushes bytes once the client has taken enough of those before.
    async fn send(&mut self, segment: Segment) -> Result<(), Failure> {
        let send_time = self.shared.settings.limits.send_time;
        let drained = drain(self.tx, RELAY_AHEAD_BYTES_MAX, self.deadline, send_time).await;
        drained.map_err(|_| Failure::ClientGone)?;
        self.signals.count(segment.len());
        self.tx.slot().enter(Phase::Working, self.deadline.now());
        self.framing.push(segment, self.tx);
        Ok(())
    }

    /// Sends what a spool has.
    async fn send_spool(&mut self, spool: &Spool) -> Result<(), Failure> {
        let send_time = self.shared.settings.limits.send_time;
        loop {
            // Before the bytes leave the spool: a wait may be dropped.
            let drained = drain(self.tx, RELAY_AHEAD_BYTES_MAX, self.deadline, send_time).await;
            drained.map_err(|_| Failure::ClientGone)?;
            match spool.next(&self.shared.io, self.tx.takes_files()).await {
                Ok(Some(segment)) => {
                    self.signals.count(segment.len());
                    self.tx.slot().enter(Phase::Working, self.deadline.now());
                    self.framing.push(segment, self.tx);
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    tracing::warn!(%error, "a spooled response cannot be read");
                    return Err(Failure::Broken);
                }
            }
        }
    }

    /// Sends what a spool has and gets. Ready only if that fails.
    async fn follow_spool(&mut self, spool: &Spool) -> Failure {
        loop {
            if let Err(failure) = self.send_spool(spool).await {
                return failure;
            }
            spool.filled().await;
        }
    }

    /// Sends a file, in parts that are in memory before they are sent.
    async fn send_file(&mut self, FileRange { file, mut range }: FileRange) -> Result<(), Failure> {
        while range.start < range.end {
            let part = range.start..range.end.min(range.start + RELAYED_PART_BYTES_MAX);
            let (ahead, ahead_part) = (file.clone(), part.clone());
            // A hint. An error of reading appears again when the part is sent.
            let _ = self.shared.io.files(move |fs| fs.read_ahead(&ahead, ahead_part.clone())).await;
            range.start = part.end;
            self.send(Segment::File(FileRange { file: file.clone(), range: part })).await?;
        }
        Ok(())
    }
}

/// Receives a body to its end into a spool. Returns the bytes that did not fit, with more to come.
async fn fill(
    io: &Io,
    spool: &Spool,
    (body, rx): (&mut BodyReader, &mut Rx),
    deadline: &Deadline,
    between_bytes: std::time::Duration,
) -> Result<Option<Vec<u8>>, Failure> {
    loop {
        deadline.after(between_bytes);
        let received = deadline.within(body.next_bytes(rx, RECORD_BYTES_MAX)).await;
        let received = received.map_err(|Elapsed| Failure::Late)?;
        let Some(bytes) = received.map_err(|error| Failure::of_origin_body(&error))? else { return Ok(None) };
        if let Err(bytes) = spool.push(io, bytes).await {
            return Ok(Some(bytes));
        }
    }
}

impl<'r> Download<'_, 'r> {
    /// Takes a body that the origin has passed as a file.
    pub(super) async fn take_file(&mut self, body: &mut BodyReader) -> Result<Option<FileRange>, Failure> {
        if !self.tx.takes_files() {
            return Ok(None);
        }
        let deadline = self.deadlines.download;
        deadline.after(self.shared.settings.times.between_bytes);
        let passed = deadline.within(body.passed_file(&mut self.inbox.rx)).await;
        let Some(part) = passed.map_err(|Elapsed| Failure::Late)? else { return Ok(None) };
        // It is there: this does not wait.
        if body.take_passed_file(&mut self.inbox.rx).await { Ok(Some(part)) } else { Err(Failure::Broken) }
    }

    /// Waits for a client that has not taken enough. Spools the rest of the body if that takes long.
    /// Returns the spool once it has all of the body.
    pub(super) async fn wait_or_spool(
        &mut self,
        body: &mut BodyReader,
        framing: OutFraming,
        may_spool: &mut bool,
    ) -> Result<Option<Spool>, Failure> {
        let deadline = self.deadlines.download;
        deadline.after(SLOW_CLIENT_TIME);
        if let Ok(drained) = deadline.within(self.tx.drain(RELAY_AHEAD_BYTES_MAX)).await {
            return drained.map(|()| None).map_err(|_| Failure::ClientGone);
        }
        if std::mem::take(may_spool) && self.signals.is_uploaded() {
            let spool = Spool::begin(&self.shared.settings.spool, body.announced());
            if let Some(spool) = spool
                && let Spooled::All(spool) = self.spool(spool, body, framing).await?
            {
                return Ok(Some(spool));
            }
        }
        let slot = self.tx.slot().clone();
        let send_time = self.shared.settings.limits.send_time;
        let draining = drain(self.tx, RELAY_AHEAD_BYTES_MAX, self.deadlines.download, send_time);
        let drained = keeping_upstream(&*slot, draining).await;
        drained.map(|()| None).map_err(|_| Failure::ClientGone)
    }

    /// Receives the rest of a body into a spool, while the client receives from there.
    async fn spool(
        &mut self,
        spool: Spool,
        body: &mut BodyReader,
        framing: OutFraming,
    ) -> Result<Spooled, Failure> {
        let (shared, signals, deadline) = (self.shared, self.signals, self.shared.io.deadline());
        let between_bytes = shared.settings.times.between_bytes;
        let source = (body, &mut self.inbox.rx);
        let filling = fill(&shared.io, &spool, source, self.deadlines.download, between_bytes);
        let mut sender = Sender { shared, tx: &mut *self.tx, signals, deadline: &deadline, framing };
        let unfit = match select(filling, sender.follow_spool(&spool)).await {
            Either::Left(filled) => filled?,
            Either::Right(failure) => return Err(failure),
        };
        let Some(unfit) = unfit else { return Ok(Spooled::All(spool)) };
        let slot = sender.tx.slot().clone();
        keeping_upstream(&*slot, sender.send_spool(&spool)).await?;
        sender.send(Segment::Owned(unfit)).await?;
        Ok(Spooled::Part)
    }
}

impl<'a> Exchange<'a> {
    /// Sends the rest of a response. `keep` is whether the client's connection stays usable after it, where
    /// the rest does not decide that.
    pub(super) async fn send_rest(
        &mut self,
        unsent: Unsent<'a>,
        keep: bool,
        signals: &Signals,
    ) -> OutcomeEnding {
        let (shared, deadline) = (self.shared, self.deadlines.download);
        let (sent, framing, trailers) = match unsent {
            Unsent::Spooled(spool, framing, trailers) => {
                let mut sender = Sender { shared, tx: &mut *self.tx, signals, deadline, framing };
                (sender.send_spool(&spool).await, framing, trailers)
            }
            Unsent::File(file, framing) => {
                let mut sender = Sender { shared, tx: &mut *self.tx, signals, deadline, framing };
                (sender.send_file(file).await, framing, Vec::new())
            }
            Unsent::Elsewhere(ending) => return ending,
            Unsent::Recorded(unsent) => {
                let UnsentRecording { request, head, follower, range, length } = *unsent;
                let mut client = ClientSide { keep, ..self.client_side(&request, signals) };
                let sent = client.finish_fetched(&follower, range, length).await;
                return client.ending(&sent, &head, length);
            }
            Unsent::Stored(unsent) => {
                let StoredAnswer { request, object, fields, status, .. } = *unsent;
                return self.send_object(&request, &object, fields.lines(), &status, signals).await;
            }
        };
        match sent {
            Ok(()) => {
                framing.push_end(&trailers, self.tx);
                OutcomeEnding::Relayed { keep }
            }
            Err(failure) => ending_of(&failure, signals),
        }
    }

    /// Sends a stored object, with its own fields or others.
    pub(crate) async fn send_object(
        &mut self,
        request: &CacheRequest<'_>,
        object: &Arc<Object>,
        fields: FieldLines<'_>,
        status: &CacheStatus,
        signals: &Signals,
    ) -> OutcomeEnding {
        let mut client = self.client_side(request, signals);
        // Another response may have replaced the object since it was looked up, and its file was removed.
        let sent = client.send_object(object, fields, status).await;
        client.ending(&sent, &object.head, Some(object.content.len()))
    }

    /// Returns the client's side, for a response from the cache.
    pub(crate) fn client_side<'s>(
        &'s mut self,
        request: &'s CacheRequest<'_>,
        signals: &'s Signals,
    ) -> ClientSide<'s> {
        ClientSide {
            shared: self.shared,
            tx: &mut *self.tx,
            // That of the response's way is for a fetch which the response follows.
            deadline: self.deadlines.upload,
            signals,
            request,
            version: self.request.head.version(),
            keep: self.keep && !self.shared.io.is_stopping(),
        }
    }
}
