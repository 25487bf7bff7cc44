//! The handlers of listeners: each protocol, with what stands before it.
//!
//! It opens no listener. Invariant: a handler is built on its own thread.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_channel::Channels;
use plimsoll_engine::{Bound, Service};
use plimsoll_io::{Handler, Setup};
use plimsoll_proto::classic::Classic;
use plimsoll_proto::ftp::Ftp;
use plimsoll_proto::http::{AccessLog, Http, Routes, Snapshot};
use plimsoll_proto::{Current, Proxied as ProxiedHandler};
use plimsoll_proxy::{Logs as ProxyLogs, Proxy, Settings as ProxySettings};
use plimsoll_tls::Secured;

use super::Server;
use crate::config::Proxied;
use crate::listening::{CLASSIC, FTP, FTPS, HTTP, HTTPS, Listening};

impl Server {
    /// Returns each listener with the handler of its protocol.
    pub(super) fn behind(&self, listening: Listening) -> Vec<(Bound, Setup)> {
        let http = match &self.shared.proxy {
            Some(settings) => self.proxy(settings),
            None => self.http(&self.current.http),
        };
        let https = self.encrypted(&http).map(|https| self.behind_proxies(Proxied::Http, HTTPS, https));
        let metrics = self.http(&self.current.metrics);
        let metrics_tls = self.encrypted(&metrics);
        let https_listeners = listening.https.into_iter().zip(https.iter().cycle().cloned());
        let http = self.behind_proxies(Proxied::Http, HTTP, http);
        let ftp = self.behind_proxies(Proxied::Ftp, FTP, self.ftp(|ftp| ftp));
        let ftps = self.behind_proxies(Proxied::Ftp, FTPS, self.ftp(Ftp::implicit));
        let channels = self.over_channels(self.http(&self.current.channels));
        let channels = listening.channel.into_iter().map(|bound| (bound, Arc::clone(&channels)));
        let http_listeners = listening.http.into_iter().map(|bound| (bound, Arc::clone(&http)));
        let ftp_listeners = listening.ftp.into_iter().map(|bound| (bound, Arc::clone(&ftp)));
        let ftps_listeners = listening.ftps.into_iter().map(|bound| (bound, Arc::clone(&ftps)));
        let classic = self.classic().map(|classic| self.behind_proxies(Proxied::Classic, CLASSIC, classic));
        let classic = listening.classic.into_iter().zip(classic.iter().cycle().cloned());
        let metrics_listeners = listening.metrics.into_iter().map(|bound| (bound, Arc::clone(&metrics)));
        let metrics_listeners = metrics_listeners
            .chain(listening.metrics_tls.into_iter().zip(metrics_tls.iter().cycle().cloned()));
        let listeners =
            http_listeners.chain(https_listeners).chain(ftp_listeners).chain(ftps_listeners).chain(classic);
        listeners.chain(channels).chain(metrics_listeners).collect()
    }

    /// Serves `protocol` over TLS; `None` without a listener for it.
    fn encrypted(&self, setup: &Setup) -> Option<Setup> {
        let encryption = &self.shared.encryption;
        let (setup, current) = (Arc::clone(setup), Arc::clone(encryption.https()?));
        let handshakes = Arc::clone(encryption.handshakes());
        Some(Arc::new(move |io| {
            let inner = setup(io.clone());
            let handler = Secured::new(io, inner, Arc::clone(&current)).counted(Arc::clone(&handshakes));
            Rc::new(handler) as Rc<dyn Handler>
        }))
    }

    /// Serves `protocol` over channels.
    fn over_channels(&self, setup: Setup) -> Setup {
        let settings = self.shared.channels.clone();
        Arc::new(move |io| {
            let inner = setup(io.clone());
            Rc::new(Channels::new(io, inner, settings.clone())) as Rc<dyn Handler>
        })
    }

    /// Expects a PROXY protocol header before `protocol`, if the configuration says so.
    fn behind_proxies(&self, protocol: Proxied, service: Service, setup: Setup) -> Setup {
        let is_proxied = self.proxied.iter().any(|protocols| protocols.includes(protocol));
        if !is_proxied {
            return setup;
        }
        self.shared.connections.expect_headers(service.number);
        let proxies = Arc::clone(&self.current.proxies);
        Arc::new(move |io| {
            let inner = setup(io.clone());
            let handler = ProxiedHandler::new(io, inner, Arc::clone(&proxies), service.refusal);
            Rc::new(handler) as Rc<dyn Handler>
        })
    }

    /// Returns the factory of the HTTP handler of each thread.
    fn http(&self, current: &Arc<Current<Snapshot<Arc<Routes>>>>) -> Setup {
        let counters = Arc::clone(&self.shared.counters);
        let (sink, current) = (self.requests.clone(), Arc::clone(current));
        let hot = Arc::clone(&self.shared.hot);
        Arc::new(move |io| {
            let log = AccessLog::new(sink.clone());
            let (current, counters, hot) = (Arc::clone(&current), Arc::clone(&counters), Arc::clone(&hot));
            Rc::new(Http::new(io, current, log, counters, hot)) as Rc<dyn Handler>
        })
    }

    /// Returns the factory of the proxy's handler of each thread.
    fn proxy(&self, current: &Arc<Current<ProxySettings>>) -> Setup {
        let counters = Arc::clone(&self.shared.counters);
        let (sink, current) = (self.requests.clone(), Arc::clone(current));
        Arc::new(move |io| {
            let logs = ProxyLogs { access: AccessLog::new(sink.clone()), counters: Arc::clone(&counters) };
            Rc::new(Proxy::new(io, Arc::clone(&current), logs)) as Rc<dyn Handler>
        })
    }

    /// Returns the factory of the FTP handler of each thread, changed by `adapt`.
    fn ftp(&self, adapt: fn(Ftp) -> Ftp) -> Setup {
        let (current, served) = (Arc::clone(&self.current.ftp), Arc::clone(&self.shared.ftp));
        Arc::new(move |io| {
            Rc::new(adapt(Ftp::new(io, Arc::clone(&current), Arc::clone(&served)))) as Rc<dyn Handler>
        })
    }

    /// Returns the factory of the classic handler of each thread; `None` without accounts.
    fn classic(&self) -> Option<Setup> {
        let (current, operations) = (Arc::clone(&self.current.classic), self.shared.ftp.operations.clone()?);
        Some(Arc::new(move |io| {
            Rc::new(Classic::new(io, Arc::clone(&current), operations.clone())) as Rc<dyn Handler>
        }))
    }
}
