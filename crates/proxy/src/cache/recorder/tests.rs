//! Tests of recording under the simulator: memory, files, followers, purges, errors, and power cuts.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_io::sim::{Call, Faults, Host, Moment, Sim, Unsynced, seeds};
use plimsoll_io::{Instant, join};
use plimsoll_wire::http::head::Method;

use super::*;
use crate::cache::fetch::{Available, FollowedHead, Joined};
use crate::cache::limits::{RECORDING_SHARE, SLICE_BYTES};
use crate::cache::policy::{CacheRequest, FieldLines, ResourceKey, Slice, stored_for_tests as stored};
use crate::cache::response_cache::CacheSizes;
use crate::cache::store::{Lookup, Object, PurgeTarget};

const ROOT: &str = "/cache";
const FRESH: &str = "Cache-Control: max-age=9\r\n";
const SIZES: CacheSizes = CacheSizes { disk_bytes_max: 64 << 20, memory_bytes_max: 1 << 20 };

fn open(host: &Host) -> Arc<ResponseCache> {
    ResponseCache::open(&**host.disk(), ROOT.as_ref(), SIZES).unwrap()
}

fn request(path: &str) -> CacheRequest<'static> {
    let key = ResourceKey::new("http", b"a", path.as_bytes());
    CacheRequest::new(Method::Get, key, FieldLines::default(), false)
}

fn recorder(cache: &Arc<ResponseCache>, path: &str, length: Option<u64>, now: Instant) -> Recorder {
    let request = request(path);
    let key = cache.fetch_key(&request, &cache.lookup(&request));
    match cache.fetches().join(&key, now) {
        Joined::Lead(lead) => {
            let room = cache.reserve(length, now).unwrap();
            Recorder::begin(cache, lead, stored(&format!("http://a{path}"), "", FRESH), length, room)
        }
        other => panic!("{other:?}"),
    }
}

fn body(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

/// Records a body in uneven parts.
async fn record(io: &Io, cache: &Arc<ResponseCache>, path: &str, bytes: &[u8]) -> bool {
    let mut recorder = recorder(cache, path, None, io.now());
    for part in bytes.chunks(70_001) {
        if recorder.push(io, part.to_vec()).await.is_err() {
            return false;
        }
    }
    recorder.finish(io).await
}

fn found(cache: &ResponseCache, path: &str) -> Option<Arc<Object>> {
    match cache.lookup(&request(path)) {
        Lookup::Found(object) => Some(object),
        _ => None,
    }
}

async fn content(io: &Io, cache: &Arc<ResponseCache>, object: &Object) -> Vec<u8> {
    match &object.content {
        Content::Memory(bytes) => bytes.to_vec(),
        Content::File(stored) => {
            let file = cache.open_file(io, stored).await.unwrap();
            read(io, &file, 0..stored.content_bytes()).await
        }
    }
}

async fn read(io: &Io, file: &plimsoll_io::File, range: std::ops::Range<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while range.start + (bytes.len() as u64) < range.end {
        let (file, at) = (file.clone(), range.start + bytes.len() as u64);
        let len = usize::try_from(range.end - at).unwrap();
        let part = io.files(move |fs| {
            let mut part = vec![0; len];
            let count = fs.read_at(&file, &mut part, at)?;
            part.truncate(count);
            Ok(part)
        });
        let part = part.await.unwrap();
        assert!(!part.is_empty(), "the file ends early");
        bytes.extend(part);
    }
    bytes
}

/// Reads a fetch to its end.
async fn follow(io: &Io, follower: &Follower) -> Result<Vec<u8>, Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        match follower.read(bytes.len() as u64, 10_000).await {
            Available::Bytes(part, range) => bytes.extend_from_slice(&part[range]),
            Available::File(file, range) => bytes.extend(read(io, &file, range).await),
            Available::End => return Ok(bytes),
            Available::Failed => return Err(bytes),
        }
    }
}

#[test]
fn bodies_of_all_sizes_are_stored_and_found_after_a_restart_if_they_have_a_file() {
    for seed in seeds(20) {
        for len in [0, 1, MEMORY_OBJECT_BYTES_MAX, MEMORY_OBJECT_BYTES_MAX + 1, 1_000_000] {
            let sim = Sim::new(seed, Faults::splits());
            let host = sim.host("one");
            let (cache, io) = (open(&host), host.io());
            sim.run(&host, async move {
                assert!(record(&io, &cache, "/x", &body(len)).await);
                let object = found(&cache, "/x").unwrap();
                assert!(content(&io, &cache, &object).await == body(len), "{len}");
                assert_eq!(object.file_number().is_some(), len > MEMORY_OBJECT_BYTES_MAX);
                assert_eq!(cache.fetches().figures().in_progress, 0);
            });
            let again = Sim::new(seed, Faults::splits());
            let host = again.host_with_disk("one", &host.disk().after_power_cut(Unsynced::Kept));
            let (cache, io) = (open(&host), host.io());
            again.run(&host, async move {
                let object = found(&cache, "/x");
                assert_eq!(object.is_some(), len > MEMORY_OBJECT_BYTES_MAX, "{len}");
                if let Some(object) = object {
                    assert!(content(&io, &cache, &object).await == body(len));
                }
            });
        }
    }
}

#[test]
fn followers_stream_while_the_body_is_recorded() {
    for seed in seeds(50) {
        let sim = Sim::new(seed, Faults::splits());
        let host = sim.host("one");
        let (cache, done) = (open(&host), Rc::new(RefCell::new(0)));
        for late in 0..4_u64 {
            let (cache, io, done) = (Arc::clone(&cache), host.io(), Rc::clone(&done));
            sim.spawn(
                &host,
                Box::pin(async move {
                    io.sleep(Duration::from_millis(late * 7)).await;
                    let lookup = cache.lookup(&request("/x"));
                    let key = cache.fetch_key(&request("/x"), &lookup);
                    if let Joined::Follow(follower) = cache.fetches().join(&key, io.now()) {
                        assert!(matches!(follower.head().await, FollowedHead::Open(..)));
                        assert!(follow(&io, &follower).await.unwrap() == body(300_000));
                    }
                    *done.borrow_mut() += 1;
                }),
            );
        }
        let (io, waiting) = (host.io(), Rc::clone(&done));
        sim.run(&host, async move {
            let mut recorder = recorder(&cache, "/x", None, io.now());
            let own = recorder.follower();
            let recording = async {
                for part in body(300_000).chunks(17_000) {
                    io.sleep(Duration::from_millis(1)).await;
                    recorder.push(&io, part.to_vec()).await.unwrap();
                }
                recorder.finish(&io).await
            };
            let (is_stored, own) = join(recording, follow(&io, &own)).await;
            assert!(is_stored && own.unwrap() == body(300_000));
            while *waiting.borrow() < 4 {
                io.sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    }
}

#[test]
fn a_purge_while_a_body_is_recorded_keeps_it_out_of_the_cache_for_ever() {
    for seed in seeds(100) {
        let sim = Sim::new(seed, Faults::splits());
        let host = sim.host("one");
        let (cache, io) = (open(&host), host.io());
        sim.run(&host, async move {
            let purge = async {
                io.sleep(Duration::from_millis(seed % 40)).await;
                cache.purge(&io, [PurgeTarget::All]).await.unwrap();
            };
            let bytes = body(400_000);
            let recording = record(&io, &cache, "/x", &bytes);
            let (_, ()) = join(recording, purge).await;
            // Recorded before, during or after the purge: a purge that is confirmed last wins.
            cache.purge(&io, [PurgeTarget::Prefix(b"http://a/".to_vec())]).await.unwrap();
            assert!(found(&cache, "/x").is_none());
        });
        let disk = host.disk().after_power_cut(Unsynced::Drawn(seed));
        let again = Sim::new(seed, Faults::none());
        let host = again.host_with_disk("one", &disk);
        assert!(found(&open(&host), "/x").is_none());
    }
}

/// Stores two responses to `/x` while the file of the first is in use, then ends the process. Returns whether
/// the next start finds one of them.
fn is_found_after(second: usize, purge: fn(Arc<ResponseCache>, Io) -> plimsoll_io::LocalFuture) -> bool {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (cache, io) = (open(&host), host.io());
    let in_use = Rc::new(RefCell::new(None));
    let user = Rc::clone(&in_use);
    sim.run(&host, async move {
        assert!(record(&io, &cache, "/x", &body(200_000)).await);
        *user.borrow_mut() = found(&cache, "/x");
        assert!(record(&io, &cache, "/x", &body(second)).await);
        purge(Arc::clone(&cache), io).await;
        // The process does not end in order.
        std::mem::forget(cache);
    });
    assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    let again = Sim::new(0, Faults::none());
    let host = again.host_with_disk("one", &host.disk().after_power_cut(Unsynced::Kept));
    std::mem::forget(in_use);
    found(&open(&host), "/x").is_some()
}

#[test]
fn a_purge_removes_replaced_files_that_are_in_use() {
    for second in [100, 300_000] {
        assert!(!is_found_after(second, |cache, io| Box::pin(async move {
            assert_eq!(cache.purge(&io, [PurgeTarget::Prefix(b"http://a/".to_vec())]).await.unwrap(), 1);
        })));
        assert!(!is_found_after(second, |cache, io| Box::pin(async move {
            let target = PurgeTarget::Uri(request("/x").key.digest());
            cache.invalidate(&io, target).await.unwrap();
        })));
    }
}

#[test]
fn a_small_response_that_replaces_a_large_one_removes_its_file_soon() {
    assert!(!is_found_after(100, |cache, io| Box::pin(async move {
        while cache.has_files_to_remove() {
            io.sleep(Duration::from_millis(1)).await;
        }
    })));
}

#[test]
fn a_voided_recording_is_streamed_and_not_stored() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (cache, io) = (open(&host), host.io());
    sim.run(&host, async move {
        for len in [100, 200_000] {
            let mut recorder = recorder(&cache, "/x", None, io.now());
            let own = recorder.follower();
            recorder.push(&io, body(len)).await.unwrap();
            let purged = cache.purge(&io, [PurgeTarget::Uri(request("/x").key.digest())]).await.unwrap();
            assert_eq!(purged, 1);
            assert!(!recorder.finish(&io).await);
            assert!(follow(&io, &own).await.unwrap() == body(len));
            assert!(found(&cache, "/x").is_none());
        }
    });
}

#[test]
fn an_error_of_the_disk_returns_the_bytes_and_stops_writing_for_some_time() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (cache, io, on) = (open(&host), host.io(), host.clone());
    sim.run(&host, async move {
        on.disk().fail_next(Call::Write, io::ErrorKind::StorageFull);
        let mut recorder = recorder(&cache, "/x", Some(200_000), io.now());
        let own = recorder.follower();
        let (error, bytes) = recorder.push(&io, body(100_000)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(bytes == body(100_000) && recorder.received() == 0);
        drop(recorder);
        assert!(matches!(follow(&io, &own).await, Err(bytes) if bytes.is_empty()));
        let takes = |bytes| cache.reserve(Some(bytes), io.now()).is_some();
        assert!(!takes(200_000) && takes(100));
        io.sleep(DISK_RETRY_TIME).await;
        assert!(takes(200_000));
        assert!(record(&io, &cache, "/x", &body(200_000)).await);
        assert_eq!(cache.figures().disk_errors, 1);
    });
}

#[test]
fn a_power_cut_at_any_call_while_slices_are_stored_leaves_none_with_wrong_bytes() {
    const WHOLE: u64 = SLICE_BYTES + 70_000;
    let head = |number| StoredHead {
        slice: Some(Slice { number, whole: WHOLE }),
        ..stored("http://a/x", "", "Cache-Control: max-age=9\r\nETag: \"a\"\r\n")
    };
    let bytes = |number| match number {
        0 => body(usize::try_from(SLICE_BYTES).unwrap()),
        _ => vec![7; 70_000],
    };
    for call in (1..40).step_by(3) {
        let sim = Sim::new(call, Faults::none());
        let host = sim.host("one");
        let (cache, io, on) = (open(&host), host.io(), host.clone());
        sim.run(&host, async move {
            on.disk().cut_at(on.disk().calls() + call, Moment::After);
            for number in [1, 0] {
                let key = cache.slice_key(&request("/x"), number);
                let Joined::Lead(lead) = cache.fetches().join(&key, io.now()) else { panic!("no lead") };
                let length = Some(bytes(number).len() as u64);
                let Some(room) = cache.reserve(length, io.now()) else { continue };
                let mut recorder = Recorder::begin(&cache, lead, head(number), length, room);
                if recorder.push(&io, bytes(number)).await.is_ok() {
                    recorder.finish(&io).await;
                }
            }
        });
        for fate in [Unsynced::Lost, Unsynced::Kept, Unsynced::Drawn(call)] {
            let again = Sim::new(call, Faults::none());
            let host = again.host_with_disk("one", &host.disk().after_power_cut(fate));
            let (cache, io) = (open(&host), host.io());
            again.run(&host, async move {
                let Some(partial) = cache.lookup_partial(&request("/x")) else { return };
                assert_eq!(partial.whole, WHOLE);
                for number in [0, 1] {
                    if let Some(object) = cache.lookup_slice(&partial, number) {
                        assert!(content(&io, &cache, &object).await == bytes(number), "{number}");
                    }
                }
            });
        }
        if !host.disk().is_cut() {
            let again = Sim::new(call, Faults::none());
            let host = again.host_with_disk("one", &host.disk().after_power_cut(Unsynced::Kept));
            let partial = open(&host).lookup_partial(&request("/x"));
            assert!(partial.is_some(), "slices are found after a restart");
            break;
        }
    }
}

#[test]
fn bodies_in_progress_never_reserve_more_than_their_share() {
    let sim = Sim::new(0, Faults::none());
    let cache = open(&sim.host("one"));
    let bytes_max = SIZES.disk_bytes_max / RECORDING_SHARE;
    let length = cache.object_bytes_max() - 1;
    let reserve = |length| cache.reserve(Some(length), Instant::default());
    // Each thread wants two at a time, and all of them more than there are.
    let (threads, held, most) = (4, AtomicU64::new(0), AtomicU64::new(0));
    let start = std::sync::Barrier::new(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                start.wait();
                for _ in 0..400_000 {
                    let reserved: Vec<_> = (0..2).filter_map(|_| reserve(length)).collect();
                    let count = reserved.len() as u64;
                    most.fetch_max(held.fetch_add(count, Ordering::Relaxed) + count, Ordering::Relaxed);
                    held.fetch_sub(count, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(most.into_inner() <= bytes_max / length);
    let all: Vec<_> = (0..threads * 2).filter_map(|_| reserve(length)).collect();
    assert_eq!(all.len() as u64, bytes_max / length);
    drop(all);
    let mut growing = cache.reserve(None, Instant::default()).unwrap();
    assert!(growing.grow(bytes_max) && !growing.grow(bytes_max + 1));
    assert!(reserve(length).is_none());
    drop(growing);
    assert!(reserve(length).is_some());
}

#[test]
fn a_body_above_the_largest_object_is_not_recorded_further() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (cache, io) = (open(&host), host.io());
    sim.run(&host, async move {
        let bytes_max = usize::try_from(cache.object_bytes_max()).unwrap();
        assert!(cache.reserve(Some(bytes_max as u64 + 1), io.now()).is_none());
        let mut recorder = recorder(&cache, "/x", None, io.now());
        recorder.push(&io, body(bytes_max)).await.unwrap();
        let (error, bytes) = recorder.push(&io, vec![1]).await.unwrap_err();
        assert_eq!((error.kind(), bytes), (io::ErrorKind::FileTooLarge, vec![1]));
        assert_eq!(recorder.received(), bytes_max as u64);
    });
}

#[test]
fn a_power_cut_at_any_call_of_a_recording_costs_at_most_its_object() {
    let fates = || [Unsynced::Lost, Unsynced::Kept].into_iter().chain((0..8).map(Unsynced::Drawn));
    for moment in [Moment::Before, Moment::After] {
        for call in 1..60 {
            let sim = Sim::new(call, Faults::splits());
            let host = sim.host("one");
            let (cache, io, on) = (open(&host), host.io(), host.clone());
            sim.run(&host, async move {
                assert!(record(&io, &cache, "/old", &body(100_000)).await);
                on.disk().cut_at(on.disk().calls() + call, moment);
                record(&io, &cache, "/new", &body(300_000)).await;
            });
            for fate in fates() {
                let again = Sim::new(call, Faults::splits());
                let host = again.host_with_disk("one", &host.disk().after_power_cut(fate));
                let (cache, io) = (open(&host), host.io());
                again.run(&host, async move {
                    for (path, len) in [("/old", 100_000), ("/new", 300_000)] {
                        if let Some(object) = found(&cache, path) {
                            assert!(content(&io, &cache, &object).await == body(len), "{path}");
                        }
                    }
                });
            }
            if !host.disk().is_cut() {
                break;
            }
        }
    }
}

#[test]
fn files_of_evicted_objects_are_removed() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (io, on) = (host.io(), host.clone());
    let sizes = CacheSizes { disk_bytes_max: 2 << 20, memory_bytes_max: 1 << 20 };
    let cache = ResponseCache::open(&**host.disk(), ROOT.as_ref(), sizes).unwrap();
    sim.run(&host, async move {
        for number in 0..40 {
            assert!(record(&io, &cache, &format!("/{number}"), &body(200_000)).await);
        }
        let figures = cache.figures();
        assert!(figures.index.disk_bytes <= 2 << 20, "{figures:?}");
        let root = plimsoll_io::Fs::open_root(&**on.disk(), ROOT.as_ref()).unwrap();
        let files = plimsoll_io::Fs::list(&**on.disk(), &root, b"objects", 1000).unwrap().len() as u64;
        assert_eq!(files, figures.index.disk_objects);
    });
}
