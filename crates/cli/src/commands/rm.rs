//! `plimsoll rm`: deletes files, and folders with all their contents.
//!
//! It does not ask for confirmation. Invariant: without -r no folder is deleted, not even one that replaces
//! a file meanwhile.

use std::ffi::OsString;

use clap::Args;
use plimsoll_client::http::Request;

use super::server_args::SessionArgs;
use crate::listing::{EntryKind, not_found};
use crate::{ApiClient, Done, Failure, PathResults, RemotePath, Runtime};

/// Delete files, and folders with -r
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll rm notes.txt photos/a.jpg
  plimsoll rm -r photos
  plimsoll rm bob:inbox/a.txt
  plimsoll rm --forever old.iso       not to the trash

What is deleted stays in the trash for a while: plimsoll trash lists and restores it.

JSON: {\"done\":[{\"path\":\"notes.txt\"}],\"failed\":[{\"path\":\"photos\",\"error\":\"...\"}]}")]
pub struct Rm {
    /// The files and folders, OWNER:PATH for another account's
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<OsString>,
    /// Delete folders too, with all their contents
    #[arg(short)]
    recursive: bool,
    /// Delete for good instead of moving to the trash
    #[arg(long)]
    forever: bool,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Rm {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let places: Vec<RemotePath> =
            self.paths.iter().map(|path| RemotePath::parse(path)).collect::<Result<_, _>>()?;
        let (recursive, forever, json) = (self.recursive, self.forever, self.json);
        self.session.run(runtime, async move |mut server| {
            let mut each = PathResults::new(json);
            for place in places {
                let removed = remove(&mut server, &place, recursive, forever).await;
                if !each.record(Done::of(place.to_string()), removed) {
                    break;
                }
            }
            each.end()
        })
    }
}

async fn remove(
    server: &mut ApiClient,
    place: &RemotePath,
    recursive: bool,
    forever: bool,
) -> Result<(), Failure> {
    let query = if forever { "?trash=no" } else { "" };
    let metadata = server.stat(place).await?.ok_or_else(|| not_found(place))?;
    if metadata.kind == EntryKind::Folder {
        if !recursive {
            return Err(Failure::Local(
                "It is a folder. Delete it with all that is in it: plimsoll rm -r".to_owned(),
            ));
        }
        return server
            .send_and_discard(Request::new("DELETE", &format!("{}{query}", place.folder_target())))
            .await;
    }
    let target = format!("{}{query}", place.target());
    let request = Request::new("DELETE", &target);
    server
        .send_and_discard(match metadata.etag {
            Some(etag) => request.field("If-Match", etag),
            None => request,
        })
        .await
}
