//! The offset of a resumable upload is recorded while the upload continues, so that a kill loses little of
//! it.

use std::pin::pin;

use plimsoll_store::limits::RECORDED_EVERY;
use plimsoll_store::{Begin, Error};

use super::power::{Change, cut_everywhere, doing, go_on_by_path, grown, nothing, pending as offset_of};
use super::resumed::{begin, bytes, len, pending, whole};
use super::{Scene, any, nothing_comes, send, with_home};

/// More than is buffered.
const LARGE: usize = 3 << 20;
/// The bytes of a part that is recorded by itself.
const RECORDED: usize = 50_000;

#[test]
fn an_uploads_bytes_survive_a_kill_except_those_of_the_last_second() {
    with_home(|scene| async move {
        let (sent, mut upload) = (bytes(3, 60_000), begin(&scene, "a", Begin::Start).await.unwrap());
        let step = RECORDED_EVERY / 5;
        for (number, piece) in sent.chunks(1_000).enumerate() {
            send(&mut upload, piece, 1_000).await.unwrap();
            nothing_comes(&scene, &mut upload, step).await;
            let recorded = scene.home.resumable_uploads(&scene.io).await.unwrap();
            let recorded = len(recorded.first().map_or(0, |kept| kept.offset));
            // The bytes of the last second, and of the step in which a recording ends.
            assert!(recorded + 7_000 >= (number + 1) * 1_000, "{recorded} of {number} thousand");
        }
        // The last bytes are recorded although no more are received.
        nothing_comes(&scene, &mut upload, RECORDED_EVERY * 2).await;
        // The server is killed: nothing is settled.
        std::mem::forget(upload);
        let again = scene.started_again().await;
        assert_eq!(pending(&again, "a").await, Some(60_000));
        assert_eq!(whole(&again, "a", Begin::Offset(60_000), b"!").await.unwrap(), 60_000);
        assert_eq!(again.contents("a"), Some([&sent[..], b"!"].concat()));
    });
}

#[test]
fn an_upload_of_less_than_a_second_has_no_record() {
    with_home(|scene| async move {
        let mut upload = begin(&scene, "a", Begin::Start).await.unwrap();
        send(&mut upload, &bytes(3, LARGE), 1 << 20).await.unwrap();
        assert_eq!(scene.pending().len(), 1);
        nothing_comes(&scene, &mut upload, RECORDED_EVERY * 2).await;
        assert_eq!(scene.pending().len(), 2);
        upload.commit().await.unwrap();
        assert_eq!(scene.contents("a"), Some(bytes(3, LARGE)));
        assert!(scene.pending().is_empty());
    });
}

/// Receives two parts of an upload, each of which is recorded while the client is silent.
async fn recorded_twice(scene: Scene) -> Result<(), Error> {
    let mut upload = scene.home.upload_from(&scene.io, any("a"), Begin::Start, true).await?;
    for part in grown(2)[..2 * RECORDED].chunks(RECORDED) {
        send(&mut upload, part, 9_000).await?;
        upload.meanwhile(pin!(scene.io.sleep(RECORDED_EVERY * 2))).await?;
    }
    let listed = scene.home.resumable_uploads(&scene.io).await?;
    let is_recorded = listed.first().is_some_and(|kept| kept.offset == 2 * RECORDED as u64);
    if is_recorded { Ok(()) } else { Err(Error::NotFound) }
}

#[test]
fn an_upload_that_is_recorded_while_it_goes_on() {
    cut_everywhere(&Change {
        before: nothing,
        change: |scene| doing(recorded_twice(scene)),
        after: |scene, confirmed| {
            doing(async move {
                let offset = offset_of(&scene).await?.unwrap_or(0);
                assert!(!confirmed || offset == 2 * RECORDED, "{offset}");
                go_on_by_path(&scene).await
            })
        },
    });
}
