//! Tests of fetch sharing as a state machine, polled by hand.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use plimsoll_io::Instant;

use super::table::Voided;
use super::*;
use crate::cache::limits::HIT_FOR_MISS_TIME;
use crate::cache::policy::{ResourceKey, stored_for_tests as stored};
use crate::cache::store::{Content, Object, PurgeTarget};

const FRESH: &str = "Cache-Control: max-age=9\r\nCache-Tag: t\r\n";

#[derive(Default)]
struct Wakeups(AtomicUsize);

impl Wake for Wakeups {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn now() -> Instant {
    Instant::default()
}

fn key(path: &str) -> FetchKey {
    FetchKey::new(&ResourceKey::new("http", b"a", path.as_bytes()), None)
}

fn lead(fetches: &Arc<Fetches>, path: &str) -> Lead {
    match fetches.join(&key(path), now()) {
        Joined::Lead(lead) => lead,
        other => panic!("{other:?}"),
    }
}

fn follow(fetches: &Arc<Fetches>, path: &str) -> Follower {
    match fetches.join(&key(path), now()) {
        Joined::Follow(follower) => follower,
        other => panic!("{other:?}"),
    }
}

fn open(lead: &Lead, path: &str) {
    lead.open(stored(&format!("http://a{path}"), "", FRESH), None);
}

fn poll<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn read(follower: &Follower, offset: u64) -> Option<Vec<u8>> {
    match poll(follower.read(offset, 100)) {
        Poll::Ready(Available::Bytes(bytes, range)) => Some(bytes[range].to_vec()),
        Poll::Ready(other) => panic!("{other:?}"),
        Poll::Pending => None,
    }
}

#[test]
fn many_requests_for_one_object_cause_one_fetch_and_stream_behind_it() {
    let fetches = Arc::<Fetches>::default();
    let lead = lead(&fetches, "/x");
    let followers = [follow(&fetches, "/x"), follow(&fetches, "/x"), lead.follower()];
    assert!(followers.iter().all(|follower| poll(follower.head()).is_pending()));
    open(&lead, "/x");
    lead.publish(b"abc"[..].into());
    lead.publish(b"de"[..].into());
    for follower in &followers {
        assert!(matches!(poll(follower.head()), Poll::Ready(FollowedHead::Open(_, None))));
        assert_eq!(read(follower, 0).unwrap(), b"abc");
        assert_eq!(read(follower, 1).unwrap(), b"bc");
        assert_eq!(read(follower, 3).unwrap(), b"de");
        assert_eq!(read(follower, 5), None);
    }
    lead.complete();
    assert!(matches!(poll(followers[0].read(5, 9)), Poll::Ready(Available::End)));
    assert!(matches!(poll(followers[1].head()), Poll::Ready(FollowedHead::Open(_, Some(5)))));
    assert_eq!(lead.in_memory().unwrap(), b"abcde");
    assert_eq!(fetches.figures(), FetchFigures { in_progress: 1, joined: 2 });
    lead.finish();
    assert_eq!(fetches.figures().in_progress, 0);
    // The reader of an object that is stored by now reads to its end.
    assert_eq!(read(&followers[0], 3).unwrap(), b"de");
}

#[test]
fn followers_are_woken_by_every_change() {
    let fetches = Arc::<Fetches>::default();
    let lead = lead(&fetches, "/x");
    let follower = follow(&fetches, "/x");
    let wakeups = Arc::<Wakeups>::default();
    let waker = Waker::from(Arc::clone(&wakeups));
    let mut cx = Context::from_waker(&waker);
    assert!(pin!(follower.head()).poll(&mut cx).is_pending());
    assert!(pin!(follower.head()).poll(&mut cx).is_pending());
    open(&lead, "/x");
    assert_eq!(wakeups.0.load(Ordering::Relaxed), 1, "one waker for one task");
    assert!(pin!(follower.read(0, 9)).poll(&mut cx).is_pending());
    lead.publish(b"a"[..].into());
    assert!(pin!(follower.read(1, 9)).poll(&mut cx).is_pending());
    drop(lead);
    assert_eq!(wakeups.0.load(Ordering::Relaxed), 3);
    assert!(matches!(poll(follower.read(1, 9)), Poll::Ready(Available::Failed)));
}

#[test]
fn an_uncacheable_response_lets_followers_and_later_requests_proceed_in_parallel() {
    let fetches = Arc::<Fetches>::default();
    let lead = lead(&fetches, "/x");
    let follower = follow(&fetches, "/x");
    lead.refuse(now());
    assert!(matches!(poll(follower.head()), Poll::Ready(FollowedHead::Uncacheable)));
    assert!(matches!(fetches.join(&key("/x"), now()), Joined::Alone(_)));
    assert!(matches!(fetches.join(&key("/y"), now()), Joined::Lead(_)));
    let later = now() + HIT_FOR_MISS_TIME + Duration::from_nanos(1);
    assert!(matches!(fetches.join(&key("/x"), later), Joined::Lead(_)));
}

#[test]
fn a_lead_that_is_dropped_fails_the_fetch_and_the_next_request_leads() {
    let fetches = Arc::<Fetches>::default();
    let first = lead(&fetches, "/x");
    let follower = follow(&fetches, "/x");
    drop(first);
    assert!(matches!(poll(follower.head()), Poll::Ready(FollowedHead::Failed)));
    drop(lead(&fetches, "/x"));
    assert_eq!(fetches.figures().in_progress, 0);
}

#[test]
fn a_purge_voids_fetches_in_flight_and_the_next_request_fetches_anew() {
    let digest = key("/x").resource.digest();
    for target in [
        PurgeTarget::Uri(digest),
        PurgeTarget::Prefix(b"http://a/x".to_vec()),
        PurgeTarget::Tag(b"t".to_vec()),
        PurgeTarget::All,
    ] {
        let fetches = Arc::<Fetches>::default();
        let (voided, other) = (lead(&fetches, "/x"), lead(&fetches, "/y"));
        open(&voided, "/x");
        other.open(stored("http://a/y", "", "Cache-Control: max-age=9\r\n"), None);
        let storing = voided.storing();
        let follower = follow(&fetches, "/x");
        let count = fetches.void(&target);
        assert!(voided.is_void() && !storing(), "{target:?}");
        assert_eq!(other.is_void(), target == PurgeTarget::All);
        let all = 1 + u64::from(target == PurgeTarget::All);
        assert_eq!(count, Voided { all, not_stored: all });
        // A request that joined before the purge is served.
        voided.publish(b"a"[..].into());
        assert_eq!(read(&follower, 0).unwrap(), b"a");
        let anew = lead(&fetches, "/x");
        drop(voided);
        assert!(matches!(fetches.join(&key("/x"), now()), Joined::Follow(_)), "the new fetch stays");
        drop(anew);
    }
}

#[test]
fn a_purge_by_tag_voids_a_fetch_whose_tags_are_not_known_yet() {
    let fetches = Arc::<Fetches>::default();
    let waiting = lead(&fetches, "/x");
    fetches.void(&PurgeTarget::Tag(b"t".to_vec()));
    assert!(waiting.is_void());
}

#[test]
fn variants_are_fetched_in_parallel_once_they_are_known() {
    let fetches = Arc::<Fetches>::default();
    let resource = ResourceKey::new("http", b"a", b"/x");
    let one = FetchKey::new(&resource, Some(ResourceKey::new("http", b"a", b"/1").digest()));
    let two = FetchKey::new(&resource, Some(ResourceKey::new("http", b"a", b"/2").digest()));
    let first = fetches.join(&one, now());
    assert!(matches!(first, Joined::Lead(_)));
    assert!(matches!(fetches.join(&two, now()), Joined::Lead(_)));
    assert!(matches!(fetches.join(&one, now()), Joined::Follow(_)));
}

#[test]
fn a_fetch_with_credentials_is_joined_by_no_request_and_marks_nothing_but_is_purged() {
    let fetches = Arc::<Fetches>::default();
    let alone = fetches.lead_alone(&key("/x"));
    let shared = lead(&fetches, "/x");
    let second = fetches.lead_alone(&key("/x"));
    assert_eq!(fetches.void(&PurgeTarget::All).all, 3);
    assert!(alone.is_void() && shared.is_void() && second.is_void());
    alone.refuse(now());
    assert!(matches!(fetches.join(&key("/x"), now()), Joined::Lead(_)));
}

#[test]
fn a_fetch_is_complete_from_its_last_byte_until_it_is_stored() {
    let fetches = Arc::<Fetches>::default();
    let lead = lead(&fetches, "/x");
    open(&lead, "/x");
    lead.publish(b"abc"[..].into());
    assert!(fetches.completed(&key("/x")).is_none());
    lead.complete();
    assert_eq!(read(&fetches.completed(&key("/x")).unwrap(), 1).unwrap(), b"bc");
    lead.finish();
    assert!(fetches.completed(&key("/x")).is_none());
}

#[test]
fn followers_of_a_passed_file_get_its_object_and_later_requests_do_not_join() {
    let fetches = Arc::<Fetches>::default();
    let lead = lead(&fetches, "/x");
    let follower = follow(&fetches, "/x");
    let wakeups = Arc::<Wakeups>::default();
    let waker = Waker::from(Arc::clone(&wakeups));
    assert!(pin!(follower.head()).poll(&mut Context::from_waker(&waker)).is_pending());
    let object = Object::new(stored("http://a/x", "", FRESH), Content::Memory(b"x"[..].into()));
    lead.pass(&object);
    assert_eq!(wakeups.0.load(Ordering::Relaxed), 1);
    match poll(follower.head()) {
        Poll::Ready(FollowedHead::Passed(passed)) => assert!(Arc::ptr_eq(&passed, &object)),
        other => panic!("{other:?}"),
    }
    assert_eq!(fetches.figures().in_progress, 0);
    assert!(matches!(fetches.join(&key("/x"), now()), Joined::Lead(_)));
}
