//! Changes of any kind by other programs: visible when the hot cache's time is over.

use plimsoll_tests::tree::noise;
use plimsoll_tests::{HOT, Scenario, Scene, Tree, behaviours};

fn scenario() -> Scenario {
    let tree = Tree::new()
        .file("small.txt", "old\n")
        .file("large.bin", noise(1, 100_000))
        .file("page.html", "page as it is")
        .file("both.html", "both as it is")
        .file("both.html.br", "both in br")
        .file("folder/index.html", "<p>the index</p>")
        .file("gone.txt", "gone\n")
        .file("aside/404.html", "<p>our own page</p>");
    Scenario { tree, hot: HOT, ..Scenario::default() }
}

const BR: &str = "Accept-Encoding: br\r\n";

async fn a_change_is_seen_when_the_time_is_over(scene: Scene) {
    let mut client = scene.connect().await;
    for _ in 0..2 {
        assert_eq!(client.get("/small.txt").await.text(), "old\n");
        assert!(client.get("/large.bin").await.body == noise(1, 100_000));
        assert_eq!(client.get("/gone.txt").await.text(), "gone\n");
        assert_eq!(client.get_with("/page.html", BR).await.text(), "page as it is");
        assert_eq!(client.get_with("/both.html", BR).await.text(), "both in br");
        assert_eq!(client.get("/folder/").await.text(), "<p>the index</p>");
    }
    scene.write("small.txt", b"new\n");
    scene.remove("large.bin");
    scene.write("large.bin", &noise(2, 90_000));
    scene.remove("gone.txt");
    scene.write("page.html.br", b"page in br");
    scene.remove("both.html.br");
    scene.remove("folder/index.html");
    scene.io.sleep(HOT.time).await;
    assert_eq!(client.get("/small.txt").await.text(), "new\n");
    assert!(client.get("/large.bin").await.body == noise(2, 90_000));
    assert_eq!(client.get("/gone.txt").await.status, 404);
    // A sibling that was missing is looked up again.
    assert_eq!(client.get_with("/page.html", BR).await.text(), "page in br");
    assert_eq!(client.get_with("/both.html", BR).await.text(), "both as it is");
    assert_ne!(client.get("/folder/").await.text(), "<p>the index</p>");
    // A removed file can return.
    scene.write("gone.txt", b"here again\n");
    assert_eq!(client.get("/gone.txt").await.text(), "here again\n");
}

async fn a_file_that_stays_is_the_same_however_often_it_is_looked_up(scene: Scene) {
    let mut client = scene.connect().await;
    let (small, large) = (client.get("/small.txt").await, client.get("/large.bin").await);
    for _ in 0..3 {
        scene.io.sleep(HOT.time).await;
        for (target, before) in [("/small.txt", &small), ("/large.bin", &large)] {
            let again = client.get(target).await;
            assert_eq!(again.field("ETag"), before.field("ETag"));
            assert!(again.body == before.body);
        }
    }
}

/// A file changed just before it was read may change again with the same timestamps.
async fn a_file_that_changes_all_the_time_is_read_each_time(scene: Scene) {
    let mut client = scene.connect().await;
    for round in 0..4 {
        let text = format!("round {round}\n");
        scene.write("small.txt", text.as_bytes());
        scene.io.sleep(HOT.time).await;
        assert_eq!(client.get("/small.txt").await.text(), text);
    }
}

behaviours!(scenario and tls;
    a_change_is_seen_when_the_time_is_over,
    a_file_that_stays_is_the_same_however_often_it_is_looked_up,
    a_file_that_changes_all_the_time_is_read_each_time,
);
