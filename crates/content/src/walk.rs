//! Walks through a folder and all below it, one entry after the other, in the byte order of names.
//!
//! It reads no file and sends nothing. Entries are those that listings show: a link is the file or folder
//! that it leads to. Invariants: however large the folders are, a walk keeps a bounded number of entries. A
//! link that leads back to a folder that it is in is left out, so a walk ends. Each folder is listed as any
//! listing is: on behalf of the owner of `io`, in turns with other owners.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

use plimsoll_io::{Entry, EntryCollector, FileKind, Io, ListingPage, Stat};
use plimsoll_store::{Error, Location, is_name};

use crate::Visibility;
use crate::limits::{LISTING_ENTRIES_MAX, WALK_ENTRIES_MAX, WALK_PAGE_ENTRIES};
use crate::listing::is_shown;

/// A walk in progress.
pub struct Walk {
    io: Io,
    /// The folders from the first one to the present one.
    levels: Vec<Level>,
}

/// An entry that a walk has reached. The entries of a folder follow it.
pub struct WalkEntry {
    /// The path from the first folder, with slashes.
    pub path: Vec<u8>,
    /// Its location, or [`Error::Path`] if its path is longer or deeper than one may be. The walk does not
    /// enter such a folder.
    pub location: Result<Location, Error>,
    /// Its metadata.
    pub stat: Stat,
}

struct Level {
    location: Location,
    /// The path from the first folder; with a slash at its end, unless it is empty.
    path: Vec<u8>,
    /// The device and inode.
    id: (u64, u64),
    /// The names of the entries to be visited, if not all are.
    only: Option<BTreeSet<Vec<u8>>>,
    /// The next entries.
    entries: VecDeque<Entry>,
    /// The name after which the entries continue that are not listed yet.
    after: Option<Vec<u8>>,
    is_listed: bool,
}

impl Level {
    fn new(location: Location, path: Vec<u8>, stat: &Stat) -> Level {
        let id = (stat.device, stat.inode);
        let entries = VecDeque::new();
        Level { location, path, id, only: None, entries, after: None, is_listed: false }
    }
}

impl Walk {
    /// Begins a walk through the folder at `top`; with `only`, through its entries of these names.
    ///
    /// # Errors
    /// As [`Location::list`]; [`Error::NotFound`] also for a file, and if a name of `only` is not in the
    /// folder.
    pub async fn begin(io: Io, top: Location, only: Option<BTreeSet<Vec<u8>>>) -> Result<Walk, Error> {
        let stat = top.stat(&io).await?;
        if stat.kind != FileKind::Folder {
            return Err(Error::NotFound);
        }
        let names = only.as_ref().map(BTreeSet::len);
        let level = Level { only, ..Level::new(top, Vec::new(), &stat) };
        let mut walk = Walk { io, levels: vec![level] };
        if let Some(names) = names {
            walk.list(names).await?;
            if walk.levels.iter().any(|level| level.entries.len() < names) {
                return Err(Error::NotFound);
            }
        }
        Ok(walk)
    }

    /// Returns the next entry, or `None` at the end. It can be called again after an error.
    ///
    /// # Errors
    /// As [`Location::list`], of a folder that [`Walk::leave`] leaves.
    pub async fn next(&mut self) -> Result<Option<WalkEntry>, Error> {
        loop {
            let Some(level) = self.levels.last_mut() else { return Ok(None) };
            let Some(entry) = level.entries.pop_front() else {
                if level.is_listed {
                    self.levels.pop();
                } else {
                    self.list(WALK_PAGE_ENTRIES).await?;
                }
                continue;
            };
            let location = level.location.entry(&entry.name);
            let path = [&*level.path, &entry.name].concat();
            if let (FileKind::Folder, Ok(folder)) = (entry.stat.kind, &location)
                && !self.enter(folder, &path, entry.clone())
            {
                continue;
            }
            return Ok(Some(WalkEntry { path, location, stat: entry.stat }));
        }
    }

    /// Skips the entries up to the one at `path`, which may have been removed meanwhile.
    ///
    /// # Errors
    /// As [`Location::stat`].
    pub async fn skip_to(&mut self, path: &[u8]) -> Result<(), Error> {
        for name in path.split(|byte| *byte == b'/') {
            let Some(level) = self.levels.last_mut() else { return Ok(()) };
            level.after = Some(name.to_vec());
            if !is_name(name) || name.is_empty() {
                return Ok(());
            }
            let Ok(location) = level.location.entry(name) else { return Ok(()) };
            let stat = match location.stat(&self.io).await {
                Ok(stat) if stat.kind == FileKind::Folder => stat,
                Ok(_) | Err(Error::NotFound) => return Ok(()),
                Err(error) => return Err(error),
            };
            let path = [&*level.path, name].concat();
            if !self.enter(&location, &path, Entry { name: name.to_vec(), stat }) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Leaves the present folder: its other entries are not visited.
    pub fn leave(&mut self) {
        self.levels.pop();
    }

    /// Enters a folder. Returns false if the walk is in it already.
    fn enter(&mut self, location: &Location, path: &[u8], Entry { name, stat }: Entry) -> bool {
        let id = (stat.device, stat.inode);
        // Some stores have no inodes, and no links.
        if stat.inode != 0 && self.levels.iter().any(|level| level.id == id) {
            return false;
        }
        let entries: usize = self.levels.iter().map(|level| level.entries.len()).sum();
        if let Some(level) = self.levels.last_mut()
            && entries > WALK_ENTRIES_MAX
        {
            // They are listed again when the walk comes back.
            level.entries.clear();
            (level.after, level.is_listed) = (Some(name), false);
        }
        self.levels.push(Level::new(location.clone(), [path, b"/"].concat(), &stat));
        true
    }

    /// Lists at most `limit` more entries of the present folder.
    async fn list(&mut self, limit: usize) -> Result<(), Error> {
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        let page = ListingPage { after: level.after.clone(), limit };
        let only = level.only.clone();
        // Of a few names, wherever they sort, a store must not select a page.
        let of_store = only.is_none().then_some(&page);
        let collector = PageCollector { page: page.clone(), only, entries: BTreeSet::new() };
        let listed = level.location.list(&self.io, LISTING_ENTRIES_MAX, of_store, collector).await?;
        level.is_listed = listed.len() <= limit;
        level.entries = listed.into_iter().take(limit).collect();
        if let Some(last) = level.entries.back() {
            level.after = Some(last.name.clone());
        }
        Ok(())
    }
}

/// Collects a page, and one entry more.
struct PageCollector {
    page: ListingPage,
    only: Option<BTreeSet<Vec<u8>>>,
    entries: BTreeSet<ByName>,
}

/// An entry in the byte order of names.
struct ByName(Entry);

impl Ord for ByName {
    fn cmp(&self, other: &ByName) -> std::cmp::Ordering {
        self.0.name.cmp(&other.0.name)
    }
}

impl PartialOrd for ByName {
    fn partial_cmp(&self, other: &ByName) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &ByName) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}

impl EntryCollector for PageCollector {
    type Output = Vec<Entry>;

    fn add(&mut self, entry: Entry) {
        let is_selected = is_shown(&entry, Visibility::Private)
            && self.only.as_ref().is_none_or(|only| only.contains(&entry.name))
            && self.page.begins_before(&entry.name);
        if is_selected {
            self.entries.insert(ByName(entry));
            if self.entries.len() > self.page.limit.saturating_add(1) {
                self.entries.pop_last();
            }
        }
    }

    fn write(&mut self, _: usize) -> ControlFlow<Vec<Entry>> {
        // At most a page, in order: nothing that takes long.
        ControlFlow::Break(std::mem::take(&mut self.entries).into_iter().map(|ByName(entry)| entry).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plimsoll_io::Fs as _;
    use plimsoll_io::sim::{Faults, Sim};

    use super::*;

    #[test]
    fn a_walk_visits_each_entry_once_however_many_there_are() {
        const LEVELS: usize = WALK_ENTRIES_MAX / WALK_PAGE_ENTRIES + 2;
        let sim = Sim::new(0, Faults::none());
        let host = sim.host("server");
        let (mut folder, mut paths) = (String::new(), Vec::new());
        for _ in 0..LEVELS {
            // The walk enters the folder before it visits the files beside it.
            for number in 0..WALK_PAGE_ENTRIES + 10 {
                paths.push(format!("{folder}{number:05}"));
            }
            folder.push_str("!/");
            paths.push(folder.trim_end_matches('/').to_owned());
        }
        host.disk().mkdir(format!("/{folder}")).unwrap();
        for path in paths.iter().filter(|path| !path.ends_with('!')) {
            host.disk().write(format!("/{path}"), "").unwrap();
        }
        paths.sort();
        let (io, root) = (host.io(), host.disk().open_root(Path::new("/")).unwrap());
        sim.run(&host, async move {
            let top = Location::in_folder(root, Vec::new(), None);
            let mut walk = Walk::begin(io, top, None).await.unwrap();
            let (mut visited, mut most) = (Vec::new(), 0);
            while let Some(entry) = walk.next().await.unwrap() {
                visited.push(String::from_utf8(entry.path).unwrap());
                most = most.max(walk.levels.iter().map(|level| level.entries.len()).sum());
            }
            assert!(most <= WALK_ENTRIES_MAX + WALK_PAGE_ENTRIES, "{most}");
            visited.sort();
            assert_eq!(visited.len(), paths.len());
            assert!(visited == paths);
        });
        assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    }
}
