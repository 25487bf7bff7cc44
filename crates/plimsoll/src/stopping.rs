//! The orders to stop a server: signals, and `q` and Enter on a terminal.
//!
//! It does not stop anything itself. Invariants: the first order drains, the second ends the process at
//! once, even if the server or the log is blocked. A successor's Unix socket is never removed.

use std::io::{BufRead as _, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_io::{Address, Stop};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use signal_hook::iterator::Signals;

use crate::listening::Addresses;
use crate::service_manager;

/// The recipient of the order, and the sockets to remove first.
#[derive(Clone)]
struct Ordered {
    stop: Stop,
    addresses: Vec<Address>,
    /// Whether an order was received. From then on, a signal ends the process in its handler.
    before: Arc<AtomicBool>,
}

/// Watches for orders, on threads of its own, while the server listens at `addresses`.
pub(crate) fn watch(stop: &Stop, addresses: &Addresses) -> std::io::Result<()> {
    let before = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        register_conditional_shutdown(signal, 128 + signal, Arc::clone(&before))?;
    }
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let ordered = Ordered { stop: stop.clone(), addresses: addresses.of_http(), before };
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
    /// Handles the first order. Later ones have no effect here.
    fn order(&self) {
        if self.before.swap(true, Ordering::SeqCst) {
            return;
        }
        // Before listening ends: a successor may bind the path as soon as no listener is bound to it.
        self.addresses.iter().for_each(take_away);
        // Before the order: an idle server ends on it at once, and this thread with it.
        service_manager::stopping();
        tracing::info!("stopping: no new connections; a second signal ends at once");
        self.stop.order();
    }
}

/// Removes the socket file of a Unix listener.
fn take_away(address: &Address) {
    if let Address::Unix(path) = address {
        // The file may be gone already.
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
