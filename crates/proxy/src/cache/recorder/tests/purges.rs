//! Purges while a body is recorded, and of files that are in use.

use super::*;

#[test]
fn a_purge_while_a_body_is_recorded_keeps_it_out_of_the_cache_for_ever() {
    for seed in seeds(100) {
        let sim = Sim::new(seed, Faults::splits());
        let host = sim.host("one");
        let (cache, io) = (open(&host), host.io());
        sim.run(&host, async move {
            let purge = async {
                io.sleep(Duration::from_millis(seed % 40)).await;
                cache.purge(&io, [PurgeTarget::All]).await.unwrap();
            };
            let bytes = body(400_000);
            let recording = record(&io, &cache, "/x", &bytes);
            let (_, ()) = join(recording, purge).await;
            // Recorded before, during or after the purge: a purge that is confirmed last wins.
            cache.purge(&io, [PurgeTarget::Prefix(b"http://a/".to_vec())]).await.unwrap();
            assert!(found(&cache, "/x").is_none());
        });
        let disk = host.disk().after_power_cut(Unsynced::Drawn(seed));
        let again = Sim::new(seed, Faults::none());
        let host = again.host_with_disk("one", &disk);
        assert!(found(&open(&host), "/x").is_none());
    }
}

/// Stores two responses to `/x` while the file of the first is in use, then ends the process. Returns whether
/// the next start finds one of them.
fn is_found_after(second: usize, purge: fn(Arc<ResponseCache>, Io) -> plimsoll_io::LocalFuture) -> bool {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (cache, io) = (open(&host), host.io());
    let in_use = Rc::new(RefCell::new(None));
    let user = Rc::clone(&in_use);
    sim.run(&host, async move {
        assert!(record(&io, &cache, "/x", &body(200_000)).await);
        *user.borrow_mut() = found(&cache, "/x");
        assert!(record(&io, &cache, "/x", &body(second)).await);
        purge(Arc::clone(&cache), io).await;
        // The process does not end in order.
        std::mem::forget(cache);
    });
    assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    let again = Sim::new(0, Faults::none());
    let host = again.host_with_disk("one", &host.disk().after_power_cut(Unsynced::Kept));
    std::mem::forget(in_use);
    found(&open(&host), "/x").is_some()
}

#[test]
fn a_purge_counts_a_response_once_that_is_stored_while_its_fetch_ends() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (cache, io) = (open(&host), host.io());
    sim.run(&host, async move {
        let key = cache.fetch_key(&request("/x"), &Lookup::Absent);
        let Joined::Lead(lead) = cache.fetches().join(&key, io.now()) else { panic!("no lead") };
        let content = Content::Memory(body(100).into());
        assert!(cache.insert(stored("http://a/x", "", FRESH), content, lead.storing()));
        assert_eq!(cache.purge(&io, [PurgeTarget::All]).await.unwrap(), 1);
        assert!(found(&cache, "/x").is_none());
        lead.finish();
    });
}

#[test]
fn a_purge_removes_replaced_files_that_are_in_use() {
    for second in [100, 300_000] {
        assert!(!is_found_after(second, |cache, io| Box::pin(async move {
            assert_eq!(cache.purge(&io, [PurgeTarget::Prefix(b"http://a/".to_vec())]).await.unwrap(), 1);
        })));
        assert!(!is_found_after(second, |cache, io| Box::pin(async move {
            let target = PurgeTarget::Uri(request("/x").key.digest());
            cache.invalidate(&io, target).await.unwrap();
        })));
    }
}

#[test]
fn a_small_response_that_replaces_a_large_one_removes_its_file_soon() {
    assert!(!is_found_after(100, |cache, io| Box::pin(async move {
        while cache.has_files_to_remove() {
            io.sleep(Duration::from_millis(1)).await;
        }
    })));
}

#[test]
fn a_voided_recording_is_streamed_and_not_stored() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (cache, io) = (open(&host), host.io());
    sim.run(&host, async move {
        for len in [100, 200_000] {
            let mut recorder = recorder(&cache, "/x", None, io.now());
            let own = recorder.follower();
            recorder.push(&io, body(len)).await.unwrap();
            let purged = cache.purge(&io, [PurgeTarget::Uri(request("/x").key.digest())]).await.unwrap();
            assert_eq!(purged, 1);
            assert!(!finish(&io, &cache, recorder, "/x").await);
            assert!(follow(&io, &own).await.unwrap() == body(len));
            assert!(found(&cache, "/x").is_none());
        }
    });
}
