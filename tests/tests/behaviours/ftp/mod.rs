//! FTP: sessions, data connections and transfers, by a client that writes every line by hand.
//!
//! Accounts and their files are the same as over HTTP, which is served beside. What must hold: each behaviour
//! is one that a client can see; where it is about what others see, another session or HTTP looks.

mod aborting;
mod appending;
mod broken_off;
mod data_connections;
mod downloads;
mod facts;
mod folders;
mod forgetting;
mod guests;
mod holding;
mod library;
mod limits;
mod lines;
mod listings;
mod log_in;
mod mixing;
mod permissions;
mod quota;
mod records;
mod resuming;
mod revoked_rights;
mod sharing;
mod stopping;
mod types;
mod uploads;

use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Engine, Ftp, FtpClient, Person, Scenario, Scene};

/// Accounts over HTTP and FTP.
fn with_accounts() -> Scenario {
    Scenario { accounts: Some(settings()), ftp: Some(Ftp::default()), ..Scenario::default() }
}

/// Alice, who has just been given an account: over HTTP, and over FTP with files as they are.
async fn alice(scene: &Scene) -> (Person, FtpClient) {
    someone(scene, "alice").await
}

async fn someone(scene: &Scene, name: &str) -> (Person, FtpClient) {
    (Person::new(scene, name).await, FtpClient::of(scene, name).await)
}

/// Waits until `bytes` of the transfer under way have gone through.
async fn until_moved(scene: &Scene, client: &mut FtpClient, bytes: usize) {
    while !client.say("STAT").await.expect(213).text().starts_with(&format!("{bytes} ")) {
        scene.io.sleep(std::time::Duration::from_millis(2)).await;
    }
}

/// What is more than the system's buffers between server and client take.
fn large_bytes(engine: Engine) -> usize {
    if engine == Engine::Simulator { 300_000 } else { 16_000_000 }
}
