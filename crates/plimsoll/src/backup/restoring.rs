//! A restore: the files of a backup in a new data folder, and its accounts where the configuration says.
//!
//! Invariants: it writes to nothing that was there before. Every byte is compared with its digest. A server
//! refuses the folder until the restore is complete. The user that owns the folder owns all that is in it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use plimsoll_auth::directory::{
    Opening, StoredRow, Summary, end_all_links, end_all_sessions, file_of, without_password,
};
use plimsoll_cli::output::text;
use rustix::fs::{symlinkat, syncfs};
use rustix::process::{Gid, Uid, geteuid};
use serde::Serialize;

use super::beneath::{Tree, create, open_file};
use super::entry::{Entry, EntryKind};
use super::manifest::Manifest;
use super::mirror::{COPY_BYTES, set_metadata};
use super::taking::refuse_overlap;
use super::{DATA, DIRECTORY, DUMP};
use crate::access::{as_user, name_of, owner, user};
use crate::config::Config;
use crate::directory_rows::{self, is_dump};
use crate::locked_folder::{is_folder_held, take_data_folder};
use crate::open_files;
use crate::tiers::directory_url;

/// The file in a data folder whose restore is not complete.
pub(crate) const UNFINISHED_RESTORE: &str = "restore.unfinished";
/// Names that a new file system or a lock leaves in an otherwise empty folder.
const EMPTY_FOLDER: [&str; 2] = ["lost+found", "lock"];

/// A complete restore.
#[derive(Debug, Serialize)]
pub(crate) struct Restored {
    pub(crate) data: PathBuf,
    /// When the backup was complete.
    pub(crate) backup_of: String,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// The owner of everything that was restored.
    pub(crate) owner: String,
    /// The file of the accounts.
    pub(crate) directory: Option<PathBuf>,
    /// The dump that the operator is to load into the database, because a command of theirs made it.
    pub(crate) dump: Option<PathBuf>,
    /// The database that the accounts were restored into, without its password.
    pub(crate) database: Option<String>,
    /// Log-ins that were ended, if that was ordered.
    pub(crate) ended_log_ins: Option<u64>,
    /// Public links that were ended, if that was ordered.
    pub(crate) ended_links: Option<u64>,
}

/// The rows of a backup that its restore leaves out, because each of them may have ended since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) sessions: bool,
    pub(crate) links: bool,
}

/// Restores the backup `from` into the data folder of the configuration, which is new or empty.
pub(crate) fn restore(config: &Config, from: &Path, ends: Ends) -> anyhow::Result<Restored> {
    let data = &config.fixed.data;
    let manifest = Manifest::open(from)?;
    refuse_overlap(data, from)?;
    ensure!(
        !is_folder_held(data),
        "a plimsoll runs on {}: end it first, and restore into a new folder (--data DIR)",
        data.display()
    );
    refuse_data(data)?;
    let directory = directory_target(config, from)?;
    let dump = Some(from.join(DUMP)).filter(|dump| dump.exists());
    let is_ours = dump.as_deref().is_some_and(is_dump);
    if is_ours {
        refuse_rows(config)?;
    }
    // Nothing here can read the output of another program.
    let is_output = dump.is_some() && !is_ours;
    ensure!(
        !(is_output && (ends.sessions || ends.links)),
        "the accounts in this backup are the output of a command: restore without --end-sessions and \
         --end-links, load the dump into its database, then remove the rows there"
    );
    open_files::raise();
    let owner = make_folder(config, &manifest)?;
    let restored = as_user(owner, || {
        let restoring = Restoring::new(data, from, directory.as_deref())?;
        let restored = restoring.run(&manifest, ends);
        restored.with_context(|| {
            let data = data.display();
            format!("nothing is restored; remove what is in {data} before the next try")
        })
    })?;
    match dump {
        Some(dump) if is_ours => as_user(owner, || restore_rows(config, &dump, ends, restored)),
        dump => Ok(Restored { dump, ..restored }),
    }
}

/// Refuses a directory that has rows.
fn refuse_rows(config: &Config) -> anyhow::Result<()> {
    let url = &config.fixed.directory;
    let shown = without_password(url);
    if let Some(file) = file_of(url) {
        ensure!(
            !file.exists(),
            "there is a directory of accounts at {} already: move it away",
            file.display()
        );
        return Ok(());
    }
    let mut directory = directory_rows::open(&directory_url(&config.fixed)?, Opening::Inspect)?;
    let is_empty = directory.schema()?.version == 0 || Summary::of(&mut *directory)?.is_empty();
    ensure!(
        is_empty,
        "{shown} has accounts already: name an empty database with --directory, or restore the accounts \
         yourself (plimsoll directory restore --replace)"
    );
    Ok(())
}

/// Stores the rows of a dump in the directory of the configuration.
fn restore_rows(config: &Config, dump: &Path, ends: Ends, restored: Restored) -> anyhow::Result<Restored> {
    let shown = without_password(&config.fixed.directory);
    let (mut ended_sessions, mut ended_links) = (0, 0);
    let mut restore = || -> anyhow::Result<()> {
        let mut from = directory_rows::open_dump(dump)?;
        let mut directory = directory_rows::open(&directory_url(&config.fixed)?, Opening::Transfer)?;
        let refuse = |_: &Summary| bail!("it has accounts already");
        directory_rows::fill(&mut *directory, refuse, |each| {
            let all_but_ended = &mut |row| {
                match row {
                    StoredRow::Session(_) if ends.sessions => ended_sessions += 1,
                    StoredRow::Link(_) if ends.links => ended_links += 1,
                    row => return each(row),
                }
                Ok(())
            };
            from.read_rows(all_but_ended).map(drop)
        })?;
        Ok(directory.close("")?)
    };
    let again = || {
        let (dump, data) = (dump.display(), restored.data.display());
        format!(
            "the files are restored into {data}, and the accounts are not: plimsoll directory restore {dump} \
             --directory {shown}"
        )
    };
    restore().with_context(again)?;
    let ended_log_ins = ends.sessions.then_some(ended_sessions);
    let ended_links = ends.links.then_some(ended_links);
    Ok(Restored { database: Some(shown), ended_log_ins, ended_links, ..restored })
}

/// Refuses a data folder with anything in it.
fn refuse_data(data: &Path) -> anyhow::Result<()> {
    let shown = data.display();
    ensure!(
        !data.join(UNFINISHED_RESTORE).exists(),
        "a restore into {shown} was interrupted; remove it first: rm -r {shown}"
    );
    let entries = match data.read_dir() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("cannot read the folder {shown}"))?,
    };
    for entry in entries {
        let name = entry?.file_name();
        if !EMPTY_FOLDER.iter().any(|empty| name == *empty) {
            bail!(
                "{shown} is not empty, and a restore writes over nothing: name a new folder with --data DIR, \
                 or move this one away: mv {shown} {shown}.old"
            );
        }
    }
    Ok(())
}

/// Returns the file that gets the accounts, if the backup has a file of them.
fn directory_target(config: &Config, from: &Path) -> anyhow::Result<Option<PathBuf>> {
    if !from.join(DIRECTORY).exists() {
        return Ok(None);
    }
    let Some(file) = file_of(&config.fixed.directory) else {
        let url = without_password(&config.fixed.directory);
        bail!(
            "the backup has the accounts in a file, and the configuration keeps them at {url}: name a file \
             with --directory sqlite:PATH, then move them (docs/databases.md)"
        );
    };
    for end in ["", "-wal", "-revoked"] {
        let mut path = file.clone().into_os_string();
        path.push(end);
        ensure!(
            !Path::new(&path).exists(),
            "there is a directory of accounts at {} already: move it away, or name another file with \
             --directory",
            file.display()
        );
    }
    Ok(Some(file))
}

/// Creates the data folder. Returns the user that is to own what is in it, if this is the superuser.
fn make_folder(config: &Config, manifest: &Manifest) -> anyhow::Result<Option<(Uid, Gid)>> {
    let data = &config.fixed.data;
    let failed = || format!("cannot make the data folder {}", data.display());
    let there = owner(config).with_context(failed)?;
    let make = || DirBuilder::new().recursive(true).mode(0o700).create(data).with_context(failed);
    if there.is_some() || !geteuid().is_root() {
        as_user(there, make)?;
        return Ok(there);
    }
    let of_backup = owner_of_backup(config, manifest)?;
    let parent = data.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        DirBuilder::new().recursive(true).mode(0o755).create(parent).with_context(failed)?;
    }
    make()?;
    if let Some((uid, gid)) = of_backup {
        chown(data, Some(uid.as_raw()), Some(gid.as_raw())).with_context(failed)?;
    }
    Ok(of_backup)
}

/// Returns the owner of the data of which the backup is, if that is the same user on this machine.
fn owner_of_backup(config: &Config, manifest: &Manifest) -> anyhow::Result<Option<(Uid, Gid)>> {
    let (uid, gid, name) = &manifest.head.owner;
    let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
    if uid.is_root() {
        return Ok(None);
    }
    let data = config.fixed.data.display();
    ensure!(
        name.is_some() && name_of(uid) == *name,
        "the user that owned the data, {}, is another one on this machine. Make the folder for the server's \
         user, then restore: install -d -o USER -m 700 {data}",
        name.clone().unwrap_or_else(|| user(uid))
    );
    Ok(Some((uid, gid)))
}

/// A restore in progress.
struct Restoring<'a> {
    data: &'a Path,
    from: Tree,
    to: Tree,
    directory: Option<&'a Path>,
    /// Folders, with the modes and times that they get when all is in them.
    folders: Vec<(Vec<u8>, Entry)>,
}

impl<'a> Restoring<'a> {
    fn new(data: &'a Path, from: &Path, directory: Option<&'a Path>) -> anyhow::Result<Restoring<'a>> {
        let open = |path: &Path| Tree::open(path).with_context(|| format!("cannot open {}", path.display()));
        Ok(Restoring { data, from: open(from)?, to: open(data)?, directory, folders: Vec::new() })
    }

    fn run(mut self, manifest: &Manifest, ends: Ends) -> anyhow::Result<Restored> {
        // Until the end, no server can start on the folder. Another restore may have begun before the lock.
        let _held = take_data_folder(self.data)?;
        refuse_data(self.data)?;
        let marker = self.data.join(UNFINISHED_RESTORE);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&marker)?.sync_all()?;
        manifest.entries(|entry| {
            let path = text(&entry.path.0);
            self.entry(entry).with_context(|| format!("cannot restore {path}"))
        })?;
        for (path, entry) in self.folders.iter().rev() {
            set_metadata(&self.to.folder(path)?, entry)?;
        }
        let directory = |is_wanted: bool| self.directory.filter(|_| is_wanted);
        let ended_log_ins = directory(ends.sessions).map(end_all_sessions).transpose()?;
        let ended_links = directory(ends.links).map(end_all_links).transpose()?;
        self.sync()?;
        std::fs::remove_file(&marker)?;
        self.to.root().sync_all()?;
        let found = self.to.root().metadata()?;
        Ok(Restored {
            data: self.data.to_owned(),
            backup_of: manifest.head.created.clone(),
            files: manifest.sum.files,
            bytes: manifest.sum.bytes,
            owner: user(Uid::from_raw(found.uid())),
            directory: self.directory.map(Path::to_owned),
            dump: None,
            database: None,
            ended_log_ins,
            ended_links,
        })
    }

    fn sync(&self) -> anyhow::Result<()> {
        syncfs(self.to.root()).context("cannot sync the data folder")?;
        let Some(directory) = self.directory else { return Ok(()) };
        let folder = directory.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        folder.context("cannot sync the directory of accounts")
    }

    fn entry(&mut self, entry: Entry) -> anyhow::Result<()> {
        let in_backup = entry.path.0.clone();
        let path = match in_backup.strip_prefix(DATA.as_bytes()) {
            Some([]) => &[][..],
            Some([b'/', path @ ..]) => path,
            _ if in_backup == DIRECTORY.as_bytes() => return self.accounts(&entry),
            // A dump is loaded when all files are restored, or by the operator.
            _ => return self.compare(&entry).map(drop),
        };
        match &entry.kind {
            EntryKind::Folder => {
                self.to.make_folder(path)?;
                self.folders.push((path.to_vec(), entry));
            }
            EntryKind::Link { target } => {
                let (folder, name) = self.to.parent(path)?;
                symlinkat(target.0.as_slice(), &folder, name)?;
            }
            EntryKind::File { .. } => {
                let (folder, name) = self.to.parent(path)?;
                let mut file = create(&folder, name)?;
                self.bytes(&entry, Some(&mut file))?;
                set_metadata(&file, &entry)?;
            }
        }
        Ok(())
    }

    /// Restores the directory of accounts.
    fn accounts(&self, entry: &Entry) -> anyhow::Result<()> {
        let Some(directory) = self.directory else { return self.compare(entry) };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(directory)?;
        self.bytes(entry, Some(&mut file))?;
        Ok(file.sync_all()?)
    }

    fn compare(&self, entry: &Entry) -> anyhow::Result<()> {
        self.bytes(entry, None)
    }

    /// Copies the bytes of a file, and compares them with its size and digest.
    fn bytes(&self, entry: &Entry, mut to: Option<&mut File>) -> anyhow::Result<()> {
        let EntryKind::File { size, digest } = &entry.kind else { return Ok(()) };
        let (folder, name) = self.from.parent(&entry.path.0)?;
        let mut source = open_file(&folder, name)?;
        let (mut read, mut count, mut buffer) = (blake3::Hasher::new(), 0, vec![0; COPY_BYTES]);
        loop {
            let part = source.read(&mut buffer)?;
            if part == 0 {
                break;
            }
            count += part as u64;
            read.update(&buffer[..part]);
            if let Some(to) = &mut to {
                to.write_all(&buffer[..part])?;
            }
        }
        let is_same = count == *size && digest.as_deref() == Some(read.finalize().to_string().as_str());
        ensure!(is_same, "the backup's file is not what it was when the backup was complete");
        Ok(())
    }
}
