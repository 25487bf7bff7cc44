//! Errors of the disk and power cuts while bodies are recorded.

use super::*;

#[test]
fn an_error_of_the_disk_returns_the_bytes_and_stops_writing_for_some_time() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (cache, io, on) = (open(&host), host.io(), host.clone());
    sim.run(&host, async move {
        on.disk().fail_next(Call::Write, io::ErrorKind::StorageFull);
        let mut recorder = recorder(&cache, "/x", Some(200_000), io.now());
        let own = recorder.follower();
        let (error, bytes) = recorder.push(&io, body(100_000)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(bytes == body(100_000) && recorder.received() == 0);
        drop(recorder);
        assert!(matches!(follow(&io, &own).await, Err(bytes) if bytes.is_empty()));
        let takes = |bytes| cache.reserve(Some(bytes), io.now()).is_ok();
        assert!(!takes(200_000) && takes(100));
        assert!(matches!(cache.reserve(Some(200_000), io.now()), Err(NotStored::DiskFailed)));
        io.sleep(DISK_RETRY_TIME).await;
        assert!(takes(200_000));
        assert!(record(&io, &cache, "/x", &body(200_000)).await);
        assert_eq!(cache.figures().disk_errors, 1);
    });
}

#[test]
fn a_folder_that_was_removed_is_made_again_for_the_next_body() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (cache, io, on) = (open(&host), host.io(), host.clone());
    sim.run(&host, async move {
        assert!(record(&io, &cache, "/old", &body(100_000)).await);
        for folder in ["objects", "pending", ""] {
            on.disk().remove(format!("{ROOT}/{folder}")).unwrap();
        }
        assert!(record(&io, &cache, "/new", &body(300_000)).await);
        assert!(found(&cache, "/old").is_none(), "its file is gone");
        assert!(content(&io, &cache, &found(&cache, "/new").unwrap()).await == body(300_000));
        assert_eq!(cache.figures().disk_errors, 0);
    });
    assert!(found(&open(&host), "/new").is_some(), "it is found after a restart");
}

#[test]
fn a_bad_block_drops_its_object_before_a_byte_of_its_part_is_sent() {
    let sim = Sim::new(0, Faults::splits());
    let host = sim.host("one");
    let (cache, io, on) = (open(&host), host.io(), host.clone());
    sim.run(&host, async move {
        assert!(record(&io, &cache, "/x", &body(300_000)).await);
        let object = found(&cache, "/x").unwrap();
        let is_readable = async |range| cache.open_body(&io, &object, &range).await.map(drop);
        is_readable(0..300_000).await.unwrap();
        let number = object.file_number().unwrap();
        on.disk().damage(format!("{ROOT}/objects/{number:016x}"), 200_000).unwrap();
        io.sleep(Duration::from_secs(2)).await;
        let error = is_readable(0..300_000).await.unwrap_err();
        cache.drop_unreadable(&io, &object, &error).await;
        cache.drop_unreadable(&io, &object, &error).await;
        assert!(found(&cache, "/x").is_none());
        assert_eq!(cache.figures().disk_errors, 1, "the first error counts");
        assert!(on.disk().read(format!("{ROOT}/objects/{number:016x}")).is_err(), "the file is removed");
    });
}

#[test]
fn a_power_cut_at_any_call_while_slices_are_stored_leaves_none_with_wrong_bytes() {
    const WHOLE: u64 = SLICE_BYTES + 70_000;
    let head = |number| StoredHead {
        slice: Some(Slice { number, whole: WHOLE }),
        ..stored("http://a/x", "", "Cache-Control: max-age=9\r\nETag: \"a\"\r\n")
    };
    let bytes = |number| match number {
        0 => body(usize::try_from(SLICE_BYTES).unwrap()),
        _ => vec![7; 70_000],
    };
    for call in (1..40).step_by(3) {
        let sim = Sim::new(call, Faults::none());
        let host = sim.host("one");
        let (cache, io, on) = (open(&host), host.io(), host.clone());
        sim.run(&host, async move {
            on.disk().cut_at(on.disk().calls() + call, Moment::After);
            for number in [1, 0] {
                let key = cache.slice_key(&request("/x"), number);
                let Joined::Lead(lead) = cache.fetches().join(&key, io.now()) else { panic!("no lead") };
                let length = Some(bytes(number).len() as u64);
                let Ok(room) = cache.reserve(length, io.now()) else { continue };
                let mut recorder = Recorder::begin(&cache, lead, head(number), length, room);
                if recorder.push(&io, bytes(number)).await.is_ok() {
                    finish(&io, &cache, recorder, "/x").await;
                }
            }
        });
        for fate in [Unsynced::Lost, Unsynced::Kept, Unsynced::Drawn(call)] {
            let again = Sim::new(call, Faults::none());
            let host = again.host_with_disk("one", &host.disk().after_power_cut(fate));
            let (cache, io) = (open(&host), host.io());
            again.run(&host, async move {
                let Some(partial) = cache.lookup_partial(&request("/x")) else { return };
                assert_eq!(partial.whole, WHOLE);
                for number in [0, 1] {
                    if let Some(object) = cache.lookup_slice(&partial, number) {
                        assert!(content(&io, &cache, &object).await == bytes(number), "{number}");
                    }
                }
            });
        }
        if !host.disk().is_cut() {
            let again = Sim::new(call, Faults::none());
            let host = again.host_with_disk("one", &host.disk().after_power_cut(Unsynced::Kept));
            let partial = open(&host).lookup_partial(&request("/x"));
            assert!(partial.is_some(), "slices are found after a restart");
            break;
        }
    }
}

#[test]
fn a_power_cut_at_any_call_of_a_recording_costs_at_most_its_object() {
    let fates = || [Unsynced::Lost, Unsynced::Kept].into_iter().chain((0..8).map(Unsynced::Drawn));
    for moment in [Moment::Before, Moment::After] {
        for call in 1..60 {
            let sim = Sim::new(call, Faults::splits());
            let host = sim.host("one");
            let (cache, io, on) = (open(&host), host.io(), host.clone());
            sim.run(&host, async move {
                assert!(record(&io, &cache, "/old", &body(100_000)).await);
                on.disk().cut_at(on.disk().calls() + call, moment);
                record(&io, &cache, "/new", &body(300_000)).await;
            });
            for fate in fates() {
                let again = Sim::new(call, Faults::splits());
                let host = again.host_with_disk("one", &host.disk().after_power_cut(fate));
                let (cache, io) = (open(&host), host.io());
                again.run(&host, async move {
                    for (path, len) in [("/old", 100_000), ("/new", 300_000)] {
                        if let Some(object) = found(&cache, path) {
                            assert!(content(&io, &cache, &object).await == body(len), "{path}");
                        }
                    }
                });
            }
            if !host.disk().is_cut() {
                break;
            }
        }
    }
}
