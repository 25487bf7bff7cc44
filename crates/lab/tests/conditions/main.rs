//! Applies each condition to this machine, looks at the kernel's own files, and looks again after undoing.
//!
//! It measures no rates: a limit is checked where the kernel has it. Without root the tests check that the
//! missing rights are reported. Invariant: tests that change the machine run one after another, also when
//! several of these programs run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's helpers may fail it")]

mod kernel;
mod recovery;

use std::fs;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kernel::{AloneOnMachine, is_root, process_groups, read, text_of};
use plimsoll_lab::conditions::{AppliedConditions, PeriodicDrop, cached_bytes, obstacles};
use plimsoll_lab::experiment::conditions::{Cache, Disk, Image, Link, Settings};

/// Applies settings and passes them to `look`, or checks that the missing rights are reported.
fn with_applied(settings: &Settings, look: impl FnOnce(&AppliedConditions)) -> Option<Vec<String>> {
    apply_alone(&AloneOnMachine::wait(), settings, look)
}

fn apply_alone(
    alone: &AloneOnMachine,
    settings: &Settings,
    look: impl FnOnce(&AppliedConditions),
) -> Option<Vec<String>> {
    let folder = alone.folder();
    if !is_root() {
        let found = obstacles(settings, folder);
        assert!(found.iter().any(|obstacle| obstacle.remedy == "run the agent as root"), "{found:?}");
        let refused = AppliedConditions::apply(settings, folder).unwrap_err().to_string();
        assert!(refused.contains("the agent lacks CAP_"), "{refused}");
        return None;
    }
    let before = kernel::state();
    let applied = AppliedConditions::apply(settings, folder).unwrap();
    look(&applied);
    let lines = applied.undo().unwrap();
    assert_eq!(kernel::state(), before, "{lines:?}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{lines:?}");
    Some(lines)
}

fn image(kind: &str) -> Image {
    Image { kind: kind.to_owned(), bytes: 64 << 20, block: Some(1024), read_ahead: Some(64 << 10) }
}

fn sleep() -> Command {
    let mut command = Command::new("sleep");
    command.arg("1000").stdin(Stdio::null());
    command
}

#[test]
fn settings_without_limits_need_no_rights_and_change_nothing() {
    let alone = AloneOnMachine::wait();
    let before = kernel::state();
    let settings = Settings { cache: Cache::Cold, ..Settings::default() };
    let applied = AppliedConditions::apply(&settings, alone.folder()).unwrap();
    assert_eq!(kernel::state(), before);
    assert_eq!(applied.root(), alone.folder().canonicalize().unwrap());
    assert_eq!((applied.address(), applied.command_prefix()), (None, Vec::new()));
    assert_eq!(applied.undo().unwrap(), Vec::<String>::new());
}

#[test]
fn the_memory_limit_applies_to_a_started_process_from_its_start_and_not_to_the_caller() {
    let settings = Settings { memory: Some(64 << 20), ..Settings::default() };
    with_applied(&settings, |applied| {
        let own = process_groups("self");
        let mut child = applied.spawn_inside(|| sleep().spawn()).unwrap();
        let group = applied.control_groups().next().unwrap();
        let name = group.file_name().unwrap().to_str().unwrap();
        assert!(process_groups(&child.id().to_string()).contains(name));
        assert_eq!(process_groups("self"), own);
        let files = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max"];
        let limits: Vec<String> =
            files.iter().filter_map(|file| fs::read_to_string(group.join(file)).ok()).collect();
        assert!(!limits.is_empty() && limits.iter().all(|limit| limit.trim() == "67108864"), "{limits:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    });
}

#[test]
fn undoing_ends_the_processes_that_are_left_over() {
    let settings = Settings { memory: Some(64 << 20), image: Some(image("ext4")), ..Settings::default() };
    let mut child = None;
    let lines = with_applied(&settings, |applied| {
        let file = applied.root().join("open");
        fs::write(&file, "a").unwrap();
        let start = || sleep().stdin(fs::File::open(&file)?).spawn();
        child = Some(applied.spawn_inside(start).unwrap());
    });
    if let (Some(lines), Some(mut child)) = (lines, child) {
        assert!(lines[0].contains(&child.id().to_string()), "{lines:?}");
        assert!(!child.wait().unwrap().success());
    }
}

#[test]
fn an_image_has_its_file_system_block_size_read_ahead_and_direct_io() {
    for kind in ["ext2", "ext4", "xfs"] {
        let mut image = image(kind);
        if kind == "xfs" {
            image.bytes = 512 << 20;
        }
        let settings = Settings { image: Some(image), ..Settings::default() };
        if kernel::find("mkfs.xfs").is_none() && kind == "xfs" {
            let found = obstacles(&settings, Path::new("/tmp"));
            assert_eq!(found[0].reason, "mkfs.xfs is not installed");
            assert!(found[0].remedy.contains("xfsprogs"), "{found:?}");
            continue;
        }
        with_applied(&settings, |applied| {
            let mount = kernel::mount_of(applied.root());
            assert_eq!(mount.kind, kind);
            assert_eq!(read(&mount.block.join("loop/dio")), "1");
            assert_eq!(read(&mount.block.join("queue/read_ahead_kb")), "64");
            let size = text_of("stat", &["--file-system", "--format=%S", applied.root().to_str().unwrap()]);
            assert_eq!(size, "1024");
            fs::write(applied.root().join("file"), "a").unwrap();
            assert_eq!(fs::read_dir(applied.root()).unwrap().count(), 1);
        });
    }
}

#[test]
fn the_disk_limits_of_an_image_are_set_once_for_all_its_operations() {
    let disk = Disk { read: Some(5 << 20), write: Some(3 << 20), operations: Some(200) };
    let settings = Settings { disk, image: Some(image("ext4")), ..Settings::default() };
    with_applied(&settings, |applied| {
        let number = read(&kernel::mount_of(applied.root()).block.join("dev"));
        let group = applied.control_groups().last().unwrap();
        if group.join("io.max").exists() {
            let limits = read(&group.join("io.max"));
            assert_eq!(limits, format!("{number} rbps=5242880 wbps=3145728 riops=200 wiops=200"));
            return;
        }
        for (file, limit) in
            [("read_bps", 5_242_880), ("write_bps", 3_145_728), ("read_iops", 200), ("write_iops", 200)]
        {
            let limits = read(&group.join(format!("blkio.throttle.{file}_device")));
            assert!(limits.lines().any(|line| line == format!("{number} {limit}")), "{limits}");
        }
        let mut child = applied.spawn_inside(|| sleep().spawn()).unwrap();
        let groups = process_groups(&child.id().to_string());
        assert!(groups.lines().any(|line| line.ends_with(":blkio:/")), "{groups}");
        child.kill().unwrap();
        child.wait().unwrap();
    });
}

#[test]
fn files_are_made_without_the_disk_limits_which_hold_again_afterwards() {
    let disk = Disk { write: Some(1 << 20), ..Disk::default() };
    let settings = Settings { disk, image: Some(image("ext4")), ..Settings::default() };
    with_applied(&settings, |applied| {
        let group = applied.control_groups().last().unwrap();
        let files = ["io.max", "blkio.throttle.write_bps_device"].map(|file| group.join(file));
        let limits = || files.iter().find_map(|file| fs::read_to_string(file).ok()).unwrap();
        let limited = limits();
        assert!(limited.contains("1048576"), "{limited}");
        let unlimited = applied.without_disk_limits(|| {
            fs::write(applied.root().join("a"), vec![7; 4 << 20])?;
            Ok(limits())
        });
        assert!(!unlimited.unwrap().contains("1048576"));
        assert_eq!(limits(), limited);
    });
}

#[test]
fn a_read_limit_without_an_image_is_set_for_the_disk_of_the_work_folder() {
    let settings = Settings { disk: Disk { read: Some(5 << 20), ..Disk::default() }, ..Settings::default() };
    with_applied(&settings, |applied| {
        let group = applied.control_groups().last().unwrap();
        let limits = ["blkio.throttle.read_bps_device", "io.max"];
        let limits = limits.iter().find_map(|file| fs::read_to_string(group.join(file)).ok()).unwrap();
        assert!(limits.contains("5242880"), "{limits}");
        assert!(group.file_name().unwrap().to_str().unwrap().starts_with("plimsoll-lab-"));
    });
}

#[test]
fn a_write_limit_without_an_image_is_an_obstacle_under_control_groups_of_version_1() {
    let settings = Settings { disk: Disk { write: Some(1 << 20), ..Disk::default() }, ..Settings::default() };
    let found = obstacles(&settings, Path::new("/tmp"));
    if !is_root() || kernel::has_v1("blkio") {
        assert_eq!((found.len(), found[0].condition.as_str()), (1, "disk_write"), "{found:?}");
    } else {
        assert_eq!(found, []);
    }
}

#[test]
fn a_link_has_its_rate_and_mtu_in_both_directions_and_carries_connections() {
    let link = Link { rate: Some(10_000_000), mtu: Some(1400), ..Link::default() };
    // By default, the kernel restricts it to the machine itself.
    let congestion = Some("cubic".to_owned());
    let settings = Settings { link: Some(link), congestion, ..Settings::default() };
    with_applied(&settings, |applied| {
        let prefix = applied.command_prefix();
        let name = prefix.last().unwrap();
        let inside = text_of("tc", &["-n", name, "qdisc", "show", "dev", "eth0"]);
        let outside = text_of("tc", &["qdisc", "show"]);
        assert!(inside.contains("tbf") && inside.contains("rate 10Mbit"), "{inside}");
        let device = format!("dev pl{:x}-", std::process::id());
        let outside: Vec<&str> = outside.lines().filter(|line| line.contains(&device)).collect();
        assert!(outside.len() == 1 && outside[0].contains("rate 10Mbit"), "{outside:?}");
        let device = text_of("ip", &["-n", name, "link", "show", "eth0"]);
        assert!(device.contains("mtu 1400") && device.contains("state UP"), "{device}");
        let file = "/proc/sys/net/ipv4/tcp_congestion_control";
        let started = applied.spawn_inside(|| Command::new("cat").arg(file).stdout(Stdio::piped()).spawn());
        let output = started.unwrap().wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "cubic\n");
        let address = applied.address().unwrap();
        let listener = kernel::in_namespace(name, || TcpListener::bind((address, 0)).unwrap());
        let sent = vec![7; 100_000];
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut accepted = listener.accept().unwrap().0;
        let sender = std::thread::spawn(move || stream.write_all(&sent));
        let mut received = Vec::new();
        accepted.read_to_end(&mut received).unwrap();
        sender.join().unwrap().unwrap();
        assert_eq!(received, vec![7; 100_000]);
    });
}

#[test]
fn servers_behind_a_link_connect_to_each_other_again_when_all_ports_have_been_used() {
    let settings = Settings { link: Some(Link::default()), ..Settings::default() };
    with_applied(&settings, |applied| {
        let prefix = applied.command_prefix();
        let address = applied.address().unwrap();
        kernel::in_namespace(prefix.last().unwrap(), || {
            fs::write("/proc/sys/net/ipv4/ip_local_port_range", "20000 20003").unwrap();
            let listener = TcpListener::bind((address, 9)).unwrap();
            // The side that closes first keeps the port, for a minute if it may not be used again.
            let connect = || {
                let first = TcpStream::connect(listener.local_addr()?)?;
                let (second, _) = listener.accept()?;
                drop(first);
                drop(second);
                io::Result::Ok(())
            };
            let used = (0..4).filter(|_| connect().is_ok()).count();
            assert_eq!(
                (used, connect().map_err(|error| error.kind())),
                (4, Err(ErrorKind::AddrNotAvailable))
            );
            let until = Instant::now() + Duration::from_secs(20);
            while let Err(error) = connect() {
                assert!(Instant::now() < until, "{error}");
                std::thread::sleep(Duration::from_millis(50));
            }
        });
    });
}

#[test]
fn delay_and_loss_are_set_or_reported_with_their_remedy() {
    let link = Link { delay: Some(Duration::from_millis(20)), loss: Some(0.5), ..Link::default() };
    let settings = Settings { link: Some(link), ..Settings::default() };
    let found = {
        let _alone = AloneOnMachine::wait();
        let before = kernel::state();
        let found = obstacles(&settings, Path::new("/tmp"));
        assert_eq!(kernel::state(), before);
        found
    };
    let is_without_netem = found.iter().any(|obstacle| obstacle.reason.contains("no netem"));
    if is_root() && is_without_netem {
        assert_eq!(found[0].condition, "delay");
        assert!(found[0].remedy.contains("CONFIG_NET_SCH_NETEM"), "{found:?}");
        return;
    }
    with_applied(&settings, |applied| {
        let name = applied.command_prefix().pop().unwrap();
        let queue = text_of("tc", &["-n", &name, "qdisc", "show", "dev", "eth0"]);
        assert!(queue.contains("delay 20ms") && queue.contains("loss 0.5%"), "{queue}");
    });
}

#[test]
fn the_congestion_control_of_the_machine_is_put_back() {
    let alone = AloneOnMachine::wait();
    let file = Path::new("/proc/sys/net/ipv4/tcp_congestion_control");
    let before = read(file);
    let other = if before == "reno" { "cubic" } else { "reno" };
    let settings = Settings { congestion: Some(other.to_owned()), ..Settings::default() };
    apply_alone(&alone, &settings, |_| assert_eq!(read(file), other));
    assert_eq!(read(file), before);
}

#[test]
fn a_congestion_control_that_the_kernel_has_not_is_an_obstacle() {
    let settings = Settings { congestion: Some("none-such".to_owned()), ..Settings::default() };
    let found = obstacles(&settings, Path::new("/tmp"));
    let expected = if is_root() { "no congestion control \"none-such\"" } else { "lacks CAP_NET_ADMIN" };
    assert!(found[0].reason.contains(expected), "{found:?}");
}

#[test]
fn files_are_not_in_the_page_cache_before_a_cold_trial_and_are_before_a_prefetched_one() {
    let alone = AloneOnMachine::wait();
    let files = alone.folder().join("files");
    fs::create_dir_all(files.join("below")).unwrap();
    for name in ["a", "b c", "below/-d"] {
        fs::write(files.join(name), vec![7; 100_000]).unwrap();
    }
    let whole_pages = 3 * 100_000_u64.next_multiple_of(4096);
    let trial = |cache| {
        let applied = AppliedConditions::apply(&Settings::default(), alone.folder()).unwrap();
        let cached = applied.before_trial(cache, &files).unwrap();
        assert_eq!(cached.is_none(), cache == Cache::Warm);
        cached.or(cached_bytes(&files).unwrap()).expect("util-linux has fincore")
    };
    assert_eq!(trial(Cache::Cold), 0);
    assert_eq!(trial(Cache::Prefetched), whole_pages);
    assert_eq!(trial(Cache::Warm), whole_pages);
    assert_eq!(trial(Cache::Dropped(Duration::from_secs(60))), 0);
}

#[test]
fn a_memory_limit_begins_without_the_pages_that_are_charged_outside() {
    let settings = Settings { memory: Some(64 << 20), ..Settings::default() };
    with_applied(&settings, |applied| {
        let files = applied.root().join("files");
        fs::create_dir(&files).unwrap();
        fs::write(files.join("a"), vec![7; 8 << 20]).unwrap();
        assert_eq!(applied.before_trial(Cache::Prefetched, &files).unwrap(), Some(8 << 20));
        let group = applied.control_groups().next().unwrap();
        let used = ["memory.usage_in_bytes", "memory.current"];
        let used = used.iter().find_map(|file| fs::read_to_string(group.join(file)).ok()).unwrap();
        assert!(used.trim().parse::<u64>().unwrap() >= 8 << 20, "{used}");
        fs::remove_dir_all(&files).unwrap();
    });
}

#[test]
fn files_are_dropped_at_the_interval_until_the_thread_is_stopped() {
    let alone = AloneOnMachine::wait();
    fs::write(alone.folder().join("a"), vec![7; 100_000]).unwrap();
    let dropping = PeriodicDrop::start(alone.folder().to_owned(), Duration::from_millis(1));
    while cached_bytes(alone.folder()).unwrap() != Some(0) {
        std::thread::yield_now();
    }
    assert!(dropping.stop().unwrap() > 0);
}
