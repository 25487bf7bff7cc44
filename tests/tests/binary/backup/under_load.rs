//! A backup of a server whose accounts change all the time.

use super::*;

/// Puts new files until `stop`. Returns the numbers of the confirmed ones.
fn put_new(member: &mut Member, stop: &AtomicBool) -> u64 {
    (0..)
        .find(|number| {
            let target = format!("/files/new/{number}");
            assert_eq!(member.put(&target, &body(*number, 0)).status, 201);
            stop.load(Ordering::Relaxed)
        })
        .unwrap()
}

/// Replaces ten files in turn until `stop`.
fn replace(member: &mut Member, stop: &AtomicBool) {
    for generation in 1.. {
        for number in 0..10 {
            let target = format!("/files/replaced/{number}");
            assert_eq!(member.put(&target, &body(number, generation)).status, 204);
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Moves files and a folder between two folders until `stop`.
fn rename(member: &mut Member, stop: &AtomicBool) {
    for turn in 0.. {
        let (from, to) = if turn % 2 == 0 { ("a", "z") } else { ("z", "a") };
        for name in ["0", "1", "2", "3", "folder"] {
            let fields = format!("Destination: /files/{to}/{name}\r\n");
            assert_eq!(member.ask("MOVE", &format!("/files/{from}/{name}"), &fields, b"").status, 201);
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Signs up, logs in and out until `stop`.
fn come_and_go(server: &Server, stop: &AtomicBool) {
    for number in 0.. {
        let mut guest = Member::new(server, &format!("guest{number}"));
        assert_eq!(guest.ask("DELETE", "/api/sessions/current", "", b"").status, 204);
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Checks a home against what was confirmed before the backup began.
fn check(server: &Server, member: &Member, before: u64) {
    let mut member = member.again(server);
    for number in 0..300 {
        assert!(member.get(&format!("/files/still/{number}")).body == body(number, 0), "still/{number}");
    }
    for number in 0..before {
        assert!(member.get(&format!("/files/new/{number}")).body == body(number, 0), "new/{number}");
    }
    for number in 0..10 {
        let reply = member.get(&format!("/files/replaced/{number}"));
        assert_eq!(reply.status, 200, "replaced/{number}");
        let generation = reply.body.first_chunk().map(|first| u64::from_le_bytes(*first)).unwrap();
        assert!(reply.body == body(number, generation), "replaced/{number} of {generation}");
    }
    for name in ["0", "1", "2", "3", "folder/inner"] {
        let number = name.parse().unwrap_or(9);
        let found = ["a", "z"].map(|folder| member.get(&format!("/files/{folder}/{name}")));
        let whole = found.iter().filter(|reply| reply.status == 200).collect::<Vec<_>>();
        assert!(!whole.is_empty(), "{name} is in neither folder");
        assert!(whole.iter().all(|reply| reply.body == body(number, 0)), "{name}");
    }
}

mod alone {
    use super::*;

    #[test]
    fn a_backup_of_a_server_under_load_has_every_confirmed_file_whole() {
        let _permit = alone();
        let place = Workspace::new();
        let server = place.serve("data");
        let mut alice = Member::new(&server, "alice");
        for folder in ["still", "new", "replaced", "a", "z", "a/folder"] {
            alice.mkcol(&format!("/files/{folder}"));
        }
        for number in 0..300 {
            assert_eq!(alice.put(&format!("/files/still/{number}"), &body(number, 0)).status, 201);
        }
        for number in 0..10 {
            assert_eq!(alice.put(&format!("/files/replaced/{number}"), &body(number, 0)).status, 201);
        }
        for (name, number) in [("0", 0), ("1", 1), ("2", 2), ("3", 3), ("folder/inner", 9)] {
            assert_eq!(alice.put(&format!("/files/a/{name}"), &body(number, 0)).status, 201);
        }
        let ended = Member::new(&server, "bob");
        assert_eq!(ended.again(&server).ask("DELETE", "/api/sessions/current", "", b"").status, 204);
        let stop = AtomicBool::new(false);
        let new = || std::fs::read_dir(place.files("data", "alice").join("new")).unwrap().count();
        let (taken, before) = std::thread::scope(|scope| {
            let again = || alice.again(&server);
            let (mut putting, mut replacing, mut renaming) = (again(), again(), again());
            let stop = &stop;
            scope.spawn(move || put_new(&mut putting, stop));
            scope.spawn(move || replace(&mut replacing, stop));
            scope.spawn(move || rename(&mut renaming, stop));
            scope.spawn(|| come_and_go(&server, stop));
            while new() < 20 {
                std::thread::sleep(Duration::from_millis(5));
            }
            // The last one may not be confirmed yet.
            let before = new() as u64 - 1;
            let mut backup = place.backup("backup", "data");
            backup.arg("--json");
            let taken = tool::run(&mut backup);
            stop.store(true, Ordering::Relaxed);
            (taken.well(), before)
        });
        let taken: Value = serde_json::from_slice(&taken.stdout).unwrap();
        assert!(taken["homes"].as_u64().unwrap() >= 1 && taken["files"].as_u64().unwrap() > 330, "{taken}");
        assert!(taken["accounts"]["accounts"].as_u64().unwrap() >= 2, "{taken}");
        drop(server);
        run(place.restore("backup", "restored")).well();
        let server = place.serve("restored");
        check(&server, &alice, before);
        assert_eq!(ended.again(&server).get("/api/whoami").status, 401);
    }
}
