//! Repeated requests for a site's files: the same answer from the hot cache as from the disk.

use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Client, Engine, Scenario, Scene, Tree, behaviours};

use super::FOR_EVER;

/// Sizes that are sent in one write with their head, cached as bytes, and cached as open files.
const SIZES: [usize; 5] = [0, 1_000, 10_000, 32_768, 100_000];

fn scenario() -> Scenario {
    let mut tree = Tree::new()
        .file("page.html", "page as it is")
        .file("page.html.br", "page in br")
        .file("folder/index.html", "<p>the index</p>")
        .file("aside/404.html", "<p>our own page</p>");
    for size in SIZES {
        tree = tree.file(format!("{size}.bin"), noise(size as u64, size));
    }
    Scenario { tree, hot: FOR_EVER, ..Scenario::default() }
}

/// Returns the whole answer except `Date`.
fn lasting(answer: &Answer) -> (u16, Vec<&(String, String)>, &[u8]) {
    (answer.status, answer.fields.iter().filter(|(name, _)| name != "Date").collect(), &answer.body)
}

async fn each_three_times(client: &mut Client, target: &str, fields: &str) -> Answer {
    let first = client.get_with(target, fields).await;
    for _ in 0..2 {
        let again = client.get_with(target, fields).await;
        assert!(lasting(&again) == lasting(&first), "{target} {fields:?}: {:?}", again.fields);
    }
    first
}

/// Returns the server's figures of its hot cache.
async fn figures(client: &mut Client) -> serde_json::Value {
    client.status().await.json()["hot_set"].take()
}

async fn a_hot_file_is_sent_as_a_cold_one(scene: Scene) {
    let mut client = scene.connect().await;
    for size in SIZES {
        let answer = each_three_times(&mut client, &format!("/{size}.bin"), "").await;
        assert_eq!(answer.status, 200);
        assert!(answer.body == noise(size as u64, size), "{size} bytes");
        let head = client.head_with(&format!("/{size}.bin"), "").await;
        assert_eq!(head.field("Content-Length"), Some(&*size.to_string()));
        assert_eq!(head.field("ETag"), answer.field("ETag"));
    }
    assert_eq!(each_three_times(&mut client, "/folder/", "").await.text(), "<p>the index</p>");
    let figures = figures(&mut client).await;
    assert!(figures["hits"].as_u64() >= Some(10), "{figures}");
}

async fn ranges_and_conditions_hold_for_hot_files(scene: Scene) {
    let mut client = scene.connect().await;
    for size in &SIZES[1..] {
        let (target, bytes) = (format!("/{size}.bin"), noise(*size as u64, *size));
        let whole = client.get(&target).await;
        let tag = whole.field("ETag").expect("a tag");
        let part = each_three_times(&mut client, &target, "Range: bytes=10-29\r\n").await;
        assert_eq!((part.status, &part.body[..]), (206, &bytes[10..30]));
        let last = each_three_times(&mut client, &target, "Range: bytes=-5\r\n").await;
        assert_eq!(last.body, bytes[bytes.len() - 5..]);
        let parts = client.get_with(&target, "Range: bytes=0-1,5-6\r\n").await;
        assert_eq!(parts.status, 206);
        assert!(parts.field("Content-Type").is_some_and(|media| media.starts_with("multipart/byteranges")));
        assert_eq!(parts.field("Content-Length"), Some(&*parts.body.len().to_string()));
        for part in [&bytes[0..2], &bytes[5..7]] {
            assert!(parts.body.windows(2).any(|window| window == part));
        }
        let beyond = format!("Range: bytes={size}-\r\n");
        assert_eq!(client.get_with(&target, &beyond).await.status, 416);
        let known = format!("If-None-Match: {tag}\r\n");
        assert_eq!(each_three_times(&mut client, &target, &known).await.status, 304);
        assert_eq!(client.get_with(&target, "If-Match: \"other\"\r\n").await.status, 412);
    }
}

async fn each_client_gets_the_encoding_that_it_takes(scene: Scene) {
    let mut client = scene.connect().await;
    for _ in 0..3 {
        for (accepted, expected) in
            [("br", "page in br"), ("gzip", "page as it is"), ("gzip, br", "page in br")]
        {
            let answer = client.get_with("/page.html", &format!("Accept-Encoding: {accepted}\r\n")).await;
            assert_eq!(answer.text(), expected);
        }
        assert_eq!(client.get("/page.html").await.text(), "page as it is");
    }
}

/// With an endless time, a change by another program is never seen in a file that is cached as bytes. This
/// is how the other behaviours can be sure that the hot cache answered.
async fn a_cached_file_is_sent_without_a_lookup(scene: Scene) {
    let mut client = scene.connect().await;
    let before = client.get("/1000.bin").await;
    scene.remove("1000.bin");
    let after = client.get("/1000.bin").await;
    assert!(lasting(&after) == lasting(&before));
    assert!(lasting(&client.get("/1000.bin?x").await) == lasting(&before));
    assert_eq!(client.get("/1001.bin").await.status, 404);
}

/// Length and tag are those of the bytes sent, which are the file's.
async fn an_open_file_that_was_written_to_is_looked_up_at_once(scene: Scene) {
    let mut client = scene.connect().await;
    let before = client.get("/100000.bin").await;
    for (seed, size) in [(1, 50_000), (2, 200_000), (3, 100_000)] {
        scene.write("100000.bin", &noise(seed, size));
        let answer = client.get("/100000.bin").await;
        assert!(answer.body == noise(seed, size));
        assert_ne!(answer.field("ETag"), before.field("ETag"));
    }
}

async fn an_open_file_that_was_removed_is_closed_at_the_next_check(scene: Scene) {
    let mut client = scene.connect().await;
    client.get("/100000.bin").await;
    client.get("/1000.bin").await;
    scene.hot.evict_changed(scene.fs());
    assert_eq!(scene.hot.figures().entries, 2, "nothing has changed");
    scene.remove("100000.bin");
    scene.hot.evict_changed(scene.fs());
    assert_eq!(scene.hot.figures().entries, 1, "its blocks would not be free");
}

async fn an_open_file_without_requests_is_closed(scene: Scene) {
    let mut client = scene.connect().await;
    client.get("/100000.bin").await;
    client.get("/1000.bin").await;
    assert_eq!(scene.hot.figures().entries, 2);
    scene.hot.evict_idle();
    client.get("/100000.bin").await;
    scene.hot.evict_idle();
    assert_eq!(scene.hot.figures().entries, 2, "it was asked for in between");
    scene.hot.evict_idle();
    assert_eq!(scene.hot.figures().entries, 1, "bytes take no descriptor, and stay");
    assert!(client.get("/100000.bin").await.body == noise(100_000, 100_000));
}

behaviours!(scenario and tls;
    a_hot_file_is_sent_as_a_cold_one,
    ranges_and_conditions_hold_for_hot_files,
    each_client_gets_the_encoding_that_it_takes,
    a_cached_file_is_sent_without_a_lookup,
    an_open_file_that_was_written_to_is_looked_up_at_once,
);

// The serving process closes them itself.
mod swept {
    use super::*;

    behaviours!(scenario but process and tls;
        an_open_file_without_requests_is_closed,
        an_open_file_that_was_removed_is_closed_at_the_next_check,
    );
}

mod budget {
    use super::*;

    /// More files than the budget is for.
    const FILES: u64 = 160;
    const FILE_BYTES: usize = 9_000;

    fn scenario() -> Scenario {
        let file = |at| (format!("{at}.bin"), noise(at, FILE_BYTES));
        let tree = (0..FILES).map(file).fold(Tree::new(), |tree, (name, bytes)| tree.file(name, bytes));
        Scenario { tree, hot: FOR_EVER, ..Scenario::default() }
    }

    async fn cached_files_never_take_more_than_the_budget(scene: Scene) {
        let mut client = scene.connect().await;
        for at in (0..FILES).chain(0..FILES) {
            assert!(client.get(&format!("/{at}.bin")).await.body == noise(at, FILE_BYTES));
            let figures = figures(&mut client).await;
            assert!(figures["bytes"].as_u64() <= figures["bytes_max"].as_u64(), "{figures}");
        }
        let figures = figures(&mut client).await;
        assert!(figures["entries"].as_u64() > Some(0), "{figures}");
        assert_eq!(figures["bytes_max"], FOR_EVER.bytes_max);
        // Under the engine `process`, each connection has a separate cache.
        if scene.engine != Engine::Process {
            assert_eq!(figures["entries"], scene.hot.figures().entries);
        }
    }

    behaviours!(scenario and tls; cached_files_never_take_more_than_the_budget);
}
