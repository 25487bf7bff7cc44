//! The hot set: what comes from it is what a lookup would have found, as far as that is promised.

mod changes;
mod model;
mod sites;
mod time;

use std::time::Duration;

use plimsoll_proto::http::site::HotSettings;
use plimsoll_tests::HOT;

/// What is hot is not looked up again while a behaviour lasts.
const FOR_EVER: HotSettings = HotSettings { time: Duration::from_secs(1_000_000), ..HOT };
