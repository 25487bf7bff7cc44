//! Creating a folder.
//!
//! It must not be confirmed before its name is synced.

use plimsoll_io::{Fs, Io, Work};

use crate::error::{Error, Result};
use crate::home::LocalHome;
use crate::path::Path;
use crate::trash::DiskNeed;
use crate::usage::{Quota, Usage};

impl LocalHome {
    /// As [`crate::Home::make_folder`].
    pub(crate) async fn make_folder(&self, io: &Io, path: Path, quota: Quota, parents: bool) -> Result<()> {
        if path.is_root() {
            return Err(Error::AlreadyExists);
        }
        self.usage(io).await?;
        let home = self.clone();
        let made = io.offload(Work::Writes, move |fs| {
            if parents {
                home.make_parents(fs, &path, quota)?;
            }
            home.make_one(fs, &path, quota)
        });
        made.await?
    }

    /// Creates the missing folders above `path`, the highest first. A name is synced before a folder is made
    /// in it. If one cannot be made, those above it stay.
    pub(crate) fn make_parents(&self, fs: &dyn Fs, path: &Path, quota: Quota) -> Result<()> {
        // Neither the home itself nor a shared folder is made again.
        let parents = std::iter::successors(path.parent(), Path::parent).take_while(|it| !it.is_top());
        for folder in parents.collect::<Vec<_>>().iter().rev() {
            match self.make_one(fs, folder, quota) {
                Err(Error::AlreadyExists) => {}
                made => made?,
            }
        }
        Ok(())
    }

    /// Creates a folder. A full disk gets space from the trash.
    fn make_one(&self, fs: &dyn Fs, path: &Path, quota: Quota) -> Result<()> {
        let make = || self.make_one_now(fs, path, quota);
        match make() {
            Err(Error::Full) => {
                let folder = self.place(fs, path)?.folder;
                self.with_disk_room(fs, DiskNeed::small(&folder, quota.keeps_trash), make)
            }
            made => made,
        }
    }

    fn make_one_now(&self, fs: &dyn Fs, path: &Path, quota: Quota) -> Result<()> {
        let state = self.change();
        let place = self.place(fs, path)?;
        if place.stat(fs)?.is_some() {
            return Err(Error::AlreadyExists);
        }
        place.check_new(None)?;
        let needed = self.allows(fs, &state, quota, Usage::default(), Usage::FOLDER)?;
        fs.make_folder(&place.folder, place.name)?;
        self.replaces(fs, &state, needed, Usage::default(), Usage::FOLDER);
        self.sync(fs, &[&place.folder])
    }
}
