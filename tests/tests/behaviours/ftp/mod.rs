//! FTP: control connections, data connections and transfers, by a client that writes every line by hand.
//!
//! Accounts and their files are the same as over HTTP, which the same server serves. Each behaviour must be
//! visible to a client. Effects on other clients are checked by another login or over HTTP.

mod aborted;
mod aborting;
mod appending;
mod audit;
mod confirming;
mod data_connections;
mod downloads;
mod early_ends;
mod encryption;
mod facts;
mod folders;
mod forgetting;
mod guests;
mod holding;
mod library;
mod limits;
mod lines;
mod listings;
mod locking;
mod log_in;
mod mixing;
mod permissions;
mod quota;
mod resuming;
mod revoked_rights;
mod sharing;
mod stopping;
mod types;
mod uploads;

use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Engine, Ftp, FtpClient, Person, Scenario, Scene};

/// A server with accounts over HTTP and FTP.
fn with_accounts() -> Scenario {
    Scenario { accounts: Some(settings()), ftp: Some(Ftp::default()), ..Scenario::default() }
}

/// Creates alice's account, and logs in over HTTP and over FTP with TYPE I.
async fn alice(scene: &Scene) -> (Person, FtpClient) {
    someone(scene, "alice").await
}

async fn someone(scene: &Scene, name: &str) -> (Person, FtpClient) {
    (Person::new(scene, name).await, FtpClient::of(scene, name).await)
}

/// Waits until `bytes` of the transfer in progress have been transferred.
async fn until_moved(scene: &Scene, client: &mut FtpClient, bytes: usize) {
    while !client.command("STAT").await.expect(213).text().starts_with(&format!("{bytes} ")) {
        scene.io.sleep(std::time::Duration::from_millis(2)).await;
    }
}

/// Returns a length above the kernel's buffers between server and client.
fn large_bytes(engine: Engine) -> usize {
    if engine == Engine::Simulator { 300_000 } else { 16_000_000 }
}
