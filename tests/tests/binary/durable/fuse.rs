//! One file in memory that the kernel reads and writes through `/dev/fuse`, so that each write and each
//! sync is visible here, in order. A loop device over it is a disk whose power can be cut.
//!
//! It implements the part of the protocol (linux/fuse.h, 7.31) that a mounted regular file needs. Writes
//! after the last sync must be kept separate from synced contents.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::chance::Chance;

/// The maximal pages of one write, and bytes.
const WRITE_PAGES_MAX: u16 = 32;
const WRITE_BYTES_MAX: u32 = WRITE_PAGES_MAX as u32 * 4096;
/// The maximal size of a request: a write's bytes, and its headers.
const REQUEST_BYTES_MAX: usize = WRITE_BYTES_MAX as usize + 4096;
/// The unit that a disk writes atomically.
const SECTOR_BYTES: usize = 4096;

/// The duration of a sync, as on a disk: during it, the written bytes are not safe, and may be lost.
const SYNC_TIME: Duration = Duration::from_millis(2);
/// The operation that syncs all writes.
const FSYNC: u32 = 20;

/// The contents of the disk.
#[derive(Default)]
pub(super) struct Blocks {
    /// The contents as of the last sync.
    safe: Vec<u8>,
    /// Sectors written since the last sync, with their present contents.
    unsafe_yet: BTreeMap<usize, Vec<u8>>,
    /// The number of syncs.
    pub(super) syncs: u64,
}

/// The sectors written since the last sync that survive a cut.
#[derive(Clone, Copy, Debug)]
pub(super) enum Survives {
    /// All sectors, as after a kill of the whole machine.
    All,
    /// No sector: all were in the disk's cache.
    Nothing,
    /// Random sectors: the disk writes in an arbitrary order.
    Some,
}

impl Blocks {
    fn read(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let end = (offset + bytes).min(self.safe.len());
        let mut read = self.safe[offset.min(end)..end].to_vec();
        for (sector, written) in self.unsafe_yet.range(offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES)) {
            let at = sector * SECTOR_BYTES;
            let (from, until) = (at.max(offset), (at + SECTOR_BYTES).min(end));
            read[from - offset..until - offset].copy_from_slice(&written[from - at..until - at]);
        }
        read
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let mut at = offset;
        while at < offset + bytes.len() {
            let (sector, inside) = (at / SECTOR_BYTES, at % SECTOR_BYTES);
            let count = (SECTOR_BYTES - inside).min(offset + bytes.len() - at);
            let start = sector * SECTOR_BYTES;
            let safe = &self.safe;
            let written =
                self.unsafe_yet.entry(sector).or_insert_with(|| safe[start..start + SECTOR_BYTES].to_vec());
            written[inside..inside + count].copy_from_slice(&bytes[at - offset..at - offset + count]);
            at += count;
        }
    }

    fn sync(&mut self) {
        for (sector, written) in std::mem::take(&mut self.unsafe_yet) {
            self.safe[sector * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(&written);
        }
        self.syncs += 1;
    }

    /// Returns the disk's contents after a power cut at this moment, and the number of unsynced sectors.
    pub(super) fn after_a_cut(&self, survives: Survives, chance: &mut Chance) -> (Vec<u8>, usize) {
        let mut disk = self.safe.clone();
        for (sector, written) in &self.unsafe_yet {
            let stays = match survives {
                Survives::All => true,
                Survives::Nothing => false,
                Survives::Some => chance.below(2) == 0,
            };
            if stays {
                disk[sector * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(written);
            }
        }
        (disk, self.unsafe_yet.len())
    }
}

/// The file, mounted over another one.
pub(super) struct Mounted {
    pub(super) at: PathBuf,
    pub(super) blocks: Arc<Mutex<Blocks>>,
}

impl Mounted {
    /// Mounts a file of `bytes` zeros over the file `at`.
    pub(super) fn new(at: &Path, bytes: usize) -> io::Result<Mounted> {
        File::create(at)?;
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse")?;
        let data = format!("fd={},rootmode=100600,user_id=0,group_id=0", device.as_raw_fd());
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("plimsoll-test", at, "fuse", flags, &*CString::new(data).unwrap())?;
        let blocks = Arc::new(Mutex::new(Blocks { safe: vec![0; bytes], ..Blocks::default() }));
        let shared = Arc::clone(&blocks);
        std::thread::spawn(move || answer_all(device, &shared));
        Ok(Mounted { at: at.to_owned(), blocks })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a process that still has it open must not block the end of the test.
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}

fn answer_all(mut device: File, blocks: &Mutex<Blocks>) {
    let mut request = vec![0; REQUEST_BYTES_MAX];
    // An error is the end of the mount.
    while let Ok(bytes) = device.read(&mut request) {
        let request = &request[..bytes];
        let (operation, unique) = (u32_at(request, 4), &request[8..16]);
        if operation == FSYNC {
            std::thread::sleep(SYNC_TIME);
        }
        let Some(answer) = answer(operation, &request[40..], &mut blocks.lock().unwrap()) else { continue };
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(error) => (-error, Vec::new()),
        };
        let length = u32::try_from(16 + body.len()).unwrap();
        let head = [&length.to_ne_bytes()[..], &error.to_ne_bytes(), unique].concat();
        // The kernel discards the answer to an interrupted request, and the write fails.
        let _ = device.write(&[head, body].concat());
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn usize_at(bytes: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
}

/// Returns the body of an answer, or its error; `None` for operations without an answer.
fn answer(operation: u32, body: &[u8], blocks: &mut Blocks) -> Option<Result<Vec<u8>, i32>> {
    Some(match operation {
        // FORGET, INTERRUPT, BATCH_FORGET
        2 | 36 | 42 => return None,
        // GETATTR, SETATTR
        3 | 4 => Ok([words(&[3600, 0]), attributes(blocks.safe.len())].concat()),
        // OPEN: no handle, no flags
        14 => Ok(vec![0; 16]),
        // READ
        15 => Ok(blocks.read(usize_at(body, 8), u32_at(body, 16) as usize)),
        // WRITE
        16 => {
            let (offset, bytes) = (usize_at(body, 8), u32_at(body, 16) as usize);
            blocks.write(offset, &body[40..40 + bytes]);
            Ok(words(&[bytes as u64]))
        }
        // STATFS
        17 => Ok(vec![0; 80]),
        // RELEASE, FLUSH, DESTROY
        18 | 25 | 38 => Ok(Vec::new()),
        FSYNC => {
            blocks.sync();
            Ok(Vec::new())
        }
        // INIT
        26 => Ok(agreed()),
        // ENOSYS: the kernel works without this operation.
        _ => Err(38),
    })
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Returns a `struct fuse_attr` of a regular file owned by root, mode 0600.
fn attributes(bytes: usize) -> Vec<u8> {
    let bytes = bytes as u64;
    let mut attributes = words(&[1, bytes, bytes / 512, 0, 0, 0]);
    for word in [0, 0, 0, 0o100_600_u32, 1, 0, 0, 0, 4096, 0] {
        attributes.extend(word.to_ne_bytes());
    }
    attributes
}

/// Returns a `struct fuse_init_out`: version 7.31, writes of more than a page.
fn agreed() -> Vec<u8> {
    const BIG_WRITES: u32 = 1 << 5;
    const MAX_PAGES: u32 = 1 << 22;
    let mut out = Vec::new();
    for word in [7, 31, 65_536, BIG_WRITES | MAX_PAGES] {
        out.extend(word.to_ne_bytes());
    }
    for half in [12_u16, 9] {
        out.extend(half.to_ne_bytes());
    }
    for word in [WRITE_BYTES_MAX, 1] {
        out.extend(word.to_ne_bytes());
    }
    out.extend(WRITE_PAGES_MAX.to_ne_bytes());
    out.resize(64, 0);
    out
}
