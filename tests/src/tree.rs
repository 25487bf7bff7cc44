//! A folder to be served: the same on the real disk and on the simulator's.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use plimsoll_io::sim::SimDisk;

/// The contents of a folder.
#[derive(Clone, Default)]
pub struct Tree(Vec<Node>);

#[derive(Clone)]
enum Node {
    File(Vec<u8>, Vec<u8>, Option<Duration>),
    Folder(Vec<u8>),
    Link(Vec<u8>, Vec<u8>),
    Pipe(Vec<u8>),
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Returns `len` pseudorandom bytes, the same for the same `seed`.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + size_of::<u64>());
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

impl Tree {
    pub fn new() -> Tree {
        Tree::default()
    }

    #[must_use]
    pub fn file(mut self, name: impl AsRef<[u8]>, bytes: impl Into<Vec<u8>>) -> Tree {
        self.0.push(Node::File(name.as_ref().to_vec(), bytes.into(), None));
        self
    }

    /// Adds a file that was last modified at `time` after 1970.
    #[must_use]
    pub fn file_of(mut self, name: impl AsRef<[u8]>, bytes: impl Into<Vec<u8>>, time: Duration) -> Tree {
        self.0.push(Node::File(name.as_ref().to_vec(), bytes.into(), Some(time)));
        self
    }

    #[must_use]
    pub fn folder(mut self, name: impl AsRef<[u8]>) -> Tree {
        self.0.push(Node::Folder(name.as_ref().to_vec()));
        self
    }

    #[must_use]
    pub fn link(mut self, name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Tree {
        self.0.push(Node::Link(name.as_ref().to_vec(), target.as_ref().to_vec()));
        self
    }

    #[must_use]
    pub fn pipe(mut self, name: impl AsRef<[u8]>) -> Tree {
        self.0.push(Node::Pipe(name.as_ref().to_vec()));
        self
    }

    /// Creates the tree on the real disk, below `root`.
    pub fn plant(&self, root: &Path) {
        for node in &self.0 {
            match node {
                Node::File(name, bytes, time) => {
                    let path = root.join(path_of(name));
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(&path, bytes).unwrap();
                    if let Some(time) = time {
                        let file = std::fs::File::options().write(true).open(&path).unwrap();
                        file.set_modified(SystemTime::UNIX_EPOCH + *time).unwrap();
                    }
                }
                Node::Folder(name) => std::fs::create_dir_all(root.join(path_of(name))).unwrap(),
                Node::Link(name, target) => {
                    std::os::unix::fs::symlink(path_of(target), root.join(path_of(name))).unwrap();
                }
                Node::Pipe(name) => {
                    let mode = rustix::fs::Mode::RUSR;
                    rustix::fs::mknodat(
                        rustix::fs::CWD,
                        root.join(path_of(name)),
                        rustix::fs::FileType::Fifo,
                        mode,
                        0,
                    )
                    .unwrap();
                }
            }
        }
    }

    /// Creates the tree on a simulated disk, below `root`.
    pub fn plant_in(&self, disk: &SimDisk, root: &Path) {
        disk.mkdir(root).unwrap();
        for node in &self.0 {
            match node {
                Node::File(name, bytes, time) => {
                    let path = root.join(path_of(name));
                    disk.mkdir(path.parent().unwrap()).unwrap();
                    disk.write(&path, bytes.clone()).unwrap();
                    if let Some(time) = time {
                        disk.set_modified(&path, *time).unwrap();
                    }
                }
                Node::Folder(name) => disk.mkdir(root.join(path_of(name))).unwrap(),
                Node::Link(name, target) => disk.symlink(root.join(path_of(name)), path_of(target)).unwrap(),
                Node::Pipe(name) => disk.special(root.join(path_of(name))).unwrap(),
            }
        }
    }
}
