//! `plimsoll mv`: moves or renames files and folders on the server.
//!
//! No contents are transferred to the client. Invariant: a file may be replaced, a folder never is.

use std::ffi::OsString;

use clap::Args;
use plimsoll_client::http::Request;

use super::server_args::SessionArgs;
use crate::WrongUsage;
use crate::listing::{EntryKind, not_found};
use crate::{ApiClient, Done, Failure, PathResults, RemotePath, Runtime};

/// Move or rename files and folders on the server
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll mv draft.txt final.txt
  plimsoll mv a.jpg b.jpg photos/
  plimsoll mv photos old-photos

The last PATH is the new name. If it is a folder or ends with a slash, it is the folder to move to.
JSON: {\"done\":[{\"path\":\"draft.txt\",\"to\":\"final.txt\"}],
       \"failed\":[{\"path\":\"a.jpg\",\"error\":\"...\"}]}")]
pub struct Mv {
    /// The sources, then the destination
    #[arg(value_name = "PATH", required = true, num_args = 2..)]
    paths: Vec<OsString>,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Mv {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let (from, to) = from_and_to(&self.paths)?;
        let how = Renaming { method: "MOVE", folders: true, json: self.json };
        self.session.run(runtime, async move |mut server| rename_all(&mut server, &how, &from, &to).await)
    }
}

/// Splits the paths into the sources and the destination, which is the last.
pub(super) fn from_and_to(paths: &[OsString]) -> Result<(Vec<RemotePath>, RemotePath), WrongUsage> {
    let mut places: Vec<RemotePath> =
        paths.iter().map(|path| RemotePath::parse(path)).collect::<Result<_, _>>()?;
    let to = places.pop().ok_or_else(|| WrongUsage("say what, and where to; see --help".to_owned()))?;
    Ok((places, to))
}

/// The options of [`rename_all`].
pub(super) struct Renaming {
    /// MOVE or COPY.
    pub(super) method: &'static str,
    /// Whether folders are moved or copied too.
    pub(super) folders: bool,
    /// Whether the command prints JSON.
    pub(super) json: bool,
}

/// Moves or copies each of `from` to, or into, `to`.
pub(super) async fn rename_all(
    server: &mut ApiClient,
    how: &Renaming,
    from: &[RemotePath],
    to: &RemotePath,
) -> anyhow::Result<()> {
    let is_folder = to.is_folder || is_folder(server, to).await?;
    if from.len() > 1 && !is_folder {
        return Err(
            WrongUsage(format!("{to} is no folder to put several things into; end it with a slash")).into()
        );
    }
    let mut each = PathResults::new(how.json);
    for place in from {
        let to = match place.name() {
            Some(name) if is_folder => to.join(name),
            _ => to.clone(),
        };
        let renamed = rename(server, how, place, &to).await;
        if !each.record(Done { path: place.to_string(), to: Some(to.to_string()) }, renamed) {
            break;
        }
    }
    each.end()
}

async fn rename(
    server: &mut ApiClient,
    how: &Renaming,
    from: &RemotePath,
    to: &RemotePath,
) -> Result<(), Failure> {
    let about = server.stat(from).await?.ok_or_else(|| not_found(from))?;
    let target = match about.kind {
        EntryKind::File => from.target(),
        EntryKind::Folder if how.folders => from.folder_target(),
        EntryKind::Folder => {
            return Err(Failure::Local(
                "It is a folder. Copy it with all that is in it: plimsoll cp -r".to_owned(),
            ));
        }
    };
    // A missing destination must not be replaced if it appears meanwhile: it might be a folder.
    let overwrite = match server.stat(to).await? {
        Some(there) if there.kind == EntryKind::Folder => {
            return Err(Failure::Local(format!(
                "{to} is a folder that is there already. Choose another name."
            )));
        }
        Some(_) if about.kind == EntryKind::Folder => {
            return Err(Failure::Local(format!(
                "{to} is a file that is there already. Choose another name."
            )));
        }
        Some(_) => "T",
        None => "F",
    };
    let destination = server.url.path_of(&to.target());
    let request =
        Request::new(how.method, &target).field("Destination", destination).field("Overwrite", overwrite);
    let moved = server.send_and_discard(request).await;
    moved.map_err(|failure| failure.for_a_file_at(to))
}

async fn is_folder(server: &mut ApiClient, place: &RemotePath) -> Result<bool, Failure> {
    Ok(server.stat(place).await?.is_some_and(|about| about.kind == EntryKind::Folder))
}
