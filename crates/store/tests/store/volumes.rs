//! File systems that are mounted in a home: everything works there as elsewhere, and only a move does not
//! lead from one to another.

use plimsoll_io::Existing;
use plimsoll_store::backend::ResumeTerms;
use plimsoll_store::{Begin, Condition, Depth, End, Error, Expected, NewUpload, Quota, RemovalKind};

use super::power::{Change, Doing, assert_one_of, cut_everywhere, doing, large};
use super::trash::{listed as trash_of, remove as remove_to_trash, with_trash};
use super::{Scene, any, names, path, put, send, with_home};

const FILES: &str = "/data/accounts/alice/files";

/// The folder for staging on the mounted file system.
const STAGING: &str = "/data/accounts/alice/files/m/.plimsoll-pending";

fn end(scene: &Scene, at: &str) -> End {
    End { home: scene.home.clone(), path: path(at), quota: Quota::default() }
}

async fn make_folder(scene: &Scene, at: &str) {
    scene.home.make_folder(&scene.io, path(at), Quota::default(), false).await.unwrap();
}

async fn remove(scene: &Scene, at: &str, kind: RemovalKind) -> Result<u64, Error> {
    let removed = scene.home.remove(&scene.io, path(at), kind, Condition::none()).await;
    removed.map(|removed| removed.usage.files)
}

/// Mounts a file system at `m`, in which there is a folder `d` with a file.
fn mount(scene: &Scene) {
    let disk = scene.host.disk();
    disk.write(format!("{FILES}/m/d/f"), "there before").unwrap();
    disk.mount(format!("{FILES}/m")).unwrap();
}

/// The paths of the entries in the staging folders of all homes on the mounted file system.
fn staged(scene: &Scene) -> Vec<String> {
    staged_in(scene, STAGING)
}

fn staged_in(scene: &Scene, staging: &str) -> Vec<String> {
    let homes = names(&scene.host, staging);
    homes.iter().flat_map(|home| names(&scene.host, &format!("{staging}/{home}"))).collect()
}

fn assert_nothing_is_staged(scene: &Scene) {
    assert!(scene.pending().is_empty(), "{:?}", scene.pending());
    assert!(staged(scene).is_empty(), "{:?}", staged(scene));
}

#[test]
fn files_are_stored_on_a_mounted_file_system() {
    with_home(|scene| async move {
        mount(&scene);
        let scene = scene.started_again().await;
        for name in ["m/a", "m/a", "m/d/b", "m/d/f"] {
            put(&scene.io, &scene.home, any(name), &large(3)).await.unwrap();
            assert_eq!(scene.contents(name), Some(large(3)), "{name}");
        }
        make_folder(&scene, "m/d/e").await;
        put(&scene.io, &scene.home, any("m/d/e/c"), b"c").await.unwrap();
        let mut upload = scene.home.upload_from(&scene.io, any("m/d/e/c"), Begin::End, true).await.unwrap();
        send(&mut upload, b" and more", 5).await.unwrap();
        upload.commit().await.unwrap();
        assert_eq!(scene.contents("m/d/e/c"), Some(b"c and more".to_vec()));
        assert_nothing_is_staged(&scene);
        scene.assert_counted().await;
    });
}

#[test]
fn a_refused_upload_to_a_file_system_without_staging_leaves_the_home_usable() {
    with_home(|scene| async move {
        mount(&scene);
        scene.host.disk().write(STAGING, "no folder").unwrap();
        let scene = scene.started_again().await;
        assert!(put(&scene.io, &scene.home, any("m/a"), b"a").await.is_err());
        let scene = scene.started_again().await;
        put(&scene.io, &scene.home, any("a"), b"a").await.unwrap();
        assert_eq!(scene.contents("m/d/f"), Some(b"there before".to_vec()));
    });
}

#[test]
fn entries_of_a_mounted_file_system_are_moved_copied_and_removed() {
    with_home(|scene| async move {
        mount(&scene);
        make_folder(&scene, "e").await;
        put(&scene.io, &scene.home, any("a"), b"a").await.unwrap();
        let scene = scene.started_again().await;
        for (from, to) in [("a", "m/a"), ("m/d", "e/copy"), ("e", "m/e"), ("e", "m/d")] {
            let copied =
                end(&scene, from).copy(&scene.io, end(&scene, to), Existing::Replaced, Depth::Infinity);
            copied.await.unwrap();
        }
        assert_eq!(scene.contents("m/e/copy/f"), Some(b"there before".to_vec()));
        for (from, to) in [("m/e", "m/d"), ("m/d/copy", "m/e"), ("m/a", "m/d")] {
            end(&scene, from).rename(&scene.io, end(&scene, to), Existing::Replaced).await.unwrap();
        }
        assert_eq!(scene.contents("m/d"), Some(b"a".to_vec()));
        assert_eq!(remove(&scene, "m/d", RemovalKind::File).await.unwrap(), 1);
        assert_eq!(remove(&scene, "m/e", RemovalKind::Any).await.unwrap(), 1);
        make_folder(&scene, "m/empty").await;
        remove(&scene, "m/empty", RemovalKind::EmptyFolder).await.unwrap();
        scene.settle().await;
        assert_eq!(names(&scene.host, &format!("{FILES}/m")), [".plimsoll-pending"]);
        assert_nothing_is_staged(&scene);
        scene.assert_counted().await;
    });
}

#[test]
fn a_move_to_another_file_system_and_one_of_a_mount_are_refused() {
    with_home(|scene| async move {
        mount(&scene);
        make_folder(&scene, "e").await;
        put(&scene.io, &scene.home, any("a"), b"a").await.unwrap();
        let scene = scene.started_again().await;
        for (from, to) in [("a", "m/a"), ("m/d/f", "f"), ("m", "e/m"), ("e", "m"), ("a", "m"), ("m", "a")] {
            for existing in [Existing::Replaced, Existing::Kept] {
                let checked = end(&scene, from).check_rename(&scene.io, &end(&scene, to), existing).await;
                let moved = end(&scene, from).rename(&scene.io, end(&scene, to), existing).await;
                assert!(matches!(checked, Err(Error::OtherDisk | Error::AlreadyExists)), "{checked:?}");
                assert!(
                    matches!(moved, Err(Error::OtherDisk | Error::AlreadyExists)),
                    "{from} {to}: {moved:?}"
                );
            }
        }
        let copied = end(&scene, "e").copy(&scene.io, end(&scene, "m"), Existing::Replaced, Depth::Infinity);
        assert!(matches!(copied.await, Err(Error::OtherDisk)));
        for kind in [RemovalKind::Any, RemovalKind::EmptyFolder] {
            let always = Condition::none();
            let checked = scene.home.check_removal(&scene.io, path("m"), kind, always).await;
            assert!(matches!(checked, Err(Error::OtherDisk)), "{checked:?}");
            assert!(matches!(remove(&scene, "m", kind).await, Err(Error::OtherDisk)));
        }
        assert_eq!(scene.contents("m/d/f"), Some(b"there before".to_vec()));
        scene.assert_counted().await;
    });
}

#[test]
fn the_folder_for_staging_is_no_path_of_the_account() {
    for text in [".plimsoll-pending", "m/.plimsoll-pending", ".plimsoll-pending/x"] {
        assert!(plimsoll_store::Path::parse(text.as_bytes()).is_err(), "{text}");
    }
    assert!(!plimsoll_store::is_name(b".plimsoll-pending"));
}

#[test]
fn an_interrupted_upload_to_a_mounted_file_system_is_resumed_after_a_restart() {
    with_home(|scene| async move {
        mount(&scene);
        let scene = scene.started_again().await;
        let (bytes, terms) = (large(5), ResumeTerms::any(Quota::default()));
        let id = begin_resumable(&scene, &bytes).await;
        assert_eq!(staged(&scene).len(), 2, "{:?}", staged(&scene));
        let scene = scene.started_again().await;
        let found = scene.home.resumable_uploads(&scene.io).await.unwrap();
        assert_eq!((found.len(), found[0].id, found[0].offset), (1, id, 40_000));
        let mut rest = scene.home.resume_upload(&scene.io, id, 40_000, Vec::new(), terms).await.unwrap();
        send(&mut rest, &bytes[40_000..], 9_000).await.unwrap();
        rest.commit().await.unwrap();
        assert_eq!(scene.contents("m/d/new"), Some(bytes));
        assert_nothing_is_staged(&scene);
        scene.assert_counted().await;
    });
}

#[test]
fn a_mount_whose_parent_was_renamed_keeps_its_trash_and_its_interrupted_uploads() {
    with_trash(|scene| async move {
        mount(&scene);
        let disk = scene.host.disk();
        disk.write(format!("{FILES}/p/n/f"), "to the trash").unwrap();
        disk.mount(format!("{FILES}/p/n")).unwrap();
        let scene = scene.started_again().await;
        for name in ["p/n/f", "m/d/f"] {
            remove_to_trash(&scene, name).await;
        }
        end(&scene, "p").rename(&scene.io, end(&scene, "q"), Existing::Replaced).await.unwrap();
        let scene = scene.started_again().await;
        let listed = async |scene: &Scene| {
            let all = trash_of(scene).await;
            all.into_iter().map(|entry| entry.path.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(listed(&scene).await, ["m/d/f"]);
        put(&scene.io, &scene.home, any("q/n/a"), b"a").await.unwrap();
        assert_eq!(listed(&scene).await, ["m/d/f", "p/n/f"]);
        let scene = scene.started_again().await;
        assert_eq!(listed(&scene).await, ["m/d/f", "p/n/f"]);
        assert_eq!(names(&scene.host, &format!("{FILES}/q/n/.plimsoll-pending")).len(), 1);
        scene.assert_counted().await;
    });
}

/// Begins a resumable upload to `m/d/new`, of which a part arrives.
async fn begin_resumable(scene: &Scene, bytes: &[u8]) -> plimsoll_store::UploadId {
    let new = NewUpload { terms: any("m/d/new"), bytes: Some(bytes.len() as u64), metadata: String::new() };
    let kept = scene.home.create_resumable(&scene.io, new).await.unwrap();
    let terms = ResumeTerms::any(Quota::default());
    let mut part = scene.home.resume_upload(&scene.io, kept.id, 0, Vec::new(), terms).await.unwrap();
    send(&mut part, &bytes[..40_000], 9_000).await.unwrap();
    assert_eq!(part.pause().await.unwrap(), 40_000);
    kept.id
}

#[test]
fn a_home_leaves_what_another_home_staged_on_a_file_system_that_both_have() {
    with_home(|scene| async move {
        mount(&scene);
        // As a bind mount of one folder in both homes.
        let of_bob = "/data/accounts/bob/files/m";
        scene.host.disk().hard_link(of_bob, format!("{FILES}/m")).unwrap();
        scene.host.disk().write("/data/accounts/bob/account", "2\n").unwrap();
        let scene = scene.started_again().await;
        let bytes = large(5);
        let id = begin_resumable(&scene, &bytes).await;
        let mut upload = scene.home.upload(&scene.io, any("m/a"), Expected::default()).await.unwrap();
        send(&mut upload, &bytes, 9_000).await.unwrap();

        let bob = scene.store.home(&scene.io, 2, "bob").await.unwrap();
        put(&scene.io, &bob, any("m/b"), b"b").await.unwrap();
        assert!(bob.resumable_uploads(&scene.io).await.unwrap().is_empty());
        upload.commit().await.unwrap();
        assert_eq!(scene.contents("m/a"), Some(bytes.clone()));

        let store = super::open(&scene.host);
        let bob = store.home(&scene.io, 2, "bob").await.unwrap();
        put(&scene.io, &bob, any("m/b"), b"b").await.unwrap();
        let scene = scene.started_again().await;
        let found = scene.home.resumable_uploads(&scene.io).await.unwrap();
        assert_eq!((found.len(), found[0].id, found[0].offset), (1, id, 40_000));
        let terms = ResumeTerms::any(Quota::default());
        let mut rest = scene.home.resume_upload(&scene.io, id, 40_000, Vec::new(), terms).await.unwrap();
        send(&mut rest, &bytes[40_000..], 9_000).await.unwrap();
        rest.commit().await.unwrap();
        assert_nothing_is_staged(&scene);
    });
}

/// Moves everything staged to where an older version staged it: in one folder for all homes.
fn stage_as_before(scene: &Scene) {
    let disk = scene.host.disk();
    for home in names(&scene.host, STAGING) {
        for name in names(&scene.host, &format!("{STAGING}/{home}")) {
            let bytes = disk.read(format!("{STAGING}/{home}/{name}")).unwrap();
            disk.write(format!("{STAGING}/{name}"), bytes).unwrap();
        }
        disk.remove(format!("{STAGING}/{home}")).unwrap();
    }
}

#[test]
fn the_power_is_cut_while_an_upload_staged_by_an_older_version_is_taken_over() {
    cut_everywhere(&Change {
        before: |scene| {
            doing(async move {
                mount(&scene);
                let scene = scene.started_again().await;
                begin_resumable(&scene, &large(5)).await;
                stage_as_before(&scene);
                Ok(())
            })
        },
        change: |scene| {
            doing(async move {
                let home = super::try_open(&scene.host)?.home(&scene.io, 1, "alice").await?;
                home.resumable_uploads(&scene.io).await.map(drop)
            })
        },
        after: |scene, _| {
            doing(async move {
                let found = scene.home.resumable_uploads(&scene.io).await?;
                assert_eq!((found.len(), found[0].offset), (1, 40_000), "{found:?}");
                scene.home.discard_upload(&scene.io, found[0].id).await?;
                nothing_staged(scene).await
            })
        },
    });
}

#[test]
fn leftovers_on_a_file_system_that_was_mounted_late_are_removed() {
    with_home(|scene| async move {
        mount(&scene);
        let leftover = "0123456789abcdef0123456789abcdef";
        for name in [leftover.to_owned(), format!("{leftover}.tree/inner")] {
            scene.host.disk().write(format!("{STAGING}/{name}"), "left").unwrap();
        }
        put(&scene.io, &scene.home, any("m/a"), b"a").await.unwrap();
        assert_nothing_is_staged(&scene);
    });
}

#[test]
fn files_that_are_a_file_system_of_their_own_are_stored_and_removed() {
    with_home(|scene| async move {
        scene.host.disk().mount(FILES).unwrap();
        let scene = scene.started_again().await;
        make_folder(&scene, "d").await;
        for name in ["a", "d/b"] {
            put(&scene.io, &scene.home, any(name), &large(3)).await.unwrap();
        }
        end(&scene, "a").rename(&scene.io, end(&scene, "d/a"), Existing::Kept).await.unwrap();
        assert_eq!(remove(&scene, "d", RemovalKind::Any).await.unwrap(), 2);
        scene.settle().await;
        assert_eq!(names(&scene.host, FILES), [".plimsoll-pending"]);
        assert!(staged_in(&scene, &format!("{FILES}/.plimsoll-pending")).is_empty());
        scene.assert_counted().await;
    });
}

/// A mounted file system, with a file.
pub(super) fn mounted(scene: Scene) -> Doing {
    doing(async move {
        mount(&scene);
        let scene = scene.started_again().await;
        put(&scene.io, &scene.home, any("b"), b"outside").await.map(drop)
    })
}

fn nothing_staged(scene: Scene) -> Doing {
    doing(async move {
        scene.settle().await;
        let left = names(&scene.host, &format!("{FILES}/m"));
        if left.iter().any(|name| name == ".plimsoll-pending") {
            assert!(staged(&scene).is_empty(), "{:?}", staged(&scene));
        }
        Ok(())
    })
}

#[test]
fn the_power_is_cut_during_an_upload_to_a_mounted_file_system() {
    cut_everywhere(&Change {
        before: mounted,
        change: |scene| {
            doing(async move { put(&scene.io, &scene.home, any("m/d/f"), &large(2)).await.map(drop) })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "m/d/f", Some(b"there before".to_vec()), Some(large(2)), confirmed);
            nothing_staged(scene)
        },
    });
}

#[test]
fn the_power_is_cut_during_a_copy_to_a_mounted_file_system() {
    cut_everywhere(&Change {
        before: mounted,
        change: |scene| {
            let to = end(&scene, "m/copy");
            let copied =
                async move { end(&scene, "b").copy(&scene.io, to, Existing::Kept, Depth::Infinity).await };
            doing(async move { copied.await.map(drop) })
        },
        after: |scene, confirmed| {
            assert_one_of(&scene, "m/copy", None, Some(b"outside".to_vec()), confirmed);
            nothing_staged(scene)
        },
    });
}

#[test]
fn the_power_is_cut_while_a_folder_of_a_mounted_file_system_is_removed() {
    cut_everywhere(&Change {
        before: mounted,
        change: |scene| doing(async move { remove(&scene, "m/d", RemovalKind::Any).await.map(drop) }),
        after: |scene, confirmed| {
            assert_one_of(&scene, "m/d/f", Some(b"there before".to_vec()), None, confirmed);
            nothing_staged(scene)
        },
    });
}

#[test]
fn the_power_is_cut_during_a_resumable_upload_to_a_mounted_file_system() {
    cut_everywhere(&Change {
        before: mounted,
        change: |scene| {
            doing(async move {
                let new = NewUpload { terms: any("m/d/new"), bytes: Some(9), metadata: String::new() };
                scene.home.create_resumable(&scene.io, new).await.map(drop)
            })
        },
        after: |scene, confirmed| {
            doing(async move {
                let found = scene.home.resumable_uploads(&scene.io).await?;
                assert!(!confirmed || found.len() == 1, "{found:?}");
                for kept in found {
                    scene.home.discard_upload(&scene.io, kept.id).await?;
                }
                nothing_staged(scene).await
            })
        },
    });
}
