//! Names in folders that a power cut may take back: what is durable, and what has changed since.
//!
//! It knows no contents and draws no chance. What must hold: of two changes of one name the later never
//! survives without the earlier, a change of several names survives as a whole or not at all, and what a
//! folder's sync makes durable stays so.

use std::collections::BTreeMap;

/// A name in a folder, given to a node or taken away.
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

/// One change of names, whole: a rename has two edits.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) edits: Vec<Edit>,
    /// The folder that it takes away.
    pub(super) ends: Option<u64>,
    /// It moves a folder.
    pub(super) moves_folder: bool,
}

/// Every name with its folder, and the node it stands for.
pub(super) type Names = BTreeMap<(u64, Vec<u8>), u64>;

/// What is durable of the names, and what is not yet.
#[derive(Default)]
pub(super) struct Journal {
    durable: Names,
    pending: Vec<Pending>,
}

struct Pending {
    change: Change,
    /// A sync of it has failed: no later one makes it durable.
    lost: bool,
}

impl Journal {
    /// What has survived a power cut is durable.
    pub(super) fn of(durable: Names) -> Journal {
        Journal { durable, pending: Vec::new() }
    }

    pub(super) fn add(&mut self, change: Change) {
        self.pending.push(Pending { change, lost: false });
    }

    /// Makes durable what touches `folder`, and what that cannot be without.
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

    /// A sync of `folder` has failed: what it would have made durable never will be.
    pub(super) fn lose(&mut self, folder: u64) {
        for at in self.due(folder) {
            self.pending[at].lost = true;
        }
    }

    /// The places of all changes that a sync of `folder` makes durable.
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

    /// The names after a power cut, if `survives` says of each change whether it came to the disk in time.
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

    /// Whether no disk has this change without `earlier`: it changes the same name, or takes away the folder
    /// that the other changed, or both move folders (else two of them could lose each other's).
    fn needs(&self, earlier: &Change) -> bool {
        let same_name = |edit: &Edit| {
            earlier.edits.iter().any(|other| other.folder == edit.folder && other.name == edit.name)
        };
        self.edits.iter().any(same_name)
            || self.ends.is_some_and(|folder| earlier.touches(folder))
            || (self.moves_folder && earlier.moves_folder)
    }

    /// Whether this changes a folder that got its name by `earlier`. A journal writes them in their order;
    /// but a sync of the inner folder promises nothing for the name of that folder itself.
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
