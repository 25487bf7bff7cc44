//! Tests of the cache's folder: the power is cut at every call, and a start finds complete objects only.

use std::sync::Arc;

use plimsoll_io::sim::{Call, Faults, Moment, Sim, SimDisk, Unsynced};

use super::*;
use crate::cache::policy::stored_for_tests as stored;

const ROOT: &str = "/cache";
/// More calls than a commit and a purge make.
const CALLS_MAX: u64 = 100;
/// Seeds by which a part of the unsynced data survives.
const DRAWS: u64 = 20;

fn new_disk() -> Arc<SimDisk> {
    let sim = Sim::new(0, Faults::none());
    Arc::clone(sim.host("one").disk())
}

fn fates() -> impl Iterator<Item = Unsynced> {
    [Unsynced::Lost, Unsynced::Kept].into_iter().chain((0..DRAWS).map(Unsynced::Drawn))
}

fn content(of: &str) -> Vec<u8> {
    of.as_bytes().repeat(1000)
}

/// Stores an object whose content depends on its name, in two writes.
fn store(disk: &Disk, fs: &dyn Fs, name: &str) -> io::Result<StoredFile> {
    let mut writer = disk.create(fs)?;
    let bytes = content(name);
    let (first, second) = bytes.split_at(bytes.len() / 3);
    writer.append(fs, first)?;
    writer.append(fs, second)?;
    let head = stored(&format!("http://a/{name}"), "", "ETag: \"a\"\r\n");
    let mut stored = None;
    disk.commit(fs, writer, &head, || true, |file| stored = Some(file))?;
    Ok(stored.unwrap())
}

/// Opens the folder and returns the names of its objects. Checks each one's bytes.
fn names(fs: &SimDisk) -> Vec<String> {
    let (disk, found) = Disk::open(fs, &CacheFolder::new(ROOT)).unwrap();
    let read = |object: &FoundObject| {
        let uri = String::from_utf8(object.head.key.uri().to_vec()).unwrap();
        let name = uri.strip_prefix("http://a/").unwrap().to_owned();
        let file = disk.open_object(fs, object.file.sequence()).unwrap();
        let mut bytes = vec![0; usize::try_from(object.file.content_bytes()).unwrap()];
        assert!(read_exact(fs, &file, &mut bytes, 0).unwrap());
        assert!(bytes == content(&name), "wrong bytes in {name}");
        name
    };
    let mut names: Vec<_> = found.iter().map(read).collect();
    assert!(read_all_names(fs, &fs.open_root(ROOT.as_ref()).unwrap(), PENDING).unwrap().is_empty());
    // They are not to be removed at the end of this check.
    found.into_iter().for_each(|object| std::mem::forget(object.file));
    names.sort();
    names
}

/// Runs `work` with the power cut at each of its calls in turn, and checks what the next start finds.
fn cut_everywhere(work: impl Fn(&Disk, &SimDisk) -> io::Result<()>, check: impl Fn(bool, &[String])) {
    for moment in [Moment::Before, Moment::After] {
        for call in 1..CALLS_MAX {
            let before = new_disk();
            let (disk, _) = Disk::open(&*before, &CacheFolder::new(ROOT)).unwrap();
            std::mem::forget(store(&disk, &*before, "old").unwrap());
            before.cut_at(before.calls() + call, moment);
            let is_done = work(&disk, &before).is_ok();
            let was_cut = before.is_cut();
            assert!(is_done || was_cut, "an error without a cut");
            for fate in fates() {
                let after = before.after_power_cut(fate);
                check(is_done, &names(&after));
            }
            if !was_cut {
                break;
            }
        }
    }
}

#[test]
fn objects_are_found_again_with_their_bytes_and_in_their_order() {
    let fs = new_disk();
    let (disk, found) = Disk::open(&*fs, &CacheFolder::new(ROOT)).unwrap();
    assert!(found.is_empty());
    let first = store(&disk, &*fs, "one").unwrap();
    let second = store(&disk, &*fs, "two").unwrap();
    assert!(first.sequence() < second.sequence());
    std::mem::forget((first, second));
    assert_eq!(names(&fs), ["one", "two"]);
    let (again, _) = Disk::open(&*fs, &CacheFolder::new(ROOT)).unwrap();
    assert!(store(&again, &*fs, "three").unwrap().sequence() > 2);
}

#[test]
fn a_power_cut_at_any_call_of_a_commit_leaves_complete_objects_only() {
    cut_everywhere(
        |disk, fs| store(disk, fs, "new").map(std::mem::forget),
        |_, names| assert!(names.iter().all(|name| name == "old" || name == "new")),
    );
}

#[test]
fn the_end_of_the_process_loses_no_stored_object() {
    let fs = new_disk();
    let (disk, _) = Disk::open(&*fs, &CacheFolder::new(ROOT)).unwrap();
    std::mem::forget(store(&disk, &*fs, "one").unwrap());
    assert_eq!(names(&fs.after_power_cut(Unsynced::Kept)), ["one"]);
}

#[test]
fn a_confirmed_purge_survives_a_power_cut() {
    cut_everywhere(
        |disk, fs| {
            let new = store(disk, fs, "new")?;
            disk.purge(fs, || drop(new)).map(drop)
        },
        |is_done, names| assert!(!is_done || !names.contains(&"new".to_owned()), "{names:?}"),
    );
}

#[test]
fn a_purge_makes_removals_before_it_durable_and_tries_failed_ones_again() {
    let fs = new_disk();
    let (disk, _) = Disk::open(&*fs, &CacheFolder::new(ROOT)).unwrap();
    let (one, two) = (store(&disk, &*fs, "one").unwrap(), store(&disk, &*fs, "two").unwrap());
    drop((one, two));
    fs.fail_next(Call::RemoveFile, io::ErrorKind::Other);
    assert!(disk.has_removals() && disk.remove_discarded(&*fs).is_err());
    assert_eq!(names(&fs.after_power_cut(Unsynced::Kept)).len(), 1, "one removal has failed");
    assert!(disk.has_removals());
    disk.purge(&*fs, || {}).unwrap();
    assert!(names(&fs.after_power_cut(Unsynced::Lost)).is_empty());
    assert!(!disk.has_removals());
}

#[test]
fn a_file_cut_or_changed_at_any_byte_of_its_end_is_dropped() {
    let fs = new_disk();
    let (disk, _) = Disk::open(&*fs, &CacheFolder::new(ROOT)).unwrap();
    let file = store(&disk, &*fs, "one").unwrap();
    let path = format!("{ROOT}/objects/{}", String::from_utf8_lossy(&name_of(file.sequence())));
    let bytes = fs.read(&path).unwrap();
    std::mem::forget(file);
    let content_bytes = content("one").len();
    for len in (0..content_bytes).step_by(97).chain(content_bytes..bytes.len()) {
        fs.write(&path, bytes[..len].to_vec()).unwrap();
        assert!(names(&fs).is_empty(), "cut at {len}");
        assert!(fs.read(&path).is_err(), "the file stays");
    }
    // The checksums are compared when the content is read.
    for at in content_bytes + 8..bytes.len() {
        let mut torn = bytes.clone();
        torn[at] ^= 0x10;
        fs.write(&path, torn).unwrap();
        assert!(names(&fs).is_empty(), "torn at {at}");
    }
    fs.write(&path, bytes.clone()).unwrap();
    assert_eq!(names(&fs), ["one"]);
    // A file under the name of another is not that one's.
    fs.write(format!("{ROOT}/objects/00000000000000ff"), bytes).unwrap();
    assert_eq!(names(&fs), ["one"]);
    assert!(fs.read(format!("{ROOT}/objects/00000000000000ff")).is_err());
}

#[test]
fn files_and_folders_that_are_not_the_caches_stay_in_its_folder() {
    let fs = new_disk();
    let (disk, _) = Disk::open(&*fs, &CacheFolder::new(ROOT)).unwrap();
    std::mem::forget(store(&disk, &*fs, "one").unwrap());
    let strays = ["objects/stray", "objects/00000000000000aa/file", "pending/stray", "stray"];
    strays.iter().for_each(|stray| fs.write(format!("{ROOT}/{stray}"), "precious").unwrap());
    assert!(read_all_names(&*fs, &fs.open_root(ROOT.as_ref()).unwrap(), PENDING).unwrap().len() == 1);
    let (again, found) = Disk::open(&*fs, &CacheFolder::new(ROOT)).unwrap();
    assert_eq!(found.len(), 1);
    found.into_iter().for_each(|object| std::mem::forget(object.file));
    // The number of the folder is not used again.
    assert!(store(&again, &*fs, "two").unwrap().sequence() > 0xaa);
    for stray in strays {
        assert_eq!(fs.read(format!("{ROOT}/{stray}")).unwrap(), b"precious", "{stray}");
    }
}

#[test]
fn folders_that_were_removed_are_made_again() {
    let (objects, pending) = ("/cache/objects", "/cache/pending");
    for removed in [&[objects, pending, ROOT][..], &[objects], &[pending]] {
        let fs = new_disk();
        let (disk, _) = Disk::open(&*fs, &CacheFolder::new(ROOT)).unwrap();
        std::mem::forget(store(&disk, &*fs, "one").unwrap());
        removed.iter().for_each(|path| fs.remove(path).unwrap());
        let error = store(&disk, &*fs, "two").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{removed:?}");
        assert_eq!(disk.reopen(&*fs).unwrap(), removed.contains(&objects), "{removed:?}");
        std::mem::forget(store(&disk, &*fs, "two").unwrap());
        disk.remove_discarded(&*fs).unwrap();
        assert!(names(&fs).contains(&"two".to_owned()), "{removed:?}");
    }
}

#[test]
fn a_disk_that_fills_up_costs_the_object_and_no_other() {
    let fs = new_disk();
    let (disk, _) = Disk::open(&*fs, &CacheFolder::new(ROOT)).unwrap();
    std::mem::forget(store(&disk, &*fs, "one").unwrap());
    fs.full_after(content("two").len() as u64 / 2);
    let full = store(&disk, &*fs, "two").unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    disk.remove_discarded(&*fs).unwrap();
    assert_eq!(names(&fs), ["one"]);
}

#[test]
fn an_object_that_a_purge_overtook_is_not_committed() {
    let fs = new_disk();
    let (disk, _) = Disk::open(&*fs, &CacheFolder::new(ROOT)).unwrap();
    let writer = disk.create(&*fs).unwrap();
    let head = stored("http://a/x", "", "ETag: \"a\"\r\n");
    assert!(!disk.commit(&*fs, writer, &head, || false, drop).unwrap());
    disk.remove_discarded(&*fs).unwrap();
    assert!(names(&fs).is_empty());
}
