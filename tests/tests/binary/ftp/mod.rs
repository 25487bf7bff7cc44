//! Third-party FTP clients with the real binary: uploaded files exist, and downloads return them.
//!
//! `tests/install` and `tests/tools/install` install them. Each must be used in its usual way; folders are
//! compared file by file.

mod bench;
mod curl;
mod killed;
mod left_over;
mod lftp;
mod library;
mod python;
mod stock;
mod suppa;
mod tls;
mod unconfirmed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_tests::binary::{EngineKind, Member, Server, tool};
use plimsoll_tests::tree::noise;

/// An FTP server, and alice's account.
struct Served {
    server: Server,
    alice: Member,
    folder: tempfile::TempDir,
}

impl Served {
    fn new(kind: EngineKind) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::on_data(kind, &folder.path().join("data"), &["--ftp", "127.0.0.1:0"]);
        let alice = Member::new(&server, "alice");
        Served { server, alice, folder }
    }

    /// Creates a folder in the test's temporary folder.
    fn folder(&self, name: &str) -> PathBuf {
        let at = self.folder.path().join(name);
        std::fs::create_dir_all(&at).unwrap();
        at
    }

    /// Returns the path of alice's home on the disk.
    fn home(&self) -> PathBuf {
        home(self.folder.path())
    }

    fn port(&self) -> String {
        self.server.ftp_at().port().to_string()
    }

    /// The URL of a path that begins with a slash.
    fn url(&self, path: &str) -> String {
        format!("ftp://{}{path}", self.server.ftp_at())
    }

    /// Returns a client command without this user's settings.
    fn client(&self, program: &str) -> Command {
        let mut command = tool(program);
        command.env("HOME", self.folder.path()).current_dir(self.folder.path());
        command
    }
}

fn home(folder: &Path) -> PathBuf {
    folder.join("data/accounts/alice/files")
}

fn pending(folder: &Path) -> PathBuf {
    folder.join("data/accounts/alice/pending")
}

/// Creates files of many kinds.
fn fill(folder: &Path) {
    for deep in ["", "inner", "inner/two words", "grüße", "-dashed"] {
        std::fs::create_dir_all(folder.join(deep)).unwrap();
        for at in 0..8_usize {
            std::fs::write(folder.join(deep).join(format!("file {at}.bin")), noise(at as u64, at * 3_000))
                .unwrap();
        }
    }
    std::fs::write(folder.join("日本.txt"), "a\r\nb\n").unwrap();
    std::fs::write(folder.join("-l"), "begins with a hyphen\n").unwrap();
    std::fs::write(folder.join("large.bin"), noise(99, 5_000_000)).unwrap();
}

/// Returns the contents of a folder: files with their bytes, folders with `None`.
fn held(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut held = BTreeMap::new();
    gather(folder, Path::new(""), &mut held);
    held
}

fn gather(folder: &Path, prefix: &Path, held: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = prefix.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            gather(&entry.path(), &name, held);
            held.insert(name, None);
        } else {
            held.insert(name, Some(std::fs::read(entry.path()).unwrap()));
        }
    }
}

/// Asserts that two folders have the same contents.
#[track_caller]
fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (held(one), held(other));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, bytes) in one {
        assert!(other[&name] == bytes, "{} differs", name.display());
    }
}
