//! Setting the modification time of a file or folder, at its owner's request.
//!
//! It does not change contents. Invariant: a change is confirmed only after it is synced.

use std::time::Duration;

use plimsoll_io::{FileKind, Io, Stat, Work};

use crate::error::{Error, Result};
use crate::home::LocalHome;
use crate::path::Path;

impl LocalHome {
    /// As [`crate::Home::set_modified`].
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
