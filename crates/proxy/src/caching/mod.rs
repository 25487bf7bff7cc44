//! Joins the cache to the exchange: which requests are answered from it, which wait for the fetch of
//! another, and which go to an origin.
//!
//! It decides by the rules of [`crate::cache::policy`] only. Invariants: a request with Authorization waits
//! for no fetch of another; a fetch that leads goes on when its client has left; an exchange past the cache
//! is the same as without one, but for its Cache-Status.

mod pass;
mod rest;
mod selection;
mod sending;
mod slice_fetch;
mod slices;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_io::Elapsed;
use plimsoll_proto::http::is_link;
use plimsoll_wire::http::head::{Framing, Method};
use plimsoll_wire::http::status::Status;

pub(crate) use self::pass::{CachePass, PassKind, Received, Recording};
pub(crate) use self::rest::{Part, Rest};
pub(crate) use self::selection::Selection;
pub(crate) use self::sending::{ClientSide, HeadTime, NotSent};
use self::slices::Ranged;
use crate::cache::fetch::{FollowedHead, Follower, Joined, Lead};
use crate::cache::limits::FOLLOW_TIME_MAX;
use crate::cache::opening::CacheOpener;
use crate::cache::policy::{Bypass, CacheRequest, CacheStatus, Forwarded, ResourceKey, Servers, Usability};
use crate::cache::response_cache::{CacheCounts, ResponseCache};
use crate::cache::store::{Lookup, Object};
use crate::detached::DetachedRequest;
use crate::exchange::{Exchange, Outcome, OutcomeEnding, Signals};
use crate::limits::LOOKUPS_MAX;
use crate::own_answers::OwnAnswer;
use crate::request_head::{ClientRequest, Upgrade};
use crate::route::{Destination, Route};

/// Reads a request as the cache sees it: with the fields that the origin gets.
pub(crate) fn cache_request<'a>(request: &ClientRequest<'a>, route: &Route<'_>) -> CacheRequest<'a> {
    let servers = match route.to {
        Destination::Origins => Servers::Origins,
        Destination::Forward(_) => Servers::Forwarded,
    };
    let host = route.host.as_deref().unwrap_or_default();
    let key = ResourceKey::new(route.scheme.name(), host, &route.target).at(servers);
    let has_content = !matches!(request.head.framing(), Framing::None | Framing::Length(0));
    let mut read = CacheRequest::new(request.head.method(), key, request.fields.lines(), has_content);
    if request.upgrade() != Upgrade::None {
        read.bypass = Some(Bypass::Upgrade);
    }
    if is_link(&route.target) {
        read.bypass.get_or_insert(Bypass::Link);
    }
    read
}

/// Performs an exchange, with the cache where its rules permit.
pub(crate) async fn run(mut exchange: Exchange<'_>, cache: Arc<ResponseCache>) -> Outcome {
    let request = cache_request(&exchange.request, exchange.route);
    if let Some(bypass) = request.bypass {
        count(&cache.counts().bypassed);
        let status = CacheStatus::bypassed(bypass);
        exchange.pass = Some(CachePass::new(&cache, &request, PassKind::Plain, status));
        return exchange.run().await;
    }
    let mut caching = Caching { exchange, cache, request };
    for _ in 0..LOOKUPS_MAX {
        if let Some(outcome) = caching.attempt().await {
            return outcome;
        }
    }
    caching.plain(CacheStatus::forwarded(Forwarded::UriMiss), None).await
}

/// Performs an exchange while the cache is not open. The resources that it invalidates are remembered.
pub(crate) async fn run_without_cache(mut exchange: Exchange<'_>, opener: &Arc<CacheOpener>) -> Outcome {
    let request = cache_request(&exchange.request, exchange.route);
    exchange.pass = Some(CachePass::without_cache(opener, &request));
    exchange.run().await
}

/// An exchange that may be answered from the cache.
struct Caching<'a> {
    exchange: Exchange<'a>,
    cache: Arc<ResponseCache>,
    request: CacheRequest<'a>,
}

impl Caching<'_> {
    /// Looks the request up, and answers or forwards it. Returns `None` if it must be looked up again.
    async fn attempt(&mut self) -> Option<Outcome> {
        let lookup = self.cache.lookup_unchanged(&self.exchange.shared.io, &self.request).await;
        let now = self.exchange.shared.io.now();
        let (stored, reason) = match &lookup {
            Lookup::Found(object) => match object.head.freshness.usability(&self.request.directives, now) {
                Usability::Fresh => return self.hit(object, |counts| &counts.hits).await,
                Usability::StaleAccepted => return self.hit(object, |counts| &counts.stale).await,
                Usability::StaleWhileRevalidate => return self.hit_and_refresh(object, &lookup).await,
                Usability::MustValidate => {
                    let is_fresh = object.head.freshness.seconds_left(now) > 0;
                    (Some(Arc::clone(object)), if is_fresh { Forwarded::Request } else { Forwarded::Stale })
                }
            },
            // It is for requests without Authorization only.
            Lookup::OtherVariants(object) if object.head.is_selected_by(&self.request) => {
                (None, Forwarded::Request)
            }
            Lookup::OtherVariants(_) => (None, Forwarded::VaryMiss),
            Lookup::Absent => (None, Forwarded::UriMiss),
        };
        // A whole object that is being stored answers a range at once.
        let key = self.cache.fetch_key(&self.request, &lookup);
        if self.request.range.is_some() && self.cache.fetches().completed(&key).is_none() {
            match self.answer_from_slices(stored.as_ref()).await {
                Ranged::Done(outcome) => return Some(outcome),
                Ranged::Again => return None,
                Ranged::Past => {}
                Ranged::Forward => return Some(self.plain(CacheStatus::forwarded(reason), stored).await),
            }
        }
        if self.request.directives.only_if_cached {
            const DETAIL: &str = "The cache has no response that only-if-cached permits.";
            return Some(refused(OwnAnswer::new(Status::GATEWAY_TIMEOUT, DETAIL)));
        }
        let status = CacheStatus::forwarded(reason);
        // A response to HEAD or to a range cannot fill the cache: the request is forwarded as it is. If there
        // is a stale object, a range becomes a conditional GET of the whole.
        if self.request.method == Method::Head || (self.request.range.is_some() && stored.is_none()) {
            // A range request would wait for the bytes before its range. It follows a fetch only if the whole
            // body has been received, and is being stored.
            if !self.request.has_authorization
                && self.request.method == Method::Get
                && let Some(follower) = self.cache.fetches().completed(&key)
                && let Some(outcome) = self.follow(&follower, status).await?
            {
                return Some(outcome);
            }
            return Some(self.plain(status, stored).await);
        }
        if self.request.has_authorization {
            let lead = self.cache.fetches().lead_alone(&key);
            return self.fetch_alone(lead, stored, status).await;
        }
        match self.cache.fetches().join(&key, self.exchange.shared.io.now()) {
            Joined::Lead(lead) => self.fetch(lead, stored, status).await,
            Joined::Alone(lead) => self.fetch_alone(lead, stored, status).await,
            Joined::Past => Some(self.plain(unrecordable(status), stored).await),
            Joined::Follow(follower) => {
                if let Some(outcome) = self.follow(&follower, status).await? {
                    return Some(outcome);
                }
                match self.cache.fetches().join_none(&key, self.exchange.shared.io.now()) {
                    Some(lead) => self.fetch_alone(lead, stored, status).await,
                    None => Some(self.plain(unrecordable(status), stored).await),
                }
            }
        }
    }

    /// Fetches a response that is probably not stored. If the client has a copy, its conditions are
    /// forwarded, and nothing is stored: a fetch for the cache would send all of the response again.
    async fn fetch_alone(
        &mut self,
        lead: Lead,
        stored: Option<Arc<Object>>,
        status: CacheStatus,
    ) -> Option<Outcome> {
        if self.request.has_conditions && stored.is_none() {
            drop(lead);
            return Some(self.plain(status, None).await);
        }
        self.fetch(lead, stored, status).await
    }

    /// Answers with a stored object. Returns `None` if its file cannot be read.
    async fn hit(
        &mut self,
        object: &Arc<Object>,
        counter: fn(&CacheCounts) -> &AtomicU64,
    ) -> Option<Outcome> {
        let now = self.exchange.shared.io.now();
        let status = CacheStatus::hit(object.head.freshness.seconds_left(now));
        let outcome = self.send(object, &status).await?;
        count(counter(self.cache.counts()));
        Some(outcome)
    }

    /// Answers with a stale object, and validates it beside that, unless another request does.
    async fn hit_and_refresh(&mut self, object: &Arc<Object>, lookup: &Lookup) -> Option<Outcome> {
        self.start_refresh(object, lookup);
        self.hit(object, |counts| &counts.stale).await
    }

    /// Starts the validation of a stored object, if there is room for it. Otherwise a later request does.
    fn start_refresh(&self, object: &Arc<Object>, lookup: &Lookup) {
        // An answer with Authorization proves nothing for others, and one to HEAD has no body to store.
        let proves = !self.request.has_authorization && self.request.method == Method::Get;
        let Some(side) = self.exchange.side.filter(|side| proves && side.has_room()) else { return };
        let Some(permit) = self.cache.begin_refresh() else { return };
        let key = self.cache.fetch_key(&self.request, lookup);
        if let Joined::Lead(lead) = self.cache.fetches().join(&key, self.exchange.shared.io.now()) {
            let request = DetachedRequest::of(&self.exchange);
            let (cache, object) = (Arc::clone(&self.cache), Arc::clone(object));
            side.start(Box::pin(async move {
                // The client has its answer, whatever comes of this.
                let _: Outcome = request.run(&cache, PassKind::Refresh(lead), Some(&object)).await;
                drop(permit);
            }));
        }
    }

    /// Sends a stored object. Returns `None` if its file cannot be read, and nothing was sent.
    async fn send(&mut self, object: &Arc<Object>, status: &CacheStatus) -> Option<Outcome> {
        let (signals, length) = (Signals::default(), Some(object.content.len()));
        let mut client = client_side(&mut self.exchange, &self.request, &signals);
        let sent = client.send_object(&self.cache, object, object.head.fields.lines(), status).await;
        let (keep, framing) = (client.keep, client.framing(length));
        match sent {
            Ok(()) => Some(signals.outcome(OutcomeEnding::Relayed { keep })),
            Err(NotSent::Unopened) => None,
            Err(NotSent::Unreadable(at, _)) => {
                let sent = signals.outcome(OutcomeEnding::Aborted);
                let rest = Rest::behind(&self.request, &object.head, length, at, framing);
                Some(self.resume(sent, rest, keep).await)
            }
            Err(_) => Some(signals.outcome(OutcomeEnding::Aborted)),
        }
    }

    /// Forwards the request, without storing the response.
    async fn plain(&mut self, status: CacheStatus, stored: Option<Arc<Object>>) -> Outcome {
        count(&self.cache.counts().misses);
        let pass = CachePass::new(&self.cache, &self.request, PassKind::Plain, status);
        self.exchange.pass = Some(pass);
        let outcome = self.exchange.run().await;
        self.or_stale(outcome, stored).await
    }

    /// Fetches the response for the client and all that follow. Returns `None` if the request must be looked
    /// up again.
    async fn fetch(
        &mut self,
        lead: Lead,
        stored: Option<Arc<Object>>,
        status: CacheStatus,
    ) -> Option<Outcome> {
        let mut pass = CachePass::new(&self.cache, &self.request, PassKind::Lead(lead), status);
        match &stored {
            // Its response is counted by its status.
            Some(object) => pass = pass.validating(object),
            None => count(&self.cache.counts().misses),
        }
        self.exchange.pass = Some(pass);
        let mut outcome = self.exchange.run().await;
        // After a failure, the followers wait no longer.
        self.exchange.pass = None;
        match std::mem::replace(&mut outcome.ending, OutcomeEnding::Aborted) {
            OutcomeEnding::Repeat => None,
            OutcomeEnding::Unfinished { rest, keep } => {
                Some(self.resume(outcome, rest.map(|rest| *rest), keep).await)
            }
            ending => Some(self.or_stale(Outcome { ending, ..outcome }, stored).await),
        }
    }

    /// Answers with a stored object if no origin answered, and the object permits that (RFC 5861, section 4).
    async fn or_stale(&mut self, outcome: Outcome, stored: Option<Arc<Object>>) -> Outcome {
        let Some(object) = stored else { return outcome };
        let now = self.exchange.shared.io.now();
        let is_refused = matches!(outcome.ending, OutcomeEnding::Refused(_));
        if !is_refused || !object.head.freshness.is_usable_on_error(&self.request.directives, now) {
            return outcome;
        }
        if self.cache.drop_if_changed(&self.exchange.shared.io, &object).await {
            return outcome;
        }
        let mut status = CacheStatus::hit(object.head.freshness.seconds_left(now));
        status.detail = Some("origin-failed");
        match self.send(&object, &status).await {
            Some(stale) => {
                count(&self.cache.counts().stale);
                stale
            }
            None => outcome,
        }
    }

    /// Answers with the response that another request fetches. Returns `Some(None)` if the request must
    /// proceed alone, and `None` if it must be looked up again.
    async fn follow(&mut self, follower: &Follower, status: CacheStatus) -> Option<Option<Outcome>> {
        let until = self.exchange.shared.io.now() + FOLLOW_TIME_MAX;
        let deadline = self.exchange.deadlines.download;
        deadline.set(until);
        let followed = deadline.within(follower.head()).await;
        let now = self.exchange.shared.io.now();
        // A response that must be validated first may be another person's (RFC 9111, section 4).
        let (head, length) = match followed {
            Ok(FollowedHead::Open(head, length))
                if head.answers(&self.request)
                    && head.freshness.is_usable_now(&self.request.directives, now) =>
            {
                (head, length)
            }
            Ok(FollowedHead::Passed(object))
                if object.head.answers(&self.request)
                    && object.head.freshness.is_usable_now(&self.request.directives, now) =>
            {
                let status = CacheStatus { is_collapsed: true, ..status };
                let outcome = self.send(&object, &status).await?;
                count(&self.cache.counts().misses);
                return Some(Some(outcome));
            }
            Ok(FollowedHead::Open(..) | FollowedHead::Passed(_) | FollowedHead::Uncacheable)
            | Err(Elapsed) => return Some(None),
            Ok(FollowedHead::Failed) => return None,
        };
        let signals = Signals::default();
        let mut client = client_side(&mut self.exchange, &self.request, &signals);
        let status = CacheStatus { is_collapsed: true, ..status };
        let sent = client.send_fetched(follower, &head, length, &status, HeadTime::WithBody(until)).await;
        let (keep, framing) = (client.keep, client.framing(length));
        if !matches!(sent, Err(NotSent::Unstarted | NotSent::Late)) {
            count(&self.cache.counts().misses);
        }
        match sent {
            Ok(()) => Some(Some(signals.outcome(OutcomeEnding::Relayed { keep }))),
            Err(NotSent::Unstarted) => match follower.head().await {
                FollowedHead::Uncacheable => Some(None),
                FollowedHead::Open(..) | FollowedHead::Passed(_) | FollowedHead::Failed => None,
            },
            Err(NotSent::Late) => Some(None),
            Err(NotSent::CutShort(at) | NotSent::Unreadable(at, _)) => {
                let sent = signals.outcome(OutcomeEnding::Aborted);
                let rest = Rest::behind(&self.request, &head, length, at, framing);
                Some(Some(self.resume(sent, rest, keep).await))
            }
            Err(_) => Some(Some(signals.outcome(OutcomeEnding::Aborted))),
        }
    }

    /// Sends the rest of a response that could not be recorded or read, from another request to an origin.
    async fn resume(&mut self, sent: Outcome, rest: Option<Rest>, keep: bool) -> Outcome {
        let Some(rest) = rest else { return sent };
        let kind = PassKind::Rest(rest);
        self.exchange.pass = Some(CachePass::new(&self.cache, &self.request, kind, CacheStatus::default()));
        let resumed = self.exchange.run().await;
        let ending = match resumed.ending {
            OutcomeEnding::Relayed { .. } => OutcomeEnding::Relayed { keep },
            _ => OutcomeEnding::Aborted,
        };
        Outcome { ending, body_bytes: sent.body_bytes + resumed.body_bytes, ..sent }
    }
}

fn unrecordable(status: CacheStatus) -> CacheStatus {
    CacheStatus { detail: Some("unrecordable"), ..status }
}

fn client_side<'e>(
    exchange: &'e mut Exchange<'_>,
    request: &'e CacheRequest<'_>,
    signals: &'e Signals,
) -> ClientSide<'e> {
    ClientSide {
        shared: exchange.shared,
        tx: &mut *exchange.tx,
        deadline: exchange.deadlines.upload,
        signals,
        request,
        version: exchange.request.head.version(),
        keep: exchange.keep && !exchange.shared.io.is_stopping(),
    }
}

fn refused(answer: OwnAnswer) -> Outcome {
    Outcome { ending: OutcomeEnding::Refused(answer), status: None, body_bytes: 0 }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
