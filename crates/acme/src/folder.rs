//! The state folder: the account, the certificates, the answers to challenges, and the failed attempts.
//!
//! | file | contents |
//! | --- | --- |
//! | `account-DIRECTORY.json` | the account at a directory: its URL, its private key, and its contacts |
//! | `attempts.json` | the failed attempts since the last certificate |
//! | `certificates/NAME.pem` | a chain and its private key, so that one rename replaces both |
//! | `challenges/TOKEN` | the answer to a challenge, for any front that shares the folder |
//!
//! It locks nothing: the caller has the lock while it orders. Invariants: each file is complete or the old
//! one stays, also with the power cut at every call. Only the server's user may read the files. No name of a
//! file comes unchecked from a server or a client.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use plimsoll_io::{File, Fs, check_name, read_whole, replace_whole};
use plimsoll_wire::acme::is_challenge_token;
use zeroize::Zeroizing;

use crate::limits::FILE_BYTES_MAX;
use crate::machine::Attempts;
use crate::names::DomainName;

/// The file of the failed attempts, in the state folder.
pub const ATTEMPTS: &str = "attempts.json";
const CERTIFICATES: &[u8] = b"certificates";
/// The folder of the answers to challenges, in the state folder.
pub const CHALLENGES: &[u8] = b"challenges";
/// The suffix of a file before it has its name.
const STAGED: &[u8] = b".new";

/// An open state folder. Clones share it.
#[derive(Clone)]
pub struct StateFolder {
    root: File,
    certificates: File,
    challenges: File,
}

/// A challenge's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Parses a token, from a server or from the path of a request.
    pub fn parse(text: &str) -> Option<Token> {
        is_challenge_token(text.as_bytes()).then(|| Token(text.to_owned()))
    }

    /// The token, which is the name of its file.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn name(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl StateFolder {
    /// Opens the existing folder `path`, and creates missing folders in it.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn open(fs: &dyn Fs, path: &Path) -> io::Result<StateFolder> {
        let root = fs.open_root(path)?;
        let certificates = folder_in(fs, &root, CERTIFICATES)?;
        let challenges = folder_in(fs, &root, CHALLENGES)?;
        Ok(StateFolder { root, certificates, challenges })
    }

    /// Returns the credentials of the account at a directory, if there is one.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn account(&self, fs: &dyn Fs, directory: &str) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        Ok(read_whole(fs, &self.root, &account_file(directory), FILE_BYTES_MAX)?.map(Zeroizing::new))
    }

    /// Stores the credentials of the account at a directory. Those at other directories stay.
    ///
    /// # Errors
    /// Any error of the file system; the old ones stay then.
    pub fn store_account(&self, fs: &dyn Fs, directory: &str, json: &[u8]) -> io::Result<()> {
        replace(fs, &self.root, &account_file(directory), json)
    }

    /// Returns the chain and key for a name, if there are any.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn certificate(&self, fs: &dyn Fs, name: &DomainName) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        let pem = read_whole(fs, &self.certificates, &file_name(name), FILE_BYTES_MAX)?;
        Ok(pem.map(Zeroizing::new))
    }

    /// Stores the chain and key for a name.
    ///
    /// # Errors
    /// Any error of the file system; the old ones stay then.
    pub fn store_certificate(&self, fs: &dyn Fs, name: &DomainName, pem: &[u8]) -> io::Result<()> {
        replace(fs, &self.certificates, &file_name(name), pem)
    }

    /// Publishes the answer to a challenge.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn publish(&self, fs: &dyn Fs, token: &Token, answer: &str) -> io::Result<()> {
        replace(fs, &self.challenges, token.name(), answer.as_bytes())
    }

    /// Returns the published answer to a challenge, if there is one.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn answer(&self, fs: &dyn Fs, token: &Token) -> io::Result<Option<Vec<u8>>> {
        read_whole(fs, &self.challenges, token.name(), FILE_BYTES_MAX)
    }

    /// Removes all answers, also those that a killed process left. The caller has the lock.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn clear_answers(&self, fs: &dyn Fs) -> io::Result<()> {
        for entry in fs.names(&self.challenges, usize::MAX)? {
            fs.remove_file(&self.challenges, &entry.name)?;
        }
        Ok(())
    }

    /// Returns the failed attempts. An unreadable file counts as none.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn attempts(&self, fs: &dyn Fs) -> io::Result<Attempts> {
        let json = read_whole(fs, &self.root, ATTEMPTS.as_bytes(), FILE_BYTES_MAX)?.unwrap_or_default();
        Ok(serde_json::from_slice(&json).unwrap_or_default())
    }

    /// Stores the failed attempts.
    ///
    /// # Errors
    /// Any error of the file system; the old ones stay then.
    pub fn store_attempts(&self, fs: &dyn Fs, attempts: &Attempts) -> io::Result<()> {
        replace(fs, &self.root, ATTEMPTS.as_bytes(), &serde_json::to_vec(attempts)?)
    }
}

/// Returns the name of the account's file at a directory. No two directories have the same.
fn account_file(directory: &str) -> Vec<u8> {
    let mut name = "account-".to_owned();
    for byte in directory.strip_prefix("https://").unwrap_or(directory).bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => name.push(byte.into()),
            // Writing to a string does not fail.
            _ => drop(write!(name, "_{byte:02X}")),
        }
    }
    (name + ".json").into_bytes()
}

fn file_name(name: &DomainName) -> Vec<u8> {
    [name.as_str().as_bytes(), b".pem"].concat()
}

fn replace(fs: &dyn Fs, folder: &File, name: &[u8], bytes: &[u8]) -> io::Result<()> {
    check_name(name)?;
    replace_whole(fs, folder, name, &[name, STAGED].concat(), bytes)
}

fn folder_in(fs: &dyn Fs, root: &File, name: &[u8]) -> io::Result<File> {
    match fs.make_folder(root, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => {
            made?;
            fs.sync(root)?;
        }
    }
    fs.open_beneath(root, name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_io::sim::{Faults, Moment, Sim, SimDisk, Unsynced};

    use super::*;

    const OLD: &[u8] = b"the old chain and key";
    const NEW: &[u8] = b"the new chain and key, which are longer";

    fn disk() -> Arc<SimDisk> {
        let disk = Sim::new(0, Faults::none()).host("server").disk().clone();
        disk.mkdir("/acme").unwrap();
        disk
    }

    fn open(disk: &SimDisk) -> StateFolder {
        StateFolder::open(disk, Path::new("/acme")).unwrap()
    }

    fn name() -> DomainName {
        DomainName::parse("files.example.org").unwrap()
    }

    fn stored(disk: &SimDisk) -> Vec<u8> {
        open(disk).certificate(disk, &name()).unwrap().unwrap().to_vec()
    }

    #[test]
    fn a_certificate_is_the_old_or_the_new_one_after_a_power_cut_at_any_call() {
        for fate in [Unsynced::Lost, Unsynced::Kept].into_iter().chain((0..8).map(Unsynced::Drawn)) {
            for moment in [Moment::Before, Moment::After] {
                for call in 1.. {
                    let disk = disk();
                    let folder = open(&disk);
                    folder.store_certificate(&*disk, &name(), OLD).unwrap();
                    disk.cut_at(disk.calls() + call, moment);
                    let is_stored = folder.store_certificate(&*disk, &name(), NEW).is_ok();
                    let again = disk.after_power_cut(fate);
                    let found = stored(&again);
                    assert!(
                        found == NEW || (found == OLD && !is_stored),
                        "call {call}, {moment:?}, {fate:?}"
                    );
                    // The next renewal is not hindered by what was left.
                    open(&again).store_certificate(&*again, &name(), NEW).unwrap();
                    assert_eq!(stored(&again), NEW);
                    if !disk.is_cut() {
                        assert!(call > 4);
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn a_full_disk_leaves_the_old_certificate() {
        let disk = disk();
        let folder = open(&disk);
        folder.store_certificate(&*disk, &name(), OLD).unwrap();
        disk.full_after(3);
        let error = folder.store_certificate(&*disk, &name(), NEW).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(stored(&disk), OLD);
    }

    #[test]
    fn a_published_answer_is_found_by_its_token_until_all_are_removed() {
        let disk = disk();
        let (folder, token) = (open(&disk), Token::parse("evaGxfADs6pSRb2LAv9IZ-_").unwrap());
        assert_eq!(folder.answer(&*disk, &token).unwrap(), None);
        folder.publish(&*disk, &token, "token.thumbprint").unwrap();
        assert_eq!(open(&disk).answer(&*disk, &token).unwrap().unwrap(), b"token.thumbprint");
        folder.clear_answers(&*disk).unwrap();
        assert_eq!(folder.answer(&*disk, &token).unwrap(), None);
    }

    #[test]
    fn each_directory_has_an_account_of_its_own() {
        let disk = disk();
        let folder = open(&disk);
        let directories = ["https://acme.test/a_b", "https://acme.test/a/b", "https://acme.test:80/a?b"];
        for directory in directories {
            assert!(folder.account(&*disk, directory).unwrap().is_none());
            folder.store_account(&*disk, directory, directory.as_bytes()).unwrap();
        }
        for directory in directories {
            assert_eq!(*folder.account(&*disk, directory).unwrap().unwrap(), directory.as_bytes());
        }
        let name = account_file("https://acme-v02.api.letsencrypt.org/directory");
        assert_eq!(name, b"account-acme-v02.api.letsencrypt.org_2Fdirectory.json");
    }

    #[test]
    fn unreadable_attempts_are_none() {
        let disk = disk();
        let folder = open(&disk);
        assert_eq!(folder.attempts(&*disk).unwrap(), Attempts::default());
        disk.write("/acme/attempts.json", *b"{\"failures\":").unwrap();
        assert_eq!(folder.attempts(&*disk).unwrap(), Attempts::default());
        let attempts = Attempts { failures: 3, ..Attempts::default() };
        folder.store_attempts(&*disk, &attempts).unwrap();
        assert_eq!(folder.attempts(&*disk).unwrap(), attempts);
    }
}
