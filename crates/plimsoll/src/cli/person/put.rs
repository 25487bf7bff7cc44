//! `plimsoll put`: sends files to the server.
//!
//! How they are sent is [`crate::person::upload`]'s. What must hold: it is plain from what was typed, and
//! from what is here, which of it is the place on the server; whatever was not sent is told.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::at::At;
use super::mkdir::{make_all, make_one};
use crate::cli::WrongUsage;
use crate::person::listing::Kind;
use crate::person::local::{Step, name_of, walk};
use crate::person::shown::{print_json, text};
use crate::person::upload::{put_file, put_stream};
use crate::person::{Failure, Place, Progress, Server, Tried};

/// Send files to the server, and folders with -r
#[derive(Args)]
#[command(override_usage = "plimsoll put [OPTIONS] FILE... [PATH]")]
#[command(after_help = "Examples:
  plimsoll put report.pdf                   to the top of the home
  plimsoll put report.pdf work/final.pdf    under another name
  plimsoll put a.jpg b.jpg photos/          into a folder
  plimsoll put -r photos backup/            as backup/photos, with all that is in it
  plimsoll put -r photos backup             as backup; what is in a folder already stays
  plimsoll put a.jpg bob:inbox/             into a folder that bob shares with you to write to
  tar c . | plimsoll put - backup.tar

The last of several is the PATH, unless it is the name of a file here (with -r, or a folder): then it
is one more FILE. --to PATH is plain. A PATH that ends with a slash, or that is a folder on the server,
is the folder to put files into. What was cut off is gone on with when the same is typed again.
JSON: {\"files\":[{\"file\":\"a.jpg\",\"path\":\"photos/a.jpg\",\"bytes\":5120,\"sent\":5120}],
       \"failed\":[{\"file\":\"b.jpg\",\"error\":\"...\"}]}")]
pub(crate) struct Put {
    /// The files; - for standard input. At last the PATH on the server, OWNER:PATH for another's
    #[arg(value_name = "FILE... [PATH]", required = true, num_args = 1..)]
    files: Vec<OsString>,
    /// The PATH on the server
    #[arg(long, value_name = "PATH")]
    to: Option<OsString>,
    /// Send folders too, with all that is in them
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

/// What is to be sent.
enum Job {
    Folder(Place),
    File { path: PathBuf, bytes: u64, to: Place },
    Stream(Place),
}

/// Said of a file that has the same place as one before it.
pub(super) const TWICE: &str = "It would replace one that was just put there. Give it another name.";

/// What was done, for programs.
#[derive(Default, Serialize)]
struct Done {
    files: Vec<Sent>,
    failed: Vec<Failed>,
    /// Why the rest was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Sent {
    file: String,
    path: String,
    bytes: u64,
    sent: u64,
}

/// What was not done, and why.
#[derive(Serialize)]
pub(super) struct Failed {
    pub(super) file: String,
    pub(super) error: String,
}

impl Put {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (files, to) = self.files_and_place()?;
        if files.len() > 1 && files.iter().any(|file| file == "-") {
            return Err(WrongUsage("standard input goes alone: plimsoll put - PATH".to_owned()).into());
        }
        let (recursive, quiet, json) = (self.recursive, self.quiet, self.json);
        self.at.run(async move |mut server| {
            let (mut done, mut tried) = (Done::default(), Tried::default());
            let jobs = plan(&mut server, &files, &to, recursive, &mut tried).await?;
            let ended = send(&mut server, &jobs, quiet, &mut tried, &mut done).await;
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

    /// What is sent, and where to.
    fn files_and_place(&self) -> Result<(Vec<PathBuf>, Place), WrongUsage> {
        let mut files: Vec<PathBuf> = self.files.iter().map(PathBuf::from).collect();
        if let Some(to) = &self.to {
            return Ok((files, Place::parse(to)?));
        }
        let to = match self.files.as_slice() {
            [first] if first == "-" => {
                return Err(WrongUsage("standard input needs a name: plimsoll put - PATH".to_owned()));
            }
            // Standard input goes alone: what follows it can only be its place.
            [first, last] if first == "-" => {
                files.pop();
                Place::parse(last)?
            }
            [.., before, last] if is_place(before, last, self.recursive) => {
                files.pop();
                Place::parse(last)?
            }
            _ => Place::home(),
        };
        Ok((files, to))
    }
}

/// Whether the last of what was typed is the place on the server. The same twice is one file and its place.
fn is_place(before: &OsString, last: &OsString, recursive: bool) -> bool {
    let here = std::fs::metadata(last);
    let is_sent = here.is_ok_and(|about| about.is_file() || (recursive && about.is_dir()));
    last.as_bytes().ends_with(b"/") || !is_sent || before == last
}

/// Everything that is to be sent, folders before what is in them.
async fn plan(
    server: &mut Server,
    files: &[PathBuf],
    to: &Place,
    recursive: bool,
    tried: &mut Tried,
) -> anyhow::Result<Vec<Job>> {
    let is_one_folder = matches!(files, [file] if file.is_dir());
    let into = to.is_folder || (!is_one_folder && is_folder(server, to).await?);
    if files.len() > 1 && !into {
        return Err(
            WrongUsage(format!("{to} is no folder to put several files into; end it with a slash")).into()
        );
    }
    if recursive && into && !to.is_home() {
        make_all(server, to).await.with_context(|| to.to_string())?;
    }
    let mut jobs = Vec::new();
    for file in files {
        let name = name_of(file).filter(|_| file.as_os_str() != "-");
        let place = match name {
            Some(name) if into => to.join(&name),
            None if into => {
                return Err(WrongUsage(format!("{} has no name; say which: PATH", file.display())).into());
            }
            _ => Place { is_folder: false, ..to.clone() },
        };
        plan_one(file, place, recursive, tried, &mut jobs);
    }
    Ok(jobs)
}

async fn is_folder(server: &mut Server, place: &Place) -> Result<bool, Failure> {
    Ok(server.look(place).await?.is_some_and(|about| about.kind == Kind::Folder))
}

fn plan_one(file: &Path, place: Place, recursive: bool, tried: &mut Tried, jobs: &mut Vec<Job>) {
    let mut fail = |path: &Path, why: String| tried.note(&Progress::none(), told(path), why);
    if file.as_os_str() == "-" {
        return jobs.push(Job::Stream(place));
    }
    match std::fs::metadata(file) {
        Ok(about) if about.is_file() => {
            jobs.push(Job::File { path: file.to_owned(), bytes: about.len(), to: place })
        }
        Ok(about) if about.is_dir() && !recursive => {
            fail(file, "It is a folder. Send it with all that is in it: plimsoll put -r".to_owned());
        }
        Ok(about) if about.is_dir() => {
            jobs.push(Job::Folder(place.clone()));
            let below = |path: &Path| {
                let names = path.strip_prefix(file).unwrap_or(path);
                place.join(names.as_os_str().as_bytes())
            };
            for step in walk(file) {
                match step {
                    Step::Folder(path) => jobs.push(Job::Folder(below(&path))),
                    Step::File(path, bytes) => jobs.push(Job::File { to: below(&path), path, bytes }),
                    Step::Not(path, why) => fail(&path, why),
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

async fn send(
    server: &mut Server,
    jobs: &[Job],
    quiet: bool,
    tried: &mut Tried,
    done: &mut Done,
) -> anyhow::Result<()> {
    let sizes =
        || jobs.iter().filter_map(|job| if let Job::File { bytes, .. } = job { Some(*bytes) } else { None });
    let progress = Progress::new(quiet, sizes().count(), sizes().sum());
    let mut seen = HashSet::new();
    for job in jobs {
        let (file, to, sent) = match job {
            Job::Folder(place) => {
                if let Err(failure) = make_one(server, place).await {
                    tried.failed(&progress, place.to_string(), failure)?;
                }
                continue;
            }
            Job::File { path, to, .. } if !seen.insert(to.target()) => {
                tried.note(&progress, told(path), TWICE.to_owned());
                continue;
            }
            Job::File { path, bytes, to } => {
                progress.begin(&told(path), Some(*bytes));
                (told(path), to, put_file(server, path, to, &progress).await.map(|sent| (*bytes, sent)))
            }
            Job::Stream(to) => {
                progress.begin("-", None);
                let sent = put_stream(server, to, &progress).await;
                ("-".to_owned(), to, sent.map(|sent| (sent, sent)))
            }
        };
        match sent {
            Ok((bytes, sent)) => done.files.push(Sent { file, path: to.to_string(), bytes, sent }),
            Err(failure) => tried.failed(&progress, file, failure.for_a_file_at(to))?,
        }
    }
    Ok(())
}

fn told(path: &Path) -> String {
    text(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_is_the_place_unless_it_is_a_file_here() {
        let folder = tempfile::tempdir().unwrap();
        let here = |name: &str| folder.path().join(name).into_os_string();
        std::fs::write(here("file"), "").unwrap();
        std::fs::create_dir(here("folder")).unwrap();
        let other = OsString::from("other");
        for (last, recursive, expected) in [
            (here("file"), false, false),
            (here("file"), true, false),
            (here("folder"), false, true),
            (here("folder"), true, false),
            (here("folder/"), true, true),
            (here("missing"), true, true),
        ] {
            assert_eq!(is_place(&other, &last, recursive), expected, "{last:?} {recursive}");
        }
        assert!(is_place(&here("file"), &here("file"), false), "the same twice is a file and its place");
    }
}
