//! `plimsoll serve`: the arguments, and the story of a server's life.
//!
//! It is not the assembly of the parts ([`crate::assemble`]). What must hold: everything that can be wrong
//! with the arguments is found before the first connection; what is printed can be typed.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plimsoll_engine::Kind;
use plimsoll_io::Address;

use crate::access_log::Destination;
use crate::assemble::Server;
use crate::cli::greeting::{greeting, url};
use crate::line_writer::LineWriter;
use crate::stopping;

/// Serve folders over HTTP
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll serve --site /=./public
  plimsoll serve --site /=./public --site /docs=./docs --http :8080 --http '[::1]:8080'
  plimsoll serve --site /=/srv/www --engine thread --access-log /var/log/plimsoll/access.log
  plimsoll serve --site /=./public --check

Nothing listens beyond this machine unless an address says so: --http 0.0.0.0:8080
SIGTERM, SIGINT, or q and Enter on a terminal let connections finish; a second signal ends at once.")]
pub(crate) struct Serve {
    /// Serve a folder to anyone, read-only, under a prefix; several may be given
    #[arg(long = "site", value_name = "PREFIX=DIR", env = "PLIMSOLL_SITE", required = true)]
    sites: Vec<SiteFlag>,

    /// Where to listen: IP:PORT, :PORT or localhost:PORT for loopback, or unix:PATH; several may be given
    #[arg(long, value_name = "ADDR", env = "PLIMSOLL_HTTP", default_value = "127.0.0.1:8080")]
    #[arg(value_delimiter = ',')]
    http: Vec<Address>,

    /// What runs connections: auto, epoll (a loop per core) or thread (a thread per connection)
    #[arg(long, env = "PLIMSOLL_ENGINE", default_value = "auto")]
    engine: Kind,

    /// Loops of an engine that has loops [default: one per core]
    #[arg(long, value_name = "N", env = "PLIMSOLL_THREADS", value_parser = number_of_threads)]
    threads: Option<usize>,

    /// Where requests are logged, in the common log format: - for standard output, off, or a file
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_ACCESS_LOG", default_value = "-")]
    access_log: Destination,

    /// How long connections may go on after the first signal, in seconds
    #[arg(long, value_name = "SECONDS", env = "PLIMSOLL_GRACE", default_value_t = 30)]
    #[arg(value_parser = seconds, allow_hyphen_values = true)]
    grace: u64,

    /// Check the arguments, the folders and the log, say what would be done, and end
    #[arg(long)]
    check: bool,
}

/// More loops than any machine has cores for.
const THREADS_MAX: usize = 1024;
/// A day: who needs longer wants no end.
const GRACE_SECONDS_MAX: u64 = 86_400;

/// `PREFIX=DIR` as it is typed.
#[derive(Clone, Debug)]
pub(crate) struct SiteFlag {
    pub(crate) prefix: String,
    pub(crate) folder: PathBuf,
}

impl FromStr for SiteFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<SiteFlag, String> {
        let (prefix, folder) = text.split_once('=').ok_or("write PREFIX=DIR, such as /=./public")?;
        if !prefix.starts_with('/') {
            return Err(format!("the prefix {prefix:?} must begin with a slash, such as /={folder}"));
        }
        if folder.is_empty() {
            return Err(format!("there is no folder after the equals sign, such as {prefix}=./public"));
        }
        if prefix.len() > 1 && prefix.split('/').skip(1).any(|part| matches!(part, "" | "." | "..")) {
            return Err(format!("the prefix {prefix:?} must be a plain path without a slash at its end"));
        }
        if plimsoll_proto::http::is_reserved(prefix) {
            return Err(format!("the prefix {prefix:?} belongs to the server's own API; choose another"));
        }
        Ok(SiteFlag { prefix: prefix.to_owned(), folder: folder.into() })
    }
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let log = start_log().context("cannot start the log")?;
        plimsoll_engine::check_kernel()?;
        let threads = self.threads.unwrap_or_else(cores);
        let sites = crate::assemble::open_sites(&self.sites)?;
        if self.check {
            self.access_log
                .check()
                .with_context(|| format!("cannot write the access log {}", self.access_log))?;
            return self.say_what_would_be_done(threads);
        }
        let bound = crate::assemble::listen(&self.http)?;
        let server = Server::new(self.engine, threads, sites, &self.access_log)?;
        let addresses: Vec<Address> = bound.iter().map(|bound| bound.address().clone()).collect();
        stopping::watch(server.stop(), &addresses).context("cannot watch for signals")?;
        let greeting = greeting(self.engine, &self.sites, &addresses, std::io::stdin().is_terminal());
        std::io::stdout().lock().write_all(greeting.as_bytes()).context("cannot write to standard output")?;
        let served = server.serve(bound, Duration::from_secs(self.grace)).context("the server ended early");
        log.finish();
        served
    }

    fn say_what_would_be_done(&self, threads: usize) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        for site in &self.sites {
            writeln!(out, "would serve   {} under {}", site.folder.display(), site.prefix)?;
        }
        for address in &self.http {
            writeln!(out, "would listen  {}", url(address))?;
        }
        let threads = match self.engine {
            Kind::Thread => "a thread per connection".to_owned(),
            Kind::Epoll => format!("loops: {threads}"),
        };
        writeln!(out, "would run     engine {}, {threads}, access log {}", self.engine, self.access_log)?;
        Ok(())
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// Starts the operator's log on standard error, which may be as slow as whoever reads it.
fn start_log() -> std::io::Result<LineWriter> {
    // There is nowhere to tell that standard error fails.
    let writer = LineWriter::start("log", Box::new(std::io::stderr()), |_| {})?;
    let log = tracing_subscriber::fmt().with_writer(writer.lines()).with_target(false);
    // Colours are for eyes: a file or a journal takes them for text.
    let log = log.with_ansi(std::io::stderr().is_terminal());
    log.with_max_level(tracing::Level::INFO).init();
    Ok(writer)
}

fn number_of_threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=THREADS_MAX).contains(number));
    number.ok_or_else(|| format!("write a whole number from 1 to {THREADS_MAX}"))
}

fn seconds(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number <= GRACE_SECONDS_MAX);
    number.ok_or_else(|| format!("write a whole number of seconds, 0 to {GRACE_SECONDS_MAX}"))
}
