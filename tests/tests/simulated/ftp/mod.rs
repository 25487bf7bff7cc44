//! FTP in situations that only the simulator can create: cut at every byte, dropped at every step, and with
//! strangers.

mod delivered;
mod dropped;
mod library;
mod load;
mod splits;
mod strangers;

use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Ftp, Scenario};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ftp: Some(Ftp::default()), ..Scenario::default() }
}
