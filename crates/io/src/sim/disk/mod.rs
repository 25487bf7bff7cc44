//! A disk in memory: its contents are set by tests, and used by protocols and stores through
//! [`crate::Fs`].
//!
//! It is lossy, like a real one: unsynced contents and names may be lost when the power is cut.
//! Invariants: `changed` grows with every change; a removed file stays readable through open handles;
//! changes by a test itself are durable at once.

mod cold;
mod files;
mod injected_faults;
mod journal;
mod planted;
mod power;
mod tree;
mod view;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use injected_faults::{Call, Moment};
pub use power::Unsynced;
pub(super) use view::{View, ViewThread};

use super::clock::Clock;
use crate::file::{File, Handle, split_boundary};
use injected_faults::InjectedFaults;
use journal::{Change, Journal};
use tree::{Body, Tree, Walk};

/// A tree of files, shared by a test, a host's engine and its offloaded jobs. Paths start at `/`.
pub struct SimDisk {
    state: Mutex<State>,
}

struct State {
    clock: Arc<Clock>,
    last_change: Duration,
    /// Power cuts that the disk has been through: handles from before a cut are invalid after it.
    cuts: u32,
    tree: Tree,
    journal: Journal,
    injected_faults: InjectedFaults,
    /// Files that are not in memory, by inode number, with the number of bytes at their start that are.
    cold: HashMap<u64, u64>,
    /// Files that cannot be read from an offset on, by inode number.
    damaged: HashMap<u64, u64>,
    /// Reads that would have waited for the disk where they block other tasks.
    stalls: u64,
    /// Whether [`Fs::is_in_memory`](crate::Fs::is_in_memory).
    is_in_memory: bool,
}

impl SimDisk {
    pub(super) fn new(clock: Arc<Clock>) -> Arc<SimDisk> {
        let now = clock.since_1970();
        let state = State {
            clock,
            last_change: now,
            cuts: 0,
            tree: Tree::new(now),
            journal: Journal::default(),
            injected_faults: InjectedFaults::none(),
            cold: HashMap::new(),
            damaged: HashMap::new(),
            stalls: 0,
            is_in_memory: false,
        };
        Arc::new(SimDisk { state: Mutex::new(state) })
    }

    /// Makes the file system one [in memory](crate::Fs::is_in_memory).
    pub fn keep_in_memory(&self) {
        self.lock().is_in_memory = true;
    }

    /// Returns the disk that a machine would find if its power were cut now, with the same inode
    /// numbers. This disk does not change.
    pub fn after_power_cut(&self, unsynced: Unsynced) -> Arc<SimDisk> {
        let state = self.lock();
        let (tree, journal) = power::after_cut(&state.tree, &state.journal, unsynced);
        let found = State {
            clock: Arc::clone(&state.clock),
            last_change: state.last_change,
            cuts: state.cuts + 1,
            tree,
            journal,
            injected_faults: InjectedFaults::none(),
            cold: HashMap::new(),
            damaged: HashMap::new(),
            stalls: 0,
            is_in_memory: state.is_in_memory,
        };
        Arc::new(SimDisk { state: Mutex::new(found) })
    }

    /// Cuts the power: from now on every call fails, and its machine sends nothing.
    pub fn cut_power(&self) {
        self.lock().injected_faults.cut();
    }

    /// Cuts the power at a call, counted as [`SimDisk::calls`] does: the next is `calls() + 1`.
    pub fn cut_at(&self, call: u64, moment: Moment) {
        self.lock().injected_faults.cut_at(call, moment);
    }

    /// Whether the power is cut.
    pub fn is_cut(&self) -> bool {
        self.lock().injected_faults.is_cut()
    }

    /// Returns the number of calls that change or sync something, failed calls included. Changes by a
    /// test itself are not counted.
    pub fn calls(&self) -> u64 {
        self.lock().injected_faults.calls()
    }

    /// Makes one call fail, counted as by [`SimDisk::calls`], without any effect.
    pub fn fail_at(&self, call: u64, kind: io::ErrorKind) {
        self.lock().injected_faults.fail_at(call, kind);
    }

    /// Makes the next call of one kind fail, without any effect; two calls of this make the next two
    /// fail. After a failed sync, a later one that succeeds does not make the same changes durable.
    pub fn fail_next(&self, call: Call, kind: io::ErrorKind) {
        self.lock().injected_faults.fail_next(call, kind);
    }

    /// Limits the free space to this many bytes of contents; with none, nothing new can be created
    /// either. Removing or truncating files frees space.
    pub fn full_after(&self, bytes: u64) {
        self.lock().injected_faults.set_room(bytes);
    }

    /// Attaches the disk to a machine's clock, and advances that to the disk's time, so that time never
    /// goes back.
    pub(super) fn join(&self, clock: &Arc<Clock>) {
        let mut state = self.lock();
        clock.move_to_1970(state.last_change.max(state.clock.since_1970()));
        state.clock = Arc::clone(clock);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state, or an error if the power is cut.
    fn powered(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.lock();
        state.injected_faults.power()?;
        Ok(state)
    }
}

impl State {
    /// Returns the time for a change: the clock's, and later than that of every other change.
    fn tick(&mut self) -> Duration {
        self.last_change = self.clock.since_1970().max(self.last_change + Duration::from_nanos(1));
        self.last_change
    }

    /// Returns the inode number of an open file.
    fn inode_of(&self, file: &File) -> io::Result<u64> {
        match *file.handle() {
            Handle::Simulated { inode, cuts, .. } if cuts == self.cuts => Ok(inode),
            Handle::Simulated { .. } => Err(io::Error::other("the file was open when the power was cut")),
            Handle::Descriptor(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Returns the inode number of a file that was opened for writing.
    fn written(&self, file: &File) -> io::Result<u64> {
        match file.handle() {
            Handle::Simulated { writes: false, .. } => {
                Err(io::Error::other("the file was not opened to be written"))
            }
            _ => self.inode_of(file),
        }
    }

    fn opened(&self, inode: u64, writes: bool) -> File {
        File::new(Handle::Simulated { inode, cuts: self.cuts, writes })
    }

    fn follow(&self, inodes: Vec<u64>, name: &[u8], walk: Walk) -> io::Result<u64> {
        self.tree.walk(inodes, name, walk)?.pop().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the path of nodes to `name` beneath `root`, by the rules of [`crate::Fs::open_beneath`].
    fn walk_beneath(&self, root: u64, name: &[u8]) -> io::Result<Vec<u64>> {
        let (folder, rest) = split_boundary(name);
        let top = self.follow(vec![root], folder.unwrap_or_default(), Walk::Beneath)?;
        if rest.is_empty() {
            // A boundary may end the name of a file, too.
            return Ok(vec![top]);
        }
        self.tree.walk(vec![top], rest, Walk::Beneath)
    }

    fn open(&self, mut inodes: Vec<u64>) -> io::Result<File> {
        let inode = inodes.pop().ok_or(io::ErrorKind::NotFound)?;
        if self.tree.node(inode)?.forbidden {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(self.opened(inode, false))
    }

    /// Changes names, as a whole.
    fn change_names(&mut self, change: Change, now: Duration) -> io::Result<()> {
        for edit in &change.edits {
            self.tree.edit(edit, now)?;
        }
        self.journal.add(change);
        Ok(())
    }

    /// Changes the contents of a file.
    fn change_bytes(
        &mut self,
        inode: u64,
        len: u64,
        now: Duration,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        let node = self.tree.node_mut(inode)?;
        let old = node.bytes()?.len() as u64;
        let new_len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.injected_faults.resize(old, len)?;
        if let Body::File(bytes) = &mut node.body {
            let bytes = Arc::make_mut(bytes);
            bytes.resize(new_len, 0);
            change(bytes);
        }
        (node.modified, node.changed) = (now, now);
        Ok(())
    }

    /// Makes the contents of a file, or the names in a folder, durable.
    fn sync(&mut self, inode: u64) -> io::Result<()> {
        let node = self.tree.node_mut(inode)?;
        node.sync();
        if matches!(node.body, Body::Folder(_)) {
            self.journal.sync(inode);
        }
        Ok(())
    }

    /// Records a failed sync: the changes it should have made durable never will be.
    fn lose_unsynced(&mut self, file: &File) {
        let Ok(inode) = self.inode_of(file) else { return };
        self.journal.lose(inode);
        if let Ok(node) = self.tree.node_mut(inode) {
            node.sync_failed = true;
        }
    }
}
