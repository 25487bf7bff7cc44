//! What makes a server stop: signals, and `q` and Enter on a terminal.
//!
//! It does not stop anything itself. What must hold: the first order lets connections finish, the second
//! ends at once, whatever the server is doing and whoever reads its logs; a successor's Unix socket is
//! never taken for ours.

use std::io::{BufRead as _, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_io::{Address, Stop};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use signal_hook::iterator::Signals;

use crate::service_manager;

/// Whom to tell of an order, and what to take away before.
#[derive(Clone)]
struct Ordered {
    stop: Stop,
    addresses: Vec<Address>,
    /// Whether there was an order: from then on a signal ends the process in its handler.
    before: Arc<AtomicBool>,
}

/// Watches for orders, on threads of its own, while the server listens at `addresses`.
pub(crate) fn watch(stop: &Stop, addresses: &[Address]) -> std::io::Result<()> {
    let before = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        register_conditional_shutdown(signal, 128 + signal, Arc::clone(&before))?;
    }
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let ordered = Ordered { stop: stop.clone(), addresses: addresses.to_vec(), before };
    let typed = ordered.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            ordered.order();
        }
    })?;
    if std::io::stdin().is_terminal() {
        std::thread::Builder::new().name("terminal".to_owned()).spawn(move || read_terminal(&typed))?;
    }
    Ok(())
}

impl Ordered {
    /// The first order; one that comes at the same time is the same.
    fn order(&self) {
        if self.before.swap(true, Ordering::SeqCst) {
            return;
        }
        // Now, while we still listen: later the path may be that of a successor, which takes it over from
        // whoever does not listen any more.
        self.addresses.iter().for_each(take_away);
        // Told before it is ordered: an idle server ends as soon as that, and this thread with it.
        service_manager::stopping();
        tracing::info!("stopping: no new connections; a second signal ends at once");
        self.stop.order();
    }
}

/// Takes away what listening left in the file system.
fn take_away(address: &Address) {
    if let Address::Unix(path) = address {
        // Somebody else may have done so: then there is nothing to do.
        let _ = std::fs::remove_file(path);
    }
}

fn read_terminal(ordered: &Ordered) {
    for line in std::io::stdin().lock().lines() {
        match line {
            Ok(line) if line.trim() != "q" => {}
            Ok(_) if ordered.before.load(Ordering::SeqCst) => std::process::exit(1),
            Ok(_) => ordered.order(),
            Err(_) => return,
        }
    }
}
