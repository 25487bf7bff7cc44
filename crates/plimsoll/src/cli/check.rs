//! `--check` of the servers: checks the addresses and prints the plan, one line for each step.
//!
//! It starts nothing. Invariant: the plan shows the effective settings, after flags, environment, file and
//! defaults are merged.

use std::io::Write as _;
use std::path::Path;
use std::time::SystemTime;

use anyhow::Context as _;
use clap::Args;
use clap::builder::Resettable;
use plimsoll_auth::directory::without_password;
use plimsoll_cli::output::print_json;
use plimsoll_engine::EngineKind;

use crate::config::{AuthAt, Config, Fixed, FtpTls, PlainPasswords, StoreAt, unknown_variables};
use crate::encryption::{Facts, facts_of, has_certificate};
use crate::exposure::of_plain_passwords;
use crate::listening::{self, Addresses};
use crate::locked_folder::is_folder_held;

/// The flags of a check.
#[derive(Args, Clone, Copy)]
pub(super) struct CheckFlags {
    /// Check the configuration, the folders, the logs and the addresses, print the plan, and end
    #[arg(long, help_heading = Resettable::Reset)]
    pub(super) check: bool,

    /// With --check: print the plan as JSON
    #[arg(long, requires = "check", help_heading = Resettable::Reset)]
    json: bool,
}

/// The steps of a server's start, each a verb and its object.
pub(super) type Plan = Vec<(&'static str, String)>;

impl CheckFlags {
    /// Checks the addresses and prints the plan.
    pub(super) fn report(self, config: &Config, mut plan: Plan) -> anyhow::Result<()> {
        // A configuration is often checked before a running server reloads it.
        let held = folder_of(&config.fixed).filter(|folder| is_folder_held(folder));
        listening::check(config, held.is_some())?;
        if let Some(folder) = held.map(Path::display) {
            plan.push(("find", format!("{folder} held by a plimsoll that runs: end it first, or reload it")));
        }
        if self.json {
            let steps: Vec<_> =
                plan.iter().map(|(verb, object)| serde_json::json!({"do": verb, "what": object})).collect();
            return print_json(&serde_json::json!({"would": steps}));
        }
        let lines: String = plan.iter().map(|(verb, object)| format!("would {verb:<8}{object}\n")).collect();
        std::io::stdout().lock().write_all(lines.as_bytes()).context("cannot write to standard output")
    }
}

/// Returns the folder that a server with these settings locks.
fn folder_of(fixed: &Fixed) -> Option<&Path> {
    if fixed.is_proxy() { fixed.proxy_cache.0.as_deref() } else { fixed.accounts.then_some(&*fixed.data) }
}

/// The plan of `plimsoll serve`.
pub(super) fn plan(config: &Config) -> Plan {
    let (fixed, live) = (&config.fixed, &config.live);
    let mut lines = Vec::new();
    for site in &live.site {
        lines.push(("serve", format!("{} under {}", site.folder.display(), site.prefix)));
    }
    lines.extend(Addresses::wanted(config).urls().into_iter().map(|url| ("listen", url)));
    lines.extend(of_certificates(config));
    if fixed.has_ftp() {
        lines.extend(of_ftp(config));
    }
    if fixed.accounts {
        lines.extend(of_accounts(config));
    }
    lines.extend(of_proxies(config));
    lines.extend(rule_of_passwords(config));
    let of_passwords = of_plain_passwords(config);
    lines.extend(of_passwords.map(|found| ("warn", format!("that {}: {}", found.seen, found.remedy))));
    let threads = match fixed.engine {
        EngineKind::Process => "a process per connection".to_owned(),
        EngineKind::Thread => "a thread per connection".to_owned(),
        EngineKind::Pool => format!("workers: {}, queue {}", fixed.threads.number(fixed.engine), fixed.queue),
        EngineKind::Epoll | EngineKind::Uring => format!("loops: {}", fixed.threads.number(fixed.engine)),
    };
    lines.push(("run", format!("engine {}, {threads}, grace {}", fixed.engine, fixed.grace)));
    // Under the engine `process`, the main process caches the accounts' files. Sites are not cached.
    if fixed.hot_bytes.0 > 0 && (!fixed.engine.forks() || fixed.accounts) {
        let (bytes, files, time) = (fixed.hot_bytes, fixed.hot_files, fixed.hot_time);
        lines.push((
            "keep",
            format!("{bytes} of hot files ready, {files} open, looked up again after {time}"),
        ));
    }
    if fixed.prefetch {
        lines.push(("read", "the files of sites before the first connection".to_owned()));
    }
    if fixed.has_operations() {
        lines.push(("log", format!("transfers {}, xferlog {}", fixed.transfer_log, fixed.xferlog)));
    }
    lines.push(("log", format!("requests {}", fixed.access_log)));
    lines.push(("log", format!("itself on standard error, {} from {}", fixed.log_format, live.log_level)));
    let lab = config.lab().into_iter().map(|key| ("pretend", format!("{key}, for a laboratory only")));
    lines.extend(lab);
    lines.extend(unknown_variables().into_iter().map(|variable| ("ignore", variable)));
    lines
}

fn of_accounts(config: &Config) -> [(&'static str, String); 3] {
    let (fixed, live) = (&config.fixed, &config.live);
    let admitted = if config.sign_up_is_open() {
        "any new account"
    } else {
        "no new account; the operator adds accounts"
    };
    [
        match &fixed.store {
            StoreAt::Local => {
                ("keep", format!("files in {}, durability {}", fixed.data.display(), fixed.durability))
            }
            StoreAt::Remote(url) => ("keep", format!("files at the storage server {url}")),
        },
        match &fixed.auth {
            AuthAt::Embedded => {
                let (directory, time) = (without_password(&fixed.directory), live.session_time);
                ("keep", format!("accounts in {directory}, sessions for {time}"))
            }
            AuthAt::Remote(url) => ("use", format!("the authentication server {url} for accounts")),
        },
        ("admit", admitted.to_owned()),
    ]
}

fn of_certificates(config: &Config) -> Vec<(&'static str, String)> {
    if let Some(acme) = config.fixed.acme() {
        let (names, directory) = (acme.domains(), &acme.acme_directory);
        return vec![("order", format!("a certificate for {names} from {directory}, and renew it"))];
    }
    let facts = facts_of(config);
    if facts.is_empty() && config.live.tls.self_signed {
        let folder = config.fixed.data.join("tls");
        return vec![("make", format!("a self-signed certificate in {}", folder.display()))];
    }
    let now = SystemTime::now();
    let announced = |facts: &Facts| {
        let (names, days) = (facts.names.join(", "), facts.days_left(now));
        ("encrypt", format!("by the certificate of {names}, {days} days left, SHA-256 {}", facts.fingerprint))
    };
    facts.iter().map(announced).collect()
}

fn of_proxies(config: &Config) -> Option<(&'static str, String)> {
    let words = |words: Vec<String>| words.join(", ");
    let trusted = words(config.live.trusted_proxy.iter().map(ToString::to_string).collect());
    let spoken = words(config.fixed.proxy_protocol.iter().map(ToString::to_string).collect());
    let believed = || format!("proxies at {trusted} when they name their clients");
    match (trusted.is_empty(), spoken.is_empty()) {
        (true, true) => None,
        (false, true) => Some(("believe", believed())),
        (true, false) => Some(("believe", format!("every peer's header of the PROXY protocol ({spoken})"))),
        (false, false) => Some(("believe", format!("{}, also by the PROXY protocol ({spoken})", believed()))),
    }
}

/// The rule of passwords, which the server cannot check against the proxies in front of it.
fn rule_of_passwords(config: &Config) -> Option<(&'static str, String)> {
    let is_bound = config.live.tls.plain_passwords == PlainPasswords::Loopback;
    let rule = "passwords over HTTPS, from this machine and over Unix sockets; through a reverse proxy that \
                connects over TCP, only if --trusted-proxy names it and it reports https";
    (config.fixed.accounts && is_bound).then(|| ("accept", rule.to_owned()))
}

fn ftp_encryption(config: &Config) -> String {
    let settings = &config.live.ftp;
    let sessions = match (has_certificate(config), settings.ftp_tls) {
        (false, _) => return "no FTP: there is no certificate".to_owned(),
        (true, FtpTls::Off) => return "no FTP: ftp_tls is off".to_owned(),
        (true, FtpTls::Allow) => "sessions over FTP that want it",
        (true, FtpTls::Require) => "every session over FTP",
    };
    format!("{sessions}; resumption required on data connections: {}", settings.ftp_tls_reuse)
}

fn of_ftp(config: &Config) -> [(&'static str, String); 3] {
    let settings = &config.live.ftp;
    let announced = settings.ftp_announce.0.map_or("that it reached".to_owned(), |ip| ip.to_string());
    let guests = if settings.ftp_guests { "to read the site under /" } else { "none" };
    [
        (
            "listen",
            format!("for data of FTP at ports {}; clients get the address {announced}", settings.ftp_ports),
        ),
        ("admit", format!("guests over FTP: {guests}")),
        ("encrypt", ftp_encryption(config)),
    ]
}
