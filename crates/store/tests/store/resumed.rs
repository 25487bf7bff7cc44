//! Uploads that are identified by their path alone: interrupted, kept and resumed.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use plimsoll_io::EndProbe;
use plimsoll_io::sim::Call;
use plimsoll_store::limits::{
    BUFFERED_FAST_BYTES_MAX, COPIED_AT_ONCE_BYTES_MAX, RECORDED_EVERY, TAKEN_OVER_TIME,
};
use plimsoll_store::{Begin, Condition, Error, NewUpload, NotResumable, Quota, RemovalKind, Terms, Upload};

use super::{KEPT, Scene, any, nothing_comes, path, put, send, send_slowly, with_home};

/// More than one buffer.
const LARGE: usize = 3 << 20;

pub(super) fn bytes(fill: u8, len: usize) -> Vec<u8> {
    (0..len).map(|index| fill ^ u8::try_from(index % 251).unwrap()).collect()
}

pub(super) fn len(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap()
}

pub(super) async fn begin(scene: &Scene, to: &str, from: Begin) -> Result<Upload, Error> {
    scene.home.upload_from(&scene.io, any(to), from, true).await
}

/// Begins an upload, sends some of it, and interrupts it.
async fn interrupt(scene: &Scene, to: &str, from: Begin, bytes: &[u8]) {
    let mut upload = begin(scene, to, from).await.unwrap();
    send(&mut upload, bytes, 300_000).await.unwrap();
    drop(upload);
    scene.settle().await;
}

/// Makes a whole upload; returns the offset at which it began.
pub(super) async fn whole(scene: &Scene, to: &str, from: Begin, bytes: &[u8]) -> Result<u64, Error> {
    let mut upload = begin(scene, to, from).await?;
    let start_offset = upload.start_offset();
    send(&mut upload, bytes, 300_000).await?;
    upload.commit().await?;
    Ok(start_offset)
}

pub(super) async fn pending(scene: &Scene, to: &str) -> Option<u64> {
    scene.home.pending_at(&scene.io, &path(to)).await.unwrap().first().map(|kept| kept.offset)
}

#[test]
fn a_file_appears_whole_when_its_upload_is_complete() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"old").await.unwrap();
        let mut upload = begin(&scene, "a", Begin::Start).await.unwrap();
        assert_eq!((upload.start_offset(), upload.announced()), (0, None));
        send(&mut upload, &bytes(1, LARGE), 300_000).await.unwrap();
        assert_eq!(scene.contents("a"), Some(b"old".to_vec()));
        upload.commit().await.unwrap();
        assert_eq!(scene.contents("a"), Some(bytes(1, LARGE)));
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        scene.assert_counted().await;
    });
}

#[test]
fn a_commit_cancelled_before_its_rename_is_kept_and_a_later_cancel_has_no_effect() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"old").await.unwrap();
        let mut upload = begin(&scene, "a", Begin::Start).await.unwrap();
        send(&mut upload, &bytes(1, LARGE), 300_000).await.unwrap();
        upload.cancel_handle(None).cancel();
        assert!(matches!(upload.commit().await, Err(Error::Cancelled)));
        assert_eq!(scene.contents("a"), Some(b"old".to_vec()));
        assert_eq!(pending(&scene, "a").await, Some(LARGE as u64));
        let mut upload = begin(&scene, "a", Begin::Offset(LARGE as u64)).await.unwrap();
        let cancel = upload.cancel_handle(None);
        upload.commit().await.unwrap();
        cancel.cancel();
        assert_eq!(scene.contents("a"), Some(bytes(1, LARGE)));
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        scene.assert_counted().await;
    });
}

#[test]
fn an_upload_whose_client_has_gone_when_it_is_renamed_is_cancelled_and_kept() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"old").await.unwrap();
        let mut upload = begin(&scene, "a", Begin::Start).await.unwrap();
        send(&mut upload, &bytes(1, LARGE), 300_000).await.unwrap();
        let has_gone = Arc::new(AtomicBool::new(false));
        let gone = Arc::clone(&has_gone);
        let _cancel = upload.cancel_handle(Some(EndProbe::new(move || gone.load(Ordering::Relaxed))));
        upload.prepare().await.unwrap();
        has_gone.store(true, Ordering::Relaxed);
        assert!(matches!(upload.commit().await, Err(Error::Cancelled)));
        assert_eq!(scene.contents("a"), Some(b"old".to_vec()));
        assert_eq!(pending(&scene, "a").await, Some(LARGE as u64));
    });
}

#[test]
fn an_aborted_upload_is_kept_and_resumed() {
    with_home(|scene| async move {
        for part in [1, 5_000, 150_000, LARGE] {
            let sent = bytes(2, part + 70_000);
            interrupt(&scene, "a", Begin::Start, &sent[..part]).await;
            assert_eq!((scene.contents("a"), scene.pending().len()), (None, 2));
            let scene = scene.started_again().await;
            let listed = scene.home.resumable_uploads(&scene.io).await.unwrap();
            assert_eq!(listed.len(), 1);
            assert_eq!((listed[0].offset, listed[0].bytes), (part as u64, None));
            assert_eq!(pending(&scene, "a").await, Some(part as u64));
            assert_eq!(pending(&scene, "b").await, None);
            let from = Begin::Offset(part as u64);
            assert_eq!(whole(&scene, "a", from, &sent[part..]).await.unwrap(), part as u64);
            assert_eq!(scene.contents("a"), Some(sent));
            assert_eq!((pending(&scene, "a").await, scene.pending().len()), (None, 0));
            scene.home.remove(&scene.io, path("a"), RemovalKind::File, Condition::none()).await.unwrap();
            scene.assert_counted().await;
        }
    });
}

#[test]
fn of_one_of_which_nothing_came_nothing_is_left() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("file"), b"text").await.unwrap();
        for (to, from) in [("a", Begin::Start), ("a", Begin::End), ("file", Begin::End)] {
            interrupt(&scene, to, from, b"").await;
            assert!(scene.pending().is_empty(), "{:?}", scene.pending());
            assert_eq!(pending(&scene, to).await, None);
        }
    });
}

#[test]
fn a_small_upload_costs_no_more_calls_than_one_that_is_not_kept() {
    with_home(|scene| async move {
        let calls = async |keep| {
            let before = scene.host.disk().calls();
            let begun = scene.home.upload_from(&scene.io, any("a"), Begin::Start, keep).await;
            let mut upload = begun.unwrap();
            send(&mut upload, b"x", 1).await.unwrap();
            upload.commit().await.unwrap();
            scene.host.disk().calls() - before
        };
        assert_eq!(calls(true).await, calls(false).await);
    });
}

#[test]
fn an_aborted_upload_into_a_share_is_not_kept_and_leaves_the_owners_alone() {
    with_home(|scene| async move {
        interrupt(&scene, "a", Begin::Start, b"the owner's").await;
        for size in [500, LARGE] {
            let begun = scene.home.upload_from(&scene.io, any("a"), Begin::Start, false).await;
            let mut upload = begun.unwrap();
            send(&mut upload, &bytes(1, size), 100_000).await.unwrap();
            drop(upload);
            scene.settle().await;
            assert_eq!((scene.pending().len(), pending(&scene, "a").await), (2, Some(11)));
        }
        let begun = scene.home.upload_from(&scene.io, any("a"), Begin::Offset(3), false).await;
        assert!(matches!(begun.map(drop), Err(Error::Offset(0))));
        for from in [Begin::End, Begin::EndAt(0)] {
            let begun = scene.home.upload_from(&scene.io, any("a"), from, false).await;
            assert_eq!(begun.unwrap().start_offset(), 0);
        }
    });
}

#[test]
fn an_offset_goes_on_from_what_was_kept_cut_to_it() {
    with_home(|scene| async move {
        interrupt(&scene, "a", Begin::Start, b"0123456789").await;
        interrupt(&scene, "a", Begin::Offset(6), b"").await;
        assert_eq!(pending(&scene, "a").await, Some(6), "cut, though nothing came");
        interrupt(&scene, "a", Begin::Offset(4), b"xyz").await;
        let scene = scene.started_again().await;
        assert_eq!(pending(&scene, "a").await, Some(7));
        assert_eq!(whole(&scene, "a", Begin::Offset(7), b"").await.unwrap(), 7);
        assert_eq!(scene.contents("a"), Some(b"0123xyz".to_vec()));
        assert!(scene.pending().is_empty());
        scene.assert_counted().await;
    });
}

#[test]
fn an_offset_begins_with_that_much_of_the_file_if_nothing_was_kept() {
    with_home(|scene| async move {
        // Few bytes are copied at once, many as long-running work.
        for part in [1, len(COPIED_AT_ONCE_BYTES_MAX), len(COPIED_AT_ONCE_BYTES_MAX) + 1, LARGE] {
            let old = bytes(4, LARGE);
            put(&scene.io, &scene.home, any("a"), &old).await.unwrap();
            let mut upload = begin(&scene, "a", Begin::Offset(part as u64)).await.unwrap();
            assert_eq!((upload.start_offset(), upload.bytes()), (part as u64, part as u64));
            send(&mut upload, b"new", 3).await.unwrap();
            assert_eq!(scene.contents("a").as_ref(), Some(&old));
            assert!(!upload.commit().await.unwrap().created);
            assert_eq!(scene.contents("a"), Some([&old[..part], b"new"].concat()));
            assert!(scene.pending().is_empty());
            scene.assert_counted().await;
        }
    });
}

#[test]
fn an_offset_beyond_what_there_is_tells_how_much_there_is() {
    with_home(|scene| async move {
        let refused = async |offset| match begin(&scene, "a", Begin::Offset(offset)).await.map(drop) {
            Err(Error::Offset(there)) => there,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(1).await, 0);
        interrupt(&scene, "a", Begin::Start, b"12345").await;
        assert_eq!(refused(6).await, 5);
        assert_eq!(pending(&scene, "a").await, Some(5), "it is still there");
        scene
            .home
            .discard_upload(&scene.io, scene.home.resumable_uploads(&scene.io).await.unwrap()[0].id)
            .await
            .unwrap();
        put(&scene.io, &scene.home, any("a"), b"1234567").await.unwrap();
        assert_eq!(refused(8).await, 7);
    });
}

fn why(refused: Result<Upload, Error>) -> NotResumable {
    match refused.map(drop) {
        Err(Error::NotResumable(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_and_an_interrupted_upload_to_its_path_are_never_mixed() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"file").await.unwrap();
        interrupt(&scene, "a", Begin::Start, b"0123456789").await;
        let both = NotResumable::FileAndUpload { file: 4, upload: Some(10) };
        for from in [Begin::End, Begin::EndAt(4), Begin::EndAt(10), Begin::Offset(3), Begin::Offset(4)] {
            assert_eq!(why(begin(&scene, "a", from).await), both, "{from:?}");
        }
        let scene = scene.started_again().await;
        assert_eq!(why(begin(&scene, "a", Begin::Offset(11)).await), both);
        assert_eq!(whole(&scene, "a", Begin::Offset(10), b"X").await.unwrap(), 10);
        assert_eq!(scene.contents("a"), Some(b"0123456789X".to_vec()));
        // The offset is the file's size, too.
        interrupt(&scene, "a", Begin::Start, b"another one").await;
        let both = NotResumable::FileAndUpload { file: 11, upload: None };
        for from in [Begin::End, Begin::EndAt(11), Begin::Offset(11)] {
            assert_eq!(why(begin(&scene, "a", from).await), both, "{from:?}");
        }
        // The file is newer.
        put(&scene.io, &scene.home, any("a"), b"put").await.unwrap();
        let both = NotResumable::FileAndUpload { file: 3, upload: None };
        for from in [Begin::End, Begin::EndAt(3), Begin::Offset(3), Begin::Offset(2), Begin::Offset(11)] {
            assert_eq!(why(begin(&scene, "a", from).await), both, "{from:?}");
        }
        assert_eq!(scene.contents("a"), Some(b"put".to_vec()));
        whole(&scene, "a", Begin::Start, b"whole").await.unwrap();
        assert_eq!(whole(&scene, "a", Begin::End, b" again").await.unwrap(), 5);
        assert_eq!(scene.contents("a"), Some(b"whole again".to_vec()));
        assert!(scene.pending().is_empty());
        scene.assert_counted().await;
    });
}

#[test]
fn without_a_file_the_end_is_that_of_a_kept_upload_with_a_reported_size() {
    with_home(|scene| async move {
        assert_eq!(whole(&scene, "a", Begin::End, b"all").await.unwrap(), 0);
        interrupt(&scene, "b", Begin::Start, b"kept").await;
        assert_eq!(why(begin(&scene, "b", Begin::End).await), NotResumable::Unannounced(4));
        for end in [0, 3, 5] {
            assert_eq!(why(begin(&scene, "b", Begin::EndAt(end)).await), NotResumable::Changed(4));
        }
        assert_eq!(whole(&scene, "b", Begin::EndAt(4), b" and more").await.unwrap(), 4);
        assert_eq!(scene.contents("b"), Some(b"kept and more".to_vec()));
        assert!(scene.pending().is_empty());
    });
}

#[test]
fn an_append_replaces_only_the_file_that_it_began_with() {
    with_home(|scene| async move {
        for old in [&b"old"[..], b""] {
            put(&scene.io, &scene.home, any("a"), old).await.unwrap();
            // Two clients append at once: one of them must retry.
            let mut one = begin(&scene, "a", Begin::End).await.unwrap();
            let mut two = begin(&scene, "a", Begin::End).await.unwrap();
            send(&mut one, b"one", 3).await.unwrap();
            send(&mut two, b"two", 3).await.unwrap();
            two.commit().await.unwrap();
            assert!(matches!(one.commit().await, Err(Error::Precondition)));
            assert_eq!(scene.contents("a"), Some([old, b"two"].concat()));
        }
        for change in ["removed", "touched"] {
            let mut upload = begin(&scene, "a", Begin::Offset(1)).await.unwrap();
            send(&mut upload, b"x", 1).await.unwrap();
            if change == "removed" {
                scene.home.remove(&scene.io, path("a"), RemovalKind::File, Condition::none()).await.unwrap();
            } else {
                scene.home.set_modified(&scene.io, path("a"), Duration::from_secs(1)).await.unwrap();
            }
            assert!(matches!(upload.commit().await, Err(Error::Precondition)), "{change}");
            put(&scene.io, &scene.home, any("a"), b"again").await.unwrap();
        }
        scene.settle().await;
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        scene.assert_counted().await;
    });
}

#[test]
fn an_aborted_append_leaves_the_file_and_no_upload() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"file").await.unwrap();
        interrupt(&scene, "a", Begin::End, &bytes(1, LARGE)).await;
        assert!(scene.pending().is_empty());
        assert_eq!(scene.contents("a"), Some(b"file".to_vec()));
    });
}

#[test]
fn a_new_upload_throws_away_what_was_kept_of_its_path_and_nothing_else() {
    with_home(|scene| async move {
        let new = |bytes, condition: &str| {
            let terms = Terms { condition: Condition::new(condition, |_| true), ..any("a") };
            let new = NewUpload { terms, bytes, metadata: String::new() };
            scene.home.create_resumable(&scene.io, new)
        };
        // Uploads with an identifier of their own are not resumed by path.
        let mut others = Vec::new();
        for (bytes, condition) in [(Some(9), ""), (None, "If-None-Match: *"), (None, "")] {
            others.push(new(bytes, condition).await.unwrap().id);
        }
        interrupt(&scene, "b", Begin::Start, b"another").await;
        interrupt(&scene, "a", Begin::Offset(0), b"first").await;
        let mut hanging = begin(&scene, "a", Begin::Start).await.unwrap();
        send(&mut hanging, &bytes(1, 70_000), 70_000).await.unwrap();
        assert_eq!(pending(&scene, "a").await, Some(70_000), "the first is gone");
        let begun = begin(&scene, "a", Begin::Start).await.unwrap();
        assert_eq!(pending(&scene, "a").await, Some(70_000), "somebody is writing to it");
        assert_eq!(pending(&scene, "b").await, Some(7));
        for id in others {
            scene.home.resumable_upload(&scene.io, id).await.unwrap();
        }
        drop((hanging, begun));
    });
}

#[test]
fn of_several_unfinished_uploads_to_a_path_none_is_resumed() {
    with_home(|scene| async move {
        let mut old = begin(&scene, "a", Begin::Start).await.unwrap();
        send(&mut old, b"longer and older", 50).await.unwrap();
        scene.settle().await;
        interrupt(&scene, "a", Begin::Start, b"newer").await;
        drop(old);
        scene.settle().await;
        for scene in [scene.clone(), scene.started_again().await] {
            let offsets = scene.home.pending_at(&scene.io, &path("a")).await.unwrap();
            assert_eq!(
                offsets.iter().map(|kept| kept.offset).collect::<Vec<_>>(),
                [5, 16],
                "the newest first"
            );
            for from in [Begin::End, Begin::EndAt(5), Begin::Offset(5), Begin::Offset(6), Begin::Offset(16)] {
                assert_eq!(why(begin(&scene, "a", from).await), NotResumable::SeveralUploads, "{from:?}");
            }
        }
        whole(&scene, "a", Begin::Start, b"whole").await.unwrap();
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
    });
}

#[test]
fn an_upload_is_taken_over_from_a_connection_that_fell_silent_and_from_no_other() {
    with_home(|scene| async move {
        let sent = bytes(5, 150_000);
        let mut hanging = begin(&scene, "a", Begin::Start).await.unwrap();
        send(&mut hanging, &sent[..70_000], 7_000).await.unwrap();
        assert!(scene.pending().is_empty(), "nothing of it is written yet");
        assert_eq!(pending(&scene, "a").await, Some(70_000));
        for from in [Begin::EndAt(70_000), Begin::Offset(70_000), Begin::Offset(10)] {
            assert!(matches!(begin(&scene, "a", from).await.map(drop), Err(Error::InUse)), "{from:?}");
        }
        scene.io.sleep(TAKEN_OVER_TIME).await;
        assert_eq!(whole(&scene, "a", Begin::Offset(70_000), &sent[70_000..]).await.unwrap(), 70_000);
        let late = send_slowly(&scene.io, &mut hanging, &sent[70_000..]).await;
        assert!(matches!(late, Err(Error::InUse)), "{late:?}");
        drop(hanging);
        scene.settle().await;
        assert_eq!(scene.contents("a"), Some(sent));
        assert!(scene.pending().is_empty());
        scene.assert_counted().await;
    });
}

#[test]
fn a_kept_upload_expires() {
    with_home(|scene| async move {
        interrupt(&scene, "a", Begin::Start, b"12345").await;
        scene.io.sleep(KEPT * 2).await;
        assert_eq!(pending(&scene, "a").await, None);
        assert!(matches!(begin(&scene, "a", Begin::Offset(3)).await.map(drop), Err(Error::Offset(0))));
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
    });
}

fn under(to: &str, most: u64) -> Terms {
    Terms::any(path(to), Quota { bytes: Some(most), files: None, keeps_trash: false })
}

#[test]
fn the_bytes_that_an_append_begins_with_are_claimed() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), &[1; 60]).await.unwrap();
        let begin = async |from, most| scene.home.upload_from(&scene.io, under("a", most), from, true).await;
        let first = begin(Begin::End, 100).await.unwrap();
        assert!(matches!(begin(Begin::End, 100).await.map(drop), Err(Error::Quota)), "60 and 60");
        begin(Begin::Offset(40), 100).await.map(drop).unwrap();
        drop(first);
        scene.settle().await;
        let mut more = begin(Begin::End, 100_000).await.unwrap();
        assert!(matches!(
            send(&mut more, &bytes(2, 2 * BUFFERED_FAST_BYTES_MAX), 70_000).await,
            Err(Error::Quota)
        ));
        drop(more);
        scene.settle().await;
        let mut more = begin(Begin::End, 100).await.unwrap();
        send(&mut more, &[2; 40], 40).await.unwrap();
        more.commit().await.unwrap();
        assert_eq!(scene.home.usage(&scene.io).await.unwrap().bytes, 100);
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        scene.assert_counted().await;
    });
}

#[test]
fn truncated_bytes_of_an_upload_release_their_claim() {
    with_home(|scene| async move {
        interrupt(&scene, "a", Begin::Start, &[1; 60]).await;
        let held = Begin::Offset(10);
        let cut = scene.home.upload_from(&scene.io, under("a", 100), held, true).await.unwrap();
        let other = scene.home.upload_from(&scene.io, under("b", 100), Begin::Start, true).await;
        let mut other = other.unwrap();
        send(&mut other, &[2; 90], 90).await.unwrap();
        other.commit().await.unwrap();
        drop(cut);
    });
}

#[test]
fn a_refused_upload_is_not_kept() {
    with_home(|scene| async move {
        const MOST: u64 = 1 << 21;
        for sent in [&bytes(1, LARGE)[..], &bytes(1, 100)] {
            let most = if sent.len() > 100 { MOST } else { 99 };
            let begun = scene.home.upload_from(&scene.io, under("a", most), Begin::Start, true).await;
            let mut upload = begun.unwrap();
            let sent = send(&mut upload, sent, 200_000).await;
            let ended = match sent {
                Ok(()) => upload.commit().await.map(drop),
                refused => {
                    drop(upload);
                    refused
                }
            };
            assert!(matches!(ended, Err(Error::Quota)), "{ended:?}");
            scene.settle().await;
            assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        }
        // Nor if it is interrupted before the refusal is reported.
        let begun = scene.home.upload_from(&scene.io, under("a", 99), Begin::Start, true).await;
        let mut upload = begun.unwrap();
        send(&mut upload, &bytes(1, 100), 100).await.unwrap();
        drop(upload);
        scene.settle().await;
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        // An upload with a folder that is removed meanwhile.
        scene.home.make_folder(&scene.io, path("f"), Quota::default(), false).await.unwrap();
        let mut upload = begin(&scene, "f/a", Begin::Start).await.unwrap();
        send(&mut upload, &bytes(1, LARGE), 200_000).await.unwrap();
        scene.home.remove(&scene.io, path("f"), RemovalKind::EmptyFolder, Condition::none()).await.unwrap();
        assert!(matches!(upload.commit().await, Err(Error::NoFolder)));
        scene.settle().await;
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
    });
}

#[test]
fn bytes_that_a_failed_sync_may_have_lost_are_not_reported() {
    with_home(|scene| async move {
        let failed = std::io::ErrorKind::Other;
        // The first sync, of the names: it is not certain that anything is on the disk.
        let mut upload = begin(&scene, "a", Begin::Start).await.unwrap();
        send(&mut upload, &bytes(1, 70_000), 70_000).await.unwrap();
        scene.host.disk().fail_next(Call::Sync, failed);
        nothing_comes(&scene, &mut upload, RECORDED_EVERY * 2).await;
        let sent = send_slowly(&scene.io, &mut upload, &bytes(1, LARGE)).await;
        assert!(matches!(sent, Err(Error::Failed(_))), "{sent:?}");
        drop(upload);
        scene.settle().await;
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        // A later sync: the bytes that were synced before stay.
        interrupt(&scene, "a", Begin::Start, &bytes(1, 70_000)).await;
        let mut upload = begin(&scene, "a", Begin::Offset(70_000)).await.unwrap();
        send(&mut upload, &bytes(1, 70_000), 70_000).await.unwrap();
        scene.host.disk().fail_next(Call::Sync, failed);
        assert!(matches!(upload.commit().await, Err(Error::Failed(_))));
        assert_eq!(pending(&scene, "a").await, Some(70_000));
        // Any call, when the upload is interrupted.
        for call in 1.. {
            let mut upload = begin(&scene, "a", Begin::Start).await.unwrap();
            send(&mut upload, &bytes(1, 70_000), 70_000).await.unwrap();
            scene.host.disk().fail_at(scene.host.disk().calls() + call, failed);
            drop(upload);
            scene.settle().await;
            match pending(&scene, "a").await {
                None => assert!(scene.pending().is_empty(), "{:?}", scene.pending()),
                Some(offset) => {
                    assert!(offset == 70_000 && call > 5, "{offset} after {call}");
                    break;
                }
            }
        }
    });
}

#[test]
fn one_whose_record_could_not_be_cut_is_thrown_away() {
    with_home(|scene| async move {
        interrupt(&scene, "a", Begin::Start, b"0123456789").await;
        scene.host.disk().fail_next(Call::Sync, std::io::ErrorKind::Other);
        assert!(matches!(begin(&scene, "a", Begin::Offset(4)).await.map(drop), Err(Error::Failed(_))));
        assert_eq!((pending(&scene, "a").await, scene.pending().len()), (None, 0));
    });
}

/// Polls at most `times` more times after the first. None if the future is not ready then; it is dropped.
async fn polled<T>(doing: impl Future<Output = T>, times: usize) -> Option<T> {
    let (mut doing, mut left) = (Box::pin(doing), times);
    poll_fn(move |cx| match doing.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

#[test]
fn dropped_at_any_await_it_leaves_the_old_file_or_the_new_one_and_what_is_kept() {
    with_home(|scene| async move {
        let old = bytes(6, LARGE);
        let cases = [
            (Begin::Start, Vec::new()),
            (Begin::End, old.clone()),
            (Begin::Offset(10), old[..10].to_vec()),
            (Begin::Offset(LARGE as u64), old.clone()),
        ];
        for (from, start) in cases {
            let (sent, mut times) = (bytes(7, BUFFERED_FAST_BYTES_MAX + 150_000), 0);
            let new = [start, sent.clone()].concat();
            loop {
                put(&scene.io, &scene.home, any("a"), &old).await.unwrap();
                let done = polled(whole(&scene, "a", from, &sent), times).await;
                scene.settle().await;
                let found = scene.contents("a");
                assert!(found.as_ref() == Some(&new) || (done.is_none() && found.as_ref() == Some(&old)));
                for kept in scene.home.resumable_uploads(&scene.io).await.unwrap() {
                    assert_eq!(from, Begin::Start);
                    scene.home.discard_upload(&scene.io, kept.id).await.unwrap();
                }
                assert!(scene.pending().is_empty(), "{from:?} {times}: {:?}", scene.pending());
                scene.assert_counted().await;
                if done.is_some() {
                    break;
                }
                times += 1;
            }
            // An upload that begins empty may begin without blocking.
            let least = if from == Begin::Start { 2 } else { 3 };
            assert!(times >= least, "{from:?}: {times}");
        }
    });
}
