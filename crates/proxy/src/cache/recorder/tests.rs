//! Tests of recording under the simulator: memory, files, followers, and bounds. Purges and faults have files
//! of their own.

mod faults;
mod purges;

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
use crate::cache::policy::{
    CacheRequest, FieldLines, NotStored, ResourceKey, Slice, Timestamp, stored_for_tests as stored,
};
use crate::cache::response_cache::CacheSizes;
use crate::cache::store::{CacheFolder, Lookup, Object, PurgeTarget};

const ROOT: &str = "/cache";
const FRESH: &str = "Cache-Control: max-age=9\r\n";
const SIZES: CacheSizes =
    CacheSizes { disk_bytes_max: 64 << 20, memory_bytes_max: 1 << 20, passed_files_max: 0 };

fn open(host: &Host) -> Arc<ResponseCache> {
    let now = Timestamp::now(&host.io());
    ResponseCache::open(&**host.disk(), &CacheFolder::new(ROOT), SIZES, now).unwrap()
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
    finish(io, cache, recorder, path).await
}

/// Finishes a recording, and waits for the disk. Returns whether the object is stored.
async fn finish(io: &Io, cache: &ResponseCache, recorder: Recorder, path: &str) -> bool {
    recorder.finish(io);
    // Simulated.
    io.sleep(Duration::from_secs(1)).await;
    found(cache, path).is_some()
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
        Content::Passed(_) => panic!("a body that was recorded"),
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
                finish(&io, &cache, recorder, "/x").await
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
                    let reserved: Vec<_> = (0..2).filter_map(|_| reserve(length).ok()).collect();
                    let count = reserved.len() as u64;
                    most.fetch_max(held.fetch_add(count, Ordering::Relaxed) + count, Ordering::Relaxed);
                    held.fetch_sub(count, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(most.into_inner() <= bytes_max / length);
    let all: Vec<_> = (0..threads * 2).filter_map(|_| reserve(length).ok()).collect();
    assert_eq!(all.len() as u64, bytes_max / length);
    drop(all);
    let mut growing = cache.reserve(None, Instant::default()).unwrap();
    assert!(growing.grow(bytes_max) && !growing.grow(bytes_max + 1));
    assert!(reserve(length).is_err());
    drop(growing);
    assert!(reserve(length).is_ok());
}

#[test]
fn a_body_above_the_largest_object_is_not_recorded_further() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (cache, io) = (open(&host), host.io());
    sim.run(&host, async move {
        let bytes_max = usize::try_from(cache.object_bytes_max()).unwrap();
        assert!(matches!(cache.reserve(Some(bytes_max as u64 + 1), io.now()), Err(NotStored::TooLarge)));
        let mut recorder = recorder(&cache, "/x", None, io.now());
        recorder.push(&io, body(bytes_max)).await.unwrap();
        let (error, bytes) = recorder.push(&io, vec![1]).await.unwrap_err();
        assert_eq!((error.kind(), bytes), (io::ErrorKind::FileTooLarge, vec![1]));
        assert_eq!(recorder.received(), bytes_max as u64);
    });
}

#[test]
fn files_of_evicted_objects_are_removed() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (io, on) = (host.io(), host.clone());
    let sizes = CacheSizes { disk_bytes_max: 2 << 20, ..SIZES };
    let now = Timestamp::now(&io);
    let cache = ResponseCache::open(&**host.disk(), &CacheFolder::new(ROOT), sizes, now).unwrap();
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
