//! The undo journal: each change is recorded in a file before it is made.
//!
//! A process that ends normally undoes its own journal; the journal of a process that was killed is undone
//! by [`recover`]. It is no log of measurements. Invariants: no change precedes its record; the journal of
//! a running process is left alone.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::journal_folder::JournalFolder;
use super::setting::{CongestionOf, KernelSetting};
use super::undo::{ObjectNames, UndoStep};

/// Distinguishes the journals of one process.
static SEQUENCE: AtomicU32 = AtomicU32::new(0);

/// The first line of a journal: the names of its objects, and the identity of its process, whose number
/// alone is reused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    #[serde(flatten)]
    names: ObjectNames,
    /// Clock ticks between the start of the machine and that of the process.
    start: u64,
    /// The identity of the machine's start.
    boot: String,
}

impl Owner {
    fn of_this_process(work: &Path) -> Result<Owner> {
        let process = std::process::id();
        let start = start_of(process).context("/proc/self/stat cannot be read")?;
        let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let names = ObjectNames { process, sequence, work: work.to_owned() };
        Ok(Owner { names, start, boot: boot() })
    }

    fn is_running(&self) -> bool {
        self.boot == boot() && start_of(self.names.process) == Some(self.start)
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
    /// The names of all objects of these changes.
    pub(super) names: ObjectNames,
    folder: JournalFolder,
    /// The name of its file.
    name: String,
    file: File,
    steps: Vec<UndoStep>,
    is_undone: bool,
}

impl Journal {
    /// Creates an empty journal for changes whose image is in the folder `work`.
    ///
    /// # Errors
    /// This user has no folder for journals: only root has one.
    pub(super) fn create(work: &Path) -> Result<Journal> {
        Journal::create_in(JournalFolder::create()?, work)
    }

    fn create_in(folder: JournalFolder, work: &Path) -> Result<Journal> {
        let lock = folder.lock()?;
        // A journal of an ended process with the same number may be left, because a step failed.
        let (owner, name, mut file) = loop {
            let owner = Owner::of_this_process(work)?;
            let stem = format!("{}-{}", owner.names.process, owner.names.sequence);
            if let Some((name, file)) = folder.new_journal(&stem)? {
                break (owner, name, file);
            }
        };
        writeln!(file, "{}", serde_json::to_string(&owner)?)?;
        drop(lock);
        Ok(Journal { names: owner.names, folder, name, file, steps: Vec::new(), is_undone: false })
    }

    /// Records the step that undoes the change that the caller makes next.
    ///
    /// # Errors
    /// The journal cannot be written: the change must not be made.
    pub(super) fn record(&mut self, step: UndoStep) -> Result<()> {
        let line = serde_json::to_string(&step)? + "\n";
        // One write: a killed process leaves a whole line or an incomplete last one.
        self.file.write_all(line.as_bytes()).with_context(|| self.folder.display_path(&self.name))?;
        self.steps.push(step);
        Ok(())
    }

    /// Changes a setting of the kernel, and records that it is to be restored.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn set(&mut self, setting: &KernelSetting) -> Result<()> {
        self.record(UndoStep::Restore(setting.clone()))?;
        setting.change()
    }

    /// As [`set`](Self::set), for a congestion control, which one journal at a time may change: with two, the
    /// last one to undo its change would restore the value of the other.
    ///
    /// # Errors
    /// The kernel's error, or another journal has changed it.
    pub(super) fn set_congestion(&mut self, of: CongestionOf, setting: &KernelSetting) -> Result<()> {
        let _lock = self.folder.lock()?;
        self.check_congestion(of)?;
        self.set(setting)
    }

    /// Refuses a change of a congestion control that another journal has changed.
    fn check_congestion(&self, of: CongestionOf) -> Result<()> {
        for other in self.folder.journals()?.iter().filter(|other| other.name != self.name) {
            let (_, steps) = parse(&self.folder.read(&other.name)?)?;
            let is_set = |step: &UndoStep| match step {
                UndoStep::Restore(KernelSetting::Congestion { of: set, .. }) => *set == of,
                _ => false,
            };
            ensure!(
                !steps.iter().any(is_set),
                "{} is set by conditions that hold at the same time ({})",
                of.file().display(),
                self.folder.display_path(&other.name)
            );
        }
        Ok(())
    }

    /// Waits for the lock that serialises the choice of addresses. Dropping the file releases it.
    ///
    /// # Errors
    /// Another process has held the lock for too long.
    pub(super) fn lock(&self) -> Result<File> {
        self.folder.lock()
    }

    /// Undoes all changes in reverse order, and returns a line for each. A failure does not stop the rest.
    ///
    /// # Errors
    /// The failed steps. Their journal stays for [`recover`].
    pub(super) fn undo(&mut self) -> Result<Vec<String>> {
        self.is_undone = true;
        undo(&self.folder, &self.name, &self.names, std::mem::take(&mut self.steps))
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

fn undo(
    folder: &JournalFolder,
    name: &str,
    names: &ObjectNames,
    steps: Vec<UndoStep>,
) -> Result<Vec<String>> {
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for step in steps.into_iter().rev() {
        match step.perform(names) {
            Ok(line) => lines.extend(line),
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    if !failures.is_empty() {
        bail!("conditions are not put back: {}", failures.join("; "));
    }
    folder.remove(name)?;
    Ok(lines)
}

/// Undoes the journals of processes that no longer run, and returns a line for each change put back.
///
/// # Errors
/// The failed steps. All others are undone, and the journals of the failed ones stay.
pub fn recover() -> Result<Vec<String>> {
    JournalFolder::existing()?.map_or(Ok(Vec::new()), |folder| recover_in(&folder))
}

fn recover_in(folder: &JournalFolder) -> Result<Vec<String>> {
    if folder.journals()?.is_empty() {
        return Ok(Vec::new());
    }
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    let _lock = folder.lock()?;
    for journal in folder.journals()? {
        match recover_journal(folder, &journal.name) {
            Ok(undone) => lines.extend(undone),
            Err(error) => failures.push(format!("{}: {error:#}", folder.display_path(&journal.name))),
        }
    }
    if failures.is_empty() { Ok(lines) } else { bail!("{}", failures.join("; ")) }
}

fn recover_journal(folder: &JournalFolder, name: &str) -> Result<Vec<String>> {
    match parse(&folder.read(name)?)? {
        (Some(owner), _) if owner.is_running() => Ok(Vec::new()),
        (Some(owner), steps) => undo(folder, name, &owner.names, steps),
        // The process was killed before its first change.
        (None, _) => folder.remove(name).map(|()| Vec::new()),
    }
}

/// Returns the owner and the steps of a journal. An incomplete last line belongs to a change that was not
/// made.
///
/// # Errors
/// A complete line is none of this version of the laboratory.
fn parse(text: &str) -> Result<(Option<Owner>, Vec<UndoStep>)> {
    const FOREIGN: &str =
        "it is a journal of another version of plimsoll: use that one, or restart the machine";
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let owner = lines.next().map(serde_json::from_str).transpose().context(FOREIGN)?;
    let steps = lines.map(serde_json::from_str).collect::<Result<_, _>>().context(FOREIGN)?;
    Ok((owner, steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder for journals, and one for work.
    struct Folders {
        above: tempfile::TempDir,
    }

    impl Folders {
        fn new() -> Folders {
            let above = tempfile::tempdir().unwrap();
            fs::create_dir(above.path().join("work")).unwrap();
            Folders { above }
        }

        fn work(&self) -> std::path::PathBuf {
            self.above.path().join("work")
        }

        fn journals(&self) -> JournalFolder {
            JournalFolder::create_at(&self.above.path().join("journals")).unwrap()
        }

        fn journal(&self) -> Journal {
            Journal::create_in(self.journals(), &self.work()).unwrap()
        }

        /// Writes the journal of a process that was killed while it recorded a step.
        fn write(&self, owner: &Owner) {
            let step = serde_json::to_string(&UndoStep::RemoveImage).unwrap();
            let owner = serde_json::to_string(owner).unwrap();
            let path = self.above.path().join("journals/1.journal");
            fs::write(path, format!("{owner}\n{step}\n\"remove_mou")).unwrap();
        }
    }

    #[test]
    fn the_journal_of_an_ended_process_is_undone_and_that_of_a_running_one_is_not() {
        let folders = Folders::new();
        let journals = folders.journals();
        let own = Owner::of_this_process(&folders.work()).unwrap();
        let image = own.names.image();
        fs::write(&image, "").unwrap();
        folders.write(&own);
        assert_eq!(recover_in(&journals).unwrap(), Vec::<String>::new());
        assert!(image.exists() && journals.journals().unwrap().len() == 1);
        // Another process has the number of the ended one.
        folders.write(&Owner { start: own.start + 1, ..own });
        assert_eq!(recover_in(&journals).unwrap().len(), 1);
        assert!(!image.exists() && journals.journals().unwrap().is_empty());
    }

    #[test]
    fn a_step_that_names_a_file_of_the_machine_is_not_carried_out() {
        let folders = Folders::new();
        let journals = folders.journals();
        let victim = folders.above.path().join("victim");
        fs::write(&victim, "old\n").unwrap();
        let mut own = Owner::of_this_process(&folders.work()).unwrap();
        own.start += 1;
        let owner = serde_json::to_string(&own).unwrap();
        let shown = victim.display();
        for step in [
            format!("{{\"remove_file\":{{\"file\":\"{shown}\"}}}}"),
            format!(
                "{{\"restore_setting\":{{\"file\":\"{shown}\",\"written\":\"old\",\"before\":\"new\"}}}}"
            ),
            format!("{{\"remove_group\":\"{shown}\"}}"),
        ] {
            let path = folders.above.path().join("journals/1.journal");
            fs::write(&path, format!("{owner}\n{step}\n")).unwrap();
            let refused = recover_in(&journals).unwrap_err().to_string();
            assert!(refused.contains("another version of plimsoll"), "{refused}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "old\n");
            assert!(path.exists());
        }
    }

    #[test]
    fn a_failed_step_keeps_its_journal_and_does_not_stop_the_others() {
        let folders = Folders::new();
        let mut journal = folders.journal();
        let (image, full) = (journal.names.image(), journal.names.mount_point());
        fs::create_dir(&full).unwrap();
        fs::write(full.join("in_use"), "").unwrap();
        fs::write(&image, "").unwrap();
        journal.record(UndoStep::RemoveImage).unwrap();
        journal.record(UndoStep::RemoveMountPoint).unwrap();
        let failed = journal.undo().unwrap_err().to_string();
        assert!(failed.contains(".mount cannot be removed") && !image.exists(), "{failed}");
        assert_eq!(folders.journals().journals().unwrap().len(), 1);
        fs::remove_file(full.join("in_use")).unwrap();
        undo(&journal.folder, &journal.name, &journal.names, vec![UndoStep::RemoveMountPoint]).unwrap();
        assert!(!full.exists() && folders.journals().journals().unwrap().is_empty());
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
    fn a_congestion_control_has_one_journal_at_a_time() {
        let folders = Folders::new();
        let algorithms = |name: &str| name.to_owned().try_into().unwrap();
        let of = CongestionOf::NewConnections;
        let setting =
            KernelSetting::Congestion { of, algorithms: algorithms("none-a"), before: algorithms("none-b") };
        let mut first = folders.journal();
        first.record(UndoStep::Restore(setting.clone())).unwrap();
        let mut second = folders.journal();
        let refused = second.set_congestion(of, &setting).unwrap_err().to_string();
        assert!(refused.contains("hold at the same time"), "{refused}");
        second.check_congestion(CongestionOf::Namespaces).unwrap();
        first.undo().unwrap();
        second.check_congestion(of).unwrap();
    }
}
