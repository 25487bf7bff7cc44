//! The settings of a proxy, built from the configuration.
//!
//! It serves nothing ([`crate::assemble`] joins proxy and engine). Invariants: origins that a reload does not
//! remove keep their state. The proxy's name in Via stays the same until the process ends.

use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use plimsoll_channel::Settings as ChannelSettings;
use plimsoll_cli::WrongUsage;
use plimsoll_engine::SystemFs;
use plimsoll_proto::Current;
use plimsoll_proto::http::{Api, Check, DecodedTarget, PendingAnswer, Request, StatusPage, problem};
use plimsoll_proxy::cache::opening::CacheOpener;
use plimsoll_proxy::cache::response_cache::CacheSizes;
use plimsoll_proxy::cache::store::{CacheFolder, Checksums, Claimant};
use plimsoll_proxy::limits::{FORWARD_HOSTS_MAX, ORIGINS_MAX, SPOOL_SHARE};
use plimsoll_proxy::{Balance, ForwardHosts, Names, Purging, Settings, SpoolSpace, is_any_origin_up};
use plimsoll_tls::Connector;
use plimsoll_wire::http::status::Status;

use crate::config::{Config, ProxySettings};
use crate::locked_folder::{kind_of, take_cache_folder};
use crate::open_files;
use crate::resolve::resolve;
use crate::trusted_certificates::connector;

/// The machine's name.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// The remedies for a header of the PROXY protocol over shared memory.
const NO_HEADER_ADVICE: &str = "take --channel unix, or leave out --send-proxy-protocol";

/// Builds the settings. `before` are those of the running proxy.
pub(crate) fn settings(
    config: &Config,
    channels: &ChannelSettings,
    before: Option<&Settings>,
) -> anyhow::Result<Settings> {
    let proxy = &config.live.proxy;
    if let Some(url) = proxy.unfit_origin() {
        let problem = format!("the origin {url} cannot be reached by the channel {}", proxy.proxy_channel);
        return Err(WrongUsage(format!("{problem}; write another URL, or --channel auto")).into());
    }
    if let Some(url) = proxy.repeated_origin() {
        return Err(WrongUsage(format!("the origin {url} is given twice; give each origin once")).into());
    }
    if proxy.proxy_channel.bodies().is_some() && proxy.proxy_header.0.is_some() {
        let problem = format!("the channel {} has no header of the PROXY protocol", proxy.proxy_channel);
        return Err(WrongUsage(format!("{problem}; {NO_HEADER_ADVICE}")).into());
    }
    let urls: Vec<_> = proxy.proxy_origin.iter().map(|origin| origin.0.clone()).collect();
    let origins = Balance::new(urls.clone(), before.map(|before| &before.origins))
        .map_err(|_| WrongUsage(format!("a proxy needs 1 to {ORIGINS_MAX} origins: --origin URL")))?;
    if proxy.proxy_forward.len() > FORWARD_HOSTS_MAX {
        return Err(WrongUsage(format!("a proxy forwards to {FORWARD_HOSTS_MAX} hosts at most")).into());
    }
    let mut forward = ForwardHosts::default();
    for host in &proxy.proxy_forward {
        forward.add(&host.host, &host.url, before.map(|before| &before.forward));
    }
    let mut names = Names::default();
    names.add_listeners(&config.fixed.http);
    names.add_listeners(&config.fixed.https);
    names.add_origins(&urls);
    if let Ok(name) = std::fs::read_to_string(HOST_NAME) {
        names.add(name.trim());
    }
    let pseudonym = match before {
        Some(before) => before.pseudonym.clone(),
        None => pseudonym().context("cannot draw a name for Via")?,
    };
    Ok(Settings {
        limits: config.live.limits(),
        trusted: config.proxies(),
        origins,
        forward,
        names,
        pseudonym,
        fields: proxy.field_rules(),
        times: proxy.times(),
        resolve: Some(resolve),
        tls: origin_tls(proxy)?,
        channel: proxy.proxy_channel.bodies(),
        channels: channels.clone(),
        header: proxy.proxy_header.0,
        origin_connections: proxy.proxy_origin_connections,
        spool: before.map_or_else(|| spool(config), |before| Arc::clone(&before.spool)),
        cache: before.map_or_else(|| cache(config), |before| before.cache.clone()),
    })
}

/// Returns the means to encrypt connections to origins, if one has an `https` URL.
fn origin_tls(proxy: &ProxySettings) -> anyhow::Result<Option<Connector>> {
    let has_https = proxy.proxy_origin.iter().any(|origin| origin.0.is_https());
    if has_https {
        return connector(&proxy.proxy_origin_ca, "--origin-ca").map(Some);
    }
    match proxy.proxy_origin_ca.0 {
        Some(_) => {
            Err(WrongUsage("--origin-ca is for origins with https://; there is none".to_owned()).into())
        }
        None => Ok(None),
    }
}

/// Returns the room for responses that their clients take slowly.
fn spool(config: &Config) -> Arc<SpoolSpace> {
    // Processes share no count: one that was killed could not release its part.
    let part = if config.fixed.engine.forks() { SPOOL_SHARE } else { 1 };
    SpoolSpace::new(&config.fixed.proxy_spool, config.fixed.proxy_spool_size.0 / part)
}

/// Returns the cache, which the first request opens.
fn cache(config: &Config) -> Option<Arc<CacheOpener>> {
    let fixed = &config.fixed;
    let (disk_bytes_max, memory_bytes_max) = (fixed.proxy_cache_size.0, fixed.proxy_cache_memory.0);
    let passed_files_max = open_files::passed_files_max(config, open_files::soft());
    let sizes = CacheSizes { disk_bytes_max, memory_bytes_max, passed_files_max };
    let checksums = if fixed.proxy_cache_checksums { Checksums::On } else { Checksums::Off };
    let path = fixed.proxy_cache.0.as_ref()?;
    let claimant: Claimant = Box::new(|folder| match take_cache_folder(folder) {
        Ok(lock) => Ok(Box::new(lock)),
        Err(error) => {
            let kind = kind_of(&error).unwrap_or(io::ErrorKind::Other);
            Err(io::Error::new(kind, format!("{error:#}")))
        }
    });
    Some(CacheOpener::of(CacheFolder::with(path, checksums, Some(claimant)), sizes))
}

/// Builds the settings of a proxy that starts, and claims the folder of its cache. If that cannot be
/// written now, the proxy forwards without the cache, and tries again at a later request.
pub(crate) fn start(config: &Config, channels: &ChannelSettings) -> anyhow::Result<Settings> {
    let settings = settings(config, channels, None)?;
    let Some(folder) = settings.cache.as_deref().map(CacheOpener::folder) else { return Ok(settings) };
    match folder.claim(&SystemFs) {
        Err(error) if is_unwritable(error.kind()) => {
            let path = folder.path().display();
            tracing::error!(folder = %path, %error, "the cache cannot be written; requests go past it");
        }
        claimed => claimed?,
    }
    Ok(settings)
}

fn is_unwritable(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(kind, PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// Returns the service of `/purge`.
pub(crate) fn purging(settings: &Settings) -> Arc<dyn Api> {
    match &settings.cache {
        Some(cache) => Purging::new(Arc::clone(cache)),
        None => Arc::new(NoCache),
    }
}

/// The service of `/purge` of a proxy without a cache.
struct NoCache;

impl Api for NoCache {
    fn answer<'a>(
        &'a self,
        _: &'a mut Request<'_>,
        _: DecodedTarget<'a>,
        _: &'a StatusPage,
    ) -> PendingAnswer<'a> {
        const NOTHING: &str =
            "This proxy has no cache, so there is nothing to purge. --cache DIR gives it one.";
        Box::pin(async { problem(Status::NOT_FOUND, NOTHING) })
    }
}

/// Returns a name that no other proxy has.
fn pseudonym() -> io::Result<String> {
    let mut number = [0; 4];
    rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("plimsoll-{:08x}", u32::from_be_bytes(number)))
}

/// Checks that at least one origin accepts connections.
pub(crate) fn origins_check(current: &Arc<Current<Settings>>) -> Check {
    let detail = "None of the servers behind this proxy accepts connections.";
    let current = Arc::clone(current);
    Check::new("the origins", detail, move |io| {
        let (settings, io) = (current.get(), io.clone());
        Box::pin(async move { is_any_origin_up(&io, &settings).await })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(args: &[&str]) -> Option<String> {
        let made = settings(&Config::of(args), &ChannelSettings::default(), None);
        made.err().map(|error| error.downcast::<WrongUsage>().unwrap().to_string())
    }

    #[test]
    fn an_origin_that_is_given_twice_is_refused() {
        assert_eq!(refused(&["--proxy-origin=http://a,http://a:81"]), None);
        let twice = refused(&["--proxy-origin=http://a", "--proxy-origin=http://a:80"]).unwrap();
        assert!(twice.contains("http://a:80 is given twice"), "{twice}");
    }

    #[test]
    fn the_certificate_of_origins_is_for_https_origins_and_must_be_one() {
        let ca = format!("--proxy-origin-ca={}/../../tests/data/tls/ca.pem", env!("CARGO_MANIFEST_DIR"));
        assert_eq!(refused(&["--proxy-origin=https://a,http://b", &ca]), None);
        assert!(refused(&["--proxy-origin=http://a", &ca]).unwrap().contains("there is none"));
        let of = |path| Config::of(&["--proxy-origin=https://a", path]);
        for path in [
            "--proxy-origin-ca=/nowhere",
            concat!("--proxy-origin-ca=", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ] {
            let error = settings(&of(path), &ChannelSettings::default(), None).err().unwrap();
            assert!(error.to_string().contains("--origin-ca"), "{error}");
        }
    }

    #[test]
    fn the_proxy_protocol_is_refused_over_shared_memory_and_the_error_names_the_remedies() {
        for channel in ["shm", "shm-copy", "unix"] {
            let channel_flag = format!("--proxy-channel={channel}");
            for header in ["off", "v1", "v2"] {
                let header_flag = format!("--proxy-header={header}");
                let refused = refused(&["--proxy-origin=unix:/a", &channel_flag, &header_flag]);
                let is_wrong = channel != "unix" && header != "off";
                assert_eq!(refused.is_some(), is_wrong, "{channel} {header}: {refused:?}");
                for word in [channel, "--channel unix", "leave out --send-proxy-protocol"] {
                    assert!(refused.as_ref().is_none_or(|text| text.contains(word)), "{word}: {refused:?}");
                }
            }
        }
    }
}
