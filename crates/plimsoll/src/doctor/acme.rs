//! Checks what an order by ACME needs: the usual ports, names that lead here, and no failures in a row.
//!
//! It sends nothing but requests to resolve the names, and cannot see this machine from the internet.
//! Invariant: a server that orders no certificate gets no finding.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _, UdpSocket};
use std::time::SystemTime;

use plimsoll_acme::{Attempts, DomainName};
use plimsoll_io::Address;

use super::Finding;
use crate::bounded_thread::BoundedThread;
use crate::config::{AcmeChallenge, Config};
use crate::encryption;
use crate::limits::NAME_LOOKUP_TIME;

/// The port at which an ACME server requests its answers.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let Some(acme) = config.fixed.acme() else { return Vec::new() };
    let (by_file, by_certificate) = match acme.acme_challenge {
        AcmeChallenge::Http => ("the ACME server requests its answers", "clients look for it"),
        AcmeChallenge::TlsAlpn => ("clients are redirected to HTTPS", "the ACME server looks for it"),
    };
    let ports = [
        judge_port(("http", &config.fixed.http), HTTP_PORT, by_file),
        judge_port(("https", &config.fixed.https), HTTPS_PORT, by_certificate),
    ];
    let names = acme.acme.iter().map(|name| judge_name(name, resolve(name), is_own));
    let attempts = judge_attempts(&encryption::attempts(acme), SystemTime::now());
    ports.into_iter().chain(names).chain(attempts).collect()
}

/// Judges whether a listener is at its usual port, and reachable from other machines.
fn judge_port((flag, listeners): (&str, &[Address]), port: u16, why: &str) -> Finding {
    const CHECK: &str = "public port";
    let is_public = |at: &&Address| match at {
        Address::Ip(at) => at.port() == port && !at.ip().is_loopback(),
        Address::Unix(_) => false,
    };
    match listeners.iter().find(is_public) {
        Some(at) => Finding::ok(CHECK, format!("--{flag} {at} is at port {port}, where {why}")),
        None => Finding::warn(CHECK, format!("no --{flag} is at port {port} of this machine, where {why}"))
            .with_fix(
                format!("--{flag} 0.0.0.0:{port}; or a router or proxy that passes port {port} on"),
                format!("the key {flag} in the configuration"),
            ),
    }
}

/// Judges the addresses of a name.
fn judge_name(name: &DomainName, found: io::Result<Vec<IpAddr>>, is_own: impl Fn(IpAddr) -> bool) -> Finding {
    const CHECK: &str = "name";
    const LASTING: &str = "the zone of the name, at its DNS provider";
    match found {
        Err(error) => Finding::fail(CHECK, format!("{name} cannot be resolved: {error}")).with_fix(
            format!("add an A or AAAA record of {name} with the public address of this server"),
            LASTING,
        ),
        Ok(addresses) => {
            let list = addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ");
            if addresses.iter().all(|address| is_own(*address)) {
                return Finding::ok(CHECK, format!("{name} leads to {list}, of this machine"));
            }
            Finding::warn(CHECK, format!("{name} leads to {list}, not all of which this machine has"))
                .with_fix(
                    "see that ports 80 and 443 of each of them lead here, by NAT or a balancer",
                    LASTING,
                )
        }
    }
}

/// Resolves a name, as the ACME server does from the internet.
fn resolve(name: &DomainName) -> io::Result<Vec<IpAddr>> {
    let name = name.to_string();
    let lookup = move || {
        (name.as_str(), HTTP_PORT).to_socket_addrs().map(|found| found.map(|at| at.ip()).collect::<Vec<_>>())
    };
    match BoundedThread::spawn("lookup", lookup)?.join_within(NAME_LOOKUP_TIME) {
        Some(Ok(found)) => found,
        Some(Err(_)) | None => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Whether this machine has an address: only its own can be bound.
fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Judges the failed orders since the last certificate; none without one.
fn judge_attempts(attempts: &Attempts, now: SystemTime) -> Option<Finding> {
    let failures = Some(attempts.failures).filter(|failures| *failures > 0)?;
    let wait = attempts.not_before.and_then(|at| at.duration_since(now).ok()).unwrap_or_default();
    let minutes = wait.as_secs().div_ceil(60);
    let seen = format!("orders that failed in a row: {failures}; the next one is in {minutes} minutes");
    let now =
        "fix what the server's log says of them; to order at once, remove attempts.json of --acme-state";
    Some(Finding::warn("order", seen).with_fix(now, "docs/https.md has what an order needs"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn a_listener_at_the_usual_port_of_every_address_is_fine() {
        let judge = |address: &str| judge_port(("http", &[address.parse().unwrap()]), 80, "a test");
        assert_eq!(judge("0.0.0.0:80").verdict, Verdict::Ok);
        for other in ["127.0.0.1:80", "0.0.0.0:8080", "unix:/run/a"] {
            let finding = judge(other);
            assert_eq!(finding.verdict, Verdict::Warn, "{other}");
            assert!(finding.now.unwrap().contains("--http 0.0.0.0:80"));
        }
    }

    #[test]
    fn a_name_must_resolve_and_one_of_other_machines_is_a_warning() {
        let name = DomainName::parse("files.example.org").unwrap();
        let own: IpAddr = "192.0.2.1".parse().unwrap();
        let judge =
            |found: io::Result<Vec<IpAddr>>| judge_name(&name, found, |address| address == own).verdict;
        assert_eq!(judge(Ok(vec![own])), Verdict::Ok);
        assert_eq!(judge(Ok(vec![own, "2001:db8::1".parse().unwrap()])), Verdict::Warn);
        assert_eq!(judge(Err(io::ErrorKind::NotFound.into())), Verdict::Fail);
        assert!(is_own("127.0.0.1".parse().unwrap()) && !is_own("192.0.2.77".parse().unwrap()));
    }

    #[test]
    fn orders_that_failed_are_a_warning_with_the_time_of_the_next() {
        let now = SystemTime::now();
        assert!(judge_attempts(&Attempts::default(), now).is_none());
        let not_before = Some(now + Duration::from_secs(90));
        let seen =
            judge_attempts(&Attempts { failures: 3, not_before, ..Attempts::default() }, now).unwrap().seen;
        assert!(seen.contains("in a row: 3") && seen.contains("in 2 minutes"), "{seen}");
    }
}
