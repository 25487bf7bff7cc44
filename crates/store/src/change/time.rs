//! The time of a file or folder, as its owner wants it told.
//!
//! Not here: its contents, of which nothing changes. What must hold: it is confirmed after it is synced.

use std::time::Duration;

use plimsoll_io::{FileKind, Io, Stat, Work};

use crate::error::{Error, Result};
use crate::home::Home;
use crate::path::Path;

impl Home {
    /// Sets when the file or folder `path` was last modified, as time since 1970; what is known of it then.
    ///
    /// # Errors
    /// [`Error::NotFound`], also for a link; [`Error::Home`].
    pub(crate) async fn set_modified(&self, io: &Io, path: Path, modified: Duration) -> Result<Stat> {
        let home = self.clone();
        let set = io.offload(Work::Writes, move |fs| {
            let state = home.change();
            let place = home.place(fs, &path).map_err(|error| match error {
                Error::NoFolder => Error::NotFound,
                other => other,
            })?;
            if place.stat(fs)?.is_none_or(|stat| stat.kind == FileKind::Other) {
                return Err(Error::NotFound);
            }
            let file = fs.open_beneath(&place.folder, place.name)?;
            fs.set_modified(&file, modified)?;
            let stat = fs.stat(&file)?;
            drop(state);
            home.sync(fs, &[&file])?;
            Ok(stat)
        });
        set.await?
    }
}
