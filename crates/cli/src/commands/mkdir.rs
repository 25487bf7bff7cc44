//! `plimsoll mkdir`: creates folders.
//!
//! It changes no existing folder. Invariant: with -p, an existing folder is no error.

use std::ffi::OsString;

use clap::Args;
use plimsoll_client::http::Request;
use plimsoll_wire::http::status::Status;

use super::server_args::SessionArgs;
use crate::listing::EntryKind;
use crate::{ApiClient, Done, Failure, PathResults, RemotePath, Runtime};

/// Create folders
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll mkdir photos
  plimsoll mkdir -p photos/2026/november bob:inbox/new

JSON: {\"done\":[{\"path\":\"photos\"}],\"failed\":[{\"path\":\"bob:inbox\",\"error\":\"...\"}]}")]
pub struct Mkdir {
    /// The folders, OWNER:PATH for another account's
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<OsString>,
    /// Create missing parent folders too, and accept folders that exist
    #[arg(short)]
    parents: bool,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Mkdir {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let places: Vec<RemotePath> =
            self.paths.iter().map(|path| RemotePath::parse(path)).collect::<Result<_, _>>()?;
        let (parents, json) = (self.parents, self.json);
        self.session.run(runtime, async move |mut server| {
            let mut each = PathResults::new(json);
            for place in places {
                let made = match parents {
                    true => make_all(&mut server, &place).await,
                    false => make(&mut server, &place).await,
                };
                if !each.record(Done::of(place.to_string()), made) {
                    break;
                }
            }
            each.end()
        })
    }
}

async fn make(server: &mut ApiClient, place: &RemotePath) -> Result<(), Failure> {
    server.send_and_discard(Request::new("MKCOL", &place.folder_target())).await
}

/// Creates a folder and its missing ancestors.
pub(super) async fn make_all(server: &mut ApiClient, place: &RemotePath) -> Result<(), Failure> {
    let mut missing = Vec::new();
    let mut next = Some(place.clone()).filter(|place| !place.is_home());
    while let Some(place) = next {
        match make_one(server, &place).await {
            // The parent folder is missing.
            Err(failure) if is_conflict(&failure) => {
                next = place.parent().filter(|parent| !parent.is_home());
                let is_top = next.is_none();
                missing.push(place);
                if is_top {
                    return Err(failure);
                }
            }
            Err(failure) => return Err(failure),
            Ok(_) => break,
        }
    }
    for place in missing.iter().rev() {
        make_one(server, place).await?;
    }
    Ok(())
}

/// Creates a folder unless it exists. Returns whether it existed.
pub(super) async fn make_one(server: &mut ApiClient, place: &RemotePath) -> Result<bool, Failure> {
    // A folder that an earlier try has created is one that exists.
    let target = place.folder_target();
    let request = Request::new("MKCOL", &target).idempotent_if(true);
    match server.send_and_discard(request).await {
        Err(failure) if failure.status() == Some(Status::METHOD_NOT_ALLOWED) || is_conflict(&failure) => {
            let metadata = server.stat(place).await?;
            if metadata.is_some_and(|metadata| metadata.kind == EntryKind::Folder) {
                Ok(true)
            } else {
                Err(failure)
            }
        }
        created => created.map(|()| false),
    }
}

fn is_conflict(failure: &Failure) -> bool {
    failure.status() == Some(Status::CONFLICT)
}
