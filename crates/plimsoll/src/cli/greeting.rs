//! The greeting of a started server: its addresses, its services, and commands to try next.
//!
//! It prints nothing itself. Invariant: every command in it works as printed, on this machine and in any
//! working folder.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plimsoll_auth::directory::{file_of, without_password};
use plimsoll_client::http::Url;
use plimsoll_io::Address;

use crate::config::{AuthAt, Config, FtpTls, StoreAt};
use crate::encryption::{Facts, facts_of, is_stand_in, self_signed_certificate};
use crate::limits::ALIGNED_COMMAND_CHARS_MAX;
use crate::listening::Addresses;

/// A command to type, and its effect.
type Step = (String, &'static str);

/// Returns the greeting of a running server.
pub(crate) fn greeting(config: &Config, addresses: &Addresses, on_terminal: bool) -> String {
    let (engine, sites) = (config.fixed.engine, &config.live.site);
    let mut text = format!("plimsoll {} serves, engine {engine}\n", env!("CARGO_PKG_VERSION"));
    for key in config.lab() {
        add(&mut text, format_args!("  {key} is on: for a laboratory, not for people's files"));
    }
    for site in sites {
        add(&mut text, format_args!("  {:<24} {}", site.prefix, site.folder.display()));
    }
    if config.fixed.accounts {
        for (name, place) in locations(config) {
            add(&mut text, format_args!("  {name:<24} {place}"));
        }
        add(&mut text, format_args!("  {:<24} {}", "sign-up", sign_up(config)));
    }
    if config.live.ftp.ftp_guests && config.fixed.has_ftp() {
        add(&mut text, format_args!("  {:<24} to read what is under /", "guests over FTP"));
    }
    for (name, value) in certificates(config, &facts_of(config)) {
        add(&mut text, format_args!("  {name:<24} {value}"));
    }
    for url in addresses.urls() {
        add(&mut text, format_args!("  {url}"));
    }
    text += &next_steps(config, addresses);
    text += if on_terminal { "To end: Ctrl-C, or q and Enter.\n" } else { "To end: SIGTERM.\n" };
    text
}

/// Returns the locations of accounts and files.
fn locations(config: &Config) -> Vec<(&'static str, String)> {
    let data = config.fixed.data.display().to_string();
    let accounts = |url: &Url| ("accounts are asked of", url.to_string());
    let files = |url: &Url| ("files are kept at", url.to_string());
    match (&config.fixed.auth, &config.fixed.store) {
        (AuthAt::Embedded, StoreAt::Local) => vec![("accounts and files", data)],
        (AuthAt::Embedded, StoreAt::Remote(store)) => vec![("accounts", data), files(store)],
        (AuthAt::Remote(auth), StoreAt::Local) => vec![accounts(auth), ("files", data)],
        (AuthAt::Remote(auth), StoreAt::Remote(store)) => vec![accounts(auth), files(store)],
    }
}

/// Returns the certificates. The fingerprint of a self-signed one is all by which a client can know it.
fn certificates(config: &Config, facts: &[Facts]) -> Vec<(&'static str, String)> {
    if let Some(acme) = config.fixed.acme().filter(|_| is_stand_in(config)) {
        return vec![(
            "certificate",
            format!("ordered now for {}; a self-signed one until then", acme.domains()),
        )];
    }
    let now = SystemTime::now();
    let mut lines = Vec::new();
    for facts in facts {
        let (names, days) = (facts.names.join(", "), facts.days_left(now));
        let name = if config.live.tls.self_signed { "self-signed certificate" } else { "certificate" };
        lines.push((name, format!("of {names}; {days} days left")));
        if config.live.tls.self_signed {
            lines.push(("its SHA-256 fingerprint", facts.fingerprint.clone()));
        }
    }
    lines
}

fn sign_up(config: &Config) -> &'static str {
    match (config.sign_up_is_open(), &config.fixed.auth) {
        (true, _) => "open: every client that reaches the server can create an account",
        (false, AuthAt::Embedded) => "closed: add accounts as below, or open it by --signup open",
        (false, AuthAt::Remote(_)) => {
            "closed: add accounts at the authentication server, or open it by --signup open"
        }
    }
}

fn next_steps(config: &Config, addresses: &Addresses) -> String {
    let Some(address) = addresses.http.first() else { return String::new() };
    let mut steps = Vec::new();
    if config.fixed.accounts {
        steps.extend(with_an_account(config, address));
    }
    if let (Some(Address::Ip(at)), Some(certificate)) =
        (addresses.https.first(), self_signed_certificate(config))
    {
        let certificate = quoted(&absolute(&certificate));
        let line = format!("curl --cacert {certificate} https://{}/healthz", reachable(*at));
        steps.push((line, "HTTPS; other clients compare the fingerprint"));
    }
    let may_be_in_clear = config.live.ftp.ftp_tls != FtpTls::Require;
    if let Some(Address::Ip(at)) = addresses.ftp.first().filter(|_| may_be_in_clear) {
        steps.extend(over_ftp(config, *at));
    }
    if let Some(Address::Ip(at)) = addresses.classic.first() {
        let at = reachable(*at);
        let line = format!("nc {} {}", at.ip(), at.port());
        steps.push((line, "classic: type get:alice:PASSWORD, then hello.txt"));
    }
    let mut text = "\nType in another terminal:\n".to_owned();
    if let Some(site) = config.live.site.first() {
        let (curl, base) = curl(address);
        let folder = format!("{}/", site.prefix.trim_end_matches('/'));
        if matches!(address, Address::Ip(_)) {
            text = format!("\nOpen {base}{folder} in a browser, or type in another terminal:\n");
        }
        steps.push((format!("{curl} {base}{folder}"), "the index page, or what is in the folder"));
        steps.push((format!("{curl} -r 0-99 {base}{folder}"), "its first hundred bytes"));
        steps.push((format!("{curl} {base}/api/status"), "the state of the server"));
    }
    let width =
        steps.iter().map(|(line, _)| line.len()).filter(|len| *len <= ALIGNED_COMMAND_CHARS_MAX).max();
    for (line, comment) in steps {
        add(&mut text, format_args!("  {line:<width$}  # {comment}", width = width.unwrap_or(0)));
    }
    text
}

/// Returns the first commands of a new account.
fn with_an_account(config: &Config, address: &Address) -> Vec<Step> {
    let (curl, base) = curl(address);
    let server = match address {
        Address::Ip(_) => base.clone(),
        Address::Unix(_) => address.to_string(),
    };
    let program = std::env::current_exe().unwrap_or_default();
    let set_up = match folder_to_add(&program, std::env::var_os("PATH").as_deref()) {
        Some(folder) => {
            format!("export PLIMSOLL_SERVER={} PATH={}:\"$PATH\"", quoted(&server), quoted(&folder))
        }
        None => format!("export PLIMSOLL_SERVER={}", quoted(&server)),
    };
    let account = |name: &str| match (config.sign_up_is_open(), &config.fixed.auth) {
        (true, _) => Some(format!("plimsoll signup {name}")),
        (false, AuthAt::Embedded) => Some(format!("plimsoll account add {name} {}", directory_of(config))),
        // Accounts may have to be added on another machine.
        (false, AuthAt::Remote(_)) => None,
    };
    let typed = |line: &str| Some(line.to_owned());
    let steps = [
        (Some(set_up), "so that the rest is short"),
        (account("alice"), "make an account"),
        (typed("plimsoll login alice"), "begin a session"),
        (typed("echo 'Hello, sea.' | plimsoll put - hello.txt"), "upload; or: plimsoll put FILE..."),
        (typed("plimsoll ls"), "list"),
        (account("bob"), "make another account"),
        (typed("plimsoll share hello.txt bob"), "bob may get it now"),
        (Some(format!("{curl} -u alice {base}/files/hello.txt")), "the same by any client of HTTP"),
    ];
    steps.into_iter().filter_map(|(line, comment)| Some((line?, comment))).collect()
}

/// Returns commands for the same files over FTP.
fn over_ftp(config: &Config, at: SocketAddr) -> Vec<Step> {
    let (base, mut steps) = (format!("ftp://{}", reachable(at)), Vec::new());
    if config.fixed.accounts {
        steps.push((format!("curl -u alice {base}/hello.txt"), "the same by any client of FTP"));
    }
    if config.live.ftp.ftp_guests {
        steps.push((format!("curl {base}/"), "the files of guests over FTP"));
    }
    steps
}

/// Returns the curl command and the base of its URLs.
fn curl(address: &Address) -> (String, String) {
    match address {
        Address::Ip(at) => ("curl".to_owned(), format!("http://{}", reachable(*at))),
        Address::Unix(path) => {
            let socket = quoted(&path.to_string_lossy());
            (format!("curl --unix-socket {socket}"), "http://localhost".to_owned())
        }
    }
}

/// Returns the folder of this program, unless `PATH` finds it already.
fn folder_to_add(program: &Path, path: Option<&std::ffi::OsStr>) -> Option<String> {
    let folders = std::env::split_paths(path.unwrap_or_default());
    let found = folders.map(|folder| folder.join("plimsoll")).find(|found| found.is_file());
    let same = |found: PathBuf| found.canonicalize().is_ok_and(|found| found == program);
    if found.is_some_and(same) { None } else { program.parent().map(|at| at.to_string_lossy().into_owned()) }
}

/// Returns the arguments that name this server's directory for an operator's command.
fn directory_of(config: &Config) -> String {
    let (data, directory) = (&config.fixed.data, &config.fixed.directory);
    match file_of(directory) {
        None => format!("--directory {}", quoted(&without_password(directory))),
        Some(file) if file.parent() != Some(data.as_path()) => {
            format!("--directory {}", quoted(&format!("sqlite:{}", absolute(&file))))
        }
        Some(_) => format!("--data {}", quoted(&absolute(data))),
    }
}

fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,=".contains(&byte);
    if word.bytes().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Returns the address for clients on this machine. Nothing can connect to an unspecified address, so it
/// becomes loopback.
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

    fn greeted(address: &str, args: &[&str]) -> String {
        let config = Config::of(&[&["--engine", "epoll", "--http", address], args].concat());
        greeting(&config, &Addresses::wanted(&config), true)
    }

    #[test]
    fn with_ftp_the_greeting_has_its_address_and_a_first_command() {
        let text = greeted(":8080", &["--ftp", "0.0.0.0:2121"]);
        assert!(text.contains("\n  ftp://0.0.0.0:2121\n"), "{text}");
        assert!(text.contains("  curl -u alice ftp://127.0.0.1:2121/hello.txt "), "{text}");
        assert!(!text.contains("guests") && !greeted(":8080", &[]).contains("ftp"), "{text}");
        let guests = ["--ftp", "[::]:21", "--ftp-guests", "true", "--site", "/=.", "--accounts", "false"];
        let text = greeted(":8080", &guests);
        assert!(text.contains("  curl ftp://[::1]:21/ ") && !text.contains("alice"), "{text}");
        assert!(text.contains("\n  guests over FTP          to read what is under /\n"), "{text}");
    }

    #[test]
    fn the_comments_stand_below_each_other() {
        let text = greeted(":8080", &["--site", "/docs=./docs", "--accounts", "false"]);
        let columns: Vec<_> = text.lines().filter_map(|line| line.find("  # ")).collect();
        assert!(columns.len() == 3 && columns.iter().all(|column| *column == columns[0]), "{text}");
        assert!(text.contains("curl http://127.0.0.1:8080/docs/ "), "{text}");
        assert!(!text.contains("plimsoll signup"), "{text}");
    }

    #[test]
    fn commands_in_the_greeting_name_a_reachable_address() {
        let greeted = |address| greeted(address, &["--site", "/=."]);
        assert!(greeted("0.0.0.0:80").contains("curl http://127.0.0.1:80/ "));
        assert!(greeted("[::]:80").contains("curl http://[::1]:80/ "));
        assert!(greeted("[::]:80").contains("export PLIMSOLL_SERVER='http://[::1]:80' "));
        assert!(greeted("unix:/run/p").contains("curl --unix-socket /run/p http://localhost/ "));
        assert!(greeted("unix:/run/p").contains("export PLIMSOLL_SERVER=unix:/run/p "));
    }

    #[test]
    fn with_sign_up_closed_the_greeting_has_the_command_that_adds_an_account() {
        let text = greeted(":80", &["--signup", "closed", "--data", "/srv/my files"]);
        assert!(text.contains("plimsoll account add alice --data '/srv/my files' "), "{text}");
        assert!(!text.contains("plimsoll signup"), "{text}");
        let text = greeted(":80", &["--signup", "closed", "--directory", "sqlite:/db/a.sqlite"]);
        assert!(text.contains("plimsoll account add alice --directory sqlite:/db/a.sqlite "), "{text}");
    }

    #[test]
    fn a_front_names_the_server_that_it_asks_and_nothing_to_type_that_is_typed_there() {
        let text = greeted(":80", &["--auth", "http://10.0.0.5:8070", "--signup", "closed"]);
        assert!(text.contains("\n  accounts are asked of    http://10.0.0.5:8070\n"), "{text}");
        assert!(text.contains("plimsoll login alice ") && !text.contains("account add alice"), "{text}");
        let text = greeted(":80", &["--auth", "http://10.0.0.5:8070", "--signup", "open"]);
        assert!(text.contains("plimsoll signup alice "), "{text}");
    }

    #[test]
    fn a_program_that_a_shell_finds_by_its_name_needs_no_path() {
        let folder = tempfile::tempdir().unwrap();
        let (here, program) = (folder.path().canonicalize().unwrap(), folder.path().join("plimsoll"));
        std::fs::write(&program, "").unwrap();
        let to_add = |path: &Path| folder_to_add(&here.join("plimsoll"), Some(path.as_os_str()));
        assert_eq!(to_add(&here), None);
        assert_eq!(to_add(Path::new("/nowhere")), Some(here.to_string_lossy().into_owned()));
    }

    #[test]
    fn a_word_is_one_word_to_a_shell() {
        assert_eq!(quoted("/srv/a-b_c.d"), "/srv/a-b_c.d");
        assert_eq!(quoted("/srv/my files"), "'/srv/my files'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
