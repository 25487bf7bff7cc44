//! Joins an engine, protocols and what they serve, here and nowhere else.
//!
//! It decides nothing that the operator has not. What must hold: whatever a thread needs is made for that
//! thread; what threads share is counters, configuration and the log's queue.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use plimsoll_engine::{Bound, Connections, Kind, Plan, SystemFs, bind, serve};
use plimsoll_io::{Address, Handler, Setup, Stop};
use plimsoll_proto::http::site::Site;
use plimsoll_proto::http::{AccessLog, Counters, Http, Limits, Load, LogSink, Routes, StatusPage};

use crate::access_log::{Destination, Sink};
use crate::cli::{SiteFlag, WrongUsage};
use crate::line_writer::LineWriter;
use crate::open_files;

/// A server, ready to serve.
pub(crate) struct Server {
    engine: Kind,
    threads: usize,
    routes: Arc<Routes>,
    counters: Arc<Counters>,
    connections: Arc<Connections>,
    log: Option<LineWriter>,
    stop: Stop,
}

/// Opens the folders that are to be served.
pub(crate) fn open_sites(flags: &[SiteFlag]) -> anyhow::Result<Vec<Site>> {
    let mut prefixes = HashSet::new();
    if let Some(twice) = flags.iter().find(|flag| !prefixes.insert(&flag.prefix)) {
        return Err(WrongUsage(format!(
            "--site {}=... is given twice; give each prefix one folder",
            twice.prefix
        ))
        .into());
    }
    flags.iter().map(open_site).collect()
}

fn open_site(flag: &SiteFlag) -> anyhow::Result<Site> {
    Site::open(&SystemFs, &flag.prefix, &flag.folder)
        .with_context(|| format!("cannot serve {:?}: --site needs a folder that can be read", flag.folder))
}

/// Listens at every address.
pub(crate) fn listen(addresses: &[Address]) -> anyhow::Result<Vec<Bound>> {
    let listening =
        |at: &Address| bind(at).with_context(|| format!("cannot listen at {at}; choose another with --http"));
    addresses.iter().map(listening).collect()
}

impl Server {
    pub(crate) fn new(
        engine: Kind,
        threads: usize,
        sites: Vec<Site>,
        log: &Destination,
    ) -> anyhow::Result<Server> {
        let threads = if engine == Kind::Thread { 1 } else { threads };
        let (counters, stop) = (Arc::new(Counters::default()), Stop::new());
        let connections = Connections::new(engine.connections_max(open_files::raise()));
        let status = status_page(engine, threads, &connections, &counters, &stop);
        let log = log.open().with_context(|| format!("cannot write the access log {log}"))?;
        Ok(Server { engine, threads, routes: Routes::new(sites, status), counters, connections, log, stop })
    }

    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Serves until the order to stop, and until what was begun is done.
    pub(crate) fn serve(self, bound: Vec<Bound>, grace: Duration) -> anyhow::Result<()> {
        let setup = self.setup();
        let listeners = bound.into_iter().map(|bound| (bound, Arc::clone(&setup))).collect();
        let Server { engine, threads, stop, connections, .. } = self;
        let plan = Plan { engine, threads, listeners, stop, grace, connections: Arc::clone(&connections) };
        let served = serve(plan);
        drop(setup);
        if connections.cut_off() > 0 {
            tracing::warn!(
                connections = connections.cut_off(),
                "the grace was over; who was connected was cut off"
            );
        }
        if self.log.is_some_and(|log| !log.finish()) {
            tracing::warn!("the access log's destination takes nothing; its last lines are lost");
        }
        Ok(served?)
    }

    /// What makes HTTP's handler for a thread.
    fn setup(&self) -> Setup {
        let sink =
            |log: &LineWriter| Arc::new(Sink { lines: log.lines(), counters: Arc::clone(&self.counters) });
        let sink = self.log.as_ref().map(sink);
        let (routes, counters) = (Arc::clone(&self.routes), Arc::clone(&self.counters));
        let limits = Arc::new(Limits::default());
        Arc::new(move |io| {
            let log = AccessLog::new(sink.as_ref().map(|sink| Arc::clone(sink) as Arc<dyn LogSink>));
            let http = Http::new(io, Arc::clone(&limits), Arc::clone(&routes), log, Arc::clone(&counters));
            Rc::new(http) as Rc<dyn Handler>
        })
    }
}

fn status_page(
    engine: Kind,
    threads: usize,
    connections: &Arc<Connections>,
    counters: &Arc<Counters>,
    stop: &Stop,
) -> StatusPage {
    let (connections, stop, started) = (Arc::clone(connections), stop.clone(), Instant::now());
    let load = move || Load {
        connections_open: connections.open(),
        connections_max: connections.max(),
        connections_accepted: connections.accepted(),
        connections_refused: connections.refused(),
        connections_panicked: connections.panicked(),
        draining: stop.is_ordered(),
        uptime_seconds: started.elapsed().as_secs(),
    };
    StatusPage {
        version: env!("CARGO_PKG_VERSION"),
        engine: engine.to_string(),
        threads,
        load: Box::new(load),
        counters: Arc::clone(counters),
    }
}
