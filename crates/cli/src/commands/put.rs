//! `plimsoll put`: uploads files to the server.
//!
//! The transfer itself is in [`crate::upload`]. Invariants: the operands and the local files always
//! determine which operand is the path on the server. Every failed file is reported.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::mkdir::{make_all, make_one};
use super::server_args::SessionArgs;
use crate::WrongUsage;
use crate::limits::{SENDING_CONNECTIONS, WHOLE_BYTES_MAX};
use crate::listing::EntryKind;
use crate::local::{WalkEntry, modified, name_of, walk};
use crate::output::{print_json, text};
use crate::parallel::{TransferQueues, transfer_all};
use crate::upload::{put_file, put_stream};
use crate::{ApiClient, Failure, Failures, Progress, RemotePath, Runtime};

/// Upload files to the server, and folders with -r
#[derive(Args)]
#[command(override_usage = "plimsoll put [OPTIONS] FILE... [PATH]")]
#[command(after_help = "Examples:
  plimsoll put report.pdf                   to the top of the home
  plimsoll put report.pdf work/final.pdf    under another name
  plimsoll put a.jpg b.jpg photos/          into a folder
  plimsoll put -r photos backup/            as backup/photos, with all its contents
  plimsoll put -r photos backup             as backup; files that are there already stay
  plimsoll put -p a.jpg cam/2027/11/        and make the folders that are missing
  plimsoll put a.jpg bob:inbox/             into a folder that bob shares with you to write to
  tar c . | plimsoll put - backup.tar

The last of several is the PATH, as for cp; one FILE alone goes to the top of the home. A PATH that
ends with a slash, or that is a folder on the server, is the folder to put files into. Files keep
their modification times; -r skips those that have the same size and time on the server. To resume
an interrupted upload, type the same command again.
JSON: {\"files\":[{\"file\":\"a.jpg\",\"path\":\"photos/a.jpg\",\"bytes\":5120,\"sent\":5120}],
       \"failed\":[{\"file\":\"b.jpg\",\"error\":\"...\"}]}")]
pub struct Put {
    /// The files, - for standard input; the last is the PATH on the server, OWNER:PATH for another
    /// account's
    #[arg(value_name = "FILE... [PATH]", required = true, num_args = 1..)]
    files: Vec<OsString>,
    /// The PATH on the server
    #[arg(long, value_name = "PATH")]
    to: Option<OsString>,
    /// Upload folders too, with all their contents
    #[arg(short)]
    recursive: bool,
    /// Create the missing folders of PATH
    #[arg(long, short)]
    parents: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A folder to create, or a file or stream to upload.
enum Job {
    Folder(RemotePath),
    File { path: PathBuf, bytes: u64, modified: Duration, to: RemotePath },
    Stream(RemotePath),
}

/// The error of a file with the same target as an earlier one.
pub(super) const TWICE: &str = "It would replace one that was just put there. Give it another name.";

/// The JSON output.
#[derive(Default, Serialize)]
struct Done {
    files: Vec<SentFile>,
    /// The number of files that the server has unchanged already.
    #[serde(skip)]
    unchanged: usize,
    failed: Vec<Failed>,
    /// The error that prevented the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct SentFile {
    file: String,
    path: String,
    bytes: u64,
    sent: u64,
}

/// A file that failed, and the reason.
#[derive(Serialize)]
pub(super) struct Failed {
    pub(super) file: String,
    pub(super) error: String,
}

impl Put {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let (files, to) = self.files_and_place()?;
        if files.len() > 1 && files.iter().any(|file| file == "-") {
            return Err(WrongUsage("standard input goes alone: plimsoll put - PATH".to_owned()).into());
        }
        let (recursive, parents, quiet, json) = (self.recursive, self.parents, self.quiet, self.json);
        self.session.run(runtime, async move |mut server| {
            let (mut done, mut failures) = (Done::default(), Failures::default());
            let jobs = plan(&mut server, &files, &to, (recursive, parents), &mut failures).await?;
            let ended = send(&mut server, &jobs, (quiet, recursive), &mut failures, &mut done).await;
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

    /// Returns the files to upload and their target. The last of several operands is the target, as for cp.
    fn files_and_place(&self) -> Result<(Vec<PathBuf>, RemotePath), WrongUsage> {
        let mut files: Vec<PathBuf> = self.files.iter().map(PathBuf::from).collect();
        let to = match (&self.to, self.files.as_slice()) {
            (Some(to), _) => RemotePath::parse(to)?,
            (None, [first]) if first == "-" => {
                return Err(WrongUsage("standard input needs a name: plimsoll put - PATH".to_owned()));
            }
            (None, [_, .., last]) => {
                files.pop();
                RemotePath::parse(last)?
            }
            (None, _) => RemotePath::home(),
        };
        Ok((files, to))
    }
}

/// Returns all folders and files to upload, each folder before its contents.
async fn plan(
    server: &mut ApiClient,
    files: &[PathBuf],
    to: &RemotePath,
    (recursive, parents): (bool, bool),
    failures: &mut Failures,
) -> anyhow::Result<Vec<Job>> {
    let is_one_folder = matches!(files, [file] if file.is_dir());
    let into = to.is_folder || (!is_one_folder && is_folder(server, to).await?);
    if files.len() > 1 && !into {
        return Err(WrongUsage(format!(
            "{to} is no folder to put several files into; end it with a slash, or add / to put all of \
                 them at the top of the home"
        ))
        .into());
    }
    let folder = if into { Some(to.clone()) } else { to.parent().filter(|_| parents) };
    if let Some(folder) = folder.filter(|folder| (recursive || parents) && !folder.is_home()) {
        make_all(server, &folder).await.with_context(|| folder.to_string())?;
    }
    let mut jobs = Vec::new();
    for file in files {
        let name = name_of(file).filter(|_| file.as_os_str() != "-");
        let place = match name {
            Some(name) if into => to.join(&name),
            None if into => {
                return Err(WrongUsage(format!("{} has no name; say which: PATH", file.display())).into());
            }
            _ => RemotePath { is_folder: false, ..to.clone() },
        };
        plan_one(file, place, recursive, failures, &mut jobs);
    }
    Ok(jobs)
}

async fn is_folder(server: &mut ApiClient, place: &RemotePath) -> Result<bool, Failure> {
    Ok(server.stat(place).await?.is_some_and(|entry| entry.kind == EntryKind::Folder))
}

fn plan_one(file: &Path, place: RemotePath, recursive: bool, failures: &mut Failures, jobs: &mut Vec<Job>) {
    let mut fail = |path: &Path, why: String| failures.record(&Progress::none(), printable(path), why);
    if file.as_os_str() == "-" {
        return jobs.push(Job::Stream(place));
    }
    match std::fs::metadata(file) {
        Ok(entry) if entry.is_file() => {
            jobs.push(Job::file(file.to_owned(), &entry, place));
        }
        Ok(entry) if entry.is_dir() && !recursive => {
            fail(file, "It is a folder. Send it with all that is in it: plimsoll put -r".to_owned());
        }
        Ok(entry) if entry.is_dir() => {
            jobs.push(Job::Folder(place.clone()));
            let below = |path: &Path| {
                let names = path.strip_prefix(file).unwrap_or(path);
                place.join(names.as_os_str().as_bytes())
            };
            for step in walk(file) {
                match step {
                    WalkEntry::Folder(path) => jobs.push(Job::Folder(below(&path))),
                    WalkEntry::File(path, entry) => {
                        let to = below(&path);
                        jobs.push(Job::file(path, &entry, to));
                    }
                    WalkEntry::Unsupported(path, why) => fail(&path, why),
                }
            }
        }
        Ok(_) => fail(file, "It is neither a file nor a folder.".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fail(
                file,
                "There is no such file here. Check the name, and the folder that you are in.".to_owned(),
            );
        }
        Err(error) => fail(file, error.to_string()),
    }
}

impl Job {
    fn file(path: PathBuf, entry: &Metadata, to: RemotePath) -> Job {
        Job::File { path, bytes: entry.len(), modified: modified(entry), to }
    }

    /// Returns the length of a file; `None` for a folder, and for a stream, because its length is unknown.
    fn bytes(&self) -> Option<u64> {
        if let Job::File { bytes, .. } = self { Some(*bytes) } else { None }
    }
}

/// The message after Ctrl-C.
pub(super) const INTERRUPTED: &str =
    "Interrupted. Type the same command again: it goes on where this one stopped.";

async fn send(
    server: &mut ApiClient,
    jobs: &[Job],
    (quiet, recursive): (bool, bool),
    failures: &mut Failures,
    done: &mut Done,
) -> anyhow::Result<()> {
    let unknown = jobs.iter().any(|job| matches!(job, Job::Stream(_)));
    let bytes = jobs.iter().filter_map(Job::bytes).sum();
    let progress = Progress::new(quiet, jobs.iter().filter_map(Job::bytes).count(), Some(bytes));
    if !unknown {
        progress.on_interrupt(INTERRUPTED)?;
    }
    let there = make_folders(server, jobs, recursive, &progress, failures).await?;
    let (mut pending, mut seen) = (Vec::new(), HashSet::new());
    for (number, job) in jobs.iter().enumerate() {
        match job {
            Job::File { path, to, .. } if !seen.insert(to.target()) => {
                failures.record(&progress, printable(path), TWICE.to_owned());
            }
            Job::File { path, bytes, modified, to } if there.has(to, *bytes, *modified) => {
                let sent = SentFile { file: printable(path), path: to.to_string(), bytes: *bytes, sent: 0 };
                done.unchanged += 1;
                done.files.push(sent);
            }
            Job::File { bytes, .. } => pending.push((number, *bytes)),
            Job::Stream(_) => pending.push((number, u64::MAX)),
            Job::Folder(_) => {}
        }
    }
    let queues = TransferQueues::new(pending.into_iter(), WHOLE_BYTES_MAX);
    let results = RefCell::new((failures, Vec::new()));
    let transfer = async |server: &mut ApiClient, number: usize| {
        let (file, to, sent) = match &jobs[number] {
            Job::File { path, bytes, to, .. } => {
                let progress = progress.begin(&printable(path), Some(*bytes));
                let sent = put_file(server, path, to, &progress).await;
                (printable(path), to, sent.map(|sent| (*bytes, sent)))
            }
            Job::Stream(to) | Job::Folder(to) => {
                let progress = progress.begin("-", None);
                let sent = put_stream(server, to, &progress).await;
                ("-".to_owned(), to, sent.map(|sent| (sent, sent)))
            }
        };
        let (failures, sent_files) = &mut *results.borrow_mut();
        match sent {
            Ok((bytes, sent)) => {
                sent_files.push((number, SentFile { file, path: to.to_string(), bytes, sent }));
                Ok(())
            }
            Err(failure) => failures.failed(&progress, file, failure.for_a_file_at(to)),
        }
    };
    let ended = transfer_all(server, (&queues, SENDING_CONNECTIONS), &transfer).await;
    let (_, mut sent) = results.into_inner();
    sent.sort_by_key(|(number, _)| *number);
    // A stream is shown by its name on the server.
    let name = |sent: &SentFile| if sent.file == "-" { sent.path.clone() } else { sent.file.clone() };
    let names: Vec<String> = sent.iter().map(|(_, sent)| name(sent)).collect();
    let bytes = sent.iter().map(|(_, sent)| sent.bytes).sum();
    if ended.is_ok() {
        progress.summarise(&names, bytes, done.unchanged);
    }
    done.files.extend(sent.into_iter().map(|(_, sent)| sent));
    ended
}

/// Files that the server has, by their target: length and time of modification.
#[derive(Default)]
struct RemoteFiles(HashMap<String, (u64, Duration)>);

impl RemoteFiles {
    /// Returns whether a file with this length and time of modification, to the nanosecond, is on the
    /// server.
    fn has(&self, to: &RemotePath, bytes: u64, modified: Duration) -> bool {
        self.0.get(&to.target()) == Some(&(bytes, modified))
    }
}

/// Creates the missing folders, and lists the existing ones.
async fn make_folders(
    server: &mut ApiClient,
    jobs: &[Job],
    recursive: bool,
    progress: &Progress,
    failures: &mut Failures,
) -> anyhow::Result<RemoteFiles> {
    let mut there = RemoteFiles::default();
    for job in jobs {
        let Job::Folder(place) = job else { continue };
        let looked = match make_one(server, place).await {
            Ok(was_there) if was_there && recursive => server.list(place).await,
            Ok(_) => continue,
            Err(failure) => Err(failure),
        };
        match looked {
            Ok(listing) => {
                for entry in listing.entries {
                    if let (EntryKind::File, Some(modified)) = (entry.kind, entry.modified_at()) {
                        let target = place.join(&entry.bytes()?).target();
                        there.0.insert(target, (entry.size.unwrap_or(0), modified));
                    }
                }
            }
            Err(failure) => failures.failed(progress, place.to_string(), failure)?,
        }
    }
    Ok(there)
}

fn printable(path: &Path) -> String {
    text(path.as_os_str().as_bytes())
}
