//! The results of a search below a folder.
//!
//! It searches nothing itself. Invariant: it shows what the API finds.

use maud::{Markup, html};
use plimsoll_content::WalkEntry;
use plimsoll_content::page::{rounded_size, time};
use plimsoll_io::FileKind;
use plimsoll_proto::http::Answer;
use plimsoll_wire::http::form_urlencoded::value_of;
use plimsoll_wire::http::status::Status;

use super::display_text;
use super::entry::target_of;
use super::frame::{Frame, Section};
use super::texts::Language;
use crate::api::search::{href_of, next_href};
use crate::files::gone;
use crate::refusal::Refusal;
use crate::search::Search;
use crate::{RoutedRequest, credentials};

/// The form of a search below the folder `href`, which is percent-encoded.
pub(super) fn form(language: &Language, href: &str, name: &str) -> Markup {
    html! {
        form.search action="/app/search" role="search" {
            input type="hidden" name="in" value=(href);
            input type="search" name="name" value=(name) maxlength="255" required
                aria-label=(language.text("search.name")) placeholder=(language.text("search.name"));
            " " button { (language.text("search")) }
        }
    }
}

pub(super) async fn show(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let query = ask.called.query.unwrap_or_default();
    let (folder, name) =
        (value_of(query, "in").unwrap_or_default(), value_of(query, "name").unwrap_or_default());
    let target = target_of(&folder)?;
    let search = Search::from_query(ask.called.query)?;
    let found = search.run(ask.web, ask.request, &caller, &target.place).await?.ok_or_else(gone)?;
    let is_own = target.place.is_own(&caller.identity.account.name);
    let section = if is_own { Section::Files } else { Section::Shares };
    let frame = Frame::new(ask.request, section, Some(&caller.identity.account));
    let language = frame.language;
    let folder = [target.path.strip_suffix(b"/").unwrap_or(&target.path), b"/"].concat();
    let href = href_of(&folder, false);
    let content = html! {
        p.back { a href=(href) { (language.text("entry.back")) } }
        h1 { (language.text("search.results")) }
        (form(language, &href, &display_text(&name)))
        @if found.entries.is_empty() && found.next.is_none() { p { (language.text("search.none")) } }
        ul.rows { @for entry in &found.entries { (row(&folder, entry)) } }
        @if let Some(next) = &found.next {
            p { a.button href={ "/app/search" (next_href(query, next)) } { (language.text("search.more")) } }
        }
    };
    Ok(frame.answer(Status::OK, language.text("search.results"), &content))
}

fn row(folder: &[u8], entry: &WalkEntry) -> Markup {
    let is_folder = entry.stat.kind == FileKind::Folder;
    html! {
        li {
            span {
                a href=(href_of(&[folder, &entry.path].concat(), is_folder)) {
                    bdi { (display_text(&entry.path)) @if is_folder { "/" } }
                }
                " " span.quiet {
                    @if !is_folder { (rounded_size(entry.stat.size)) ", " }
                    (time(entry.stat.modified))
                }
            }
        }
    }
}
