//! Checks that the configured addresses can be bound.
//!
//! It binds each IP address for a moment and accepts no connection. Invariant: an address in use by a
//! plimsoll server is no failure.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use plimsoll_io::Address;

use super::Finding;
use crate::config::Config;
use crate::limits::PROBE_ANSWER_BYTES_MAX;
use crate::listening::Addresses;
use crate::locked_folder::is_folder_held;

const CHECK: &str = "address";
/// The protocol of an address, and how to recognise a plimsoll server by it.
struct Spoken {
    name: &'static str,
    /// The request that the check sends; an FTP server speaks first.
    asked: &'static [u8],
    /// The words that a response of plimsoll contains.
    known_by: &'static [&'static str],
    /// Whether a plimsoll server can be running.
    may_be_ours: bool,
}

const HTTP: Spoken = Spoken {
    name: "http",
    asked: b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    known_by: &["plimsoll"],
    may_be_ours: true,
};
/// The alert with which a server of TLS answers other bytes. The lock on the data folder tells that it is
/// plimsoll's.
const HTTPS: Spoken = Spoken { name: "https", asked: HTTP.asked, known_by: &["\u{15}\u{3}"], ..HTTP };
const METRICS: Spoken = Spoken { name: "metrics", ..HTTP };
const CLASSIC: Spoken =
    Spoken { name: "classic", asked: b"doctor\n", known_by: &["error: send new:NAME:PASSWORD"], ..HTTP };
const FTP: Spoken = Spoken { name: "ftp", asked: b"QUIT\r\n", known_by: &["220 plimsoll"], ..HTTP };

/// The time limit for the server at an address to respond.
const ANSWER_TIME: Duration = Duration::from_secs(1);

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let Addresses { http, https, ftp, ftps, classic, channel: _, metrics, metrics_tls } =
        Addresses::wanted(config);
    let may_be_ours = !config.fixed.accounts || is_folder_held(&config.fixed.data);
    let of_https = Spoken { may_be_ours, ..HTTPS };
    let of_ftps = Spoken { name: "ftps", ..of_https };
    let of_metrics = Spoken { name: "metrics-tls", ..of_https };
    let clear = [(http, HTTP), (ftp, FTP), (classic, CLASSIC), (metrics, METRICS)];
    let encrypted = [(https, of_https), (ftps, of_ftps), (metrics_tls, of_metrics)];
    clear
        .iter()
        .chain(&encrypted)
        .flat_map(|(addresses, spoken)| addresses.iter().map(|at| check_one(at, spoken)))
        .collect()
}

fn check_one(address: &Address, spoken: &Spoken) -> Finding {
    match address {
        Address::Ip(at) => match plimsoll_engine::bind(address) {
            Ok(_) => Finding::ok(CHECK, format!("{at} is free")),
            Err(error) => taken_or_refused(*at, spoken, &error),
        },
        // Binding would replace the socket of a running server.
        Address::Unix(path) => check_folder_of(path),
    }
}

fn taken_or_refused(at: SocketAddr, spoken: &Spoken, error: &io::Error) -> Finding {
    let (port, name) = (at.port(), spoken.name);
    match error.kind() {
        io::ErrorKind::AddrInUse if is_ours(at, spoken) => {
            Finding::ok(CHECK, format!("{at} is served by plimsoll"))
        }
        io::ErrorKind::AddrInUse => Finding::fail(CHECK, format!("{at} is another program's")).with_fix(
            format!("sudo ss -ltnp 'sport = :{port}'  # names it; or choose another with --{name}"),
            format!("the key {name} in the configuration, or the other program's own"),
        ),
        io::ErrorKind::PermissionDenied => Finding::fail(CHECK, format!("{at} needs a privilege")).with_fix(
            format!("sudo sysctl -w net.ipv4.ip_unprivileged_port_start={port}"),
            "AmbientCapabilities=CAP_NET_BIND_SERVICE in the service's unit",
        ),
        _ => Finding::fail(CHECK, format!("{at}: {error}")).with_fix(
            "ip -brief address, which lists this machine's own",
            format!("the key {name} in the configuration"),
        ),
    }
}

/// Returns whether a plimsoll server answers at the address.
fn is_ours(at: SocketAddr, spoken: &Spoken) -> bool {
    let ask = || -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&at, ANSWER_TIME)?;
        stream.set_read_timeout(Some(ANSWER_TIME))?;
        stream.write_all(spoken.asked)?;
        let mut answer = String::new();
        stream.take(PROBE_ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    };
    spoken.may_be_ours && ask().is_ok_and(|answer| spoken.known_by.iter().all(|word| answer.contains(word)))
}

fn check_folder_of(path: &Path) -> Finding {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = folder.display();
    if folder.is_dir() {
        return Finding::ok(CHECK, format!("unix:{}", path.display()));
    }
    Finding::fail(CHECK, format!("unix:{}: there is no folder {shown}", path.display()))
        .with_fix(format!("sudo mkdir -p {shown}"), "RuntimeDirectory=plimsoll in the service's unit")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn a_port_that_another_program_has_is_a_failure_and_a_free_one_is_not() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = taken.local_addr().unwrap();
        // The program closes each connection at once.
        let other = std::thread::spawn(move || (0..3).for_each(|_| drop(taken.accept())));
        for spoken in [HTTP, FTP, CLASSIC] {
            let finding = check_one(&Address::Ip(at), &spoken);
            assert_eq!(finding.verdict, Verdict::Fail, "{finding:?}");
            let now = finding.now.unwrap();
            assert!(now.contains(&at.port().to_string()) && now.contains(spoken.name), "{now}");
        }
        other.join().unwrap();
        assert_eq!(check_one(&":0".parse().unwrap(), &FTP).verdict, Verdict::Ok);
    }

    #[test]
    fn a_server_of_ours_is_known_by_what_it_says() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = taken.local_addr().unwrap();
        let other = std::thread::spawn(move || {
            let (mut stream, _) = taken.accept().unwrap();
            stream.write_all(b"220 plimsoll is ready.\r\n221 Goodbye.\r\n").unwrap();
            // Reads before closing, because closing with unread bytes would reset the connection.
            let _ = stream.read(&mut [0; 64]);
        });
        assert_eq!(check_one(&Address::Ip(at), &FTP).verdict, Verdict::Ok);
        other.join().unwrap();
    }

    #[test]
    fn a_socket_in_a_folder_that_is_not_there_is_a_failure() {
        assert_eq!(check_one(&"unix:/nowhere/at-all/socket".parse().unwrap(), &HTTP).verdict, Verdict::Fail);
        assert_eq!(check_one(&"unix:socket".parse().unwrap(), &HTTP).verdict, Verdict::Ok);
    }
}
