//! As [`super::power`]: removals to the trash, and entries that are restored and dropped. Every entry is at
//! its old path, or in the trash with that path, or restored; a dropped one may be gone.

use plimsoll_store::{Condition, Error, Quota, RemovalKind, Terms, TrashedEntry};

use super::power::{Change, Doing, INNER, assert_one_of, cut_everywhere, doing, folder, large, old_file};
use super::trash::{STAY, in_trash, listed};
use super::volumes::mounted;
use super::{Scene, TRASH_TIME, path, put};

fn cut_with_trash(change: &Change) {
    TRASH_TIME.set(STAY);
    cut_everywhere(change);
}

async fn remove(scene: &Scene, at: &str) -> Result<(), Error> {
    scene.home.remove(&scene.io, path(at), RemovalKind::Any, Condition::none()).await.map(drop)
}

/// Waits for the cleanup, and asserts that each record has its entry. Returns the only entry, if there is
/// one.
async fn only_entry(scene: &Scene) -> Option<TrashedEntry> {
    let mut found = listed(scene).await;
    scene.settle().await;
    assert!(found.len() <= 1, "{found:?}");
    let names = in_trash(scene);
    assert_eq!(names.len(), 2 * found.len(), "{names:?}");
    found.pop()
}

async fn restore(scene: &Scene, entry: &TrashedEntry) -> Result<(), Error> {
    scene.home.restore(&scene.io, entry.id, None, Quota::default()).await.map(drop)
}

/// Asserts that the file `name` is there or in the trash, and restores it.
async fn assert_kept(scene: &Scene, name: &str, file: &str, bytes: Vec<u8>) -> Result<bool, Error> {
    let is_trashed = match only_entry(scene).await {
        Some(entry) => {
            assert_eq!(entry.path.to_string(), name);
            assert_eq!(scene.contents(file), None);
            restore(scene, &entry).await?;
            true
        }
        None => false,
    };
    assert_eq!(scene.contents(file), Some(bytes));
    Ok(is_trashed)
}

#[test]
fn a_removal_of_a_file_to_the_trash() {
    cut_with_trash(&Change {
        before: old_file,
        change: |scene| doing(async move { remove(&scene, "a").await }),
        after: |scene, confirmed| {
            doing(async move {
                let is_trashed = assert_kept(&scene, "a", "a", large(1)).await?;
                assert!(is_trashed || !confirmed);
                Ok(())
            })
        },
    });
}

#[test]
fn a_removal_of_a_tree_to_the_trash() {
    cut_with_trash(&Change {
        before: folder,
        change: |scene| doing(async move { remove(&scene, "f").await }),
        after: |scene, confirmed| {
            doing(async move {
                let is_trashed = assert_kept(&scene, "f", "f/g/a", INNER.to_vec()).await?;
                assert!(is_trashed || !confirmed);
                Ok(())
            })
        },
    });
}

#[test]
fn a_removal_of_a_tree_to_the_trash_of_a_mounted_file_system() {
    cut_with_trash(&Change {
        before: mounted,
        change: |scene| doing(async move { remove(&scene, "m/d").await }),
        after: |scene, confirmed| {
            doing(async move {
                let mut found = listed(&scene).await;
                assert!(found.len() <= 1 && found.len() >= usize::from(confirmed), "{found:?}");
                if let Some(entry) = found.pop() {
                    assert_eq!(entry.path.to_string(), "m/d");
                    restore(&scene, &entry).await?;
                }
                assert_eq!(scene.contents("m/d/f"), Some(b"there before".to_vec()));
                Ok(())
            })
        },
    });
}

fn trashed_tree(scene: Scene) -> Doing {
    doing(async move {
        folder(scene.clone()).await?;
        remove(&scene, "f").await
    })
}

#[test]
fn a_restored_tree() {
    cut_with_trash(&Change {
        before: trashed_tree,
        change: |scene| {
            doing(async move {
                let entry = listed(&scene).await.pop().ok_or(Error::NotFound)?;
                restore(&scene, &entry).await
            })
        },
        after: |scene, confirmed| {
            doing(async move {
                let is_trashed = assert_kept(&scene, "f", "f/g/a", INNER.to_vec()).await?;
                assert!(!is_trashed || !confirmed);
                Ok(())
            })
        },
    });
}

#[test]
fn a_file_that_is_restored_with_its_folder() {
    cut_with_trash(&Change {
        before: |scene| {
            doing(async move {
                folder(scene.clone()).await?;
                remove(&scene, "f/g/a").await?;
                scene.settle().await;
                remove(&scene, "f").await?;
                let tree = listed(&scene).await.remove(0).id;
                scene.home.drop_trashed(&scene.io, Some(tree)).await.map(drop)
            })
        },
        change: |scene| {
            doing(async move {
                let entry = listed(&scene).await.pop().ok_or(Error::NotFound)?;
                restore(&scene, &entry).await
            })
        },
        after: |scene, confirmed| {
            doing(async move {
                let is_trashed = assert_kept(&scene, "f/g/a", "f/g/a", INNER.to_vec()).await?;
                assert!(!is_trashed || !confirmed);
                Ok(())
            })
        },
    });
}

#[test]
fn an_entry_that_is_deleted_for_good() {
    cut_with_trash(&Change {
        before: trashed_tree,
        change: |scene| {
            doing(async move {
                let entry = listed(&scene).await.pop().ok_or(Error::NotFound)?;
                scene.home.drop_trashed(&scene.io, Some(entry.id)).await.map(drop)
            })
        },
        after: |scene, confirmed| {
            doing(async move {
                if let Some(entry) = only_entry(&scene).await {
                    assert!(!confirmed);
                    restore(&scene, &entry).await?;
                    assert_eq!(scene.contents("f/g/a"), Some(INNER.to_vec()));
                }
                Ok(())
            })
        },
    });
}

#[test]
fn an_upload_for_which_an_entry_is_dropped() {
    cut_with_trash(&Change {
        before: |scene| {
            doing(async move {
                old_file(scene.clone()).await?;
                remove(&scene, "a").await
            })
        },
        change: |scene| {
            doing(async move {
                let quota = Quota { bytes: Some(large(1).len() as u64), files: None, keeps_trash: false };
                put(&scene.io, &scene.home, Terms::any(path("b"), quota), &large(2)).await.map(drop)
            })
        },
        after: |scene, confirmed| {
            doing(async move {
                assert_one_of(&scene, "b", None, Some(large(2)), confirmed);
                if let Some(entry) = only_entry(&scene).await {
                    restore(&scene, &entry).await?;
                    assert_eq!(scene.contents("a"), Some(large(1)));
                }
                Ok(())
            })
        },
    });
}
