//! A backup, from its folder to its manifest.
//!
//! Files are copied first. The accounts are copied then, and all files are compared with their copies again:
//! if none has changed, files and accounts are of one moment. Else this is repeated a few times. On a server
//! that changes all the time, the accounts are copied last: a right that has ended does not come back.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown,
};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, bail, ensure};
use plimsoll_auth::directory::CopiedDirectory;
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use rustix::fs::syncfs;
use rustix::process::Uid;

use super::beneath::{Tree, join, remove};
use super::directory::Accounts;
use super::entry::{Entry, EntryKind, EntryPath, FILE_TIME_TICK};
use super::lists::Lists;
use super::manifest::{Head, Sum, Writer};
use super::mirror::{Counts, Pass};
use super::report::{Facts, Taken};
use super::unit::{Skipped, Unit};
use super::{DATA, DIRECTORY, DUMP, MANIFEST, UNFINISHED};
use crate::access::{as_owner, existing, name_of, owner};
use crate::config::Config;
use crate::limits::{BACKUP_PASSES_MAX, BACKUP_ROUNDS_MAX};
use crate::open_files;

/// The folder of the lists, until the backup is complete.
const LISTS: &str = "lists";
/// The manifest until it is on the disk.
const NEW_MANIFEST: &str = "manifest.new";

/// Takes a backup of the data folder into the folder `to`, which is new or empty. `dump` is the command that
/// dumps the database of the accounts.
pub(crate) fn take(config: &Config, to: &Path, dump: Option<&str>) -> anyhow::Result<Taken> {
    let data = &config.fixed.data;
    ensure!(data.is_dir(), "There is no data folder at {}. Name it with --data DIR", data.display());
    let accounts = Accounts::of(config, dump)?;
    refuse_overlap(data, to)?;
    open_files::raise();
    let work = prepare(config, to)?;
    let taken = Taking::new(config, &work).and_then(|taking| taking.run(&accounts, to));
    taken.with_context(|| {
        let to = to.display();
        format!("there is no backup in {to}; remove what is there before the next (rm -r {to})")
    })
}

/// Refuses a backup inside its data folder, and data inside a backup.
pub(super) fn refuse_overlap(data: &Path, backup: &Path) -> anyhow::Result<()> {
    let whole = |path: &Path| -> io::Result<PathBuf> {
        let there = existing(path);
        let rest = path.strip_prefix(&there).unwrap_or(path).to_owned();
        Ok(there.canonicalize()?.join(rest))
    };
    let (one, other) = (whole(data)?, whole(backup)?);
    ensure!(
        !one.starts_with(&other) && !other.starts_with(&one),
        "{} and {} are in one another: keep the backup outside of the data folder",
        data.display(),
        backup.display()
    );
    Ok(())
}

/// Creates the folder of the backup, and in it a working folder, which has everything until the backup is
/// complete. The working folder belongs to the owner of the data.
fn prepare(config: &Config, to: &Path) -> anyhow::Result<PathBuf> {
    let work = to.join(UNFINISHED);
    let private = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
    private(to).with_context(|| format!("cannot make the folder {}", to.display()))?;
    refuse_contents(to)?;
    make_private(to)?;
    // Another user may have written until then.
    refuse_contents(to)?;
    let owner = owner(config).context("cannot look at the data folder")?;
    let owner = owner.filter(|_| rustix::process::geteuid().is_root());
    for folder in [work.clone(), work.join(DATA), work.join(LISTS)] {
        let made = private(&folder).and_then(|()| match owner {
            Some((uid, gid)) => chown(&folder, Some(uid.as_raw()), Some(gid.as_raw())),
            None => Ok(()),
        });
        made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    Ok(work)
}

fn refuse_contents(to: &Path) -> anyhow::Result<()> {
    let mut there = to.read_dir().with_context(|| format!("cannot read the folder {}", to.display()))?;
    if there.next().is_some() {
        let is_interrupted = to.join(UNFINISHED).exists();
        let to = to.display();
        match is_interrupted {
            true => bail!("{to} has a backup that was interrupted; remove it first: rm -r {to}"),
            false => bail!("{to} is not empty; a backup goes into a new or empty folder"),
        }
    }
    Ok(())
}

/// Closes the folder of the backup to all other users before anything is in it. The superuser creates folders
/// below it for the owner of the data, who could plant a link there.
fn make_private(to: &Path) -> anyhow::Result<()> {
    let found = to.metadata().with_context(|| format!("cannot look at {}", to.display()))?;
    ensure!(
        found.uid() == rustix::process::geteuid().as_raw(),
        "{} belongs to another user; name a folder that is yours, or one that does not exist",
        to.display()
    );
    std::fs::set_permissions(to, Permissions::from_mode(0o700))
        .with_context(|| format!("cannot close {} to other users", to.display()))
}

/// A backup in the making.
struct Taking<'a> {
    config: &'a Config,
    work: &'a Path,
    data: Tree,
    copy: Tree,
    lists: Lists,
    skipped: Skipped,
    counts: Counts,
    /// The homes that changed during every pass of the last round.
    changing: BTreeSet<Vec<u8>>,
    homes: u64,
}

impl<'a> Taking<'a> {
    fn new(config: &'a Config, work: &'a Path) -> anyhow::Result<Taking<'a>> {
        let open = |path: &Path| Tree::open(path).with_context(|| format!("cannot open {}", path.display()));
        // Opened as the owner: a link that the owner planted gives the superuser no other folder.
        let data = as_owner(config, || open(&config.fixed.data))?;
        Ok(Taking {
            config,
            work,
            data,
            copy: open(&work.join(DATA))?,
            lists: Lists::of(&work.join(LISTS)),
            skipped: Skipped::of(config),
            counts: Counts::default(),
            changing: BTreeSet::new(),
            homes: 0,
        })
    }

    fn run(mut self, accounts: &Accounts, to: &Path) -> anyhow::Result<Taken> {
        let (copied, one_moment) = self.copy_all(accounts)?;
        let owner = self.data.root().metadata()?;
        let name = name_of(Uid::from_raw(owner.uid()));
        let created = format_rfc3339(since_1970(SystemTime::now()));
        let head = Head::new(created, (owner.uid(), owner.gid(), name));
        let sum = self.finish(&head, to)?;
        let changing = self.changing.iter().cloned().collect();
        let facts = Facts { config: self.config, accounts, copied, homes: self.homes, changing, one_moment };
        Ok(Taken::new(to, facts, &sum, &self.counts))
    }

    /// Copies files and accounts. Returns the numbers of the accounts, and whether all is of one moment.
    fn copy_all(&mut self, accounts: &Accounts) -> anyhow::Result<(Option<CopiedDirectory>, bool)> {
        self.settle_all(1)?;
        for _ in 0..BACKUP_ROUNDS_MAX {
            let (copied, one_moment) = accounts.copy(self.config, self.work)?;
            if !self.settle_all(BACKUP_PASSES_MAX)? && one_moment {
                return Ok((copied, true));
            }
        }
        Ok((accounts.copy(self.config, self.work)?.0, false))
    }

    /// Brings the copies of all units up to date, in at most so many passes over each. Returns whether a home
    /// had changed.
    fn settle_all(&mut self, passes: usize) -> anyhow::Result<bool> {
        let config = self.config;
        as_owner(config, || {
            let units = Unit::all(&self.data).context("cannot list the homes")?;
            self.changing.clear();
            self.homes = 0;
            let mut has_changes = self.forget_others(&units)?;
            for unit in &units {
                has_changes |= self.settle(unit, passes)?;
            }
            Ok(has_changes)
        })
    }

    /// Drops the copies of homes that are gone. Returns whether there were any.
    fn forget_others(&self, units: &[Unit]) -> anyhow::Result<bool> {
        let present: BTreeSet<Vec<u8>> = units.iter().map(Unit::folder).collect();
        let listed = self.lists.units()?;
        let gone: Vec<&Vec<u8>> = listed.iter().filter(|unit| !present.contains(*unit)).collect();
        for unit in &gone {
            let (folder, name) = self.copy.parent(unit)?;
            remove(&folder, name)?;
            self.lists.remove(unit)?;
        }
        Ok(!gone.is_empty())
    }

    /// Repeats passes over a unit until one finds no change. Returns whether the first one found any. Changes
    /// in the rest of the folder, such as new lines of a log, do not count.
    fn settle(&mut self, unit: &Unit, passes: usize) -> anyhow::Result<bool> {
        let Unit::Home(name) = unit else { return self.pass(unit).map(|_| false) };
        for number in 1..=passes {
            // Another round follows the first pass over everything.
            let is_last = number == passes && passes > 1;
            match self.pass(unit)? {
                None => return Ok(number > 1),
                Some(false) => {
                    self.homes += 1;
                    return Ok(number > 1);
                }
                Some(true) if is_last => drop(self.changing.insert(name.clone())),
                // File times are this coarse: a change within the last tick could be followed by another that
                // leaves the same time.
                Some(true) if passes > 1 => std::thread::sleep(FILE_TIME_TICK),
                Some(true) => {}
            }
        }
        self.homes += 1;
        Ok(true)
    }

    /// Runs one pass. Returns whether it found changes, or `None` if the unit is gone.
    fn pass(&mut self, unit: &Unit) -> anyhow::Result<Option<bool>> {
        let name = unit.folder();
        let before = self.lists.read(&name)?;
        let (source, trees) = ((unit, &self.skipped), (&self.data, &self.copy));
        let pass = Pass::new(source, trees, before, &mut self.counts).with_context(|| super::at(&name))?;
        let Some(pass) = pass else { return Ok(None) };
        let found = pass.run()?;
        self.lists.write(&name, &found.entries)?;
        Ok(Some(found.has_changes))
    }

    /// Verifies the copies, writes the manifest and gives everything its name.
    fn finish(&self, head: &Head, to: &Path) -> anyhow::Result<Sum> {
        syncfs(self.copy.root()).context("cannot sync the backup")?;
        let mut options = OpenOptions::new();
        let manifest = options.write(true).create_new(true).mode(0o600).open(to.join(NEW_MANIFEST))?;
        let sum = self.write(Writer::new(manifest, head)?)?;
        for name in [DATA, DIRECTORY, DUMP] {
            match std::fs::rename(self.work.join(name), to.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                moved => moved.context("cannot give the backup its names")?,
            }
        }
        let folder = File::open(to)?;
        folder.sync_all()?;
        std::fs::remove_dir_all(self.work)?;
        std::fs::rename(to.join(NEW_MANIFEST), to.join(MANIFEST))?;
        folder.sync_all()?;
        Ok(sum)
    }

    fn write(&self, mut manifest: Writer) -> anyhow::Result<Sum> {
        let backup = Tree::open(self.work)?;
        for unit in self.lists.units()? {
            for (path, mut entry) in self.lists.read(&unit)? {
                let path = if path.is_empty() { unit.clone() } else { join(&unit, &path) };
                let path = if path.is_empty() { DATA.into() } else { join(DATA.as_bytes(), &path) };
                entry.path = EntryPath(path);
                manifest.add(&backup, entry)?;
            }
        }
        for name in [DIRECTORY, DUMP] {
            if let Ok(found) = self.work.join(name).metadata() {
                let kind = EntryKind::File { size: found.len(), digest: None };
                manifest.add(&backup, Entry::new(name.into(), kind, &found, None))?;
            }
        }
        Ok(manifest.finish()?)
    }
}
