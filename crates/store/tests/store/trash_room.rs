//! What is in the trash takes no space that an operation needs: the oldest entries are dropped first.

use plimsoll_store::backend::Removal;
use plimsoll_store::limits::TRASH_ENTRIES_MAX;
use plimsoll_store::{
    CommitGuard, Condition, Disposal, Error, Expected, Quota, RemovalKind, Removed, Terms, Usage,
};

use super::trash::{in_trash, listed, put_bytes, remove, restore, with_trash};
use super::{DATA, Scene, any, path, put, send};

fn under(to: &str, bytes: u64) -> Terms {
    Terms::any(path(to), Quota { bytes: Some(bytes), files: None, keeps_trash: false })
}

/// Removes three entries of 20, 30 and 40 bytes: a file, a tree and a file.
async fn three_entries(scene: &Scene) {
    scene.home.make_folder(&scene.io, path("tree"), Quota::default(), false).await.unwrap();
    for (name, bytes) in [("oldest", 20), ("tree/a", 30), ("newest", 40)] {
        put_bytes(scene, name, bytes).await;
    }
    for name in ["oldest", "tree", "newest"] {
        remove(scene, name).await;
    }
}

async fn paths(scene: &Scene) -> Vec<String> {
    listed(scene).await.into_iter().map(|entry| entry.path.to_string()).collect()
}

#[test]
fn the_oldest_entries_make_room_for_an_upload_within_the_quota() {
    with_trash(|scene| async move {
        three_entries(&scene).await;
        put(&scene.io, &scene.home, under("a", 100), &[1; 10]).await.unwrap();
        assert_eq!(paths(&scene).await, ["newest", "tree", "oldest"]);
        put(&scene.io, &scene.home, under("b", 100), &[1; 15]).await.unwrap();
        assert_eq!(paths(&scene).await, ["newest", "tree"]);
        scene.assert_counted().await;
        // Replacing a file needs only the difference.
        put(&scene.io, &scene.home, under("b", 100), &[2; 20]).await.unwrap();
        assert_eq!(paths(&scene).await, ["newest", "tree"]);
        put(&scene.io, &scene.home, under("c", 100), &[1; 5]).await.unwrap();
        assert_eq!(paths(&scene).await, ["newest"]);
        scene.assert_counted().await;
        scene.home.usage(&scene.io).await.unwrap();
        scene.settle().await;
        assert_eq!((in_trash(&scene).len(), scene.pending()), (2, Vec::new()));
    });
}

#[test]
fn an_entry_is_dropped_only_by_the_commit_of_an_upload() {
    with_trash(|scene| async move {
        three_entries(&scene).await;
        let begin = async |bytes| {
            let expected = Expected { bytes: Some(bytes), digests: Vec::new() };
            scene.home.upload(&scene.io, under("a", 100), expected).await
        };
        drop(begin(60).await.unwrap());
        scene.settle().await;
        let mut aborted = begin(60).await.unwrap();
        send(&mut aborted, &[1; 60], 7).await.unwrap();
        aborted.abort().await;
        let mut refused = begin(60).await.unwrap();
        send(&mut refused, &[1; 60], 7).await.unwrap();
        let guard = CommitGuard::new(|| false);
        assert!(refused.try_commit(Vec::new(), Some(guard)).await.unwrap().is_none());
        drop(refused);
        scene.settle().await;
        assert!(matches!(begin(101).await, Err(Error::Quota)));
        let mut upload = begin(60).await.unwrap();
        send(&mut upload, &[1; 60], 7).await.unwrap();
        assert_eq!(paths(&scene).await.len(), 3);
        upload.commit().await.unwrap();
        assert_eq!(paths(&scene).await, ["newest"]);
        scene.assert_counted().await;
    });
}

#[test]
fn a_request_of_another_account_drops_nothing() {
    with_trash(|scene| async move {
        three_entries(&scene).await;
        let quota = Quota { keeps_trash: true, ..under("a", 100).quota };
        let refused = put(&scene.io, &scene.home, Terms::any(path("a"), quota), &[1; 11]).await;
        assert!(matches!(refused, Err(Error::Quota)), "{refused:?}");
        put(&scene.io, &scene.home, Terms::any(path("a"), quota), &[1; 10]).await.unwrap();
        scene.host.disk().full_after(0);
        let no_quota = Quota { keeps_trash: true, ..Quota::default() };
        let refused = put(&scene.io, &scene.home, Terms::any(path("b"), no_quota), &[1; 10]).await;
        assert!(matches!(refused, Err(Error::Full)), "{refused:?}");
        let removed = remove_as_another(&scene, "a").await;
        assert!(matches!(removed, Err(Error::Full)), "{removed:?}");
        scene.host.disk().full_after(1 << 30);
        assert_eq!(paths(&scene).await.len(), 3);
        assert!(remove_as_another(&scene, "a").await.unwrap().trashed.is_some());
        assert_eq!(paths(&scene).await, ["a", "newest", "tree", "oldest"]);
        scene.assert_counted().await;
    });
}

async fn remove_as_another(scene: &Scene, at: &str) -> Result<Removed, Error> {
    let (path, condition) = (path(at), Condition::none());
    let removal = Removal { path, what: RemovalKind::Any, condition, disposal: Disposal::TrashOfAnother };
    scene.home.remove_by(&scene.io, removal).await
}

#[test]
fn nothing_is_dropped_for_an_upload_that_does_not_fit_all_the_same() {
    with_trash(|scene| async move {
        three_entries(&scene).await;
        put_bytes(&scene, "there", 50).await;
        let refused = put(&scene.io, &scene.home, under("a", 100), &[1; 51]).await;
        assert!(matches!(refused, Err(Error::Quota)), "{refused:?}");
        assert_eq!(paths(&scene).await.len(), 3);
        put(&scene.io, &scene.home, under("a", 100), &[1; 50]).await.unwrap();
        assert!(paths(&scene).await.is_empty());
        scene.assert_counted().await;
    });
}

#[test]
fn entries_make_room_for_files_and_folders_of_a_quota_by_number() {
    with_trash(|scene| async move {
        three_entries(&scene).await;
        let quota = Quota { bytes: None, files: Some(3), keeps_trash: false };
        put(&scene.io, &scene.home, Terms::any(path("a"), quota), b"1").await.unwrap();
        assert_eq!(paths(&scene).await, ["newest", "tree"]);
        for name in ["d1", "d2", "d3"] {
            scene.home.make_folder(&scene.io, path(name), quota, false).await.unwrap();
        }
        assert_eq!(paths(&scene).await, ["newest"]);
        let refused = scene.home.make_folder(&scene.io, path("d4"), quota, false).await;
        assert!(matches!(refused, Err(Error::Quota)));
        assert_eq!(paths(&scene).await, ["newest"]);
        scene.assert_counted().await;
    });
}

#[test]
fn a_restored_entry_is_not_dropped_for_the_folders_that_it_needs() {
    with_trash(|scene| async move {
        scene.home.make_folder(&scene.io, path("f"), Quota::default(), false).await.unwrap();
        put_bytes(&scene, "f/a", 5).await;
        let (id, _) = remove(&scene, "f/a").await;
        let (folder, _) = remove(&scene, "f").await;
        let quota = Quota { bytes: None, files: Some(1), keeps_trash: false };
        let restored = scene.home.restore(&scene.io, id, None, quota).await;
        assert_eq!(restored.unwrap().to_string(), "f/a");
        assert!(matches!(restore(&scene, folder, Some("g")).await, Err(Error::NotFound)));
        scene.assert_counted().await;
    });
}

/// Removes entries of two megabytes each.
async fn large_entries(scene: &Scene, names: &[&str]) {
    for name in names {
        put_bytes(scene, name, LARGE).await;
        remove(scene, name).await;
    }
}

const LARGE: usize = 2 * 1024 * 1024;

#[test]
fn the_oldest_entries_make_room_on_a_full_disk() {
    with_trash(|scene| async move {
        large_entries(&scene, &["oldest", "middle", "newest"]).await;
        scene.host.disk().full_after(10);
        put(&scene.io, &scene.home, any("a"), &[1; 25]).await.unwrap();
        assert_eq!(paths(&scene).await, ["newest", "middle"]);
        put_bytes(&scene, "b", LARGE + 1000).await;
        assert_eq!(paths(&scene).await, ["newest"]);
        // Its announced length shows that it cannot succeed.
        let expected = Expected { bytes: Some(3 * LARGE as u64), digests: Vec::new() };
        let mut upload = scene.home.upload(&scene.io, any("c"), expected).await.unwrap();
        let sent = send(&mut upload, &vec![1; 3 * LARGE], 1 << 20).await;
        let ended = match sent {
            Ok(()) => upload.commit().await.map(drop),
            refused => refused,
        };
        assert!(matches!(ended, Err(Error::Full)), "{ended:?}");
        assert_eq!(paths(&scene).await, ["newest"]);
        assert_eq!(scene.contents("b").map(|bytes| bytes.len()), Some(LARGE + 1000));
        scene.assert_counted().await;
    });
}

#[test]
fn a_removal_on_a_full_disk_drops_the_oldest_entry_and_keeps_the_newest() {
    with_trash(|scene| async move {
        large_entries(&scene, &["oldest", "newer"]).await;
        scene.home.make_folder(&scene.io, path("tree"), Quota::default(), false).await.unwrap();
        put_bytes(&scene, "tree/a", 5).await;
        scene.host.disk().full_after(0);
        remove(&scene, "tree").await;
        assert_eq!(paths(&scene).await, ["tree", "newer"]);
        scene.assert_counted().await;
    });
}

#[test]
fn a_home_without_a_trash_opens_on_a_full_disk() {
    with_trash(|scene| async move {
        for name in ["a", "b"] {
            put_bytes(&scene, name, 5).await;
        }
        scene.host.disk().full_after(0);
        let again = scene.started_again().await;
        assert_eq!(again.home.usage(&again.io).await.unwrap().files, 2);
        assert!(listed(&again).await.is_empty());
        let removed = again.home.remove(&again.io, path("a"), RemovalKind::Any, Condition::none()).await;
        assert_eq!(removed.unwrap().trashed, None);
        assert_eq!(again.contents("b"), Some(vec![7; 5]));
    });
}

#[test]
fn a_file_is_removed_for_good_from_a_disk_without_space_for_its_record() {
    with_trash(|scene| async move {
        put_bytes(&scene, "a", 5).await;
        scene.host.disk().full_after(0);
        let removed = scene.home.remove(&scene.io, path("a"), RemovalKind::Any, Condition::none()).await;
        assert_eq!(removed.unwrap().trashed, None);
        scene.host.disk().full_after(1 << 30);
        assert!(in_trash(&scene).is_empty());
        assert_eq!(scene.home.usage(&scene.io).await.unwrap(), Usage::default());
        scene.assert_counted().await;
    });
}

#[test]
fn the_number_of_entries_is_bounded() {
    with_trash(|scene| async move {
        let now = scene.io.wall().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_millis();
        for number in 0..TRASH_ENTRIES_MAX {
            let name = format!("{:012x}{number:020x}", now - 1000);
            scene.host.disk().write(format!("{DATA}/accounts/alice/pending/trash/{name}"), "x").unwrap();
        }
        let scene = scene.started_again().await;
        put_bytes(&scene, "a", 5).await;
        let refused = remove_as_another(&scene, "a").await;
        assert!(matches!(refused, Err(Error::Quota)), "{refused:?}");
        let (newest, _) = remove(&scene, "a").await;
        assert_eq!(scene.home.trash_info(&scene.io).await.unwrap().usage.files, TRASH_ENTRIES_MAX as u64);
        assert_eq!(listed(&scene).await[0].id, newest);
        scene.settle().await;
        let left = in_trash(&scene);
        assert_eq!(left.len(), TRASH_ENTRIES_MAX + 1, "the newest has a record");
        assert!(!left.contains(&format!("{:012x}{:020x}", now - 1000, 0)));
    });
}

const FILES: &str = "/data/accounts/alice/files";

/// Mounts a file system at this folder of the home, in which there is a file.
fn mount(scene: &Scene, folder: &str, file: &str) {
    scene.host.disk().write(format!("{FILES}/{folder}/{file}"), "there before").unwrap();
    scene.host.disk().mount(format!("{FILES}/{folder}")).unwrap();
}

#[test]
fn another_account_removes_nothing_for_good_where_no_trash_can_be_created() {
    with_trash(|scene| async move {
        mount(&scene, "m", "f");
        let scene = scene.started_again().await;
        scene.host.disk().full_after(0);
        let refused = remove_as_another(&scene, "m/f").await;
        assert!(matches!(refused, Err(Error::Full)), "{refused:?}");
        assert!(scene.contents("m/f").is_some());
        let removed = scene.home.remove(&scene.io, path("m/f"), RemovalKind::Any, Condition::none()).await;
        assert_eq!(removed.unwrap().trashed, None);
        assert_eq!(scene.contents("m/f"), None);
    });
}

#[test]
fn a_home_whose_files_are_a_full_file_system_opens_and_its_files_can_be_removed() {
    with_trash(|scene| async move {
        mount(&scene, "", "f");
        scene.host.disk().write(format!("{FILES}/g"), "also").unwrap();
        scene.host.disk().full_after(0);
        let scene = scene.started_again().await;
        assert_eq!(scene.home.usage(&scene.io).await.unwrap().files, 2);
        let refused = remove_as_another(&scene, "f").await;
        assert!(matches!(refused, Err(Error::Full)), "{refused:?}");
        let removed = scene.home.remove(&scene.io, path("f"), RemovalKind::Any, Condition::none()).await;
        assert_eq!(removed.unwrap().trashed, None);
        scene.host.disk().full_after(1 << 30);
        put_bytes(&scene, "a", 5).await;
        remove(&scene, "g").await;
        let scene = scene.started_again().await;
        assert_eq!(scene.contents("a"), Some(vec![7; 5]));
        assert_eq!(paths(&scene).await, ["g"]);
        scene.assert_counted().await;
    });
}

#[test]
fn entries_that_cannot_be_dropped_do_not_keep_those_of_other_file_systems() {
    with_trash(|scene| async move {
        mount(&scene, "m", "f");
        let scene = scene.started_again().await;
        put_bytes(&scene, "m/oldest", 20).await;
        put_bytes(&scene, "newer", 30).await;
        for name in ["m/oldest", "newer"] {
            remove(&scene, name).await;
        }
        // As a file system that fails.
        let staging = format!("{FILES}/m/.plimsoll-pending");
        let trash = format!("{staging}/{}/trash", super::names(&scene.host, &staging)[0]);
        scene.host.disk().remove(&trash).unwrap();
        scene.host.disk().write(&trash, "no folder").unwrap();
        let before = scene.home.usage(&scene.io).await.unwrap();
        put(&scene.io, &scene.home, under("a", before.bytes), &[1; 25]).await.unwrap();
        scene.settle().await;
        assert!(in_trash(&scene).is_empty());
        assert_eq!(scene.home.trash_info(&scene.io).await.unwrap().usage.bytes, 20);
    });
}
