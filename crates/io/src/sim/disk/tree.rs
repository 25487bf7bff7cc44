//! The nodes of a simulated disk and the resolution of paths through them.
//!
//! It is not a file system for callers ([`super::SimDisk`] is): no locks, no clock, no power to be cut.
//! Invariant: a walk beneath a folder never leaves it, whatever links and `..` are on the path.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::journal::Edit;
use crate::file::{FileKind, Stat};
use crate::limits::NAME_BYTES_MAX;
use crate::sim::limits::SYMLINKS_MAX;

/// The volume of the root folder.
const VOLUME: u64 = 1;

/// The inode number of the root folder.
pub(super) const ROOT: u64 = 2;

/// A file's contents: shared with those of its last sync until one of the two changes.
pub(super) type Bytes = Arc<Vec<u8>>;

/// The type and contents of a node.
#[derive(Clone)]
pub(super) enum Body {
    File(Bytes),
    Folder(BTreeMap<Vec<u8>, u64>),
    Link(Vec<u8>),
    Special,
}

#[derive(Clone)]
pub(super) struct Node {
    pub(super) body: Body,
    pub(super) modified: Duration,
    pub(super) changed: Duration,
    /// Whether opening it is refused, like a file without read permission.
    pub(super) forbidden: bool,
    /// Whether it has a name: nothing can be created in a removed folder.
    pub(super) named: bool,
    pub(super) synced: Synced,
    /// Whether a sync of it has failed: no later one makes anything durable.
    pub(super) sync_failed: bool,
    /// The volume that it is on.
    pub(super) volume: u64,
}

/// The state of a file that is sure to survive a power cut.
#[derive(Clone)]
pub(super) struct Synced {
    pub(super) bytes: Bytes,
    pub(super) modified: Duration,
}

impl Node {
    fn new(body: Body, now: Duration) -> Node {
        Node {
            body,
            modified: now,
            changed: now,
            forbidden: false,
            named: false,
            synced: Synced { bytes: Bytes::default(), modified: now },
            sync_failed: false,
            volume: VOLUME,
        }
    }

    pub(super) fn kind(&self) -> FileKind {
        match &self.body {
            Body::File(_) => FileKind::File,
            Body::Folder(_) => FileKind::Folder,
            Body::Link(_) | Body::Special => FileKind::Other,
        }
    }

    pub(super) fn size(&self) -> u64 {
        match &self.body {
            Body::File(bytes) => bytes.len() as u64,
            _ => 0,
        }
    }

    /// Returns a file's bytes.
    pub(super) fn bytes(&self) -> io::Result<&Bytes> {
        match &self.body {
            Body::File(bytes) => Ok(bytes),
            Body::Folder(_) => Err(io::ErrorKind::IsADirectory.into()),
            Body::Link(_) | Body::Special => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Makes the contents of a file durable.
    pub(super) fn sync(&mut self) {
        if let (Body::File(bytes), false) = (&self.body, self.sync_failed) {
            self.synced = Synced { bytes: Arc::clone(bytes), modified: self.modified };
        }
    }
}

/// All nodes ever created: a node without a name lives on for its open handles.
pub(super) struct Tree {
    nodes: BTreeMap<u64, Node>,
    inode_next: u64,
}

/// Whether a walk may leave the folder it starts in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Walk {
    Anywhere,
    Beneath,
}

impl Tree {
    pub(super) fn new(now: Duration) -> Tree {
        let root = Node { named: true, ..Node::new(Body::Folder(BTreeMap::new()), now) };
        Tree { nodes: BTreeMap::from([(ROOT, root)]), inode_next: ROOT + 1 }
    }

    /// Creates a tree from the nodes that survived a power cut. Folders are empty until their names are
    /// [restored](Tree::restore).
    pub(super) fn of(nodes: impl IntoIterator<Item = (u64, Node)>, inode_next: u64) -> Tree {
        Tree { nodes: nodes.into_iter().collect(), inode_next }
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (u64, &Node)> {
        self.nodes.iter().map(|(inode, node)| (*inode, node))
    }

    /// Returns the number that the next node gets; no number is reused, also after a power cut.
    pub(super) fn inode_next(&self) -> u64 {
        self.inode_next
    }

    pub(super) fn node(&self, inode: u64) -> io::Result<&Node> {
        self.nodes.get(&inode).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    pub(super) fn node_mut(&mut self, inode: u64) -> io::Result<&mut Node> {
        self.nodes.get_mut(&inode).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    pub(super) fn folder(&self, inode: u64) -> io::Result<&BTreeMap<Vec<u8>, u64>> {
        match &self.node(inode)?.body {
            Body::Folder(names) => Ok(names),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Returns the node that has `name` in `folder`.
    pub(super) fn child(&self, folder: u64, name: &[u8]) -> io::Result<u64> {
        self.folder(folder)?.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Whether `folder` is `above` or somewhere below it.
    pub(super) fn is_below(&self, folder: u64, above: u64) -> bool {
        let below =
            |names: &BTreeMap<Vec<u8>, u64>| names.values().any(|child| self.is_below(folder, *child));
        folder == above || self.folder(above).is_ok_and(below)
    }

    /// Returns the top folder of the volume that `folder` is on.
    pub(super) fn volume_top(&self, folder: u64) -> io::Result<u64> {
        let is_parent =
            |node: &Node| matches!(&node.body, Body::Folder(names) if names.values().any(|it| *it == folder));
        match self.nodes.iter().find(|(_, node)| is_parent(node)) {
            Some((parent, node)) if node.volume == self.node(folder)?.volume => self.volume_top(*parent),
            _ => Ok(folder),
        }
    }

    /// Makes a folder and all below it a volume of its own.
    pub(super) fn mount(&mut self, folder: u64) -> io::Result<()> {
        let (volume, mut ahead) = (VOLUME + folder, vec![folder]);
        while let Some(inode) = ahead.pop() {
            let node = self.node_mut(inode)?;
            node.volume = volume;
            if let Body::Folder(names) = &node.body {
                ahead.extend(names.values());
            }
        }
        Ok(())
    }

    /// Whether a node is the top of a volume that is mounted in `parent`.
    pub(super) fn is_mounted(&self, parent: u64, inode: u64) -> io::Result<bool> {
        Ok(self.node(parent)?.volume != self.node(inode)?.volume)
    }

    /// Adds a node to the volume of `folder`, without a name yet.
    pub(super) fn add(&mut self, folder: u64, body: Body, now: Duration) -> u64 {
        let inode = self.inode_next;
        let volume = self.nodes.get(&folder).map_or(VOLUME, |node| node.volume);
        self.nodes.insert(inode, Node { volume, ..Node::new(body, now) });
        self.inode_next += 1;
        inode
    }

    /// Assigns a name to a node or removes it.
    pub(super) fn edit(&mut self, edit: &Edit, now: Duration) -> io::Result<()> {
        let parent = self.node_mut(edit.folder)?;
        let Body::Folder(names) = &mut parent.body else { return Err(io::ErrorKind::NotADirectory.into()) };
        let before = match edit.inode {
            Some(inode) => names.insert(edit.name.clone(), inode),
            None => names.remove(&edit.name),
        };
        (parent.modified, parent.changed) = (now, now);
        for (inode, named) in before.map(|it| (it, false)).into_iter().chain(edit.inode.map(|it| (it, true)))
        {
            let node = self.node_mut(inode)?;
            (node.named, node.changed) = (named, now);
        }
        Ok(())
    }

    /// Restores a name after a power cut. Returns false if its folder or its node is lost.
    pub(super) fn restore(&mut self, folder: u64, name: &[u8], inode: u64) -> bool {
        if !self.nodes.contains_key(&inode) {
            return false;
        }
        match self.nodes.get_mut(&folder).map(|node| &mut node.body) {
            Some(Body::Folder(names)) => names.insert(name.to_owned(), inode).is_none(),
            _ => false,
        }
    }

    /// Resolves `name` from the last node of `inodes`, the nodes from the start of the walk to the current
    /// folder. Returns the nodes up to the one that `name` stands for.
    pub(super) fn walk(&self, mut inodes: Vec<u64>, name: &[u8], walk: Walk) -> io::Result<Vec<u64>> {
        let mut ahead: Vec<Vec<u8>> = Vec::new();
        self.enter_path(&mut inodes, &mut ahead, name, walk)?;
        let mut links = 0;
        while let Some(step) = ahead.pop() {
            let here = *inodes.last().ok_or(io::ErrorKind::NotFound)?;
            let names = self.folder(here)?;
            match &step[..] {
                b"" | b"." => continue,
                b".." => step_back(&mut inodes, walk)?,
                long if long.len() > NAME_BYTES_MAX => return Err(io::ErrorKind::NotFound.into()),
                name => inodes.push(*names.get(name).ok_or(io::ErrorKind::NotFound)?),
            }
            let Some(target) = self.link_at(&inodes)? else { continue };
            links += 1;
            if links > SYMLINKS_MAX {
                return Err(io::ErrorKind::NotFound.into());
            }
            inodes.pop();
            self.enter_path(&mut inodes, &mut ahead, target, walk)?;
        }
        Ok(inodes)
    }

    /// Puts the components of `path` before those that are left; an absolute path starts at the root.
    fn enter_path(
        &self,
        inodes: &mut Vec<u64>,
        ahead: &mut Vec<Vec<u8>>,
        path: &[u8],
        walk: Walk,
    ) -> io::Result<()> {
        if path.contains(&0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if path.starts_with(b"/") {
            if walk == Walk::Beneath {
                return Err(io::ErrorKind::NotFound.into());
            }
            inodes.clear();
            inodes.push(ROOT);
        }
        ahead.extend(path.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
        Ok(())
    }

    fn link_at(&self, inodes: &[u64]) -> io::Result<Option<&[u8]>> {
        let here = inodes.last().ok_or(io::ErrorKind::NotFound)?;
        Ok(match &self.node(*here)?.body {
            Body::Link(target) => Some(target),
            _ => None,
        })
    }

    pub(super) fn stat(&self, inode: u64) -> io::Result<Stat> {
        let node = self.node(inode)?;
        Ok(Stat {
            kind: node.kind(),
            size: node.size(),
            device: node.volume,
            inode,
            modified: node.modified,
            changed: node.changed,
            links: u64::from(node.named),
        })
    }
}

fn step_back(inodes: &mut Vec<u64>, walk: Walk) -> io::Result<()> {
    if inodes.len() > 1 {
        inodes.pop();
        return Ok(());
    }
    match walk {
        // The parent of the root is the root.
        Walk::Anywhere => Ok(()),
        Walk::Beneath => Err(io::ErrorKind::NotFound.into()),
    }
}
