//! The faults that a test injects into the simulated disk and its machine.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_io::sim::{Call, Faults, Sim, SimDisk, Unsynced, seeds};
use plimsoll_io::{Existing, File, Fs, Stream, Want, Work};

use crate::{SECOND, at, converse, owned, setup, two_hosts};

fn disk() -> (Arc<SimDisk>, File) {
    let sim = Sim::new(0, Faults::none());
    let disk = Arc::clone(sim.host("one").disk());
    let root = disk.open_root(Path::new("/")).unwrap();
    (disk, root)
}

#[test]
fn a_full_disk_takes_what_fits_and_refuses_the_rest() {
    let (disk, root) = disk();
    let file = disk.create(&root, b"file").unwrap();
    disk.full_after(6);
    assert_eq!(disk.space(&root).unwrap().bytes, 6);
    assert_eq!(disk.write_at(&file, b"four", 0).unwrap(), 4);
    assert_eq!(disk.write_at(&file, b"four", 4).unwrap(), 2);
    assert_eq!(disk.write_at(&file, b"x", 6).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.write_at(&file, b"FOUR", 0).unwrap(), 4, "what is there may be written again");
    assert_eq!(disk.set_len(&file, 7).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.create(&root, b"more").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.make_folder(&root, b"more").unwrap_err().kind(), ErrorKind::StorageFull);
    disk.set_len(&file, 5).unwrap();
    let other = disk.create(&root, b"other").unwrap();
    assert_eq!(disk.copy(&file, &other, u64::MAX).unwrap_err().kind(), ErrorKind::StorageFull);
    disk.remove_file(&root, b"file").unwrap();
    assert_eq!(disk.space(&root).unwrap().bytes, 5);
}

#[test]
fn a_replaced_file_frees_its_space() {
    let (disk, root) = disk();
    disk.write("/old", "four").unwrap();
    disk.write("/new", "").unwrap();
    disk.full_after(0);
    disk.rename(&root, b"new", &root, b"old", Existing::Replaced).unwrap();
    assert_eq!(disk.space(&root).unwrap().bytes, 4);
}

#[test]
fn a_chosen_call_fails_once_and_without_effect() {
    let (disk, root) = disk();
    disk.write("/file", "text").unwrap();
    disk.fail_at(2, ErrorKind::QuotaExceeded);
    disk.fail_next(Call::Rename, ErrorKind::ReadOnlyFilesystem);
    let file = disk.open_to_write(&root, b"file").unwrap();
    disk.set_len(&file, 3).unwrap();
    assert_eq!(disk.set_len(&file, 0).unwrap_err().kind(), ErrorKind::QuotaExceeded);
    let moved = || disk.rename(&root, b"file", &root, b"moved", Existing::Kept);
    assert_eq!(moved().unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    assert_eq!(disk.read("/file").unwrap(), b"tex");
    moved().unwrap();
    assert_eq!(disk.calls(), 4);
}

#[test]
fn a_sync_that_succeeds_after_one_that_failed_proves_nothing() {
    let (disk, root) = disk();
    disk.write("/synced", "old").unwrap();
    let file = disk.open_to_write(&root, b"synced").unwrap();
    disk.write_at(&file, b"new", 0).unwrap();
    disk.fail_next(Call::Sync, ErrorKind::StorageFull);
    assert_eq!(disk.sync(&file).unwrap_err().kind(), ErrorKind::StorageFull);
    disk.sync(&file).unwrap();
    assert_eq!(disk.after_power_cut(Unsynced::Lost).read("/synced").unwrap(), b"old");

    disk.create(&root, b"first").unwrap();
    disk.fail_next(Call::Sync, ErrorKind::StorageFull);
    disk.sync(&root).unwrap_err();
    disk.rename(&root, b"first", &root, b"second", Existing::Kept).unwrap();
    disk.create(&root, b"other").unwrap();
    disk.sync(&root).unwrap();
    let found = disk.after_power_cut(Unsynced::Lost);
    assert!(found.read("/first").is_err() && found.read("/second").is_err());
    assert!(found.read("/other").is_ok());
}

#[test]
fn a_change_never_runs_without_blocking_and_runs_once() {
    for seed in seeds(50) {
        let sim = Sim::new(seed, Faults::splits());
        let host = sim.host("one");
        let (io, asked) = (host.io(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&asked);
        sim.run(&host, async move {
            let root = io.files(|fs| fs.open_root(Path::new("/"))).await.unwrap();
            io.files(move |fs| {
                count.fetch_add(1, Ordering::Relaxed);
                let file = fs.create(&root, b"file")?;
                let mut written = 0;
                while written < 9 {
                    written += fs.write_at(&file, &b"some text"[written..], written as u64)?;
                }
                fs.sync(&file)
            })
            .await
            .unwrap();
        });
        assert_eq!(host.disk().read("/file").unwrap(), b"some text");
        assert_eq!(asked.load(Ordering::Relaxed), 2, "once in vain, and once where it may block");
    }
}

/// Answers each byte with whether a file could be created.
async fn make_files(io: plimsoll_io::Io, mut stream: Stream) {
    let mut number = 0;
    while let Ok(Some(_)) = stream.rx.recv(Want::Head).await {
        number += 1;
        let name = format!("{number}").into_bytes();
        let made = io.offload(Work::Writes, move |fs| {
            let root = fs.open_root(Path::new("/"))?;
            fs.create(&root, &name).and_then(|file| fs.sync(&file)).and_then(|()| fs.sync(&root))
        });
        let answer = if made.await.is_ok_and(|made| made.is_ok()) { b"y" } else { b"n" };
        stream.tx.push(owned(answer));
        if stream.tx.drain(0).await.is_err() {
            return;
        }
    }
}

#[test]
fn a_machine_without_power_confirms_nothing_and_starts_again_with_its_disk() {
    for seed in seeds(100) {
        let (sim, client, server) = two_hosts(seed, Faults::splits());
        server.disk().cut_at(1 + seed % 9, plimsoll_io::sim::Moment::After);
        let serve = setup(|io| move |stream| make_files(io.clone(), stream));
        sim.serve(&server, &at(), &serve).unwrap();
        let io = client.io();
        let confirmed = sim.run(&client, async move {
            let mut stream = io.connect(&at()).await.unwrap();
            let mut confirmed = 0;
            loop {
                stream.tx.push(owned(b"?"));
                match stream.rx.recv(Want::Head).await {
                    Ok(Some(answer)) => assert_eq!(&answer[..], b"y", "the dead spoke"),
                    Ok(None) => panic!("a clean end from a machine without power"),
                    Err(_) => break,
                }
                confirmed += 1;
            }
            assert!(io.connect(&at()).await.is_err());
            confirmed
        });
        assert!(server.disk().is_cut());
        let left = server.disk().after_power_cut(Unsynced::Lost);
        let (before, sim) = (sim.now(), Sim::new(seed, Faults::splits()));
        let again = sim.host_with_disk("again", &left);
        let last = format!("/{confirmed}");
        assert!(confirmed == 0 || again.disk().read(last).is_ok(), "seed {seed}: {confirmed} were confirmed");
        let io = again.io();
        assert!(io.wall() > std::time::UNIX_EPOCH + plimsoll_io::sim::START && sim.now() <= before);
        let root = sim.run(&again, async move { io.files(|fs| fs.open_root(Path::new("/"))).await });
        left.create(&root.unwrap(), b"new").unwrap();
    }
}

#[test]
fn bytes_sent_to_a_host_without_power_are_answered_by_a_reset() {
    for seed in seeds(100) {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let mut listener = far.io().listen(&at()).unwrap();
        sim.spawn(
            &far,
            Box::pin(async move {
                let _stream = listener.accept().await.unwrap();
                std::future::pending::<()>().await;
            }),
        );
        let io = near.io();
        let received = sim.run(&near, async move {
            let mut stream = io.connect(&at()).await.unwrap();
            io.sleep(SECOND).await;
            far.cut_power();
            // Sends the end alone, too.
            stream.tx.finish();
            stream.rx.recv(Want::Body).await.map(drop).map_err(|error| error.kind())
        });
        assert_eq!(received, Err(ErrorKind::ConnectionReset), "seed {seed}");
    }
}

#[test]
fn a_machine_without_power_sends_no_end_either() {
    for seed in seeds(100) {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let (cut, io) = (far.clone(), near.io());
        let (received, ()) = converse(
            &sim,
            (&near, &far),
            async move |mut stream: Stream| {
                io.sleep(SECOND).await;
                stream.tx.push(owned(b"are you there?"));
                loop {
                    match stream.rx.recv(Want::Body).await {
                        Ok(Some(_)) => {}
                        Ok(None) => return Ok(()),
                        Err(error) => return Err(error.kind()),
                    }
                }
            },
            async move |mut stream: Stream| {
                cut.cut_power();
                stream.tx.push(owned(b"a farewell"));
                stream.tx.finish();
                drop(stream);
            },
        );
        assert_eq!(received, Err(ErrorKind::ConnectionReset), "seed {seed}");
    }
}
