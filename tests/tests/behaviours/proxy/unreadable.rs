//! Stored bodies whose files were changed, cut or removed: no client gets a wrong byte, and none is cut
//! off if the origin still has the response.

use std::cell::RefCell;
use std::sync::Arc;

use plimsoll_io::{Address, File};
use plimsoll_proxy::Settings;
use plimsoll_proxy::cache::limits::FILE_TIME_TICK;
use plimsoll_proxy::cache::opening::CacheOpener;
use plimsoll_proxy::cache::response_cache::CacheSizes;
use plimsoll_tests::proxy::plain;
use plimsoll_tests::{Client, Engine, Scenario, Scene, behaviours};

use super::cached::{
    FRESH, LARGE, body, cache_status, log_key, logged, new_folder, number_of, scenario as numbered,
};

const MISS: &str = "plimsoll; fwd=uri-miss; stored";

thread_local! {
    /// The cache of the behaviour that this thread runs, and its folder.
    static CACHE: RefCell<Option<(Arc<CacheOpener>, String)>> = const { RefCell::new(None) };
}

fn scenario() -> Scenario {
    Scenario { proxy: Some(caching), is_large: true, ..numbered() }
}

fn caching(origin: &Address) -> Settings {
    let folder = new_folder();
    let sizes = CacheSizes { disk_bytes_max: 256 << 20, memory_bytes_max: 4 << 20, passed_files_max: 0 };
    let cache = CacheOpener::new(&folder, sizes);
    CACHE.set(Some((Arc::clone(&cache), folder)));
    Settings { cache: Some(cache), ..plain(origin) }
}

fn disk_errors() -> u64 {
    let cache = CACHE.with_borrow(|cache| cache.as_ref().and_then(|(opener, _)| opener.get().cloned()));
    cache.expect("a request has opened the cache").figures().disk_errors
}

/// Returns the folder of the stored files.
fn objects(scene: &Scene) -> File {
    let folder = CACHE.with_borrow(|cache| cache.as_ref().unwrap().1.clone());
    let fs = scene.proxy_fs();
    let root = fs.open_root(folder.as_ref()).unwrap();
    fs.open_beneath(&root, b"objects").unwrap()
}

fn names(scene: &Scene) -> Vec<Vec<u8>> {
    let entries = scene.proxy_fs().names(&objects(scene), 100).unwrap();
    entries.into_iter().map(|entry| entry.name).collect()
}

/// Waits until one response is stored in a file, and opens that.
async fn stored(scene: &Scene) -> File {
    scene.until(|| names(scene).len() == 1).await;
    scene.proxy_fs().open_to_write(&objects(scene), &names(scene)[0]).unwrap()
}

/// What is done to a stored file.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip,
    Cut,
    Lengthen,
    Remove,
}

/// Two changes within one tick of an older kernel have the same ctime.
async fn settle(scene: &Scene) {
    scene.io.sleep(2 * FILE_TIME_TICK).await;
}

fn harm(scene: &Scene, file: &File, harm: Harm) {
    let fs = scene.proxy_fs();
    match harm {
        Harm::Flip => assert_eq!(fs.write_at(file, b"?", 300_000).unwrap(), 1),
        Harm::Cut => fs.set_len(file, 300_000).unwrap(),
        Harm::Lengthen => fs.set_len(file, 10_000_000).unwrap(),
        Harm::Remove => fs.remove_file(&objects(scene), &names(scene)[0]).unwrap(),
    }
}

async fn a_stored_body_that_was_changed_or_cut_is_fetched_again(scene: Scene) {
    let mut client = scene.connect().await;
    for (number, harmed) in [Harm::Flip, Harm::Cut, Harm::Lengthen].into_iter().enumerate() {
        for is_verified in [false, true] {
            let target = format!("/{number}-{is_verified}");
            let fields = format!("{FRESH}X-Size: {LARGE}\r\n");
            let first = client.get_with(&target, &fields).await;
            assert_eq!(cache_status(&first), MISS);
            let file = stored(&scene).await;
            if is_verified {
                let hit = client.get_with(&target, &fields).await;
                assert_eq!(number_of(&hit), number_of(&first));
            }
            let before = disk_errors();
            settle(&scene).await;
            harm(&scene, &file, harmed);
            let second = client.get_with(&target, &fields).await;
            assert_eq!((second.body.len(), cache_status(&second)), (LARGE, MISS), "{harmed:?}");
            assert_ne!(number_of(&second), number_of(&first));
            assert_eq!(disk_errors(), before + 1, "{harmed:?}");
            // The file is gone, and that of the second response is sound.
            let file = stored(&scene).await;
            let third = client.get_with(&target, &fields).await;
            assert_eq!(number_of(&third), number_of(&second));
            assert_eq!(disk_errors(), before + 1, "{harmed:?}");
            harm(&scene, &file, Harm::Remove);
        }
    }
}

/// More than the buffers between proxy and client.
fn huge(scene: &Scene) -> usize {
    if scene.engine == Engine::Simulator { 400_000 } else { 20_000_000 }
}

/// Behind the bytes that the kernel has taken for the client: it zeroes those if their file is cut before
/// them.
fn cut_at(size: usize) -> u64 {
    size as u64 / 4 * 3
}

fn fields(tag: &str, size: usize, key: &str) -> String {
    format!(
        "X-Fields: Cache-Control: max-age=60 | ETag: {tag}\r\nX-Ranges: 1\r\nX-Number: 7\r\n\
         X-Size: {size}\r\nX-Log: {key}\r\n"
    )
}

/// Requests a response, and receives its head only.
async fn begin(scene: &Scene, target: &str, fields: &str) -> Client {
    let mut client = scene.connect().await;
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).await;
    assert_eq!(client.answer_to_head().await.status, 200);
    client
}

async fn a_body_that_fails_while_it_is_sent_is_completed_from_the_origin(scene: Scene) {
    let size = huge(&scene);
    // While it is recorded, and as a hit.
    for is_hit in [false, true] {
        let (target, key) = (format!("/rest-{is_hit}"), log_key());
        let fields = fields("\"a\"", size, &key);
        if is_hit {
            assert!(scene.get_with(&target, &fields).await.body == body(7, size));
            stored(&scene).await;
            assert!(scene.get_with(&target, &fields).await.body == body(7, size));
        }
        let mut client = begin(&scene, &target, &fields).await;
        let file = stored(&scene).await;
        let before = disk_errors();
        scene.proxy_fs().set_len(&file, cut_at(size)).unwrap();
        assert!(client.body(size).await.expect("all of it") == body(7, size), "{is_hit}");
        assert_eq!(disk_errors(), before + 1);
        let log = logged(&key);
        assert!(log.len() == 2 && log[1].contains("bytes="), "{log:?}");
        // The connection stays usable, and the next response is stored.
        assert!(client.get_with(&target, &fields).await.body == body(7, size));
        let file = stored(&scene).await;
        drop(file);
        harm(&scene, &objects(&scene), Harm::Remove);
    }
}

async fn a_body_that_fails_is_cut_short_if_the_origin_has_another(scene: Scene) {
    let size = huge(&scene);
    // The second request tells the origin which tag the response has now.
    for (number, (tag, now)) in [("\"a\"", "\"b\""), ("W/\"a\"", "W/\"a\"")].into_iter().enumerate() {
        let (target, key) = (format!("/changed-{number}"), log_key());
        assert!(scene.get_with(&target, &fields(tag, size, &key)).await.body == body(7, size));
        let file = stored(&scene).await;
        let mut client = begin(&scene, &target, &fields(now, size, &key)).await;
        scene.proxy_fs().set_len(&file, cut_at(size)).unwrap();
        let received = client.expect_abort().await;
        assert!(received.len() < size && body(7, size).starts_with(&received), "{}", received.len());
        scene.until(|| names(&scene).is_empty()).await;
    }
}

behaviours!(scenario but process and tls;
    a_stored_body_that_was_changed_or_cut_is_fetched_again,
    a_body_that_fails_while_it_is_sent_is_completed_from_the_origin,
    a_body_that_fails_is_cut_short_if_the_origin_has_another,
);
