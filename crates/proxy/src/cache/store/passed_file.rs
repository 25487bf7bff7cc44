//! A file that the origin has passed as an open descriptor, as the content of an object.
//!
//! It reads nothing. Invariants: the descriptor stays open as long as the object. The file is the origin's,
//! which may change or remove it: its bytes are those of the object only while its metadata are the same as
//! when it was passed.

use std::ops::Range;
use std::time::SystemTime;

use plimsoll_io::{File, FileRange, Fs, Io, Stat};

use crate::cache::limits::FILE_TIME_TICK;

/// A range of an open file, and the file's metadata when it was passed.
#[derive(Debug)]
pub struct PassedFile {
    part: FileRange,
    stat: Stat,
    may_be_kept: bool,
}

impl PassedFile {
    /// Reads the metadata of the file. Returns `None` if that fails, or if the file ends before the range.
    pub async fn new(io: &Io, part: FileRange, request_sent: SystemTime) -> Option<PassedFile> {
        let stat = stat(io, &part.file).await.ok()?;
        let changed = SystemTime::UNIX_EPOCH + stat.changed;
        let is_settled = changed + FILE_TIME_TICK <= request_sent;
        let is_whole = part.range.start <= part.range.end && part.range.end <= stat.size;
        let may_be_kept = stat.links > 0 && is_settled;
        is_whole.then(|| PassedFile { part, stat, may_be_kept })
    }

    #[cfg(test)]
    pub(super) fn for_tests(content_bytes: u64) -> PassedFile {
        use plimsoll_io::{FileKind, Handle};
        let time = std::time::Duration::ZERO;
        let file = File::new(Handle::Simulated { inode: 1, cuts: 0, writes: false });
        let (kind, size) = (FileKind::File, content_bytes);
        let stat = Stat { kind, size, device: 1, inode: 1, modified: time, changed: time, links: 1 };
        PassedFile { part: FileRange { file, range: 0..content_bytes }, stat, may_be_kept: true }
    }

    /// Whether its later changes can be noticed. They cannot if the file has no name, or if it changed less
    /// than [`FILE_TIME_TICK`] before the request was sent, or after it: the head of the response, which the
    /// origin wrote after that, may then describe other contents.
    #[must_use]
    pub fn may_be_kept(&self) -> bool {
        self.may_be_kept
    }

    /// Returns its length in bytes.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.part.range.end - self.part.range.start
    }

    /// Returns the open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.part.file
    }

    /// Returns the range in the file of a part of the content.
    #[must_use]
    pub fn range_of(&self, part: &Range<u64>) -> Range<u64> {
        let start = self.part.range.start;
        start + part.start..start + part.end
    }

    /// Whether the file has changed since it was passed. This is one fstat(2).
    pub async fn has_changed(&self, io: &Io) -> bool {
        !matches!(stat(io, self.file()).await, Ok(stat) if stat == self.stat)
    }

    /// As [`PassedFile::has_changed`], on a thread that may block.
    #[must_use]
    pub fn has_changed_on(&self, fs: &dyn Fs) -> bool {
        !matches!(fs.stat(self.file()), Ok(stat) if stat == self.stat)
    }
}

async fn stat(io: &Io, file: &File) -> std::io::Result<Stat> {
    let file = file.clone();
    io.files(move |fs| fs.stat(&file)).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_io::Existing;
    use plimsoll_io::sim::{Faults, Host, Sim};

    use super::*;

    /// Creates a file with ten bytes, and returns it with its folder.
    fn created(host: &Host) -> (File, File) {
        let disk = &**host.disk();
        let folder = disk.open_root("/".as_ref()).unwrap();
        let file = disk.create(&folder, b"file").unwrap();
        assert_eq!(disk.write_at(&file, b"0123456789", 0).unwrap(), 10);
        (folder.clone(), disk.open_beneath(&folder, b"file").unwrap())
    }

    /// Runs with a file of ten bytes.
    fn with_file<F: Future<Output = ()> + 'static>(test: impl FnOnce(Host, Io, File, File) -> F) {
        let sim = Sim::new(0, Faults::splits());
        let host = sim.host("one");
        let (folder, file) = created(&host);
        let io = host.io();
        sim.run(&host, test(host.clone(), io, folder, file));
    }

    async fn passed(io: &Io, file: &File, range: Range<u64>, sent: SystemTime) -> Option<PassedFile> {
        PassedFile::new(io, FileRange { file: file.clone(), range }, sent).await
    }

    #[test]
    fn a_file_is_kept_if_it_has_a_name_and_has_not_changed_since_the_request() {
        with_file(|host, io, folder, file| async move {
            let changed = SystemTime::UNIX_EPOCH + host.disk().stat(&file).unwrap().changed;
            let settled = changed + FILE_TIME_TICK;
            let part = passed(&io, &file, 2..10, settled).await.unwrap();
            assert_eq!((part.content_bytes(), part.range_of(&(1..3))), (8, 3..5));
            assert!(part.may_be_kept());
            let early = passed(&io, &file, 0..10, settled - Duration::from_nanos(1)).await.unwrap();
            assert!(!early.may_be_kept());
            assert!(passed(&io, &file, 0..11, settled).await.is_none(), "it ends before the range");
            host.disk().remove_file(&folder, b"file").unwrap();
            let removed = passed(&io, &file, 0..10, settled + FILE_TIME_TICK).await.unwrap();
            assert!(!removed.may_be_kept());
        });
    }

    #[test]
    fn changes_and_removals_of_a_file_are_noticed() {
        type Change = fn(&Host, &File);
        let changes: [(Change, bool); 6] = [
            (|_, _| {}, false),
            (|host, folder| drop(host.disk().open_beneath(folder, b"file").unwrap()), false),
            (
                |host, folder| {
                    let file = host.disk().open_to_write(folder, b"file").unwrap();
                    assert_eq!(host.disk().write_at(&file, b"x", 3).unwrap(), 1);
                },
                true,
            ),
            (
                |host, folder| {
                    let file = host.disk().open_to_write(folder, b"file").unwrap();
                    host.disk().set_len(&file, 9).unwrap();
                },
                true,
            ),
            (|host, folder| host.disk().remove_file(folder, b"file").unwrap(), true),
            (
                |host, folder| {
                    host.disk().create(folder, b"new").unwrap();
                    host.disk().rename(folder, b"new", folder, b"file", Existing::Replaced).unwrap();
                },
                true,
            ),
        ];
        for (number, (change, has_changed)) in changes.into_iter().enumerate() {
            with_file(move |host, io, folder, file| async move {
                io.sleep(2 * FILE_TIME_TICK).await;
                let part = passed(&io, &file, 0..10, io.wall()).await.unwrap();
                io.sleep(Duration::from_millis(1)).await;
                change(&host, &folder);
                assert_eq!(part.has_changed(&io).await, has_changed, "{number}");
                assert_eq!(part.has_changed_on(&**host.disk()), has_changed, "{number}");
            });
        }
    }

    #[test]
    fn a_removal_in_the_tick_of_the_last_change_is_noticed() {
        with_file(|host, io, folder, file| async move {
            io.sleep(2 * FILE_TIME_TICK).await;
            let mut part = passed(&io, &file, 0..10, io.wall()).await.unwrap();
            host.disk().remove_file(&folder, b"file").unwrap();
            // As if the kernel's clock had not advanced.
            part.stat.changed = host.disk().stat(&file).unwrap().changed;
            assert!(part.has_changed(&io).await);
        });
    }
}
