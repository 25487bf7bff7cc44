//! The limit of open files.
//!
//! It is not the doctor. What must hold: the server uses what the system allows it, and no more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, and returns what it is then.
pub(crate) fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let now = if setrlimit(Resource::Nofile, raised).is_ok() { raised.current } else { limit.current };
    now.unwrap_or(u64::MAX)
}
