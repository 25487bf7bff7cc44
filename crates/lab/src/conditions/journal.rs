//! The undo journal: each change is recorded in a file before it is made.
//!
//! A process that ends normally undoes its own journal; the journal of a process that was killed is undone
//! by [`recover`]. It is no log of measurements. Invariants: no change precedes its record; the journal of
//! a running process is left alone.

use std::cmp::Reverse;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::undo::UndoStep;

/// The folder of the journals. It is empty after a restart of the machine, as are the changes.
const FOLDER: &str = "/run/plimsoll-lab";
/// The folder in the work folder that replaces it where it is not writable.
const FOLDER_IN_WORK: &str = "plimsoll-lab-journals";
const EXTENSION: &str = "journal";

/// Distinguishes the journals of one process.
static SEQUENCE: AtomicU32 = AtomicU32::new(0);

/// The identity of a process: its number alone is reused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    process: u32,
    /// Clock ticks between the start of the machine and that of the process.
    start: u64,
    /// The identity of the machine's start.
    boot: String,
}

impl Owner {
    fn current() -> Result<Owner> {
        let process = std::process::id();
        let start = start_of(process).context("/proc/self/stat cannot be read")?;
        Ok(Owner { process, start, boot: boot() })
    }

    fn is_running(&self) -> bool {
        self.boot == boot() && start_of(self.process) == Some(self.start)
    }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Returns the start of a process (proc(5), field 22 of `stat`). A zombie does not run.
fn start_of(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may contain blanks and parentheses.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_ended = matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| !is_ended)
}

/// The journal of the changes of this process; dropping it undoes them.
#[derive(Debug)]
pub(super) struct Journal {
    /// The name of all objects of these changes.
    pub(super) name: String,
    /// The number of the journal within its process.
    pub(super) sequence: u32,
    path: PathBuf,
    file: File,
    steps: Vec<UndoStep>,
    is_undone: bool,
}

impl Journal {
    /// Creates an empty journal.
    ///
    /// # Errors
    /// Neither `/run` nor the work folder is writable.
    pub(super) fn create(work: &Path) -> Result<Journal> {
        let owner = Owner::current()?;
        let _lock = lock(work)?;
        let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let path = folder(work)?.join(format!("{}-{sequence}.{EXTENSION}", owner.process));
        let mut file = File::create(&path).with_context(|| format!("{}", path.display()))?;
        writeln!(file, "{}", serde_json::to_string(&owner)?)?;
        let name = format!("plimsoll-lab-{}-{sequence}", owner.process);
        Ok(Journal { name, sequence, path, file, steps: Vec::new(), is_undone: false })
    }

    /// Records the step that undoes the change that the caller makes next.
    ///
    /// # Errors
    /// The journal cannot be written: the change must not be made.
    pub(super) fn record(&mut self, step: UndoStep) -> Result<()> {
        let line = serde_json::to_string(&step)? + "\n";
        // One write: a killed process leaves a whole line or an incomplete last one.
        self.file.write_all(line.as_bytes()).with_context(|| format!("{}", self.path.display()))?;
        self.steps.push(step);
        Ok(())
    }

    /// Writes `value` to a file of the kernel, and records that `before` is to be restored.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn set(&mut self, file: &Path, value: &str, before: &str) -> Result<()> {
        let (file_to_restore, written, before) = (file.to_owned(), value.to_owned(), before.to_owned());
        self.record(UndoStep::RestoreSetting { file: file_to_restore, written, before })?;
        fs::write(file, value).with_context(|| format!("{} cannot be set to {value:?}", file.display()))
    }

    /// As [`set`](Self::set), for a value of the whole machine, which one journal at a time may change.
    /// With two, the last one to undo its change would restore the value of the other.
    ///
    /// # Errors
    /// The file cannot be written, or another journal has changed it.
    pub(super) fn set_exclusive(&mut self, file: &Path, value: &str, before: &str) -> Result<()> {
        let folder = self.path.parent().context("a journal is in a folder")?;
        let _lock = lock_in(folder)?;
        for path in journals_in(folder)?.iter().filter(|path| **path != self.path) {
            // Another process may have removed its journal meanwhile.
            let (_, steps) = parse(&fs::read_to_string(path).unwrap_or_default());
            let is_set =
                |step: &UndoStep| matches!(step, UndoStep::RestoreSetting { file: set, .. } if set == file);
            ensure!(
                !steps.iter().any(is_set),
                "{} is set by conditions that hold at the same time ({})",
                file.display(),
                path.display()
            );
        }
        self.set(file, value, before)
    }

    /// Undoes all changes in reverse order, and returns a line for each. A failure does not stop the rest.
    ///
    /// # Errors
    /// The failed steps. Their journal stays for [`recover`].
    pub(super) fn undo(&mut self) -> Result<Vec<String>> {
        self.is_undone = true;
        undo(&self.path, std::mem::take(&mut self.steps))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A failed step stays in the journal for the next agent.
        if !self.is_undone {
            let _ = self.undo();
        }
    }
}

fn undo(path: &Path, steps: Vec<UndoStep>) -> Result<Vec<String>> {
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for step in steps.into_iter().rev() {
        match step.perform() {
            Ok(line) => lines.extend(line),
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    if !failures.is_empty() {
        bail!("conditions are not put back: {}", failures.join("; "));
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{}", path.display()))
        }
        _ => Ok(lines),
    }
}

/// Undoes the journals of processes that no longer run, and returns a line for each change put back.
///
/// `work` is the folder of [`apply`](super::AppliedConditions::apply).
///
/// # Errors
/// The failed steps. All others are undone, and the journals of the failed ones stay.
pub fn recover(work: &Path) -> Result<Vec<String>> {
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for folder in [PathBuf::from(FOLDER), work.join(FOLDER_IN_WORK)] {
        if journals_in(&folder)?.is_empty() {
            continue;
        }
        let _lock = lock_in(&folder)?;
        for path in journals_in(&folder)? {
            match recover_journal(&path) {
                Ok(undone) => lines.extend(undone),
                Err(error) => failures.push(format!("{}: {error:#}", path.display())),
            }
        }
    }
    if failures.is_empty() { Ok(lines) } else { bail!("{}", failures.join("; ")) }
}

/// Returns the journals of a folder, the newest first: it may have changed a value that an older one had
/// changed before.
fn journals_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("{}", folder.display()))?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let is_journal = |path: &io::Result<PathBuf>| {
        path.as_ref().map_or(true, |path| path.extension() == Some(EXTENSION.as_ref()))
    };
    let mut journals: Vec<PathBuf> = paths.filter(is_journal).collect::<io::Result<_>>()?;
    journals.sort_by_cached_key(|path| Reverse(fs::metadata(path).and_then(|file| file.modified()).ok()));
    Ok(journals)
}

fn recover_journal(path: &Path) -> Result<Vec<String>> {
    match parse(&fs::read_to_string(path)?) {
        (Some(owner), _) if owner.is_running() => Ok(Vec::new()),
        // Without its owner, the process was killed before its first change.
        (_, steps) => undo(path, steps),
    }
}

/// Returns the owner and the steps of a journal. An incomplete last line belongs to a change that was not
/// made.
fn parse(text: &str) -> (Option<Owner>, Vec<UndoStep>) {
    let mut lines = text.lines();
    let owner = lines.next().and_then(|line| serde_json::from_str(line).ok());
    (owner, lines.map_while(|line| serde_json::from_str(line).ok()).collect())
}

/// Returns the folder of the journals, after creating it.
fn folder(work: &Path) -> Result<PathBuf> {
    let preferred = PathBuf::from(FOLDER);
    if fs::create_dir_all(&preferred).is_ok() && rustix::fs::access(&preferred, write()).is_ok() {
        return Ok(preferred);
    }
    let folder = work.join(FOLDER_IN_WORK);
    fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    Ok(folder)
}

fn write() -> rustix::fs::Access {
    rustix::fs::Access::WRITE_OK
}

/// Waits for the lock that serialises recovery, new journals and the choice of addresses. Dropping the
/// file releases it.
pub(super) fn lock(work: &Path) -> Result<File> {
    lock_in(&folder(work)?)
}

fn lock_in(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let file = file.with_context(|| format!("{}", path.display()))?;
    flock(&file, FlockOperation::LockExclusive).with_context(|| format!("{}", path.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal_of(owner: &Owner, victim: &Path, folder: &Path) -> PathBuf {
        let path = folder.join("1.journal");
        let step = serde_json::to_string(&UndoStep::RemoveFile { file: victim.into() }).unwrap();
        let owner = serde_json::to_string(owner).unwrap();
        fs::write(&path, format!("{owner}\n{step}\n{{\"remove_fi")).unwrap();
        path
    }

    #[test]
    fn the_journal_of_an_ended_process_is_undone_and_that_of_a_running_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "").unwrap();
        let own = Owner::current().unwrap();
        let path = journal_of(&own, &victim, folder.path());
        assert_eq!(recover_journal(&path).unwrap(), Vec::<String>::new());
        assert!(victim.exists() && path.exists());
        // Another process has the number of the ended one.
        let path = journal_of(&Owner { start: own.start + 1, ..own }, &victim, folder.path());
        assert_eq!(recover_journal(&path).unwrap().len(), 1);
        assert!(!victim.exists() && !path.exists());
    }

    #[test]
    fn a_failed_step_keeps_its_journal_and_does_not_stop_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let (full, file) = (folder.path().join("full"), folder.path().join("file"));
        fs::create_dir(&full).unwrap();
        fs::write(full.join("in_use"), "").unwrap();
        fs::write(&file, "").unwrap();
        let mut journal = Journal::create(folder.path()).unwrap();
        journal.record(UndoStep::RemoveFile { file: file.clone() }).unwrap();
        journal.record(UndoStep::RemoveFolder { folder: full.clone() }).unwrap();
        let failed = journal.undo().unwrap_err().to_string();
        assert!(failed.contains("full") && !file.exists() && journal.path.exists(), "{failed}");
        fs::remove_file(full.join("in_use")).unwrap();
        let steps = vec![UndoStep::RemoveFolder { folder: full.clone() }];
        undo(&journal.path, steps).unwrap();
        assert!(!full.exists() && !journal.path.exists());
    }

    #[test]
    fn a_zombie_does_not_run() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while start_of(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert!(Path::new(&format!("/proc/{}", child.id())).exists());
        child.wait().unwrap();
    }

    #[test]
    fn a_value_of_the_machine_has_one_journal_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let value = folder.path().join("value");
        fs::write(&value, "bbr").unwrap();
        let mut first = Journal::create(folder.path()).unwrap();
        first.set_exclusive(&value, "reno", "bbr").unwrap();
        let mut second = Journal::create(folder.path()).unwrap();
        let refused = second.set_exclusive(&value, "cubic", "reno").unwrap_err().to_string();
        assert!(refused.contains("hold at the same time"), "{refused}");
        assert_eq!(fs::read_to_string(&value).unwrap(), "reno");
        first.undo().unwrap();
        second.set_exclusive(&value, "cubic", "bbr").unwrap();
        second.undo().unwrap();
        assert_eq!(fs::read_to_string(&value).unwrap(), "bbr");
    }

    #[test]
    fn journals_are_recovered_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        let start = std::time::SystemTime::UNIX_EPOCH;
        for (name, seconds) in [("a", 2), ("b", 3), ("c", 1)] {
            let file = File::create(folder.path().join(name).with_extension(EXTENSION)).unwrap();
            file.set_modified(start + std::time::Duration::from_secs(seconds)).unwrap();
        }
        let names = journals_in(folder.path()).unwrap();
        let names: Vec<_> = names.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["b", "a", "c"]);
    }
}
