//! Copying: the same bytes under another name, in the same home or in another.
//!
//! What must hold: a copy is made in `pending`, synced, and put in place as a whole.

use plimsoll_io::{Entry, Existing, File, FileKind, Fs, Io, Stat, Work};
use serde::{Deserialize, Serialize};

use super::rename::{End, check_apart, check_depth};
use super::way::Aside;
use crate::error::{Error, Result};
use crate::home::{Home, Place, weight};
use crate::sweep::{clear_tree, tree_name};
use crate::usage::{self, Usage};
use crate::write::UploadId;
use crate::write::claim::Claim;

/// How much of a folder is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Depth {
    /// The folder without what is in it.
    Zero,
    /// All of it.
    Infinity,
}

/// What a copy stands for before it has its name.
struct Made {
    name: Vec<u8>,
    kind: FileKind,
    usage: Usage,
}

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// Whether nothing had the new name before.
    pub created: bool,
    /// What was copied.
    pub usage: Usage,
}

impl End {
    /// Copies what is here to `to`. Links and devices are left out.
    ///
    /// # Errors
    /// As [`End::rename`]; [`Error::Busy`] while many copies to the same home are under way.
    pub(crate) async fn copy(self, io: &Io, to: End, existing: Existing, depth: Depth) -> Result<Copied> {
        to.home.usage(io).await?;
        let (made, replaced) = (UploadId::draw(io), UploadId::draw(io));
        let (home, under_way) = (to.home.clone(), to.home.begin_copy()?);
        let copied = io.offload(Work::Chores, move |fs| {
            let _until_done = under_way;
            copy(fs, &self, &to, existing, depth, [made, replaced])
        });
        let (copied, leaves_tree) = copied.await??;
        if leaves_tree {
            home.clear_later(io, replaced);
        }
        Ok(copied)
    }

    /// Whether [`End::copy`] would do it, as far as can be told now without counting.
    ///
    /// # Errors
    /// As [`End::copy`].
    pub(crate) async fn check_copy(&self, io: &Io, to: &End, existing: Existing) -> Result<()> {
        let (from, to) = (self.clone(), to.clone());
        let checked = io.offload(Work::Writes, move |fs| {
            check_apart(&from, &to)?;
            fs.open_beneath(from.home.files(), &from.path.to_open())?;
            let _state = to.home.lock();
            target(fs, &to, existing).map(drop)
        });
        checked.await?
    }
}

fn copy(
    fs: &dyn Fs,
    from: &End,
    to: &End,
    existing: Existing,
    depth: Depth,
    [made_id, replaced_id]: [UploadId; 2],
) -> Result<(Copied, bool)> {
    check_apart(from, to)?;
    if depth == Depth::Infinity {
        check_depth(fs, from, to)?;
    }
    let room = begin(fs, to, existing, weigh(fs, from, depth)?, made_id)?;
    let made = match make(fs, from, &to.home, depth, made_id) {
        Ok(made) => made,
        Err(error) => return Err(clear_after(fs, &to.home, made_id, error)),
    };
    let placed = put_in_place(fs, to, existing, &made, replaced_id);
    drop(room);
    placed.map_err(|error| clear_after(fs, &to.home, made_id, error))
}

/// Where a copy is to go, and what is there. With the state locked.
fn target<'a>(fs: &dyn Fs, to: &'a End, existing: Existing) -> Result<(Place<'a>, Option<Stat>)> {
    let target = to.home.place(fs, &to.path)?;
    let replaced = target.stat(fs)?;
    if replaced.is_some() && existing == Existing::Kept {
        return Err(Error::AlreadyExists);
    }
    Ok((target, replaced))
}

/// What a copy would count for.
fn weigh(fs: &dyn Fs, from: &End, depth: Depth) -> Result<Usage> {
    let source = fs.open_beneath(from.home.files(), &from.path.to_open())?;
    let stat = fs.stat(&source)?;
    match (stat.kind, depth) {
        (FileKind::File, _) => Ok(Usage::file(stat.size)),
        (FileKind::Folder, Depth::Zero) => Ok(Usage::FOLDER),
        (FileKind::Folder, Depth::Infinity) => Ok(usage::count(fs, &source)?.plus(Usage::FOLDER)),
        (FileKind::Other, _) => Err(Error::NotFound),
    }
}

/// Takes room for a copy, if there is any hope for it.
fn begin(fs: &dyn Fs, to: &End, existing: Existing, usage: Usage, id: UploadId) -> Result<Claim> {
    to.home.clear_abandoned(fs);
    let mut state = to.home.lock();
    let (_, replaced) = target(fs, to, existing)?;
    to.home.allows(fs, &state, to.quota, less_of(replaced.as_ref()), usage)?;
    Claim::room(&to.home, &mut state, id, to.quota, usage.bytes)
}

/// What is gone when the copy is in place. A folder that is replaced counts until it is cleared away.
fn less_of(replaced: Option<&Stat>) -> Usage {
    replaced.filter(|stat| stat.kind != FileKind::Folder).map_or_else(Usage::default, weight)
}

/// Makes the copy in the target home's `pending`, synced.
fn make(fs: &dyn Fs, from: &End, home: &Home, depth: Depth, id: UploadId) -> Result<Made> {
    let source = fs.open_beneath(from.home.files(), &from.path.to_open())?;
    if fs.stat(&source)?.kind == FileKind::File {
        let name = id.data_name();
        let bytes = copy_file(fs, home, &source, home.pending(), &name)?;
        return Ok(Made { name, kind: FileKind::File, usage: Usage::file(bytes) });
    }
    let name = tree_name(id);
    fs.make_folder(home.pending(), &name)?;
    let mut usage = Usage::FOLDER;
    if depth == Depth::Infinity {
        let tree = fs.open_beneath(home.pending(), &name)?;
        usage = usage.plus(copy_folder(fs, home, &source, &tree)?);
    }
    Ok(Made { name, kind: FileKind::Folder, usage })
}

fn copy_folder(fs: &dyn Fs, home: &Home, source: &File, target: &File) -> Result<Usage> {
    let mut usage = Usage::default();
    // By name in their parents, so that few are open at a time.
    let mut ahead = vec![(source.clone(), target.clone(), Vec::new())];
    while let Some((source, target, name)) = ahead.pop() {
        let (source, target) = (fs.open_beneath(&source, &name)?, fs.open_beneath(&target, &name)?);
        for Entry { name, stat } in fs.names(&source, usize::MAX)? {
            match stat.kind {
                FileKind::File => {
                    let file = fs.open_beneath(&source, &name)?;
                    usage = usage.plus(Usage::file(copy_file(fs, home, &file, &target, &name)?));
                }
                FileKind::Folder => {
                    fs.make_folder(&target, &name)?;
                    usage = usage.plus(Usage::FOLDER);
                    ahead.push((source.clone(), target.clone(), name));
                }
                FileKind::Other => {}
            }
        }
        home.sync(fs, &[&target])?;
    }
    Ok(usage)
}

fn copy_file(fs: &dyn Fs, home: &Home, source: &File, folder: &File, name: &[u8]) -> Result<u64> {
    let file = fs.create(folder, name)?;
    let bytes = fs.copy(source, &file, u64::MAX)?;
    home.sync(fs, &[&file])?;
    Ok(bytes)
}

fn put_in_place(
    fs: &dyn Fs,
    to: &End,
    existing: Existing,
    made: &Made,
    id: UploadId,
) -> Result<(Copied, bool)> {
    let state = to.home.change();
    let (target, replaced) = target(fs, to, existing)?;
    let aside = Aside::set(fs, &to.home, &target, replaced.as_ref(), made.kind, id)?;
    // What was set aside is taken off when it is forgotten.
    let less = if aside.is_some() { Usage::default() } else { less_of(replaced.as_ref()) };
    let placed = to.home.allows(fs, &state, to.quota, less, made.usage).and_then(|()| {
        let name = &made.name;
        Ok(fs.rename(to.home.pending(), name, &target.folder, target.name, Existing::Replaced)?)
    });
    if let Err(error) = placed {
        aside.into_iter().for_each(|aside| aside.put_back(fs, &to.home, &target));
        return Err(error);
    }
    to.home.replaces(&state, less, made.usage);
    to.home.sync(fs, &[&target.folder])?;
    drop(state);
    let leaves_tree = aside.map_or(Ok(false), |aside| aside.forget(fs, &to.home))?;
    Ok((Copied { created: replaced.is_none(), usage: made.usage }, leaves_tree))
}

/// Clears away what a copy left that did not get its name, and gives the error back.
fn clear_after(fs: &dyn Fs, home: &Home, id: UploadId, error: Error) -> Error {
    let _ = fs.remove_file(home.pending(), &id.data_name());
    let _ = clear_tree(fs, home.pending(), &tree_name(id));
    error
}
