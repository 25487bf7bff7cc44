//! Moving: a file or folder gets another name, in the same home or in another.
//!
//! Invariants: a file that is moved onto another replaces it atomically. Nothing is moved into itself. An
//! entry that moves to another home counts for that home only.

use plimsoll_io::{Existing, File, FileKind, Fs, Io, Stat, Work};
use serde::{Deserialize, Serialize};

use super::displaced::DisplacedEntry;
use super::distinct::SourceEntry;
use super::remove::subtree;
use crate::error::{Error, Result};
use crate::home::{Change, LocalHome, ParentFolder, State, weight};
use crate::limits::PATH_NAMES_MAX;
use crate::path::{BadPath, Path};
use crate::usage::{Quota, RoomNeeded, Usage};
use crate::write::UploadId;

/// One end of a move or copy.
#[derive(Clone)]
pub(crate) struct LocalEnd {
    /// The home.
    pub(crate) home: LocalHome,
    /// The path in it.
    pub(crate) path: Path,
    /// The quota of that home.
    pub(crate) quota: Quota,
}

/// The result of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveResult {
    /// Whether the new name had no entry before.
    pub created: bool,
}

/// The places and entries at both ends of a move.
struct Found<'a> {
    source: ParentFolder<'a>,
    entry: SourceEntry,
    moving: Stat,
    target: ParentFolder<'a>,
    replaced: Option<Stat>,
}

/// The locked states of both homes; a single one if the homes are the same.
struct Both<'a> {
    from: Change<'a>,
    to: Option<Change<'a>>,
}

impl<'a> Both<'a> {
    /// Locks the homes in the order of their names, so that two moves between the same homes cannot
    /// deadlock.
    fn change(from: &'a LocalHome, to: &'a LocalHome) -> Both<'a> {
        if from.is(to) {
            return Both { from: from.change(), to: None };
        }
        if from.name() < to.name() {
            let from = from.change();
            return Both { from, to: Some(to.change()) };
        }
        let to = to.change();
        Both { from: from.change(), to: Some(to) }
    }

    fn to(&self) -> &State {
        self.to.as_ref().unwrap_or(&self.from)
    }
}

impl LocalEnd {
    /// As [`crate::End::rename`].
    pub(crate) async fn rename(self, io: &Io, to: LocalEnd, existing: Existing) -> Result<MoveResult> {
        self.home.usage(io).await?;
        to.home.usage(io).await?;
        let (id, home) = (UploadId::draw(io), to.home.clone());
        // An entry that moves to another home is counted, which takes as long as it is large.
        let work = if self.home.is(&to.home) { Work::Writes } else { Work::Chores };
        let moved = io.offload(work, move |fs| rename(fs, &self, &to, existing, id));
        let (moved, tree) = moved.await??;
        if let Some(staging) = tree {
            home.clear_later(io, staging, id);
        }
        home.tidy_trash(io);
        Ok(moved)
    }

    /// As [`crate::End::check_rename`].
    pub(crate) async fn check_rename(&self, io: &Io, to: &LocalEnd, existing: Existing) -> Result<()> {
        let (from, to) = (self.clone(), to.clone());
        let checked = io.offload(Work::Writes, move |fs| {
            check_paths(&from, &to)?;
            let _states = Both::change(&from.home, &to.home);
            find(fs, &from, &to, existing).map(drop)
        });
        checked.await?
    }
}

/// Checks that neither of two paths lies within the other.
pub(super) fn check_paths(from: &LocalEnd, to: &LocalEnd) -> Result<()> {
    let overlap = to.path.is_within(&from.path) || from.path.is_within(&to.path);
    if from.home.is(&to.home) && overlap { Err(Error::IntoItself) } else { Ok(()) }
}

fn rename(
    fs: &dyn Fs,
    from: &LocalEnd,
    to: &LocalEnd,
    existing: Existing,
    id: UploadId,
) -> Result<(MoveResult, Option<File>)> {
    check_paths(from, to)?;
    check_depth(fs, from, to)?;
    to.home.open_volume(fs, &to.path)?;
    let states = Both::change(&from.home, &to.home);
    let found = find(fs, from, to, existing)?;
    let Found { source, entry, moving, target, replaced } = &found;
    let across = weigh(fs, &states, from, to, &found)?;
    let displaced = DisplacedEntry::set(fs, &to.home, target, replaced.as_ref(), moving.kind, id)?;
    let renamed = match entry.has_lost_target(fs, from) {
        Ok(true) => Err(Error::IntoItself),
        Ok(false) => fs
            .rename(&source.folder, source.name, &target.folder, target.name, Existing::Replaced)
            .map_err(Error::from),
        Err(error) => Err(error),
    };
    if let Err(error) = renamed {
        displaced.into_iter().for_each(|displaced| displaced.put_back(fs, &to.home, target));
        return Err(error);
    }
    if let Some((less, moved, needed)) = across {
        from.home.takes_off(moved);
        to.home.replaces(fs, states.to(), needed, less, moved);
    } else if let (Some(replaced), None) = (replaced, &displaced) {
        to.home.takes_off(weight(replaced));
    }
    let sync = || to.home.sync(fs, &[&target.folder, &source.folder]);
    if moving.kind == FileKind::Folder || displaced.is_some() {
        sync()?;
        drop(states);
    } else {
        drop(states);
        sync()?;
    }
    let tree = displaced.map_or(Ok(None), |displaced| displaced.forget(fs, &to.home))?;
    Ok((MoveResult { created: replaced.is_none() }, tree))
}

/// Looks up both ends. Call it with the states locked.
fn find<'a>(fs: &dyn Fs, from: &'a LocalEnd, to: &'a LocalEnd, existing: Existing) -> Result<Found<'a>> {
    let source = from.home.place(fs, &from.path).map_err(|error| match error {
        Error::NoFolder => Error::NotFound,
        other => other,
    })?;
    let moving = source.stat(fs)?.ok_or(Error::NotFound)?;
    let target = to.home.place(fs, &to.path)?;
    let replaced = target.stat(fs)?;
    target.check_new(replaced.as_ref())?;
    if replaced.is_some() && existing == Existing::Kept {
        return Err(Error::AlreadyExists);
    }
    if fs.volume(&target.folder)? != fs.volume(&source.folder)? {
        return Err(Error::OtherDisk);
    }
    for (place, stat) in [(&source, Some(&moving)), (&target, replaced.as_ref())] {
        if stat.is_some_and(|stat| stat.kind == FileKind::Folder) && place.is_mount(fs)? {
            return Err(Error::OtherDisk);
        }
    }
    let entry = SourceEntry::moved(fs, from, &source, &moving)?;
    entry.check_distinct(fs, to, &target, replaced.as_ref())?;
    Ok(Found { source, entry, moving, target, replaced })
}

/// Returns the usage that the move frees in the target's home at once, the usage that it adds, and what its
/// trash must free, if the quota allows it. A replaced folder counts until it is removed. None within one
/// home, where nothing is added.
fn weigh(
    fs: &dyn Fs,
    states: &Both<'_>,
    from: &LocalEnd,
    to: &LocalEnd,
    found: &Found<'_>,
) -> Result<Option<(Usage, Usage, RoomNeeded)>> {
    if from.home.is(&to.home) {
        return Ok(None);
    }
    let moving = subtree(fs, &found.source, &found.moving)?;
    let is_replaced_at_once = found.moving.kind != FileKind::Folder;
    let less = match &found.replaced {
        Some(stat) if stat.kind != FileKind::Folder && is_replaced_at_once => weight(stat),
        _ => Usage::default(),
    };
    let needed = to.home.allows(fs, states.to(), to.quota, less, moving)?;
    Ok(Some((less, moving, needed)))
}

/// Checks that all folders of `from` would have valid paths at `to`. Call it without the lock: it reads
/// every folder.
pub(super) fn check_depth(fs: &dyn Fs, from: &LocalEnd, to: &LocalEnd) -> Result<()> {
    if to.path.depth() <= from.path.depth() {
        // No path gets longer.
        return Ok(());
    }
    check_tree_depth(fs, from.home.files(), from.path.to_open(), to.path.depth())
}

/// Checks that all folders of the tree `name` in `parent` would have valid paths, if it were `depth` names
/// deep.
pub(crate) fn check_tree_depth(fs: &dyn Fs, parent: &File, name: Vec<u8>, depth: usize) -> Result<()> {
    let mut ahead = vec![(parent.clone(), name, depth)];
    while let Some((parent, name, depth)) = ahead.pop() {
        if depth > PATH_NAMES_MAX {
            return Err(BadPath::TooDeep.into());
        }
        let folder = fs.open_beneath(&parent, &name)?;
        if fs.stat(&folder)?.kind != FileKind::Folder {
            continue;
        }
        let inner = fs.names(&folder, usize::MAX)?.into_iter();
        let folders = inner.filter(|entry| entry.stat.kind == FileKind::Folder);
        ahead.extend(folders.map(|entry| (folder.clone(), entry.name, depth + 1)));
    }
    Ok(())
}
