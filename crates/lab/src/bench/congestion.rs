//! Sets the machine's congestion control for the duration of a run.
//!
//! The kernel assigns it to a connection at creation, so servers need not be restarted. Invariant: the
//! previous value is restored, however the run ends, unless the process is killed.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::PathBuf;

const CURRENT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Returns the congestion control of new connections.
pub(super) fn current() -> String {
    read(CURRENT)
}

/// Returns the congestion controls that the kernel has loaded.
pub(super) fn available() -> Vec<String> {
    read(AVAILABLE).split_whitespace().map(str::to_owned).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// A guard that restores a setting when dropped.
#[derive(Debug)]
pub(super) struct PutBack {
    file: PathBuf,
    before: Vec<u8>,
    is_changed: Cell<bool>,
}

impl PutBack {
    /// Reads the machine's current congestion control.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn congestion() -> io::Result<PutBack> {
        PutBack::of(CURRENT)
    }

    fn of(file: impl Into<PathBuf>) -> io::Result<PutBack> {
        let file = file.into();
        Ok(PutBack { before: fs::read(&file)?, file, is_changed: Cell::new(false) })
    }

    /// Sets a new value.
    ///
    /// # Errors
    /// The kernel's error: setting requires root, and only available values are valid.
    pub(super) fn set(&self, value: &str) -> io::Result<()> {
        fs::write(&self.file, value)?;
        self.is_changed.set(true);
        Ok(())
    }
}

impl Drop for PutBack {
    fn drop(&mut self) {
        if self.is_changed.get() {
            // The process could set it, so it can restore it.
            let _ = fs::write(&self.file, &self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_put_back_also_after_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("setting");
        fs::write(&file, "bbr\n").unwrap();
        let guarded = file.clone();
        let panicked = std::thread::spawn(move || {
            let setting = PutBack::of(guarded.clone()).unwrap();
            setting.set("cubic").unwrap();
            assert_eq!(fs::read_to_string(&guarded).unwrap(), "cubic");
            panic!("in the middle of a run");
        });
        assert!(panicked.join().is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "bbr\n");
    }

    #[test]
    fn who_changes_nothing_puts_nothing_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("setting");
        fs::write(&file, "bbr\n").unwrap();
        let setting = PutBack::of(file.clone()).unwrap();
        fs::write(&file, "reno\n").unwrap();
        drop(setting);
        assert_eq!(fs::read_to_string(&file).unwrap(), "reno\n");
    }

    #[test]
    fn what_is_current_is_available() {
        assert!(available().contains(&current()), "{:?} {:?}", available(), current());
    }
}
