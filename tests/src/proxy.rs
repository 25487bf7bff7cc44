//! A proxy in front of the server of a scenario.
//!
//! It is not the server. Its connections are those that a [`Scene`](crate::Scene) counts and stops.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Address, Handler, Networks, Setup};
use plimsoll_proto::Current;
use plimsoll_proto::http::{AccessLog, Limits};
use plimsoll_proxy::limits::{ORIGIN_CONNECTIONS_MAX, SPOOL_BYTES_MAX};
use plimsoll_proxy::{
    Balance, FieldRules, ForwardHosts, Logs, Names, OriginTimes, Proxy, Settings, SpoolSpace,
};

use crate::tls::pinned_connector;

/// Returns the settings of a proxy in front of the server at an address.
pub type ProxySettings = fn(&Address) -> Settings;

/// Returns settings with defaults.
pub fn plain(origin: &Address) -> Settings {
    let url = match origin {
        Address::Ip(at) => format!("http://{at}"),
        Address::Unix(_) => origin.to_string(),
    };
    let url = url.parse().expect("a URL");
    let mut names = Names::default();
    names.add("proxy.test");
    names.add_origins([&url]);
    Settings {
        limits: Limits::default(),
        trusted: Networks::default(),
        origins: Balance::new(vec![url], None).expect("one origin"),
        forward: ForwardHosts::default(),
        names,
        pseudonym: "plimsoll-test".to_owned(),
        fields: FieldRules::default(),
        times: OriginTimes::default(),
        resolve: None,
        tls: None,
        channel: None,
        channels: plimsoll_channel::Settings::default(),
        header: None,
        origin_connections: ORIGIN_CONNECTIONS_MAX,
        spool: SpoolSpace::new(&std::env::temp_dir(), SPOOL_BYTES_MAX),
        cache: None,
    }
}

/// Returns the settings of a proxy whose origin has TLS.
pub fn to_https(settings: Settings, origin: &Address) -> Settings {
    let url = format!("https://{origin}").parse().expect("a URL");
    let origins = Balance::new(vec![url], None).expect("one origin");
    Settings { origins, tls: Some(pinned_connector()), ..settings }
}

/// Returns the setup of a proxy in front of the server at `origin`.
pub(crate) fn proxy_of(settings: ProxySettings, origin: &Address) -> Setup {
    let current = Current::new(settings(origin));
    let counters = Arc::default();
    Arc::new(move |io| {
        let logs = Logs { access: AccessLog::new(None), counters: Arc::clone(&counters) };
        Rc::new(Proxy::new(io, Arc::clone(&current), logs)) as Rc<dyn Handler>
    })
}
