//! The generation number of a folder: distinguishes one state of its names from the next.
//!
//! It does not say which names have changed. Invariants: no two states of any folders have the same
//! generation during the lifetime of the process. A home's generation changes after each change of its
//! files, while the home is still locked. So it changes before the change is confirmed.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counter. It never decreases or repeats: at 10⁹ changes a second it would last for 584 years.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A folder that paths begin at, and its state as far as this server changes it. A file that is opened
/// beneath the folder after the generation was read keeps its name while the generation is unchanged.
/// Changes by other programs are not covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Generation {
    /// Identifies the open folder: a new number each time that one is opened.
    pub folder: u64,
    /// Identifies the latest change of the files in it.
    pub change: u64,
}

impl Generation {
    /// Returns the generation of a folder that is opened now.
    pub fn draw() -> Generation {
        Generation { folder: draw(), change: draw() }
    }
}

/// The present generation of a home.
pub(crate) struct GenerationCounter {
    folder: u64,
    change: AtomicU64,
}

impl GenerationCounter {
    pub(crate) fn draw() -> GenerationCounter {
        let Generation { folder, change } = Generation::draw();
        GenerationCounter { folder, change: AtomicU64::new(change) }
    }

    pub(crate) fn get(&self) -> Generation {
        Generation { folder: self.folder, change: self.change.load(Ordering::Acquire) }
    }

    /// Invalidates lookups made before. Call it after the change, with the home locked.
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
    fn no_generation_is_ever_that_of_another_folder_or_of_an_earlier_state() {
        let (home, other) = (GenerationCounter::draw(), GenerationCounter::draw());
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
