//! The contents of the simulated disk after a power cut.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use plimsoll_io::sim::{Faults, Moment, Sim, SimDisk, Unsynced, seeds};
use plimsoll_io::{Existing, File, Fs};

/// The outcomes of a power cut: the harshest, the mildest, and random ones.
fn cuts() -> impl Iterator<Item = Unsynced> {
    [Unsynced::Lost, Unsynced::Kept].into_iter().chain(seeds(200).map(Unsynced::Drawn))
}

fn disk() -> Arc<SimDisk> {
    let sim = Sim::new(0, Faults::none());
    let disk = Arc::clone(sim.host("one").disk());
    disk.mkdir("/a").unwrap();
    disk.mkdir("/b").unwrap();
    disk
}

fn open(disk: &SimDisk, path: &str) -> File {
    disk.open_root(Path::new(path)).unwrap()
}

/// Creates a file and writes it, and syncs nothing.
fn put(disk: &SimDisk, folder: &File, name: &str, bytes: &str) -> File {
    let file = disk.create(folder, name.as_bytes()).unwrap();
    assert_eq!(disk.write_at(&file, bytes.as_bytes(), 0).unwrap(), bytes.len());
    file
}

fn rename(disk: &SimDisk, (from, old): (&File, &str), (to, new): (&File, &str)) {
    disk.rename(from, old.as_bytes(), to, new.as_bytes(), Existing::Replaced).unwrap();
}

/// Returns the contents of `path` after a cut; `None` if it is absent.
fn after(disk: &SimDisk, unsynced: Unsynced, path: &str) -> Option<String> {
    read(&disk.after_power_cut(unsynced), path)
}

fn read(disk: &SimDisk, path: &str) -> Option<String> {
    match disk.read(path) {
        Ok(bytes) => Some(String::from_utf8(bytes).unwrap()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            None
        }
    }
}

/// Returns all contents that `path` has after any of the cuts.
fn outcomes(disk: &SimDisk, path: &str) -> BTreeSet<Option<String>> {
    cuts().map(|unsynced| after(disk, unsynced, path)).collect()
}

fn set<const N: usize>(held: [Option<&str>; N]) -> BTreeSet<Option<String>> {
    held.map(|held| held.map(str::to_owned)).into_iter().collect()
}

#[test]
fn an_unsynced_file_is_lost_or_kept_or_torn() {
    let disk = disk();
    put(&disk, &open(&disk, "/a"), "new", "text");
    assert_eq!(after(&disk, Unsynced::Lost, "/a/new"), None);
    assert_eq!(after(&disk, Unsynced::Kept, "/a/new").as_deref(), Some("text"));
    assert_eq!(read(&disk, "/a/new").as_deref(), Some("text"), "a look at what would be changes nothing");
    let all = outcomes(&disk, "/a/new");
    for held in ["", "t", "tex", "text", "\0\0\0\0"] {
        assert!(all.contains(&Some(held.to_owned())), "{held:?} is not in {all:?}");
    }
    assert!(all.contains(&None));
}

#[test]
fn a_files_sync_keeps_its_contents_and_not_its_name() {
    let disk = disk();
    let file = put(&disk, &open(&disk, "/a"), "new", "text");
    disk.sync(&file).unwrap();
    assert_eq!(outcomes(&disk, "/a/new"), set([None, Some("text")]));
}

#[test]
fn a_folders_sync_keeps_its_names_and_not_their_contents() {
    let disk = disk();
    let folder = open(&disk, "/a");
    put(&disk, &folder, "new", "text");
    disk.sync(&folder).unwrap();
    assert_eq!(after(&disk, Unsynced::Lost, "/a/new").as_deref(), Some(""));
    assert!(!outcomes(&disk, "/a/new").contains(&None));
}

#[test]
fn a_file_synced_with_its_name_survives_any_cut() {
    let disk = disk();
    let folder = open(&disk, "/a");
    let file = put(&disk, &folder, "new", "text");
    disk.sync(&file).unwrap();
    disk.sync(&folder).unwrap();
    assert_eq!(outcomes(&disk, "/a/new"), set([Some("text")]));
}

#[test]
fn synced_bytes_that_did_not_change_outlive_those_that_did() {
    let disk = disk();
    disk.write("/a/log", "synced").unwrap();
    let file = disk.open_to_write(&open(&disk, "/a"), b"log").unwrap();
    disk.write_at(&file, b" more", 6).unwrap();
    let all = outcomes(&disk, "/a/log");
    assert!(all.iter().flatten().all(|held| held.starts_with("synced")), "{all:?}");
    for held in ["synced", "synced more", "synced\0\0\0\0\0", "synced m"] {
        assert!(all.contains(&Some(held.to_owned())), "{held:?} is not in {all:?}");
    }
    disk.write_at(&file, b"S", 0).unwrap();
    assert!(outcomes(&disk, "/a/log").contains(&Some("Synced".to_owned())));
}

#[test]
fn a_rename_survives_with_both_names_or_not_at_all() {
    let disk = disk();
    disk.write("/a/old", "text").unwrap();
    let (a, b) = (open(&disk, "/a"), open(&disk, "/b"));
    rename(&disk, (&a, "old"), (&b, "new"));
    let mut seen = BTreeSet::new();
    for unsynced in cuts() {
        let found = disk.after_power_cut(unsynced);
        let names = (read(&found, "/a/old").is_some(), read(&found, "/b/new").is_some());
        assert_ne!(names.0, names.1, "{unsynced:?}");
        seen.insert(names);
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn a_sync_of_either_folder_keeps_the_whole_rename() {
    for synced in ["/a", "/b"] {
        let disk = disk();
        disk.write("/a/old", "text").unwrap();
        let (a, b) = (open(&disk, "/a"), open(&disk, "/b"));
        rename(&disk, (&a, "old"), (&b, "new"));
        disk.sync(&open(&disk, synced)).unwrap();
        assert_eq!(outcomes(&disk, "/a/old"), set([None]), "{synced}");
        assert_eq!(outcomes(&disk, "/b/new"), set([Some("text")]), "{synced}");
    }
}

#[test]
fn another_folders_sync_keeps_nothing() {
    let disk = disk();
    put(&disk, &open(&disk, "/a"), "new", "text");
    disk.sync(&open(&disk, "/b")).unwrap();
    disk.sync(&open(&disk, "/")).unwrap();
    assert_eq!(after(&disk, Unsynced::Lost, "/a/new"), None);
}

#[test]
fn a_file_that_is_replaced_is_the_old_or_the_new_one() {
    let disk = disk();
    disk.write("/a/file", "old").unwrap();
    let folder = open(&disk, "/a");
    let file = put(&disk, &folder, "pending", "new");
    disk.sync(&file).unwrap();
    rename(&disk, (&folder, "pending"), (&folder, "file"));
    assert_eq!(outcomes(&disk, "/a/file"), set([Some("old"), Some("new")]));
    disk.sync(&folder).unwrap();
    assert_eq!(outcomes(&disk, "/a/file"), set([Some("new")]));
}

#[test]
fn a_file_that_is_replaced_before_its_sync_may_be_neither() {
    let disk = disk();
    disk.write("/a/file", "old").unwrap();
    let folder = open(&disk, "/a");
    put(&disk, &folder, "pending", "new");
    rename(&disk, (&folder, "pending"), (&folder, "file"));
    disk.sync(&folder).unwrap();
    assert_eq!(after(&disk, Unsynced::Lost, "/a/file").as_deref(), Some(""));
}

#[test]
fn a_later_change_of_a_name_survives_only_with_the_earlier_ones() {
    let disk = disk();
    let folder = open(&disk, "/a");
    let file = put(&disk, &folder, "one", "text");
    disk.sync(&file).unwrap();
    rename(&disk, (&folder, "one"), (&folder, "two"));
    rename(&disk, (&folder, "two"), (&folder, "three"));
    let mut seen = BTreeSet::new();
    for unsynced in cuts() {
        let found = disk.after_power_cut(unsynced);
        let names = found.names(&open(&found, "/a"), 9).unwrap();
        assert!(names.len() <= 1, "one file has two names");
        seen.insert(names.first().map(|entry| entry.name.clone()));
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[test]
fn a_sync_keeps_with_a_rename_what_gave_the_old_name() {
    let disk = disk();
    let (a, b) = (open(&disk, "/a"), open(&disk, "/b"));
    let file = put(&disk, &a, "pending", "text");
    disk.sync(&file).unwrap();
    rename(&disk, (&a, "pending"), (&b, "new"));
    disk.sync(&b).unwrap();
    assert_eq!(outcomes(&disk, "/b/new"), set([Some("text")]));
    assert_eq!(outcomes(&disk, "/a/pending"), set([None]));
}

#[test]
fn a_removed_file_may_come_back_until_its_folder_is_synced() {
    let disk = disk();
    disk.write("/a/file", "text").unwrap();
    let folder = open(&disk, "/a");
    disk.remove_file(&folder, b"file").unwrap();
    assert_eq!(outcomes(&disk, "/a/file"), set([None, Some("text")]));
    disk.sync(&folder).unwrap();
    assert_eq!(outcomes(&disk, "/a/file"), set([None]));
}

#[test]
fn a_file_in_a_new_folder_needs_the_syncs_of_both_folders() {
    let disk = disk();
    let outer = open(&disk, "/a");
    disk.make_folder(&outer, b"inner").unwrap();
    let inner = open(&disk, "/a/inner");
    let file = put(&disk, &inner, "new", "text");
    disk.sync(&file).unwrap();
    disk.sync(&inner).unwrap();
    assert_eq!(outcomes(&disk, "/a/inner/new"), set([None, Some("text")]));
    disk.sync(&outer).unwrap();
    assert_eq!(outcomes(&disk, "/a/inner/new"), set([Some("text")]));
}

#[test]
fn unsynced_moves_lose_no_file_that_was_there() {
    let disk = disk();
    disk.write("/a/one", "text").unwrap();
    disk.write("/b/sub/two", "text").unwrap();
    let (top, a, b, sub) = (open(&disk, "/"), open(&disk, "/a"), open(&disk, "/b"), open(&disk, "/b/sub"));
    disk.make_folder(&top, b"new").unwrap();
    let new = open(&disk, "/new");
    rename(&disk, (&a, "one"), (&new, "one"));
    rename(&disk, (&sub, "two"), (&a, "two"));
    disk.remove_folder(&b, b"sub").unwrap();
    // Moves b into a and back, then a into b: if these survived out of order, each folder could be
    // inside the other.
    rename(&disk, (&top, "b"), (&a, "b"));
    rename(&disk, (&a, "b"), (&top, "b"));
    rename(&disk, (&top, "a"), (&b, "a"));
    for unsynced in cuts() {
        let found = disk.after_power_cut(unsynced);
        let holds = |paths: &[&str]| paths.iter().filter(|path| read(&found, path).is_some()).count();
        assert_eq!(holds(&["/a/one", "/new/one", "/b/a/one"]), 1, "{unsynced:?}");
        assert_eq!(holds(&["/b/sub/two", "/a/two", "/b/a/two", "/a/b/sub/two"]), 1, "{unsynced:?}");
    }
}

#[test]
fn a_synced_move_of_a_folder_is_not_without_the_moves_before_it() {
    let disk = disk();
    disk.write("/a/deep/file", "text").unwrap();
    let (top, a, deep) = (open(&disk, "/"), open(&disk, "/a"), open(&disk, "/a/deep"));
    rename(&disk, (&a, "deep"), (&top, "deep"));
    rename(&disk, (&top, "a"), (&deep, "a"));
    disk.sync(&deep).unwrap();
    assert_eq!(outcomes(&disk, "/deep/file"), set([Some("text")]));
}

#[test]
fn a_file_planted_by_a_test_is_durable_at_once() {
    let disk = disk();
    let folder = open(&disk, "/a");
    put(&disk, &folder, "file", "unsynced");
    disk.write("/a/file", "planted").unwrap();
    disk.write("/a/sub/deep", "planted").unwrap();
    disk.write("/a/gone", "planted").unwrap();
    disk.remove("/a/gone").unwrap();
    disk.write("/a/cut", "planted").unwrap();
    disk.truncate("/a/cut", 2).unwrap();
    assert_eq!(outcomes(&disk, "/a/sub/deep"), set([Some("planted")]));
    assert_eq!(outcomes(&disk, "/a/gone"), set([None]));
    assert_eq!(outcomes(&disk, "/a/cut"), set([Some("pl")]));
    assert_eq!(outcomes(&disk, "/a/file"), set([Some("planted")]));
    assert_eq!(disk.calls(), 2, "what a test does is not counted");
}

#[test]
fn files_keep_their_numbers_and_new_ones_get_new_ones() {
    let disk = disk();
    disk.write("/a/kept", "text").unwrap();
    let folder = open(&disk, "/a");
    let kept = disk.stat_name(&folder, b"kept").unwrap();
    let lost = disk.stat(&put(&disk, &folder, "lost", "text")).unwrap();
    let found = disk.after_power_cut(Unsynced::Lost);
    let folder = open(&found, "/a");
    assert_eq!(found.stat_name(&folder, b"kept").unwrap(), kept);
    let new = found.stat(&found.create(&folder, b"new").unwrap()).unwrap();
    assert!(new.inode > lost.inode && new.changed > lost.changed);
}

#[test]
fn a_file_open_at_the_cut_is_closed_after_it() {
    let disk = disk();
    let folder = open(&disk, "/a");
    let file = put(&disk, &folder, "file", "text");
    disk.sync(&file).unwrap();
    disk.sync(&folder).unwrap();
    let found = disk.after_power_cut(Unsynced::Kept);
    assert!(found.stat(&file).is_err() && found.write_at(&file, b"x", 0).is_err());
    assert!(found.sync(&file).is_err() && found.create(&folder, b"new").is_err());
    assert_eq!(read(&found, "/a/file").as_deref(), Some("text"));
}

/// Makes a file durable; the calls are create, write, sync, rename, sync.
fn store(disk: &SimDisk) -> std::io::Result<()> {
    let folder = disk.open_root(Path::new("/a"))?;
    let file = disk.create(&folder, b"pending")?;
    disk.write_at(&file, b"new", 0)?;
    disk.sync(&file)?;
    disk.rename(&folder, b"pending", &folder, b"file", Existing::Replaced)?;
    disk.sync(&folder)
}

#[test]
fn the_power_is_cut_at_the_chosen_call_before_or_after_its_effect() {
    let clean = disk();
    store(&clean).unwrap();
    assert_eq!(clean.calls(), 5);
    for call in 1..=5 {
        for moment in [Moment::Before, Moment::After] {
            let disk = disk();
            disk.write("/a/file", "old").unwrap();
            disk.cut_at(call, moment);
            store(&disk).unwrap_err();
            assert_eq!((disk.is_cut(), disk.calls()), (true, call));
            let renamed = call == 5 || (call == 4 && moment == Moment::After);
            let kept = after(&disk, Unsynced::Kept, "/a/file");
            assert_eq!(kept.as_deref(), Some(if renamed { "new" } else { "old" }), "{call} {moment:?}");
            let synced = call == 5 && moment == Moment::After;
            let lost = after(&disk, Unsynced::Lost, "/a/file");
            assert_eq!(lost.as_deref(), Some(if synced { "new" } else { "old" }), "{call} {moment:?}");
        }
    }
    let disk = disk();
    disk.cut_at(6, Moment::Before);
    store(&disk).unwrap();
}

#[test]
fn without_power_every_call_fails() {
    let disk = disk();
    let folder = open(&disk, "/a");
    let file = put(&disk, &folder, "file", "text");
    disk.cut_power();
    let calls: [&dyn Fn() -> bool; 16] = [
        &|| disk.open_root(Path::new("/")).is_err(),
        &|| disk.open_beneath(&folder, b"file").is_err(),
        &|| disk.stat(&file).is_err(),
        &|| disk.list(&folder, b"", 9).is_err(),
        &|| disk.read_at(&file, &mut [0], 0).is_err(),
        &|| disk.names(&folder, 9).is_err(),
        &|| disk.stat_name(&folder, b"file").is_err(),
        &|| disk.open_to_write(&folder, b"file").is_err(),
        &|| disk.write_at(&file, b"x", 0).is_err(),
        &|| disk.set_len(&file, 0).is_err(),
        &|| disk.sync(&file).is_err(),
        &|| disk.make_folder(&folder, b"new").is_err(),
        &|| disk.remove_file(&folder, b"file").is_err(),
        &|| disk.space(&file).is_err(),
        &|| disk.write("/a/planted", "").is_err(),
        &|| disk.read("/a/file").is_err(),
    ];
    for (number, fails) in calls.iter().enumerate() {
        assert!(fails(), "call {number} of the list succeeds");
    }
    assert_eq!(after(&disk, Unsynced::Lost, "/a/file"), None, "a failed sync has had an effect");
}
