//! Builds the workload from the arguments, and rejects contradictory ones.
//!
//! It sends no request, but it resolves names and reads passwords. Invariant: a secret comes from a file,
//! the environment or a terminal, never from an argument.

use std::path::Path;

use anyhow::Context as _;
use plimsoll_cli::{WrongUsage, warn_of_plain_password};
use plimsoll_io::Address;
use plimsoll_load::limits::{FILES_MAX, UPLOAD_BYTES_MAX, USERS_MAX};
use plimsoll_load::{
    Checked, Connections, End, Files, Login, Pace, Pick, Requests, Scheme, Target, Workload,
};
use plimsoll_tls::Connector;

use super::{ConnectionReuse, Load, Method, Picked, Share, Switch};
use crate::config::CertificateFile;
use crate::limits::THREADS_MAX;
use crate::trusted_certificates::connector_for;

impl Load {
    /// Returns the workload.
    pub(super) fn to_workload(&self) -> anyhow::Result<Workload> {
        let place = Target::parse(&self.url).map_err(|bad| wrong(bad.to_string()))?;
        let ask = self.ask(&place)?;
        self.workload(place, ask)
    }

    /// Returns the workload of these requests.
    pub(super) fn workload(&self, place: Target, ask: Requests) -> anyhow::Result<Workload> {
        self.check()?;
        let scheme = place.scheme;
        let login = self.login(scheme)?;
        if matches!(login, Login::Account { .. }) {
            warn_if_plain(&place);
        }
        let files = if let Requests::Download(files) = &ask { files.count() } else { 1 };
        Ok(Workload {
            tls: self.tls(scheme)?,
            login,
            pick: self.pick(files),
            ask,
            place,
            users: self.users,
            pace: match self.rate {
                Some(per_second) => Pace::Open { per_second },
                None => Pace::Closed { think: self.think.0 },
            },
            end: match (self.requests, self.requests_each, self.duration) {
                (Some(requests), ..) => End::Requests(requests),
                (None, Some(each), _) => End::RequestsEach(each),
                (None, None, time) => End::After(time.map(|time| time.0).unwrap_or_default()),
            },
            warm_up: self.warm_up.0,
            connections: match (self.connections, scheme) {
                // The classic protocol has one request for each connection.
                (ConnectionReuse::New, _) | (_, Scheme::Classic) => Connections::New,
                (ConnectionReuse::Kept, _) => Connections::Kept,
            },
            checked: match self.verify {
                Share(0) => Checked::None,
                Share(1) => Checked::All,
                Share(many) => Checked::OneIn(many),
            },
            against: self.against.clone(),
            keep: self.keep.clone(),
            timeout: self.timeout.0,
            threads: self.threads,
            cpus: self.cpu.clone(),
            seed: self.seed,
        })
    }

    pub(super) fn check(&self) -> Result<(), WrongUsage> {
        let too = |flag: &str, max: u64| Err(WrongUsage(format!("{flag} must be from 1 to {max}")));
        if self.users == 0 || self.users > USERS_MAX {
            return too("--users", USERS_MAX as u64);
        }
        if self.threads == 0 || self.threads > THREADS_MAX {
            return too("--threads", THREADS_MAX as u64);
        }
        if self.size.0 > UPLOAD_BYTES_MAX {
            return too("--size", UPLOAD_BYTES_MAX);
        }
        if self.requests == Some(0)
            || self.requests_each == Some(0)
            || self.duration.is_some_and(|time| time.0.is_zero())
        {
            return Err(WrongUsage("it would be over before it begins: write -d 10s or -n 1000".to_owned()));
        }
        if self.rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            return Err(WrongUsage("--rate must be a number of requests a second, such as 500".to_owned()));
        }
        Ok(())
    }

    fn ask(&self, place: &Target) -> anyhow::Result<Requests> {
        if let Some(mix) = self.mix {
            anyhow::ensure!(
                place.scheme.is_http(),
                wrong("the ten requests are asked over HTTP: write http://HOST:PORT".to_owned())
            );
            let is_base = !place.has_place_for_a_name();
            anyhow::ensure!(is_base, wrong("a mix has files of its own: leave {} out of the URL".to_owned()));
            return Ok(Requests::Ten { mix, bytes: self.size.0 });
        }
        let needs_place = "write {} in the URL where the number of the file belongs";
        if self.method == Method::New {
            let is_bare = self.files.is_none() && self.list.is_none() && self.keep.is_none();
            let is_bare = is_bare && self.account.is_none();
            anyhow::ensure!(
                place.scheme == Scheme::Classic && place.pattern == "/" && is_bare && self.against.is_none(),
                wrong(
                    "accounts are made over classic, under names of their own: write classic://HOST:PORT"
                        .to_owned()
                )
            );
            return Ok(Requests::SignUp);
        }
        if self.method == Method::Put {
            anyhow::ensure!(
                place.scheme != Scheme::Classic,
                wrong("classic has no uploads: write http:// or ftp://".to_owned())
            );
            if self.files.is_some() || self.list.is_some() || self.keep.is_some() || self.against.is_some() {
                let why = "uploads have names of their own; leave --files, --list, --keep and --against out";
                return Err(wrong(why.to_owned()));
            }
            let is_folder = place.pattern.ends_with('/');
            anyhow::ensure!(
                place.has_place_for_a_name() || is_folder,
                WrongUsage(
                    "write {} in the URL where the name of an upload belongs, or a / at its end".to_owned()
                )
            );
            return Ok(Requests::Upload { bytes: self.size.0 });
        }
        let files = match (&self.files, &self.list) {
            (Some(files), _) => files.clone(),
            (None, Some(list)) => listed(list)?,
            (None, None) => Files::One,
        };
        match (&files, place.has_place_for_a_name()) {
            (Files::Numbered { .. }, false) => Err(wrong(needs_place.to_owned())),
            (Files::One, true) => {
                Err(wrong("give --files RANGE or --list FILE for the {} in the URL".to_owned()))
            }
            _ => Ok(Requests::Download(files)),
        }
    }

    fn pick(&self, files: u64) -> Pick {
        match (self.pick, self.offset) {
            (Picked::Same, _) => Pick::Same,
            (Picked::Random, _) => Pick::Random { seed: self.seed },
            (Picked::Each, Some(offset)) => Pick::Each { offset },
            (Picked::Each, None) => Pick::spread(files, self.users),
        }
    }

    /// Returns the means to encrypt connections, if the URL demands it.
    fn tls(&self, scheme: Scheme) -> anyhow::Result<Option<Connector>> {
        if !scheme.is_encrypted() {
            let is_given = self.ca.is_some() || self.tls_resume == Switch::Off;
            let why = "--ca and --tls-resume are for https://, ftps:// and ftpes:// URLs";
            anyhow::ensure!(!is_given, wrong(why.to_owned()));
            return Ok(None);
        }
        let protocol = if scheme.is_http() { "http/1.1" } else { "ftp" };
        let connector = connector_for(protocol, &CertificateFile(self.ca.clone()), "--ca")?;
        Ok(Some(if self.tls_resume == Switch::On { connector } else { connector.without_resumption() }))
    }

    fn login(&self, scheme: Scheme) -> anyhow::Result<Login> {
        if !scheme.is_http() && self.token_file.is_some() {
            return Err(wrong("only HTTP knows tokens: write --account NAME".to_owned()));
        }
        let downloads = self.method == Method::Get && self.account.is_none();
        if scheme == Scheme::Classic && downloads {
            return Err(wrong("classic sends files to accounts only: write --account NAME".to_owned()));
        }
        if let Some(name) = &self.account {
            let password = self.password.get(name)?;
            return Ok(Login::Account { name: name.clone(), password });
        }
        let Some(path) = &self.token_file else { return Ok(Login::Nobody) };
        let problem = || format!("cannot read the token in {}", path.display());
        let text = std::fs::read_to_string(path).with_context(problem)?;
        let token = text.lines().next().unwrap_or_default().trim();
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        anyhow::ensure!(is_token, "the first line of {} is no token", path.display());
        Ok(Login::Token(token.to_owned()))
    }
}

/// Warns if others on the network can read the users' password.
fn warn_if_plain(place: &Target) {
    let is_beyond = |at: &Address| matches!(at, Address::Ip(at) if !at.ip().to_canonical().is_loopback());
    if !place.scheme.is_encrypted() && place.addresses.iter().any(is_beyond) {
        let url = format!("{}://{}", place.scheme.name(), place.server);
        let encrypted = if place.scheme == Scheme::Ftp { "ftpes://" } else { "https://" };
        warn_of_plain_password(&url, encrypted);
    }
}

fn wrong(why: String) -> anyhow::Error {
    WrongUsage(why).into()
}

/// Reads file names, one on each line.
fn listed(path: &Path) -> anyhow::Result<Files> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let names: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    let count = names.len() as u64;
    anyhow::ensure!((1..=FILES_MAX).contains(&count), "{} has {count} names", path.display());
    Ok(Files::Listed(names))
}
