//! As [`super::power`]: folders that are copied with links, and made with their parents.

use plimsoll_io::Existing;
use plimsoll_store::{Depth, End, Quota};

use super::power::{Change, INNER, assert_one_of, cut_everywhere, doing, folder, nothing};
use super::{DATA, Scene, any, path, put};

fn end(scene: &Scene, at: &str) -> End {
    End { home: scene.home.clone(), path: path(at), quota: Quota::default() }
}

#[test]
fn a_copy_of_a_folder_with_links() {
    cut_everywhere(&Change {
        before: |scene| {
            doing(async move {
                folder(scene.clone()).await?;
                put(&scene.io, &scene.home, any("out"), b"outside").await?;
                for (link, target) in [("f/inner", "g/a"), ("f/outer", "../out")] {
                    let link = format!("{DATA}/accounts/alice/files/{link}");
                    scene.host.disk().symlink(link, target).unwrap();
                }
                Ok(())
            })
        },
        change: |scene| {
            let copied = async move {
                end(&scene, "f").copy(&scene.io, end(&scene, "h"), Existing::Kept, Depth::Infinity).await
            };
            doing(async move { copied.await.map(drop) })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "h/inner", None, Some(INNER.to_vec()), confirmed);
            assert_one_of(&scene, "h/outer", None, Some(b"outside".to_vec()), confirmed);
            assert_eq!(scene.contents("h/inner").is_some(), scene.contents("h/outer").is_some());
            nothing(scene)
        },
    });
}

#[test]
fn an_upload_into_folders_that_are_made_with_their_parents() {
    cut_everywhere(&Change {
        before: nothing,
        change: |scene| {
            doing(async move {
                scene.home.make_folder(&scene.io, path("f/g/h"), Quota::default(), true).await?;
                put(&scene.io, &scene.home, any("f/g/h/a"), b"new").await.map(drop)
            })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "f/g/h/a", None, Some(b"new".to_vec()), confirmed);
            nothing(scene)
        },
    });
}
