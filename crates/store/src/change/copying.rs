//! A copy in progress, made a slice at a time.
//!
//! Its target and the entry that it replaces are not here, but in [`super::copy`]. Invariants: the copy is
//! in `pending` until its last slice gives it its name. A copy that fails or is cancelled leaves nothing
//! there. Each slice syncs its own writes, so that no sync takes longer than a slice.

use std::io;
use std::ops::ControlFlow;

use plimsoll_io::{Entry, Existing, File, FileKind, Fs, SlicedWork};

use super::copy::{Copied, Depth, begin, put_in_place};
use super::rename::{LocalEnd, check_paths};
use crate::error::{Error, Result};
use crate::home::{CopyingTo, LocalHome};
use crate::limits::{COPY_FILE_BYTES_MIN, COPY_SLICE_BYTES, COUNT_SLICE_ENTRIES, PATH_NAMES_MAX};
use crate::path::BadPath;
use crate::sweep::{clear_tree, tree_name};
use crate::trash::DiskNeed;
use crate::usage::{Counting, Usage};
use crate::volumes::STAGING;
use crate::write::UploadId;
use crate::write::claim::Claim;

/// A copy before it has its name.
pub(super) struct Made {
    pub(super) name: Vec<u8>,
    pub(super) kind: FileKind,
    pub(super) usage: Usage,
}

/// The result of a copy, and the folder with a replaced tree that remains to be removed.
type Outcome = Result<(Copied, Option<File>)>;

/// A copy in progress.
pub(super) struct Copying {
    from: LocalEnd,
    to: LocalEnd,
    existing: Existing,
    depth: Depth,
    made_id: UploadId,
    replaced_id: UploadId,
    /// The folder in which the copy is made; none before it begins.
    staging: Option<File>,
    step: Step,
    /// Released when the copy ends.
    in_progress: Option<CopyingTo>,
}

enum Step {
    New,
    Counting(Counting),
    Making(Box<Making>, Claim),
    Over,
}

/// The progress of a copy.
struct Making {
    made: Made,
    file: Option<FileCopy>,
    folder: Option<FolderCopy>,
    /// Folders to be copied, so that few are open at a time.
    ahead: Vec<FolderAhead>,
    /// The bytes that the copy has reserved in the target's home.
    reserved: u64,
}

/// A folder to be copied: by its name in its parent, which is empty for the copied folder itself.
struct FolderAhead {
    source: File,
    target: File,
    name: Vec<u8>,
    /// Its path in the copied folder.
    path: Vec<u8>,
}

struct FileCopy {
    source: File,
    target: File,
    at: u64,
    size: u64,
}

struct FolderCopy {
    source: File,
    target: File,
    path: Vec<u8>,
    entries: std::vec::IntoIter<Entry>,
}

impl Copying {
    pub(super) fn new(
        from: LocalEnd,
        to: LocalEnd,
        existing: Existing,
        depth: Depth,
        [made_id, replaced_id]: [UploadId; 2],
        in_progress: CopyingTo,
    ) -> Copying {
        let in_progress = Some(in_progress);
        Copying {
            from,
            to,
            existing,
            depth,
            made_id,
            replaced_id,
            staging: None,
            step: Step::New,
            in_progress,
        }
    }

    /// Does the next slice.
    fn advance(&mut self, fs: &dyn Fs) -> Result<ControlFlow<(Copied, Option<File>)>> {
        self.step = match std::mem::replace(&mut self.step, Step::Over) {
            Step::New => self.look(fs)?,
            Step::Counting(mut counting) => match counting.advance(fs, COUNT_SLICE_ENTRIES)? {
                ControlFlow::Continue(()) => Step::Counting(counting),
                ControlFlow::Break(()) => {
                    self.check_depth(&counting)?;
                    self.begin(fs, counting.usage.plus(Usage::FOLDER))?
                }
            },
            Step::Making(mut making, room) => match making.advance(fs, &self.from, &self.to, &room)? {
                ControlFlow::Continue(()) => Step::Making(making, room),
                ControlFlow::Break(()) => {
                    let made = (&making.made, &room.staging);
                    let placed = put_in_place(fs, &self.to, self.existing, made, self.replaced_id);
                    drop(room);
                    return placed.map(ControlFlow::Break);
                }
            },
            Step::Over => return Err(Error::Busy),
        };
        Ok(ControlFlow::Continue(()))
    }

    /// Opens the source: a tree is counted first.
    fn look(&mut self, fs: &dyn Fs) -> Result<Step> {
        check_paths(&self.from, &self.to)?;
        let source = fs.open_beneath(self.from.home.files(), &self.from.path.to_open())?;
        let stat = fs.stat(&source)?;
        match (stat.kind, self.depth) {
            (FileKind::File, _) => self.begin(fs, Usage::file(stat.size)),
            (FileKind::Folder, Depth::Zero) => self.begin(fs, Usage::FOLDER),
            (FileKind::Folder, Depth::Infinity) => Ok(Step::Counting(Counting::new(source))),
            (FileKind::Other, _) => Err(Error::NotFound),
        }
    }

    /// Checks that all folders have valid paths at the target. Existing paths get longer only if the target
    /// is deeper.
    fn check_depth(&self, counted: &Counting) -> Result<()> {
        let (from, to) = (self.from.path.depth(), self.to.path.depth());
        let is_too_deep = to > from && to + counted.levels > PATH_NAMES_MAX;
        if is_too_deep { Err(BadPath::TooDeep.into()) } else { Ok(()) }
    }

    /// Reserves space, and begins to copy.
    fn begin(&mut self, fs: &dyn Fs, usage: Usage) -> Result<Step> {
        let room = begin(fs, &self.from, &self.to, self.existing, usage, self.made_id)?;
        self.staging = Some(room.staging.clone());
        let making = Making::begin(fs, &self.from, &room.staging, self.depth, self.made_id)?;
        Ok(Step::Making(Box::new(Making { reserved: usage.bytes, ..making }), room))
    }

    /// Removes the unfinished copy from its staging folder.
    fn clear(&self, fs: &dyn Fs) {
        if let Some(staging) = &self.staging {
            let _ = fs.remove_file(staging, &self.made_id.data_name());
            let _ = clear_tree(fs, staging, &tree_name(self.made_id));
        }
    }
}

impl SlicedWork for Copying {
    type Output = Outcome;

    fn run_slice(&mut self, fs: &dyn Fs) -> ControlFlow<Outcome> {
        let outcome = match self.advance(fs) {
            Ok(ControlFlow::Continue(())) => return ControlFlow::Continue(()),
            Ok(ControlFlow::Break(copied)) => Ok(copied),
            Err(error) => {
                self.clear(fs);
                Err(error)
            }
        };
        // Released before the caller gets the result, and may begin another copy.
        drop(self.in_progress.take());
        ControlFlow::Break(outcome)
    }

    fn leaves_something(&self) -> bool {
        matches!(self.step, Step::Making(..))
    }

    fn cancel(&mut self, fs: &dyn Fs) {
        if self.leaves_something() {
            self.clear(fs);
        }
        self.step = Step::Over;
    }
}

impl Making {
    fn begin(fs: &dyn Fs, from: &LocalEnd, staging: &File, depth: Depth, id: UploadId) -> Result<Making> {
        let source = fs.open_beneath(from.home.files(), &from.path.to_open())?;
        let (file, ahead, made);
        if fs.stat(&source)?.kind == FileKind::File {
            made = Made { name: id.data_name(), kind: FileKind::File, usage: Usage::default() };
            (file, ahead) = (Some(FileCopy::begin(fs, source, staging, &made.name)?), Vec::new());
        } else {
            made = Made { name: tree_name(id), kind: FileKind::Folder, usage: Usage::FOLDER };
            fs.make_folder(staging, &made.name)?;
            let tree = fs.open_beneath(staging, &made.name)?;
            let (name, path) = (Vec::new(), Vec::new());
            let all = (depth == Depth::Infinity).then(|| FolderAhead { source, target: tree, name, path });
            (file, ahead) = (None, all.into_iter().collect());
        }
        Ok(Making { made, file, folder: None, ahead, reserved: 0 })
    }

    /// Copies one slice.
    fn advance(
        &mut self,
        fs: &dyn Fs,
        from: &LocalEnd,
        to: &LocalEnd,
        room: &Claim,
    ) -> Result<ControlFlow<()>> {
        let (home, mut left) = (&to.home, COPY_SLICE_BYTES);
        while left > 0 {
            if let Some(file) = &mut self.file {
                let bytes = left.min(file.size - file.at);
                let keeps_trash = to.quota.keeps_trash;
                let need = DiskNeed { folder: &room.staging, bytes, ahead: bytes, keeps_trash };
                let bytes = home.with_disk_room(fs, need, || file.advance(fs, home, left))?;
                if file.at >= file.size {
                    self.made.usage = self.made.usage.plus(Usage::file(file.at));
                    self.file = None;
                }
                left = left.saturating_sub(bytes.max(COPY_FILE_BYTES_MIN));
            } else if let Some(folder) = &mut self.folder {
                match folder.entries.next() {
                    Some(entry) => self.enter(fs, from, entry, |bytes| room.grow(to.quota, bytes))?,
                    None => {
                        home.sync(fs, &[&folder.target])?;
                        self.folder = None;
                    }
                }
            } else if let Some(FolderAhead { source, target, name, path }) = self.ahead.pop() {
                let (source, target) = (fs.open_beneath(&source, &name)?, fs.open_beneath(&target, &name)?);
                let entries = fs.names(&source, usize::MAX)?.into_iter();
                self.folder = Some(FolderCopy { source, target, path, entries });
                left = left.saturating_sub(COPY_FILE_BYTES_MIN);
            } else {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Begins to copy an entry of the present folder. `reserve` reserves bytes, in all.
    fn enter(
        &mut self,
        fs: &dyn Fs,
        from: &LocalEnd,
        Entry { name, stat }: Entry,
        reserve: impl FnOnce(u64) -> Result<()>,
    ) -> Result<()> {
        let Some(FolderCopy { source, target, path, .. }) = &self.folder else { return Ok(()) };
        match stat.kind {
            FileKind::File => {
                self.file = Some(FileCopy::begin(fs, fs.open_beneath(source, &name)?, target, &name)?);
            }
            FileKind::Folder if name == STAGING => {}
            FileKind::Folder => {
                fs.make_folder(target, &name)?;
                self.made.usage = self.made.usage.plus(Usage::FOLDER);
                let (source, target, path) = (source.clone(), target.clone(), joined(path, &name));
                self.ahead.push(FolderAhead { source, target, name, path });
            }
            FileKind::Other => match LinkCopy::of(fs, from, source, &joined(path, &name), &name)? {
                LinkCopy::Nothing => {}
                LinkCopy::Link(text) => fs.make_link(target, &name, &text)?,
                LinkCopy::File(file) => {
                    let copy = FileCopy::begin(fs, file, target, &name)?;
                    self.reserved += copy.size;
                    self.file = Some(copy);
                    reserve(self.reserved)?;
                }
            },
        }
        Ok(())
    }
}

/// The entry of a copy in the place of a link, so that both folders show the same.
enum LinkCopy {
    /// Nothing: no listing shows the entry, because it is no link, or leads nowhere.
    Nothing,
    /// The same link: it leads to a place in the copied folder.
    Link(Vec<u8>),
    /// The bytes of the file that it leads to, outside the copied folder.
    File(File),
}

impl LinkCopy {
    /// Decides about the entry `name` of `folder`, whose path in the copied folder is `path`.
    ///
    /// # Errors
    /// [`Error::LeadsOut`] for a link to a folder outside the copied one.
    fn of(fs: &dyn Fs, from: &LocalEnd, folder: &File, path: &[u8], name: &[u8]) -> Result<LinkCopy> {
        let text = match fs.read_link(folder, name) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(LinkCopy::Nothing),
            text => text?,
        };
        let top = fs.open_beneath(from.home.files(), &from.path.to_open())?;
        if fs.open_beneath(&top, path).is_ok() {
            return Ok(LinkCopy::Link(text));
        }
        match fs.open_beneath(from.home.files(), &from.path.to_open_below(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LinkCopy::Nothing),
            Err(error) => Err(error.into()),
            Ok(file) => match fs.stat(&file)?.kind {
                FileKind::File => Ok(LinkCopy::File(file)),
                FileKind::Folder => Err(Error::LeadsOut),
                FileKind::Other => Ok(LinkCopy::Nothing),
            },
        }
    }
}

/// Returns the path of the entry `name` of a folder.
fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if folder.is_empty() { b"" } else { b"/" };
    [folder, slash, name].concat()
}

impl FileCopy {
    fn begin(fs: &dyn Fs, source: File, folder: &File, name: &[u8]) -> Result<FileCopy> {
        let size = fs.stat(&source)?.size;
        Ok(FileCopy { source, target: fs.create(folder, name)?, at: 0, size })
    }

    /// Copies at most `bytes_max` more bytes, and syncs them; returns their number. Bytes that are appended
    /// to the source meanwhile are left out. If the source becomes shorter, its copy ends there.
    fn advance(&mut self, fs: &dyn Fs, home: &LocalHome, bytes_max: u64) -> Result<u64> {
        let most = bytes_max.min(self.size - self.at);
        let copied = fs.copy_part(&self.source, &self.target, self.at, most)?;
        self.at += copied;
        if copied < most {
            self.size = self.at;
        }
        home.sync(fs, &[&self.target])?;
        Ok(copied)
    }
}
