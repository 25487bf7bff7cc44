//! Quotas are exact, also with concurrent uploads.

use plimsoll_io::Existing;
use plimsoll_store::limits::BUFFERED_FAST_BYTES_MAX;
use plimsoll_store::{Condition, End, Error, Expected, NewUpload, Quota, RemovalKind, Terms};

use super::{Scene, any, path, put, send, with_home};

fn under(to: &str, quota: Quota) -> Terms {
    Terms::any(path(to), quota)
}

const TEN_FILES: Quota = Quota { bytes: None, files: Some(10), keeps_trash: false };

#[test]
fn of_64_writers_at_once_as_many_get_in_as_may() {
    with_home(|scene| async move {
        let mut begun = Vec::new();
        for number in 0..64 {
            let terms = under(&format!("{number}"), TEN_FILES);
            let mut upload = scene.home.upload(&scene.io, terms, Expected::default()).await.unwrap();
            send(&mut upload, b"x", 1).await.unwrap();
            begun.push(Box::pin(upload.commit()));
        }
        let mut in_place = 0;
        for ended in all(begun).await {
            match ended {
                Ok(_) => in_place += 1,
                Err(Error::Quota) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(in_place, 10);
        assert_eq!(super::names(&scene.host, "/data/accounts/alice/files").len(), 10);
        scene.settle().await;
        assert!(scene.pending().is_empty());
        scene.assert_counted().await;
    });
}

/// Polls all futures until all have ended.
async fn all<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = std::pin::Pin::new(future).poll(cx)
            {
                *output = Some(ready);
            }
        }
        if outputs.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[test]
fn bytes_are_bounded_and_a_smaller_file_may_always_replace_a_larger() {
    with_home(|scene| async move {
        let quota = Quota { bytes: Some(100), files: None, keeps_trash: false };
        put(&scene.io, &scene.home, under("a", quota), &[1; 80]).await.unwrap();
        let too_much = put(&scene.io, &scene.home, under("b", quota), &[1; 21]).await;
        assert!(matches!(too_much, Err(Error::Quota)));
        put(&scene.io, &scene.home, under("b", quota), &[1; 20]).await.unwrap();
        put(&scene.io, &scene.home, under("a", quota), &[2; 80]).await.unwrap();
        put(
            &scene.io,
            &scene.home,
            under("a", Quota { bytes: Some(1), files: None, keeps_trash: false }),
            b"",
        )
        .await
        .unwrap();
        scene.assert_counted().await;
    });
}

#[test]
fn an_announced_length_over_the_quota_is_refused_before_the_first_byte() {
    with_home(|scene| async move {
        let quota = Quota { bytes: Some(100), files: None, keeps_trash: false };
        let expected = Expected { bytes: Some(101), digests: Vec::new() };
        let begun = scene.home.upload(&scene.io, under("a", quota), expected).await;
        assert!(matches!(begun.map(drop), Err(Error::Quota)));
    });
}

#[test]
fn uploads_in_progress_claim_no_more_than_the_quota() {
    with_home(|scene| async move {
        let quota = Quota { bytes: Some(100_000), files: None, keeps_trash: false };
        let announced = |bytes| Expected { bytes: Some(bytes), digests: Vec::new() };
        let one = scene.home.upload(&scene.io, under("a", quota), announced(60_000)).await.unwrap();
        let two = scene.home.upload(&scene.io, under("b", quota), announced(60_000)).await;
        assert!(matches!(two.map(drop), Err(Error::Quota)));
        drop(one);
        scene.settle().await;
        scene.home.upload(&scene.io, under("b", quota), announced(60_000)).await.map(drop).unwrap();
        scene.settle().await;
        // An upload of unknown length fails when it reaches the quota.
        let bytes = vec![1; 2 * BUFFERED_FAST_BYTES_MAX];
        let mut long = scene.home.upload(&scene.io, under("c", quota), Expected::default()).await.unwrap();
        assert!(matches!(send(&mut long, &bytes, 10_000).await, Err(Error::Quota)));
        drop(long);
        scene.settle().await;
        assert!(scene.pending().is_empty());
    });
}

async fn bob(scene: &Scene, quota: Quota, to: &str) -> End {
    End { home: scene.store.home(&scene.io, 2, "bob").await.unwrap(), path: path(to), quota }
}

#[test]
fn a_file_moved_to_another_home_counts_for_that_home() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), &[1; 50]).await.unwrap();
        let from = || End { home: scene.home.clone(), path: path("a"), quota: Quota::default() };
        let little = Quota { bytes: Some(49), files: None, keeps_trash: false };
        let moved = from().rename(&scene.io, bob(&scene, little, "a").await, Existing::Kept).await;
        assert!(matches!(moved, Err(Error::Quota)), "{moved:?}");
        assert_eq!(scene.contents("a"), Some(vec![1; 50]));
        let enough = Quota { bytes: Some(50), files: None, keeps_trash: false };
        from().rename(&scene.io, bob(&scene, enough, "a").await, Existing::Kept).await.unwrap();
        scene.assert_counted().await;
        assert_eq!(scene.home.usage(&scene.io).await.unwrap().bytes, 0);
        assert_eq!(bob(&scene, enough, "a").await.home.usage(&scene.io).await.unwrap().bytes, 50);
    });
}

#[test]
fn folders_are_bounded_too() {
    with_home(|scene| async move {
        let quota = Quota { bytes: None, files: Some(1), keeps_trash: false };
        scene.home.make_folder(&scene.io, path("one"), quota, false).await.unwrap();
        let more = scene.home.make_folder(&scene.io, path("two"), quota, false).await;
        assert!(matches!(more, Err(Error::Quota)));
        put(&scene.io, &scene.home, under("file", quota), b"x").await.unwrap();
        let any: Condition = Condition::none();
        scene.home.remove(&scene.io, path("one"), RemovalKind::Any, any).await.unwrap();
        scene.home.make_folder(&scene.io, path("two"), quota, false).await.unwrap();
        scene.settle().await;
        scene.assert_counted().await;
    });
}

#[test]
fn an_upload_that_has_expired_holds_no_room() {
    with_home(|scene| async move {
        let quota = Quota { bytes: Some(100), files: None, keeps_trash: false };
        let new = NewUpload { terms: under("big", quota), bytes: Some(100), metadata: String::new() };
        scene.home.create_resumable(&scene.io, new).await.unwrap();
        let small = put(&scene.io, &scene.home, under("small", quota), b"12345").await;
        assert!(matches!(small, Err(Error::Quota)), "it is under way");
        scene.io.sleep(super::KEPT * 2).await;
        put(&scene.io, &scene.home, under("small", quota), b"12345").await.unwrap();
        assert!(scene.pending().is_empty());
    });
}

#[test]
fn a_copy_takes_room_before_its_bytes() {
    with_home(|scene| async move {
        let quota = Quota { bytes: Some(100), files: None, keeps_trash: false };
        put(&scene.io, &scene.home, under("a", quota), &[1; 40]).await.unwrap();
        let waiting = Expected { bytes: Some(60), digests: Vec::new() };
        let upload = scene.home.upload(&scene.io, under("b", quota), waiting).await.unwrap();
        let end = |at: &str| End { home: scene.home.clone(), path: path(at), quota };
        let before = scene.host.disk().calls();
        let copied =
            end("a").copy(&scene.io, end("c"), Existing::Kept, plimsoll_store::Depth::Infinity).await;
        copied.unwrap();
        let more = end("a").copy(&scene.io, end("d"), Existing::Kept, plimsoll_store::Depth::Infinity).await;
        assert!(matches!(more, Err(Error::Quota)), "{more:?}");
        assert!(scene.host.disk().calls() > before);
        drop(upload);
        scene.settle().await;
        scene.assert_counted().await;
    });
}
