//! The contents of a disk after a power cut.
//!
//! It cuts nothing ([`super::injected_faults`] does): it creates the disk that a machine finds when it starts
//! again. Invariants: synced data survives, including bytes of a file that have not changed since its
//! sync; any part of the rest may survive.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::journal::{Journal, Names};
use super::tree::{Body, Bytes, Node, ROOT, Tree};
use crate::sim::chance::{Chance, PER_MILLE};

/// The fate of unsynced changes when the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsynced {
    /// All are lost: the harshest case for a missing sync.
    Lost,
    /// All survive, as after the end of a process.
    Kept,
    /// Each part is drawn from this seed: it survives, is lost, or, for contents, survives in part.
    Drawn(u64),
}

/// Draws the parts that survive.
struct Draw {
    chance: Chance,
    /// Chance that a part survives, of a thousand.
    survives: u16,
    in_part: bool,
}

impl Draw {
    fn new(unsynced: Unsynced) -> Draw {
        match unsynced {
            Unsynced::Lost => Draw { chance: Chance::new(0), survives: 0, in_part: false },
            Unsynced::Kept => Draw { chance: Chance::new(0), survives: PER_MILLE, in_part: false },
            Unsynced::Drawn(seed) => {
                let mut chance = Chance::new(seed);
                let survives = [100, 500, 900][chance.index(3)];
                Draw { chance, survives, in_part: true }
            }
        }
    }

    fn survives(&mut self) -> bool {
        self.chance.chance(self.survives)
    }

    /// Draws a file's bytes, given those of its last sync and the current ones.
    fn bytes(&mut self, synced: &Bytes, written: &Bytes) -> Bytes {
        if Arc::ptr_eq(synced, written) {
            return Arc::clone(written);
        }
        if self.in_part && self.chance.chance(PER_MILLE / 2) {
            return Arc::new(self.part(synced, written));
        }
        Arc::clone(if self.survives() { written } else { synced })
    }

    /// Returns the new length with zeros where nothing reached the disk, or a prefix of the new bytes
    /// over the old ones.
    fn part(&mut self, synced: &[u8], written: &[u8]) -> Vec<u8> {
        if self.chance.chance(PER_MILLE / 2) {
            let old = synced.iter().map(Some).chain(std::iter::repeat(None));
            return written
                .iter()
                .zip(old)
                .map(|(new, old)| if old == Some(new) { *new } else { 0 })
                .collect();
        }
        let count = self.chance.index(written.len() + 1);
        let rest = synced.get(count..).unwrap_or_default();
        [&written[..count], rest].concat()
    }
}

/// Returns the nodes and names that a machine finds after a power cut.
pub(super) fn after_cut(tree: &Tree, journal: &Journal, unsynced: Unsynced) -> (Tree, Journal) {
    let mut draw = Draw::new(unsynced);
    let names = journal.names_after_cut(|| draw.survives());
    let mut nodes: Vec<(u64, Node)> = Vec::new();
    let named: BTreeSet<u64> = names.values().copied().chain([ROOT]).collect();
    for (inode, node) in tree.nodes() {
        // Nodes without a name are gone with the process that had them open.
        if named.contains(&inode) {
            nodes.push((inode, node_after_cut(node, &mut draw)));
        }
    }
    let mut found = Tree::of(nodes, tree.inode_next());
    let mut kept = Names::new();
    for ((folder, name), inode) in names {
        if found.restore(folder, &name, inode) {
            kept.insert((folder, name), inode);
        }
    }
    (found, Journal::of(kept))
}

fn node_after_cut(node: &Node, draw: &mut Draw) -> Node {
    let mut node = node.clone();
    match &mut node.body {
        Body::Folder(names) => names.clear(),
        Body::File(bytes) => {
            let is_new = draw.survives();
            *bytes = draw.bytes(&node.synced.bytes, bytes);
            if !is_new {
                node.modified = node.synced.modified;
            }
            node.synced.bytes = Arc::clone(bytes);
        }
        Body::Link(_) | Body::Special => {}
    }
    node.synced.modified = node.modified;
    node.sync_failed = false;
    node
}
