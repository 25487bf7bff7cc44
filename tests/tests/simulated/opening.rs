//! A cache that takes long to open, as one with many files on a slow disk: requests wait for it a short time.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_io::Address;
use plimsoll_io::sim::Faults;
use plimsoll_proxy::Settings;
use plimsoll_proxy::cache::limits::OPENING_TIME_MAX;
use plimsoll_proxy::cache::opening::CacheOpener;
use plimsoll_proxy::cache::response_cache::CacheSizes;
use plimsoll_tests::proxy::plain;
use plimsoll_tests::under::simulated;
use plimsoll_tests::{Answer, Scenario, Scene, Tree};

/// The longest time before a job of the disk begins.
const SLOW: Duration = Duration::from_secs(60);
/// Much longer than all else that a request takes in the simulator, where only the disk is slow.
const SOON: Duration = Duration::from_secs(1);

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n");
    Scenario { tree, proxy: Some(caching), ..Scenario::default() }
}

fn caching(origin: &Address) -> Settings {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = format!("{}/opening-{}-{number}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let sizes = CacheSizes { disk_bytes_max: 64 << 20, memory_bytes_max: 4 << 20, passed_files_max: 0 };
    Settings { cache: Some(CacheOpener::new(folder, sizes)), ..plain(origin) }
}

async fn a_request_waits_a_short_time(scene: Scene, given_up: Rc<Cell<usize>>) {
    let before = scene.io.now();
    let first = scene.get("/healthz").await;
    let waited = scene.io.now() - before;
    assert_eq!(first.status, 200);
    assert!(waited < OPENING_TIME_MAX + SOON, "{waited:?}");
    let is_without = |answer: &Answer| {
        answer.field("Cache-Status").expect("of every answer").ends_with("; detail=opening")
    };
    given_up.set(given_up.get() + usize::from(is_without(&first)));
    // In the end it is open.
    scene.io.sleep(3 * SLOW).await;
    assert!(!is_without(&scene.get("/healthz").await));
}

#[test]
fn a_request_waits_for_the_cache_a_short_time_only() {
    let given_up = Rc::new(Cell::new(0));
    for seed in 0..20 {
        let faults = Faults { offload_delay_max: SLOW, ..Faults::none() };
        let counted = Rc::clone(&given_up);
        simulated(seed, faults, &scenario(), |scene| a_request_waits_a_short_time(scene, counted));
    }
    assert!(given_up.get() > 0, "some requests are forwarded without the cache");
}
