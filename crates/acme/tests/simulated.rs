//! The renewer in the simulator: an hour without a server, and a full disk.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_acme::{DomainName, Lock, Names, Network, Proof, Renewer, Report, Settings, StateFolder};
use plimsoll_io::select;
use plimsoll_io::sim::{Faults, Host, Sim};
use plimsoll_tls::{Clock, Connector, Roots};

const CA: &[u8] = include_bytes!("../../../tests/data/tls/ca.pem");
const NEARLY_AN_HOUR: Duration = Duration::from_secs(3500);

/// A lock that no other front has.
struct Free;

impl Lock for Free {
    fn try_lock(&self) -> io::Result<Option<Box<dyn Send>>> {
        Ok(Some(Box::new(())))
    }
}

/// Renews for nearly an hour, with no server at the directory's address.
fn renew_without_a_server(prepare: impl FnOnce(&Host)) -> Report {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("server");
    host.disk().mkdir("/acme").unwrap();
    let folder = StateFolder::open(&**host.disk(), Path::new("/acme")).unwrap();
    prepare(&host);
    let names = Names::new([DomainName::parse("files.example.org").unwrap()]).unwrap();
    let directory = "https://localhost:14000/dir".to_owned();
    let (external_account, proof) = (None, Proof::Http);
    let settings = Settings { directory, names, contacts: Vec::new(), external_account, proof };
    let renewer = Renewer::new(settings, folder, Arc::new(Free));
    let tls = Connector::new(&Roots::read(CA).unwrap(), &["http/1.1"], Clock::new()).unwrap();
    let resolve = Rc::new(|_: &str, port| -> plimsoll_client::http::Resolving {
        Box::pin(async move { Ok(vec![(Ipv4Addr::LOCALHOST, port).into()]) })
    });
    let io = host.io();
    sim.run(&host, async move {
        let running = renewer.run(&io, Network { tls, resolve }, &|_| {}, &|_| {});
        select(running, io.sleep(NEARLY_AN_HOUR)).await;
        renewer.report()
    })
}

#[test]
fn a_server_that_is_away_is_tried_ever_more_rarely() {
    let report = renew_without_a_server(|_| {});
    // After 0, 1, 3, 7, 15 and 31 minutes.
    assert_eq!((report.failures, report.renewals), (6, 0));
    assert!(report.last_failure.unwrap().contains("localhost:14000"));
}

#[test]
fn a_full_disk_orders_nothing_and_is_tried_ever_more_rarely() {
    let report = renew_without_a_server(|host| host.disk().full_after(0));
    assert_eq!((report.failures, report.renewals), (6, 0));
    assert!(report.last_failure.unwrap().contains("state folder"));
}
