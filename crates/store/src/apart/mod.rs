//! A store elsewhere: what fronts ask it, as data, and how that is carried there and answered.
//!
//! It keeps no bytes and decides nothing: [`Desk`] asks the store that is here, which decides under the
//! home's lock as for anybody. Questions are JSON, one request each. Bytes stream, one request for a file: a
//! GET has the file as its body; a PUT has [`Frames`], and its last one says what is to become of the upload.
//!
//! What must hold: a yes comes from the store's own answer and from nothing else; who got no answer does not
//! know, and says so ([`crate::Error::Away`]); an upload whose connection breaks is one that is broken off;
//! every wait and every message is bounded.

mod ascii;
mod ask;
mod contents;
mod desk;
mod elsewhere;
mod frames;
mod listing;
mod remote;
mod spool;
mod trouble;
mod turns;
mod upload;

pub use ascii::{from_ascii, to_ascii};
pub use ask::{Asked, Destination, Ended, Ending, Get, How, NewArrival, Owner, Question, SaidPage, Seen};
pub use contents::{Contents, Wanted};
pub use desk::{Desk, told};
pub use elsewhere::Elsewhere;
pub use frames::{Frame, Frames};
pub use remote::{CALL, FILES, Place, QUESTIONS, READY, STAT, TROUBLE};
pub use trouble::{Told, Trouble};

pub(crate) use ask::SaidStat;
pub(crate) use remote::Remote;
pub(crate) use upload::Upload;
