//! `plimsoll get`: downloads files from the server.
//!
//! The transfer itself is in [`crate::download`]. Invariants: a local file is replaced by a
//! complete file or not at all. A name from the server never leads out of its target folder. Every failed
//! file is reported.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plimsoll_io::Work;
use serde::Serialize;

use super::put::{Failed, INTERRUPTED, TWICE};
use super::server_args::SessionArgs;
use crate::WrongUsage;
use crate::download::{Part, Transferred, fetch_part, get_stream, place_all};
use crate::limits::{NAMED_TOGETHER_MAX, RECEIVING_CONNECTIONS, WHOLE_BYTES_MAX};
use crate::listing::{EntryKind, RemoteStat, not_found};
use crate::output::{print_json, text};
use crate::parallel::{TransferQueues, transfer_all};
use crate::{ApiClient, Failure, Failures, Progress, RemotePath, Runtime};

/// Download files from the server, and folders with -r
#[derive(Args)]
#[command(override_usage = "plimsoll get [OPTIONS] PATH... [DIR]")]
#[command(after_help = "Examples:
  plimsoll get report.pdf                   into this folder
  plimsoll get a.jpg photos/b.jpg ~/photos  into a local folder
  plimsoll get report.pdf ./final.pdf       under another name
  plimsoll get -r photos backup/            as backup/photos; creates backup
  plimsoll get bob:report.pdf               the files that bob shares with you
  plimsoll get backup.tar - | tar x

The last of several is the DIR, as for cp: a local folder, or one to create if it ends with a slash;
for one PATH alone, also the file's new name. Files keep their modification times. A local file is
replaced when the download is complete. To resume an interrupted download, type the same command
again.
JSON: {\"files\":[{\"path\":\"photos/b.jpg\",\"file\":\"b.jpg\",\"bytes\":5120,\"received\":5120}],
       \"failed\":[{\"file\":\"a.jpg\",\"error\":\"...\"}]}")]
pub struct Get {
    /// The files on the server, OWNER:PATH for another account's; the last is the local folder, or - for
    /// standard output
    #[arg(value_name = "PATH... [DIR]", required = true, num_args = 1..)]
    paths: Vec<OsString>,
    /// The local folder, or the local name of a single file
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Download folders too, with all their contents
    #[arg(short)]
    recursive: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A file to download, and its target path.
struct Job {
    from: RemotePath,
    bytes: u64,
    /// The time of modification in nanoseconds, if the server sends it.
    modified: Option<Duration>,
    to: PathBuf,
}

#[derive(Default, Serialize)]
struct Done {
    files: Vec<ReceivedFile>,
    /// The folders of the received files, to be synced.
    #[serde(skip)]
    folders: BTreeSet<PathBuf>,
    failed: Vec<Failed>,
    /// The error that prevented the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct ReceivedFile {
    path: String,
    file: String,
    bytes: u64,
    received: u64,
}

impl Get {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let (from, to) = self.places_and_folder()?;
        if to.as_os_str() == "-" && (self.json || self.recursive) {
            return Err(
                WrongUsage("standard output takes files alone, without -r and --json".to_owned()).into()
            );
        }
        let (recursive, quiet, json) = (self.recursive, self.quiet, self.json);
        self.session.run(runtime, async move |mut server| {
            let mut failures = Failures::default();
            let mut done = Done::default();
            let jobs = plan(&mut server, &from, &to, recursive, &mut failures).await?;
            let ended = receive(&mut server, &jobs, quiet, &mut failures, &mut done).await;
            if json {
                let failed = failures.failed.iter().cloned();
                done.failed.extend(failed.map(|(file, error)| Failed { file, error }));
                done.error = ended.as_ref().err().map(|error| format!("{error:#}"));
                print_json(&done)?;
            }
            ended?;
            failures.end()
        })
    }

    /// Returns the files to download and their target. The last of several operands is the target, as for
    /// cp.
    fn places_and_folder(&self) -> Result<(Vec<RemotePath>, PathBuf), WrongUsage> {
        let (paths, to) = match (&self.to, self.paths.as_slice()) {
            (Some(to), paths) => (paths, to.clone()),
            (None, [paths @ .., last]) if !paths.is_empty() => (paths, PathBuf::from(last)),
            (None, paths) => (paths, PathBuf::from("./")),
        };
        let places = paths.iter().map(|path| RemotePath::parse(path)).collect::<Result<Vec<_>, _>>()?;
        Ok((places, to))
    }
}

/// Returns all files to download. Creates the local folders.
async fn plan(
    server: &mut ApiClient,
    from: &[RemotePath],
    to: &Path,
    recursive: bool,
    failures: &mut Failures,
) -> anyhow::Result<Vec<Job>> {
    let is_stream = to.as_os_str() == "-";
    let into = !is_stream && (to.is_dir() || to.as_os_str().as_bytes().ends_with(b"/"));
    if from.len() > 1 && !into && !is_stream {
        let shown = text(to.as_os_str().as_bytes());
        return Err(WrongUsage(format!(
            "{shown} is no folder here to put several files into; end it with a slash, or add ./ to put all \
             of them into this folder"
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
        if let Err(failure) = plan_one(server, place, target, recursive, failures, &mut jobs).await {
            failures.failed(&Progress::none(), place.to_string(), failure)?;
        }
    }
    Ok(jobs)
}

async fn plan_one(
    server: &mut ApiClient,
    place: &RemotePath,
    target: PathBuf,
    recursive: bool,
    failures: &mut Failures,
    jobs: &mut Vec<Job>,
) -> Result<(), Failure> {
    let metadata = server.stat(place).await?.ok_or_else(|| not_found(place))?;
    match metadata {
        RemoteStat { kind: EntryKind::File, size, .. } => {
            jobs.push(Job { from: place.clone(), bytes: size, modified: None, to: target });
        }
        _ if recursive => return plan_folder(server, place, target, failures, jobs).await,
        _ => {
            let why = "It is a folder. Bring it with all that is in it: plimsoll get -r";
            return Err(Failure::Local(why.to_owned()));
        }
    }
    Ok(())
}

/// Plans a folder and its subfolders. A folder that fails is reported, and the others continue.
async fn plan_folder(
    server: &mut ApiClient,
    place: &RemotePath,
    target: PathBuf,
    failures: &mut Failures,
    jobs: &mut Vec<Job>,
) -> Result<(), Failure> {
    let mut folders = vec![(place.clone(), target)];
    while let Some((place, target)) = folders.pop() {
        match plan_level(server, &place, &target, jobs).await {
            Ok(mut deeper) => folders.append(&mut deeper),
            Err(failure) if failure.affects_all_requests() => return Err(failure),
            Err(failure) => failures.record(&Progress::none(), place.to_string(), failure.to_string()),
        }
    }
    Ok(())
}

/// Plans the files of one folder and creates it locally. Returns its subfolders.
async fn plan_level(
    server: &mut ApiClient,
    place: &RemotePath,
    target: &Path,
    jobs: &mut Vec<Job>,
) -> Result<Vec<(RemotePath, PathBuf)>, Failure> {
    let listing = server.list(place).await?;
    fs::create_dir_all(target).map_err(|error| Failure::local("cannot make the folder here", &error))?;
    let mut folders = Vec::new();
    for entry in listing.entries {
        let name = entry.bytes()?;
        let (from, to) = (place.join(&name), target.join(OsString::from_vec(name)));
        match entry.kind {
            EntryKind::File => {
                let (bytes, modified) = (entry.size.unwrap_or(0), entry.modified_at());
                jobs.push(Job { from, bytes, modified, to });
            }
            EntryKind::Folder => folders.push((from, to)),
        }
    }
    folders.reverse();
    Ok(folders)
}

/// Received files that are not renamed yet, with their job numbers.
type Fetched = Vec<(usize, Part, Transferred)>;

/// The results of a command's connections so far.
struct Received<'a> {
    failures: &'a mut Failures,
    done: Vec<(usize, Transferred)>,
    /// Small files that are synced and renamed together.
    fetched: Fetched,
}

async fn receive(
    server: &mut ApiClient,
    jobs: &[Job],
    quiet: bool,
    failures: &mut Failures,
    done: &mut Done,
) -> anyhow::Result<()> {
    let is_stream = jobs.iter().any(|job| job.to.as_os_str() == "-");
    let bytes = jobs.iter().map(|job| job.bytes).sum();
    let progress = Progress::new(quiet || is_stream, jobs.len(), Some(bytes));
    if !is_stream {
        progress.on_interrupt(INTERRUPTED)?;
    }
    let (mut pending, mut seen) = (Vec::new(), HashSet::new());
    for (number, job) in jobs.iter().enumerate() {
        if !is_stream && !seen.insert(&job.to) {
            failures.record(&progress, job.from.to_string(), TWICE.to_owned());
        } else {
            // Streams are received one after the other.
            pending.push((number, if is_stream { u64::MAX } else { job.bytes }));
        }
    }
    let queues = TransferQueues::new(pending.into_iter(), WHOLE_BYTES_MAX);
    // Each received file stays open until it is renamed.
    let limit = usize::try_from((server.runtime.raise_open_files)() / 2).unwrap_or(usize::MAX);
    let named_together = NAMED_TOGETHER_MAX.min(limit).max(1);
    let received = RefCell::new(Received { failures, done: Vec::new(), fetched: Vec::new() });
    let transfer = async |server: &mut ApiClient, number: usize| {
        let Job { from, bytes, modified, to } = &jobs[number];
        let one = progress.begin(&from.to_string(), Some(*bytes));
        let fetched = match is_stream {
            true => get_stream(server, from, &one).await.map(|got| (got, None)),
            false => {
                let fetched = fetch_part(server, from, to, *modified, &one).await;
                fetched.map(|(got, part)| (got, Some(part)))
            }
        };
        let fetched = received.borrow_mut().record((number, fetched), named_together, &progress, jobs)?;
        name(server, &received, fetched, &progress, jobs).await
    };
    let ended = transfer_all(server, (&queues, RECEIVING_CONNECTIONS), &transfer).await;
    let fetched = std::mem::take(&mut received.borrow_mut().fetched);
    let named = name(server, &received, fetched, &progress, jobs).await;
    received.into_inner().end(jobs, &progress, done);
    let ended = ended.and(named);
    if !is_stream {
        sync(&done.folders)?;
    }
    ended
}

/// Syncs and renames received files, on another thread.
async fn name(
    server: &ApiClient,
    received: &RefCell<Received<'_>>,
    fetched: Fetched,
    progress: &Progress,
    jobs: &[Job],
) -> anyhow::Result<()> {
    if fetched.is_empty() {
        return Ok(());
    }
    let (waiting, parts): (Vec<_>, Vec<_>) =
        fetched.into_iter().map(|(number, part, got)| ((number, got), part)).unzip();
    let placed = server.io.offload(Work::Chores, move |_| place_all(parts)).await;
    let received = &mut *received.borrow_mut();
    for ((number, got), placed) in waiting.into_iter().zip(placed.map_err(io::Error::from)?) {
        match placed {
            Ok(()) => received.done.push((number, got)),
            Err(failure) => received.failures.failed(progress, jobs[number].from.to_string(), failure)?,
        }
    }
    Ok(())
}

impl Received<'_> {
    /// Records the result of a job. Returns the files to rename now.
    fn record(
        &mut self,
        (number, fetched): (usize, Result<(Transferred, Option<Part>), Failure>),
        named_together: usize,
        progress: &Progress,
        jobs: &[Job],
    ) -> anyhow::Result<Fetched> {
        match fetched {
            Ok((got, Some(part))) => {
                self.fetched.push((number, part, got));
                if got.bytes > WHOLE_BYTES_MAX || self.fetched.len() >= named_together {
                    return Ok(std::mem::take(&mut self.fetched));
                }
            }
            Ok((got, None)) => self.done.push((number, got)),
            Err(failure) => self.failures.failed(progress, jobs[number].from.to_string(), failure)?,
        }
        Ok(Vec::new())
    }

    /// Reports the received files.
    fn end(mut self, jobs: &[Job], progress: &Progress, done: &mut Done) {
        self.done.sort_by_key(|(number, _)| *number);
        for (number, Transferred { bytes, received }) in &self.done {
            let Job { from, to, .. } = &jobs[*number];
            done.folders.extend(to.parent().map(Path::to_owned));
            let file = text(to.as_os_str().as_bytes());
            done.files.push(ReceivedFile {
                path: from.to_string(),
                file,
                bytes: *bytes,
                received: *received,
            });
        }
        let names: Vec<String> = done.files.iter().map(|came| came.file.clone()).collect();
        progress.summarise(&names, done.files.iter().map(|came| came.bytes).sum(), 0);
    }
}

/// Syncs the folders, so that the new names survive a power cut.
fn sync(folders: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for folder in folders {
        let path = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let synced = File::open(path).and_then(|folder| folder.sync_all());
        synced.with_context(|| format!("cannot sync the folder {}", path.display()))?;
    }
    Ok(())
}
