//! Changes that bring no bytes: folders made, names removed, moved and copied.
//!
//! Contents are [`crate::write`]'s. What must hold: a change of folders is synced before anybody else changes
//! the home, since what is put into a folder is only as safe as the folder's own name.

mod copy;
mod copying;
mod folder;
mod remove;
mod rename;
mod time;
mod way;

pub use copy::{Copied, Depth};
pub use remove::{Removed, What};
pub(crate) use rename::End;
pub use rename::Moved;
