//! A store in memory. It implements the interface of the crate `store` from outside, as an object store
//! would. It keeps no interrupted upload.

use std::collections::BTreeMap;
use std::future::ready;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use plimsoll_io::{Detached, Entry, FileKind, Io, ListingPage, Stat};
use plimsoll_store::backend::{
    BegunUpload, Destination, Ended, Ending, FileRequest, HomeBackend, HomeRequest, HomeResponse, Pending,
    RemoteFile, Removal, SentPart, StoreBackend, UploadBackend, UploadStart,
};
use plimsoll_store::{
    Begin, Committed, Copied, Depth, Error, Expected, HomeOwner, MoveResult, Path, RemovalKind, Removed,
    Terms, TrashInfo, Usage,
};

/// All homes. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct MemoryStore(Arc<Mutex<Entries>>);

/// The files and folders by account and path, without the homes themselves.
#[derive(Default)]
struct Entries(BTreeMap<(i64, Vec<u8>), Node>);

/// A file or folder.
#[derive(Clone)]
struct Node {
    stat: Stat,
    contents: Arc<[u8]>,
}

struct MemoryHome {
    owner: HomeOwner,
    store: MemoryStore,
}

struct MemoryUpload {
    home: MemoryHome,
    io: Io,
    terms: Terms,
    received: Vec<u8>,
}

fn node(io: &Io, kind: FileKind, contents: Vec<u8>) -> Node {
    let mut number = [0; 8];
    io.entropy(&mut number);
    let now = io.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (size, inode) = (contents.len() as u64, u64::from_le_bytes(number));
    let stat = Stat { kind, size, device: 0, inode, modified: now, changed: now, links: 1 };
    Node { stat, contents: contents.into() }
}

impl Entries {
    fn find(&self, account: i64, path: &Path) -> Result<&Node, Error> {
        self.0.get(&(account, path.as_bytes().to_vec())).ok_or(Error::NotFound)
    }

    /// Returns the paths below a folder, and the folder itself.
    fn tree(&self, account: i64, path: &Path) -> Vec<Vec<u8>> {
        let from = Bound::Included((account, path.as_bytes().to_vec()));
        let all = self.0.range((from, Bound::Unbounded)).map(|((of, path), _)| (*of, path));
        let own = all.take_while(|(of, found)| *of == account && found.starts_with(path.as_bytes()));
        let within = |found: &Vec<u8>| Path::parse(found).is_ok_and(|found| found.is_within(path));
        own.map(|(_, found)| found.clone()).filter(within).collect()
    }

    fn usage_of(&self, account: i64, tree: &[Vec<u8>]) -> Usage {
        let mut usage = Usage::default();
        for node in tree.iter().filter_map(|path| self.0.get(&(account, path.clone()))) {
            match node.stat.kind {
                FileKind::Folder => usage.folders += 1,
                _ => (usage.files, usage.bytes) = (usage.files + 1, usage.bytes + node.stat.size),
            }
        }
        usage
    }

    fn check_parent(&self, account: i64, path: &Path) -> Result<(), Error> {
        let end = path.as_bytes().iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        match self.0.get(&(account, path.as_bytes()[..end].to_vec())) {
            _ if path.is_root() => Err(Error::Home),
            _ if end == 0 => Ok(()),
            Some(parent) if parent.stat.kind == FileKind::Folder => Ok(()),
            _ => Err(Error::NoFolder),
        }
    }

    fn make_folder(&mut self, io: &Io, account: i64, path: &Path, parents: bool) -> Result<(), Error> {
        if path.is_root() || self.find(account, path).is_ok() {
            return Err(Error::AlreadyExists);
        }
        if let Some(parent) = path.parent().filter(|parent| parents && !parent.is_top()) {
            match self.make_folder(io, account, &parent, true) {
                Err(Error::AlreadyExists) => {}
                made => made?,
            }
        }
        self.check_parent(account, path)?;
        self.0.insert((account, path.as_bytes().to_vec()), node(io, FileKind::Folder, Vec::new()));
        Ok(())
    }

    /// Returns the tree that a removal removes.
    fn removed(&self, account: i64, removal: &Removal) -> Result<Vec<Vec<u8>>, Error> {
        let Removal { path, what, condition, .. } = removal;
        if path.is_root() {
            return Err(Error::Home);
        }
        let stat = self.find(account, path)?.stat;
        let tree = self.tree(account, path);
        match (what, stat.kind) {
            (RemovalKind::File, FileKind::Folder) => Err(Error::IsFolder),
            (RemovalKind::EmptyFolder, FileKind::File) => Err(Error::NotFolder),
            (RemovalKind::EmptyFolder, _) if tree.len() > 1 => Err(Error::NotEmpty),
            _ if !condition.holds(Some(&stat)) => Err(Error::Precondition),
            _ => Ok(tree),
        }
    }

    fn remove(&mut self, account: i64, tree: &[Vec<u8>]) -> Usage {
        let usage = self.usage_of(account, tree);
        tree.iter().for_each(|path| drop(self.0.remove(&(account, path.clone()))));
        usage
    }

    /// Checks a move or copy. Returns the tree that it replaces.
    fn replaced(&self, account: i64, from: &Path, to: &Destination) -> Result<Vec<Vec<u8>>, Error> {
        self.find(account, from)?;
        if account == to.owner.account && (to.path.is_within(from) || from.is_within(&to.path)) {
            return Err(Error::IntoItself);
        }
        self.check_parent(to.owner.account, &to.path)?;
        let replaced = self.tree(to.owner.account, &to.path);
        if replaced.is_empty() || to.replaces { Ok(replaced) } else { Err(Error::AlreadyExists) }
    }

    /// Copies a tree. Returns its paths, the copy's usage, and whether the path was new.
    fn copy(
        &mut self,
        account: i64,
        (from, depth): (&Path, Depth),
        to: &Destination,
    ) -> Result<(Vec<Vec<u8>>, Copied), Error> {
        let replaced = self.replaced(account, from, to)?;
        self.remove(to.owner.account, &replaced);
        let mut tree = self.tree(account, from);
        tree.truncate(if depth == Depth::Zero { 1 } else { tree.len() });
        for path in &tree {
            let node = self.0[&(account, path.clone())].clone();
            let copy = [to.path.as_bytes(), &path[from.as_bytes().len()..]].concat();
            self.0.insert((to.owner.account, copy), node);
        }
        let usage = self.usage_of(account, &tree);
        Ok((tree, Copied { created: replaced.is_empty(), usage }))
    }

    /// Checks whether an upload may now be committed. Returns whether its path is new.
    fn check_upload(&self, account: i64, terms: &Terms, bytes: u64) -> Result<bool, Error> {
        self.check_parent(account, &terms.to)?;
        let before = self.find(account, &terms.to).ok().map(|node| node.stat);
        if before.is_some_and(|stat| stat.kind == FileKind::Folder) {
            return Err(Error::IsFolder);
        }
        let used = self.usage_of(account, &self.tree(account, &Path::root())).bytes;
        if terms.quota.bytes.is_some_and(|most| used + bytes > most) {
            return Err(Error::Quota);
        }
        if terms.condition.holds(before.as_ref()) { Ok(before.is_none()) } else { Err(Error::Precondition) }
    }
}

impl MemoryHome {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.store.0.lock().unwrap()
    }

    fn execute(&self, io: &Io, request: HomeRequest) -> Result<HomeResponse, Error> {
        let (account, mut entries) = (self.owner.account, self.entries());
        Ok(match request {
            HomeRequest::Usage => {
                HomeResponse::Usage(entries.usage_of(account, &entries.tree(account, &Path::root())))
            }
            HomeRequest::Stat(path) if path.is_root() => node(io, FileKind::Folder, Vec::new()).stat.into(),
            HomeRequest::Stat(path) => entries.find(account, &path)?.stat.into(),
            HomeRequest::MakeFolder { path, parents, .. } => {
                HomeResponse::Done(entries.make_folder(io, account, &path, parents)?)
            }
            HomeRequest::CheckRemoval(removal) => {
                HomeResponse::Done(entries.removed(account, &removal).map(drop)?)
            }
            HomeRequest::Remove(removal) => {
                let tree = entries.removed(account, &removal)?;
                HomeResponse::Removed(Removed { usage: entries.remove(account, &tree), trashed: None })
            }
            HomeRequest::SetModified { path, modified } => {
                entries.find(account, &path)?;
                let node = entries.0.get_mut(&(account, path.as_bytes().to_vec())).unwrap();
                node.stat.modified = modified;
                node.stat.into()
            }
            HomeRequest::CheckRename(path, to) | HomeRequest::CheckCopy(path, to) => {
                HomeResponse::Done(entries.replaced(account, &path, &to).map(drop)?)
            }
            HomeRequest::Rename(path, to) => {
                let (tree, Copied { created, .. }) = entries.copy(account, (&path, Depth::Infinity), &to)?;
                entries.remove(account, &tree);
                HomeResponse::Moved(MoveResult { created })
            }
            HomeRequest::Copy(path, to, depth) => {
                HomeResponse::Copied(entries.copy(account, (&path, depth), &to)?.1)
            }
            // It has no trash.
            HomeRequest::TrashInfo => {
                HomeResponse::TrashInfo(TrashInfo { usage: Usage::default(), time: Duration::ZERO })
            }
            HomeRequest::Trash(_) => HomeResponse::Trash(Vec::new()),
            HomeRequest::DropTrashed(None) => {
                HomeResponse::Removed(Removed { usage: Usage::default(), trashed: None })
            }
            HomeRequest::PendingAt(_) | HomeRequest::ResumableUploads => HomeResponse::Uploads(Vec::new()),
            HomeRequest::CreateResumable(_) => return Err(Error::TooManyUploads),
            HomeRequest::Digest(..) => return Err(Error::Busy),
            HomeRequest::Restore { .. }
            | HomeRequest::DropTrashed(Some(_))
            | HomeRequest::SetUploadLength { .. }
            | HomeRequest::ResumableUpload(_)
            | HomeRequest::CompletedUpload(_)
            | HomeRequest::DiscardUpload(_)
            | HomeRequest::EndOf { .. } => return Err(Error::NotFound),
        })
    }

    fn read(&self, path: &Path, request: &FileRequest) -> Result<RemoteFile, Error> {
        let Node { stat, contents } = self.entries().find(self.owner.account, path)?.clone();
        if stat.kind == FileKind::Folder {
            return Err(Error::IsFolder);
        }
        let range = request.fields.iter().find(|(name, _)| *name == "Range");
        let start =
            range.and_then(|(_, range)| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
        let (part, start) = match start {
            Some(start) if start < stat.size => {
                (SentPart::Range(start..stat.size), usize::try_from(start).unwrap())
            }
            _ => (SentPart::Whole, 0),
        };
        Ok(RemoteFile::of_bytes(stat, part, contents[start..].to_vec()))
    }

    fn names(&self, path: &Path, entries_max: usize) -> Result<Vec<Entry>, Error> {
        let (account, entries) = (self.owner.account, self.entries());
        if !path.is_root() && entries.find(account, path)?.stat.kind != FileKind::Folder {
            return Err(Error::NotFolder);
        }
        let mut named = Vec::new();
        for found in entries.tree(account, path) {
            let inner = found[path.as_bytes().len()..].strip_prefix(b"/").unwrap_or(&found);
            if found != path.as_bytes() && !inner.contains(&b'/') {
                named.push(Entry { name: inner.to_vec(), stat: entries.0[&(account, found.clone())].stat });
            }
        }
        if named.len() > entries_max { Err(Error::TooManyEntries) } else { Ok(named) }
    }

    fn begin(&self, io: &Io, start: UploadStart) -> Result<BegunUpload, Error> {
        let (terms, announced) = match start {
            UploadStart::Whole(terms, Expected { bytes, .. }) => (terms, bytes),
            UploadStart::From { terms, begin: Begin::Start | Begin::Offset(0), .. } => (terms, None),
            _ => return Err(Error::NotFound),
        };
        self.entries().check_upload(self.owner.account, &terms, announced.unwrap_or(0))?;
        let home = MemoryHome { owner: self.owner.clone(), store: self.store.clone() };
        let (to, io) = (terms.to.clone(), io.clone());
        let upload = Box::new(MemoryUpload { home, io, terms, received: Vec::new() });
        Ok(BegunUpload { to, announced, start_offset: 0, upload })
    }
}

impl MemoryUpload {
    fn commit(&mut self, modified: Option<Duration>) -> Result<Committed, Error> {
        let mut node = node(&self.io, FileKind::File, std::mem::take(&mut self.received));
        node.stat.modified = modified.unwrap_or(node.stat.modified);
        let (account, mut entries, stat) = (self.home.owner.account, self.home.entries(), node.stat);
        let created = entries.check_upload(account, &self.terms, stat.size)?;
        entries.0.insert((account, self.terms.to.as_bytes().to_vec()), node);
        Ok(Committed { created, has_spare_name: false, stat })
    }
}

impl StoreBackend for MemoryStore {
    fn home(self: Arc<Self>, owner: HomeOwner) -> Arc<dyn HomeBackend> {
        Arc::new(MemoryHome { owner, store: (*self).clone() })
    }

    fn check<'a>(&'a self, _: &'a Io) -> Pending<'a, ()> {
        Box::pin(ready(Ok(())))
    }
}

impl HomeBackend for MemoryHome {
    fn owner(&self) -> &HomeOwner {
        &self.owner
    }

    fn call<'a>(&'a self, io: &'a Io, request: HomeRequest) -> Pending<'a, HomeResponse> {
        Box::pin(ready(self.execute(io, request)))
    }

    fn list<'a>(
        &'a self,
        _: &'a Io,
        path: &'a Path,
        entries_max: usize,
        page: Option<&'a ListingPage>,
    ) -> Pending<'a, Vec<Entry>> {
        Box::pin(ready(self.names(path, if page.is_some() { usize::MAX } else { entries_max })))
    }

    fn open<'a>(&'a self, _: &'a Io, path: &'a Path, request: FileRequest) -> Pending<'a, RemoteFile> {
        Box::pin(ready(self.read(path, &request)))
    }

    fn begin_upload<'a>(&'a self, io: &'a Io, start: UploadStart) -> Pending<'a, BegunUpload> {
        Box::pin(ready(self.begin(io, start)))
    }
}

impl UploadBackend for MemoryUpload {
    fn write(&mut self, pieces: Vec<Detached>) -> Pending<'_, ()> {
        pieces.iter().for_each(|piece| self.received.extend_from_slice(piece));
        Box::pin(ready(Ok(())))
    }

    fn end(&mut self, ending: Ending) -> Pending<'_, Ended> {
        Box::pin(ready(match ending {
            Ending::Commit { digests, .. } if !digests.is_empty() => Err(Error::Digest),
            Ending::Commit { modified, .. } => self.commit(modified).map(Ended::Committed),
            Ending::Pause => Err(Error::NotFound),
            Ending::Abort => Ok(Ended::Aborted),
        }))
    }
}
