//! The listeners of a server, by protocol, and their addresses as text.
//!
//! It accepts no connection. Invariant: all listeners are bound before any of them serves.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use plimsoll_engine::{Bound, Service, bind, check_bind};
use plimsoll_io::Address;
use plimsoll_proto::{classic, ftp, http};
use plimsoll_tls::REFUSAL;

use crate::config::Config;
use crate::limits::BIND_TIME_MAX;

pub(crate) const HTTP: Service = Service { number: 0, refusal: http::OVER_SHARE };
/// HTTP's slots, and refusals that a client of TLS can read.
pub(crate) const HTTPS: Service = Service { number: HTTP.number, refusal: REFUSAL };
pub(crate) const FTP: Service = Service { number: 1, refusal: ftp::OVER_SHARE };
/// FTP's slots, and refusals that a client of TLS can read.
pub(crate) const FTPS: Service = Service { number: FTP.number, refusal: REFUSAL };
pub(crate) const CLASSIC: Service = Service { number: 2, refusal: classic::OVER_SHARE };
/// A proxy's clients are HTTP's. Without a slot, it gets no channel, and no message that it could not read.
const CHANNEL: Service = Service { number: 0, refusal: b"" };
/// The metrics listener has slots of its own: operators need it most when the server is overloaded.
const METRICS: Service = Service { number: 3, refusal: http::OVER_SHARE };
/// The same slots, and refusals that a client of TLS can read.
const METRICS_TLS: Service = Service { number: METRICS.number, refusal: REFUSAL };

/// The wait between two attempts to bind.
const BIND_RETRY_TIME: Duration = Duration::from_millis(10);

/// The listeners of a server.
pub(crate) struct Listening {
    pub(crate) http: Vec<Bound>,
    pub(crate) https: Vec<Bound>,
    pub(crate) ftp: Vec<Bound>,
    pub(crate) ftps: Vec<Bound>,
    pub(crate) classic: Vec<Bound>,
    /// HTTP for proxies on this machine, over shared memory.
    pub(crate) channel: Vec<Bound>,
    /// HTTP for operators only.
    pub(crate) metrics: Vec<Bound>,
    pub(crate) metrics_tls: Vec<Bound>,
}

/// The addresses of the listeners. For port 0, this is the port that the kernel chose.
#[derive(Clone)]
pub(crate) struct Addresses {
    pub(crate) http: Vec<Address>,
    pub(crate) https: Vec<Address>,
    pub(crate) ftp: Vec<Address>,
    pub(crate) ftps: Vec<Address>,
    pub(crate) classic: Vec<Address>,
    pub(crate) channel: Vec<Address>,
    pub(crate) metrics: Vec<Address>,
    pub(crate) metrics_tls: Vec<Address>,
}

impl Listening {
    /// Binds every address of the configuration.
    pub(crate) fn at(config: &Config) -> anyhow::Result<Listening> {
        let wanted = Addresses::wanted(config);
        let flag = |id| config.fixed.command.flag(id);
        let speaking_first = |addresses: &[Address], id, service| {
            let bound = listen(addresses, &flag(id), service)?;
            anyhow::Ok(bound.into_iter().map(Bound::client_speaks_first).collect())
        };
        Ok(Listening {
            http: speaking_first(&wanted.http, "http", HTTP)?,
            https: speaking_first(&wanted.https, "https", HTTPS)?,
            ftp: listen(&wanted.ftp, &flag("ftp"), FTP)?,
            ftps: speaking_first(&wanted.ftps, "ftps", FTPS)?,
            classic: listen(&wanted.classic, &flag("classic"), CLASSIC)?,
            channel: listen(&wanted.channel, &flag("channel"), CHANNEL)?,
            metrics: speaking_first(&wanted.metrics, "metrics", METRICS)?,
            metrics_tls: speaking_first(&wanted.metrics_tls, "metrics_tls", METRICS_TLS)?,
        })
    }

    pub(crate) fn addresses(&self) -> Addresses {
        let addresses = |of: &[Bound]| of.iter().map(|bound| bound.address().clone()).collect();
        Addresses {
            http: addresses(&self.http),
            https: addresses(&self.https),
            ftp: addresses(&self.ftp),
            ftps: addresses(&self.ftps),
            classic: addresses(&self.classic),
            channel: addresses(&self.channel),
            metrics: addresses(&self.metrics),
            metrics_tls: addresses(&self.metrics_tls),
        }
    }
}

/// Checks that the addresses of a configuration can be bound. An address in use is no error if
/// `may_be_in_use`.
pub(crate) fn check(config: &Config, may_be_in_use: bool) -> anyhow::Result<()> {
    let Addresses { http, https, ftp, ftps, classic, channel, metrics, metrics_tls } =
        Addresses::wanted(config);
    for (addresses, id) in [
        (http, "http"),
        (https, "https"),
        (ftp, "ftp"),
        (ftps, "ftps"),
        (classic, "classic"),
        (channel, "channel"),
        (metrics, "metrics"),
        (metrics_tls, "metrics_tls"),
    ] {
        for at in &addresses {
            match check_bind(at) {
                Err(error) if may_be_in_use && error.kind() == io::ErrorKind::AddrInUse => {}
                checked => checked.with_context(|| cannot_listen(at, &config.fixed.command.flag(id)))?,
            }
        }
    }
    Ok(())
}

fn cannot_listen(at: &Address, flag: &str) -> String {
    format!("cannot listen at {at}; choose another with {flag}")
}

fn listen(addresses: &[Address], flag: &str, service: Service) -> anyhow::Result<Vec<Bound>> {
    let listening = |at: &Address| {
        let bound = bind_when_free(at).with_context(|| cannot_listen(at, flag));
        bound.map(|bound| bound.of_service(service))
    };
    addresses.iter().map(listening).collect()
}

/// Binds an address, and waits a moment for its last server to release it.
fn bind_when_free(at: &Address) -> io::Result<Bound> {
    let start = Instant::now();
    loop {
        match bind(at) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && start.elapsed() < BIND_TIME_MAX => {
                thread::sleep(BIND_RETRY_TIME);
            }
            bound => return bound,
        }
    }
}

impl Addresses {
    /// Returns the addresses that the configuration names.
    pub(crate) fn wanted(config: &Config) -> Addresses {
        let fixed = &config.fixed;
        let [ftp, ftps] = [&fixed.ftp, &fixed.ftps].map(|of| of.iter().copied().map(Address::Ip).collect());
        let (http, https) = (fixed.http.clone(), fixed.https.clone());
        let (classic, metrics, metrics_tls) =
            (fixed.classic.clone(), fixed.metrics.clone(), fixed.metrics_tls.clone());
        let channel = fixed.channel.iter().cloned().map(Address::Unix).collect();
        Addresses { http, https, ftp, ftps, classic, channel, metrics, metrics_tls }
    }

    /// Returns the addresses of HTTP, encrypted or not.
    pub(crate) fn of_http(&self) -> Vec<Address> {
        [&self.http[..], &self.https].concat()
    }

    /// Returns each address as a URL for clients, or as text where no URL exists.
    pub(crate) fn urls(&self) -> Vec<String> {
        let ftp = self.ftp.iter().map(|at| format!("ftp://{at}"));
        let ftps = self.ftps.iter().map(|at| format!("ftps://{at}"));
        let classic = self.classic.iter().map(|at| match at {
            Address::Ip(at) => format!("classic://{at}"),
            Address::Unix(_) => format!("classic at {at}"),
        });
        let of_metrics = |scheme: &'static str| {
            move |at: &Address| match at {
                Address::Ip(at) => format!("{scheme}://{at}/metrics"),
                Address::Unix(_) => format!("metrics at {at}"),
            }
        };
        let metrics = self.metrics.iter().map(of_metrics("http"));
        let metrics_tls = self.metrics_tls.iter().map(of_metrics("https"));
        let channel = self.channel.iter().map(|at| format!("channel at {at}"));
        let https = self.https.iter().map(|at| match at {
            Address::Ip(at) => format!("https://{at}"),
            Address::Unix(_) => format!("https at {at}"),
        });
        self.http
            .iter()
            .map(url)
            .chain(https)
            .chain(ftp)
            .chain(ftps)
            .chain(classic)
            .chain(channel)
            .chain(metrics)
            .chain(metrics_tls)
            .collect()
    }
}

fn url(address: &Address) -> String {
    match address {
        Address::Ip(at) => format!("http://{at}"),
        Address::Unix(_) => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::config::ServerCommand;

    #[test]
    fn an_address_that_its_last_server_releases_soon_is_bound() {
        let last = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = Address::Ip(last.local_addr().unwrap());
        assert!(bind(&at).is_err());
        let releasing = thread::spawn(move || {
            thread::sleep(5 * BIND_RETRY_TIME);
            drop(last);
        });
        bind_when_free(&at).unwrap();
        releasing.join().unwrap();
    }

    #[test]
    fn an_address_that_stays_in_use_is_an_error_that_names_the_flag() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = Address::Ip(taken.local_addr().unwrap());
        let address = at.to_string();
        for (command, flag) in [(ServerCommand::Serve, "--http"), (ServerCommand::Proxy, "--listen")] {
            let mut config = Config::of(&["--http", &address]);
            config.fixed.command = command;
            let error = check(&config, false).unwrap_err();
            assert!(error.to_string().ends_with(&format!("choose another with {flag}")), "{error}");
        }
        let mut of_proxy = Config::of(&["--http", &address]);
        of_proxy.fixed.command = ServerCommand::Proxy;
        let Err(error) = Listening::at(&of_proxy) else { panic!("the address was bound twice") };
        assert!(error.to_string().ends_with("choose another with --listen"), "{error}");
    }
}
