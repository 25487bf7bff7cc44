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
mod step;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_io::Elapsed;
use plimsoll_proto::http::is_link;
use plimsoll_wire::http::head::{Framing, Method};
use plimsoll_wire::http::status::Status;

pub(crate) use self::pass::{CachePass, PassKind, Received, Recording, StoredAnswer};
pub(crate) use self::rest::{Part, Rest};
pub(crate) use self::selection::Selection;
pub(crate) use self::sending::{ClientSide, NotSent};
use self::step::Step;
use crate::cache::fetch::{FetchKey, FollowedHead, Follower, Joined, Lead};
use crate::cache::limits::FOLLOW_TIME_MAX;
use crate::cache::opening::CacheOpener;
use crate::cache::policy::{
    Bypass, CacheRequest, CacheStatus, Forwarded, ResourceKey, Servers, StoredHead, Usability,
};
use crate::cache::response_cache::{CacheCounts, ResponseCache};
use crate::cache::store::{Lookup, Object};
use crate::detached::detached;
use crate::exchange::{Exchange, Outcome, OutcomeEnding, Signals};
use crate::limits::LOOKUPS_MAX;
use crate::own_answers::OwnAnswer;
use crate::request_head::{ClientRequest, Upgrade};
use crate::route::{Destination, Route};

/// Reads a request as the cache sees it: with the fields that the origin gets.
pub(crate) fn cache_request<'a>(request: &ClientRequest<'a>, route: &Route) -> CacheRequest<'a> {
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
    let status = CacheStatus::forwarded(Forwarded::UriMiss);
    let mut caching = Caching { exchange, cache, request, lookup: Lookup::Absent, status, lookups: 0 };
    caching.run().await
}

/// Performs an exchange while the cache is not open. The resources that it invalidates are remembered.
pub(crate) async fn run_without_cache(mut exchange: Exchange<'_>, opener: &Arc<CacheOpener>) -> Outcome {
    let request = cache_request(&exchange.request, exchange.route);
    exchange.pass = Some(CachePass::without_cache(opener, &request));
    exchange.run().await
}

/// One of the counters.
type Counter = fn(&CacheCounts) -> &AtomicU64;

/// An exchange that may be answered from the cache.
struct Caching<'a> {
    exchange: Exchange<'a>,
    cache: Arc<ResponseCache>,
    request: CacheRequest<'a>,
    /// The result of the last lookup. After it, an object that it has found must be validated.
    lookup: Lookup,
    /// The Cache-Status of a response that is forwarded after that.
    status: CacheStatus,
    lookups: usize,
}

impl Caching<'_> {
    /// Takes the steps of the request to its end.
    async fn run(&mut self) -> Outcome {
        let mut step = Step::LookUp;
        loop {
            let last = step.name();
            step = match step {
                Step::LookUp => self.look_up().await,
                Step::Slices => self.answer_from_slices().await,
                Step::Join => self.join(),
                Step::Follow(follower) => self.follow(&follower).await,
                Step::Fetch(lead) => self.forward(PassKind::Lead(lead, self.stored().cloned())).await,
                Step::Plain => self.forward(PassKind::Plain).await,
                Step::Rest { sent, rest, keep } => self.resume(sent, *rest, keep).await,
                Step::Done(outcome) => return outcome,
            };
            debug_assert!(step::is_documented(last, step.name()), "{last} before {}", step.name());
        }
    }

    /// Looks the request up, and answers it if a stored object may be used as it is.
    async fn look_up(&mut self) -> Step {
        if self.lookups == LOOKUPS_MAX {
            self.lookup = Lookup::Absent;
            self.status = CacheStatus::forwarded(Forwarded::UriMiss);
            return Step::Plain;
        }
        self.lookups += 1;
        self.lookup = self.cache.lookup_unchanged(&self.exchange.shared.io, &self.request).await;
        let now = self.exchange.shared.io.now();
        let reason = match &self.lookup {
            Lookup::Found(object) => {
                let object = Arc::clone(object);
                let usability = object.head.freshness.usability(&self.request.directives, now);
                let seconds_left = object.head.freshness.seconds_left(now);
                if usability == Usability::StaleWhileRevalidate {
                    self.start_refresh(&object);
                }
                if usability != Usability::MustValidate {
                    let is_fresh = usability == Usability::Fresh;
                    let counter: Counter =
                        if is_fresh { |counts| &counts.hits } else { |counts| &counts.stale };
                    return self.send(&object, &CacheStatus::hit(seconds_left), counter).await;
                }
                if seconds_left > 0 { Forwarded::Request } else { Forwarded::Stale }
            }
            // It is for requests without Authorization only.
            Lookup::OtherVariants(object) if object.head.is_selected_by(&self.request) => Forwarded::Request,
            Lookup::OtherVariants(_) => Forwarded::VaryMiss,
            Lookup::Absent => Forwarded::UriMiss,
        };
        self.status = CacheStatus::forwarded(reason);
        // A whole object that is being stored answers a range at once.
        let is_sliced =
            self.request.range.is_some() && self.cache.fetches().completed(&self.fetch_key()).is_none();
        if is_sliced { Step::Slices } else { Step::Join }
    }

    /// Joins the fetch of another request, or starts one.
    fn join(&mut self) -> Step {
        if self.request.directives.only_if_cached {
            const DETAIL: &str = "The cache has no response that only-if-cached permits.";
            let ending = OutcomeEnding::Refused(OwnAnswer::new(Status::GATEWAY_TIMEOUT, DETAIL));
            return Step::Done(Outcome { ending, status: None, body_bytes: 0 });
        }
        let (key, fetches) = (self.fetch_key(), self.cache.fetches());
        if !self.can_fill_cache() {
            // A range request would wait for the bytes before its range. It follows a fetch only if the whole
            // body has been received, and is being stored.
            let may_follow = !self.request.has_authorization && self.request.method == Method::Get;
            let follower = if may_follow { fetches.completed(&key) } else { None };
            return follower.map_or(Step::Plain, Step::Follow);
        }
        if self.request.has_authorization {
            return self.alone(Some(fetches.lead_alone(&key)));
        }
        match fetches.join(&key, self.exchange.shared.io.now()) {
            Joined::Lead(lead) => Step::Fetch(lead),
            Joined::Alone(lead) => self.alone(lead),
            Joined::Follow(follower) => Step::Follow(follower),
        }
    }

    /// Whether the response can fill the cache. One to HEAD or to a range cannot: the request is forwarded as
    /// it is. If there is a stale object, a range becomes a conditional GET of the whole.
    fn can_fill_cache(&self) -> bool {
        self.request.method != Method::Head && (self.request.range.is_none() || self.stored().is_some())
    }

    /// Proceeds without the fetch of another request.
    fn leave_fetch(&mut self) -> Step {
        if !self.can_fill_cache() {
            return Step::Plain;
        }
        let now = self.exchange.shared.io.now();
        let lead = self.cache.fetches().join_none(&self.fetch_key(), now);
        self.alone(lead)
    }

    /// Fetches a response that is probably not stored, or cannot be recorded without a lead. If the client
    /// has a copy, its conditions are forwarded, and nothing is stored: a fetch for the cache would send all
    /// of the response again.
    fn alone(&mut self, lead: Option<Lead>) -> Step {
        let Some(lead) = lead else {
            self.status.detail = Some("unrecordable");
            return Step::Plain;
        };
        let has_copy = self.request.has_conditions && self.stored().is_none();
        if has_copy { Step::Plain } else { Step::Fetch(lead) }
    }

    /// Returns the stored object that must be validated.
    fn stored(&self) -> Option<&Arc<Object>> {
        match &self.lookup {
            Lookup::Found(object) => Some(object),
            Lookup::OtherVariants(_) | Lookup::Absent => None,
        }
    }

    fn fetch_key(&self) -> FetchKey {
        self.cache.fetch_key(&self.request, &self.lookup)
    }

    /// Starts the validation of a stored object, if there is room for it. Otherwise a later request does.
    fn start_refresh(&self, object: &Arc<Object>) {
        // An answer with Authorization proves nothing for others, and one to HEAD has no body to store.
        let proves = !self.request.has_authorization && self.request.method == Method::Get;
        let Some(side) = self.exchange.side.filter(|side| proves && side.has_room()) else { return };
        let Some(permit) = self.cache.begin_refresh() else { return };
        let now = self.exchange.shared.io.now();
        if let Joined::Lead(lead) = self.cache.fetches().join(&self.fetch_key(), now) {
            let kind = PassKind::Refresh(lead, Arc::clone(object));
            let fetch = detached(&self.exchange, &self.cache, kind);
            side.start(Box::pin(async move {
                fetch.await;
                drop(permit);
            }));
        }
    }

    /// Sends a stored object, and counts the request. Looks it up again if its file cannot be opened.
    async fn send(&mut self, object: &Arc<Object>, status: &CacheStatus, counter: Counter) -> Step {
        let (signals, fields) = (Signals::default(), object.head.fields.lines());
        let ending = self.exchange.send_object(&self.request, object, fields, status, &signals).await;
        if !matches!(ending, OutcomeEnding::Repeat) {
            count(counter(self.cache.counts()));
        }
        Step::after(signals.outcome(ending))
    }

    /// Forwards the request. Answers with a stored object if no origin answered, and the object permits that
    /// (RFC 5861, section 4).
    async fn forward(&mut self, kind: PassKind) -> Step {
        // The response to a validation is counted by its status.
        if !matches!(kind, PassKind::Lead(_, Some(_))) {
            count(&self.cache.counts().misses);
        }
        let outcome = self.exchange_with(kind, self.status).await;
        let now = self.exchange.shared.io.now();
        let is_usable = |object: &&Arc<Object>| {
            matches!(outcome.ending, OutcomeEnding::Refused(_))
                && object.head.freshness.is_usable_on_error(&self.request.directives, now)
        };
        if let Some(object) = self.stored().filter(is_usable).cloned()
            && !self.cache.drop_if_changed(&self.exchange.shared.io, &object).await
        {
            let mut status = CacheStatus::hit(object.head.freshness.seconds_left(now));
            status.detail = Some("origin-failed");
            let step = self.send(&object, &status, |counts| &counts.stale).await;
            if !matches!(step, Step::LookUp) {
                return step;
            }
        }
        Step::after(outcome)
    }

    /// Performs the exchange, with the cache's part in it.
    async fn exchange_with(&mut self, kind: PassKind, status: CacheStatus) -> Outcome {
        self.exchange.pass = Some(CachePass::new(&self.cache, &self.request, kind, status));
        let outcome = self.exchange.run().await;
        // After a failure, the followers wait no longer.
        self.exchange.pass = None;
        outcome
    }

    /// Answers with the response that another request fetches.
    async fn follow(&mut self, follower: &Follower) -> Step {
        let until = self.exchange.shared.io.now() + FOLLOW_TIME_MAX;
        let deadline = self.exchange.deadlines.download;
        deadline.set(until);
        let followed = deadline.within(follower.head()).await;
        let now = self.exchange.shared.io.now();
        // A response that must be validated first may be another person's (RFC 9111, section 4).
        let is_usable = |head: &StoredHead| {
            head.answers(&self.request) && head.freshness.is_usable_now(&self.request.directives, now)
        };
        let status = CacheStatus { is_collapsed: true, ..self.status };
        let (head, length) = match followed {
            Ok(FollowedHead::Open(head, length)) if is_usable(&head) => (head, length),
            Ok(FollowedHead::Passed(object)) if is_usable(&object.head) => {
                return self.send(&object, &status, |counts| &counts.misses).await;
            }
            Ok(FollowedHead::Open(..) | FollowedHead::Passed(_) | FollowedHead::Uncacheable)
            | Err(Elapsed) => return self.leave_fetch(),
            Ok(FollowedHead::Failed) => return Step::LookUp,
        };
        let signals = Signals::default();
        let mut client = self.exchange.client_side(&self.request, &signals);
        let ending = match client.send_fetched(follower, &head, length, &status, Some(until)).await {
            Err(NotSent::Late) => return self.leave_fetch(),
            Err(NotSent::Unstarted) => match follower.head().await {
                FollowedHead::Uncacheable => return self.leave_fetch(),
                FollowedHead::Open(..) | FollowedHead::Passed(_) | FollowedHead::Failed => {
                    OutcomeEnding::Repeat
                }
            },
            sent => client.ending(&sent, &head, length),
        };
        if !matches!(ending, OutcomeEnding::Repeat) {
            count(&self.cache.counts().misses);
        }
        Step::after(signals.outcome(ending))
    }

    /// Sends the rest of a response that could not be recorded or read, from another request to an origin.
    async fn resume(&mut self, sent: Outcome, rest: Rest, keep: bool) -> Step {
        let resumed = self.exchange_with(PassKind::Rest(rest), CacheStatus::default()).await;
        let ending = match resumed.ending {
            OutcomeEnding::Relayed { .. } => OutcomeEnding::Relayed { keep },
            _ => OutcomeEnding::Aborted,
        };
        Step::Done(Outcome { ending, body_bytes: sent.body_bytes + resumed.body_bytes, ..sent })
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
