//! Changes without bytes of a client: creating folders, and removing, moving and copying entries.
//!
//! Contents are not here, but in [`crate::write`]. Invariant: a change of folders is synced before the home
//! can change again, because a new entry is only as safe as its folder's name.

mod copy;
mod copying;
mod displaced;
mod distinct;
mod folder;
mod remove;
mod rename;
mod time;

pub use copy::{Copied, Depth};
pub(crate) use remove::subtree;
pub use remove::{Disposal, RemovalKind, Removed};
pub use rename::MoveResult;
pub(crate) use rename::{LocalEnd, check_tree_depth};
