//! `plimsoll mv`: moves or renames files and folders on the server.
//!
//! No contents are transferred to the client. Invariant: a file may be replaced, a folder never is.

use std::ffi::OsString;
use std::io::Write as _;

use clap::Args;
use plimsoll_client::http::Request;

use super::server_args::SessionArgs;
use super::shares::{ShareInfo, fetch_shares};
use crate::WrongUsage;
use crate::listing::{EntryKind, not_found};
use crate::output::text;
use crate::{ApiClient, Done, Failure, PathResults, RemotePath, Runtime};

/// Move or rename files and folders on the server
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll mv draft.txt final.txt
  plimsoll mv a.jpg b.jpg photos/
  plimsoll mv photos old-photos

A share is of a path: those of a moved path end, and the command names them.
The last PATH is the new name. If it is a folder or ends with a slash, it is the folder to move to.
JSON: {\"done\":[{\"path\":\"draft.txt\",\"to\":\"final.txt\",\"unshared_with\":[\"bob\"]}],
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
        let options = Renaming { method: "MOVE", folders: true, json: self.json };
        self.session.run(runtime, async move |mut server| rename_all(&mut server, &options, &from, &to).await)
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
    options: &Renaming,
    from: &[RemotePath],
    to: &RemotePath,
) -> anyhow::Result<()> {
    let is_folder = to.is_folder || is_folder(server, to).await?;
    if from.len() > 1 && !is_folder {
        return Err(
            WrongUsage(format!("{to} is no folder to put several things into; end it with a slash")).into()
        );
    }
    let shares = shares_before(server).await;
    let mut each = PathResults::new(options.json);
    for place in from {
        let to = match place.name() {
            Some(name) if is_folder => to.join(name),
            _ => to.clone(),
        };
        let renamed = rename(server, options, place, &to).await;
        let mut done = Done::from_to(place.to_string(), to.to_string());
        if renamed.is_ok() {
            done.unshared_with = unshared(&shares, (options.method == "MOVE").then_some(place), &to);
            tell_unshared(&done);
        }
        if !each.record(done, renamed) {
            break;
        }
    }
    each.end()
}

/// Returns the account's shares. None if the server has none, as with accounts of another system.
async fn shares_before(server: &mut ApiClient) -> Vec<ShareInfo> {
    let shares = fetch_shares(server, "/api/shares").await.and_then(|shares| shares.parsed());
    shares.unwrap_or_default()
}

/// Returns the accounts whose shares end: of a moved source and of what is in it, and of a replaced file.
fn unshared(shares: &[ShareInfo], moved: Option<&RemotePath>, to: &RemotePath) -> Vec<String> {
    let is_moved = |share: &ShareInfo| moved.is_some_and(|from| share.is_at(from) || share.is_below(from));
    let ends = |share: &&ShareInfo| is_moved(share) || share.is_at(to);
    let mut with: Vec<String> = shares.iter().filter(ends).map(|share| share.with.clone()).collect();
    with.sort();
    with.dedup();
    with
}

fn tell_unshared(done: &Done) {
    let Done { path, to: Some(to), unshared_with } = done else { return };
    if !unshared_with.is_empty() {
        let with = text(unshared_with.join(", ").as_bytes());
        // Standard error may be closed.
        let _ = writeln!(
            std::io::stderr(),
            "plimsoll: {path}: shares of it have ended, with {with}. Share again: plimsoll share {to} NAME"
        );
    }
}

async fn rename(
    server: &mut ApiClient,
    options: &Renaming,
    from: &RemotePath,
    to: &RemotePath,
) -> Result<(), Failure> {
    let metadata = server.stat(from).await?.ok_or_else(|| not_found(from))?;
    let target = match metadata.kind {
        EntryKind::File => from.target(),
        EntryKind::Folder if options.folders => from.folder_target(),
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
        Some(_) if metadata.kind == EntryKind::Folder => {
            return Err(Failure::Local(format!(
                "{to} is a file that is there already. Choose another name."
            )));
        }
        Some(_) => "T",
        None => "F",
    };
    let destination = server.url.path_of(&to.target());
    let request =
        Request::new(options.method, &target).field("Destination", destination).field("Overwrite", overwrite);
    let moved = server.send_and_discard(request).await;
    moved.map_err(|failure| failure.for_a_file_at(to))
}

async fn is_folder(server: &mut ApiClient, place: &RemotePath) -> Result<bool, Failure> {
    Ok(server.stat(place).await?.is_some_and(|metadata| metadata.kind == EntryKind::Folder))
}
