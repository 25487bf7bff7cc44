//! The real HTTP server with a few test services: an echo of bodies, a panic, slow answers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_io::{Cells, Fs, Handler, Io, LocalFuture, Networks, Setup, Stream};

use plimsoll_channel::{Channels, Meter, Settings};
use plimsoll_content::{CacheRules, HotCache, HotSettings, Site};
use plimsoll_proto::classic::{self, Classic};
use plimsoll_proto::http::{
    AccessLog, Answer, Api, Body, BodyError, Cors, Counters, Http, Limits, Load, LogSink, OperatorHosts,
    Readiness, Request, Routes, Service, Snapshot, StatusPage, TierLocation, Tiers, problem,
};
use plimsoll_proto::{Current, Proxied};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use crate::accounts::Accounts;
use crate::scene::{Scenario, Wrap};

/// Serves classic over the accounts, with the folder `root` of `fs` as the common folder.
pub(crate) fn classic(limits: classic::Limits, fs: &dyn Fs, root: &Path, accounts: &Accounts) -> Setup {
    let common = Some(Site::open(fs, "/", root).expect("the folder is there"));
    let (current, operations) =
        (Current::new(classic::Settings { limits, common }), accounts.operations.clone());
    Arc::new(move |io| Rc::new(Classic::new(io, Arc::clone(&current), operations.clone())))
}

/// Log lines, kept in memory, or in a file that several processes write.
pub enum LogLines {
    Own(Mutex<Vec<u8>>),
    Shared(File),
}

impl Default for LogLines {
    fn default() -> LogLines {
        LogLines::Own(Mutex::default())
    }
}

impl LogLines {
    /// Creates a log that is shared with processes forked from now on.
    pub(crate) fn shared() -> LogLines {
        LogLines::Shared(tempfile::tempfile().expect("a temporary file"))
    }

    pub fn text(&self) -> String {
        let lines = match self {
            LogLines::Own(lines) => lines.lock().unwrap().clone(),
            LogLines::Shared(file) => {
                let mut lines = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
                file.read_exact_at(&mut lines, 0).unwrap();
                lines
            }
        };
        String::from_utf8(lines).unwrap()
    }
}

impl LogSink for LogLines {
    fn take(&self, lines: Vec<u8>) {
        match self {
            LogLines::Own(kept) => kept.lock().unwrap().extend(lines),
            // Forked processes share the file offset, and a write advances it atomically.
            LogLines::Shared(file) => (&*file).write_all(&lines).unwrap(),
        }
    }
}

/// The field that makes a request arrive as on an address of `--metrics`.
pub const AS_OPERATOR: &str = "Test-As-Operator: yes\r\n";

/// The routes of a real server, and `/test/…`.
struct ForTests {
    routes: Arc<Routes>,
    /// The routes of an address of `--metrics`, for requests with [`AS_OPERATOR`].
    of_operators: Arc<Routes>,
    begun: Arc<Cells>,
}

impl Service for ForTests {
    fn cors(&self) -> Option<&Cors> {
        self.routes.cors()
    }

    async fn answer(&self, request: &mut Request<'_>) -> Answer {
        self.begun[0].fetch_add(1, Ordering::Relaxed);
        if request.head.named(request.block, "Test-As-Operator").is_some() {
            return self.of_operators.answer(request).await;
        }
        match (request.method(), request.target()) {
            (Method::Put | Method::Post, b"/test/echo") => echo(request).await,
            (Method::Get, b"/test/panic") => panic!("asked to"),
            (Method::Get, b"/test/slow") => {
                request.io.sleep(Duration::from_millis(300)).await;
                Answer::new(Status::OK).body(Body::Bytes(b"late\n".to_vec()))
            }
            (Method::Get, b"/test/until-stop") => {
                request.io.stopping().await;
                request.io.sleep(Duration::from_millis(50)).await;
                Answer::new(Status::OK).body(Body::Bytes(b"the last\n".to_vec()))
            }
            _ => self.routes.answer(request).await,
        }
    }
}

/// Answers with the request's body.
async fn echo(request: &mut Request<'_>) -> Answer {
    let mut whole = Vec::new();
    loop {
        let received = request.body.recv().await;
        if received.is_err() {
            assert!(request.body.recv().await.is_err(), "what is broken stays broken");
        }
        match received {
            Ok(Some(lease)) => whole.extend_from_slice(&lease),
            Ok(None) => return Answer::new(Status::OK).body(Body::Bytes(whole)),
            Err(BodyError::TooLong) => return problem(Status::CONTENT_TOO_LARGE, "send less"),
            Err(BodyError::Late) => return problem(Status::REQUEST_TIMEOUT, "send faster"),
            Err(BodyError::Refused(refusal)) => return problem(refusal.status(), refusal.detail()),
            Err(BodyError::Broken(_)) => return problem(Status::BAD_REQUEST, "send all of it"),
        }
    }
}

/// The server's internal state that a test observes.
#[derive(Clone)]
pub(crate) struct ServerState {
    pub(crate) log: Arc<LogLines>,
    /// The number of requests for which an answer was begun: one cell.
    pub(crate) begun: Arc<Cells>,
    /// The hot cache.
    pub(crate) hot: Arc<HotCache>,
    /// Counters of HTTP requests.
    pub(crate) counters: Arc<Counters>,
    /// Counters of channels.
    pub(crate) channels: Arc<Meter>,
}

impl ServerState {
    pub(crate) fn new(hot: HotSettings) -> ServerState {
        ServerState {
            log: Arc::default(),
            begun: Arc::new(Cells::own(1)),
            hot: HotCache::new(hot),
            counters: Arc::default(),
            channels: Meter::own(),
        }
    }
}

/// Serves channels by `setup`, if the scenario has them.
pub(crate) fn over_channels(scenario: &Scenario, setup: Setup, meter: &Arc<Meter>) -> Setup {
    if scenario.channel.is_none() {
        return setup;
    }
    // Small rings, which are often full.
    let settings = Settings { ring_bytes: 8 * 1024, slots: scenario.channel_slots, meter: Arc::clone(meter) };
    Arc::new(move |io| Rc::new(Channels::new(io.clone(), setup(io), settings.clone())))
}

/// Returns a status page with fixed figures.
pub(crate) fn status_page() -> StatusPage {
    let load = || Load {
        connections_open: 1,
        connections_max: 2,
        connections_accepted: 3,
        connections_refused: 0,
        connections_evicted: 0,
        connections_panicked: 0,
        draining: false,
        uptime_seconds: 4,
    };
    StatusPage {
        version: "0",
        engine: "test".to_owned(),
        threads: 1,
        tiers: Tiers { front: Some(TierLocation::Local), ..Tiers::default() },
        load: Box::new(load),
        counters: Arc::default(),
        hot: HotCache::off(),
        lab: Vec::new(),
        operations: Box::new(String::new),
        channel: Box::new(BTreeMap::new),
        certificates: Box::new(Vec::new),
        proxy: None,
        readiness: Arc::new(Readiness::new(Vec::new())),
    }
}

/// Serves `root` of `fs` over HTTP, under every engine.
pub(crate) fn http(
    fs: &dyn Fs,
    root: &Path,
    (limits, proxies, cors): (Limits, Networks, Cors),
    seen: &ServerState,
    accounts: Option<&Accounts>,
) -> Setup {
    let hot = Arc::clone(&seen.hot);
    let counters = Arc::clone(&seen.counters);
    let meter = accounts.map(|accounts| Arc::clone(accounts.operations.audit_log().meter()));
    let status = || {
        let meter = meter.clone();
        StatusPage {
            hot: Arc::clone(&hot),
            counters: Arc::clone(&counters),
            operations: Box::new(move || meter.as_ref().map_or_else(String::new, |meter| meter.text())),
            ..status_page()
        }
    };
    let site = Site::open(fs, "/", root).expect("the folder is there");
    let rules = CacheRules::new([("/aside", "max-age=60"), ("/aside/404.html", "no-store")]);
    let other_site = Site::open(fs, "/aside", &root.join("aside")).ok().map(|site| site.cached_by(rules));
    let sites = std::iter::once(site).chain(other_site).collect();
    let routes = Routes::new_with_cors(
        sites,
        status(),
        accounts.map(|accounts| -> Arc<dyn Api> { accounts.api() }),
        cors,
    );
    let of_operators = Routes::for_operators(status(), OperatorHosts::new(["test".to_owned()]), None);
    let service = ForTests { routes, of_operators, begun: Arc::clone(&seen.begun) };
    let current = Current::new(Snapshot { limits, proxies, service });
    let seen = seen.clone();
    Arc::new(move |io| {
        let log = AccessLog::new(Some(Arc::clone(&seen.log) as Arc<dyn LogSink>));
        Rc::new(Http::new(io, Arc::clone(&current), log, Arc::clone(&counters), Arc::clone(&hot)))
    })
}

/// Requires a header of the PROXY protocol on connections, if the scenario asks for it.
pub(crate) fn behind_proxies(scenario: &Scenario, over_share: &'static [u8], setup: Setup) -> Setup {
    if !scenario.proxy_protocol {
        return setup;
    }
    let trusted = Current::new(scenario.proxies.clone());
    Arc::new(move |io| Rc::new(Proxied::new(io.clone(), setup(io), Arc::clone(&trusted), over_share)))
}

/// Serves each stream by a plain function: a protocol of a few lines.
pub struct Each<F>(pub Io, pub F);

impl<F, T> Handler for Each<F>
where
    F: Fn(Io, Stream) -> T,
    T: Future<Output = ()> + 'static,
{
    fn serve(&self, stream: Stream) -> LocalFuture {
        Box::pin((self.1)(self.0.clone(), stream))
    }
}

/// Serves each stream after it is wrapped by a handshake.
pub(crate) fn over(setup: Setup, wrap: Wrap) -> Setup {
    Arc::new(move |io| Rc::new(Over { inner: setup(io.clone()), io, wrap }))
}

struct Over {
    io: Io,
    inner: Rc<dyn Handler>,
    wrap: Wrap,
}

impl Handler for Over {
    fn serve(&self, stream: Stream) -> LocalFuture {
        let (io, inner, wrap) = (self.io.clone(), Rc::clone(&self.inner), self.wrap);
        Box::pin(async move {
            if let Ok(wrapped) = wrap(io, stream).await {
                inner.serve(wrapped).await;
            }
        })
    }

    fn background(&self) -> LocalFuture {
        self.inner.background()
    }
}
