//! Answers a request for one range from slices, and fetches those that are missing.
//!
//! It stores nothing itself. Invariants: all bytes of an answer belong to one strong entity tag and one whole
//! length; the whole of a representation is never fetched for a range of it; a slice that is being fetched is
//! fetched to its end, even if its client has left.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_io::Elapsed;
use plimsoll_proto::http::SideWork as _;
use plimsoll_proto::limits::UNSENT_BYTES_MAX;
use plimsoll_wire::http::range::{Resolved, parse_range};
use plimsoll_wire::http::status::Status;

use super::pass::{PassKind, stored_status};
use super::selection::Selection;
use super::sending::Source;
use super::slice_fetch::{SliceFetch, Validated};
use super::step::Step;
use super::{Caching, NotSent, Rest, count};
use crate::body::OutFraming;
use crate::cache::fetch::{Available, FollowedHead, Follower, Joined};
use crate::cache::limits::{FOLLOW_TIME_MAX, SLICE_BYTES};
use crate::cache::policy::{CacheStatus, Forwarded, Slice, Usability};
use crate::cache::store::{Lookup, Object, PartialHead};
use crate::detached::detached;
use crate::exchange::{OutcomeEnding, Signals};

/// The reason why a slice is not available.
enum NoSlice {
    /// The partial object has changed, or the fetch ended early.
    Changed,
    /// The response of the origin cannot be stored.
    Refused,
    /// Another request fetches it, and is slow, or the response must be validated before others may use it.
    Unshared,
}

impl Caching<'_> {
    /// Answers a request for one range from slices. A whole object that is stored and must be validated
    /// counts as a partial one whose slices are unknown.
    pub(super) async fn answer_from_slices(&mut self) -> Step {
        if self.request.has_authorization {
            return Step::Join;
        }
        let stored = self.stored().cloned();
        let known = match &stored {
            Some(object) if object.head.strong_etag().is_none() => return Step::Join,
            Some(object) => Some(PartialHead::of_whole(object)),
            None => self.cache.lookup_partial(&self.request),
        };
        let now = self.exchange.shared.io.now();
        let usable = known.clone().filter(|_| stored.is_none()).filter(|partial| {
            let usability = partial.head.freshness.usability(&self.request.directives, now);
            matches!(usability, Usability::Fresh | Usability::StaleAccepted)
        });
        let (partial, source) = match usable {
            Some(partial) => (partial, None),
            None if self.request.directives.only_if_cached => return Step::Join,
            None => match self.first_slice(known.as_ref(), stored.as_ref()).await {
                Ok((partial, source)) => (partial, source),
                Err(NoSlice::Changed) => return self.validated_whole(stored.as_ref()).await,
                Err(NoSlice::Refused) => return Step::Join,
                Err(NoSlice::Unshared) => return Step::Plain,
            },
        };
        let selection = Selection::of(&self.request, &partial.head, Some(partial.whole));
        let range = match &selection {
            Selection::Whole => return Step::Join,
            Selection::NotModified | Selection::Unsatisfiable(_) => 0..0,
            Selection::Part(range, _) => range.clone(),
        };
        let is_stored = source.is_none()
            && numbers(&range).all(|number| self.cache.lookup_slice(&partial, number).is_some());
        if !is_stored && self.request.directives.only_if_cached {
            return Step::Join;
        }
        let is_known = known.as_ref().is_some_and(|known| Arc::ptr_eq(&known.head, &partial.head));
        let status = if is_stored && is_known {
            count(&self.cache.counts().hits);
            CacheStatus::hit(partial.head.freshness.seconds_left(now))
        } else {
            // Slices that are stored and no hit have been validated.
            let counts = self.cache.counts();
            count(if is_stored { &counts.validated } else { &counts.misses });
            let reason = if known.is_some() { Forwarded::Partial } else { Forwarded::UriMiss };
            CacheStatus { is_stored: true, ..CacheStatus::forwarded(reason) }
        };
        self.send_slices(&partial, source, (&selection, range), &status).await
    }

    /// Fetches the first slice of a range of which no usable slices are known, or validates those.
    async fn first_slice(
        &mut self,
        known: Option<&PartialHead>,
        stored: Option<&Arc<Object>>,
    ) -> Result<(PartialHead, Option<Source>), NoSlice> {
        let start = match known {
            Some(partial) => match Selection::of(&self.request, &partial.head, Some(partial.whole)) {
                Selection::Part(range, _) => Some(range.start),
                _ => None,
            },
            None => self.request.range.and_then(start_of),
        };
        let number = Slice::at(start.ok_or(NoSlice::Refused)?);
        let validated = known.map(|partial| match stored {
            Some(object) => Validated::Whole(Arc::clone(object)),
            None => Validated::Partial(partial.clone()),
        });
        let fetched = self.fetch_slice(number, known, validated).await;
        match (fetched, known.filter(|_| stored.is_none())) {
            (Ok((partial, follower)), _) => Ok((partial, Some(Source::Fetch(follower)))),
            (Err(NoSlice::Changed), Some(known)) => {
                // A validation has ended without a new slice.
                let partial = self.cache.lookup_partial(&self.request).filter(|now| now.is_same(known));
                let is_validated = |partial: &PartialHead| !Arc::ptr_eq(&partial.head, &known.head);
                partial.filter(is_validated).map(|partial| (partial, None)).ok_or(NoSlice::Changed)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Sends a whole object after its validation.
    async fn validated_whole(&mut self, stored: Option<&Arc<Object>>) -> Step {
        let Some(old) = stored else { return Step::LookUp };
        match self.cache.lookup_unchanged(&self.exchange.shared.io, &self.request).await {
            Lookup::Found(new) if new.head.freshness.is_newer_than(&old.head.freshness) => {
                let status = CacheStatus::forwarded(Forwarded::Stale);
                let status = stored_status(status, Status::NOT_MODIFIED);
                self.send(&new, &status, |counts| &counts.validated).await
            }
            _ => Step::LookUp,
        }
    }

    /// Sends the head, and the slices in turn.
    async fn send_slices(
        &mut self,
        partial: &PartialHead,
        mut first: Option<Source>,
        (selection, range): (&Selection, Range<u64>),
        status: &CacheStatus,
    ) -> Step {
        let signals = Signals::default();
        let (mut keep, mut is_begun) = (false, false);
        // Without a part, only the head is sent.
        let is_empty = range.is_empty();
        for number in numbers(&range).chain(is_empty.then_some(0)) {
            let bytes = Slice { number, whole: partial.whole }.range();
            let part = range.start.max(bytes.start) - bytes.start
                ..range.end.min(bytes.end).max(bytes.start) - bytes.start;
            let source = match first.take() {
                source if is_empty => Ok(source),
                Some(source) => Ok(Some(source)),
                None => self.slice_source(number, &part, partial).await.map(Some),
            };
            let source = match source {
                Ok(source) => source,
                Err(_) if is_begun => {
                    let at = range.start.max(number * SLICE_BYTES);
                    return self.without_slices(&signals, partial, at..range.end, keep);
                }
                Err(NoSlice::Changed) => return Step::LookUp,
                // A fetch for the cache would fetch the whole.
                Err(NoSlice::Refused | NoSlice::Unshared) => return Step::Plain,
            };
            // Until the first byte is there, the request can be answered in another way.
            if !is_begun
                && let Some(Source::Fetch(follower)) = &source
                && matches!(follower.read(part.start, 1).await, Available::Failed)
            {
                return Step::Join;
            }
            let mut client = self.exchange.client_side(&self.request, &signals);
            let (whole, mut head) = (Some(partial.whole), Vec::new());
            if !is_begun {
                let fields = partial.head.fields.lines();
                head = client.head(&partial.head, fields, selection, whole, status);
                (is_begun, keep) = (true, client.keep);
            }
            let sent = match client.send_part(head, source.map(|source| (source, part)), whole).await {
                Ok(()) => client.drain(UNSENT_BYTES_MAX).await,
                not_sent => not_sent,
            };
            match sent {
                Ok(()) => {}
                Err(NotSent::CutShort(at) | NotSent::Unreadable(at, _)) => {
                    let rest = bytes.start + at..range.end;
                    return self.without_slices(&signals, partial, rest, keep);
                }
                Err(error) => {
                    tracing::debug!(?error, "a range was not sent to its end");
                    return Step::Done(signals.outcome(OutcomeEnding::Aborted));
                }
            }
        }
        Step::Done(signals.outcome(OutcomeEnding::Relayed { keep }))
    }

    /// Ends an answer whose next slices cannot be stored or read: another request gets the rest.
    fn without_slices(&self, signals: &Signals, partial: &PartialHead, rest: Range<u64>, keep: bool) -> Step {
        let framing = OutFraming::Length(rest.end - rest.start);
        let whole = Some(partial.whole);
        let rest = Rest::behind(&self.request, &partial.head, whole, rest.start, framing);
        Step::after(signals.outcome(OutcomeEnding::unfinished(rest, keep)))
    }

    /// Finds a slice whose range `part` is to be sent, or fetches it.
    async fn slice_source(
        &mut self,
        number: u64,
        part: &Range<u64>,
        partial: &PartialHead,
    ) -> Result<Source, NoSlice> {
        if let Some(object) = self.cache.lookup_slice(partial, number)
            && let Some(source) = Source::open(&self.exchange.shared.io, &self.cache, &object, part).await
        {
            return Ok(source);
        }
        let (fetched, follower) = self.fetch_slice(number, Some(partial), None).await?;
        if fetched.is_same(partial) { Ok(Source::Fetch(follower)) } else { Err(NoSlice::Changed) }
    }

    /// Fetches a slice beside the request, or joins its fetch.
    async fn fetch_slice(
        &mut self,
        number: u64,
        partial: Option<&PartialHead>,
        validated: Option<Validated>,
    ) -> Result<(PartialHead, Follower), NoSlice> {
        let (shared, side) = (self.exchange.shared, self.exchange.side.ok_or(NoSlice::Refused)?);
        if !side.has_room() {
            // Fetches of slices that earlier requests of this connection have begun.
            poll_fn(|cx| side.poll_ended(cx)).await;
        }
        let key = self.cache.slice_key(&self.request, number);
        let mut is_lead = true;
        let follower = match self.cache.fetches().join(&key, shared.io.now()) {
            Joined::Lead(lead) => {
                let follower = lead.follower();
                let fetch = SliceFetch { lead, number, partial: partial.cloned(), validated };
                side.start(detached(&self.exchange, &self.cache, PassKind::Slice(fetch)));
                follower
            }
            Joined::Follow(follower) => {
                is_lead = false;
                follower
            }
            Joined::Alone(_) => return Err(NoSlice::Refused),
        };
        let deadline = self.exchange.deadlines.download;
        deadline.after(if is_lead { shared.settings.times.first_byte } else { FOLLOW_TIME_MAX });
        match deadline.within(follower.head()).await {
            Ok(FollowedHead::Open(head, _)) if head.answers(&self.request) => {
                if !is_lead && deadline.within(follower.read(0, 1)).await.is_err() {
                    return Err(NoSlice::Unshared);
                }
                // A response that must be validated first may be another person's (RFC 9111, section 4).
                let now = shared.io.now();
                if !is_lead && !head.freshness.is_usable_now(&self.request.directives, now) {
                    return Err(NoSlice::Unshared);
                }
                let slice = head.slice.filter(|slice| slice.number == number).ok_or(NoSlice::Refused)?;
                Ok((PartialHead { head, whole: slice.whole }, follower))
            }
            Ok(FollowedHead::Failed) => Err(NoSlice::Changed),
            Err(Elapsed) if !is_lead => Err(NoSlice::Unshared),
            Ok(FollowedHead::Open(..) | FollowedHead::Passed(_) | FollowedHead::Uncacheable)
            | Err(Elapsed) => Err(NoSlice::Refused),
        }
    }
}

/// Returns the numbers of the slices with a range.
fn numbers(range: &Range<u64>) -> std::ops::RangeInclusive<u64> {
    match range.end.checked_sub(1) {
        Some(last) if last >= range.start => Slice::at(range.start)..=Slice::at(last),
        // Empty.
        _ => std::ops::RangeInclusive::new(1, 0),
    }
}

/// Returns the first byte of a Range field with one range that does not count from the end.
fn start_of(value: &[u8]) -> Option<u64> {
    match parse_range(value).ok()?.resolve(u64::MAX) {
        // A range that counts from the end starts beyond any representation.
        Resolved::Ranges(ranges) => ranges.single().map(|range| range.start).filter(|at| *at < 1 << 62),
        Resolved::Whole | Resolved::Unsatisfiable => None,
    }
}
