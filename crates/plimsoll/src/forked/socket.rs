//! The socket of the desks, in the data folder.
//!
//! It answers nobody. What must hold: two servers that have a folder never have one socket, also where one
//! ends as the other begins; what is cleared away belongs to a server that has ended.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use plimsoll_io::Address;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Its name, around what is drawn.
const BEFORE: &str = "desk-";
const AFTER: &str = ".sock";
/// What it ends with until it listens: a socket that does not refuses, as one does whose server has ended.
const AFTER_AS_NEW: &str = ".new";

/// Where one is.
#[derive(Clone)]
pub(super) struct Socket {
    folder: PathBuf,
    drawn: String,
}

impl Socket {
    /// One in `folder`, with `drawn` in its name.
    pub(super) fn in_folder(folder: &Path, drawn: &str) -> io::Result<Socket> {
        Ok(Socket { folder: std::path::absolute(folder)?, drawn: drawn.to_owned() })
    }

    fn path(&self, after: &str) -> PathBuf {
        self.folder.join(format!("{BEFORE}{}{after}", self.drawn))
    }

    pub(super) fn address(&self) -> Address {
        Address::Unix(self.path(AFTER))
    }

    /// Where it is made.
    pub(super) fn new_address(&self) -> Address {
        Address::Unix(self.path(AFTER_AS_NEW))
    }

    /// Gives it its name, once it listens.
    pub(super) fn publish(&self) -> io::Result<()> {
        let name = self.path(AFTER);
        // A name that is too long to be asked at is found here, and not by those who ask.
        SocketAddrUnix::new(&name)?;
        std::fs::rename(self.path(AFTER_AS_NEW), name)
    }

    /// Takes it away.
    pub(super) fn remove(&self) {
        // If it stays, the next server clears it away.
        let _ = std::fs::remove_file(self.path(AFTER));
    }

    /// Clears away those of servers that were killed.
    pub(super) fn clear_others(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_named =
                name.to_str().is_some_and(|name| name.starts_with(BEFORE) && name.ends_with(AFTER));
            if is_named && entry.file_type()?.is_socket() && is_left_behind(&entry.path())? {
                // Another server that begins may have done it just now.
                let _ = std::fs::remove_file(entry.path());
            }
        }
        Ok(())
    }
}

fn is_left_behind(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok(connect(&probe, &SocketAddrUnix::new(path)?) == Err(Errno::CONNREFUSED))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn what_servers_left_is_cleared_away_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        drop(UnixListener::bind(at("desk-dead.sock")).unwrap());
        let _alive = UnixListener::bind(at("desk-alive.sock")).unwrap();
        drop(UnixListener::bind(at("other.sock")).unwrap());
        std::fs::write(at("desk-file.sock"), "").unwrap();
        Socket::in_folder(folder.path(), "own").unwrap().clear_others().unwrap();
        let left: BTreeSet<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let expected = ["desk-alive.sock", "desk-file.sock", "other.sock"];
        assert_eq!(left, expected.map(std::ffi::OsString::from).into_iter().collect());
    }

    #[test]
    fn it_has_its_name_only_once_it_listens_and_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let socket = Socket::in_folder(folder.path(), "own").unwrap();
        let _listening = plimsoll_engine::bind(&socket.new_address()).unwrap();
        let Address::Unix(path) = socket.address() else { panic!("a path") };
        assert!(!path.exists());
        socket.publish().unwrap();
        UnixStream::connect(&path).unwrap();
        socket.clear_others().unwrap();
        assert!(path.exists());
        socket.remove();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
