//! The renewer in the simulator: an hour without a server, and a full disk.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_acme::{DomainName, Lock, Names, Network, Proof, Renewer, Report, Settings, StateFolder};
use plimsoll_io::sim::{Faults, Host, Sim};
use plimsoll_io::{Current, Handler, LocalFuture, Segment, Setup, Stream, Want, select};
use plimsoll_tls::{Certificates, Clock, Connector, MinVersion, Roots, Secured, ServerTls, Tickets};

const CA: &[u8] = include_bytes!("../../../tests/data/tls/ca.pem");
const SERVER: (&[u8], &[u8]) = (
    include_bytes!("../../../tests/data/tls/server.pem"),
    include_bytes!("../../../tests/data/tls/server.key"),
);
const NEARLY_AN_HOUR: Duration = Duration::from_secs(3500);

/// A lock that no other front has.
struct Free;

impl Lock for Free {
    fn try_lock(&self) -> io::Result<Option<Box<dyn Send>>> {
        Ok(Some(Box::new(())))
    }
}

/// Answers each request with an error that is no JSON, as the proxy in front of an ACME server may.
struct Overloaded;

impl Handler for Overloaded {
    fn serve(&self, stream: Stream) -> LocalFuture {
        Box::pin(async move {
            let mut stream = stream;
            let _request = stream.rx.recv(Want::Head).await;
            stream.tx.push(Segment::Static(
                b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1500\r\nContent-Length: 5\r\n\r\nlater",
            ));
            let _ended = stream.finish().await;
        })
    }
}

/// Serves [`Overloaded`] at the directory's address.
fn serve_overloaded(sim: &Sim, host: &Host) {
    let certificates = Certificates::read([SERVER]).unwrap();
    let (min, tickets) = (MinVersion::default(), Tickets::new().unwrap());
    let current =
        Current::new(ServerTls::new(certificates, &["http/1.1"], min, tickets, Clock::new()).unwrap());
    let setup: Setup =
        Arc::new(move |io| Rc::new(Secured::new(io, Rc::new(Overloaded), Arc::clone(&current))));
    sim.serve(host, &":14000".parse().unwrap(), &setup).unwrap();
}

/// Renews for nearly an hour, with no server at the directory's address.
fn renew_without_a_server(prepare: impl FnOnce(&Host)) -> Report {
    renew(|_, host| prepare(host))
}

/// Renews for nearly an hour.
fn renew(prepare: impl FnOnce(&Sim, &Host)) -> Report {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("server");
    host.disk().mkdir("/acme").unwrap();
    let folder = StateFolder::open(&**host.disk(), Path::new("/acme")).unwrap();
    prepare(&sim, &host);
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

#[test]
fn the_wait_that_a_server_requests_is_kept_although_its_response_is_no_json() {
    let report = renew(serve_overloaded);
    assert!(report.last_failure.unwrap().contains("status 503"));
    // After 0, 25 and 50 minutes.
    assert_eq!((report.failures, report.renewals), (3, 0));
}
