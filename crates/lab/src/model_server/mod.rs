//! An HTTP server with known service demands, to check the laboratory itself.
//!
//! Each request uses a processor, holds a lock, and sleeps, for times of a known mean. It serves no file.
//! Invariants: the processor and the lock serve one request at a time, in the order of their arrival; the
//! mean of the times is the configured one, also over few requests.

mod connection;
mod demands;
mod draws;
mod station;

use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Context as _, Result};

pub use demands::{Demands, Distribution};
use draws::Draws;
use station::{Job, Service, Station};

/// The centres that every connection shares.
struct Centres {
    processor: Option<Sender<Job>>,
    lock: Option<Sender<Job>>,
    delay: Option<Mutex<Draws>>,
}

/// Serves at `address` until the process ends.
///
/// # Errors
/// The address cannot be bound, or a thread cannot be started.
pub fn serve(address: SocketAddr, demands: &Demands) -> Result<()> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen at {address}"))?;
    let draws = |mean, seed| Draws::new(mean, demands.distribution, seed);
    let centre = |mean, service, seed| Station::start(draws(mean, seed), service);
    let centres = Arc::new(Centres {
        processor: (!demands.spin.is_zero()).then(|| centre(demands.spin, Service::Spin, 1)).transpose()?,
        lock: (!demands.lock.is_zero()).then(|| centre(demands.lock, Service::Hold, 2)).transpose()?,
        delay: (!demands.sleep.is_zero()).then(|| Mutex::new(draws(demands.sleep, 3))),
    });
    for stream in listener.incoming() {
        // A connection that ended before it was accepted is no error of the server.
        let Ok(stream) = stream else { continue };
        let centres = Arc::clone(&centres);
        let serving = move || connection::serve(&stream, &centres);
        thread::Builder::new().name("connection".to_owned()).spawn(serving)?;
    }
    Ok(())
}
