//! The nodes of a simulated disk and how a name is followed through them.
//!
//! It is not a file system for callers ([`super::SimDisk`] is): no locks, no clock. What must hold: a walk
//! beneath a folder never leaves it, whatever links and `..` are on the way.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::file::{FileKind, Stat};

/// Links that one walk follows, as Linux's.
const LINKS_MAX: usize = 40;
/// Bytes of one name, as Linux's.
const NAME_BYTES_MAX: usize = 255;
/// The number of the root folder.
pub(super) const ROOT: u64 = 2;

/// What a node is and holds.
pub(super) enum Body {
    File(Vec<u8>),
    Folder(BTreeMap<Vec<u8>, u64>),
    Link(Vec<u8>),
    Special,
}

pub(super) struct Node {
    pub(super) body: Body,
    pub(super) modified: Duration,
    pub(super) changed: Duration,
    /// Opening it is refused, as without the right to read.
    pub(super) forbidden: bool,
}

/// All nodes there have ever been: one without a name lives on, for whoever has it open.
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
        let root =
            Node { body: Body::Folder(BTreeMap::new()), modified: now, changed: now, forbidden: false };
        Tree { nodes: BTreeMap::from([(ROOT, root)]), inode_next: ROOT + 1 }
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

    /// Gives `name` in `folder` to a new node.
    pub(super) fn add(&mut self, folder: u64, name: &[u8], body: Body, now: Duration) -> io::Result<u64> {
        let inode = self.inode_next;
        let parent = self.node_mut(folder)?;
        let Body::Folder(names) = &mut parent.body else { return Err(io::ErrorKind::NotADirectory.into()) };
        names.insert(name.to_owned(), inode);
        (parent.modified, parent.changed) = (now, now);
        self.nodes.insert(inode, Node { body, modified: now, changed: now, forbidden: false });
        self.inode_next += 1;
        Ok(inode)
    }

    /// Takes `name` out of `folder`.
    pub(super) fn unlink(&mut self, folder: u64, name: &[u8], now: Duration) -> io::Result<()> {
        let parent = self.node_mut(folder)?;
        let Body::Folder(names) = &mut parent.body else { return Err(io::ErrorKind::NotADirectory.into()) };
        let inode = names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        (parent.modified, parent.changed) = (now, now);
        self.node_mut(inode)?.changed = now;
        Ok(())
    }

    /// Follows `name` from the last of `way`, the folders from the start of the walk to where it stands;
    /// returns the way to what `name` stands for.
    pub(super) fn walk(&self, mut way: Vec<u64>, name: &[u8], walk: Walk) -> io::Result<Vec<u64>> {
        let mut ahead: Vec<Vec<u8>> = Vec::new();
        self.enter_path(&mut way, &mut ahead, name, walk)?;
        let mut links = 0;
        while let Some(step) = ahead.pop() {
            let here = *way.last().ok_or(io::ErrorKind::NotFound)?;
            let names = self.folder(here)?;
            match &step[..] {
                b"" | b"." => continue,
                b".." => step_back(&mut way, walk)?,
                long if long.len() > NAME_BYTES_MAX => return Err(io::ErrorKind::NotFound.into()),
                name => way.push(*names.get(name).ok_or(io::ErrorKind::NotFound)?),
            }
            let Some(target) = self.link_at(&way)? else { continue };
            links += 1;
            if links > LINKS_MAX {
                return Err(io::ErrorKind::NotFound.into());
            }
            way.pop();
            self.enter_path(&mut way, &mut ahead, target, walk)?;
        }
        Ok(way)
    }

    /// Puts the steps of `path` before those that are ahead; an absolute one starts over.
    fn enter_path(
        &self,
        way: &mut Vec<u64>,
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
            way.clear();
            way.push(ROOT);
        }
        ahead.extend(path.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
        Ok(())
    }

    fn link_at(&self, way: &[u64]) -> io::Result<Option<&[u8]>> {
        let here = way.last().ok_or(io::ErrorKind::NotFound)?;
        Ok(match &self.node(*here)?.body {
            Body::Link(target) => Some(target),
            _ => None,
        })
    }

    pub(super) fn stat(&self, inode: u64) -> io::Result<Stat> {
        let node = self.node(inode)?;
        let (kind, size) = match &node.body {
            Body::File(bytes) => (FileKind::File, bytes.len() as u64),
            Body::Folder(_) => (FileKind::Folder, 0),
            Body::Link(_) | Body::Special => (FileKind::Other, 0),
        };
        Ok(Stat { kind, size, inode, modified: node.modified, changed: node.changed })
    }
}

fn step_back(way: &mut Vec<u64>, walk: Walk) -> io::Result<()> {
    if way.len() > 1 {
        way.pop();
        return Ok(());
    }
    match walk {
        // The parent of the root is the root.
        Walk::Anywhere => Ok(()),
        Walk::Beneath => Err(io::ErrorKind::NotFound.into()),
    }
}
