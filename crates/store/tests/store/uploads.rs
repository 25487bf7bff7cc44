//! Uploads in one request.

use std::pin::pin;
use std::time::Duration;

use plimsoll_io::sim::{Call, Faults, Sim};
use plimsoll_store::limits::{
    AHEAD_BYTES, BUFFERED_BYTES_MAX, BUFFERED_FAST_BYTES_MAX, BUFFERED_TIME, UPLOADS_PER_HOME_MAX,
};
use plimsoll_store::{Algorithm, CommitGuard, Condition, Error, Expected, Quota, Terms};
use sha2::Digest as _;

use super::power::{Change, assert_one_of, cut_everywhere, doing, large, nothing};
use super::{DATA, any, open, path, put, send, send_slowly, with_home};

/// More than is buffered in memory.
const LARGE: usize = 150_000;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|index| u8::try_from(index % 251).unwrap()).collect()
}

#[test]
fn a_file_is_what_was_sent() {
    with_home(|scene| async move {
        for (name, len) in [("empty", 0), ("small", 10), ("large", LARGE)] {
            let committed = put(&scene.io, &scene.home, any(name), &bytes(len)).await.unwrap();
            assert!(committed.created);
            assert_eq!(committed.stat.size, len as u64);
            assert_eq!(scene.contents(name), Some(bytes(len)));
        }
        assert!(scene.pending().is_empty());
        scene.assert_counted().await;
    });
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"old and longer").await.unwrap();
        let committed = put(&scene.io, &scene.home, any("a"), b"new").await.unwrap();
        assert!(!committed.created);
        assert_eq!(scene.contents("a"), Some(b"new".to_vec()));
        scene.assert_counted().await;
    });
}

#[test]
fn one_home_has_a_bounded_number_of_uploads_in_progress() {
    with_home(|scene| async move {
        let begin = async || scene.home.upload(&scene.io, any("a"), Expected::default()).await;
        let mut uploads = Vec::new();
        for _ in 0..UPLOADS_PER_HOME_MAX {
            uploads.push(begin().await.unwrap());
        }
        assert!(matches!(begin().await, Err(Error::TooManyUploads)));
        drop(uploads.pop());
        scene.settle().await;
        uploads.push(begin().await.unwrap());
    });
}

#[test]
fn an_aborted_upload_leaves_no_staging_file() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"old").await.unwrap();
        let expected = Expected::default();
        let mut upload = scene.home.upload(&scene.io, any("a"), expected).await.unwrap();
        send_slowly(&scene.io, &mut upload, &bytes(LARGE)).await.unwrap();
        assert_eq!(scene.pending().len(), 1);
        drop(upload);
        scene.settle().await;
        assert!(scene.pending().is_empty());
        assert_eq!(scene.contents("a"), Some(b"old".to_vec()));
        scene.assert_counted().await;
    });
}

#[test]
fn a_fast_upload_is_written_while_its_sender_pauses() {
    with_home(|scene| async move {
        let mut upload = scene.home.upload(&scene.io, any("a"), Expected::default()).await.unwrap();
        let sent = bytes(AHEAD_BYTES - 1);
        send(&mut upload, &sent, 20_000).await.unwrap();
        assert!(scene.pending().is_empty(), "it is held");
        let at_once = pin!(scene.io.sleep(BUFFERED_TIME / 2));
        upload.meanwhile(at_once).await.unwrap();
        assert!(scene.pending().is_empty(), "more may come at any moment");
        let late = pin!(scene.io.sleep(4 * BUFFERED_TIME));
        upload.meanwhile(late).await.unwrap();
        assert!(scene.pending_bytes().as_ref() == Some(&sent));
        upload.commit().await.unwrap();
        assert!(scene.contents("a").as_ref() == Some(&sent));
    });
}

#[test]
fn an_upload_that_is_alone_is_written_while_more_comes() {
    with_home(|scene| async move {
        let sent = bytes(3 * AHEAD_BYTES);
        let mut upload = scene.home.upload(&scene.io, any("a"), Expected::default()).await.unwrap();
        send(&mut upload, &sent[..AHEAD_BYTES], 40_000).await.unwrap();
        let mut other = scene.home.upload(&scene.io, any("b"), Expected::default()).await.unwrap();
        scene.settle().await;
        assert!(scene.pending_bytes().as_deref() == Some(&sent[..AHEAD_BYTES]), "nobody waited for it");
        // Both are buffered, and written a megabyte at a time.
        send(&mut other, &bytes(BUFFERED_BYTES_MAX), BUFFERED_BYTES_MAX).await.unwrap();
        send(&mut upload, &sent[AHEAD_BYTES..], 40_000).await.unwrap();
        scene.settle().await;
        assert!(scene.pending_bytes().as_deref() == Some(&sent[..AHEAD_BYTES]), "it is not alone");
        drop(other);
        upload.commit().await.unwrap();
        assert!(scene.contents("a").as_ref() == Some(&sent));
        scene.settle().await;
        assert!(scene.pending().is_empty());
    });
}

#[test]
fn a_failed_write_in_the_background_is_reported_at_the_next_call() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"old").await.unwrap();
        for pause in [Duration::ZERO, Duration::from_secs(1)] {
            for quota in [None, Some(AHEAD_BYTES as u64 - 1)] {
                let terms = Terms::any(path("a"), Quota { bytes: quota, ..Quota::default() });
                let mut upload = scene.home.upload(&scene.io, terms, Expected::default()).await.unwrap();
                if quota.is_none() {
                    scene.host.disk().full_after(50);
                }
                send(&mut upload, &bytes(AHEAD_BYTES), 40_000).await.unwrap();
                scene.io.sleep(pause).await;
                let failed = match send(&mut upload, &bytes(BUFFERED_FAST_BYTES_MAX), 40_000).await {
                    Ok(()) => upload.commit().await.map(drop),
                    failed => {
                        drop(upload);
                        failed
                    }
                };
                let is_told = match quota {
                    None => matches!(failed, Err(Error::Full)),
                    Some(_) => matches!(failed, Err(Error::Quota)),
                };
                assert!(is_told, "{failed:?}");
                scene.settle().await;
                assert_eq!(scene.contents("a"), Some(b"old".to_vec()));
                assert!(scene.pending().is_empty());
                scene.assert_counted().await;
            }
        }
    });
}

#[test]
fn digests_are_checked_and_a_wrong_one_leaves_the_old_file() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"old").await.unwrap();
        for (len, right) in [(10, true), (10, false), (LARGE, true), (LARGE, false)] {
            let sent = bytes(len);
            let mut digest = sha2::Sha256::digest(&sent).to_vec();
            digest[31] ^= u8::from(!right);
            let expected = Expected { bytes: Some(len as u64), digests: vec![(Algorithm::Sha256, digest)] };
            let mut upload = scene.home.upload(&scene.io, any("a"), expected).await.unwrap();
            send(&mut upload, &sent, 9_999).await.unwrap();
            let before = scene.contents("a");
            let committed = upload.commit().await;
            scene.settle().await;
            assert!(scene.pending().is_empty());
            if right {
                committed.unwrap();
                assert_eq!(scene.contents("a"), Some(sent));
            } else {
                assert!(matches!(committed, Err(Error::Digest)), "{committed:?}");
                assert_eq!(scene.contents("a"), before);
            }
        }
    });
}

#[test]
fn bytes_are_as_many_as_were_announced() {
    with_home(|scene| async move {
        let expected = |bytes| Expected { bytes: Some(bytes), digests: Vec::new() };
        let mut short = scene.home.upload(&scene.io, any("a"), expected(10)).await.unwrap();
        send(&mut short, b"123456789", 5).await.unwrap();
        assert!(matches!(short.commit().await, Err(Error::Length)));
        let mut long = scene.home.upload(&scene.io, any("a"), expected(3)).await.unwrap();
        assert!(matches!(send(&mut long, b"1234", 1).await, Err(Error::Length)));
        drop(long);
        scene.settle().await;
        assert_eq!((scene.contents("a"), scene.pending().len()), (None, 0));
    });
}

#[test]
fn a_condition_is_weighed_with_the_change() {
    with_home(|scene| async move {
        let new_only = || Terms { condition: Condition::none().and_new(), ..any("a") };
        // Both begin; the first commit wins.
        let expected = Expected::default;
        let mut one = scene.home.upload(&scene.io, new_only(), expected()).await.unwrap();
        let mut two = scene.home.upload(&scene.io, new_only(), expected()).await.unwrap();
        send(&mut one, b"one", 1).await.unwrap();
        send(&mut two, b"two", 1).await.unwrap();
        two.commit().await.unwrap();
        assert!(matches!(one.commit().await, Err(Error::Precondition)));
        assert_eq!(scene.contents("a"), Some(b"two".to_vec()));
        // A later client is refused before it sends any bytes.
        let late = scene.home.upload(&scene.io, new_only(), expected()).await;
        assert!(matches!(late.map(drop), Err(Error::Precondition)));
        scene.settle().await;
        assert!(scene.pending().is_empty());
        scene.assert_counted().await;
    });
}

#[test]
fn an_upload_whose_name_is_taken_meanwhile_gets_its_spare_name_in_the_same_folder() {
    with_home(|scene| async move {
        scene.home.make_folder(&scene.io, path("f"), Quota::default(), false).await.unwrap();
        let new_only = || Terms { condition: Condition::none().and_new(), ..any("f/a") };
        let mut begun = Vec::new();
        for name in [&b"first"[..], b"second", b"second", b"", b"..", b"../a", b"x/a", b".plimsoll-pending"] {
            let mut upload = scene.home.upload(&scene.io, new_only(), Expected::default()).await.unwrap();
            upload.set_spare_name(name.to_vec());
            send(&mut upload, name, 1).await.unwrap();
            begun.push(upload);
        }
        let mut committed = Vec::new();
        for upload in begun {
            committed.push(upload.commit().await);
        }
        let has_spare = |at: usize| committed[at].as_ref().map(|committed| committed.has_spare_name).ok();
        assert_eq!((has_spare(0), has_spare(1)), (Some(false), Some(true)));
        assert!(committed[2..].iter().all(|refused| matches!(refused, Err(Error::Precondition))));
        assert_eq!(scene.contents("f/a"), Some(b"first".to_vec()));
        assert_eq!(scene.contents("f/second"), Some(b"second".to_vec()));
        assert_eq!(scene.home.usage(&scene.io).await.unwrap().files, 2);
        scene.settle().await;
        assert!(scene.pending().is_empty());
        scene.assert_counted().await;
    });
}

#[test]
fn an_obstacle_in_the_path_is_reported_before_the_first_byte() {
    with_home(|scene| async move {
        scene.home.make_folder(&scene.io, path("folder"), Quota::default(), false).await.unwrap();
        put(&scene.io, &scene.home, any("file"), b"x").await.unwrap();
        let begin = async |to: &str| {
            let begun = scene.home.upload(&scene.io, any(to), Expected::default()).await;
            begun.map(drop).unwrap_err()
        };
        assert!(matches!(begin("folder").await, Error::IsFolder));
        assert!(matches!(begin("missing/a").await, Error::NoFolder));
        assert!(matches!(begin("file/a").await, Error::NoFolder));
        assert!(matches!(begin("").await, Error::Home));
    });
}

#[test]
fn a_link_is_replaced_and_not_followed() {
    with_home(|scene| async move {
        let files = "/data/accounts/alice/files";
        scene.host.disk().write("/outside", b"theirs".to_vec()).unwrap();
        scene.host.disk().symlink(format!("{files}/out"), "/outside").unwrap();
        scene.host.disk().symlink(format!("{files}/away"), "/").unwrap();
        put(&scene.io, &scene.home, any("out"), b"mine").await.unwrap();
        assert_eq!(super::contents(&scene.host, "/outside"), Some(b"theirs".to_vec()));
        assert_eq!(scene.contents("out"), Some(b"mine".to_vec()));
        let through = scene.home.upload(&scene.io, any("away/tmp"), Expected::default()).await;
        assert!(matches!(through.map(drop), Err(Error::NoFolder)));
        scene.assert_counted().await;
    });
}

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"old").await.unwrap();
        for len in [100, LARGE] {
            scene.host.disk().full_after(50);
            let failed = put(&scene.io, &scene.home, any("a"), &bytes(len)).await;
            assert!(matches!(failed, Err(Error::Full)), "{failed:?}");
            scene.settle().await;
            assert_eq!(scene.contents("a"), Some(b"old".to_vec()));
            assert!(scene.pending().is_empty());
            scene.assert_counted().await;
        }
    });
}

#[test]
fn a_sync_that_fails_is_never_confirmed() {
    with_home(|scene| async move {
        // The first sync is the file's, the second the folder's.
        for skip in 0..2 {
            let io_error = std::io::ErrorKind::Other;
            let before = scene.host.disk().calls();
            // create, write, sync, rename, sync
            let call = before + if skip == 0 { 3 } else { 5 };
            scene.host.disk().fail_at(call, io_error);
            let failed = put(&scene.io, &scene.home, any("a"), b"new").await;
            assert!(matches!(failed, Err(Error::Failed(_))), "{failed:?}");
            scene.settle().await;
            assert!(scene.pending().is_empty());
        }
        scene.host.disk().fail_next(Call::Rename, std::io::ErrorKind::Other);
        let failed = put(&scene.io, &scene.home, any("b"), b"new").await;
        assert!(matches!(failed, Err(Error::Failed(_))), "{failed:?}");
        scene.settle().await;
        assert_eq!((scene.contents("b"), scene.pending().len()), (None, 0));
        scene.assert_counted().await;
    });
}

#[test]
fn a_commit_that_its_guard_refuses_changes_nothing_and_can_be_made_again() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"old").await.unwrap();
        let mut upload = scene.home.upload(&scene.io, any("a"), Expected::default()).await.unwrap();
        send(&mut upload, &bytes(LARGE), 30_000).await.unwrap();
        let refused = upload.try_commit(Vec::new(), Some(CommitGuard::new(|| false))).await.unwrap();
        assert!(refused.is_none());
        assert_eq!(scene.contents("a"), Some(b"old".to_vec()));
        let committed = upload.try_commit(Vec::new(), Some(CommitGuard::new(|| true))).await.unwrap();
        assert!(committed.is_some_and(|committed| !committed.created));
        assert_eq!(scene.contents("a"), Some(bytes(LARGE)));
        drop(upload);
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        scene.assert_counted().await;
    });
}

#[test]
fn a_prepared_upload_keeps_the_modification_time_of_its_commit_after_a_power_cut() {
    cut_everywhere(&Change {
        before: nothing,
        change: |scene| {
            doing(async move {
                let mut upload = scene.home.upload(&scene.io, any("a"), Expected::default()).await?;
                send(&mut upload, &large(2), 50_000).await?;
                upload.prepare().await?;
                upload.set_modified(Duration::from_secs(1));
                upload.commit().await.map(drop)
            })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "a", None, Some(large(2)), confirmed);
            doing(async move {
                let time = Duration::from_secs(1);
                match scene.home.stat(&scene.io, &path("a")).await {
                    Ok(stat) => assert_eq!(stat.modified, time, "the file appears with its time"),
                    Err(error) => assert!(!confirmed, "{error}"),
                }
                Ok(())
            })
        },
    });
}

/// Returns how long an upload of `len` bytes takes where workers are slow.
fn time_with_slow_workers(seed: u64, is_in_memory: bool, len: usize) -> Duration {
    let sim = Sim::new(seed, Faults { offload_delay_max: Duration::from_secs(1), ..Faults::none() });
    let host = sim.host("server");
    host.disk().mkdir(DATA).unwrap();
    if is_in_memory {
        host.disk().keep_in_memory();
    }
    let (io, store) = (host.io(), open(&host));
    sim.run(&host, async move {
        let home = store.home(&io, 1, "alice").await.unwrap();
        put(&io, &home, any("first"), b"counts the home").await.unwrap();
        let begun = io.now();
        put(&io, &home, any("a"), &bytes(len)).await.unwrap();
        io.now() - begun
    })
}

#[test]
fn a_small_upload_to_a_home_in_memory_waits_for_no_worker() {
    let longest = |is_in_memory, len| {
        (0..20).map(|seed| time_with_slow_workers(seed, is_in_memory, len)).max().unwrap()
    };
    assert_eq!(longest(true, BUFFERED_BYTES_MAX), Duration::ZERO);
    assert!(longest(true, BUFFERED_BYTES_MAX + 1) > Duration::ZERO, "a worker writes a large one");
    assert!(longest(false, BUFFERED_BYTES_MAX) > Duration::ZERO, "a disk may have to be waited for");
}
