//! Blocking work.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use plimsoll_io::sim::{Faults, OFFLOAD_JOBS_MAX, PER_MILLE, Sim, seeds};
use plimsoll_io::{Either, NotDone, Work, select};

use crate::SECOND;

#[test]
fn a_job_runs_once_and_its_result_comes_back() {
    for seed in seeds(20) {
        let sim = Sim::new(seed, Faults::splits());
        let host = sim.host("one");
        host.disk().write("/a", "text").unwrap();
        let io = host.io();
        let size = sim.run(&host, async move {
            io.offload(Work::Files, |fs| {
                let root = fs.open_root(Path::new("/"))?;
                fs.stat(&fs.open_beneath(&root, b"a")?).map(|stat| stat.size)
            })
            .await
        });
        assert_eq!(size.unwrap().unwrap(), 4);
    }
}

#[test]
fn a_job_whose_wait_was_dropped_still_finishes() {
    for seed in seeds(20) {
        let sim = Sim::new(seed, Faults::splits());
        let host = sim.host("one");
        let finished = Arc::new(AtomicBool::new(false));
        let (io, mark) = (host.io(), Arc::clone(&finished));
        sim.run(&host, async move {
            let work = io.offload(Work::Files, move |_| mark.store(true, Ordering::Relaxed));
            select(work, io.yield_now()).await;
            io.sleep(SECOND).await;
        });
        assert!(finished.load(Ordering::Relaxed));
    }
}

#[test]
fn a_job_that_panics_is_lost_and_nothing_else_is() {
    let sim = Sim::new(0, Faults::splits());
    let host = sim.host("one");
    let io = host.io();
    sim.run(&host, async move {
        let lost = io.offload(Work::Files, |_| panic!("a broken job")).await;
        assert_eq!(lost, Err::<(), _>(NotDone::Lost));
        assert_eq!(io.offload(Work::Files, |_| 5).await, Ok(5));
    });
    assert_eq!(sim.panics(), ["one: an offloaded job: a broken job"]);
}

#[test]
fn more_jobs_than_may_wait_are_refused_and_dropped() {
    let sim = Sim::new(0, Faults::splits());
    let host = sim.host("one");
    let ran = Arc::new(AtomicUsize::new(0));
    let (io, count) = (host.io(), Arc::clone(&ran));
    sim.run(&host, async move {
        for _ in 0..OFFLOAD_JOBS_MAX {
            let count = Arc::clone(&count);
            let work = io.offload(Work::Files, move |_| count.fetch_add(1, Ordering::Relaxed));
            assert_eq!(select(work, async {}).await, Either::Right(()), "a job ran in its turn");
        }
        let refused = Arc::clone(&count);
        let work = io.offload(Work::Files, move |_| refused.fetch_add(1, Ordering::Relaxed));
        assert_eq!(work.await, Err(NotDone::Busy));
        io.sleep(SECOND).await;
        assert_eq!(io.offload(Work::Files, |_| ()).await, Ok(()));
    });
    assert_eq!(ran.load(Ordering::Relaxed), OFFLOAD_JOBS_MAX);
}

#[test]
fn a_file_lookup_returns_the_same_cached_and_offloaded() {
    for would_block in [0, PER_MILLE / 2, PER_MILLE] {
        let sim = Sim::new(1, Faults { would_block, ..Faults::none() });
        let host = sim.host("one");
        host.disk().write("/srv/a", "text").unwrap();
        let io = host.io();
        sim.run(&host, async move {
            for _ in 0..20 {
                let root = io.files(|fs| fs.open_root(Path::new("/srv"))).await.unwrap();
                let read = io.files(move |fs| {
                    let mut bytes = [0; 9];
                    let count = fs.read_at(&fs.open_beneath(&root, b"a")?, &mut bytes, 1)?;
                    Ok(bytes[..count].to_vec())
                });
                assert_eq!(read.await.unwrap(), b"ext");
            }
            let missing = io.files(|fs| fs.open_root(Path::new("/none"))).await.unwrap_err();
            assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        });
    }
}
