//! Creating a folder.
//!
//! It must not be confirmed before its name is synced.

use plimsoll_io::{Io, Work};

use crate::error::{Error, Result};
use crate::home::Home;
use crate::path::Path;
use crate::usage::{Quota, Usage};

impl Home {
    /// Creates a folder.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if an entry of any kind has the name; [`Error::NoFolder`];
    /// [`Error::Quota`].
    pub(crate) async fn make_folder(&self, io: &Io, path: Path, quota: Quota) -> Result<()> {
        if path.is_root() {
            return Err(Error::AlreadyExists);
        }
        self.usage(io).await?;
        let home = self.clone();
        let made = io.offload(Work::Writes, move |fs| {
            let state = home.change();
            let place = home.place(fs, &path)?;
            if place.stat(fs)?.is_some() {
                return Err(Error::AlreadyExists);
            }
            place.check_new(None)?;
            home.allows(fs, &state, quota, Usage::default(), Usage::FOLDER)?;
            fs.make_folder(&place.folder, place.name)?;
            home.replaces(&state, Usage::default(), Usage::FOLDER);
            home.sync(fs, &[&place.folder])
        });
        made.await?
    }
}
