//! Sites: folders that are served to anyone, to be read; and how any folder's files are sent.
//!
//! It does not know who may read what: accounts' files are sent by [`look_up`], [`send`] and [`list`] too,
//! once somebody else has found that they may. What must hold: a name is opened only beneath its root; of a
//! site, names that begin with a dot are not there (`.well-known` is); what is sent is what the head says.

mod encoding;
mod file;
mod folder;
mod hot;
mod listing;
mod lookup;
mod manner;
mod media;
mod page;
mod prefetch;
mod said;

use std::io;
use std::path::Path;

use plimsoll_io::{File, Fs, JobOwner, Stat};
use plimsoll_store::Edition;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::negotiate::{prefers_html, prefers_json};
use plimsoll_wire::http::status::Status;

pub use self::file::send;
pub use self::folder::{Selection, list, list_entries, listed, page_of_listing, redirect};
pub use self::hot::{HotFigures, HotSet, HotSettings};
pub use self::listing::BadPage;
pub use self::lookup::{Found, FoundFile, at_hand, look_up};
pub use self::manner::Manner;
pub use self::prefetch::{Candidate, Count, Prefetched, candidates};
use super::answer::{Answer, Body};
use super::limits::RETRY_AFTER_SECONDS;
use super::problem::problem;
use super::request::Request;

/// The refusal of a listing as a whole, of a folder that is too large for it.
pub const TOO_MANY_ENTRIES: &str = "The folder has too many entries to be listed at once. List it in pages: \
                                    ?format=json&limit=1000, then as next_href says.";

/// A folder served under a prefix.
#[derive(Clone, Debug)]
pub struct Site {
    prefix: Vec<u8>,
    root: Root,
}

/// A folder that names are looked up in.
#[derive(Clone, Debug)]
pub struct Root {
    /// The folder.
    pub folder: File,
    /// The edition that it was in before anything is opened beneath it; without, nothing of it is taken from
    /// the hot set or kept there.
    pub edition: Option<Edition>,
}

/// What is asked of a folder that is served.
pub struct Asked<'a> {
    /// What follows the `?`.
    pub query: Option<&'a [u8]>,
    /// The decoded path, from the root: relative, with a slash at its end where the path has one.
    pub name: Vec<u8>,
    /// The decoded path as a whole.
    pub path: Vec<u8>,
    /// Bytes at the path's start that a listing leaves out of what it shows.
    pub unshown: usize,
}

impl Site {
    /// Serves the folder at `root` under `prefix`, which begins with a slash.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub fn open(fs: &dyn Fs, prefix: &str, root: &Path) -> io::Result<Site> {
        let root = Root { folder: fs.open_root(root)?, edition: Some(Edition::draw()) };
        Ok(Site { prefix: prefix.trim_end_matches('/').as_bytes().to_vec(), root })
    }

    /// The same, of which nothing is kept ready: what is in the folder changes also through this server, and
    /// such changes are to be seen at once.
    #[must_use]
    pub fn never_hot(mut self) -> Site {
        self.root.edition = None;
        self
    }

    /// The folder.
    pub(crate) fn root(&self) -> &File {
        &self.root.folder
    }

    /// The prefix, without a slash at its end; that of the whole site is empty.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The name below this site's root that a decoded path stands for, if it is this site's.
    pub(super) fn strip(&self, path: &[u8]) -> Option<Vec<u8>> {
        match path.strip_prefix(&*self.prefix)? {
            [] => Some(Vec::new()),
            [b'/', name @ ..] => Some(name.to_vec()),
            _ => None,
        }
    }
}

/// The validator of a file: it changes whenever the file does, because nobody can set the time of change.
pub fn etag(stat: &Stat) -> String {
    format!("\"{:x}-{:x}-{:x}\"", stat.inode, stat.changed.as_nanos(), stat.size)
}

pub(super) async fn answer(site: &Site, request: &mut Request<'_>, asked: Asked<'_>) -> Answer {
    if is_hidden(&asked.name) {
        return not_there(site, request).await;
    }
    if asked.name.is_empty() && !asked.path.ends_with(b"/") {
        // The root of a site under a prefix, asked for without its slash.
        return redirect(&asked);
    }
    match look_up(request, &site.root, &asked.name, Manner::Site).await {
        Ok(Found::File(found)) => send(request, found),
        Ok(Found::Folder) => list_folder(site, request, &asked).await,
        Ok(Found::FolderWithoutSlash) => redirect(&asked),
        Err(error) => failed(site, request, &error).await,
    }
}

/// What is in a folder of a site. Guests of one address wait for each other, and delay nobody else.
async fn list_folder(site: &Site, request: &mut Request<'_>, asked: &Asked<'_>) -> Answer {
    let page = match page_of_listing(request, asked) {
        Ok(page) => page,
        Err(bad) => return refused(request, Status::BAD_REQUEST, &bad.to_string()),
    };
    let io = request.io.for_owner(JobOwner::guest(request.peer));
    let selection = Selection { only: None, page };
    match list(request, &io, &site.root.folder, asked, Manner::Site, selection).await {
        Ok(answer) => answer,
        Err(error) => failed(site, request, &error).await,
    }
}

/// Whether a name has a part that begins with a dot, which is how configuration and history are kept apart.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    name.split(|&byte| byte == b'/').any(|part| part.starts_with(b".") && part != b".well-known")
}

/// The answer to a name that could not be opened or read.
async fn failed(site: &Site, request: &Request<'_>, error: &io::Error) -> Answer {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound | Kind::NotADirectory | Kind::InvalidInput | Kind::InvalidFilename => {
            not_there(site, request).await
        }
        Kind::PermissionDenied => refused(
            request,
            Status::FORBIDDEN,
            "The server may not read this file; its operator can change that.",
        ),
        Kind::ResourceBusy | Kind::TimedOut | Kind::ConnectionAborted => {
            refused(request, Status::SERVICE_UNAVAILABLE, "The server is busy; try again shortly.")
                .field_display("Retry-After", RETRY_AFTER_SECONDS)
        }
        Kind::QuotaExceeded => refused(request, Status::SERVICE_UNAVAILABLE, TOO_MANY_ENTRIES)
            .field_display("Retry-After", RETRY_AFTER_SECONDS),
        _ => {
            tracing::error!(%error, "a site's file could not be read");
            refused(
                request,
                Status::INTERNAL_SERVER_ERROR,
                "The file could not be read; the server's log says why.",
            )
        }
    }
}

/// 404: the site's own page if it has one, else ours.
async fn not_there(site: &Site, request: &Request<'_>) -> Answer {
    let own = if wants_page(request) { lookup::not_found_page(site, request.io).await } else { None };
    match own {
        Some(page) => page_with(Answer::new(Status::NOT_FOUND), page),
        None => refused(request, Status::NOT_FOUND, "There is no such file here."),
    }
}

/// The page under `/` of a server that has no site there: what else it serves, and what to type.
pub fn start_page(has_accounts: bool) -> Answer {
    our_page(Answer::new(Status::OK), page::start(has_accounts)).field("Cache-Control", "no-cache")
}

/// An error as a page for people and as a problem for programs.
pub fn refused(request: &Request<'_>, status: Status, detail: &str) -> Answer {
    if wants_page(request) {
        our_page(Answer::new(status), page::error(status, detail))
    } else {
        // 404 may be cached without being asked for: a person must not get what a program was told.
        problem(status, detail).field("Vary", "Accept")
    }
}

fn wants_page(request: &Request<'_>) -> bool {
    request.field(Field::Accept).is_some_and(prefers_html)
}

/// Whether a folder is listed as a page: unless the query has `format=json`, or Accept prefers JSON.
fn wants_listing_page(request: &Request<'_>, asked: &Asked<'_>) -> bool {
    let mut parameters = asked.query.unwrap_or_default().split(|byte| *byte == b'&');
    let is_json_asked = parameters.any(|parameter| parameter == b"format=json");
    !is_json_asked && !request.field(Field::Accept).is_some_and(prefers_json)
}

fn page_with(answer: Answer, page: Vec<u8>) -> Answer {
    let answer = answer.field("Content-Type", "text/html; charset=utf-8").field("Vary", "Accept");
    answer.field("X-Content-Type-Options", "nosniff").body(Body::Bytes(page))
}

/// A page that we made: nothing in it may load or run anything.
fn our_page(answer: Answer, page: Vec<u8>) -> Answer {
    const POLICY: &str =
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
    page_with(answer.field("Content-Security-Policy", POLICY), page)
}
