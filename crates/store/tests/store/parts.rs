//! A file joined from partial uploads, with the power cut at each call that writes or syncs.

use plimsoll_store::backend::ResumeTerms;
use plimsoll_store::{Error, NewUpload, Quota};

use super::power::{Change, Doing, assert_one_of, cut_everywhere, doing, large, old_file};
use super::{Scene, any, send};

/// Where the first part ends.
const PARTED: usize = 70_000;

/// Begins two parts and completes them.
fn complete_parts(scene: Scene) -> Doing {
    doing(async move {
        old_file(scene.clone()).await?;
        let (bytes, terms) = (large(2), ResumeTerms::any(Quota::default()));
        for half in [&bytes[..PARTED], &bytes[PARTED..]] {
            let (bytes, metadata) = (Some(half.len() as u64), String::new());
            let new = NewUpload { terms: any(""), bytes, metadata };
            let part = scene.home.create_resumable(&scene.io, new).await?;
            let mut upload = scene.home.resume_upload(&scene.io, part.id, 0, Vec::new(), terms).await?;
            send(&mut upload, half, 9_000).await?;
            upload.pause().await?;
        }
        Ok(())
    })
}

async fn join(scene: &Scene) -> Result<(), Error> {
    let mut parts = scene.home.resumable_uploads(&scene.io).await?;
    parts.sort_by_key(|part| part.bytes != Some(PARTED as u64));
    assert!(parts.iter().all(|part| part.is_part() && part.is_complete()), "{parts:?}");
    let ids = parts.iter().map(|part| part.id).collect();
    let bytes = parts.iter().filter_map(|part| part.bytes).sum();
    scene.home.upload_of_parts(&scene.io, any("a"), ids, bytes).await?.commit().await.map(drop)
}

#[test]
fn parts_that_are_put_together_end_with_the_commit_of_their_file() {
    cut_everywhere(&Change {
        before: complete_parts,
        change: |scene| doing(async move { join(&scene).await }),
        after: |scene, confirmed| {
            doing(async move {
                assert_one_of(&scene, "a", Some(large(1)), Some(large(2)), confirmed);
                if scene.contents("a") == Some(large(1)) {
                    join(&scene).await?;
                }
                assert_eq!(scene.contents("a"), Some(large(2)));
                assert_eq!(scene.home.resumable_uploads(&scene.io).await?, []);
                Ok(())
            })
        },
    });
}
