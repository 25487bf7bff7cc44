//! The page cache at the start of a trial: dropped, or filled with the files.
//!
//! It limits no memory. Invariants: files are synced first, because the kernel drops no dirty page. A
//! prefetch runs in the control groups of the contender, so that its pages are charged there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use rustix::fs::{Advice, fadvise, syncfs};

use super::limits::FILE_ARGUMENTS_MAX;
use super::program::{find_program, run};

/// Writing 3 drops the page cache, and the caches of names and of inodes.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Writes all dirty pages of the file system with a folder.
///
/// # Errors
/// The kernel's error.
pub(super) fn sync(folder: &Path) -> Result<()> {
    let opened = File::open(folder).with_context(|| format!("{}", folder.display()))?;
    syncfs(&opened).with_context(|| format!("{} cannot be synced", folder.display()))
}

/// Drops the files of a folder from the page cache, and as root all clean pages and inodes of the machine.
///
/// # Errors
/// The kernel's error.
pub(super) fn drop_files(folder: &Path) -> Result<()> {
    let files = files_of(folder)?;
    sync(folder)?;
    for path in files {
        match File::open(&path) {
            // A server may remove files meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            file => {
                let file = file.with_context(|| format!("{}", path.display()))?;
                fadvise(&file, 0, None, Advice::DontNeed).with_context(|| format!("{}", path.display()))?;
            }
        }
    }
    match fs::write(DROP_CACHES, "3") {
        // Without root, only the files themselves are dropped.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        written => written.context(DROP_CACHES),
    }
}

/// Reads all files of a folder once. `spawn` starts the reading process in the control groups.
///
/// # Errors
/// A file cannot be read.
pub(super) fn prefetch(
    folder: &Path,
    spawn: impl Fn(&mut (dyn FnMut() -> io::Result<Child> + Send)) -> io::Result<Child>,
) -> Result<()> {
    let program = find_program("cat").context("cat is not installed")?;
    for files in files_of(folder)?.chunks(FILE_ARGUMENTS_MAX) {
        let mut command = Command::new(&program);
        command.arg("--").args(files).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let output = spawn(&mut || command.spawn())?.wait_with_output()?;
        let message = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "files cannot be prefetched: {}", message.trim());
    }
    Ok(())
}

/// Returns how many bytes of the files of a folder the page cache has, or None without `fincore`.
///
/// # Errors
/// A file cannot be read.
pub fn cached_bytes(folder: &Path) -> Result<Option<u64>> {
    if find_program("fincore").is_none() {
        return Ok(None);
    }
    let mut bytes = 0;
    for files in files_of(folder)?.chunks(FILE_ARGUMENTS_MAX) {
        let mut arguments = vec!["--bytes", "--noheadings", "--output", "RES", "--"];
        for file in files {
            arguments.push(file.to_str().with_context(|| format!("{} is not in UTF-8", file.display()))?);
        }
        let output = run("fincore", &arguments)?;
        let lines = output.lines().map(|line| line.trim().parse::<u64>());
        bytes += lines.sum::<std::result::Result<u64, _>>().with_context(|| format!("fincore: {output}"))?;
    }
    Ok(Some(bytes))
}

/// Returns all files below a folder. Symbolic links are not followed.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    Ok(files)
}

/// A thread that drops files from the page cache at regular intervals; dropping the value ends it.
#[derive(Debug)]
pub struct PeriodicDrop {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<u64>>>,
}

impl PeriodicDrop {
    /// Starts to drop the files of a folder at an interval.
    pub fn start(folder: PathBuf, every: Duration) -> PeriodicDrop {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut next = Instant::now();
            for drops in 0.. {
                next += every;
                let wait = next.saturating_duration_since(Instant::now());
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return Ok(drops);
                }
                drop_files(&folder)?;
            }
            Ok(u64::MAX)
        });
        PeriodicDrop { stop: Some(stop), thread: Some(thread) }
    }

    /// Ends the thread and returns how often it has dropped the files.
    ///
    /// # Errors
    /// The error that ended the thread early: the condition did not hold.
    pub fn stop(mut self) -> Result<u64> {
        self.end().unwrap_or_else(|| Err(anyhow!("the thread has ended")))
    }

    fn end(&mut self) -> Option<Result<u64>> {
        self.stop = None;
        let thread = self.thread.take()?;
        Some(thread.join().unwrap_or_else(|_| Err(anyhow!("the thread that drops the page cache panicked"))))
    }
}

impl Drop for PeriodicDrop {
    fn drop(&mut self) {
        self.end();
    }
}
