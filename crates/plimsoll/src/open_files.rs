//! The limit of open files, and how it is shared out.
//!
//! It is not the doctor. What must hold: the server uses what the system allows it, and no more; homes and
//! files that are kept open leave the connections theirs.

use plimsoll_engine::Kind;
use plimsoll_store::limits::HOMES_OPEN_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// Descriptors that a home takes which is kept open: of its files, and of its pending uploads.
const EACH_HOME: u64 = 2;
/// Descriptors that a connection takes beside its own: for the file that it asks for; and, where a session
/// of FTP may be one, for data (a listener, and then a stream).
const EACH_FILE: u64 = 1;
const EACH_DATA: u64 = 1;
/// Connections that a connection's process has to the program, to ask for accounts and files: for questions
/// with a password and without, and to the files for a request and, over FTP, for a transfer.
const EACH_ASKS: usize = 4;
/// The part of all descriptors that homes may take.
const HOMES_PART: u64 = 4;
/// The part that files may take which are kept open because they are hot.
const HOT_PART: u64 = 8;

/// What holds for this process now.
pub(crate) fn soft() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the soft limit to the hard one, and returns what it is then.
pub(crate) fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let now = if setrlimit(Resource::Nofile, raised).is_ok() { raised.current } else { limit.current };
    now.unwrap_or(u64::MAX)
}

/// How many homes are kept open where `limit` files may be open.
pub(crate) fn homes_max(limit: u64) -> usize {
    usize::try_from(limit / HOMES_PART / EACH_HOME).unwrap_or(usize::MAX).clamp(1, HOMES_OPEN_MAX)
}

/// How many hot files may be kept open where `limit` files may be.
pub(crate) fn hot_files_max(config: &Config, limit: u64) -> u64 {
    if config.fixed.keeps_hot_files() { config.fixed.hot_files.min(limit / HOT_PART) } else { 0 }
}

/// How many connections there may be where `limit` files may be open.
pub(crate) fn connections_max(config: &Config, limit: u64) -> usize {
    let homes = if config.fixed.accounts { homes_max(limit) as u64 * EACH_HOME } else { 0 };
    let data = if config.fixed.ftp.is_empty() { 0 } else { EACH_DATA };
    let left = limit - homes - hot_files_max(config, limit);
    let most = config.fixed.engine.connections_max(left, EACH_FILE + data);
    if config.fixed.engine == Kind::Process && config.fixed.accounts {
        // Each process has its own, but the program, which they ask, has one limit for all.
        return most.min(Kind::Epoll.connections_max(left, EACH_FILE) / EACH_ASKS).max(1);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_take_a_quarter_and_never_more_than_they_need() {
        assert_eq!([128, 1_024, 1 << 20, u64::MAX].map(homes_max), [16, 128, 1_024, 1_024]);
    }

    #[test]
    fn connections_have_what_homes_and_the_server_leave() {
        let with_homes = Config::of(&["--engine", "epoll"]);
        assert_eq!(connections_max(&with_homes, 1_024), (1_024 - 256 - 128 - 64) / 2);
        assert_eq!(connections_max(&with_homes, 1 << 20), ((1 << 20) - 2_048 - 1_024 - 64) / 2);
        let cold = Config::of(&["--engine", "epoll", "--hot-bytes", "0"]);
        assert_eq!(connections_max(&cold, 1_024), (1_024 - 256 - 64) / 2);
    }

    #[test]
    fn processes_have_their_own_and_ask_a_program_that_has_one_limit() {
        let process =
            |more: &[&str]| connections_max(&Config::of(&[&["--engine", "process"], more].concat()), 1_024);
        assert_eq!(process(&[]), (1_024 - 256 - 64) / 2 / 4);
        assert!(process(&["--accounts", "false"]) > process(&[]));
    }

    #[test]
    fn with_ftp_a_connection_may_have_one_for_data_too() {
        for (engine, each) in [("epoll", 2), ("uring", 2), ("thread", 3)] {
            let max =
                |more: &[&str]| connections_max(&Config::of(&[&["--engine", engine], more].concat()), 4_096);
            assert_eq!(max(&[]), (4_096 - 1_024 - 512 - 64) / each);
            assert_eq!(max(&["--ftp", ":2121"]), (4_096 - 1_024 - 512 - 64) / (each + 1));
        }
    }
}
