//! The power is cut at every call of a change that writes or syncs, before it and after it. All, none or
//! some of the unsynced data survives. Afterwards each file is the old or the new one, complete, and
//! confirmed changes are there.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_io::Existing;
use plimsoll_io::sim::{Faults, Moment, Sim, Unsynced};
use plimsoll_store::backend::ResumeTerms;
use plimsoll_store::{Begin, Condition, Depth, End, Error, NewUpload, Quota, RemovalKind};

use super::{DATA, Scene, any, open, path, put, send};

const ANY: RemovalKind = RemovalKind::Any;

/// Seeds for each call, by which some of the unsynced data survives.
const DRAWS: u64 = 12;
/// More calls than any change here makes.
const CALLS_MAX: usize = 200;

pub(super) type Doing = std::pin::Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// A change, its preparation, and the check after it.
pub(super) struct Change {
    pub(super) before: fn(Scene) -> Doing,
    pub(super) change: fn(Scene) -> Doing,
    /// Gets whether the change was confirmed; runs on the machine that started again.
    pub(super) after: fn(Scene, bool) -> Doing,
}

/// Returns the fates of unsynced data.
fn fates() -> impl Iterator<Item = Unsynced> {
    [Unsynced::Lost, Unsynced::Kept].into_iter().chain((0..DRAWS).map(Unsynced::Drawn))
}

pub(super) fn cut_everywhere(change: &Change) {
    for moment in [Moment::Before, Moment::After] {
        for fate in fates() {
            let was_cut = |call: &u64| cut(change, *call, moment, fate);
            let calls = (1..CALLS_MAX as u64).take_while(was_cut).count();
            assert!((2..CALLS_MAX - 1).contains(&calls), "{calls} calls");
        }
    }
}

/// Cuts the power at one call of the change; false if it makes fewer calls.
fn cut(change: &Change, call: u64, moment: Moment, fate: Unsynced) -> bool {
    let sim = Sim::new(call, Faults::splits());
    let host = sim.host("server");
    host.disk().mkdir(DATA).unwrap();
    let (before, doing) = (change.before, change.change);
    let confirmed = Rc::new(Cell::new(false));
    let (store, io, on, result) = (open(&host), host.io(), host.clone(), Rc::clone(&confirmed));
    sim.run(&host, async move {
        let home = store.home(&io, 1, "alice").await.unwrap();
        let scene = Scene { io, host: on.clone(), store, home };
        before(scene.clone()).await.unwrap();
        scene.settle().await;
        on.disk().cut_at(on.disk().calls() + call, moment);
        result.set(doing(scene).await.is_ok());
    });
    let was_cut = host.disk().is_cut();
    let (again, after) = (Sim::new(call, Faults::splits()), change.after);
    let machine = again.host_with_disk("server", &host.disk().after_power_cut(fate));
    let (store, io, on, confirmed) = (open(&machine), machine.io(), machine.clone(), confirmed.get());
    assert!(confirmed || was_cut, "a change fails only by the power cut");
    eprintln!("call {call}, {moment:?}, {fate:?}, confirmed: {confirmed}");
    again.run(&machine, async move {
        let home = store.home(&io, 1, "alice").await.unwrap();
        let scene = Scene { io, host: on, store, home };
        after(scene.clone(), confirmed).await.unwrap();
        scene.settle().await;
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        scene.assert_counted().await;
    });
    was_cut
}

/// More than is buffered in memory, in more than one write.
pub(super) fn large(fill: u8) -> Vec<u8> {
    (0..100_000_u32).map(|index| fill ^ u8::try_from(index % 251).unwrap()).collect()
}

pub(super) fn doing(doing: impl Future<Output = Result<(), Error>> + 'static) -> Doing {
    Box::pin(doing)
}

pub(super) fn nothing(_: Scene) -> Doing {
    doing(async { Ok(()) })
}

pub(super) fn old_file(scene: Scene) -> Doing {
    doing(async move { put(&scene.io, &scene.home, any("a"), &large(1)).await.map(drop) })
}

fn end(scene: &Scene, at: &str) -> End {
    End { home: scene.home.clone(), path: path(at), quota: Quota::default() }
}

/// Asserts that `name` is `new`, or, if that was not confirmed, `old`.
pub(super) fn assert_one_of(
    scene: &Scene,
    name: &str,
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
    confirmed: bool,
) {
    let found = scene.contents(name);
    let is_right = found == new || (!confirmed && found == old);
    let summary = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| (bytes.len(), bytes.first().copied()));
    assert!(is_right, "{name}: {:?}, confirmed: {confirmed}", summary(&found));
}

#[test]
fn an_upload() {
    cut_everywhere(&Change {
        before: nothing,
        change: |scene| {
            doing(async move { put(&scene.io, &scene.home, any("a"), &large(2)).await.map(drop) })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "a", None, Some(large(2)), confirmed);
            nothing(scene)
        },
    });
}

#[test]
fn a_small_upload() {
    cut_everywhere(&Change {
        before: nothing,
        change: |scene| doing(async move { put(&scene.io, &scene.home, any("a"), b"small").await.map(drop) }),
        after: |scene, confirmed| {
            assert_one_of(&scene, "a", None, Some(b"small".to_vec()), confirmed);
            nothing(scene)
        },
    });
}

#[test]
fn an_overwrite() {
    cut_everywhere(&Change {
        before: old_file,
        change: |scene| {
            doing(async move { put(&scene.io, &scene.home, any("a"), &large(2)).await.map(drop) })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "a", Some(large(1)), Some(large(2)), confirmed);
            nothing(scene)
        },
    });
}

#[test]
fn an_upload_into_a_new_folder() {
    cut_everywhere(&Change {
        before: nothing,
        change: |scene| {
            doing(async move {
                scene.home.make_folder(&scene.io, path("f"), Quota::default(), false).await?;
                scene.home.make_folder(&scene.io, path("f/g"), Quota::default(), false).await?;
                put(&scene.io, &scene.home, any("f/g/a"), b"new").await.map(drop)
            })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "f/g/a", None, Some(b"new".to_vec()), confirmed);
            nothing(scene)
        },
    });
}

/// The end of the first part of an upload in two parts.
const PARTED: usize = 70_000;

fn kept(scene: Scene) -> Doing {
    doing(async move {
        let (bytes, metadata) = (Some(large(2).len() as u64), String::new());
        let new = NewUpload { terms: any("a"), bytes, metadata };
        scene.home.create_resumable(&scene.io, new).await.map(drop)
    })
}

/// Sends a part of the only resumable upload, from its offset to `until`.
async fn resume_upload(scene: &Scene, until: usize) -> Result<u64, Error> {
    let found = scene.home.resumable_uploads(&scene.io).await?.pop().ok_or(Error::NotFound)?;
    let terms = ResumeTerms::any(Quota::default());
    let mut upload = scene.home.resume_upload(&scene.io, found.id, found.offset, Vec::new(), terms).await?;
    let bytes = large(2);
    send(&mut upload, &bytes[usize::try_from(found.offset).unwrap()..until], 9_000).await?;
    if until == bytes.len() { upload.commit().await.map(|_| until as u64) } else { upload.pause().await }
}

#[test]
fn a_part_of_a_resumed_upload() {
    cut_everywhere(&Change {
        before: kept,
        change: |scene| doing(async move { resume_upload(&scene, PARTED).await.map(drop) }),
        after: |scene, confirmed| {
            doing(async move {
                let found =
                    scene.home.resumable_uploads(&scene.io).await?.pop().expect("it was confirmed before");
                assert!(!confirmed || found.offset == PARTED as u64, "{} of {PARTED}", found.offset);
                // The bytes up to the reported offset are there: with the rest, they are the whole file.
                resume_upload(&scene, large(2).len()).await?;
                assert_eq!(scene.contents("a"), Some(large(2)));
                Ok(())
            })
        },
    });
}

#[test]
fn the_last_part_of_a_resumed_upload() {
    cut_everywhere(&Change {
        before: |scene| {
            doing(async move {
                old_file(scene.clone()).await?;
                kept(scene.clone()).await?;
                resume_upload(&scene, PARTED).await.map(drop)
            })
        },
        change: |scene| doing(async move { resume_upload(&scene, large(2).len()).await.map(drop) }),
        after: |scene, confirmed| {
            doing(async move {
                assert_one_of(&scene, "a", Some(large(1)), Some(large(2)), confirmed);
                match scene.home.resumable_uploads(&scene.io).await?.pop() {
                    Some(found) => {
                        assert!(!confirmed && found.offset >= PARTED as u64, "{}", found.offset);
                        resume_upload(&scene, large(2).len()).await?;
                    }
                    None => {
                        assert_eq!(scene.contents("a"), Some(large(2)), "neither the file nor its upload")
                    }
                }
                assert_eq!(scene.contents("a"), Some(large(2)));
                Ok(())
            })
        },
    });
}

/// The length of a large upload in bytes, and the offset at which it is interrupted.
const GROWN: usize = 3 << 20;
const BROKEN_OFF: usize = 2 << 20;

pub(super) fn grown(fill: u8) -> Vec<u8> {
    let mut bytes = large(fill).repeat(GROWN / 100_000 + 1);
    bytes.truncate(GROWN);
    bytes
}

/// Sends `bytes` from an offset, and commits the upload or interrupts it.
async fn send_from(scene: &Scene, from: Begin, bytes: &[u8], ends: bool) -> Result<(), Error> {
    let mut upload = scene.home.upload_from(&scene.io, any("a"), from, true).await?;
    send(&mut upload, bytes, 1 << 20).await?;
    if ends {
        return upload.commit().await.map(drop);
    }
    drop(upload);
    scene.settle().await;
    if scene.host.disk().is_cut() { Err(Error::NotFound) } else { Ok(()) }
}

pub(super) async fn pending(scene: &Scene) -> Result<Option<usize>, Error> {
    let kept = scene.home.pending_at(&scene.io, &path("a")).await?;
    Ok(kept.first().map(|kept| usize::try_from(kept.offset).unwrap()))
}

fn interrupt(scene: Scene) -> Doing {
    doing(async move { send_from(&scene, Begin::Start, &grown(2)[..BROKEN_OFF], false).await })
}

/// Resumes from the present offset, and commits the whole file.
pub(super) async fn go_on_by_path(scene: &Scene) -> Result<(), Error> {
    let offset = pending(scene).await?.unwrap_or(0);
    send_from(scene, Begin::Offset(offset as u64), &grown(2)[offset..], true).await?;
    assert!(scene.contents("a") == Some(grown(2)), "gone on from {offset}");
    Ok(())
}

#[test]
fn an_aborted_upload() {
    cut_everywhere(&Change {
        before: nothing,
        change: interrupt,
        after: |scene, confirmed| {
            doing(async move {
                let offset = pending(&scene).await?;
                assert!(!confirmed || offset == Some(BROKEN_OFF), "{offset:?}");
                go_on_by_path(&scene).await
            })
        },
    });
}

#[test]
fn an_aborted_upload_that_is_resumed() {
    cut_everywhere(&Change {
        before: interrupt,
        change: |scene| {
            let from = Begin::Offset(BROKEN_OFF as u64);
            doing(async move { send_from(&scene, from, &grown(2)[BROKEN_OFF..], true).await })
        },
        after: |scene, confirmed| {
            doing(async move {
                assert_one_of(&scene, "a", None, Some(grown(2)), confirmed);
                match pending(&scene).await? {
                    Some(offset) => {
                        assert!(!confirmed && offset >= BROKEN_OFF, "{offset}");
                        go_on_by_path(&scene).await
                    }
                    None => {
                        assert!(scene.contents("a") == Some(grown(2)), "neither the file nor its upload");
                        Ok(())
                    }
                }
            })
        },
    });
}

/// The offset to which a longer interrupted upload is cut.
const CUT_TO: usize = 50_000;

#[test]
fn an_upload_that_is_cut_and_resumed_with_other_bytes() {
    cut_everywhere(&Change {
        before: interrupt,
        change: |scene| {
            let from = Begin::Offset(CUT_TO as u64);
            doing(async move { send_from(&scene, from, &large(3), false).await })
        },
        after: |scene, confirmed| {
            doing(async move {
                let offset = pending(&scene).await?.expect("it was confirmed before");
                let (old, new) = (grown(2), [&grown(2)[..CUT_TO], &large(3)].concat());
                assert!(offset >= CUT_TO && (!confirmed || offset == new.len()), "{offset}");
                send_from(&scene, Begin::Offset(offset as u64), b"", true).await?;
                let found = scene.contents("a").expect("it was ended");
                let is_old = !confirmed && found.len() <= BROKEN_OFF && old.starts_with(&found);
                assert!(is_old || new.starts_with(&found), "{offset} bytes of neither");
                Ok(())
            })
        },
    });
}

#[test]
fn an_append() {
    cut_everywhere(&Change {
        before: old_file,
        change: |scene| doing(async move { send_from(&scene, Begin::End, b"more", true).await }),
        after: |scene, confirmed| {
            let new = [&large(1)[..], b"more"].concat();
            assert_one_of(&scene, "a", Some(large(1)), Some(new), confirmed);
            nothing(scene)
        },
    });
}

#[test]
fn a_time_that_is_set() {
    cut_everywhere(&Change {
        before: old_file,
        change: |scene| {
            let time = std::time::Duration::from_secs(1);
            doing(async move { scene.home.set_modified(&scene.io, path("a"), time).await.map(drop) })
        },
        after: |scene, confirmed| {
            doing(async move {
                assert_eq!(scene.contents("a"), Some(large(1)));
                let modified = scene.home.stat(&scene.io, &path("a")).await.unwrap().modified;
                assert!(!confirmed || modified == std::time::Duration::from_secs(1), "{modified:?}");
                Ok(())
            })
        },
    });
}

#[test]
fn the_begin_of_an_upload_that_is_kept() {
    cut_everywhere(&Change {
        before: nothing,
        change: kept,
        after: |scene, confirmed| {
            doing(async move {
                let found = scene.home.resumable_uploads(&scene.io).await?;
                assert!(!confirmed || found.len() == 1);
                for kept in found {
                    assert_eq!((kept.offset, kept.to), (0, path("a")));
                    scene.home.discard_upload(&scene.io, kept.id).await?;
                }
                Ok(())
            })
        },
    });
}

#[test]
fn a_kept_upload_that_is_thrown_away() {
    cut_everywhere(&Change {
        before: kept,
        change: |scene| {
            doing(async move {
                let found = scene.home.resumable_uploads(&scene.io).await?.pop().ok_or(Error::NotFound)?;
                scene.home.discard_upload(&scene.io, found.id).await
            })
        },
        after: |scene, confirmed| {
            doing(async move {
                let found = scene.home.resumable_uploads(&scene.io).await?;
                assert!(!confirmed || found.is_empty(), "it is back with the power");
                for kept in found {
                    scene.home.discard_upload(&scene.io, kept.id).await?;
                }
                Ok(())
            })
        },
    });
}

#[test]
fn a_move() {
    cut_everywhere(&Change {
        before: |scene| {
            doing(async move {
                scene.home.make_folder(&scene.io, path("f"), Quota::default(), false).await?;
                old_file(scene).await
            })
        },
        change: |scene| {
            let moved =
                async move { end(&scene, "a").rename(&scene.io, end(&scene, "f/b"), Existing::Kept).await };
            doing(async move { moved.await.map(drop) })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "a", Some(large(1)), None, confirmed);
            assert_one_of(&scene, "f/b", None, Some(large(1)), confirmed);
            assert!(scene.contents("a").is_some() != scene.contents("f/b").is_some(), "one of both");
            nothing(scene)
        },
    });
}

#[test]
fn a_move_onto_another_file() {
    cut_everywhere(&Change {
        before: |scene| {
            doing(async move {
                put(&scene.io, &scene.home, any("b"), b"replaced").await?;
                old_file(scene).await
            })
        },
        change: |scene| {
            let moved =
                async move { end(&scene, "a").rename(&scene.io, end(&scene, "b"), Existing::Replaced).await };
            doing(async move { moved.await.map(drop) })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "a", Some(large(1)), None, confirmed);
            assert_one_of(&scene, "b", Some(b"replaced".to_vec()), Some(large(1)), confirmed);
            nothing(scene)
        },
    });
}

/// A folder with a file in a folder.
pub(super) fn folder(scene: Scene) -> Doing {
    doing(async move {
        scene.home.make_folder(&scene.io, path("f"), Quota::default(), false).await?;
        scene.home.make_folder(&scene.io, path("f/g"), Quota::default(), false).await?;
        put(&scene.io, &scene.home, any("f/g/a"), b"inner").await.map(drop)
    })
}

pub(super) const INNER: &[u8] = b"inner";

#[test]
fn a_move_of_a_folder_and_an_upload_into_it() {
    cut_everywhere(&Change {
        before: folder,
        change: |scene| {
            doing(async move {
                end(&scene, "f").rename(&scene.io, end(&scene, "h"), Existing::Kept).await?;
                put(&scene.io, &scene.home, any("h/g/b"), b"new").await.map(drop)
            })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "f/g/a", Some(INNER.to_vec()), None, confirmed);
            assert_one_of(&scene, "h/g/a", None, Some(INNER.to_vec()), confirmed);
            assert_one_of(&scene, "h/g/b", None, Some(b"new".to_vec()), confirmed);
            nothing(scene)
        },
    });
}

#[test]
fn a_delete() {
    cut_everywhere(&Change {
        before: old_file,
        change: |scene| {
            let always: Condition = Condition::none();
            doing(async move { scene.home.remove(&scene.io, path("a"), ANY, always).await.map(drop) })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "a", Some(large(1)), None, confirmed);
            nothing(scene)
        },
    });
}

#[test]
fn a_delete_of_an_empty_folder() {
    cut_everywhere(&Change {
        before: |scene| {
            doing(async move { scene.home.make_folder(&scene.io, path("f"), Quota::default(), false).await })
        },
        change: |scene| {
            let always: Condition = Condition::none();
            let removed = async move {
                scene.home.remove(&scene.io, path("f"), RemovalKind::EmptyFolder, always).await
            };
            doing(async move { removed.await.map(drop) })
        },
        after: |scene, confirmed| {
            doing(async move {
                let folders = scene.home.usage(&scene.io).await?.folders;
                assert!(folders == 0 || (!confirmed && folders == 1));
                Ok(())
            })
        },
    });
}

#[test]
fn a_delete_of_a_folder() {
    cut_everywhere(&Change {
        before: folder,
        change: |scene| {
            let always: Condition = Condition::none();
            doing(async move { scene.home.remove(&scene.io, path("f"), ANY, always).await.map(drop) })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "f/g/a", Some(INNER.to_vec()), None, confirmed);
            nothing(scene)
        },
    });
}

#[test]
fn a_copy_of_a_folder() {
    cut_everywhere(&Change {
        before: folder,
        change: |scene| {
            let copied = async move {
                end(&scene, "f").copy(&scene.io, end(&scene, "h"), Existing::Kept, Depth::Infinity).await
            };
            doing(async move { copied.await.map(drop) })
        },
        after: |scene, confirmed| {
            assert_eq!(scene.contents("f/g/a"), Some(INNER.to_vec()));
            assert_one_of(&scene, "h/g/a", None, Some(INNER.to_vec()), confirmed);
            nothing(scene)
        },
    });
}

#[test]
fn an_upload_into_a_home_that_a_killed_server_had_not_synced() {
    use plimsoll_io::Fs as _;
    let sim = Sim::new(0, Faults::splits());
    let host = sim.host("server");
    host.disk().mkdir(DATA).unwrap();
    let (store, disk) = (open(&host), host.disk().clone());
    let accounts = disk.open_root(std::path::Path::new("/data/accounts")).unwrap();
    disk.make_folder(&accounts, b"alice").unwrap();
    let alice = disk.open_beneath(&accounts, b"alice").unwrap();
    disk.make_folder(&alice, b"files").unwrap();
    disk.make_folder(&alice, b"pending").unwrap();
    let owner = disk.create(&alice, b"account").unwrap();
    disk.write_at(&owner, b"1\n", 0).unwrap();
    disk.sync(&owner).unwrap();
    let io = host.io();
    sim.run(&host, async move {
        let home = store.home(&io, 1, "alice").await.unwrap();
        put(&io, &home, any("a"), b"confirmed").await.unwrap();
    });
    let found = host.disk().after_power_cut(Unsynced::Lost);
    assert_eq!(found.read("/data/accounts/alice/files/a").unwrap(), b"confirmed");
}
