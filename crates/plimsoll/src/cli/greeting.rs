//! What a server says when it starts: where it listens, what it serves, and what to type next.
//!
//! It prints nothing itself. What must hold: every line that is meant to be typed works as it stands, on
//! this machine.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use plimsoll_engine::Kind;
use plimsoll_io::Address;

use super::SiteFlag;

/// The greeting of a server that runs.
pub(crate) fn greeting(engine: Kind, sites: &[SiteFlag], addresses: &[Address], on_terminal: bool) -> String {
    let mut text = format!("plimsoll {} serves, engine {engine}\n", env!("CARGO_PKG_VERSION"));
    for site in sites {
        add(&mut text, format_args!("  {:<24} {}", site.prefix, site.folder.display()));
    }
    for address in addresses {
        add(&mut text, format_args!("  {}", url(address)));
    }
    if let (Some(address), Some(site)) = (addresses.first(), sites.first()) {
        text += &next_steps(address, &site.prefix);
    }
    text += if on_terminal { "To end: Ctrl-C, or q and Enter.\n" } else { "To end: SIGTERM.\n" };
    text
}

/// An address as a person gives it to a client.
pub(crate) fn url(address: &Address) -> String {
    match address {
        Address::Ip(at) => format!("http://{at}"),
        Address::Unix(_) => address.to_string(),
    }
}

fn next_steps(address: &Address, prefix: &str) -> String {
    let (curl, base) = match address {
        Address::Ip(at) => ("curl".to_owned(), format!("http://{}", reachable(*at))),
        Address::Unix(path) => {
            (format!("curl --unix-socket {}", path.display()), "http://localhost".to_owned())
        }
    };
    let folder = format!("{}/", prefix.trim_end_matches('/'));
    let steps = [
        (format!("{curl} {base}{folder}"), "the index page, or the folder as JSON"),
        (format!("{curl} -r 0-99 {base}{folder}"), "its first hundred bytes"),
        (format!("{curl} {base}/api/status"), "what the server does"),
    ];
    let width = steps.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    let mut text = match address {
        Address::Ip(_) => format!("\nOpen {base}{folder} in a browser, or type in another terminal:\n"),
        Address::Unix(_) => "\nType in another terminal:\n".to_owned(),
    };
    for (line, comment) in steps {
        add(&mut text, format_args!("  {line:<width$}  # {comment}"));
    }
    text
}

/// Where a client of this machine reaches a server that listens at `at`: all addresses are none to go to.
fn reachable(at: SocketAddr) -> SocketAddr {
    let ip = match at.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, at.port())
}

fn add(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeted(address: &str, site: &str) -> String {
        greeting(Kind::Epoll, &[site.parse().unwrap()], &[address.parse().unwrap()], true)
    }

    #[test]
    fn the_comments_stand_below_each_other() {
        let text = greeted(":8080", "/docs=./docs");
        let columns: Vec<_> = text.lines().filter_map(|line| line.find("  # ")).collect();
        assert!(columns.len() == 3 && columns.iter().all(|column| *column == columns[0]), "{text}");
        assert!(text.contains("curl http://127.0.0.1:8080/docs/ "), "{text}");
    }

    #[test]
    fn what_is_to_be_typed_names_an_address_that_can_be_reached() {
        assert!(greeted("0.0.0.0:80", "/=.").contains("curl http://127.0.0.1:80/ "));
        assert!(greeted("[::]:80", "/=.").contains("curl http://[::1]:80/ "));
        assert!(greeted("unix:/run/p", "/=.").contains("curl --unix-socket /run/p http://localhost/ "));
    }
}
