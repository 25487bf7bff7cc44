//! A change is confirmed only if each sync that it needs has succeeded. That includes syncs that the
//! simulated disk would not miss: its journal has both ends of a move, and an empty file with its name.
//!
//! That a power cut takes back nothing is tested in `power.rs`, not here. Invariant: each call that writes
//! or syncs counts, and their number must be known.

use std::io::ErrorKind;

use plimsoll_io::Existing;
use plimsoll_io::sim::{Faults, Sim};
use plimsoll_store::{End, Error, NewUpload, Quota};

use super::{DATA, Scene, any, open, path, put};

/// Runs `before`, and then `change` with its call number `failing` made to fail. Returns the number of its
/// calls, and whether it was confirmed.
fn change_with<T: 'static>(
    failing: u64,
    before: impl AsyncFnOnce(&Scene) + 'static,
    change: impl AsyncFnOnce(&Scene) -> Result<T, Error> + 'static,
) -> (u64, bool) {
    let sim = Sim::new(1, Faults::none());
    let host = sim.host("server");
    host.disk().mkdir(DATA).unwrap();
    let (store, io, on) = (open(&host), host.io(), host.clone());
    let (sender, receiver) = std::sync::mpsc::channel();
    sim.run(&host, async move {
        let home = store.home(&io, 1, "alice").await.unwrap();
        let scene = Scene { io, host: on.clone(), store, home };
        before(&scene).await;
        let begin = on.disk().calls();
        on.disk().fail_at(begin + failing, ErrorKind::Other);
        let confirmed = change(&scene).await.is_ok();
        sender.send((on.disk().calls() - begin, confirmed)).unwrap();
    });
    receiver.recv().unwrap()
}

fn end(scene: &Scene, at: &str) -> End {
    End { home: scene.home.clone(), path: path(at), quota: Quota::default() }
}

#[test]
fn a_move_is_confirmed_when_both_folders_are_synced() {
    let moved = |failing| {
        let before = async |scene: &Scene| {
            scene.home.make_folder(&scene.io, path("f"), Quota::default(), false).await.unwrap();
            put(&scene.io, &scene.home, any("a"), b"moved").await.unwrap();
        };
        change_with(failing, before, async |scene| {
            end(scene, "a").rename(&scene.io, end(scene, "f/a"), Existing::Kept).await
        })
    };
    // The rename, and a sync of each folder.
    assert_eq!(moved(0), (3, true));
    for failing in 1..=3 {
        assert!(!moved(failing).1, "call {failing}");
    }
}

#[test]
fn an_upload_is_kept_when_its_file_its_record_and_their_folder_are_synced() {
    let kept = |failing| {
        change_with(
            failing,
            async |_| (),
            async |scene| {
                let new = NewUpload { terms: any("a"), bytes: Some(5), metadata: String::new() };
                scene.home.create_resumable(&scene.io, new).await
            },
        )
    };
    // Two files, the first line of the record, and a sync of each file and of the folder.
    assert_eq!(kept(0), (6, true));
    for failing in 1..=6 {
        assert!(!kept(failing).1, "call {failing}");
    }
}
