//! Networks that accounts logged in from.

use plimsoll_auth::limits::NETWORK_AGE_MAX;
use plimsoll_auth::{Directory, NetworkHash};

use crate::{NOW, add, each};

fn network(number: u8) -> NetworkHash {
    NetworkHash::from_bytes([number; 32])
}

fn latest_logins(directory: &mut dyn Directory, account: i64, numbers: &[u8]) -> Vec<Option<u64>> {
    numbers.iter().map(|number| directory.network_seen(account, network(*number)).unwrap()).collect()
}

#[test]
fn a_network_is_known_for_its_account_alone_and_from_its_latest_log_in() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice").id, add(directory, "bob").id);
        for (number, after) in [(1, 0), (2, 5), (1, 9), (2, 3)] {
            directory.add_network(alice, network(number), NOW + after, 9).unwrap();
        }
        assert_eq!(latest_logins(directory, alice, &[1, 2, 3]), [Some(NOW + 9), Some(NOW + 5), None]);
        assert_eq!(latest_logins(directory, bob, &[1, 2]), [None, None]);
    });
}

#[test]
fn the_oldest_network_is_forgotten_when_there_are_too_many() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice").id, add(directory, "bob").id);
        directory.add_network(bob, network(9), NOW, 2).unwrap();
        for (number, after) in [(1, 7), (2, 1), (3, 2)] {
            directory.add_network(alice, network(number), NOW + after, 2).unwrap();
        }
        assert_eq!(latest_logins(directory, alice, &[1, 2, 3]), [Some(NOW + 7), None, Some(NOW + 2)]);
        assert_eq!(latest_logins(directory, bob, &[9]), [Some(NOW)]);
    });
}

#[test]
fn networks_go_with_their_account_and_with_age() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice").id, add(directory, "bob").id);
        for (account, after) in [(alice, 0), (bob, 0), (bob, 1)] {
            let number = u8::try_from(after).unwrap();
            directory.add_network(account, network(number), NOW + after, 9).unwrap();
        }
        directory.remove_account(alice).unwrap();
        assert_eq!(latest_logins(directory, alice, &[0]), [None]);
        let age = u64::try_from(NETWORK_AGE_MAX.as_millis()).unwrap();
        directory.sweep(NOW + age).unwrap();
        assert_eq!(latest_logins(directory, bob, &[0, 1]), [None, Some(NOW + 1)]);
        // No network is stored for an account that is gone.
        directory.add_network(alice, network(5), NOW, 9).unwrap();
        assert_eq!(latest_logins(directory, alice, &[5]), [None]);
    });
}

#[test]
fn a_directory_that_can_be_written_says_so_and_tells_others_of_no_change() {
    each(|directory| {
        add(directory, "alice");
        directory.has_foreign_changes().unwrap();
        directory.check_writable(NOW).unwrap();
        directory.check_writable(NOW + 1).unwrap();
        assert!(!directory.has_foreign_changes().unwrap());
    });
}
