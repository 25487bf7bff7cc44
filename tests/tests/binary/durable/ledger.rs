//! The sequence of states of a writer's folder, and the last one that the server has confirmed.
//!
//! A state must be recorded before the request for it is sent, and confirmed only after its answer. So the
//! state found later is the confirmed one or a later one.

use std::collections::BTreeMap;

/// The contents of a folder, by path: versions of files, `None` for folders.
pub(super) type FileVersions = BTreeMap<String, Option<u64>>;

/// A folder, and the resumable upload to it.
#[derive(Clone, Default, Debug)]
pub(super) struct State {
    pub(super) held: FileVersions,
    pub(super) upload: Option<Sending>,
}

/// A resumable upload.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    pub(super) name: String,
    pub(super) version: u64,
    pub(super) bytes: usize,
    /// The offset once the state is reached.
    pub(super) offset: usize,
}

/// A resumable upload as the server lists it.
#[derive(Clone, Debug)]
pub(super) struct ListedUpload {
    pub(super) url: String,
    pub(super) name: String,
    pub(super) bytes: usize,
    pub(super) offset: usize,
}

/// The states of one folder.
#[derive(Clone)]
pub(super) struct Ledger {
    states: Vec<State>,
    confirmed: usize,
}

impl Ledger {
    /// Starts with an existing state.
    pub(super) fn new(state: State) -> Ledger {
        Ledger { states: vec![state], confirmed: 0 }
    }

    pub(super) fn last(&self) -> &State {
        self.states.last().unwrap()
    }

    /// Records a state that is about to be requested.
    pub(super) fn begin(&mut self, state: State) {
        self.states.push(state);
    }

    /// Confirms the last state.
    pub(super) fn confirm(&mut self) {
        self.confirmed = self.states.len() - 1;
    }

    /// Removes the states before the confirmed one: no older state may be found from here on.
    pub(super) fn forget(&mut self) {
        self.states.drain(..self.confirmed);
        self.confirmed = 0;
    }

    /// Accepts all states from the first one, even if later ones were confirmed: the disk image is from an
    /// earlier moment.
    pub(super) fn expect_from_the_first(&mut self) {
        self.confirmed = 0;
    }

    /// Returns the number of recorded states.
    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

    /// Returns the state, confirmed or later, that matches the found contents.
    pub(super) fn find(&self, held: &FileVersions, kept: Option<&ListedUpload>) -> Option<&State> {
        (self.confirmed..self.states.len())
            .find(|at| is_held(&self.states[*at].held, held) && self.is_kept(*at, kept))
            .map(|at| &self.states[at])
    }

    /// Returns the permitted states, for a failure's message.
    pub(super) fn expected(&self) -> &[State] {
        &self.states[self.confirmed..]
    }

    fn is_kept(&self, at: usize, kept: Option<&ListedUpload>) -> bool {
        let (sending, kept) = match (&self.states[at].upload, kept) {
            (None, None) => return true,
            (Some(sending), Some(kept)) => (sending, kept),
            _ => return false,
        };
        // The server may have received a part of the next PATCH, or all of it.
        let most = match self.states.get(at + 1) {
            None => sending.offset,
            Some(State { upload: Some(next), .. }) if next.version == sending.version => next.offset,
            Some(_) => sending.bytes,
        };
        (sending.name == kept.name && sending.bytes == kept.bytes)
            && (sending.offset..=most).contains(&kept.offset)
    }
}

/// Returns whether a folder has the expected contents. Empty files count as equal.
fn is_held(expected: &FileVersions, found: &FileVersions) -> bool {
    let seen = |held: &Option<u64>| held.map(|version| if version % 16 == 0 { 0 } else { version });
    let pairs = expected.iter().zip(found);
    expected.len() == found.len()
        && pairs.into_iter().all(|(one, other)| one.0 == other.0 && seen(one.1) == seen(other.1))
}
