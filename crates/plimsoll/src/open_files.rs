//! The limit of open files, and its division between connections, homes and hot files.
//!
//! It is not the doctor. Invariants: the server raises its soft limit to the hard limit, and never beyond.
//! Open homes, hot files and the files of a proxy's cache leave the connections their share.

use plimsoll_channel::Bodies;
use plimsoll_engine::limits::{WRITE_THREADS, pipes_of};
use plimsoll_engine::{EngineKind, ProcessBound, processes_max};
use plimsoll_proxy::cache::limits::PASSED_FILES_MAX;
use plimsoll_store::limits::HOMES_OPEN_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// Descriptors of an open home: its files folder and its pending folder.
const EACH_HOME: u64 = 2;
/// Descriptors of a connection beside its socket: one for the requested file. With FTP, one more for the
/// data connection (first its listener, then its stream).
const EACH_FILE: u64 = 1;
const EACH_DATA: u64 = 1;
/// Descriptors of a channel beside its socket: an eventfd for each side, and the page of its own doorbell.
const EACH_CHANNEL: u64 = 3;
const EACH_PIPE: u64 = 2;
/// RPC connections of a connection process to the main process. Two go to the auth tier: for requests with
/// a password and without. Two go to the store: for requests and, over FTP, for a transfer.
const EACH_ASKS: usize = 4;
/// The divisor of the limit for files that writing threads replace.
const REPLACED_PART: u64 = 32;
/// The divisor of the limit for open homes.
const HOMES_PART: u64 = 4;
/// The divisor of the limit for files that origins pass to a proxy's cache.
const PASSED_PART: u64 = 8;
/// The divisor of the limit for hot files.
const HOT_PART: u64 = 8;

/// Returns the soft limit of this process.
pub(crate) fn soft() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the soft limit to the hard limit, and returns the soft limit then in force.
pub(crate) fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let now = if setrlimit(Resource::Nofile, raised).is_ok() { raised.current } else { limit.current };
    now.unwrap_or(u64::MAX)
}

/// Returns how many homes may stay open where `limit` files may be open.
pub(crate) fn homes_max(limit: u64) -> usize {
    usize::try_from(limit / HOMES_PART / EACH_HOME).unwrap_or(usize::MAX).clamp(1, HOMES_OPEN_MAX)
}

/// Returns how many hot files may stay open where `limit` files may be open.
pub(crate) fn hot_files_max(config: &Config, limit: u64) -> u64 {
    if config.fixed.keeps_hot_files() { config.fixed.hot_files.min(limit / HOT_PART) } else { 0 }
}

/// Returns how many files that origins pass may stay open in a proxy's cache where `limit` files may be open.
pub(crate) fn passed_files_max(config: &Config, limit: u64) -> u64 {
    let are_passed = config.live.proxy.proxy_channel.bodies() == Some(Bodies::Passed);
    let has_cache = config.fixed.is_proxy() && config.fixed.proxy_cache.0.is_some();
    if are_passed && has_cache { PASSED_FILES_MAX.min(limit / PASSED_PART) } else { 0 }
}

/// The resource that bounds the number of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The limit of open files.
    Files,
    /// The limit of processes, under the engine that forks one for each connection.
    Processes(ProcessBound),
}

/// Returns how many connections there may be where `limit` files may be open.
pub(crate) fn connections_max(config: &Config, limit: u64) -> usize {
    connections_bound(config, limit).0
}

/// Like [`connections_max`], with the resource that sets the bound.
pub(crate) fn connections_bound(config: &Config, limit: u64) -> (usize, Bound) {
    if !config.fixed.engine.forks() {
        return (of_files(config, limit), Bound::Files);
    }
    let (processes, bound) = processes_max();
    of_processes(config, limit, processes, bound)
}

fn of_processes(config: &Config, limit: u64, processes: usize, bound: ProcessBound) -> (usize, Bound) {
    // Each connection process has a limit of its own. The main process, which they all call, has one for
    // all.
    let slots = config.fixed.accounts.then(|| (of_files(&of_rpc_servers(config), limit) / EACH_ASKS).max(1));
    match slots {
        Some(slots) if slots < processes => (slots, Bound::Files),
        _ => (processes, Bound::Processes(bound)),
    }
}

fn of_files(config: &Config, limit: u64) -> usize {
    let homes = if config.fixed.accounts { homes_max(limit) as u64 * EACH_HOME } else { 0 };
    let data = if config.fixed.has_ftp() { EACH_DATA } else { 0 };
    let channel = if config.fixed.channel.is_empty() { 0 } else { EACH_CHANNEL };
    // A replaced file stays open for a moment, unless its descriptor exceeds this share.
    let replaced = (limit / REPLACED_PART).min(WRITE_THREADS as u64);
    let cached = hot_files_max(config, limit) + passed_files_max(config, limit);
    let left = limit - homes - cached - EACH_PIPE * pipes_of(limit) - replaced;
    config.fixed.engine.connections_max(left, EACH_FILE + data + channel)
}

/// Returns the configuration of the main process's RPC servers, except for their addresses.
pub(crate) fn of_rpc_servers(config: &Config) -> Config {
    let mut config = config.clone();
    config.fixed.engine = EngineKind::Epoll;
    config.fixed.http.clear();
    config.fixed.prefetch = false;
    config.of_tier();
    config.live.of_fronts();
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Channel, ServerCommand};

    /// Descriptors kept from connections at a limit of 1,024, including two pipes and 32 replaced files.
    const RESERVED: usize = 64 + 4 + 32;

    #[test]
    fn homes_take_a_quarter_and_never_more_than_they_need() {
        assert_eq!([128, 1_024, 1 << 20, u64::MAX].map(homes_max), [16, 128, 1_024, 1_024]);
    }

    #[test]
    fn connections_have_what_homes_and_the_server_leave() {
        let with_homes = Config::of(&["--engine", "epoll"]);
        assert_eq!(connections_max(&with_homes, 1_024), (1_024 - 256 - 128 - RESERVED) / 2);
        assert_eq!(connections_max(&with_homes, 1 << 20), ((1 << 20) - 2_048 - 1_024 - 64 - 64 - 32) / 2);
        let cold = Config::of(&["--engine", "epoll", "--hot-bytes", "0"]);
        assert_eq!(connections_max(&cold, 1_024), (1_024 - 256 - RESERVED) / 2);
    }

    #[test]
    fn files_that_origins_pass_to_a_proxy_take_an_eighth_and_never_more_than_they_need() {
        let mut config = Config::of(&["--engine", "epoll", "--accounts", "false", "--hot-bytes", "0"]);
        let before = connections_max(&config, 1_024);
        config.fixed.command = ServerCommand::Proxy;
        config.fixed.proxy_cache.0 = Some("/cache".into());
        assert_eq!(passed_files_max(&config, 1_024), 0, "none is passed over TCP");
        config.live.proxy.proxy_channel = Channel::Shm;
        assert_eq!([128, 1_024, 1 << 20].map(|limit| passed_files_max(&config, limit)), [16, 128, 1_024]);
        assert_eq!(connections_max(&config, 1_024), before - 128 / 2);
    }

    /// Returns the bound under the engine `process`, where the kernel would allow 4,096 processes.
    fn of_many_processes(more: &[&str], limit: u64) -> (usize, Bound) {
        let config = Config::of(&[&["--engine", "process"], more].concat());
        of_processes(&config, limit, 4_096, ProcessBound::Engine)
    }

    #[test]
    fn processes_have_their_own_and_ask_a_program_that_has_one_limit() {
        assert_eq!(of_many_processes(&[], 1_024), ((1_024 - 256 - 128 - RESERVED) / 2 / 4, Bound::Files));
        let (many, engine) = (4_096, Bound::Processes(ProcessBound::Engine));
        assert_eq!(of_many_processes(&["--accounts", "false"], 1_024), (many, engine.clone()));
        assert_eq!(of_many_processes(&[], 1 << 20), (many, engine));
    }

    #[test]
    fn the_rpc_servers_have_slots_for_all_requests_of_every_process() {
        let of_settings: [&[&str]; 4] =
            [&[], &["--ftp", ":2121"], &["--hot-bytes", "0"], &["--hot-files", "100000"]];
        for more in of_settings {
            for limit in [512, 1_024, 4_096, 32_768, 1 << 20] {
                let config = Config::of(&[&["--engine", "process"], more].concat());
                let places = connections_max(&of_rpc_servers(&config), limit);
                let (connections, _) = of_many_processes(more, limit);
                assert!(places >= EACH_ASKS * connections, "{more:?} {limit}: {places} for {connections}");
            }
        }
    }

    #[test]
    fn with_ftp_a_connection_may_have_one_for_data_too() {
        for (engine, each) in [("epoll", 2), ("uring", 2), ("thread", 3)] {
            let max =
                |more: &[&str]| connections_max(&Config::of(&[&["--engine", engine], more].concat()), 4_096);
            assert_eq!(max(&[]), (4_096 - 1_024 - 512 - 64 - 16 - 32) / each);
            assert_eq!(max(&["--ftp", ":2121"]), (4_096 - 1_024 - 512 - 64 - 16 - 32) / (each + 1));
            assert_eq!(max(&["--channel", "a"]), (4_096 - 1_024 - 512 - 64 - 16 - 32) / (each + 3));
        }
    }
}
