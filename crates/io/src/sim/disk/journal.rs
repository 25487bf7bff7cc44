//! Names in folders that a power cut may revert: the durable state, and the changes since.
//!
//! It knows no contents and draws no random numbers. Invariants: of two changes of one name the later
//! never survives without the earlier; a change of several names survives as a whole or not at all;
//! names that a folder's sync has made durable stay so.

use std::collections::BTreeMap;

/// One name in a folder, assigned to a node or removed.
#[derive(Clone)]
pub(super) struct Edit {
    pub(super) folder: u64,
    pub(super) name: Vec<u8>,
    pub(super) inode: Option<u64>,
}

impl Edit {
    pub(super) fn new(folder: u64, name: &[u8], inode: Option<u64>) -> Edit {
        Edit { folder, name: name.to_owned(), inode }
    }
}

/// One atomic change of names: a rename has two edits.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) edits: Vec<Edit>,
    /// The folder that it removes or replaces.
    pub(super) ends: Option<u64>,
    /// Whether it moves a folder.
    pub(super) moves_folder: bool,
}

/// Every name with its folder, and the node it stands for.
pub(super) type Names = BTreeMap<(u64, Vec<u8>), u64>;

/// The durable names, and the changes that are not durable yet.
#[derive(Default)]
pub(super) struct Journal {
    durable: Names,
    pending: Vec<Pending>,
}

struct Pending {
    change: Change,
    /// Whether a sync of it has failed: no later sync makes it durable.
    lost: bool,
}

impl Journal {
    /// Creates a journal from the names that have survived a power cut.
    pub(super) fn of(durable: Names) -> Journal {
        Journal { durable, pending: Vec::new() }
    }

    pub(super) fn add(&mut self, change: Change) {
        self.pending.push(Pending { change, lost: false });
    }

    /// Makes durable the changes that touch `folder`, and the changes that these depend on.
    pub(super) fn sync(&mut self, folder: u64) {
        let due = self.due(folder);
        for (at, pending) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            if due.contains(&at) {
                apply(&mut self.durable, &pending.change);
            } else {
                self.pending.push(pending);
            }
        }
    }

    /// Marks the changes of a failed sync of `folder`: they will never be durable.
    pub(super) fn lose(&mut self, folder: u64) {
        for at in self.due(folder) {
            self.pending[at].lost = true;
        }
    }

    /// Returns the indexes of all changes that a sync of `folder` makes durable.
    fn due(&self, folder: u64) -> Vec<usize> {
        let mut due: Vec<usize> = Vec::new();
        for (at, pending) in self.pending.iter().enumerate().rev() {
            let needed = || due.iter().any(|later| self.pending[*later].change.needs(&pending.change));
            if pending.change.touches(folder) || needed() {
                due.push(at);
            }
        }
        let mut lost: Vec<usize> = Vec::new();
        for (at, pending) in self.pending.iter().enumerate() {
            if pending.lost || lost.iter().any(|lost| pending.change.needs(&self.pending[*lost].change)) {
                lost.push(at);
            }
        }
        due.retain(|at| !lost.contains(at));
        due
    }

    /// Returns the names after a power cut. `survives` decides for each change whether it reached the
    /// disk in time.
    pub(super) fn names_after_cut(&self, mut survives: impl FnMut() -> bool) -> Names {
        let mut names = self.durable.clone();
        let mut lost: Vec<&Change> = Vec::new();
        for Pending { change, .. } in &self.pending {
            let hopeless = lost.iter().any(|earlier| change.needs(earlier) || change.stands_in(earlier));
            if survives() && !hopeless {
                apply(&mut names, change);
            } else {
                lost.push(change);
            }
        }
        names
    }
}

impl Change {
    fn touches(&self, folder: u64) -> bool {
        self.edits.iter().any(|edit| edit.folder == folder)
    }

    /// Whether this change depends on `earlier`: it changes the same name, or removes the folder that
    /// the other changed, or both move folders (otherwise a cycle of folders could result).
    fn needs(&self, earlier: &Change) -> bool {
        let same_name = |edit: &Edit| {
            earlier.edits.iter().any(|other| other.folder == edit.folder && other.name == edit.name)
        };
        self.edits.iter().any(same_name)
            || self.ends.is_some_and(|folder| earlier.touches(folder))
            || (self.moves_folder && earlier.moves_folder)
    }

    /// Whether this changes a folder that got its name by `earlier`. A journal writes both in order, but
    /// a sync of the inner folder does not make the name of that folder durable.
    fn stands_in(&self, earlier: &Change) -> bool {
        let given = |edit: &Edit| earlier.edits.iter().any(|other| other.inode == Some(edit.folder));
        self.edits.iter().any(given)
    }
}

fn apply(names: &mut Names, change: &Change) {
    for edit in &change.edits {
        let name = (edit.folder, edit.name.clone());
        match edit.inode {
            Some(inode) => names.insert(name, inode),
            None => names.remove(&name),
        };
    }
}
