//! `plimsoll get`: brings files from the server.
//!
//! How they come is [`crate::person::download`]'s. What must hold: what is here is replaced by a whole file
//! or not at all; a name from the server stays in the folder that it is put into; whatever did not come is
//! told.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::at::At;
use super::put::{Failed, TWICE};
use crate::cli::WrongUsage;
use crate::person::download::{Got, get_file, get_stream};
use crate::person::listing::{About, Kind, nothing};
use crate::person::shown::{print_json, text};
use crate::person::{Failure, Place, Progress, Server, Tried};

/// Bring files from the server, and folders with -r
#[derive(Args)]
#[command(override_usage = "plimsoll get [OPTIONS] PATH... [DIR]")]
#[command(after_help = "Examples:
  plimsoll get report.pdf                   into this folder
  plimsoll get a.jpg photos/b.jpg ~/photos  into a folder that is here
  plimsoll get report.pdf ./final.pdf       under another name
  plimsoll get -r photos backup/            as backup/photos; backup is made
  plimsoll get bob:report.pdf               what bob shares with you
  plimsoll get backup.tar - | tar x

The last of several is the DIR if it is a folder here, ends with a slash, begins with ./ or ../, or is
the full path of something in a folder that is here; else it is one more PATH. --to DIR is plain.
A file that is here already is replaced when all has come.
What was cut off is gone on with when the same is typed again.
JSON: {\"files\":[{\"path\":\"photos/b.jpg\",\"file\":\"b.jpg\",\"bytes\":5120,\"received\":5120}],
       \"failed\":[{\"file\":\"a.jpg\",\"error\":\"...\"}]}")]
pub(crate) struct Get {
    /// The files on the server, OWNER:PATH for another's. At last the folder here, or - for standard output
    #[arg(value_name = "PATH... [DIR]", required = true, num_args = 1..)]
    paths: Vec<OsString>,
    /// The folder here, or the name of the one file
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Bring folders too, with all that is in them
    #[arg(short)]
    recursive: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    at: At,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A file that is to come, and where it is to be.
struct Job {
    from: Place,
    bytes: u64,
    to: PathBuf,
}

#[derive(Default, Serialize)]
struct Done {
    files: Vec<Came>,
    failed: Vec<Failed>,
    /// Why the rest was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Came {
    path: String,
    file: String,
    bytes: u64,
    received: u64,
}

impl Get {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (from, to) = self.places_and_folder()?;
        if to.as_os_str() == "-" && (self.json || self.recursive) {
            return Err(
                WrongUsage("standard output takes files alone, without -r and --json".to_owned()).into()
            );
        }
        let (recursive, quiet, json) = (self.recursive, self.quiet, self.json);
        self.at.run(async move |mut server| {
            let mut tried = Tried::default();
            let mut done = Done::default();
            let jobs = plan(&mut server, &from, &to, recursive, &mut tried).await?;
            let ended = receive(&mut server, &jobs, quiet, &mut tried, &mut done).await;
            if json {
                let failed = tried.failed.iter().cloned();
                done.failed.extend(failed.map(|(file, error)| Failed { file, error }));
                done.error = ended.as_ref().err().map(|error| format!("{error:#}"));
                print_json(&done)?;
            }
            ended?;
            tried.end()
        })
    }

    fn places_and_folder(&self) -> Result<(Vec<Place>, PathBuf), WrongUsage> {
        let (paths, to) = match (&self.to, self.paths.as_slice()) {
            (Some(to), paths) => (paths, to.clone()),
            (None, [paths @ .., last]) if !paths.is_empty() && is_here(last) => (paths, PathBuf::from(last)),
            (None, paths) => (paths, PathBuf::from("./")),
        };
        let places = paths.iter().map(|path| Place::parse(path)).collect::<Result<Vec<_>, _>>()?;
        Ok((places, to))
    }
}

/// Whether the last of what was typed is a place on this machine.
fn is_here(last: &OsStr) -> bool {
    let (path, bytes) = (Path::new(last), last.as_bytes());
    let begins = [&b"./"[..], b"../"].iter().any(|dots| bytes.starts_with(dots));
    let has_folder = || {
        let folder = path.parent().filter(|folder| folder.is_absolute() && *folder != Path::new("/"));
        folder.is_some_and(Path::is_dir)
    };
    bytes == b"-" || bytes.ends_with(b"/") || begins || path.is_dir() || has_folder()
}

/// Everything that is to come; folders are made here.
async fn plan(
    server: &mut Server,
    from: &[Place],
    to: &Path,
    recursive: bool,
    tried: &mut Tried,
) -> anyhow::Result<Vec<Job>> {
    let is_stream = to.as_os_str() == "-";
    let into = !is_stream && (to.is_dir() || to.as_os_str().as_bytes().ends_with(b"/"));
    if from.len() > 1 && !into && !is_stream {
        let told = text(to.as_os_str().as_bytes());
        return Err(WrongUsage(format!(
            "{told} is no folder to put several files into; end it with a slash"
        ))
        .into());
    }
    if into {
        fs::create_dir_all(to).with_context(|| format!("cannot make the folder {}", to.display()))?;
    }
    let mut jobs = Vec::new();
    for place in from {
        let target = match place.name() {
            Some(name) if into => to.join(OsStr::from_bytes(name)),
            _ => to.to_owned(),
        };
        if let Err(failure) = plan_one(server, place, target, recursive, tried, &mut jobs).await {
            tried.failed(&Progress::none(), place.to_string(), failure)?;
        }
    }
    Ok(jobs)
}

async fn plan_one(
    server: &mut Server,
    place: &Place,
    target: PathBuf,
    recursive: bool,
    tried: &mut Tried,
    jobs: &mut Vec<Job>,
) -> Result<(), Failure> {
    let about = server.look(place).await?.ok_or_else(|| nothing(place))?;
    match about {
        About { kind: Kind::File, size, .. } => {
            jobs.push(Job { from: place.clone(), bytes: size, to: target })
        }
        _ if recursive => return plan_folder(server, place, target, tried, jobs).await,
        _ => {
            let why = "It is a folder. Bring it with all that is in it: plimsoll get -r";
            return Err(Failure::Here(why.to_owned()));
        }
    }
    Ok(())
}

/// Goes through a folder and those in it; each that fails is told, and the others come.
async fn plan_folder(
    server: &mut Server,
    place: &Place,
    target: PathBuf,
    tried: &mut Tried,
    jobs: &mut Vec<Job>,
) -> Result<(), Failure> {
    let mut folders = vec![(place.clone(), target)];
    while let Some((place, target)) = folders.pop() {
        match plan_level(server, &place, &target, jobs).await {
            Ok(mut deeper) => folders.append(&mut deeper),
            Err(failure) if failure.is_of_all() => return Err(failure),
            Err(failure) => tried.note(&Progress::none(), place.to_string(), failure.to_string()),
        }
    }
    Ok(())
}

/// Takes down the files of one folder, makes it here, and gives back the folders in it.
async fn plan_level(
    server: &mut Server,
    place: &Place,
    target: &Path,
    jobs: &mut Vec<Job>,
) -> Result<Vec<(Place, PathBuf)>, Failure> {
    let listing = server.list(place).await?;
    fs::create_dir_all(target).map_err(|error| Failure::here("cannot make the folder here", &error))?;
    let mut folders = Vec::new();
    for entry in listing.entries {
        let name = entry.bytes()?;
        let (from, to) = (place.join(&name), target.join(OsString::from_vec(name)));
        match entry.kind {
            Kind::File => jobs.push(Job { from, bytes: entry.size.unwrap_or(0), to }),
            Kind::Folder => folders.push((from, to)),
        }
    }
    folders.reverse();
    Ok(folders)
}

async fn receive(
    server: &mut Server,
    jobs: &[Job],
    quiet: bool,
    tried: &mut Tried,
    done: &mut Done,
) -> anyhow::Result<()> {
    let is_stream = jobs.iter().any(|job| job.to.as_os_str() == "-");
    let progress = Progress::new(quiet || is_stream, jobs.len(), jobs.iter().map(|job| job.bytes).sum());
    let mut folders = BTreeSet::new();
    let mut seen = HashSet::new();
    for Job { from, bytes, to } in jobs {
        if !is_stream && !seen.insert(to) {
            tried.note(&progress, from.to_string(), TWICE.to_owned());
            continue;
        }
        progress.begin(&from.to_string(), Some(*bytes));
        let got = match is_stream {
            true => get_stream(server, from, &progress).await,
            false => get_file(server, from, *bytes, to, &progress).await,
        };
        match got {
            Ok(Got { bytes, received }) => {
                folders.extend(to.parent().map(Path::to_owned));
                let file = text(to.as_os_str().as_bytes());
                done.files.push(Came { path: from.to_string(), file, bytes, received });
            }
            Err(failure) => tried.failed(&progress, from.to_string(), failure)?,
        }
    }
    if !is_stream {
        sync(&folders)?;
    }
    Ok(())
}

/// The new names survive a power cut, too.
fn sync(folders: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for folder in folders {
        let path = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let synced = File::open(path).and_then(|folder| folder.sync_all());
        synced.with_context(|| format!("cannot sync the folder {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_is_a_folder_here_only_if_it_looks_like_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).into_os_string();
        for here in ["-", "new/", "./a", "../a", "."].map(OsString::from).into_iter().chain([at(""), at("a")])
        {
            assert!(is_here(&here), "{here:?}");
        }
        for there in
            ["a.txt", "docs/a.txt", "/a.txt", "bob:a"].map(OsString::from).into_iter().chain([at("no/a")])
        {
            assert!(!is_here(&there), "{there:?}");
        }
    }
}
