//! The pages of a public link, for visitors without an account: a file, a folder, the password, an error.
//!
//! They work without a script and change nothing. Invariant: a page shows the name of the linked file or
//! folder, and of nothing beside or above it.

use maud::{Markup, html};
use plimsoll_auth::Link;
use plimsoll_content::page::{FolderFrame, FolderWords, rounded_size, time};
use plimsoll_io::Stat;
use plimsoll_proto::http::site::{FramedPage, RequestPath};
use plimsoll_proto::http::{Answer, Request};
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use plimsoll_wire::http::form_urlencoded::value_of;
use plimsoll_wire::http::status::Status;

use super::entry::split;
use super::folder::words;
use super::frame::Frame;
use super::texts::Language;
use super::{display_text, notice};
use crate::limits::FOLDER_PAGE_ENTRIES;
use crate::refusal::Refusal;

/// Returns the name of the linked file or folder. The whole home has none.
fn name_of(language: &Language, link: &Link) -> String {
    match split(&link.path).1 {
        b"" => language.text("link.home").to_owned(),
        name => display_text(name),
    }
}

/// Returns when a link ends, if it does.
fn end_of(language: &Language, link: &Link) -> Option<String> {
    let end = format_rfc3339(since_1970(link.expires?));
    let date = end.split('T').next().unwrap_or_default();
    Some(language.fill("link.until", &[("date", date)]))
}

/// Returns the page about a linked file.
pub(crate) fn file(request: &Request<'_>, link: &Link, stat: &Stat) -> Answer {
    let frame = Frame::of_link(request);
    let language = frame.language;
    let name = name_of(language, link);
    let content = html! {
        h1 { bdi { (name) } }
        p { (rounded_size(stat.size)) ", " (language.text("entry.modified")) " " (time(stat.modified)) }
        p.tools {
            a.button.primary href="?download" { (language.text("entry.download")) }
            a.button href="?view" { (language.text("entry.open")) }
        }
        @if let Some(end) = end_of(language, link) { p.quiet { (end) } }
    };
    frame.answer(Status::OK, &name, &content)
}

/// The frame of a folder of a link.
struct LinkedFolder {
    frame: Frame,
    name: String,
    end: Option<String>,
}

/// Returns the page around a folder of a link.
pub(crate) fn folder(request: &Request<'_>, path: &RequestPath<'_>, link: &Link) -> FramedPage {
    let frame = Frame::of_link(request);
    let fields = frame.fields();
    let from = path.query.and_then(|query| value_of(query, "from"));
    let from = from.and_then(|from| std::str::from_utf8(&from).ok()?.parse::<usize>().ok()).unwrap_or(0);
    let window = from..from.saturating_add(FOLDER_PAGE_ENTRIES);
    let (name, end) = (name_of(frame.language, link), end_of(frame.language, link));
    FramedPage { frame: Box::new(LinkedFolder { frame, name, end }), fields, window }
}

impl FolderFrame for LinkedFolder {
    fn words(&self) -> FolderWords<'_> {
        words(self.frame.language, &self.name)
    }

    fn document(&self, title: &str, content: &Markup) -> String {
        let title = if title == "/" { &self.name } else { title };
        self.frame.document(title, content)
    }

    fn tools(&self) -> Markup {
        html! {
            div.tools { a.button href="?archive=zip" { (self.frame.language.text("download.zip")) } }
            @if let Some(end) = &self.end { p.quiet { (end) } }
        }
    }
}

/// Returns the page of a link for uploads. It shows no file.
pub(crate) fn upload(request: &Request<'_>, link: &Link, query: Option<&[u8]>) -> Answer {
    let frame = Frame::of_link(request);
    let language = frame.language;
    let name = name_of(language, link);
    let content = html! {
        h1 { bdi { (name) } }
        p { (language.text("link.drop")) }
        (notice(&frame, query))
        form.card method="post" enctype="multipart/form-data" {
            label { (language.text("upload.files")) input type="file" name="file" multiple required; }
            button.primary { (language.text("upload")) }
        }
        @if let Some(end) = end_of(language, link) { p.quiet { (end) } }
    };
    frame.answer(Status::OK, &name, &content)
}

/// Returns the page that asks for the password.
pub(crate) fn locked(
    request: &Request<'_>,
    refusal: &Refusal,
    may_show_password: bool,
    is_wrong: bool,
) -> Answer {
    let frame = Frame::of_link(request);
    let language = frame.language;
    let is_limited = refusal.status != Status::UNAUTHORIZED;
    let content = html! {
        h1 { (language.text("link.locked")) }
        @if is_limited {
            p.notice.error role="alert" { (refusal.detail()) }
        } @else if is_wrong {
            p.notice.error role="alert" { (language.text("link.wrong")) }
        }
        @if may_show_password {
            form.card method="post" {
                label { (language.text("password"))
                    input type="password" name="password" autocomplete="off" required autofocus;
                }
                button.primary { (language.text("link.unlock")) }
            }
        } @else {
            p.notice.error role="alert" { (language.text("log-in.plain")) }
        }
    };
    frame.answer(refusal.status, language.text("link.locked"), &content)
}

/// Returns the page of an error.
pub(crate) fn refusal(request: &Request<'_>, refusal: &Refusal) -> Answer {
    let frame = Frame::of_link(request);
    let status = refusal.status;
    let title = match status {
        Status::NOT_FOUND => "link.missing",
        Status::GONE => "link.used-up",
        _ => "error",
    };
    let title = frame.language.text(title);
    let content = html! {
        h1 { (title) }
        p { (refusal.detail()) }
        p.quiet { (status.code()) " " (status.reason()) }
    };
    frame.answer(status, title, &content)
}
