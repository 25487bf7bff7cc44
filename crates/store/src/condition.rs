//! What must be true of what is there before it is changed.
//!
//! What the words say is the protocol's to know. What must hold: whoever is told a condition by
//! [`Condition::said`], and reads its words as the protocol does, asks the very same.

use std::sync::Arc;

use plimsoll_io::{FileKind, Stat};
use serde::{Deserialize, Serialize};

/// Asks something of what a reader of a path finds there, or none.
type Test = Arc<dyn Fn(Option<&Stat>) -> bool + Send + Sync>;

/// What must be true of what is there: given what a reader of the path finds, or none. It is asked before the
/// bytes come, to spare them, and again with the change, under the home's lock.
#[derive(Clone, Default)]
pub struct Condition {
    test: Option<Test>,
    said: Said,
}

/// A condition as data: how a store elsewhere is told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// In the protocol's own words; empty if it asks for nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// Whether there must be nothing.
    #[serde(default)]
    pub only_new: bool,
    /// Whether what is there must be a folder.
    #[serde(default)]
    pub only_folder: bool,
}

impl Condition {
    /// Whatever is there.
    pub fn none() -> Condition {
        Condition::default()
    }

    /// What `test` asks, and the same in the protocol's own words.
    pub fn new(
        words: impl Into<String>,
        test: impl Fn(Option<&Stat>) -> bool + Send + Sync + 'static,
    ) -> Condition {
        let said = Said { words: words.into(), ..Said::default() };
        Condition { test: Some(Arc::new(test)), said }
    }

    /// And nothing may be there.
    #[must_use]
    pub fn and_new(mut self) -> Condition {
        self.said.only_new = true;
        self
    }

    /// And what is there, if anything is, must be a folder.
    #[must_use]
    pub fn and_folder(mut self) -> Condition {
        self.said.only_folder = true;
        self
    }

    /// And what `other` asks, which is not said: it is for who has the files at hand.
    pub(crate) fn and(mut self, other: impl Fn(Option<&Stat>) -> bool + Send + Sync + 'static) -> Condition {
        let first = self.test.take();
        let both = move |now: Option<&Stat>| other(now) && first.as_ref().is_none_or(|first| first(now));
        self.test = Some(Arc::new(both));
        self
    }

    /// Whether it is met.
    pub fn holds(&self, now: Option<&Stat>) -> bool {
        let is_kind = |stat: &Stat| stat.kind == FileKind::Folder;
        (!self.said.only_new || now.is_none())
            && (!self.said.only_folder || now.is_none_or(is_kind))
            && self.test.as_ref().is_none_or(|test| test(now))
    }

    /// The condition as data.
    pub fn said(&self) -> &Said {
        &self.said
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn stat(kind: FileKind) -> Stat {
        let modified = Duration::from_secs(1);
        Stat { kind, size: 3, device: 1, inode: 2, modified, changed: modified }
    }

    #[test]
    fn all_of_it_must_be_met() {
        let (file, folder) = (stat(FileKind::File), stat(FileKind::Folder));
        let large = || Condition::new("large", |now: Option<&Stat>| now.is_none_or(|now| now.size > 2));
        assert!(Condition::none().holds(None) && Condition::none().holds(Some(&file)));
        assert!(large().holds(Some(&file)));
        assert!(!large().and_new().holds(Some(&file)) && large().and_new().holds(None));
        assert!(!large().and_folder().holds(Some(&file)) && large().and_folder().holds(Some(&folder)));
        let small = large().and(|now| now.is_none_or(|now| now.size < 3));
        assert!(!small.holds(Some(&file)) && small.holds(None));
        assert_eq!(small.said().words, "large");
    }
}
