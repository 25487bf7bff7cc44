//! A precondition of a change: a test of the entry that a path has before it.
//!
//! It does not interpret the condition's text: that is the protocol's. Invariants: a condition that the same
//! protocol rebuilds from [`Condition::text`] gives the same results. Tests added by `Condition::and` are
//! not part of that text. A condition that is received as text never holds before it is parsed.

use std::fmt;
use std::sync::Arc;

use plimsoll_io::{FileKind, Stat};
use serde::{Deserialize, Serialize};

/// A test of the entry that a reader of a path finds; `None` if there is no entry.
type Test = Arc<dyn Fn(Option<&Stat>) -> bool + Send + Sync>;

/// A precondition: a test of the entry that a reader of the path finds, or of none. It is checked before
/// the bytes are received, to spare their transfer. It is checked again with the change, under the home's
/// lock. To a remote store, its text is sent.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "ConditionText", into = "ConditionText")]
pub struct Condition {
    test: Option<Test>,
    text: ConditionText,
}

/// Parses the text of a condition, in the protocol's own syntax.
pub type ParseCondition = fn(&str) -> Condition;

/// A condition as data, as it is sent to a remote store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionText {
    /// The condition in the protocol's own syntax; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// Whether the path must have no entry.
    #[serde(default)]
    pub only_new: bool,
    /// Exempts an existing empty file from `only_new`. A storage server that does not know it refuses the
    /// file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub or_empty: bool,
    /// Whether an existing entry must be a folder.
    #[serde(default)]
    pub only_folder: bool,
}

impl Condition {
    /// Returns a condition that always holds.
    pub fn none() -> Condition {
        Condition::default()
    }

    /// Creates a condition from `test`; `words` says the same in the protocol's own syntax.
    pub fn new(
        words: impl Into<String>,
        test: impl Fn(Option<&Stat>) -> bool + Send + Sync + 'static,
    ) -> Condition {
        let text = ConditionText { words: words.into(), ..ConditionText::default() };
        Condition { test: Some(Arc::new(test)), text }
    }

    /// Returns a condition that never holds; `words` are its text.
    pub fn never(words: impl Into<String>) -> Condition {
        Condition::new(words, |_| false)
    }

    /// Parses a condition that was received as text.
    pub(crate) fn parse_with(&mut self, parse: ParseCondition) {
        self.test = parse(&self.text.words).test;
    }

    /// Also requires that the path has no entry.
    #[must_use]
    pub fn and_new(mut self) -> Condition {
        (self.text.only_new, self.text.or_empty) = (true, false);
        self
    }

    /// Also requires that the path has no entry but an empty file.
    #[must_use]
    pub fn and_new_or_empty(mut self) -> Condition {
        self.text.or_empty = !self.text.only_new || self.text.or_empty;
        self.text.only_new = true;
        self
    }

    /// Also requires that an existing entry is a folder.
    #[must_use]
    pub fn and_folder(mut self) -> Condition {
        self.text.only_folder = true;
        self
    }

    /// Also requires `other`, which [`Condition::text`] leaves out: it is for a store in this process only.
    pub(crate) fn and(mut self, other: impl Fn(Option<&Stat>) -> bool + Send + Sync + 'static) -> Condition {
        let first = self.test.take();
        let both = move |now: Option<&Stat>| other(now) && first.as_ref().is_none_or(|first| first(now));
        self.test = Some(Arc::new(both));
        self
    }

    /// Whether the condition holds for the present entry.
    pub fn holds(&self, now: Option<&Stat>) -> bool {
        let is_kind = |stat: &Stat| stat.kind == FileKind::Folder;
        self.permits_entry(now)
            && (!self.text.only_folder || now.is_none_or(is_kind))
            && self.test.as_ref().is_none_or(|test| test(now))
    }

    /// Whether the path may have this entry, by the tests that are data.
    pub(crate) fn permits_entry(&self, now: Option<&Stat>) -> bool {
        let is_empty = |stat: &Stat| stat.kind == FileKind::File && stat.size == 0;
        !self.text.only_new || now.is_none_or(|now| self.text.or_empty && is_empty(now))
    }

    /// The condition as data.
    pub fn text(&self) -> &ConditionText {
        &self.text
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl From<Condition> for ConditionText {
    fn from(condition: Condition) -> ConditionText {
        condition.text
    }
}

impl From<ConditionText> for Condition {
    fn from(text: ConditionText) -> Condition {
        let unparsed = if text.words.is_empty() { Condition::none() } else { Condition::never("") };
        Condition { text, ..unparsed }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn stat(kind: FileKind) -> Stat {
        let modified = Duration::from_secs(1);
        Stat { kind, size: 3, device: 1, inode: 2, modified, changed: modified, links: 1 }
    }

    #[test]
    fn all_of_it_must_be_met() {
        let (file, folder) = (stat(FileKind::File), stat(FileKind::Folder));
        let large = || Condition::new("large", |now: Option<&Stat>| now.is_none_or(|now| now.size > 2));
        assert!(Condition::none().holds(None) && Condition::none().holds(Some(&file)));
        assert!(large().holds(Some(&file)));
        assert!(!large().and_new().holds(Some(&file)) && large().and_new().holds(None));
        let strict = large().and_new().and_new_or_empty();
        let (empty, none) = (Stat { size: 0, ..file }, Condition::none);
        assert!(none().and_new_or_empty().holds(None) && none().and_new_or_empty().holds(Some(&empty)));
        assert!(!none().and_new_or_empty().holds(Some(&file)) && !none().and_new().holds(Some(&empty)));
        assert!(!strict.holds(Some(&empty)) && strict.holds(None));
        assert!(!none().and_new_or_empty().holds(Some(&Stat { size: 0, ..folder })));
        assert!(!large().and_folder().holds(Some(&file)) && large().and_folder().holds(Some(&folder)));
        let small = large().and(|now| now.is_none_or(|now| now.size < 3));
        assert!(!small.holds(Some(&file)) && small.holds(None));
        assert_eq!(small.text().words, "large");
    }

    #[test]
    fn a_received_condition_holds_only_once_it_is_parsed() {
        let sent = Condition::new("none", |now: Option<&Stat>| now.is_none());
        let mut received: Condition = serde_json::from_str(&serde_json::to_string(&sent).unwrap()).unwrap();
        assert!(sent.holds(None) && !received.holds(None));
        received.parse_with(|words| Condition::new(words, |now: Option<&Stat>| now.is_none()));
        assert!(received.holds(None) && !received.holds(Some(&stat(FileKind::File))));
        assert_eq!(received.text(), sent.text());
        let none = Condition::none().and_folder();
        let received: Condition = serde_json::from_str(&serde_json::to_string(&none).unwrap()).unwrap();
        assert!(received.holds(None) && !received.holds(Some(&stat(FileKind::File))));
    }
}
