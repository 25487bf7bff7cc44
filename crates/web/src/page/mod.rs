//! The web page: log-in and account under `/app/`, and folders as pages for browsers.
//!
//! The server renders everything, so the page works without a script. It has no right of its own: it calls
//! the operations that the API calls. Invariant: a form is received only from a page of this server.

mod account;
mod assets;
mod changes;
pub(crate) mod cookie;
mod entry;
mod folder;
pub(crate) mod form;
mod frame;
pub(crate) mod link;
mod links;
mod local_target;
mod login;
mod operate;
mod qr;
mod search;
mod shares;
mod status;
mod texts;
mod trash;

use std::sync::LazyLock;

use maud::html;
use plimsoll_proto::http::{Answer, Request, site};
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::text::is_unsafe_to_show;

pub(crate) use self::folder::of_account as folder_of_account;
use self::frame::{Frame, Section};
pub(crate) use self::local_target::LocalTarget;
use crate::refusal::Refusal;
use crate::{RoutedRequest, Web};

/// Prepares what all requests share, before the first one, and before a process forks.
pub(crate) fn load() {
    assets::load();
    LazyLock::force(&texts::LANGUAGES);
}

/// A view of the page, below `/app/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// The start: log-in, or the account's files.
    Start,
    LogIn,
    SignUp,
    LogOut,
    Account,
    Password,
    Language,
    /// The details of a file or folder.
    Entry,
    Shares,
    /// The results of a search.
    Search,
    Trash,
    /// All accounts, or one of them, for operators.
    Operate,
    /// The server's activity, for operators.
    Status,
    /// The receiver of the forms that change something.
    Changes,
    /// One of the page's own files, by its path below `/app/`.
    Asset(String),
}

/// The views with fixed paths, by path below `/app/`.
const VIEWS: [(&str, View); 14] = [
    ("", View::Start),
    ("login", View::LogIn),
    ("signup", View::SignUp),
    ("logout", View::LogOut),
    ("account", View::Account),
    ("password", View::Password),
    ("language", View::Language),
    ("entry", View::Entry),
    ("shares", View::Shares),
    ("search", View::Search),
    ("trash", View::Trash),
    ("operate", View::Operate),
    ("status", View::Status),
    ("do", View::Changes),
];

impl View {
    /// Returns the view of a path below `/app/`.
    pub(crate) fn of(rest: &str) -> View {
        let named = VIEWS.iter().find(|(name, _)| *name == rest).map(|(_, view)| view.clone());
        named.unwrap_or_else(|| View::Asset(rest.to_owned()))
    }

    pub(crate) fn methods(&self) -> &'static [Method] {
        use Method::{Get, Head, Post};
        match self {
            View::Start
            | View::Account
            | View::Entry
            | View::Shares
            | View::Search
            | View::Trash
            | View::Operate
            | View::Status
            | View::Asset(_) => &[Get, Head],
            // GET too, because the page of a refused form has that path, and may be reloaded.
            View::LogIn | View::SignUp | View::Password => &[Get, Head, Post],
            View::LogOut | View::Language | View::Changes => &[Post],
        }
    }
}

/// Returns the response of a view.
pub(crate) async fn answer(
    ask: RoutedRequest<'_, '_>,
    method: Method,
    view: View,
) -> Result<Answer, Refusal> {
    match view {
        View::Start => login::start(ask).await,
        View::LogIn if method == Method::Post => login::log_in(ask).await,
        View::LogIn => login::start(ask).await,
        View::SignUp if method == Method::Post => login::sign_up(ask).await,
        View::SignUp => login::sign_up_page(&ask),
        View::LogOut => account::log_out(ask).await,
        View::Account => account::show(ask).await,
        View::Password if method == Method::Post => account::change_password(ask).await,
        View::Password => account::show(ask).await,
        View::Language => account::choose_language(ask).await,
        View::Entry => entry::show(ask).await,
        View::Shares => shares::show(ask).await,
        View::Search => search::show(ask).await,
        View::Trash => trash::show(ask).await,
        View::Operate => operate::show(ask).await,
        View::Status => status::show(ask).await,
        View::Changes => changes::receive(ask).await,
        View::Asset(path) => assets::answer(&path),
    }
}

/// Returns a refusal, for a person as a page.
pub(crate) fn refused(web: &Web, request: &Request<'_>, refusal: Refusal) -> Answer {
    if !site::wants_page(request) {
        return refusal.answer(request);
    }
    let answer = if refusal.status == Status::UNAUTHORIZED {
        login::asked_for(web, request)
    } else {
        error_page(request, &refusal)
    };
    refusal.add_fields(request, answer)
}

fn error_page(request: &Request<'_>, refusal: &Refusal) -> Answer {
    let frame = Frame::new(request, Section::Other, None);
    let status = refusal.status;
    let title = if status == Status::NOT_FOUND { "error.missing" } else { "error" };
    let title = frame.language.text(title);
    let content = html! {
        h1 { (title) }
        (explained(&frame, refusal))
        p.quiet { (status.code()) " " (status.reason()) }
        p {
            @if let Some(back) = page_of_form(request) {
                a href=(back) { (frame.language.text("error.back")) } " · "
            }
            a href="/files/" { (frame.language.text("error.files")) }
        }
    };
    frame.answer(status, title, &content)
}

/// Returns the sentence about a refusal: the server's own, which is English; before it, in another language,
/// that of the status.
fn explained(frame: &Frame, refusal: &Refusal) -> maud::Markup {
    let key = format!("problem.{}", refusal.status.code());
    let own = frame.language.known(&key).filter(|_| frame.language.code != "en");
    html! {
        @if let Some(own) = own { p { (own) } p.quiet lang="en" { (refusal.detail()) } }
        @else { p { (refusal.detail()) } }
    }
}

/// Returns the page whose form was refused. The guard has checked that it is one of this server.
fn page_of_form(request: &Request<'_>) -> Option<String> {
    let referrer = request.field(Field::Referer).filter(|_| request.method() == Method::Post)?;
    let path = referrer.splitn(4, |byte| *byte == b'/').nth(3)?;
    Some(LocalTarget::of(&[b"/", path].concat()).into_text())
}

/// Returns a name or a path for display.
fn display_text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace(is_unsafe_to_show, "\u{fffd}")
}

/// Redirects a browser after its form was received. The next page is loaded by GET, so that reloading it
/// repeats nothing.
pub(crate) fn go_to(location: String) -> Answer {
    Answer::new(Status::SEE_OTHER).field("Location", location).field("Cache-Control", "no-store")
}

/// Returns the notice that a query names, if there is one.
fn notice(frame: &Frame, query: Option<&[u8]>) -> maud::Markup {
    let word = query.and_then(|query| plimsoll_wire::http::form_urlencoded::value_of(query, "done"));
    let key = word.map(|word| format!("done.{}", String::from_utf8_lossy(&word)));
    let text = key.and_then(|key| frame.language.known(&key).map(str::to_owned));
    let undo = query.and_then(|query| trash::undo_form(frame, query));
    html! {
        @if let Some(text) = text { p.notice role="status" { (text) } }
        @if let Some(undo) = undo { (undo) }
    }
}
