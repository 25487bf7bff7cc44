//! The trash: removed entries are kept, listed, restored and dropped.

use std::path::Path as Folder;
use std::time::Duration;

use plimsoll_io::{Existing, FileKind};
use plimsoll_store::backend::Removal;
use plimsoll_store::limits::{PATH_NAMES_MAX, TRASH_CLEANED_EVERY};
use plimsoll_store::{
    BadPath, Condition, Depth, Disposal, End, Error, Quota, RemovalKind, Removed, TrashId, TrashPage,
    TrashedEntry, Usage, stored,
};

use super::{DATA, Scene, TRASH_TIME, any, names, path, put, with_home};

/// The time for which entries stay in these tests.
pub(super) const STAY: Duration = Duration::from_secs(30 * 24 * 3600);
const FILES: &str = "/data/accounts/alice/files";
const TRASH: &str = "/data/accounts/alice/pending/trash";

/// As [`with_home`], with a trash.
pub(super) fn with_trash<F: Future<Output = ()> + 'static>(test: impl Fn(Scene) -> F + Copy + 'static) {
    TRASH_TIME.set(STAY);
    with_home(test);
}

/// Removes an entry. Returns its identifier in the trash, and its usage.
pub(super) async fn remove(scene: &Scene, at: &str) -> (TrashId, Usage) {
    let removed = scene.home.remove(&scene.io, path(at), RemovalKind::Any, Condition::none()).await;
    let Removed { usage, trashed } = removed.unwrap();
    // Two entries are not of the same millisecond.
    scene.io.sleep(Duration::from_millis(2)).await;
    (trashed.unwrap(), usage)
}

/// Removes an entry for good.
async fn delete(scene: &Scene, at: &str) -> Removed {
    let (path, condition) = (path(at), Condition::none());
    let removal = Removal { path, what: RemovalKind::Any, condition, disposal: Disposal::Deleted };
    scene.home.remove_by(&scene.io, removal).await.unwrap()
}

pub(super) async fn listed(scene: &Scene) -> Vec<TrashedEntry> {
    scene.home.trash(&scene.io, TrashPage { after: None, limit: 100 }).await.unwrap()
}

pub(super) async fn restore(scene: &Scene, id: TrashId, to: Option<&str>) -> Result<String, Error> {
    let restored = scene.home.restore(&scene.io, id, to.map(path), Quota::default()).await;
    restored.map(|path| path.to_string())
}

/// The names in the trash of alice's home.
pub(super) fn in_trash(scene: &Scene) -> Vec<String> {
    let pending = names(&scene.host, &format!("{DATA}/accounts/alice/pending"));
    if pending.iter().any(|name| name == "trash") { names(&scene.host, TRASH) } else { Vec::new() }
}

async fn make_folder(scene: &Scene, at: &str) {
    scene.home.make_folder(&scene.io, path(at), Quota::default(), true).await.unwrap();
}

pub(super) async fn put_bytes(scene: &Scene, at: &str, bytes: usize) {
    put(&scene.io, &scene.home, any(at), &vec![7; bytes]).await.unwrap();
}

/// Returns the usage of the home as `plimsoll account show` counts it.
fn counted_by_operator(scene: &Scene) -> Usage {
    stored(&**scene.host.disk(), Folder::new(DATA), "alice").unwrap().unwrap().usage
}

fn end(scene: &Scene, at: &str) -> End {
    End { home: scene.home.clone(), path: path(at), quota: Quota::default() }
}

#[test]
fn a_removed_file_is_listed_in_the_trash_counts_and_is_restored() {
    with_trash(|scene| async move {
        put_bytes(&scene, "a b", 5).await;
        let before = scene.home.usage(&scene.io).await.unwrap();
        let now = scene.io.wall();
        let (id, usage) = remove(&scene, "a b").await;
        assert_eq!(counted_by_operator(&scene), before);
        assert_eq!((scene.contents("a b"), usage), (None, before));
        assert_eq!(scene.home.usage(&scene.io).await.unwrap(), before);
        assert_eq!(scene.home.trash_info(&scene.io).await.unwrap().usage, before);
        let found = listed(&scene).await;
        assert_eq!(found.len(), 1);
        let TrashedEntry { id: listed_id, path: listed_path, kind, usage, expires } = &found[0];
        assert_eq!((listed_id, listed_path, *kind, *usage), (&id, &path("a b"), FileKind::File, before));
        let since = id.removed().duration_since(now).unwrap_or_default();
        assert!(since < Duration::from_secs(5), "{since:?}");
        assert_eq!(std::time::SystemTime::UNIX_EPOCH + *expires, id.removed() + STAY);
        scene.assert_counted().await;
        assert_eq!(restore(&scene, id, None).await.unwrap(), "a b");
        assert_eq!(scene.contents("a b"), Some(vec![7; 5]));
        assert!(listed(&scene).await.is_empty() && in_trash(&scene).is_empty());
        assert_eq!(scene.home.usage(&scene.io).await.unwrap(), before);
        assert_eq!(scene.home.trash_info(&scene.io).await.unwrap().usage, Usage::default());
        assert!(matches!(restore(&scene, id, None).await, Err(Error::NotFound)));
        scene.assert_counted().await;
    });
}

#[test]
fn a_tree_is_removed_and_restored_by_one_rename_however_large_it_is() {
    with_trash(|scene| async move {
        let mut calls = Vec::new();
        for (top, files) in [("one", 1), ("many", 200)] {
            for file in 0..files {
                scene.host.disk().write(format!("{FILES}/{top}/d{}/{file}", file % 7), "x").unwrap();
            }
            let again = scene.started_again().await;
            again.home.usage(&again.io).await.unwrap();
            again.settle().await;
            let before = scene.host.disk().calls();
            let (id, usage) = remove(&again, top).await;
            calls.push(scene.host.disk().calls() - before);
            assert_eq!(usage.files, files);
            assert_eq!(counted_by_operator(&again), again.home.usage(&again.io).await.unwrap());
            assert_eq!(listed(&again).await[0].usage, usage);
            assert_eq!(restore(&again, id, None).await.unwrap(), top);
            assert_eq!(again.contents(&format!("{top}/d0/0")), Some(b"x".to_vec()));
            again.assert_counted().await;
        }
        // Writes of a record may be split, but no entry of the tree takes a call.
        assert!(calls.iter().all(|calls| *calls < 100), "{calls:?}");
    });
}

#[test]
fn a_removal_for_good_and_replaced_entries_skip_the_trash() {
    with_trash(|scene| async move {
        for name in ["a", "b", "f/x", "g/y"] {
            scene.home.make_folder(&scene.io, path("f"), Quota::default(), true).await.ok();
            scene.home.make_folder(&scene.io, path("g"), Quota::default(), true).await.ok();
            put_bytes(&scene, name, 3).await;
        }
        put_bytes(&scene, "a", 4).await;
        end(&scene, "b").rename(&scene.io, end(&scene, "a"), Existing::Replaced).await.unwrap();
        end(&scene, "f").rename(&scene.io, end(&scene, "g"), Existing::Replaced).await.unwrap();
        let copied = end(&scene, "a").copy(&scene.io, end(&scene, "g"), Existing::Replaced, Depth::Infinity);
        copied.await.unwrap();
        for name in ["a", "g"] {
            assert_eq!(delete(&scene, name).await.trashed, None);
        }
        scene.settle().await;
        assert!(in_trash(&scene).is_empty() && scene.pending().is_empty());
        assert_eq!(scene.home.usage(&scene.io).await.unwrap(), Usage::default());
        scene.assert_counted().await;
    });
}

#[test]
fn a_store_without_trash_removes_for_good() {
    with_trash(|scene| async move {
        put_bytes(&scene, "a", 5).await;
        scene.store.set_trash_time(Duration::ZERO);
        let removed = scene.home.remove(&scene.io, path("a"), RemovalKind::File, Condition::none()).await;
        assert_eq!(removed.unwrap().trashed, None);
        assert!(in_trash(&scene).is_empty());
        assert_eq!(scene.home.usage(&scene.io).await.unwrap(), Usage::default());
    });
}

#[test]
fn missing_folders_are_made_again_and_nothing_is_replaced() {
    with_trash(|scene| async move {
        make_folder(&scene, "f/g").await;
        put_bytes(&scene, "f/g/a", 5).await;
        let (file, _) = remove(&scene, "f/g/a").await;
        let (folder, _) = remove(&scene, "f").await;
        assert_eq!(restore(&scene, file, None).await.unwrap(), "f/g/a");
        assert!(matches!(restore(&scene, folder, None).await, Err(Error::AlreadyExists)));
        assert_eq!(restore(&scene, folder, Some("h/f")).await.unwrap(), "h/f");
        let (file, _) = remove(&scene, "f/g/a").await;
        remove(&scene, "f").await;
        put_bytes(&scene, "f", 1).await;
        assert!(matches!(restore(&scene, file, None).await, Err(Error::NoFolder)));
        assert!(matches!(restore(&scene, file, Some("f")).await, Err(Error::AlreadyExists)));
        assert!(matches!(restore(&scene, file, Some("")).await, Err(Error::Home)));
        assert_eq!(scene.contents("f"), Some(vec![7]));
        assert_eq!(restore(&scene, file, Some("f2")).await.unwrap(), "f2");
        scene.assert_counted().await;
    });
}

#[test]
fn a_tree_is_not_restored_to_where_its_paths_would_be_too_deep() {
    with_trash(|scene| async move {
        make_folder(&scene, "a/b/c").await;
        let (id, _) = remove(&scene, "a").await;
        let deep = vec!["d"; PATH_NAMES_MAX - 2].join("/");
        assert!(matches!(
            restore(&scene, id, Some(&format!("{deep}/a"))).await,
            Err(Error::Path(BadPath::TooDeep))
        ));
        assert_eq!(restore(&scene, id, None).await.unwrap(), "a");
    });
}

#[test]
fn a_link_is_restored_as_a_link() {
    with_trash(|scene| async move {
        put_bytes(&scene, "a", 5).await;
        scene.host.disk().symlink(format!("{FILES}/link"), "a").unwrap();
        let (id, usage) = remove(&scene, "link").await;
        assert_eq!((usage, listed(&scene).await[0].kind), (Usage::default(), FileKind::Other));
        assert_eq!(scene.contents("a"), Some(vec![7; 5]));
        restore(&scene, id, None).await.unwrap();
        assert_eq!(scene.contents("link"), Some(vec![7; 5]));
        scene.assert_counted().await;
    });
}

#[test]
fn a_condition_and_a_kind_hold_for_a_removal_to_the_trash() {
    with_trash(|scene| async move {
        make_folder(&scene, "f").await;
        put_bytes(&scene, "f/a", 5).await;
        let never = || Condition::never("If-Match: none");
        let refused = scene.home.remove(&scene.io, path("f/a"), RemovalKind::Any, never()).await;
        assert!(matches!(refused, Err(Error::Precondition)));
        let folder = scene.home.remove(&scene.io, path("f"), RemovalKind::File, Condition::none()).await;
        assert!(matches!(folder, Err(Error::IsFolder)));
        let full = scene.home.remove(&scene.io, path("f"), RemovalKind::EmptyFolder, Condition::none()).await;
        assert!(matches!(full, Err(Error::NotEmpty)));
        let missing = scene.home.remove(&scene.io, path("x"), RemovalKind::Any, Condition::none()).await;
        assert!(matches!(missing, Err(Error::NotFound)));
        assert!(in_trash(&scene).is_empty());
    });
}

#[test]
fn entries_are_deleted_for_good_one_by_one_or_all() {
    with_trash(|scene| async move {
        make_folder(&scene, "f/g").await;
        for name in ["a", "b", "f/x", "f/g/y"] {
            put_bytes(&scene, name, 10).await;
        }
        let (a, _) = remove(&scene, "a").await;
        let (tree, _) = remove(&scene, "f").await;
        remove(&scene, "b").await;
        for (id, files, bytes) in [(a, 1, 10), (tree, 2, 20)] {
            let dropped = scene.home.drop_trashed(&scene.io, Some(id)).await.unwrap();
            assert_eq!((dropped.usage.files, dropped.usage.bytes), (files, bytes));
            let again = scene.home.drop_trashed(&scene.io, Some(id)).await;
            assert!(matches!(again, Err(Error::NotFound)));
            scene.assert_counted().await;
        }
        assert_eq!(listed(&scene).await.len(), 1);
        scene.home.drop_trashed(&scene.io, None).await.unwrap();
        scene.settle().await;
        assert!(in_trash(&scene).is_empty() && scene.pending().is_empty());
        assert_eq!(scene.home.usage(&scene.io).await.unwrap(), Usage::default());
    });
}

#[test]
fn an_entry_that_was_removed_before_the_clock_was_set_back_is_deleted_with_the_others() {
    with_trash(|scene| async move {
        let later =
            scene.io.wall().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_millis() + 9000;
        let name = format!("{later:012x}{:020x}", 1);
        scene.host.disk().write(format!("{DATA}/accounts/alice/pending/trash/{name}"), "x").unwrap();
        let scene = scene.started_again().await;
        put_bytes(&scene, "a", 5).await;
        remove(&scene, "a").await;
        assert_eq!(listed(&scene).await.len(), 2);
        scene.home.drop_trashed(&scene.io, None).await.unwrap();
        assert!(listed(&scene).await.is_empty());
    });
}

#[test]
fn the_trash_is_listed_page_by_page_the_newest_entries_first() {
    with_trash(|scene| async move {
        let mut removed = Vec::new();
        for name in ["a", "b", "c", "d", "e"] {
            put_bytes(&scene, name, 1).await;
            removed.insert(0, remove(&scene, name).await.0);
        }
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = scene.home.trash(&scene.io, TrashPage { after, limit: 2 }).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            found.extend(page.into_iter().map(|entry| entry.id));
        }
        assert_eq!(found, removed);
    });
}

#[test]
fn entries_expire_and_leave_nothing() {
    let stay = TRASH_CLEANED_EVERY + Duration::from_secs(100);
    TRASH_TIME.set(stay);
    with_home(move |scene| async move {
        make_folder(&scene, "f").await;
        put_bytes(&scene, "f/x", 10).await;
        put_bytes(&scene, "a", 5).await;
        remove(&scene, "f").await;
        scene.io.sleep(stay - Duration::from_secs(10)).await;
        let (a, _) = remove(&scene, "a").await;
        scene.settle().await;
        assert_eq!(listed(&scene).await.len(), 2);
        scene.io.sleep(TRASH_CLEANED_EVERY).await;
        // The next operation starts the cleanup.
        scene.home.usage(&scene.io).await.unwrap();
        scene.settle().await;
        let left: Vec<TrashId> = listed(&scene).await.into_iter().map(|entry| entry.id).collect();
        assert_eq!((left, scene.pending()), (vec![a], Vec::new()));
        scene.assert_counted().await;
        // A server that starts later cleans up, too.
        scene.io.sleep(stay - TRASH_CLEANED_EVERY).await;
        let again = scene.started_again().await;
        again.home.usage(&again.io).await.unwrap();
        again.settle().await;
        assert!(in_trash(&again).is_empty(), "{:?}", in_trash(&again));
        assert_eq!(again.home.usage(&again.io).await.unwrap(), Usage::default());
    });
}

#[test]
fn a_crash_leaves_no_leftovers_and_an_entry_without_a_record_can_be_restored() {
    with_trash(|scene| async move {
        put_bytes(&scene, "a", 5).await;
        put_bytes(&scene, "b", 5).await;
        let (a, _) = remove(&scene, "a").await;
        let (b, _) = remove(&scene, "b").await;
        let disk = scene.host.disk();
        disk.remove(format!("{TRASH}/{a}.record")).unwrap();
        disk.remove(format!("{TRASH}/{b}")).unwrap();
        disk.write(format!("{TRASH}/notes.txt"), "the operator's").unwrap();
        let again = scene.started_again().await;
        let found = listed(&again).await;
        again.settle().await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path.to_string(), format!("recovered-{a}"));
        let mut left = in_trash(&again);
        left.sort();
        assert_eq!(left, [a.to_string(), "notes.txt".to_owned()]);
        assert_eq!(restore(&again, a, Some("a")).await.unwrap(), "a");
        assert_eq!(again.contents("a"), Some(vec![7; 5]));
        again.assert_counted().await;
    });
}

#[test]
fn entries_of_a_mounted_file_system_are_kept_on_it() {
    with_trash(|scene| async move {
        let disk = scene.host.disk();
        disk.write(format!("{FILES}/m/d/f"), "there before").unwrap();
        disk.mount(format!("{FILES}/m")).unwrap();
        let scene = scene.started_again().await;
        scene.home.usage(&scene.io).await.unwrap();
        let (tree, _) = remove(&scene, "m/d").await;
        put_bytes(&scene, "m/a", 5).await;
        let (file, _) = remove(&scene, "m/a").await;
        assert!(in_trash(&scene).is_empty());
        assert_eq!(names(&scene.host, &format!("{FILES}/m")), [".plimsoll-pending"]);
        scene.assert_counted().await;
        // After a start, the trash is known once more.
        let scene = scene.started_again().await;
        assert_eq!(listed(&scene).await.len(), 2);
        for to in ["a", "new/folder/a"] {
            assert!(matches!(restore(&scene, file, Some(to)).await, Err(Error::OtherDisk)), "{to}");
            assert!(!names(&scene.host, FILES).contains(&"new".to_owned()), "no folder was made");
        }
        assert_eq!(restore(&scene, tree, None).await.unwrap(), "m/d");
        assert_eq!(scene.contents("m/d/f"), Some(b"there before".to_vec()));
        scene.home.drop_trashed(&scene.io, Some(file)).await.unwrap();
        scene.settle().await;
        let staging = format!("{FILES}/m/.plimsoll-pending");
        let homes = names(&scene.host, &staging);
        assert_eq!(homes.len(), 1, "{homes:?}");
        assert_eq!(names(&scene.host, &format!("{staging}/{}", homes[0])), ["trash"]);
        assert!(names(&scene.host, &format!("{staging}/{}/trash", homes[0])).is_empty());
        scene.assert_counted().await;
    });
}
