//! The proxy's cache in front of a resource that changes while several clients request it.

use plimsoll_tests::{Scene, behaviours, together};

use super::cached::{number_of, scenario};

/// More than the cache stores in memory, so that each version has a file.
const SIZE: usize = 150_000;
const CLIENTS: usize = 3;
const VERSIONS: usize = 4;
/// Requests of a client for each version, one closely behind the other.
const REQUESTS: usize = 3;

/// While one request validates a stored version, another stores a newer copy, and the file of the first is
/// removed.
async fn each_client_gets_the_present_version_while_others_replace_it(scene: Scene) {
    let visits = (0..CLIENTS).map(|_| {
        let scene = scene.clone();
        async move {
            let mut client = scene.connect().await;
            for version in 1..=VERSIONS {
                let fields = format!(
                    "X-Fields: Cache-Control: no-cache | ETag: \"{version}\"\r\nX-Number: {version}\r\n\
                     X-Size: {SIZE}\r\n"
                );
                for _ in 0..REQUESTS {
                    let answer = client.get_with("/changes", &fields).await;
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    assert_eq!((number_of(&answer), answer.body.len()), (version as u64, SIZE));
                }
            }
        }
    });
    together(visits).await;
}

behaviours!(scenario but process and tls; each_client_gets_the_present_version_while_others_replace_it);
