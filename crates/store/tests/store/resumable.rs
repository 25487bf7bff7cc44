//! Uploads that are resumed by their identifier.

use plimsoll_io::sim::Call;
use plimsoll_store::backend::ResumeTerms;
use plimsoll_store::{
    Algorithm, Begin, Condition, Error, NewUpload, Quota, RemovalKind, ResumableUpload, Terms, UploadId,
};
use sha2::Digest as _;

use super::{KEPT, Scene, any, path, send, with_home};

async fn keep(scene: &Scene, to: &str, bytes: u64) -> ResumableUpload {
    let new = NewUpload { terms: any(to), bytes: Some(bytes), metadata: String::new() };
    scene.home.create_resumable(&scene.io, new).await.unwrap()
}

fn terms() -> ResumeTerms {
    ResumeTerms::any(Quota::default())
}

/// Sends a part and ends it; returns the offset then.
async fn part(scene: &Scene, id: UploadId, offset: u64, bytes: &[u8]) -> Result<u64, Error> {
    let mut upload = scene.home.resume_upload(&scene.io, id, offset, Vec::new(), terms()).await?;
    send(&mut upload, bytes, 7).await?;
    upload.pause().await
}

async fn last_part(scene: &Scene, id: UploadId, offset: u64, bytes: &[u8]) -> Result<(), Error> {
    let mut upload = scene.home.resume_upload(&scene.io, id, offset, Vec::new(), terms()).await?;
    send(&mut upload, bytes, 7).await?;
    upload.commit().await.map(drop)
}

#[test]
fn parts_add_up() {
    with_home(|scene| async move {
        let kept = keep(&scene, "a", 10).await;
        assert_eq!((kept.offset, kept.bytes), (0, Some(10)));
        assert_eq!(part(&scene, kept.id, 0, b"0123").await.unwrap(), 4);
        assert_eq!(scene.contents("a"), None);
        assert_eq!(scene.home.resumable_upload(&scene.io, kept.id).await.unwrap().offset, 4);
        last_part(&scene, kept.id, 4, b"456789").await.unwrap();
        assert_eq!(scene.contents("a"), Some(b"0123456789".to_vec()));
        assert!(scene.pending().is_empty());
        assert!(matches!(scene.home.resumable_upload(&scene.io, kept.id).await, Err(Error::NotFound)));
        scene.assert_counted().await;
    });
}

#[test]
fn a_part_goes_on_where_the_last_one_ended_and_nowhere_else() {
    with_home(|scene| async move {
        let kept = keep(&scene, "a", 10).await;
        part(&scene, kept.id, 0, b"0123").await.unwrap();
        for wrong in [0, 3, 5, 10, u64::MAX] {
            assert!(matches!(part(&scene, kept.id, wrong, b"x").await, Err(Error::Offset(4))));
        }
        let too_long = part(&scene, kept.id, 4, b"4567890").await;
        assert!(matches!(too_long, Err(Error::Length)), "{too_long:?}");
        scene.settle().await;
        let now = scene.home.resumable_upload(&scene.io, kept.id).await.unwrap().offset;
        assert!((4..=10).contains(&now), "{now}");
    });
}

#[test]
fn an_upload_whose_commit_failed_is_not_reported_whole_and_can_be_completed() {
    with_home(|scene| async move {
        let kept = keep(&scene, "a", 10).await;
        part(&scene, kept.id, 0, b"0123").await.unwrap();
        scene.home.make_folder(&scene.io, path("a"), Quota::default(), false).await.unwrap();
        let refused = last_part(&scene, kept.id, 4, b"456789").await;
        assert!(matches!(refused, Err(Error::IsFolder)), "{refused:?}");
        scene.settle().await;
        scene.home.remove(&scene.io, path("a"), RemovalKind::Any, Condition::none()).await.unwrap();
        let offset = scene.home.resumable_upload(&scene.io, kept.id).await.unwrap().offset;
        assert_eq!(offset, 9);
        last_part(&scene, kept.id, offset, b"9").await.unwrap();
        scene.settle().await;
        assert_eq!(scene.contents("a"), Some(b"0123456789".to_vec()));
        assert!(scene.pending().is_empty());
    });
}

#[test]
fn a_resuming_client_takes_over_from_its_hanging_connection() {
    with_home(|scene| async move {
        let sent: Vec<u8> = (0..100_000_u32).map(|index| u8::try_from(index % 251).unwrap()).collect();
        let kept = keep(&scene, "a", sent.len() as u64).await;
        let mut hanging = scene.home.resume_upload(&scene.io, kept.id, 0, Vec::new(), terms()).await.unwrap();
        send(&mut hanging, &sent[..70_000], 7_000).await.unwrap();
        // The received bytes are reported while the part continues.
        let offset = scene.home.resumable_upload(&scene.io, kept.id).await.unwrap().offset;
        assert_eq!(offset, 70_000);
        last_part(&scene, kept.id, offset, &sent[70_000..]).await.unwrap();
        assert!(matches!(send(&mut hanging, &sent[70_000..], 70_000).await, Ok(()) | Err(Error::InUse)));
        assert!(matches!(hanging.commit().await, Err(Error::InUse)));
        scene.settle().await;
        assert_eq!(scene.contents("a"), Some(sent));
        assert!(scene.pending().is_empty());
        scene.assert_counted().await;
    });
}

#[test]
fn a_failed_sync_of_a_lookup_fails_the_upload_in_progress() {
    with_home(|scene| async move {
        let kept = keep(&scene, "a", 10).await;
        let mut sending = scene.home.resume_upload(&scene.io, kept.id, 0, Vec::new(), terms()).await.unwrap();
        send(&mut sending, b"01234", 5).await.unwrap();
        scene.host.disk().fail_next(Call::Sync, std::io::ErrorKind::Other);
        let looked = scene.home.resumable_upload(&scene.io, kept.id).await;
        assert!(matches!(looked, Err(Error::Failed(_))), "{looked:?}");
        send(&mut sending, b"56789", 5).await.unwrap();
        // Another sync would succeed, and prove nothing.
        let committed = sending.commit().await;
        assert!(matches!(committed, Err(Error::Failed(_))), "{committed:?}");
        scene.settle().await;
        assert_eq!(scene.contents("a"), None);
    });
}

#[test]
fn a_part_that_fails_at_any_call_is_reported_no_further_than_its_synced_bytes() {
    with_home(|scene| async move {
        let (sent, mut call) = (b"0123456789", 0);
        loop {
            let kept = keep(&scene, "a", 10).await;
            let digest = vec![(Algorithm::Sha256, sha2::Sha256::digest(&sent[..5]).to_vec())];
            let mut part = scene.home.resume_upload(&scene.io, kept.id, 0, digest, terms()).await.unwrap();
            send(&mut part, &sent[..5], 5).await.unwrap();
            call += 1;
            scene.settle().await;
            let failing = scene.host.disk().calls() + call;
            scene.host.disk().fail_at(failing, std::io::ErrorKind::Other);
            // Its result does not matter.
            let _ = part.pause().await;
            scene.settle().await;
            if scene.host.disk().calls() < failing {
                break;
            }
            match scene.home.resumable_upload(&scene.io, kept.id).await {
                Ok(kept) => {
                    let at = usize::try_from(kept.offset).unwrap();
                    last_part(&scene, kept.id, kept.offset, &sent[at..]).await.unwrap();
                    scene.settle().await;
                    assert_eq!(scene.contents("a"), Some(sent.to_vec()), "call {call}, reported {at}");
                    scene
                        .home
                        .remove(&scene.io, path("a"), RemovalKind::Any, Condition::none())
                        .await
                        .unwrap();
                }
                Err(error) => assert!(matches!(error, Error::NotFound), "call {call}: {error}"),
            }
        }
        assert!(call > 4, "{call}");
    });
}

#[test]
fn an_upload_can_be_discarded_during_a_write() {
    with_home(|scene| async move {
        let kept = keep(&scene, "a", 10).await;
        let mut writing = scene.home.resume_upload(&scene.io, kept.id, 0, Vec::new(), terms()).await.unwrap();
        send(&mut writing, b"0123", 4).await.unwrap();
        scene.home.discard_upload(&scene.io, kept.id).await.unwrap();
        assert!(matches!(writing.pause().await, Err(Error::InUse)));
        scene.settle().await;
        assert!(scene.pending().is_empty());
    });
}

#[test]
fn bytes_received_before_an_abort_are_kept_unchanged() {
    with_home(|scene| async move {
        let sent: Vec<u8> = (0..200_000_u32).map(|index| u8::try_from(index % 251).unwrap()).collect();
        let kept = keep(&scene, "a", sent.len() as u64).await;
        let mut upload = scene.home.resume_upload(&scene.io, kept.id, 0, Vec::new(), terms()).await.unwrap();
        send(&mut upload, &sent[..150_000], 10_000).await.unwrap();
        drop(upload);
        scene.settle().await;
        let scene = scene.started_again().await;
        let found = scene.home.resumable_upload(&scene.io, kept.id).await.unwrap();
        assert_eq!(found.offset, 150_000);
        last_part(&scene, kept.id, found.offset, &sent[150_000..]).await.unwrap();
        assert_eq!(scene.contents("a"), Some(sent));
    });
}

#[test]
fn a_part_with_a_digest_counts_as_a_whole_or_not_at_all() {
    with_home(|scene| async move {
        let kept = keep(&scene, "a", 10).await;
        let digest = |bytes: &[u8]| vec![(Algorithm::Sha256, sha2::Sha256::digest(bytes).to_vec())];
        let resume = async |offset, digests, bytes: &[u8]| {
            let mut upload =
                scene.home.resume_upload(&scene.io, kept.id, offset, digests, terms()).await.unwrap();
            send(&mut upload, bytes, 3).await.unwrap();
            upload
        };
        let wrong = resume(0, digest(b"other"), b"01234").await.pause().await;
        assert!(matches!(wrong, Err(Error::Digest)));
        assert_eq!(scene.home.resumable_upload(&scene.io, kept.id).await.unwrap().offset, 0);
        drop(resume(0, digest(b"01234"), b"012").await);
        scene.settle().await;
        assert_eq!(scene.home.resumable_upload(&scene.io, kept.id).await.unwrap().offset, 0);
        assert_eq!(resume(0, digest(b"01234"), b"01234").await.pause().await.unwrap(), 5);
        let wrong = resume(5, digest(b"other"), b"56789").await.commit().await;
        assert!(matches!(wrong, Err(Error::Digest)));
        assert_eq!(scene.home.resumable_upload(&scene.io, kept.id).await.unwrap().offset, 5);
        resume(5, digest(b"56789"), b"56789").await.commit().await.unwrap();
        assert_eq!(scene.contents("a"), Some(b"0123456789".to_vec()));
    });
}

#[test]
fn the_digest_of_the_whole_is_checked_at_the_end() {
    with_home(|scene| async move {
        for right in [true, false] {
            let kept = keep(&scene, if right { "right" } else { "wrong" }, 10).await;
            part(&scene, kept.id, 0, b"01234").await.unwrap();
            let mut upload =
                scene.home.resume_upload(&scene.io, kept.id, 5, Vec::new(), terms()).await.unwrap();
            send(&mut upload, if right { b"56789" } else { b"5678x" }, 2).await.unwrap();
            let digest = sha2::Sha256::digest(b"0123456789").to_vec();
            let committed = upload.commit_whole(vec![(Algorithm::Sha256, digest)]).await;
            assert_eq!(committed.is_ok(), right);
            scene.settle().await;
            assert!(scene.pending().is_empty());
        }
        assert_eq!(scene.contents("wrong"), None);
        scene.assert_counted().await;
    });
}

#[test]
fn uploads_are_listed_until_they_end_or_are_thrown_away() {
    with_home(|scene| async move {
        let (one, two) = (keep(&scene, "a", 3).await, keep(&scene, "b", 3).await);
        let mut listed = scene.home.resumable_uploads(&scene.io).await.unwrap();
        listed.sort_by_key(|kept| kept.to.clone());
        assert_eq!(listed.iter().map(|kept| kept.id).collect::<Vec<_>>(), [one.id, two.id]);
        assert_eq!(listed[0].to, path("a"));
        scene.home.discard_upload(&scene.io, one.id).await.unwrap();
        assert!(matches!(scene.home.discard_upload(&scene.io, one.id).await, Err(Error::NotFound)));
        last_part(&scene, two.id, 0, b"abc").await.unwrap();
        assert!(scene.home.resumable_uploads(&scene.io).await.unwrap().is_empty());
        assert!(scene.pending().is_empty());
    });
}

#[test]
fn an_upload_that_is_not_resumed_expires() {
    with_home(|scene| async move {
        let kept = keep(&scene, "a", 3).await;
        scene.io.sleep(KEPT * 9 / 10).await;
        part(&scene, kept.id, 0, b"x").await.unwrap();
        scene.io.sleep(KEPT * 9 / 10).await;
        assert_eq!(scene.home.resumable_upload(&scene.io, kept.id).await.unwrap().offset, 1);
        scene.io.sleep(KEPT / 5).await;
        assert!(matches!(scene.home.resumable_upload(&scene.io, kept.id).await, Err(Error::NotFound)));
        assert!(scene.home.resumable_uploads(&scene.io).await.unwrap().is_empty());
        // Its space is released with the next upload, or at the next start.
        keep(&scene, "b", 3).await;
        assert_eq!(scene.pending().len(), 2, "{:?}", scene.pending());
    });
}

#[test]
fn bytes_beyond_the_recorded_offset_are_no_part_of_it() {
    with_home(|scene| async move {
        let kept = scene
            .home
            .create_resumable(&scene.io, NewUpload { terms: any("a"), bytes: None, metadata: String::new() })
            .await
            .unwrap();
        part(&scene, kept.id, 0, b"0123").await.unwrap();
        let data = format!("/data/accounts/alice/pending/{}", kept.id);
        scene.host.disk().write(data, b"0123 what a power cut left behind".to_vec()).unwrap();
        let again = scene.started_again().await;
        last_part(&again, kept.id, 4, b"45").await.unwrap();
        assert_eq!(again.contents("a"), Some(b"012345".to_vec()));
    });
}

#[test]
fn a_length_that_is_set_later_stays_and_completes_the_upload() {
    with_home(|scene| async move {
        let (quota, metadata) = (Quota::default(), String::new());
        let new = NewUpload { terms: any("a"), bytes: None, metadata };
        let kept = scene.home.create_resumable(&scene.io, new).await.unwrap();
        part(&scene, kept.id, 0, b"0123").await.unwrap();
        let set =
            async |scene: &Scene, bytes| scene.home.set_upload_length(&scene.io, kept.id, bytes, quota).await;
        assert!(matches!(set(&scene, 3).await, Err(Error::Length)), "it has more bytes");
        set(&scene, 6).await.unwrap();
        let again = scene.started_again().await;
        for other in [4, 5, 7] {
            assert!(matches!(set(&again, other).await, Err(Error::Length)), "{other}");
        }
        set(&again, 6).await.unwrap();
        let found = again.home.resumable_upload(&again.io, kept.id).await.unwrap();
        assert_eq!((found.bytes, found.offset), (Some(6), 4));
        assert_eq!(part(&again, kept.id, 4, b"4").await.unwrap(), 5);
        last_part(&again, kept.id, 5, b"5").await.unwrap();
        assert_eq!(again.contents("a"), Some(b"012345".to_vec()));
        assert!(again.pending().is_empty());
    });
}

#[test]
fn a_length_that_is_set_later_takes_room_as_one_that_is_announced() {
    with_home(|scene| async move {
        let quota = Quota { bytes: Some(10), ..Quota::default() };
        let terms = Terms::any(path("a"), quota);
        let new = NewUpload { terms, bytes: None, metadata: String::new() };
        let kept = scene.home.create_resumable(&scene.io, new).await.unwrap();
        let set = async |bytes| scene.home.set_upload_length(&scene.io, kept.id, bytes, quota).await;
        assert!(matches!(set(11).await, Err(Error::Quota)));
        set(10).await.unwrap();
        let other =
            NewUpload { terms: Terms::any(path("b"), quota), bytes: Some(1), metadata: String::new() };
        assert!(matches!(scene.home.create_resumable(&scene.io, other).await, Err(Error::Quota)));
    });
}

#[test]
fn an_upload_that_its_path_identifies_gets_no_length() {
    with_home(|scene| async move {
        let mut upload = scene.home.upload_from(&scene.io, any("a"), Begin::Start, true).await.unwrap();
        send(&mut upload, b"0123", 4).await.unwrap();
        upload.abort().await;
        let kept = scene.home.resumable_uploads(&scene.io).await.unwrap();
        let set = scene.home.set_upload_length(&scene.io, kept[0].id, 6, Quota::default()).await;
        assert!(matches!(set, Err(Error::Length)));
    });
}

#[test]
fn a_record_does_not_grow_with_the_parts() {
    with_home(|scene| async move {
        let kept = keep(&scene, "a", 1_000).await;
        let record = format!("/data/accounts/alice/pending/{}.record", kept.id);
        let mut sizes = std::collections::BTreeSet::new();
        for offset in 0..40 {
            assert_eq!(part(&scene, kept.id, offset, b"x").await.unwrap(), offset + 1);
            assert_eq!(scene.home.resumable_upload(&scene.io, kept.id).await.unwrap().offset, offset + 1);
            sizes.insert(super::contents(&scene.host, &record).unwrap().len());
        }
        assert_eq!(sizes.len(), 2, "{sizes:?}");
    });
}

#[test]
fn the_condition_is_kept_with_the_upload() {
    with_home(|scene| async move {
        let condition = Condition::new("only a new one", |_| true);
        let terms = Terms { condition, ..any("a") };
        let new = NewUpload { terms, bytes: Some(3), metadata: String::new() };
        let kept = scene.home.create_resumable(&scene.io, new).await.unwrap();
        super::put(&scene.io, &scene.home, any("a"), b"first").await.unwrap();
        let again = scene.started_again().await;
        let only_new = |words: &str| {
            assert_eq!(words, "only a new one");
            Condition::none().and_new()
        };
        let only_new = ResumeTerms { parse: only_new, ..ResumeTerms::any(Quota::default()) };
        let mut upload = again.home.resume_upload(&again.io, kept.id, 0, Vec::new(), only_new).await.unwrap();
        send(&mut upload, b"abc", 3).await.unwrap();
        assert!(matches!(upload.commit().await, Err(Error::Precondition)));
        assert_eq!(again.contents("a"), Some(b"first".to_vec()));
    });
}
