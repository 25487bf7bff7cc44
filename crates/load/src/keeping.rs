//! Saves bodies, each to its own file in a folder.
//!
//! It does not select them. Invariants: writes are offloaded, so that they block no other user, and are in
//! no latency.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;

use plimsoll_io::{Io, NotDone, Work};

/// The folder, and the number of files that this thread has saved.
pub(crate) struct Keeping {
    folder: PathBuf,
    thread: usize,
    count: Cell<u64>,
}

impl Keeping {
    pub(crate) fn new(folder: PathBuf, thread: usize) -> Keeping {
        Keeping { folder, thread, count: Cell::new(0) }
    }

    /// Writes a body to a file of its own. The file's name ends in `name`.
    pub(crate) async fn keep(&self, io: &Io, name: &str, body: Vec<u8>) -> io::Result<()> {
        let number = self.count.replace(self.count.get() + 1);
        let path = self.folder.join(format!("{}-{number:06}-{}", self.thread, harmless(name)));
        match io.offload(Work::Writes, move |_| std::fs::write(path, body)).await {
            Ok(written) => written,
            Err(NotDone::Busy) => Err(io::ErrorKind::ResourceBusy.into()),
            Err(_) => Err(io::ErrorKind::Other.into()),
        }
    }
}

/// Returns the last segment of a target as a safe file name.
fn harmless(target: &str) -> String {
    let last = target.rsplit('/').next().unwrap_or_default();
    let name: String =
        last.chars().map(|c| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' }).collect();
    name.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_becomes_one_name_that_leads_nowhere_else() {
        for (target, name) in [("/a/b.txt", "b.txt"), ("/a/..%2fb?c=/d", "d"), ("/", ""), ("/x y\0", "x_y_")]
        {
            assert_eq!(harmless(target), name);
        }
    }
}
