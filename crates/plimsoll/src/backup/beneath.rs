//! Files beneath an open folder, which no link leads out of.
//!
//! A name is opened in its open folder, and a path in parts: a moved folder can make a path longer than the
//! kernel takes. Invariant: no link is followed.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, unlinkat};
use rustix::io::Errno;

/// Bytes of one part of a path, below the kernel's limit of 4096.
const PART_BYTES: usize = 2048;

/// A folder from which paths begin.
pub(super) struct Tree(File);

impl Tree {
    /// Opens the folder that the operator named.
    pub(super) fn open(path: &Path) -> io::Result<Tree> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Tree(File::from(openat(CWD, path, flags, Mode::empty())?)))
    }

    /// Opens the folder `path` as the root of another tree.
    pub(super) fn at(&self, path: &[u8]) -> io::Result<Tree> {
        self.folder(path).map(Tree)
    }

    /// Opens the folder at `path`; the empty path is the tree's root.
    pub(super) fn folder(&self, path: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let open = |folder: &File, part: &[u8]| openat2(folder, part, flags, Mode::empty(), resolve);
        let mut folder = File::from(open(&self.0, b".")?);
        for part in parts(path) {
            folder = open(&folder, part)?.into();
        }
        Ok(folder)
    }

    /// Opens the folder of `path`, and returns its name in there.
    pub(super) fn parent<'a>(&self, path: &'a [u8]) -> io::Result<(File, &'a [u8])> {
        let (folder, name) = split(path);
        Ok((self.folder(folder)?, name))
    }

    /// Opens the folder at `path`. Creates it and its parents if they are missing, in place of a file or link
    /// of that name.
    pub(super) fn make_folder(&self, path: &[u8]) -> io::Result<File> {
        match self.folder(path) {
            Err(_) if !path.is_empty() => {
                let (parent, name) = split(path);
                let parent = self.make_folder(parent)?;
                remove(&parent, name)?;
                mkdirat(&parent, name, Mode::RWXU)?;
                self.folder(path)
            }
            opened => opened,
        }
    }

    /// The root itself.
    pub(super) fn root(&self) -> &File {
        &self.0
    }
}

/// Splits a path into its folder and its last name.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&path[..0], path),
    }
}

/// Appends a name to the path of its folder.
pub(super) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// Splits a path at slashes into parts that the kernel takes.
fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = path;
    std::iter::from_fn(move || {
        let part = match rest {
            [] => return None,
            whole if whole.len() <= PART_BYTES => std::mem::take(&mut rest),
            long => {
                let slash = long[..PART_BYTES].iter().rposition(|byte| *byte == b'/')?;
                let part = &long[..slash];
                rest = &long[slash + 1..];
                part
            }
        };
        Some(part)
    })
}

/// Opens an entry of any kind for its metadata only.
pub(super) fn look(folder: &File, name: &[u8]) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?.into())
}

/// Opens a file to read it.
pub(super) fn open_file(folder: &File, name: &[u8]) -> io::Result<File> {
    // Non-blocking: a pipe in place of a file would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?.into())
}

/// Creates a file that only its owner can use.
pub(super) fn create(folder: &File, name: &[u8]) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Lists the names in a folder.
pub(super) fn names(folder: &File) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}

/// Removes an entry with all that is in it. A missing one is removed.
pub(super) fn remove(folder: &File, name: &[u8]) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(Errno::NOENT) => return Ok(()),
        done => return Ok(done?),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = File::from(openat(folder, name, flags, Mode::empty())?);
    for name in names(&inner)? {
        remove(&inner, &name)?;
    }
    Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_longer_than_the_kernel_takes_is_opened_in_parts() {
        let place = tempfile::tempdir().unwrap();
        let tree = Tree::open(place.path()).unwrap();
        let mut path = Vec::new();
        for _ in 0..40 {
            path = join(&path, &[b'd'; 200]);
            tree.make_folder(&path).unwrap();
        }
        create(&tree.folder(&path).unwrap(), b"file").unwrap();
        assert_eq!(names(&tree.folder(&path).unwrap()).unwrap(), [b"file"]);
        remove(tree.root(), &[b'd'; 200]).unwrap();
        assert!(names(tree.root()).unwrap().is_empty());
    }

    #[test]
    fn no_link_is_followed() {
        let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(other.path().join("inner")).unwrap();
        std::os::unix::fs::symlink(other.path(), place.path().join("link")).unwrap();
        let tree = Tree::open(place.path()).unwrap();
        assert!(tree.folder(b"link").is_err() && tree.folder(b"link/inner").is_err());
        assert!(open_file(tree.root(), b"link").is_err());
        tree.make_folder(b"link").unwrap();
        assert!(other.path().join("inner").is_dir(), "the link was replaced, not followed");
    }
}
