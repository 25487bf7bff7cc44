//! A link between generator and contender: a network namespace, a pair of virtual devices, a token bucket.
//!
//! The contender runs in the namespace, the generator outside. Invariants: the addresses are of
//! 198.18.0.0/15, which RFC 2544 reserves for benchmarks; both directions have the same rate, delay and
//! loss.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::journal::Journal;
use super::program::{find_program, run_words};
use super::undo::UndoStep;
use crate::experiment::conditions::Link;

/// The first address, and the number of networks of four addresses.
const NETWORK: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const SUBNETS: u32 = 1 << 15;
/// The device in the namespace.
const INSIDE: &str = "eth0";
const MTU_DEFAULT: u64 = 1500;
/// Bytes of the header of a frame, which the token bucket counts.
const FRAME_HEADER: u64 = 14;
/// The longest a packet waits at the token bucket, in milliseconds of the rate.
const QUEUE_MS: u64 = 50;
/// The least length of that queue in frames: slow links would have no queue.
const QUEUE_FRAMES: u64 = 20;
/// The most segments of one packet that the kernel passes to a device.
const SEGMENTS: u64 = 44;
/// Packets on their way through a link with a delay.
const DELAYED_PACKETS: u64 = 100_000;
/// Lets the servers of a contender, which connect to each other by the address of the link, use the ports of
/// closed connections again after a second, as the kernel does by itself for loopback addresses only.
const REUSED_PORTS: (&str, &str) = ("ipv4/tcp_tw_reuse", "1");
/// Settings that a new namespace would have with the kernel's defaults instead of the machine's values.
const INHERITED: [&str; 3] = ["core/somaxconn", "ipv4/tcp_max_syn_backlog", "ipv4/ip_local_port_range"];

/// The namespace and the address of a contender.
#[derive(Debug)]
pub(super) struct NetworkLink {
    pub(super) namespace: String,
    pub(super) address: Ipv4Addr,
}

/// Returns the file that holds a namespace.
pub(super) fn namespace_file(name: &str) -> PathBuf {
    Path::new("/var/run/netns").join(name)
}

/// Moves the calling thread into a namespace.
///
/// # Errors
/// The kernel's error.
pub(super) fn enter_namespace(name: &str) -> io::Result<()> {
    let file = File::open(namespace_file(name))?;
    Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Runs `work` on a thread in the namespace.
///
/// # Errors
/// The error of `work`, or the kernel's.
pub(super) fn in_namespace<T: Send>(name: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let work = || {
        enter_namespace(name).with_context(|| format!("network namespace {name}"))?;
        work()
    };
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread in namespace {name} panicked")))
}

/// Creates a namespace without any device but its loopback, and returns its name.
pub(super) fn create_namespace(journal: &mut Journal) -> Result<String> {
    let name = journal.names.name();
    journal.record(UndoStep::RemoveNamespace)?;
    run_words("ip", &format!("netns add {name}"))?;
    run_words("ip", &format!("-n {name} link set lo up"))?;
    Ok(name)
}

/// Creates the link.
///
/// # Errors
/// The program's or the kernel's error.
pub(super) fn create(link: &Link, journal: &mut Journal) -> Result<NetworkLink> {
    let namespace = create_namespace(journal)?;
    set_up(&namespace)?;
    let outside = journal.names.interface();
    journal.record(UndoStep::RemoveInterface)?;
    run_words("ip", &format!("link add {outside} type veth peer name {INSIDE} netns {namespace}"))?;
    let address = {
        // Between the choice and the assignment, no other agent may choose the same network.
        let _lock = journal.lock()?;
        let [first, second] = free_subnet()?;
        run_words("ip", &format!("address add {first}/30 dev {outside}"))?;
        run_words("ip", &format!("-n {namespace} address add {second}/30 dev {INSIDE}"))?;
        second
    };
    let shape = Shape::of(link);
    for (context, device) in [(String::new(), outside.as_str()), (format!("-n {namespace} "), INSIDE)] {
        let Shape { mtu, segments, .. } = shape;
        let settings = format!("mtu {mtu} gso_max_segs {segments}");
        run_words("ip", &format!("{context}link set {device} {settings} up"))?;
        for queue in shape.queues(link, device) {
            run_words("tc", &format!("{context}qdisc add {queue}"))?;
        }
    }
    if shape.segments == 1 && find_program("ethtool").is_some() {
        let features = "tso off gso off gro off";
        run_words("ethtool", &format!("-K {outside} {features}"))?;
        run_words("ip", &format!("netns exec {namespace} ethtool -K {INSIDE} {features}"))?;
    }
    Ok(NetworkLink { namespace, address })
}

/// Copies settings of the machine into the namespace, and sets [`REUSED_PORTS`].
fn set_up(namespace: &str) -> Result<()> {
    let path = |name| Path::new("/proc/sys/net").join(name);
    let inherited = INHERITED.map(|name| (path(name), fs::read(path(name))));
    let (name, value) = REUSED_PORTS;
    let values = [(path(name), Ok(value.into()))];
    in_namespace(namespace, || {
        for (file, value) in inherited.iter().chain(&values) {
            // An older kernel has the setting for the whole machine: it is not in the namespace.
            if let Ok(value) = value
                && file.exists()
            {
                fs::write(file, value).with_context(|| format!("{}", file.display()))?;
            }
        }
        Ok(())
    })
}

/// Returns the two addresses of a network of which this machine has none.
fn free_subnet() -> Result<[Ipv4Addr; 2]> {
    let used = run_words("ip", "-4 -o address show")?;
    let used: Vec<Ipv4Addr> = used.split_whitespace().filter_map(address).collect();
    free_in(&used).context("each network of 198.18.0.0/15 is in use")
}

fn address(word: &str) -> Option<Ipv4Addr> {
    word.split_once('/')?.0.parse().ok()
}

fn free_in(used: &[Ipv4Addr]) -> Option<[Ipv4Addr; 2]> {
    let subnets: Vec<u32> = used.iter().map(|address| address.to_bits() & !3).collect();
    let mut candidates = (0..SUBNETS).map(|number| NETWORK + 4 * number);
    let first = candidates.find(|candidate| !subnets.contains(candidate))?;
    Some([Ipv4Addr::from_bits(first + 1), Ipv4Addr::from_bits(first + 2)])
}

/// The sizes that follow from the rate of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    mtu: u64,
    /// Segments of one packet of the kernel, at most a millisecond of the rate. Larger packets would arrive
    /// in bursts, or the token bucket would split them.
    segments: u64,
    /// Bytes of the token bucket.
    burst: u64,
    /// Bytes of its queue.
    queue: u64,
}

impl Shape {
    fn of(link: &Link) -> Shape {
        let mtu = link.mtu.unwrap_or(MTU_DEFAULT);
        let frame = mtu + FRAME_HEADER;
        let per_ms = link.rate.map_or(u64::MAX, |bits| bits / 8 / 1000);
        let segments = (per_ms / frame).clamp(1, SEGMENTS);
        let burst = (2 * frame).max(segments * frame).max(per_ms.min(u64::MAX / 2) * 2);
        let queue = (per_ms.saturating_mul(QUEUE_MS)).max(QUEUE_FRAMES * frame).max(burst);
        Shape { mtu, segments, burst, queue }
    }

    /// Returns the arguments of `tc qdisc add`: the delay and the loss first, then the token bucket.
    fn queues(&self, link: &Link, device: &str) -> Vec<String> {
        let mut queues = Vec::new();
        let mut parent = "root";
        if link.delay.is_some() || link.loss.is_some() {
            let delay = link.delay.map(|delay| format!(" delay {}us", delay.as_micros()));
            let loss = link.loss.map(|percent| format!(" loss {percent}%"));
            let (delay, loss) = (delay.unwrap_or_default(), loss.unwrap_or_default());
            queues.push(format!("dev {device} root handle 1: netem limit {DELAYED_PACKETS}{delay}{loss}"));
            parent = "parent 1:1";
        }
        if let Some(rate) = link.rate {
            let Shape { burst, queue, .. } = self;
            queues.push(format!(
                "dev {device} {parent} handle 10: tbf rate {rate}bit burst {burst}b limit {queue}b"
            ));
        }
        queues
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_address_in_use_is_not_chosen() {
        let used: Vec<Ipv4Addr> =
            ["127.0.0.1/8", "198.18.0.2/30", "198.18.0.5/30"].into_iter().filter_map(address).collect();
        assert_eq!(free_in(&used), Some([Ipv4Addr::new(198, 18, 0, 9), Ipv4Addr::new(198, 18, 0, 10)]));
        let all: Vec<Ipv4Addr> = (0..SUBNETS).map(|n| Ipv4Addr::from_bits(NETWORK + 4 * n + 1)).collect();
        assert_eq!(free_in(&all), None);
    }

    #[test]
    fn a_slow_link_has_single_segments_and_a_bucket_of_two_frames() {
        let link = Link { rate: Some(10_000_000), ..Link::default() };
        let shape = Shape::of(&link);
        assert_eq!(shape, Shape { mtu: 1500, segments: 1, burst: 3028, queue: 62_500 });
        let queue = "dev a root handle 10: tbf rate 10000000bit burst 3028b limit 62500b";
        assert_eq!(shape.queues(&link, "a"), [queue]);
        let fast = Shape::of(&Link { rate: Some(10_000_000_000), ..link });
        assert_eq!((fast.segments, fast.burst), (44, 2_500_000));
    }

    #[test]
    fn delay_and_loss_come_before_the_token_bucket() {
        let delay = Some(Duration::from_millis(20));
        let link = Link { rate: Some(8_000_000), mtu: Some(9000), delay, loss: Some(0.5) };
        let queues = Shape::of(&link).queues(&link, "a");
        assert_eq!(queues[0], "dev a root handle 1: netem limit 100000 delay 20000us loss 0.5%");
        assert!(queues[1].starts_with("dev a parent 1:1 handle 10: tbf rate 8000000bit burst 18028b"));
        assert_eq!(Shape::of(&Link::default()).queues(&Link::default(), "a"), Vec::<String>::new());
    }
}
