//! Creating folders, and removing, moving and copying entries.

use std::time::Duration;

use plimsoll_io::Existing;
use plimsoll_store::{Condition, Depth, End, Error, Quota, RemovalKind};

use super::{Scene, any, path, put, with_home};

fn always() -> Condition {
    Condition::none()
}

async fn make_folder(scene: &Scene, at: &str) -> Result<(), Error> {
    scene.home.make_folder(&scene.io, path(at), Quota::default(), false).await
}

fn end(scene: &Scene, at: &str) -> End {
    End { home: scene.home.clone(), path: path(at), quota: Quota::default() }
}

async fn rename(scene: &Scene, from: &str, to: &str, existing: Existing) -> Result<bool, Error> {
    end(scene, from).rename(&scene.io, end(scene, to), existing).await.map(|moved| moved.created)
}

async fn copy(scene: &Scene, from: &str, to: &str, existing: Existing) -> Result<bool, Error> {
    let copied = end(scene, from).copy(&scene.io, end(scene, to), existing, Depth::Infinity);
    copied.await.map(|copied| copied.created)
}

/// A folder `top` with a file, and a folder with a file.
async fn plant(scene: &Scene) {
    make_folder(scene, "top").await.unwrap();
    make_folder(scene, "top/sub").await.unwrap();
    put(&scene.io, &scene.home, any("top/a"), b"a").await.unwrap();
    put(&scene.io, &scene.home, any("top/sub/b"), b"bb").await.unwrap();
}

#[test]
fn a_folder_needs_a_free_name_and_a_folder_around_it() {
    with_home(|scene| async move {
        plant(&scene).await;
        assert!(matches!(make_folder(&scene, "top").await, Err(Error::AlreadyExists)));
        assert!(matches!(make_folder(&scene, "top/a").await, Err(Error::AlreadyExists)));
        assert!(matches!(make_folder(&scene, "").await, Err(Error::AlreadyExists)));
        assert!(matches!(make_folder(&scene, "none/a").await, Err(Error::NoFolder)));
        scene.assert_counted().await;
    });
}

#[test]
fn a_folder_is_made_with_its_parents_as_far_as_the_quota_permits() {
    with_home(|scene| async move {
        let make = async |at: &str, files| {
            scene
                .home
                .make_folder(&scene.io, path(at), Quota { bytes: None, files, keeps_trash: false }, true)
                .await
        };
        make("a/b/c", None).await.unwrap();
        assert!(matches!(make("a/b/c", None).await, Err(Error::AlreadyExists)));
        put(&scene.io, &scene.home, any("a/f"), b"f").await.unwrap();
        assert!(matches!(make("a/f/d", None).await, Err(Error::NoFolder)));
        assert!(matches!(make("a/f/d/e", None).await, Err(Error::NoFolder)));
        assert!(matches!(make("x/y/z", Some(5)).await, Err(Error::Quota)));
        assert!(matches!(make("x/y/z", Some(5)).await, Err(Error::Quota)), "those that were made stay");
        make("x/y/z", Some(6)).await.unwrap();
        scene.assert_counted().await;
    });
}

#[test]
fn a_folder_is_removed_with_all_that_is_in_it() {
    with_home(|scene| async move {
        plant(&scene).await;
        let deep: Vec<String> = (1..60).map(|depth| vec!["d"; depth].join("/")).collect();
        for folder in deep {
            make_folder(&scene, &format!("top/{folder}")).await.unwrap();
        }
        let removed = scene.home.remove(&scene.io, path("top"), RemovalKind::Any, always()).await.unwrap();
        assert_eq!((removed.usage.files, removed.usage.folders), (2, 61));
        assert_eq!(scene.contents("top/a"), None);
        scene.assert_counted().await;
        scene.settle().await;
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
    });
}

#[test]
fn a_removal_needs_an_entry_of_the_expected_kind() {
    with_home(|scene| async move {
        plant(&scene).await;
        let remove = async |at: &str, condition: Condition| {
            scene
                .home
                .remove(&scene.io, path(at), RemovalKind::Any, condition)
                .await
                .map(|removed| removed.usage.files)
        };
        assert!(matches!(remove("none", always()).await, Err(Error::NotFound)));
        assert!(matches!(remove("none/a", always()).await, Err(Error::NotFound)));
        assert!(matches!(remove("", always()).await, Err(Error::Home)));
        let never: Condition = Condition::new("never", |_| false);
        assert!(matches!(remove("top/a", never).await, Err(Error::Precondition)));
        assert_eq!(remove("top/a", always()).await.unwrap(), 1);
        assert!(matches!(remove("top/a", always()).await, Err(Error::NotFound)));
        scene.assert_counted().await;
    });
}

#[test]
fn a_link_is_removed_and_not_what_it_leads_to() {
    with_home(|scene| async move {
        plant(&scene).await;
        scene.host.disk().symlink("/data/accounts/alice/files/link", "top").unwrap();
        scene.home.remove(&scene.io, path("link"), RemovalKind::Any, always()).await.unwrap();
        assert_eq!(scene.contents("top/a"), Some(b"a".to_vec()));
        scene.assert_counted().await;
    });
}

#[test]
fn a_name_moves_with_all_below_it() {
    with_home(|scene| async move {
        plant(&scene).await;
        assert!(rename(&scene, "top", "other", Existing::Kept).await.unwrap());
        assert_eq!(scene.contents("other/sub/b"), Some(b"bb".to_vec()));
        assert_eq!(scene.contents("top/a"), None);
        assert!(rename(&scene, "other/a", "a", Existing::Kept).await.unwrap());
        assert_eq!(scene.contents("a"), Some(b"a".to_vec()));
        scene.assert_counted().await;
    });
}

#[test]
fn an_entry_at_the_new_name_stays_unless_replacing_is_requested() {
    with_home(|scene| async move {
        plant(&scene).await;
        put(&scene.io, &scene.home, any("z"), b"zzz").await.unwrap();
        for (from, to) in [("z", "top/a"), ("z", "top"), ("top", "z")] {
            let refused = rename(&scene, from, to, Existing::Kept).await;
            assert!(matches!(refused, Err(Error::AlreadyExists)), "{from} {to}: {refused:?}");
            let refused = copy(&scene, from, to, Existing::Kept).await;
            assert!(matches!(refused, Err(Error::AlreadyExists)), "{from} {to}: {refused:?}");
        }
        assert!(!copy(&scene, "z", "top/a", Existing::Replaced).await.unwrap());
        assert!(!rename(&scene, "top/sub/b", "top/a", Existing::Replaced).await.unwrap());
        assert_eq!(scene.contents("top/a"), Some(b"bb".to_vec()));
        assert!(!rename(&scene, "z", "top", Existing::Replaced).await.unwrap());
        assert_eq!(scene.contents("top"), Some(b"zzz".to_vec()));
        scene.settle().await;
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        scene.assert_counted().await;
    });
}

#[test]
fn nothing_goes_into_itself() {
    with_home(|scene| async move {
        plant(&scene).await;
        for (from, to) in [("top", "top/sub/x"), ("top", "top"), ("top/sub", "top"), ("", "x"), ("top", "")] {
            let moved = rename(&scene, from, to, Existing::Replaced).await;
            assert!(matches!(moved, Err(Error::IntoItself | Error::Home)), "{from} {to}: {moved:?}");
            let copied = copy(&scene, from, to, Existing::Replaced).await;
            assert!(matches!(copied, Err(Error::IntoItself | Error::Home)), "{from} {to}: {copied:?}");
        }
        assert_eq!(scene.contents("top/sub/b"), Some(b"bb".to_vec()));
        scene.assert_counted().await;
    });
}

#[test]
fn a_copy_has_the_same_bytes_and_is_another_file() {
    with_home(|scene| async move {
        plant(&scene).await;
        scene.host.disk().symlink("/data/accounts/alice/files/top/link", "a").unwrap();
        assert!(copy(&scene, "top", "twin", Existing::Kept).await.unwrap());
        put(&scene.io, &scene.home, any("top/a"), b"changed").await.unwrap();
        assert_eq!(scene.contents("twin/a"), Some(b"a".to_vec()));
        assert_eq!(scene.contents("twin/sub/b"), Some(b"bb".to_vec()));
        assert_eq!(scene.contents("twin/link"), Some(b"a".to_vec()));
        let shallow = end(&scene, "top").copy(&scene.io, end(&scene, "flat"), Existing::Kept, Depth::Zero);
        shallow.await.unwrap();
        assert!(super::names(&scene.host, "/data/accounts/alice/files/flat").is_empty());
        assert!(scene.pending().is_empty());
        scene.assert_counted().await;
    });
}

#[test]
fn a_copy_that_fails_leaves_nothing() {
    with_home(|scene| async move {
        plant(&scene).await;
        scene.host.disk().full_after(2);
        let failed = copy(&scene, "top", "twin", Existing::Kept).await;
        assert!(matches!(failed, Err(Error::Full)), "{failed:?}");
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        assert_eq!(scene.contents("twin/a"), None);
        scene.assert_counted().await;
    });
}

#[test]
fn two_moves_across_two_homes_never_wait_for_each_other() {
    with_home(|scene| async move {
        let bob = scene.store.home(&scene.io, 2, "bob").await.unwrap();
        put(&scene.io, &scene.home, any("a"), b"alice's").await.unwrap();
        put(&scene.io, &bob, any("b"), b"bob's").await.unwrap();
        let theirs = |at: &str| End { home: bob.clone(), path: path(at), quota: Quota::default() };
        let one = end(&scene, "a").rename(&scene.io, theirs("a"), Existing::Kept);
        let two = theirs("b").rename(&scene.io, end(&scene, "b"), Existing::Kept);
        let (one, two) = plimsoll_io::join(one, two).await;
        one.unwrap();
        two.unwrap();
        assert_eq!(scene.contents("b"), Some(b"bob's".to_vec()));
        scene.assert_counted().await;
    });
}

#[test]
fn an_entry_that_a_failed_move_was_to_replace_is_still_there() {
    with_home(|scene| async move {
        plant(&scene).await;
        make_folder(&scene, "new").await.unwrap();
        put(&scene.io, &scene.home, any("new/b"), b"new").await.unwrap();
        for copies in [false, true] {
            // The first call sets the replaced entry aside; the second fails.
            let (disk, kind) = (scene.host.disk(), std::io::ErrorKind::CrossesDevices);
            // A copy creates, fills and syncs its tree before.
            let calls_before = if copies { 5 } else { 0 };
            disk.fail_at(disk.calls() + calls_before + 2, kind);
            let failed = if copies {
                copy(&scene, "new", "top", Existing::Replaced).await
            } else {
                rename(&scene, "new", "top", Existing::Replaced).await
            };
            assert!(matches!(failed, Err(Error::OtherDisk)), "{copies}: {failed:?}");
            scene.settle().await;
            assert_eq!(scene.contents("top/sub/b"), Some(b"bb".to_vec()));
            assert_eq!(scene.contents("new/b"), Some(b"new".to_vec()));
            assert!(scene.pending().is_empty(), "{:?}", scene.pending());
            scene.assert_counted().await;
        }
    });
}

#[test]
fn no_move_makes_a_tree_that_no_path_reaches() {
    with_home(|scene| async move {
        let chain = |top: &str, len: usize| format!("{top}{}", "/d".repeat(len - 1));
        for (top, len) in [("one", 70), ("two", 70)] {
            for depth in 1..=len {
                make_folder(&scene, &chain(top, depth)).await.unwrap();
            }
        }
        let into = format!("{}/x", chain("two", 70));
        let deep = rename(&scene, "one", &into, Existing::Kept).await;
        assert!(matches!(deep, Err(Error::Path(_))), "{deep:?}");
        let deep = copy(&scene, "one", &into, Existing::Kept).await;
        assert!(matches!(deep, Err(Error::Path(_))), "{deep:?}");
        assert!(rename(&scene, "one", &format!("{}/x", chain("two", 30)), Existing::Kept).await.unwrap());
        scene.assert_counted().await;
    });
}

#[test]
fn a_folder_of_dangling_links_is_removed_as_an_empty_one() {
    with_home(|scene| async move {
        plant(&scene).await;
        make_folder(&scene, "empty").await.unwrap();
        let disk = scene.host.disk();
        disk.symlink("/data/accounts/alice/files/empty/link", "nowhere").unwrap();
        disk.special("/data/accounts/alice/files/empty/pipe").unwrap();
        let remove = async || {
            let removed = scene.home.remove(&scene.io, path("empty"), RemovalKind::EmptyFolder, always());
            removed.await.map(|removed| removed.usage.folders)
        };
        disk.symlink("/data/accounts/alice/files/empty/top", "../top").unwrap();
        assert!(matches!(remove().await, Err(Error::NotEmpty)));
        disk.remove("/data/accounts/alice/files/empty/top").unwrap();
        assert_eq!(remove().await.unwrap(), 1);
        scene.settle().await;
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        assert_eq!(scene.contents("top/a"), Some(b"a".to_vec()));
        scene.assert_counted().await;
    });
}

#[test]
fn no_new_name_has_a_control_character_and_an_old_one_is_replaced() {
    with_home(|scene| async move {
        plant(&scene).await;
        let refused = |result: Result<bool, Error>| matches!(result, Err(Error::Path(_)));
        let put =
            async |name: &str| put(&scene.io, &scene.home, any(name), b"new").await.map(|it| it.created);
        assert!(refused(put("a\tb").await) && refused(put("top/a\nb").await));
        assert!(refused(make_folder(&scene, "a\tb").await.map(|()| true)));
        assert!(refused(rename(&scene, "top/a", "a\tb", Existing::Kept).await));
        assert!(refused(copy(&scene, "top", "a\tb", Existing::Kept).await));
        scene.host.disk().write("/data/accounts/alice/files/a\tb", "old").unwrap();
        let scene = scene.started_again().await;
        assert!(!put("a\tb").await.unwrap());
        assert!(rename(&scene, "a\tb", "c", Existing::Kept).await.unwrap());
        assert_eq!(scene.contents("c"), Some(b"new".to_vec()));
    });
}

#[test]
fn a_time_is_set_of_files_and_folders_and_not_through_links() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"text").await.unwrap();
        scene.home.make_folder(&scene.io, path("f"), Quota::default(), false).await.unwrap();
        scene.host.disk().symlink("/data/accounts/alice/files/link", "a").unwrap();
        let time = Duration::new(1_000_000_000, 5000);
        let set = async |at: &str| scene.home.set_modified(&scene.io, path(at), time).await;
        assert_eq!(set("f").await.unwrap().modified, time);
        let calls = scene.host.disk().calls();
        assert_eq!(set("a").await.unwrap().modified, time);
        assert_eq!(scene.host.disk().calls(), calls + 2, "it is set, and synced");
        for missing in ["none", "none/a", "a/b", "link"] {
            assert!(matches!(set(missing).await, Err(Error::NotFound)), "{missing}");
        }
        assert!(matches!(set("").await, Err(Error::Home)));
        assert_eq!(scene.contents("a"), Some(b"text".to_vec()));
    });
}

#[test]
fn only_what_is_meant_is_removed() {
    with_home(|scene| async move {
        scene.home.make_folder(&scene.io, path("f"), Quota::default(), false).await.unwrap();
        put(&scene.io, &scene.home, any("f/a"), b"text").await.unwrap();
        scene.host.disk().symlink("/data/accounts/alice/files/link", "f").unwrap();
        let remove = async |at: &str, kind| {
            let checked = scene.home.check_removal(&scene.io, path(at), kind, Condition::none()).await;
            let removed = scene.home.remove(&scene.io, path(at), kind, Condition::none()).await;
            assert_eq!(checked.is_ok(), removed.is_ok());
            removed.map(|removed| (removed.usage.files, removed.usage.folders))
        };
        assert!(matches!(remove("f", RemovalKind::File).await, Err(Error::IsFolder)));
        assert!(matches!(remove("f/a", RemovalKind::EmptyFolder).await, Err(Error::NotFolder)));
        assert!(matches!(remove("link", RemovalKind::EmptyFolder).await, Err(Error::NotFolder)));
        assert!(matches!(remove("f", RemovalKind::EmptyFolder).await, Err(Error::NotEmpty)));
        assert!(matches!(remove("", RemovalKind::EmptyFolder).await, Err(Error::Home)));
        remove("link", RemovalKind::File).await.unwrap();
        assert_eq!(remove("f/a", RemovalKind::File).await.unwrap(), (1, 0));
        assert_eq!(remove("f", RemovalKind::EmptyFolder).await.unwrap(), (0, 1));
        assert!(matches!(remove("f", RemovalKind::EmptyFolder).await, Err(Error::NotFound)));
        scene.assert_counted().await;
    });
}
