//! What makes a server stop: signals, and `q` and Enter on a terminal.
//!
//! It does not stop anything itself. What must hold: the first order lets connections finish, the second
//! ends at once, whatever the server is doing.

use std::io::{BufRead as _, IsTerminal as _};

use plimsoll_io::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Watches for orders, on threads of its own.
pub(crate) fn watch(stop: &Stop) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let ordered = stop.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            order(&ordered, 128 + signal);
        }
    })?;
    if std::io::stdin().is_terminal() {
        let ordered = stop.clone();
        std::thread::Builder::new().name("terminal".to_owned()).spawn(move || read_terminal(&ordered))?;
    }
    Ok(())
}

fn order(stop: &Stop, exit_code: i32) {
    if stop.is_ordered() {
        tracing::warn!("ended at once; connections that were open are cut off");
        std::process::exit(exit_code);
    }
    tracing::info!("stopping: no new connections; a second signal ends at once");
    stop.order();
}

fn read_terminal(stop: &Stop) {
    for line in std::io::stdin().lock().lines() {
        match line {
            Ok(line) if line.trim() == "q" => order(stop, 1),
            Ok(_) => {}
            Err(_) => return,
        }
    }
}
