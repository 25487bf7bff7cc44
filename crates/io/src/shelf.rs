//! What one who uses an engine leaves for the next, on one thread: connections that are kept, for example.
//!
//! It does not know what things are. What must hold: it never holds more of a kind than whoever puts one
//! there says; what is on it ends with its thread's last [`crate::Io`].

use std::any::Any;
use std::cell::RefCell;

/// Things that are kept for whoever needs one next.
#[derive(Default)]
pub struct Shelf(RefCell<Vec<Box<dyn Any>>>);

impl Shelf {
    /// Keeps a thing, unless there are `most` of its kind already.
    pub fn put<T: 'static>(&self, thing: T, most: usize) {
        let mut things = self.0.borrow_mut();
        if things.iter().filter(|kept| kept.is::<T>()).count() < most {
            things.push(Box::new(thing));
            return;
        }
        // What happens when it is dropped may look here, too.
        drop(things);
        drop(thing);
    }

    /// Takes the thing of this kind that was put here last.
    pub fn take<T: 'static>(&self) -> Option<T> {
        let mut things = self.0.borrow_mut();
        let at = things.iter().rposition(|kept| kept.is::<T>())?;
        things.remove(at).downcast().ok().map(|thing| *thing)
    }
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shelf")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_last_is_taken_first_and_of_each_kind_so_many_are_kept() {
        let shelf = Shelf::default();
        shelf.put("another kind", 1);
        (0..5).for_each(|thing: u32| shelf.put(thing, 3));
        let taken: Vec<u32> = std::iter::from_fn(|| shelf.take()).collect();
        assert_eq!(taken, [2, 1, 0]);
        assert_eq!(shelf.take(), Some("another kind"));
    }
}
