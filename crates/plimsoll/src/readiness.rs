//! The checks behind `/readyz`: the conditions under which this server takes work.
//!
//! It is not the doctor, which runs once and reports to a person. Invariants: a check leaves no file
//! behind. Its message shows no path, because any client can read it.

use std::io;
use std::path::{Path, PathBuf};

use plimsoll_auth::Auth;
use plimsoll_io::{Fs, Io, Work};
use plimsoll_proto::http::{Check, CheckRun};
use plimsoll_store::Store;

/// The file that a check creates and removes.
const PROBE: &[u8] = b".plimsoll-ready";

/// Checks that the data folder can be written.
pub(crate) fn data_folder(folder: &Path) -> Check {
    let folder = folder.to_owned();
    let message = "The server cannot write into its data folder; its log says why.";
    Check::new("the data folder", message, move |io| ask(io, folder.clone()))
}

/// Checks that the directory of accounts, local or remote, answers and can be written.
pub(crate) fn accounts(auth: Auth) -> Check {
    let message = "Accounts cannot be looked up or changed; the server's log says why.";
    Check::new("accounts", message, move |io| {
        let (auth, io) = (auth.clone(), io.clone());
        Box::pin(async move { auth.check(&io).await.is_ok() })
    })
}

/// Checks that the storage server answers.
pub(crate) fn store(store: Store) -> Check {
    let message = "The storage server does not answer; the server's log says why.";
    Check::new("the storage server", message, move |io| {
        let (io, store) = (io.clone(), store.clone());
        Box::pin(async move { store.is_there(&io).await.is_ok() })
    })
}

fn ask(io: &Io, folder: PathBuf) -> CheckRun {
    let io = io.clone();
    Box::pin(async move {
        let shown = folder.display().to_string();
        let written = io.offload(Work::Writes, move |fs| write(fs, &folder)).await;
        let written = written.map_err(io::Error::from).flatten();
        if let Err(error) = &written {
            tracing::warn!(%error, folder = shown, "nothing can be written into the data folder");
        }
        written.is_ok()
    })
}

fn write(fs: &dyn Fs, folder: &Path) -> io::Result<()> {
    let root = fs.open_root(folder)?;
    match fs.create(&root, PROBE) {
        // Left by a killed server, or in use by another server's check at this moment.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => drop(made?),
    }
    match fs.remove_file(&root, PROBE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
