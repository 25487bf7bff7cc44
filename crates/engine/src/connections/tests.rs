//! Tests of admission and eviction when slots run short. They open no socket. Invariant: each rule of
//! [`super::policy`] has a test here.

use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;

use plimsoll_io::{Phase, Slot};

use super::*;
use crate::limits::{SPARE_PART, SPARE_SLOTS_MAX, STALLED_TIME};

const HTTP: usize = 0;
const FTP: usize = 1;

fn peer(ip: &str) -> Peer {
    Peer::Ip(ip.parse().unwrap(), 1)
}

fn at(seconds: u64) -> plimsoll_io::Instant {
    plimsoll_io::Instant::from_start(Duration::from_secs(seconds))
}

/// Returns the `number`th of many addresses.
fn client(number: usize) -> Peer {
    peer(&format!("192.0.{}.{}", number / 200, number % 200))
}

/// Counts the connections whose evictor was woken.
#[derive(Default)]
struct Ended(AtomicUsize);

impl Wake for Ended {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Ended {
    fn count(self: &Arc<Self>) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Opens `count` connections, each from its own address, in the given phase.
fn opened(connections: &Arc<Connections>, service: usize, count: usize, phase: Phase) -> Vec<Admitted> {
    let open = |number| {
        let admitted = connections.admit(&client(number + 1_000 * service), service).unwrap();
        admitted.entry().slot().enter(phase, since_start());
        admitted
    };
    (0..count).map(open).collect()
}

#[test]
fn every_process_has_a_cell_to_report_by() {
    assert_eq!(crate::limits::PROCESSES_MAX, PROCESS_CELLS as u64);
}

#[test]
fn one_address_has_half_of_the_slots_and_gets_them_back() {
    let connections = Connections::new(4);
    let mut held: Vec<_> = (0..2).map(|_| connections.admit(&peer("192.0.2.1"), HTTP).unwrap()).collect();
    assert!(connections.admit(&peer("192.0.2.1"), HTTP).is_none());
    let other = connections.admit(&peer("192.0.2.2"), HTTP).unwrap();
    assert_eq!((connections.open(), connections.refused()), (3, 1));
    held.pop();
    assert!(connections.admit(&peer("192.0.2.1"), HTTP).is_some());
    drop((held, other));
    assert_eq!((connections.open(), connections.accepted()), (0, 4));
    assert_eq!(connections.registry().networks(), 0);
}

#[test]
fn one_address_has_a_sixteenth_while_slots_run_short() {
    let connections = Connections::new(640);
    let crowd = opened(&connections, HTTP, 480, Phase::Working);
    let shared: Vec<_> = (0..40).map(|_| connections.admit(&peer("192.0.9.1"), HTTP).unwrap()).collect();
    assert!(connections.admit(&peer("192.0.9.1"), HTTP).is_none());
    assert!(connections.admit(&peer("192.0.9.2"), HTTP).is_some());
    drop(crowd);
    assert!(connections.admit(&peer("192.0.9.1"), HTTP).is_some(), "there is plenty again");
    drop(shared);
}

#[test]
fn a_trusted_proxy_and_a_server_without_a_bound_have_no_share() {
    let connections = Connections::new(8);
    connections.exempt(vec!["192.0.2.0/24".parse().unwrap()].into());
    let proxied: Vec<_> = (0..6).filter_map(|_| connections.admit(&peer("192.0.2.1"), HTTP)).collect();
    assert_eq!(proxied.len(), 6);
    let policy = SlotPolicy { per_address: PerAddress::Unlimited, ..SlotPolicy::from(8) };
    let connections = Connections::new(policy);
    let all: Vec<_> = (0..8).filter_map(|_| connections.admit(&peer("192.0.2.1"), HTTP)).collect();
    assert_eq!(all.len(), 8);
}

#[test]
fn silent_clients_are_evicted_oldest_first_before_idle_ones_and_transfers_never() {
    let connections = Connections::new(SlotPolicy { has_accounts: false, ..SlotPolicy::from(32) });
    let working = opened(&connections, HTTP, 10, Phase::Working);
    let idle = opened(&connections, HTTP, 10, Phase::Idle);
    let silent = opened(&connections, HTTP, 11, Phase::Waiting);
    let evicted = |of: &[Admitted]| of.iter().map(Admitted::is_evicted).collect::<Vec<_>>();
    assert_eq!(connections.evicted(), 0, "31 of 32 are open, and one slot is kept free");
    let mut newcomers = vec![connections.admit(&client(40), HTTP).unwrap()];
    assert_eq!(connections.evicted(), 1);
    assert_eq!(evicted(&silent).iter().position(|is_evicted| *is_evicted), Some(0));
    // As many new connections as there are others to close, and no transfer is evicted.
    for (number, gone) in silent.into_iter().chain(idle).enumerate() {
        assert!(gone.is_evicted(), "connection {number} is next");
        drop(gone);
        newcomers.push(connections.admit(&client(50 + number), HTTP).unwrap());
        newcomers.iter().for_each(|new| new.entry().slot().enter(Phase::Working, since_start()));
    }
    assert!(evicted(&working).iter().all(|is_evicted| !is_evicted));
}

#[test]
fn transfers_of_the_address_with_the_most_are_evicted_if_there_is_nothing_else() {
    let connections = Connections::new(SlotPolicy { has_accounts: false, ..SlotPolicy::from(32) });
    let honest = opened(&connections, HTTP, 15, Phase::Working);
    let mut crowd: Vec<_> = (0..16).map(|_| connections.admit(&peer("192.0.9.1"), HTTP).unwrap()).collect();
    crowd.iter().for_each(|one| one.entry().slot().enter(Phase::Working, since_start()));
    let accounts = crowd.split_off(14);
    accounts.iter().for_each(|one| one.entry().slot().authenticate());
    let mut newcomers: Vec<_> = (40..44).map(|number| connections.admit(&client(number), HTTP)).collect();
    assert!(connections.evicted() >= 4);
    assert!(accounts.iter().all(|one| !one.is_evicted()), "a client that has authenticated goes last");
    crowd.iter().filter(|one| !one.is_evicted()).for_each(|one| one.entry().slot().authenticate());
    let before = connections.evicted();
    drop(crowd.extract_if(.., |one| one.is_evicted()).collect::<Vec<_>>());
    newcomers.iter().flatten().for_each(|new| new.entry().slot().enter(Phase::Working, since_start()));
    newcomers.extend((44..50).map(|number| connections.admit(&client(number), HTTP)));
    assert!(connections.evicted() > before, "its address has more than the mean");
    assert!(honest.iter().all(|one| !one.is_evicted()));
    drop(accounts);
    drop((crowd, newcomers));
}

#[test]
fn two_addresses_with_half_of_the_slots_each_keep_no_other_client_out() {
    let connections = Connections::new(SlotPolicy { has_accounts: false, ..SlotPolicy::from(32) });
    let crowd = (0..31).map(|number| peer(if number % 2 == 0 { "192.0.9.1" } else { "192.0.9.2" }));
    let crowd: Vec<_> = crowd.map(|peer| connections.admit(&peer, HTTP).unwrap()).collect();
    crowd.iter().for_each(|one| one.entry().slot().enter(Phase::Working, since_start()));
    let last = connections.admit(&peer("192.0.9.2"), HTTP).unwrap();
    assert!(connections.is_full(HTTP));
    assert_eq!(connections.evicted(), 0, "its address has no more than the mean");
    assert!(connections.make_room(HTTP), "one of them ends for the client that waits to be accepted");
    assert_eq!(crowd.iter().filter(|one| one.is_evicted()).count(), 1);
    drop(last);
}

#[test]
fn no_transfer_ends_for_a_newcomer_while_each_address_has_one() {
    let connections = Connections::new(SlotPolicy { has_accounts: false, ..SlotPolicy::from(32) });
    let open = opened(&connections, HTTP, 32, Phase::Working);
    assert!(connections.is_full(HTTP) && !connections.make_room(HTTP));
    drop(open);
}

#[test]
fn where_addresses_have_no_shares_no_transfer_is_evicted_for_its_address() {
    let policy = SlotPolicy { per_address: PerAddress::Unlimited, ..SlotPolicy::from(32) };
    let connections = Connections::new(policy);
    let front: Vec<_> = (0..31).map(|_| connections.admit(&peer("192.0.9.1"), HTTP).unwrap()).collect();
    front.iter().for_each(|one| one.entry().slot().authenticate());
    front.iter().for_each(|one| one.entry().slot().enter(Phase::Working, since_start()));
    let others: Vec<_> = (0..4).map(|number| connections.admit(&client(number), HTTP)).collect();
    assert!(front.iter().all(|one| !one.is_evicted()));
    drop(others);
}

#[test]
fn an_evicted_connection_is_woken_once_to_end() {
    let connections = Connections::new(SlotPolicy { has_accounts: false, ..SlotPolicy::from(8) });
    let ended = Arc::<Ended>::default();
    let open = opened(&connections, HTTP, 7, Phase::Idle);
    open.iter().for_each(|one| one.evict_by(Waker::from(Arc::clone(&ended))));
    let more = connections.admit(&client(9), HTTP).unwrap();
    assert_eq!((connections.evicted(), ended.count()), (1, 1));
    assert!(connections.make_room(HTTP), "it has not gone yet");
    assert_eq!(ended.count(), 1, "one is enough");
    drop((open, more));
    assert!(!connections.make_room(HTTP));
}

#[test]
fn a_client_that_has_authenticated_is_evicted_last_and_only_when_idle() {
    let connections = Connections::new(SlotPolicy { has_accounts: false, ..SlotPolicy::from(32) });
    let open = opened(&connections, HTTP, 31, Phase::Waiting);
    open.iter().take(30).for_each(|one| one.entry().slot().authenticate());
    assert_eq!(connections.authenticated(), 30);
    let newcomer = connections.admit(&client(40), HTTP).unwrap();
    assert!(open[30].is_evicted() && connections.evicted() == 1);
    drop(newcomer);
    open[3].entry().slot().enter(Phase::Idle, at(0));
    let (first, second) = (connections.admit(&client(41), HTTP), connections.admit(&client(42), HTTP));
    assert!(open[3].is_evicted(), "there is nobody else");
    drop((open, first, second));
    assert_eq!((connections.open(), connections.authenticated()), (0, 0));
}

#[test]
fn clients_that_have_not_authenticated_leave_a_quarter_of_the_slots() {
    let connections = Connections::new(64);
    let open = opened(&connections, HTTP, 60, Phase::Waiting);
    let staying = open.iter().filter(|one| !one.is_evicted()).count();
    assert!((46..=48).contains(&staying), "{staying}");
}

#[test]
fn one_protocol_cannot_take_the_slots_of_another() {
    let connections = Connections::new(SlotPolicy { has_accounts: false, ..SlotPolicy::from(64) });
    [HTTP, FTP].into_iter().for_each(|service| connections.reserve_for(service));
    let http = opened(&connections, HTTP, 56, Phase::Working);
    assert!(connections.is_full(HTTP) && !connections.is_full(FTP));
    let ftp = opened(&connections, FTP, 6, Phase::Waiting);
    // HTTP does not get the slots of FTP either, though those are idle.
    connections.make_room(HTTP);
    assert!(ftp.iter().all(|one| !one.is_evicted()));
    let more = opened(&connections, FTP, 2, Phase::Waiting);
    assert!(ftp[0].is_evicted(), "a protocol closes its own");
    drop((http, more));
}

#[test]
fn a_byte_now_and_then_makes_no_client_younger() {
    let connections = Connections::new(SlotPolicy { has_accounts: false, ..SlotPolicy::from(8) });
    let open = opened(&connections, HTTP, 7, Phase::Idle);
    let later = since_start() + Duration::from_secs(9);
    open.iter().skip(1).for_each(|one| one.entry().slot().enter(Phase::Idle, later));
    open[0].entry().slot().enter(Phase::Waiting, later + Duration::from_secs(9));
    let _newcomer = connections.admit(&client(9), HTTP).unwrap();
    assert!(open[0].is_evicted());
}

#[test]
fn a_transfer_that_has_stalled_is_evicted_before_others_and_only_then() {
    let policy = SlotPolicy { has_accounts: false, ..SlotPolicy::from(8) };
    let connections = Connections::new(policy);
    let start = since_start();
    let transfers = opened(&connections, HTTP, 7, Phase::Working);
    transfers.iter().skip(1).for_each(|one| one.entry().slot().enter(Phase::Working, start + STALLED_TIME));
    let evict = |now| {
        let mut registry = connections.registry();
        registry.evict_from_workers(1, now).len()
    };
    // All come from different addresses, so none has more than the mean.
    let late = STALLED_TIME + Duration::from_secs(1);
    assert_eq!(evict(start + STALLED_TIME / 2), 0);
    assert_eq!(evict(start + late), 1);
    assert!(transfers[0].is_evicted());
    assert_eq!(evict(start + late), 0, "the others make progress");
}

#[test]
fn a_client_that_a_proxy_names_has_the_share_of_its_address_until_it_is_named_otherwise() {
    let connections = Connections::new(8);
    connections.exempt(vec!["192.0.2.0/24".parse().unwrap()].into());
    let proxied: Vec<_> = (0..6).map(|_| connections.admit(&peer("192.0.2.1"), HTTP).unwrap()).collect();
    let slots: Vec<_> = proxied.iter().map(|one| one.entry().slot()).collect();
    let client = peer("198.51.100.1");
    let fits = |slot: &Rc<dyn Slot>| slot.count_for(Some(&client));
    assert_eq!(slots.iter().filter(|slot| fits(slot)).count(), 4, "half of the slots");
    assert_eq!(connections.refused(), 2);
    assert!(connections.admit(&client, HTTP).is_none(), "it has its share without the proxy, too");
    slots[0].authenticate();
    assert!(slots[0].count_for(None) && connections.authenticated() == 0);
    assert!(fits(&slots[5]) && !fits(&slots[4]));
    assert!(slots[4].count_for(Some(&peer("192.0.2.7"))), "a proxy has no share");
    drop(proxied);
    assert_eq!(connections.registry().counted(), 0);
}

#[test]
fn processes_report_the_networks_that_they_count_for() {
    let [cells] = crate::shared_cells([Connections::SHARED_CELLS]).unwrap();
    let connections = Connections::counted_in(cells, 8);
    connections.expect_headers(HTTP);
    let proxied: Vec<_> = (0..6).map(|_| connections.admit(&peer("192.0.2.1"), HTTP).unwrap()).collect();
    let client = peer("198.51.100.1");
    let fits = |one: &Admitted| one.entry().slot().count_for(Some(&client));
    assert_eq!(proxied.iter().filter(|one| fits(one)).count(), 4);
    assert!(connections.admit(&client, FTP).is_none(), "the accepting process has followed the reports");
    assert_eq!(connections.registry().counted(), 4);
    drop(proxied);
    assert_eq!(connections.registry().counted(), 0);
    assert!(connections.admit(&client, FTP).is_some());
}

#[test]
fn transfers_of_a_named_client_are_evicted_although_its_proxy_has_no_share() {
    let connections = Connections::new(SlotPolicy { has_accounts: false, ..SlotPolicy::from(32) });
    connections.exempt(vec!["192.0.2.0/24".parse().unwrap()].into());
    let named = |client: &str| {
        let admitted = connections.admit(&peer("192.0.2.1"), HTTP).unwrap();
        assert!(admitted.entry().slot().count_for(Some(&peer(client))), "{client}");
        admitted.entry().slot().enter(Phase::Working, since_start());
        admitted
    };
    let honest: Vec<_> = (0..15).map(|number| named(&format!("198.51.100.{number}"))).collect();
    let crowd: Vec<_> = (0..16).map(|_| named("203.0.113.1")).collect();
    let _newcomer = connections.admit(&peer("192.0.2.1"), HTTP).unwrap();
    assert!(crowd.iter().any(Admitted::is_evicted) && !honest.iter().any(Admitted::is_evicted));
}

#[test]
fn a_wait_for_an_upstream_connection_evicts_from_the_largest_address() {
    let connections = Connections::new(64);
    let honest = opened(&connections, HTTP, 4, Phase::Working);
    let crowd: Vec<_> = (0..4).map(|_| connections.admit(&peer("192.0.9.1"), HTTP).unwrap()).collect();
    crowd.iter().for_each(|one| one.entry().slot().enter(Phase::Working, since_start()));
    let waiting = honest[0].entry().slot();
    waiting.relieve_upstream();
    assert_eq!(connections.evicted(), 0, "no upstream connection waits for a client");
    honest.iter().chain(&crowd).for_each(|one| one.entry().slot().keep_upstream(true));
    crowd[0].entry().slot().keep_upstream(false);
    (0..5).for_each(|_| waiting.relieve_upstream());
    assert_eq!(connections.evicted(), 3, "of those that keep one waiting");
    assert!(!crowd[0].is_evicted() && !honest.iter().any(Admitted::is_evicted));
}

#[test]
fn a_large_server_keeps_a_bounded_number_of_slots_free() {
    assert_eq!(SlotPolicy::from(1_000_000).spare(), SPARE_SLOTS_MAX);
    assert_eq!(SlotPolicy::from(320).spare(), 320 / SPARE_PART);
}
