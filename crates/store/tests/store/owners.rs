//! The account of a home: a home is opened for the account that it was made for, and for no other.

use std::path::Path as Folder;

use plimsoll_io::sim::{Faults, Moment, Sim, Unsynced};
use plimsoll_store::{Error, FoundHome, NO_ACCOUNT, give_home, homes};

use super::{DATA, any, contents, open, path, put, with_home};

/// The file that has the account of alice's home.
const OWNER: &str = "/data/accounts/alice/account";

#[test]
fn a_home_is_opened_for_its_account_and_for_no_later_one_of_that_name() {
    with_home(|scene| async move {
        put(&scene.io, &scene.home, any("a"), b"a").await.unwrap();
        assert_eq!(contents(&scene.host, OWNER).unwrap(), b"1\n");
        let store = open(&scene.host);
        assert!(matches!(store.home(&scene.io, 2, "alice").await, Err(Error::Denied(_))));
        assert!(store.home(&scene.io, 1, "alice").await.is_ok());
        give_home(&**scene.host.disk(), Folder::new(DATA), "alice", 2).unwrap();
        let store = open(&scene.host);
        assert!(matches!(store.home(&scene.io, 1, "alice").await, Err(Error::Denied(_))));
        let given = store.home(&scene.io, 2, "alice").await.unwrap();
        assert_eq!(given.stat(&scene.io, &path("a")).await.unwrap().size, 1);
    });
}

#[test]
fn a_home_with_files_that_names_no_account_is_opened_for_none() {
    with_home(|scene| async move {
        let disk = scene.host.disk();
        for (name, folder) in [("bob", "files"), ("carol", "pending")] {
            disk.mkdir(format!("{DATA}/accounts/{name}/{folder}")).unwrap();
        }
        disk.mkdir(format!("{DATA}/accounts/dave/files")).unwrap();
        disk.write(format!("{DATA}/accounts/dave/account"), b"nonsense\n").unwrap();
        let store = open(&scene.host);
        for name in ["bob", "dave"] {
            assert!(matches!(store.home(&scene.io, 2, name).await, Err(Error::Denied(_))), "{name}");
        }
        assert!(store.home(&scene.io, 3, "carol").await.is_ok(), "there is nothing to give away");
        let found = homes(&**disk, Folder::new(DATA)).unwrap();
        let known = |name: &str, account| FoundHome { name: name.to_owned(), account };
        let expected = [
            known("alice", Some(1)),
            known("bob", None),
            known("carol", Some(3)),
            known("dave", Some(NO_ACCOUNT)),
        ];
        assert_eq!(found, expected);
        assert!(matches!(give_home(&**disk, Folder::new(DATA), "erin", 1), Err(Error::NotFound)));
    });
}

/// Cuts the power at one call of the first opening of a home, or of its assignment to another account.
/// False if there is no such call.
fn cut_at(call: u64, moment: Moment, fate: Unsynced) -> bool {
    let sim = Sim::new(call, Faults::splits());
    let host = sim.host("server");
    host.disk().mkdir(DATA).unwrap();
    let (io, store, on) = (host.io(), open(&host), host.clone());
    sim.run(&host, async move {
        on.disk().cut_at(on.disk().calls() + call, moment);
        if store.home(&io, 1, "alice").await.is_ok() {
            let _ = give_home(&**on.disk(), Folder::new(DATA), "alice", 2);
        }
    });
    let was_cut = host.disk().is_cut();
    let sim = Sim::new(call, Faults::splits());
    let again = sim.host_with_disk("server", &host.disk().after_power_cut(fate));
    let (io, store) = (again.io(), open(&again));
    sim.run(&again, async move {
        let opened = [store.home(&io, 1, "alice").await.is_ok(), store.home(&io, 2, "alice").await.is_ok()];
        assert!(opened == [true, false] || opened == [false, true], "call {call}: {opened:?}");
    });
    was_cut
}

#[test]
fn the_power_may_be_cut_while_a_home_gets_its_account() {
    for moment in [Moment::Before, Moment::After] {
        for fate in [Unsynced::Lost, Unsynced::Kept, Unsynced::Drawn(1), Unsynced::Drawn(2)] {
            let calls = (1..200).take_while(|call| cut_at(*call, moment, fate)).count();
            assert!((2..199).contains(&calls), "{calls} calls");
        }
    }
}
