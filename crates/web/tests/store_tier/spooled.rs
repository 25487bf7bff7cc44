//! Uploads that the front spools until each is complete.

use std::path::Path as Folder;
use std::sync::Arc;

use plimsoll_io::sim::{Call, Chance, Faults, Host, Moment, Sim, SimDisk, Unsynced, seeds};
use plimsoll_io::{Fs as _, Lease};
use plimsoll_store::{Condition, Error, Expected, Quota, Terms};

use crate::{Front, SECRET, noise, path, pending, serve};

const SPOOL: &str = "/spool";

/// Returns the number of names in the spool folder.
fn spooled(disk: &Arc<SimDisk>) -> usize {
    let folder = disk.open_root(Folder::new(SPOOL)).unwrap();
    disk.names(&folder, usize::MAX).unwrap().len()
}

/// Runs `test` with a front that spools, its disk, and the store's host.
fn run(test: impl AsyncFn(Front, Arc<SimDisk>, Host) + Copy + 'static) {
    for seed in seeds(20) {
        let sim = Sim::new(seed, Faults::splits());
        let (store, host) = (sim.host("store"), sim.host("front"));
        let (at, disk) = (serve(&sim, &store), Arc::clone(host.disk()));
        disk.mkdir(SPOOL).unwrap();
        let folder = disk.open_root(Folder::new(SPOOL)).unwrap();
        sim.run(&host.clone(), async move {
            let front = Front::spooling(host.io(), &at, SECRET, (1, "alice"), Some(folder)).await;
            test(front, disk, store).await;
        });
        assert_eq!(sim.panics(), Vec::<String>::new());
    }
}

#[test]
fn no_byte_of_a_file_is_at_the_store_until_it_is_complete() {
    run(async |front, disk, store| {
        for (name, length) in [("empty", 0), ("small", 10), ("large", 300_000)] {
            let expected = Expected { bytes: Some(length as u64), ..Expected::default() };
            let terms = Terms::any(path(name), Quota::default());
            let mut upload = front.home.upload(&front.io, terms, expected).await.unwrap();
            for piece in noise(1, length).chunks(70_000) {
                upload.write(Lease::owned(piece.to_vec())).await.unwrap();
                assert_eq!((pending(store.disk()), spooled(&disk)), (0, 0), "{name}");
            }
            upload.commit().await.unwrap();
            assert_eq!(front.get(name).await.unwrap(), noise(1, length), "{name}");
        }
        assert_eq!((pending(store.disk()), spooled(&disk)), (0, 0));
    });
}

#[test]
fn a_spooled_upload_is_checked_before_its_first_byte_and_after_its_last() {
    run(async |front, _, store| {
        let begin = async |to: &str| {
            let terms =
                Terms { condition: Condition::none().and_new(), ..Terms::any(path(to), Quota::default()) };
            front.home.upload(&front.io, terms, Expected::default()).await
        };
        let mut upload = begin("a").await.unwrap();
        upload.write(Lease::owned(b"late".to_vec())).await.unwrap();
        front.put("a", b"first", Condition::none()).await.unwrap();
        assert!(matches!(upload.commit().await, Err(Error::Precondition)));
        assert!(matches!(begin("a").await.err(), Some(Error::Precondition)));
        assert!(matches!(begin("none/a").await.err(), Some(Error::NoFolder)));
        assert_eq!(front.get("a").await.unwrap(), b"first");
        front.io.sleep(crate::SECOND).await;
        assert_eq!(pending(store.disk()), 0);
    });
}

#[test]
fn no_more_is_spooled_than_the_home_may_have() {
    run(async |front, disk, _| {
        let terms = Terms::any(path("a"), Quota { bytes: Some(100), files: None, keeps_trash: false });
        let mut upload = front.home.upload(&front.io, terms, Expected::default()).await.unwrap();
        upload.write(Lease::owned(noise(1, 100))).await.unwrap();
        let refused = upload.write(Lease::owned(noise(1, 1))).await;
        assert!(matches!(refused, Err(Error::Quota)), "{refused:?}");
        upload.abort().await;
        assert_eq!(spooled(&disk), 0);
    });
}

#[test]
fn a_front_whose_disk_is_full_or_fails_says_so_and_confirms_nothing() {
    run(async |front, disk, _| {
        disk.full_after(1_000);
        assert!(matches!(front.put("a", &noise(1, 50_000), Condition::none()).await, Err(Error::Full)));
        disk.full_after(1 << 30);
        disk.fail_next(Call::Write, std::io::ErrorKind::Other);
        assert!(matches!(front.put("a", b"a", Condition::none()).await, Err(Error::Failed(_))));
        assert!(matches!(front.get("a").await, Err(Error::NotFound)));
        front.put("a", b"a", Condition::none()).await.unwrap();
    });
}

#[test]
fn a_front_that_ends_at_any_moment_leaves_nothing_of_what_was_spooled() {
    for seed in seeds(40) {
        let sim = Sim::new(seed, Faults::splits());
        let (store, host) = (sim.host("store"), sim.host("front"));
        let (at, disk) = (serve(&sim, &store), Arc::clone(host.disk()));
        disk.mkdir(SPOOL).unwrap();
        let folder = disk.open_root(Folder::new(SPOOL)).unwrap();
        // The first call creates the file, the second removes its name.
        let call = disk.calls() + 2 + Chance::new(seed).below(6);
        disk.cut_at(call, Moment::After);
        sim.run(&host.clone(), async move {
            let front = Front::spooling(host.io(), &at, SECRET, (1, "alice"), Some(folder)).await;
            let _ = front.put("a", &noise(1, 100_000), Condition::none()).await;
        });
        assert!(disk.is_cut(), "seed {seed}: it was at it");
        assert_eq!(spooled(&disk.after_power_cut(Unsynced::Kept)), 0);
    }
}
