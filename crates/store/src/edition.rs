//! The edition of a folder: what tells one state of the names in it from the next.
//!
//! It does not say what has changed. What must hold: no two states of any folders have the same edition as
//! long as the process lives; that of a home changes after each change of its files, while the home is still
//! locked, and so before the change is confirmed to anybody.

use std::sync::atomic::{AtomicU64, Ordering};

/// Never counts back, and never repeats: at a thousand million changes a second it would last for 584 years.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A folder that paths begin at, and the state that it is in as far as this server changes it. What was
/// opened beneath the folder after an edition was asked for is what has the name for as long as the edition
/// is the same; but for changes that other programs make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edition {
    /// The folder: another one each time that one is opened.
    pub folder: u64,
    /// The last change of the names in it.
    pub change: u64,
}

impl Edition {
    /// That of a folder which is opened now.
    pub fn draw() -> Edition {
        Edition { folder: draw(), change: draw() }
    }
}

/// The edition that a home is in.
pub(crate) struct Current {
    folder: u64,
    change: AtomicU64,
}

impl Current {
    pub(crate) fn draw() -> Current {
        let Edition { folder, change } = Edition::draw();
        Current { folder, change: AtomicU64::new(change) }
    }

    pub(crate) fn get(&self) -> Edition {
        Edition { folder: self.folder, change: self.change.load(Ordering::Acquire) }
    }

    /// What was seen before is not to be relied on any more. With the home locked, after the change.
    pub(crate) fn raise(&self) {
        self.change.store(draw(), Ordering::Release);
    }
}

fn draw() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_edition_is_ever_that_of_another_folder_or_of_an_earlier_state() {
        let (home, other) = (Current::draw(), Current::draw());
        let mut seen = vec![home.get(), other.get()];
        assert_ne!(home.get().folder, other.get().folder);
        for _ in 0..3 {
            home.raise();
            assert!(!seen.contains(&home.get()), "{seen:?}");
            assert_eq!(home.get().folder, seen[0].folder);
            seen.push(home.get());
        }
        assert_eq!(other.get(), seen[1], "its own changes alone");
    }
}
