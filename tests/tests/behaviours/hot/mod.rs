//! The hot cache: an answer from it equals that of a lookup, within its promised bounds.

mod changes;
mod model;
mod sites;
mod time;

use std::time::Duration;

use plimsoll_content::HotSettings;
use plimsoll_tests::HOT;

/// Cached entries are not looked up again while a behaviour lasts.
const FOR_EVER: HotSettings = HotSettings { time: Duration::from_secs(1_000_000), ..HOT };
