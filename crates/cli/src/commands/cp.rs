//! `plimsoll cp`: copies files and folders on the server.
//!
//! No contents are transferred to the client. Invariant: a file may be replaced, a folder never is.

use std::ffi::OsString;

use clap::Args;

use super::mv::{Renaming, from_and_to, rename_all};
use super::server_args::SessionArgs;
use crate::Runtime;

/// Copy files, and folders with -r, on the server
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll cp draft.txt copy.txt
  plimsoll cp -r photos bob:report.pdf backup/

The last PATH is the copy's name. If it is a folder or ends with a slash, it is the folder to copy to.
JSON: {\"done\":[{\"path\":\"draft.txt\",\"to\":\"copy.txt\"}],
       \"failed\":[{\"path\":\"a.jpg\",\"error\":\"...\"}]}")]
pub struct Cp {
    /// The sources, OWNER:PATH for another account's, then the destination
    #[arg(value_name = "PATH", required = true, num_args = 2..)]
    paths: Vec<OsString>,
    /// Copy folders too, with all their contents
    #[arg(short)]
    recursive: bool,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Cp {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let (from, to) = from_and_to(&self.paths)?;
        let options = Renaming { method: "COPY", folders: self.recursive, json: self.json };
        self.session.run(runtime, async move |mut server| rename_all(&mut server, &options, &from, &to).await)
    }
}
