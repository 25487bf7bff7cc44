//! The Unix socket of the RPC servers, in the data folder.
//!
//! It answers no request. Invariants: two servers of one data folder never share a socket, even if one
//! starts while the other ends. Only sockets of servers that have ended are removed.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use plimsoll_io::Address;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// The socket's name, around its random part.
const BEFORE: &str = "desk-";
const AFTER: &str = ".sock";
/// The suffix before the socket listens. Until then it refuses connections, as the socket of a dead server
/// does, and another server would remove it.
const AFTER_AS_NEW: &str = ".new";

/// The path of a socket.
#[derive(Clone)]
pub(super) struct Socket {
    folder: PathBuf,
    drawn: String,
}

impl Socket {
    /// Returns the path of a socket in `folder`, with `drawn` in its name.
    pub(super) fn in_folder(folder: &Path, drawn: &str) -> io::Result<Socket> {
        Ok(Socket { folder: std::path::absolute(folder)?, drawn: drawn.to_owned() })
    }

    fn path(&self, after: &str) -> PathBuf {
        self.folder.join(format!("{BEFORE}{}{after}", self.drawn))
    }

    pub(super) fn address(&self) -> Address {
        Address::Unix(self.path(AFTER))
    }

    /// Returns the address to bind.
    pub(super) fn new_address(&self) -> Address {
        Address::Unix(self.path(AFTER_AS_NEW))
    }

    /// Renames the socket to its final name. It must listen by then.
    pub(super) fn publish(&self) -> io::Result<()> {
        let name = self.path(AFTER);
        // Too long a path is an error here; otherwise it would be one of every caller.
        SocketAddrUnix::new(&name)?;
        std::fs::rename(self.path(AFTER_AS_NEW), name)
    }

    /// Removes the socket.
    pub(super) fn remove(&self) {
        // If that fails, the next server removes it.
        let _ = std::fs::remove_file(self.path(AFTER));
    }

    /// Removes the sockets of servers that were killed.
    pub(super) fn clear_others(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_named =
                name.to_str().is_some_and(|name| name.starts_with(BEFORE) && name.ends_with(AFTER));
            if is_named && entry.file_type()?.is_socket() && is_left_behind(&entry.path())? {
                // Another starting server may have removed it just now.
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
    fn sockets_of_dead_servers_are_removed_and_no_other_file() {
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
    fn a_socket_has_its_name_from_its_publication_to_its_removal() {
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
