//! Checks the disk below the data folder: its file system, and the time of a sync.
//!
//! It is no benchmark: a few small writes show the order of magnitude. Invariant: a file system in memory
//! is never reported as good.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Finding;
use super::data_folder::probe_in;
use crate::access::existing;
use crate::config::Config;
use crate::limits::SYNCS_TIME_MAX;

const CHECK: &str = "disk";
/// The number of timed writes, and their size.
const SYNCS: usize = 21;
const SYNC_BYTES: usize = 4096;
/// The shortest plausible sync. A faster disk only fills its volatile cache, or a layer below drops the
/// sync.
const SYNC_PLAUSIBLE: Duration = Duration::from_micros(50);
/// The longest good sync: a slower disk delays every upload.
const SYNC_SLOW: Duration = Duration::from_millis(100);

/// The storage behind a file system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StorageKind {
    Disk,
    Memory,
    Network,
}

/// File systems by their magic number in statfs(2).
const FILE_SYSTEMS: [(u32, &str, StorageKind); 13] = [
    (0xEF53, "ext4", StorageKind::Disk),
    (0x5846_5342, "xfs", StorageKind::Disk),
    (0x9123_683E, "btrfs", StorageKind::Disk),
    (0x2FC1_2FC1, "zfs", StorageKind::Disk),
    (0xF2F5_2010, "f2fs", StorageKind::Disk),
    (0xCA45_1A4E, "bcachefs", StorageKind::Disk),
    (0x794C_7630, "overlayfs", StorageKind::Disk),
    (0x0102_1994, "tmpfs", StorageKind::Memory),
    (0x8584_58F6, "ramfs", StorageKind::Memory),
    (0x6969, "nfs", StorageKind::Network),
    (0xFE53_4D42, "smb", StorageKind::Network),
    (0xFF53_4D42, "cifs", StorageKind::Network),
    (0x6573_5546, "fuse", StorageKind::Network),
];

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if !config.fixed.accounts {
        return Vec::new();
    }
    let folder = existing(&config.fixed.data);
    vec![look(&folder).unwrap_or_else(|error| {
        Finding::warn(CHECK, format!("{} could not be measured: {error}", folder.display()))
    })]
}

fn look(folder: &Path) -> io::Result<Finding> {
    let found = rustix::fs::statfs(folder)?;
    // The magic number has 32 bits; the type of the field depends on the platform.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number is of 32 bits")]
    let number = found.f_type as u32;
    let known = FILE_SYSTEMS.iter().find(|(of, ..)| *of == number);
    let (name, kind) =
        known.map_or(("another file system", StorageKind::Disk), |(_, name, kind)| (*name, *kind));
    Ok(judge(name, kind, median_sync(folder)?))
}

fn judge(name: &str, kind: StorageKind, sync: Duration) -> Finding {
    let move_it = "put the data folder on a disk: --data DIR";
    let seen = format!("{name}, a small sync takes {sync:.0?}");
    match kind {
        StorageKind::Memory => {
            Finding::warn(CHECK, format!("{name}: nothing here survives a restart of the machine"))
                .with_fix(move_it, "the key data in the configuration")
        }
        StorageKind::Network => Finding::warn(CHECK, format!("{seen}; its server decides what a sync means"))
            .with_fix(move_it, "the key data in the configuration"),
        StorageKind::Disk if sync < SYNC_PLAUSIBLE => Finding::warn(
            CHECK,
            format!("{seen}: too fast to be true; a power cut may lose what was confirmed"),
        )
        .with_fix(
            "sudo hdparm -W 0 DEVICE  # or turn off `cache=unsafe` of the virtual machine",
            "a disk with power-loss protection, or the same at every start",
        ),
        StorageKind::Disk if sync > SYNC_SLOW => {
            Finding::warn(CHECK, format!("{seen}: every upload waits for that"))
                .with_fix(move_it, "a disk with power-loss protection")
        }
        StorageKind::Disk => Finding::ok(CHECK, seen),
    }
}

/// Returns the median time of a small write with its sync.
fn median_sync(folder: &Path) -> io::Result<Duration> {
    let probe = probe_in(folder).with_extension("sync");
    let file = File::create_new(&probe)?;
    let times = time_syncs(&file);
    std::fs::remove_file(probe)?;
    let mut times = times?;
    times.sort_unstable();
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

fn time_syncs(file: &File) -> io::Result<Vec<Duration>> {
    let (begun, block) = (Instant::now(), [0x5a; SYNC_BYTES]);
    let mut times = Vec::new();
    for number in 0..SYNCS {
        file.write_all_at(&block, (number * SYNC_BYTES) as u64)?;
        let start = Instant::now();
        file.sync_all()?;
        times.push(start.elapsed());
        if begun.elapsed() > SYNCS_TIME_MAX {
            break;
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn verdict(kind: StorageKind, sync_micros: u64) -> Verdict {
        judge("a", kind, Duration::from_micros(sync_micros)).verdict
    }

    #[test]
    fn a_sync_that_is_too_fast_or_too_slow_is_a_warning_and_so_is_memory() {
        assert_eq!(verdict(StorageKind::Disk, 800), Verdict::Ok);
        assert_eq!(verdict(StorageKind::Disk, 20), Verdict::Warn);
        assert_eq!(verdict(StorageKind::Disk, 200_000), Verdict::Warn);
        assert_eq!(verdict(StorageKind::Memory, 800), Verdict::Warn);
        assert_eq!(verdict(StorageKind::Network, 800), Verdict::Warn);
    }

    #[test]
    fn a_folder_is_measured_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        assert!(look(folder.path()).is_ok());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
