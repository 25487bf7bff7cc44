//! Moves and copies between two names of one thing: a link and its target, two names of one file, a folder
//! and a link to it. Copies of folders with links.

use plimsoll_io::Existing;
use plimsoll_store::{Depth, End, Error, Home, Quota};

use super::{Scene, any, path, put, with_home};

const FILES: &str = "/data/accounts/alice/files";

fn end(home: &Home, at: &str) -> End {
    End { home: home.clone(), path: path(at), quota: Quota::default() }
}

fn link(scene: &Scene, at: &str, target: &str) {
    scene.host.disk().symlink(format!("{FILES}/{at}"), target).unwrap();
}

async fn make_folder(scene: &Scene, at: &str) {
    scene.home.make_folder(&scene.io, path(at), Quota::default(), false).await.unwrap();
}

async fn rename(scene: &Scene, from: &str, to: &str) -> Result<bool, Error> {
    let (from, to) = (end(&scene.home, from), end(&scene.home, to));
    let checked = from.check_rename(&scene.io, &to, Existing::Replaced).await;
    let moved = from.rename(&scene.io, to, Existing::Replaced).await.map(|moved| moved.created);
    assert_eq!(checked.is_ok(), moved.is_ok(), "the check {checked:?}, the move {moved:?}");
    moved
}

async fn copy(scene: &Scene, from: &str, to: &str) -> Result<bool, Error> {
    let (from, to) = (end(&scene.home, from), end(&scene.home, to));
    let checked = from.check_copy(&scene.io, &to, Existing::Replaced).await;
    let copied = from.copy(&scene.io, to, Existing::Replaced, Depth::Infinity).await;
    assert_eq!(checked.is_ok(), copied.is_ok(), "the check {checked:?}, the copy {copied:?}");
    copied.map(|copied| copied.created)
}

/// A folder `d` with the files `f` and `x`, two links to `f`, a second name of `f`, and links to `d` and to
/// the home. Returns the scene after a restart, which counts the second name.
async fn plant(scene: &Scene) -> Scene {
    make_folder(scene, "d").await;
    make_folder(scene, "d/sub").await;
    for name in ["d/f", "d/x"] {
        put(&scene.io, &scene.home, any(name), name.as_bytes()).await.unwrap();
    }
    link(scene, "l", "d/f");
    link(scene, "ll", "l");
    link(scene, "same", "d");
    link(scene, "here", ".");
    scene.host.disk().hard_link(format!("{FILES}/twin"), format!("{FILES}/d/f")).unwrap();
    scene.started_again().await
}

/// Asserts that nothing that [`plant`] made has changed.
fn assert_unchanged(scene: &Scene, subject: &str) {
    for name in ["d/f", "l", "ll", "same/f", "twin", "here/d/f"] {
        assert_eq!(scene.contents(name), Some(b"d/f".to_vec()), "{name} after {subject}");
    }
    assert_eq!(scene.contents("d/x"), Some(b"d/x".to_vec()), "{subject}");
    assert!(scene.pending().is_empty(), "{subject}: {:?}", scene.pending());
}

#[test]
fn a_file_is_not_moved_or_copied_onto_another_name_of_itself() {
    with_home(|scene| async move {
        let scene = plant(&scene).await;
        for (from, to) in
            [("l", "d/f"), ("ll", "l"), ("d/f", "l"), ("twin", "d/f"), ("d/f", "same/f"), ("l", "twin")]
        {
            let refused = rename(&scene, from, to).await;
            assert!(matches!(refused, Err(Error::IntoItself)), "{from} {to}: {refused:?}");
            let refused = copy(&scene, from, to).await;
            assert!(matches!(refused, Err(Error::IntoItself)), "{from} {to}: {refused:?}");
            assert_unchanged(&scene, &format!("{from} {to}"));
        }
        scene.assert_counted().await;
    });
}

#[test]
fn a_folder_is_not_moved_or_copied_into_itself_by_another_name() {
    with_home(|scene| async move {
        let scene = plant(&scene).await;
        for (from, to) in [
            ("d", "same/y"),
            ("d", "same/sub/y"),
            ("d", "here/same/sub/y"),
            ("same/sub", "d"),
            ("same/f", "d"),
            ("here/d", "same"),
        ] {
            let refused = rename(&scene, from, to).await;
            assert!(matches!(refused, Err(Error::IntoItself)), "{from} {to}: {refused:?}");
            let refused = copy(&scene, from, to).await;
            assert!(matches!(refused, Err(Error::IntoItself)), "{from} {to}: {refused:?}");
            assert_unchanged(&scene, &format!("{from} {to}"));
        }
        scene.assert_counted().await;
    });
}

#[test]
fn a_link_does_not_replace_the_folder_that_holds_its_target() {
    with_home(|scene| async move {
        let scene = plant(&scene).await;
        for (from, to) in [("l", "d"), ("same", "d")] {
            let (from_end, to_end) = (end(&scene.home, from), end(&scene.home, to));
            let refused = from_end.rename(&scene.io, to_end, Existing::Replaced).await;
            assert!(matches!(refused, Err(Error::IntoItself)), "{from} {to}: {refused:?}");
            assert_unchanged(&scene, from);
        }
        scene.assert_counted().await;
    });
}

#[test]
fn a_link_gets_another_name_wherever_it_leads() {
    with_home(|scene| async move {
        let scene = plant(&scene).await;
        for (from, to) in [("here", "there"), ("same", "alias"), ("l", "d/x"), ("twin", "other")] {
            rename(&scene, from, to).await.unwrap();
        }
        assert_eq!(scene.contents("there/alias/f"), Some(b"d/f".to_vec()));
        assert_eq!(scene.contents("other"), Some(b"d/f".to_vec()));
        scene.assert_counted().await;
    });
}

#[test]
fn a_copy_of_a_folder_has_what_a_listing_of_it_shows() {
    with_home(|scene| async move {
        make_folder(&scene, "top").await;
        make_folder(&scene, "top/sub").await;
        make_folder(&scene, "away").await;
        for name in ["top/a", "top/sub/b", "out"] {
            put(&scene.io, &scene.home, any(name), name.as_bytes()).await.unwrap();
        }
        link(&scene, "top/inner", "sub/b");
        link(&scene, "top/folder", "sub");
        link(&scene, "top/sub/up", "../a");
        link(&scene, "top/outer", "../out");
        link(&scene, "top/dangling", "nothing");
        link(&scene, "top/outside", "/data");
        assert!(copy(&scene, "top", "away/copy").await.unwrap());
        put(&scene.io, &scene.home, any("top/sub/b"), b"changed").await.unwrap();
        put(&scene.io, &scene.home, any("out"), b"changed").await.unwrap();
        for (name, of) in [
            ("a", "top/a"),
            ("inner", "top/sub/b"),
            ("folder/b", "top/sub/b"),
            ("sub/up", "top/a"),
            ("outer", "out"),
        ] {
            assert_eq!(scene.contents(&format!("away/copy/{name}")), Some(of.as_bytes().to_vec()), "{name}");
        }
        let names = super::names(&scene.host, &format!("{FILES}/away/copy"));
        assert_eq!(names, ["a", "folder", "inner", "outer", "sub"]);
        scene.assert_counted().await;
    });
}

#[test]
fn a_folder_with_a_link_to_a_folder_outside_it_is_not_copied_in_part() {
    with_home(|scene| async move {
        make_folder(&scene, "top").await;
        make_folder(&scene, "other").await;
        put(&scene.io, &scene.home, any("top/a"), b"a").await.unwrap();
        for target in ["../other", "../top", ".."] {
            link(&scene, "top/away", target);
            let copied = end(&scene.home, "top").copy(
                &scene.io,
                end(&scene.home, "c"),
                Existing::Kept,
                Depth::Infinity,
            );
            assert!(matches!(copied.await, Err(Error::LeadsOut)), "{target}");
            assert!(scene.pending().is_empty(), "{:?}", scene.pending());
            scene.host.disk().remove(format!("{FILES}/top/away")).unwrap();
        }
        scene.assert_counted().await;
    });
}

#[test]
fn a_file_that_a_copied_link_names_counts_for_the_quota() {
    with_home(|scene| async move {
        make_folder(&scene, "top").await;
        put(&scene.io, &scene.home, any("out"), &[7; 600]).await.unwrap();
        link(&scene, "top/outer", "../out");
        let to = |bytes| End {
            quota: Quota { bytes: Some(bytes), files: None, keeps_trash: false },
            ..end(&scene.home, "c")
        };
        let copied =
            |bytes| end(&scene.home, "top").copy(&scene.io, to(bytes), Existing::Kept, Depth::Infinity);
        assert!(matches!(copied(599).await, Err(Error::Quota)));
        assert!(matches!(copied(1199).await, Err(Error::Quota)));
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
        copied(1200).await.unwrap();
        scene.assert_counted().await;
    });
}
