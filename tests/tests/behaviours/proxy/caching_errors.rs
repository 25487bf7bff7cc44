//! The proxy's cache when a body cannot be recorded: its first client and those that wait for it.

use plimsoll_io::Address;
use plimsoll_proxy::cache::response_cache::CacheSizes;
use plimsoll_tests::{Answer, Scenario, Scene, behaviours, together};

use super::cached::{
    FRESH, body, cache_status, log_key, logged, new_folder, number_of, scenario, with_cache,
};

/// A cache whose largest object is smaller than a large body.
fn small() -> Scenario {
    let proxy = |origin: &Address| {
        let sizes = CacheSizes { disk_bytes_max: 1 << 20, memory_bytes_max: 1 << 20, passed_files_max: 0 };
        with_cache(&new_folder(), sizes, origin)
    };
    Scenario { proxy: Some(proxy), ..scenario() }
}

/// More than the largest object of that.
const GROWN: usize = 200_000;

/// A cache whose folder a behaviour can find.
fn broken() -> Scenario {
    let proxy = |origin: &Address| {
        let sizes = CacheSizes { disk_bytes_max: 64 << 20, memory_bytes_max: 4 << 20, passed_files_max: 0 };
        with_cache(&folder_of(origin), sizes, origin)
    };
    Scenario { proxy: Some(proxy), ..scenario() }
}

fn folder_of(origin: &Address) -> String {
    let name = origin.to_string().replace(['/', ':'], "-");
    format!("{}/broken-{}-{name}", env!("CARGO_TARGET_TMPDIR"), std::process::id())
}

/// Gets the same resource on several connections at once.
async fn visit(scene: &Scene, target: &str, fields: &str) -> Vec<Answer> {
    let visits = (0..6).map(|_| {
        let (scene, target, fields) = (scene.clone(), target.to_owned(), fields.to_owned());
        async move { scene.get_with(&target, &fields).await }
    });
    together(visits).await
}

async fn clients_of_a_body_that_grows_too_large_get_all_of_it(scene: Scene) {
    // With the pause, all clients have a part of the body when the recording fails.
    let fields = format!(
        "X-Fields: Cache-Control: max-age=60 | ETag: \"a\"\r\nX-Ranges: 1\r\nX-Number: 7\r\nX-Delay: 30\r\n\
         X-Chunked: 1\r\nX-Size: {GROWN}\r\nX-Pause: 30\r\n"
    );
    for round in 0.. {
        let (target, key) = (format!("/grows-{round}"), log_key());
        let fields = format!("{fields}X-Log: {key}\r\n");
        let answers = visit(&scene, &target, &fields).await;
        assert!(answers.iter().all(|answer| answer.body == body(7, GROWN)));
        let later = scene.get_with(&target, &fields).await;
        assert!(later.body == body(7, GROWN));
        assert_eq!(cache_status(&later), "plimsoll; fwd=uri-miss; detail=unrecordable");
        // A loaded machine may have delayed the other clients.
        if logged(&key).iter().any(|line| line.contains("bytes=")) {
            break;
        }
    }
}

async fn a_body_that_changed_is_never_joined_to_one_that_was_cut_short(scene: Scene) {
    // Each request gets another body. Only a weak tag says that they are the same.
    for (number, tag) in ["", " | ETag: W/\"a\""].into_iter().enumerate() {
        let fields = format!(
            "X-Fields: Cache-Control: max-age=60{tag}\r\nX-Ranges: 1\r\nX-Delay: 30\r\nX-Chunked: 1\r\n\
             X-Size: {GROWN}\r\nX-Pause: 30\r\n"
        );
        let request = format!("GET /changes-{number} HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
        let visits = (0..4).map(|_| {
            let (scene, request) = (scene.clone(), request.clone());
            async move {
                let mut client = scene.connect().await;
                client.send(request).await;
                match client.try_answer(true).await {
                    Ok(answer) => u64::from(number_of(&answer) > 0 && answer.body.len() == GROWN),
                    Err(_) => 0,
                }
            }
        });
        // The first client at least has all of it.
        assert!(together(visits).await.iter().sum::<u64>() > 0);
    }
}

async fn clients_that_wait_for_a_body_are_served_when_the_disk_fails(scene: Scene) {
    assert_eq!(scene.get_with("/small", FRESH).await.status, 200);
    let folder = folder_of(scene.origin.as_ref().expect("an origin"));
    let root = scene.proxy_fs().open_root(folder.as_ref()).expect("the cache is open");
    scene.proxy_fs().remove_folder(&root, b"pending").expect("nothing is being written");
    // In its place, so that the folder cannot be made again.
    scene.proxy_fs().create(&root, b"pending").expect("a file");
    let fields = format!("{FRESH}X-Delay: 30\r\nX-Size: {GROWN}\r\n");
    let mut numbers: Vec<u64> = visit(&scene, "/x", &fields).await.iter().map(number_of).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 6, "each client has its own response");
    let small = scene.get_with("/small", FRESH).await;
    assert!(cache_status(&small).starts_with("plimsoll; hit"), "the memory is used on");
}

behaviours!(small but process and tls;
    clients_of_a_body_that_grows_too_large_get_all_of_it,
    a_body_that_changed_is_never_joined_to_one_that_was_cut_short,
);

mod disk {
    use super::{behaviours, broken, clients_that_wait_for_a_body_are_served_when_the_disk_fails};

    behaviours!(broken but process and tls; clients_that_wait_for_a_body_are_served_when_the_disk_fails);
}
