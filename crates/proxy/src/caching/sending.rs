//! Sends stored responses, and responses that another request fetches, to a client.
//!
//! It looks nothing up. Invariants: the head has one framing, written here; a body that ends early is
//! visible as such to the client; a file is sent only once the part to send is in memory. A file that
//! cannot be read is reported with the offset up to which the client gets the body.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_io::{Deadline, Elapsed, File, FileRange, Fs, Instant, Io, Phase, Segment, Tx};
use plimsoll_proto::limits::{COPIED_PART_BYTES_MAX, FILE_AHEAD_BYTES, FILE_CHUNK_BYTES, UNSENT_BYTES_MAX};
use plimsoll_proto::{drain, read_patiently};
use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::head::{Method, Version};
use plimsoll_wire::http::range::ContentRange;

use super::rest::Rest;
use super::selection::Selection;
use crate::body::OutFraming;
use crate::cache::fetch::{Available, Follower};
use crate::cache::policy::{CacheRequest, CacheStatus, FieldLines, StoredHead};
use crate::cache::response_cache::{OpenBody, ResponseCache, first_part};
use crate::cache::store::{Content, Object};
use crate::exchange::{OutcomeEnding, Signals};
use crate::fields::write_via;
use crate::limits::{COPIED_BYTES_MAX, FOLLOWED_BYTES_MAX};
use crate::proxy::Shared;

/// The client's side of an exchange.
pub(crate) struct ClientSide<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) tx: &'a mut Tx,
    /// The deadline for what the client receives.
    pub(crate) deadline: &'a Deadline,
    pub(crate) signals: &'a Signals,
    pub(crate) request: &'a CacheRequest<'a>,
    pub(crate) version: Version,
    /// Whether the client may send another request.
    pub(crate) keep: bool,
}

/// The reason why a response from the cache was not sent to its end.
#[derive(Debug)]
pub(crate) enum NotSent {
    /// The object's file cannot be opened or read. Nothing was sent.
    Unopened,
    /// The client has left, or takes no more.
    ClientGone,
    /// A file cannot be read behind this offset of the content, up to which it was sent.
    Unreadable(u64, io::Error),
    /// The fetch ended before the body. Holds the offset up to which the content was sent.
    CutShort(u64),
    /// The fetch ended before the first byte to send. Nothing was sent.
    Unstarted,
    /// The first byte to send was not fetched in time. Nothing was sent.
    Late,
}

/// The source of the bytes of a response, or of one of its slices.
pub(super) enum Source {
    /// In memory.
    Memory(Arc<[u8]>),
    /// The content of an object, in an open file.
    File(Arc<Object>, OpenBody),
    /// A fetch in progress.
    Fetch(Follower),
}

impl Source {
    /// Opens the content of an object, of which a range is to be sent. Returns `None` if it has no such
    /// range, or cannot be read: then it is dropped.
    pub(super) async fn open(
        io: &Io,
        cache: &Arc<ResponseCache>,
        object: &Arc<Object>,
        range: &Range<u64>,
    ) -> Option<Source> {
        if let Content::Memory(bytes) = &object.content {
            return (range.end <= bytes.len() as u64).then(|| Source::Memory(Arc::clone(bytes)));
        }
        match cache.open_body(io, object, range).await {
            Ok(body) => Some(Source::File(Arc::clone(object), body)),
            Err(error) => {
                cache.drop_unreadable(io, object, &error).await;
                None
            }
        }
    }
}

impl ClientSide<'_> {
    /// Sends an object of the cache, with its own fields or others.
    pub(crate) async fn send_object(
        &mut self,
        object: &Arc<Object>,
        fields: FieldLines<'_>,
        status: &CacheStatus,
    ) -> Result<(), NotSent> {
        let length = object.content.len();
        let selection = Selection::of(self.request, &object.head, Some(length));
        let (mut part, shared) = (None, self.shared);
        if let Some(range) = self.range_to_send(&selection, length) {
            let cache = shared.settings.open_cache().ok_or(NotSent::Unopened)?;
            let source = Source::open(&shared.io, cache, object, &range).await.ok_or(NotSent::Unopened)?;
            part = Some((source, range));
        }
        let head = self.head(&object.head, fields, &selection, Some(length), status);
        self.send_part(head, part, Some(length)).await
    }

    /// Sends a head, which is empty behind the first part of a response, and a range of a source. `length`
    /// is that of the whole body, if it is known.
    pub(super) async fn send_part(
        &mut self,
        mut head: Vec<u8>,
        part: Option<(Source, Range<u64>)>,
        length: Option<u64>,
    ) -> Result<(), NotSent> {
        let mut shared = None;
        if let Some((Source::Memory(bytes), range)) = &part {
            self.signals.count(range.end - range.start);
            let part = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
            let part = part.and_then(|(start, end)| bytes.get(start..end)).unwrap_or_default();
            if part.len() == bytes.len() && part.len() > COPIED_BYTES_MAX {
                shared = Some(Arc::clone(bytes));
            } else {
                // One send for head and body.
                head.extend_from_slice(part);
            }
        }
        if !head.is_empty() {
            self.tx.push(Segment::Owned(head));
        }
        match part {
            Some((Source::File(object, body), range)) => self.send_body(&object, &body, range).await,
            Some((Source::Fetch(follower), range)) => self.finish_fetched(&follower, range, length).await,
            Some((Source::Memory(_), _)) | None => match shared {
                Some(bytes) if self.tx.copies_segments() => self.send_copies(&bytes).await,
                Some(bytes) => {
                    self.tx.push(Segment::Shared(bytes));
                    Ok(())
                }
                None => Ok(()),
            },
        }
    }

    /// Sends bytes over a transport that copies them, in parts.
    async fn send_copies(&mut self, bytes: &[u8]) -> Result<(), NotSent> {
        for part in bytes.chunks(COPIED_PART_BYTES_MAX) {
            self.tx.push_slice(part);
            self.drain(UNSENT_BYTES_MAX).await?;
        }
        Ok(())
    }

    /// Sends a response while it is being fetched. The first bytes of the body are awaited until an instant,
    /// if one is given, before the head is sent: until then, the request can be answered in another way.
    pub(crate) async fn send_fetched(
        &mut self,
        follower: &Follower,
        stored: &StoredHead,
        length: Option<u64>,
        status: &CacheStatus,
        first_until: Option<Instant>,
    ) -> Result<(), NotSent> {
        let selection = Selection::of(self.request, stored, length);
        let framing = self.framing(length);
        let range = self.range_to_send(&selection, length.unwrap_or(u64::MAX));
        if let Some(until) = first_until
            && let Some(range) = range.as_ref().filter(|range| !range.is_empty())
        {
            self.deadline.set(until);
            match self.deadline.within(follower.read(range.start, 1)).await {
                Ok(Available::Failed) => return Err(NotSent::Unstarted),
                Err(Elapsed) => return Err(NotSent::Late),
                Ok(_) => {}
            }
        }
        self.keep &= framing != OutFraming::UntilClose;
        let head = self.head(stored, stored.fields.lines(), &selection, length, status);
        self.tx.push(Segment::Owned(head));
        let Some(range) = range else { return Ok(()) };
        self.finish_fetched(follower, range, length).await
    }

    /// Sends a range of the body of a fetched response, and its end.
    pub(crate) async fn finish_fetched(
        &mut self,
        follower: &Follower,
        range: Range<u64>,
        length: Option<u64>,
    ) -> Result<(), NotSent> {
        let (framing, end) = (self.framing(length), range.end);
        let at = self.stream(follower, range, framing).await?;
        if length.is_some() && at < end {
            // The body is shorter than announced: a lead does not complete such a fetch.
            return Err(NotSent::CutShort(at));
        }
        framing.push_end(&[], self.tx);
        Ok(())
    }

    /// Sends a range of the content of an object. Drops the object if it cannot be read.
    async fn send_body(
        &mut self,
        object: &Arc<Object>,
        body: &OpenBody,
        range: Range<u64>,
    ) -> Result<(), NotSent> {
        let sent = self.send_parts(body, range).await;
        if let Err(NotSent::Unreadable(_, error)) = &sent
            && let Some(cache) = self.shared.settings.open_cache()
        {
            cache.drop_unreadable(&self.shared.io, object, error).await;
        }
        sent
    }

    async fn send_parts(&mut self, body: &OpenBody, range: Range<u64>) -> Result<(), NotSent> {
        let mut at = range.start;
        while at < range.end {
            let part = first_part(&(at..range.end));
            body.prepare(&self.shared.io, &part).await.map_err(|error| NotSent::Unreadable(at, error))?;
            if self.tx.takes_files() {
                at = part.end;
                self.signals.count(part.end - part.start);
                self.tx.push(Segment::File(body.part(&part)));
                // The last part is waited for, too: its file may fail while it is sent.
                let below = if at < range.end { FILE_AHEAD_BYTES } else { 0 };
                self.drain_file(below, range.start..at).await?;
            }
            while at < part.end {
                let FileRange { file, range } = body.part(&(at..part.end));
                let chunk = self.read(&file, range).await.map_err(|error| NotSent::Unreadable(at, error))?;
                at += chunk.len() as u64;
                self.signals.count(chunk.len() as u64);
                self.tx.push(Segment::Owned(chunk));
                self.drain(UNSENT_BYTES_MAX).await?;
            }
        }
        Ok(())
    }

    /// Sends a range of a body while it is being fetched. Returns the offset up to which it was sent, which
    /// is less than the end of the range only at the end of the body. If the recording cannot be read, it is
    /// not stored.
    async fn stream(
        &mut self,
        follower: &Follower,
        range: Range<u64>,
        framing: OutFraming,
    ) -> Result<u64, NotSent> {
        let streamed = self.stream_recorded(follower, range, framing).await;
        if let Err(NotSent::Unreadable(_, error)) = &streamed
            && follower.void()
            && let Some(cache) = self.shared.settings.open_cache()
        {
            cache.note_unreadable(error);
        }
        streamed
    }

    async fn stream_recorded(
        &mut self,
        follower: &Follower,
        range: Range<u64>,
        framing: OutFraming,
    ) -> Result<u64, NotSent> {
        let mut at = range.start;
        // The bytes that were pushed from files since the last that were not.
        let mut from_files = at..at;
        while at < range.end {
            let available = follower.read(at, FOLLOWED_BYTES_MAX.min(range.end - at)).await;
            let sent = match available {
                Available::Bytes(bytes, part) => {
                    let sent = part.len() as u64;
                    let segment = match bytes.get(part) {
                        Some(part) if part.len() == bytes.len() => Segment::Shared(Arc::clone(&bytes)),
                        Some(part) => Segment::Owned(part.to_vec()),
                        None => return Err(NotSent::CutShort(at)),
                    };
                    framing.push(segment, self.tx);
                    from_files.start = at + sent;
                    sent
                }
                Available::File(file, part) => self.push_written(&file, part, framing).await?,
                Available::End => break,
                Available::Failed => return Err(NotSent::CutShort(at)),
            };
            at += sent;
            from_files.end = at;
            self.signals.count(sent);
            self.drain_file(UNSENT_BYTES_MAX, from_files.clone()).await?;
        }
        if !from_files.is_empty() {
            self.drain_file(0, from_files).await?;
        }
        Ok(at)
    }

    /// Pushes a range of a file that was written a moment ago. Returns the number of bytes pushed.
    async fn push_written(
        &mut self,
        file: &File,
        range: Range<u64>,
        framing: OutFraming,
    ) -> Result<u64, NotSent> {
        // A chunk whose file fails could not be completed from another source.
        if self.tx.takes_files() && framing != OutFraming::Chunked {
            let bytes = range.end - range.start;
            framing.push(Segment::File(FileRange { file: file.clone(), range }), self.tx);
            return Ok(bytes);
        }
        let at = range.start;
        let chunk = self.read(file, range).await.map_err(|error| NotSent::Unreadable(at, error))?;
        let bytes = chunk.len() as u64;
        framing.push(Segment::Owned(chunk), self.tx);
        Ok(bytes)
    }

    /// Reads the start of a range of a file; at least one byte.
    async fn read(&self, file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
        let (file, offset) = (file.clone(), range.start);
        let left = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
        let read = move |fs: &dyn Fs| {
            let mut chunk = vec![0; left.min(FILE_CHUNK_BYTES)];
            let read = fs.read_at(&file, &mut chunk, offset)?;
            chunk.truncate(read);
            Ok(chunk)
        };
        let chunk = read_patiently(&self.shared.io, read).await?;
        if chunk.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(chunk) }
    }

    pub(super) async fn drain(&mut self, below: u64) -> Result<(), NotSent> {
        self.drained(below).await.map_err(|_| NotSent::ClientGone)
    }

    /// Waits until at most `below` bytes are unsent. `pushed` is the range of the content that was pushed
    /// last, from files.
    async fn drain_file(&mut self, below: u64, pushed: Range<u64>) -> Result<(), NotSent> {
        let Err(error) = self.drained(below).await else { return Ok(()) };
        match self.tx.drop_unreadable() {
            // More are lost if a file of an earlier response has failed.
            Some(lost) if lost <= pushed.end - pushed.start => {
                self.signals.uncount(lost);
                Err(NotSent::Unreadable(pushed.end - lost, error))
            }
            _ => Err(NotSent::ClientGone),
        }
    }

    async fn drained(&mut self, below: u64) -> io::Result<()> {
        let send_time = self.shared.settings.limits.send_time;
        // A connection without progress is one of the first to be closed for others.
        self.tx.slot().enter(Phase::Working, self.shared.io.now());
        drain(self.tx, below, self.deadline, send_time).await
    }

    /// Returns the bytes of the content to send, or `None` if only the head is sent.
    pub(crate) fn range_to_send(&self, selection: &Selection, length: u64) -> Option<Range<u64>> {
        let range = match selection {
            Selection::NotModified | Selection::Unsatisfiable(_) => return None,
            Selection::Whole => 0..length,
            Selection::Part(range, _) => range.clone(),
        };
        (self.request.method != Method::Head).then_some(range)
    }

    pub(crate) fn framing(&self, length: Option<u64>) -> OutFraming {
        match (length, self.version) {
            (Some(length), _) => OutFraming::Length(length),
            (None, Version::Http11) => OutFraming::Chunked,
            (None, Version::Http10) => OutFraming::UntilClose,
        }
    }

    /// Returns the end of the exchange after the response with this head, and a body of `length` bytes if
    /// that is known, was sent.
    pub(crate) fn ending(
        &self,
        sent: &Result<(), NotSent>,
        stored: &StoredHead,
        length: Option<u64>,
    ) -> OutcomeEnding {
        match sent {
            Ok(()) => OutcomeEnding::Relayed { keep: self.keep },
            Err(NotSent::Unopened) => OutcomeEnding::Repeat,
            Err(NotSent::CutShort(at) | NotSent::Unreadable(at, _)) => {
                let rest = Rest::behind(self.request, stored, length, *at, self.framing(length));
                OutcomeEnding::unfinished(rest, self.keep)
            }
            Err(NotSent::ClientGone | NotSent::Unstarted | NotSent::Late) => OutcomeEnding::Aborted,
        }
    }

    /// Writes the head of an answer, and notes that the request is answered.
    pub(super) fn head(
        &mut self,
        stored: &StoredHead,
        fields: FieldLines<'_>,
        selection: &Selection,
        length: Option<u64>,
        status: &CacheStatus,
    ) -> Vec<u8> {
        let code = selection.status(stored);
        self.signals.answer(code);
        let mut out = Vec::with_capacity(stored.fields.as_bytes().len() + 256);
        let _unfinished = AnswerHead::begin(&mut out, code);
        let is_whole = matches!(selection, Selection::Whole | Selection::Part(..));
        for (name, value) in fields.iter() {
            // A 304 or 416 has no content that these could describe.
            let is_of_content = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"content-"))
                && !name.eq_ignore_ascii_case(b"content-location");
            let is_own =
                !matches!(selection, Selection::Whole) && name.eq_ignore_ascii_case(b"content-range");
            if (is_whole || !is_of_content) && !is_own {
                crate::fields::write_field(name, value, &mut out);
            }
        }
        write_via(b"1.1", &self.shared.settings.pseudonym, &mut out);
        let age = stored.freshness.age(self.shared.io.now()).as_secs();
        let mut head = AnswerHead::resume(&mut out).field_u64("Age", age);
        head = head.field_display("Cache-Status", status);
        head = match selection {
            Selection::Part(range, whole) => {
                let value = ContentRange::Part { range: range.clone(), length: *whole };
                head.field_display("Content-Range", value).content_length(range.end - range.start)
            }
            Selection::Unsatisfiable(whole) => {
                let value = ContentRange::Unsatisfied { length: *whole };
                head.field_display("Content-Range", value).content_length(0)
            }
            Selection::NotModified => head,
            Selection::Whole if stored.status.is_bodiless() => head,
            Selection::Whole => match self.framing(length) {
                OutFraming::Length(length) => head.content_length(length),
                OutFraming::Chunked => head.chunked(),
                OutFraming::None | OutFraming::UntilClose => head,
            },
        };
        head.keep_alive(self.keep, self.version).finish();
        out
    }
}
