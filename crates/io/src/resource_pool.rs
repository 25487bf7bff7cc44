//! A pool of reusable resources of one thread, for example of idle connections to another server.
//!
//! It does not know what the resources are. Invariants: a resource is returned only for the key it was
//! stored under; the pool never exceeds the bound that the caller gives for a type and key; its
//! resources are dropped with the last [`crate::Io`] of the thread.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

/// Idle resources by type and key.
#[derive(Default)]
pub struct ResourcePool(RefCell<Vec<PooledResource>>);

struct PooledResource {
    place: Arc<str>,
    thing: Box<dyn Any>,
}

impl PooledResource {
    fn is<T: 'static>(&self, place: &str) -> bool {
        self.thing.is::<T>() && *self.place == *place
    }
}

impl ResourcePool {
    /// Stores a resource under `place`, for example the address that a connection leads to. Drops it if
    /// the pool has `most` of its type and key already.
    pub fn put<T: 'static>(&self, place: &Arc<str>, thing: T, most: usize) {
        let mut things = self.0.borrow_mut();
        // With fewer resources in all, there is no need to count those of this type and key.
        if things.len() < most || things.iter().filter(|pooled| pooled.is::<T>(place)).count() < most {
            things.push(PooledResource { place: Arc::clone(place), thing: Box::new(thing) });
            return;
        }
        // The borrow ends first: dropping the resource may access this pool.
        drop(things);
        drop(thing);
    }

    /// Takes the resource of this type and key that was stored last.
    pub fn take<T: 'static>(&self, place: &str) -> Option<T> {
        let mut things = self.0.borrow_mut();
        let at = things.iter().rposition(|pooled| pooled.is::<T>(place))?;
        things.remove(at).thing.downcast().ok().map(|thing| *thing)
    }
}

impl std::fmt::Debug for ResourcePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shelf")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_resource_is_taken_first_and_each_kind_is_bounded() {
        let (resource_pool, place) = (ResourcePool::default(), Arc::from("here"));
        resource_pool.put(&place, "another kind", 1);
        (0..5).for_each(|thing: u32| resource_pool.put(&place, thing, 3));
        let taken: Vec<u32> = std::iter::from_fn(|| resource_pool.take("here")).collect();
        assert_eq!(taken, [2, 1, 0]);
        assert_eq!(resource_pool.take("here"), Some("another kind"));
    }

    #[test]
    fn a_resource_of_one_origin_is_neither_taken_nor_counted_for_another() {
        let (resource_pool, places) = (ResourcePool::default(), [Arc::from("here"), Arc::from("there")]);
        places.iter().zip(1..).for_each(|(place, thing): (_, u32)| resource_pool.put(place, thing, 1));
        let taken =
            || [resource_pool.take::<u32>("there"), resource_pool.take("there"), resource_pool.take("here")];
        assert_eq!(taken(), [Some(2), None, Some(1)]);
    }
}
