//! The limit of open files, and how many connections it allows.
//!
//! It is not the doctor. What must hold: a connection that is accepted can also open the file it asks for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use plimsoll_engine::limits::DESCRIPTORS_RESERVED;

/// A connection and the file that it sends.
const DESCRIPTORS_PER_CONNECTION: u64 = 2;

/// Raises the soft limit to the hard one, and returns what it is then.
pub(crate) fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let now = if setrlimit(Resource::Nofile, raised).is_ok() { raised.current } else { limit.current };
    now.unwrap_or(u64::MAX)
}

/// How many connections `open_files` allow.
pub(crate) fn connections_max(open_files: u64) -> usize {
    let left = open_files.saturating_sub(DESCRIPTORS_RESERVED as u64);
    usize::try_from(left / DESCRIPTORS_PER_CONNECTION).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_limit_still_allows_a_connection_and_a_large_one_half_of_it() {
        assert_eq!(connections_max(10), 1);
        assert_eq!(connections_max(20_000), 9_968);
    }
}
