//! The hot cache of a server: created by the configuration, prefetched on request, and evicted by a thread.
//!
//! Which files it keeps, and for how long, is up to `plimsoll_proto`. Invariant: prefetching ends before
//! the server accepts its first connection, and reports the files that did not fit.

use std::io::IsTerminal as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Instant;

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use plimsoll_content::limits::{HOT_CHECK_TIME, HOT_IDLE_TIME};
use plimsoll_content::{Count, HotCache, HotSettings, Prefetched, Site, candidates};
use plimsoll_engine::{SystemFs, since_start};
use plimsoll_io::File;

use crate::config::Config;
use crate::open_files;

const BAR: &str = "{bar:20} {bytes:>10} of {total_bytes:>10}  {binary_bytes_per_sec:>12}  {eta:>4}  prefetch";

/// Creates the hot cache for `config`, where the process may open `limit` files.
pub(crate) fn start_hot_cache(config: &Config, sites: &[Site], limit: u64) -> std::io::Result<Arc<HotCache>> {
    let fixed = &config.fixed;
    let files_max = open_files::hot_files_max(config, limit);
    let bytes_max = if fixed.keeps_hot_files() { fixed.hot_bytes.0 } else { 0 };
    let hot = HotCache::new(HotSettings { bytes_max, files_max, time: fixed.hot_time.0 });
    if fixed.prefetch {
        prefetch(&hot, sites);
    }
    // An empty cache closes nothing. A fork master must not start a thread.
    if let Some(closing) = hot.take_closing().filter(|_| bytes_max > 0) {
        let swept = Arc::downgrade(&hot);
        let named = std::thread::Builder::new().name("hot-set".to_owned());
        named.spawn(move || sweep(&swept, &closing))?;
    }
    Ok(hot)
}

fn prefetch(hot: &HotCache, sites: &[Site]) {
    let files = candidates(&SystemFs, sites);
    let bar = bar(files.iter().map(|file| file.bytes).sum());
    let mut done = Prefetched::default();
    for file in &files {
        done.read(hot, &SystemFs, file, since_start());
        bar.inc(file.bytes);
    }
    bar.finish_and_clear();
    let Prefetched { kept, cached, left } = done;
    tracing::info!(
        "prefetch: {} in the hot set; {} larger, in the page cache; {} did not fit",
        count_text(kept),
        count_text(cached),
        count_text(left)
    );
}

fn count_text(count: Count) -> String {
    let plural = if count.files == 1 { "" } else { "s" };
    format!("{} file{plural} ({})", HumanCount(count.files), HumanBytes(count.bytes))
}

/// Returns a progress bar, which is hidden unless standard error is a terminal.
fn bar(bytes: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(BAR);
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Evicts changed and idle entries, even while no connection is open, and closes evicted files. Ends when
/// the cache is dropped.
fn sweep(hot: &Weak<HotCache>, closing: &Receiver<File>) {
    let mut next = Instant::now() + HOT_CHECK_TIME;
    let mut next_idle = Instant::now() + HOT_IDLE_TIME;
    loop {
        match closing.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(file) => drop(file),
            Err(RecvTimeoutError::Timeout) => {
                let Some(hot) = hot.upgrade() else { return };
                hot.evict_changed(&SystemFs);
                if Instant::now() >= next_idle {
                    hot.evict_idle();
                    next_idle = Instant::now() + HOT_IDLE_TIME;
                }
                next = Instant::now() + HOT_CHECK_TIME;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
