//! The proxy's cache over a channel that passes files: it keeps their descriptors, and copies nothing.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use plimsoll_channel::{Bodies, Count};
use plimsoll_io::Address;
use plimsoll_proxy::Settings;
use plimsoll_proxy::cache::limits::FILE_TIME_TICK;
use plimsoll_proxy::cache::opening::CacheOpener;
use plimsoll_proxy::cache::policy::{ResourceKey, Servers};
use plimsoll_proxy::cache::response_cache::{CacheFigures, CacheSizes, ResponseCache};
use plimsoll_proxy::cache::store::PurgeTarget;
use plimsoll_tests::proxy::plain;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Client, LOOKED_UP_EACH_TIME, Scenario, Scene, Tree, behaviours, together};

use super::cached::{cache_status, new_folder};

/// More than the origin sends from memory.
pub(super) const SIZE: usize = 200_000;
/// The files that the cache may keep.
const KEPT_MAX: u64 = 8;
/// More files than these.
const FILES: usize = 40;
/// The fields of a response in this folder make it fresh for a minute.
const TARGET: &str = "/aside/file.bin";
pub(super) const FILE: &str = "aside/file.bin";
const MISS: &str = "plimsoll; fwd=uri-miss; stored";

thread_local! {
    /// The cache of the behaviour that this thread runs, and its folder.
    static CACHE: RefCell<Option<(Arc<CacheOpener>, String)>> = const { RefCell::new(None) };
}

pub(super) fn scenario() -> Scenario {
    let named =
        |tree: Tree, number: usize| tree.file(format!("aside/{number}.bin"), noise(number as u64 + 1, SIZE));
    let tree = (0..FILES).fold(Tree::new().file(FILE, noise(99, SIZE)), named);
    Scenario {
        tree,
        hot: LOOKED_UP_EACH_TIME,
        channel: Some(Bodies::Passed),
        proxy: Some(passing),
        is_large: true,
        ..Scenario::default()
    }
}

fn passing(origin: &Address) -> Settings {
    caching_over(Bodies::Passed, origin)
}

fn caching_over(bodies: Bodies, origin: &Address) -> Settings {
    let folder = new_folder();
    let sizes =
        CacheSizes { disk_bytes_max: 64 << 20, memory_bytes_max: 4 << 20, passed_files_max: KEPT_MAX };
    let cache = CacheOpener::new(&folder, sizes);
    CACHE.set(Some((Arc::clone(&cache), folder)));
    Settings { channel: Some(bodies), cache: Some(cache), ..plain(origin) }
}

fn cache() -> Arc<ResponseCache> {
    let opened = CACHE.with_borrow(|cache| cache.as_ref().and_then(|(opener, _)| opener.get().cloned()));
    opened.expect("a request has opened the cache")
}

pub(super) fn figures() -> CacheFigures {
    cache().figures()
}

/// Checks that the cache has no content of its own, in memory or on disk.
fn assert_nothing_is_copied(scene: &Scene) {
    let index = figures().index;
    assert_eq!((index.memory_objects, index.disk_objects), (0, 0), "{index:?}");
    let folder = CACHE.with_borrow(|cache| cache.as_ref().unwrap().1.clone());
    let fs = scene.proxy_fs();
    let root = fs.open_root(folder.as_ref()).unwrap();
    for part in [&b"objects"[..], b"pending"] {
        assert!(fs.list(&root, part, 100).unwrap().is_empty());
    }
}

/// Waits until a file has not changed for so long that the cache keeps its descriptor.
pub(super) async fn settle(scene: &Scene, name: &str) {
    let root = scene.fs().open_root(scene.root()).unwrap();
    let file = scene.fs().open_beneath(&root, name.as_bytes()).unwrap();
    let changed = UNIX_EPOCH + scene.fs().stat(&file).unwrap().changed;
    scene.until(|| scene.io.wall() > changed + 2 * FILE_TIME_TICK).await;
}

/// Gets the file until it is kept: the first answer is the one that has stored it.
async fn get_kept(scene: &Scene, client: &mut Client) -> Answer {
    settle(scene, FILE).await;
    let first = client.get(TARGET).await;
    assert_eq!((first.status, cache_status(&first)), (200, MISS));
    assert_eq!(figures().index.passed_objects, 1);
    first
}

fn is_hit(answer: &Answer) -> bool {
    cache_status(answer).starts_with("plimsoll; hit; ttl=")
}

async fn a_passed_file_is_kept_open_and_nothing_is_copied(scene: Scene) {
    let mut client = scene.connect().await;
    let first = get_kept(&scene, &mut client).await;
    assert!(first.body == noise(99, SIZE));
    for _ in 0..3 {
        let hit = client.get(TARGET).await;
        assert!(is_hit(&hit) && hit.body == first.body, "{}", cache_status(&hit));
        assert!(is_hit(&scene.get(TARGET).await));
    }
    let head = client.head_with(TARGET, "").await;
    assert_eq!(head.field("Content-Length"), Some(&*SIZE.to_string()));
    let known = format!("If-None-Match: {}\r\n", first.field("ETag").unwrap());
    assert_eq!(client.get_with(TARGET, &known).await.status, 304);
    assert_eq!(scene.channels.get(Count::FilesPassed), 1);
    assert_eq!(figures().hits, 8);
    assert_nothing_is_copied(&scene);
}

async fn a_kept_file_that_changes_in_place_is_fetched_again(scene: Scene) {
    let mut client = scene.connect().await;
    get_kept(&scene, &mut client).await;
    for (round, size) in [SIZE, SIZE, SIZE / 2, SIZE * 2].into_iter().enumerate() {
        let bytes = noise(1_000 + round as u64, size);
        scene.write(FILE, &bytes);
        settle(&scene, FILE).await;
        let changed = client.get(TARGET).await;
        assert!(changed.body == bytes, "round {round}");
        assert_eq!(cache_status(&changed), MISS);
        assert!(is_hit(&client.get(TARGET).await));
        assert_eq!(figures().index.passed_objects, 1);
        assert_eq!(figures().changed, round as u64 + 1);
    }
    assert_nothing_is_copied(&scene);
}

async fn a_kept_file_that_is_replaced_is_fetched_again_although_it_is_fresh(scene: Scene) {
    let mut client = scene.connect().await;
    get_kept(&scene, &mut client).await;
    for round in 0..3 {
        let bytes = noise(2_000 + round, SIZE);
        scene.replace(FILE, &bytes);
        settle(&scene, FILE).await;
        assert!(client.get(TARGET).await.body == bytes, "round {round}");
        assert!(is_hit(&client.get(TARGET).await));
    }
    assert_eq!(figures().changed, 3);
    // Also for a request that gets no body.
    scene.replace(FILE, &noise(3_000, 100_001));
    assert_eq!(client.head_with(TARGET, "").await.field("Content-Length"), Some("100001"));
}

async fn a_file_that_has_just_changed_is_sent_and_neither_kept_nor_copied(scene: Scene) {
    let mut client = scene.connect().await;
    get_kept(&scene, &mut client).await;
    for round in 0..5 {
        // No pause: its next change could leave the same times.
        let bytes = noise(4_000 + round, SIZE);
        if round % 2 == 0 {
            scene.replace(FILE, &bytes)
        } else {
            scene.write(FILE, &bytes)
        }
        assert!(client.get(TARGET).await.body == bytes, "round {round}");
        assert_nothing_is_copied(&scene);
    }
    settle(&scene, FILE).await;
    assert!(client.get(TARGET).await.body == noise(4_004, SIZE));
    assert!(is_hit(&client.get(TARGET).await));
}

async fn a_kept_file_that_is_removed_is_not_found_any_more(scene: Scene) {
    let mut client = scene.connect().await;
    get_kept(&scene, &mut client).await;
    scene.remove(FILE);
    assert_eq!(client.get(TARGET).await.status, 404);
    assert_eq!(figures().index.passed_objects, 0);
}

async fn a_kept_file_that_changes_is_closed_also_without_a_request(scene: Scene) {
    let mut client = scene.connect().await;
    get_kept(&scene, &mut client).await;
    scene.remove(FILE);
    scene.until(|| figures().index.passed_objects == 0).await;
    assert_eq!(figures().changed, 1);
}

async fn ranges_are_sent_from_a_kept_file(scene: Scene) {
    let mut client = scene.connect().await;
    let whole = get_kept(&scene, &mut client).await.body;
    for (range, start, end) in
        [("0-0", 0, 1), ("100-70099", 100, 70_100), ("-5", SIZE - 5, SIZE), ("7-", 7, SIZE)]
    {
        let part = client.get_with(TARGET, &format!("Range: bytes={range}\r\n")).await;
        assert!((part.status, &part.body[..]) == (206, &whole[start..end]), "{range}");
        assert!(is_hit(&part), "{}", cache_status(&part));
    }
    assert_eq!(scene.channels.get(Count::FilesPassed), 1);
    scene.write(FILE, &noise(4, SIZE));
    let part = client.get_with(TARGET, "Range: bytes=1-5\r\n").await;
    assert!(part.body == noise(4, SIZE)[1..6]);
}

async fn many_clients_share_one_passed_file(scene: Scene) {
    settle(&scene, FILE).await;
    let visits = (0..8).map(|_| {
        let scene = scene.clone();
        async move {
            let answer = scene.get(TARGET).await;
            assert!(answer.body == noise(99, SIZE));
        }
    });
    together(visits).await;
    assert_eq!(scene.channels.get(Count::FilesPassed), 1);
    assert_nothing_is_copied(&scene);
}

async fn a_kept_file_is_sent_again_after_its_validation(scene: Scene) {
    let mut client = scene.connect().await;
    get_kept(&scene, &mut client).await;
    let validated = client.get_with(TARGET, "Cache-Control: no-cache\r\n").await;
    assert_eq!(cache_status(&validated), "plimsoll; fwd=request; fwd-status=304");
    assert!(validated.body == noise(99, SIZE));
    assert!(is_hit(&client.get(TARGET).await));
    assert_eq!(scene.channels.get(Count::FilesPassed), 1);
    assert_eq!(figures().index.passed_objects, 1);
}

async fn a_scan_of_many_files_closes_all_but_the_hot_ones(scene: Scene) {
    let mut client = scene.connect().await;
    get_kept(&scene, &mut client).await;
    for _ in 0..3 {
        assert!(is_hit(&client.get(TARGET).await));
    }
    for number in 0..FILES {
        let answer = client.get(&format!("/aside/{number}.bin")).await;
        assert!(answer.body == noise(number as u64 + 1, SIZE));
        let index = figures().index;
        assert!(index.passed_objects <= KEPT_MAX && index.passed_bytes <= index.passed_bytes_max);
    }
    assert!(is_hit(&client.get(TARGET).await), "the scan has evicted a hot file");
    assert!(figures().index.passed_objects > KEPT_MAX / 2);
    assert_nothing_is_copied(&scene);
}

async fn purges_and_invalidations_drop_a_kept_file(scene: Scene) {
    let mut client = scene.connect().await;
    let start = format!("{}://", scene.scheme());
    let key = ResourceKey::parse(format!("{start}test{TARGET}").as_bytes()).unwrap();
    let uri = PurgeTarget::Uri(key.at(Servers::Origins).digest());
    for target in [PurgeTarget::All, PurgeTarget::Prefix(start.into_bytes()), uri.clone()] {
        get_kept(&scene, &mut client).await;
        assert_eq!(cache().purge(&scene.io, [target]).await.unwrap(), 1);
        assert_eq!(figures().index.passed_objects, 0);
    }
    get_kept(&scene, &mut client).await;
    cache().invalidate(&scene.io, uri).await.unwrap();
    assert_eq!(figures().index.passed_objects, 0);
}

behaviours!(scenario but process and tls;
    a_passed_file_is_kept_open_and_nothing_is_copied,
    a_kept_file_that_changes_in_place_is_fetched_again,
    a_kept_file_that_is_replaced_is_fetched_again_although_it_is_fresh,
    a_file_that_has_just_changed_is_sent_and_neither_kept_nor_copied,
    a_kept_file_that_is_removed_is_not_found_any_more,
    a_kept_file_that_changes_is_closed_also_without_a_request,
    ranges_are_sent_from_a_kept_file,
    many_clients_share_one_passed_file,
    a_kept_file_is_sent_again_after_its_validation,
    a_scan_of_many_files_closes_all_but_the_hot_ones,
    purges_and_invalidations_drop_a_kept_file,
);

mod copied {
    //! A channel that copies bodies: they are recorded as over a socket.
    use super::*;

    fn copied() -> Scenario {
        let copying = |origin: &Address| caching_over(Bodies::Copied, origin);
        Scenario { channel: Some(Bodies::Copied), proxy: Some(copying), ..scenario() }
    }

    async fn a_copied_body_is_recorded(scene: Scene) {
        let mut client = scene.connect().await;
        settle(&scene, FILE).await;
        let first = client.get(TARGET).await;
        assert_eq!(cache_status(&first), MISS);
        scene.until(|| figures().index.disk_objects == 1).await;
        assert_eq!(figures().index.passed_objects, 0);
        let hit = client.get(TARGET).await;
        assert!(is_hit(&hit) && hit.body == first.body);
    }

    behaviours!(copied but process and tls; a_copied_body_is_recorded);
}
