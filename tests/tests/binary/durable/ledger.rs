//! Every state that a writer's folder was in, in order, and the last one that the server has confirmed.
//!
//! What must hold: a state is written down before the request that makes it is sent, and is confirmed only
//! after its answer; so what is found later is one of those from the confirmed one on.

use std::collections::BTreeMap;

/// What a folder holds, by path in it: versions of files, none for folders.
pub(super) type Held = BTreeMap<String, Option<u64>>;

/// A folder, and the upload to it that is kept.
#[derive(Clone, Default, Debug)]
pub(super) struct State {
    pub(super) held: Held,
    pub(super) upload: Option<Sending>,
}

/// A kept upload.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    pub(super) name: String,
    pub(super) version: u64,
    pub(super) bytes: usize,
    /// Where it stands once the state is reached.
    pub(super) offset: usize,
}

/// What the server tells of a kept upload.
#[derive(Clone, Debug)]
pub(super) struct Kept {
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
    /// Begins with a state that is there.
    pub(super) fn new(state: State) -> Ledger {
        Ledger { states: vec![state], confirmed: 0 }
    }

    pub(super) fn last(&self) -> &State {
        self.states.last().unwrap()
    }

    /// A state that is asked for now.
    pub(super) fn begin(&mut self, state: State) {
        self.states.push(state);
    }

    /// The last state is confirmed.
    pub(super) fn confirm(&mut self) {
        self.confirmed = self.states.len() - 1;
    }

    /// Forgets what was before the confirmed state: from here on nothing older may be found.
    pub(super) fn forget(&mut self) {
        self.states.drain(..self.confirmed);
        self.confirmed = 0;
    }

    /// Expects no more than the first state, whatever was confirmed since: it is of an earlier moment.
    pub(super) fn expect_from_the_first(&mut self) {
        self.confirmed = 0;
    }

    /// How many states are remembered.
    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

    /// The state, confirmed or newer, that is what was found.
    pub(super) fn find(&self, held: &Held, kept: Option<&Kept>) -> Option<&State> {
        (self.confirmed..self.states.len())
            .find(|at| is_held(&self.states[*at].held, held) && self.is_kept(*at, kept))
            .map(|at| &self.states[at])
    }

    /// Those that may be found, for people.
    pub(super) fn expected(&self) -> &[State] {
        &self.states[self.confirmed..]
    }

    fn is_kept(&self, at: usize, kept: Option<&Kept>) -> bool {
        let (sending, kept) = match (&self.states[at].upload, kept) {
            (None, None) => return true,
            (Some(sending), Some(kept)) => (sending, kept),
            _ => return false,
        };
        // Bytes of the next part may have come, or all of them.
        let most = match self.states.get(at + 1) {
            None => sending.offset,
            Some(State { upload: Some(next), .. }) if next.version == sending.version => next.offset,
            Some(_) => sending.bytes,
        };
        (sending.name == kept.name && sending.bytes == kept.bytes)
            && (sending.offset..=most).contains(&kept.offset)
    }
}

/// Whether a folder is as it was to be. Empty files are all the same.
fn is_held(expected: &Held, found: &Held) -> bool {
    let seen = |held: &Option<u64>| held.map(|version| if version % 16 == 0 { 0 } else { version });
    let pairs = expected.iter().zip(found);
    expected.len() == found.len()
        && pairs.into_iter().all(|(one, other)| one.0 == other.0 && seen(one.1) == seen(other.1))
}
