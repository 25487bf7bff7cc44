//! Copying: the same bytes under another name, in the same home or in another.
//!
//! The copying of bytes is not here, but in [`super::copying`]. Invariant: a copy is made in `pending`,
//! synced, and put in place as a whole.

use plimsoll_io::{Existing, File, FileKind, Fs, Io, Stat, Work};
use serde::{Deserialize, Serialize};

use super::copying::{Copying, Made};
use super::displaced::DisplacedEntry;
use super::distinct::SourceEntry;
use super::rename::{LocalEnd, check_paths};
use crate::error::{Error, Result};
use crate::home::{ParentFolder, weight};
use crate::usage::Usage;
use crate::write::UploadId;
use crate::write::claim::Claim;

/// The part of a folder that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Depth {
    /// The folder without its contents.
    Zero,
    /// The folder with all its contents.
    Infinity,
}

/// The result of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// Whether the new name had no entry before.
    pub created: bool,
    /// The usage of the copied entries.
    pub usage: Usage,
}

impl LocalEnd {
    /// As [`crate::End::copy`]. If the future is dropped before the copy has its name, nothing is left of
    /// it.
    pub(crate) async fn copy(
        self,
        io: &Io,
        to: LocalEnd,
        existing: Existing,
        depth: Depth,
    ) -> Result<Copied> {
        to.home.usage(io).await?;
        let (made, replaced) = (UploadId::draw(io), UploadId::draw(io));
        let (home, in_progress) = (to.home.clone(), to.home.begin_copy()?);
        let copy = Copying::new(self, to, existing, depth, [made, replaced], in_progress);
        let (copied, tree) = io.offload_slices(Work::Chores, copy).await??;
        if let Some(staging) = tree {
            home.clear_later(io, staging, replaced);
        }
        home.tidy_trash(io);
        Ok(copied)
    }

    /// As [`crate::End::check_copy`].
    pub(crate) async fn check_copy(&self, io: &Io, to: &LocalEnd, existing: Existing) -> Result<()> {
        let (from, to) = (self.clone(), to.clone());
        let checked = io.offload(Work::Writes, move |fs| {
            check_paths(&from, &to)?;
            let _state = to.home.lock();
            distinct_target(fs, &from, &to, existing).map(drop)
        });
        checked.await?
    }
}

/// Returns the place of a copy, and the entry now there. Call it with the state locked.
fn target<'a>(fs: &dyn Fs, to: &'a LocalEnd, existing: Existing) -> Result<(ParentFolder<'a>, Option<Stat>)> {
    let target = to.home.place(fs, &to.path)?;
    let replaced = target.stat(fs)?;
    target.check_new(replaced.as_ref())?;
    if replaced.is_some() && existing == Existing::Kept {
        return Err(Error::AlreadyExists);
    }
    if replaced.is_some_and(|stat| stat.kind == FileKind::Folder) && target.is_mount(fs)? {
        return Err(Error::OtherDisk);
    }
    Ok((target, replaced))
}

/// As [`target`], after a check that the source is not the target, nor in it, nor around it.
fn distinct_target<'a>(
    fs: &dyn Fs,
    from: &LocalEnd,
    to: &'a LocalEnd,
    existing: Existing,
) -> Result<(ParentFolder<'a>, Option<Stat>)> {
    let source = SourceEntry::copied(fs, from)?;
    let (target, replaced) = target(fs, to, existing)?;
    source.check_distinct(fs, to, &target, replaced.as_ref())?;
    Ok((target, replaced))
}

/// Reserves space for a copy, if quota and target now allow the copy.
pub(super) fn begin(
    fs: &dyn Fs,
    from: &LocalEnd,
    to: &LocalEnd,
    existing: Existing,
    usage: Usage,
    id: UploadId,
) -> Result<Claim> {
    to.home.clear_abandoned(fs);
    to.home.open_volume(fs, &to.path)?;
    let mut state = to.home.lock();
    let (target, replaced) = distinct_target(fs, from, to, existing)?;
    // The copy in place drops entries of the trash, if the quota needs their space.
    let _needed = to.home.allows(fs, &state, to.quota, less_of(replaced.as_ref()), usage)?;
    let staging = to.home.staging_for(fs, &target.folder)?;
    Claim::reserve(&to.home, &mut state, (id, staging), to.quota, usage.bytes)
}

/// The usage that is freed when the copy is in place. A replaced folder counts until it is removed.
fn less_of(replaced: Option<&Stat>) -> Usage {
    replaced.filter(|stat| stat.kind != FileKind::Folder).map_or_else(Usage::default, weight)
}

pub(super) fn put_in_place(
    fs: &dyn Fs,
    to: &LocalEnd,
    existing: Existing,
    (made, staging): (&Made, &File),
    id: UploadId,
) -> Result<(Copied, Option<File>)> {
    let state = to.home.change();
    let (target, replaced) = target(fs, to, existing)?;
    let displaced = DisplacedEntry::set(fs, &to.home, &target, replaced.as_ref(), made.kind, id)?;
    // An entry that is set aside is subtracted by `forget`.
    let less = if displaced.is_some() { Usage::default() } else { less_of(replaced.as_ref()) };
    let placed = to.home.allows(fs, &state, to.quota, less, made.usage).and_then(|needed| {
        fs.rename(staging, &made.name, &target.folder, target.name, Existing::Replaced)?;
        Ok(needed)
    });
    let needed = match placed {
        Ok(needed) => needed,
        Err(error) => {
            displaced.into_iter().for_each(|displaced| displaced.put_back(fs, &to.home, &target));
            return Err(error);
        }
    };
    to.home.replaces(fs, &state, needed, less, made.usage);
    to.home.sync(fs, &[&target.folder])?;
    drop(state);
    let tree = displaced.map_or(Ok(None), |displaced| displaced.forget(fs, &to.home))?;
    Ok((Copied { created: replaced.is_none(), usage: made.usage }, tree))
}
