//! The details of a file or folder: rename, move, share, delete.
//!
//! It changes nothing itself. Invariant: a form is shown only if the account may do what it does.

use maud::{Markup, html};
use plimsoll_auth::{Link, Permission, Permissions, Share};
use plimsoll_content::page::{rounded_size, time};
use plimsoll_io::{FileKind, Stat};
use plimsoll_operations::{Caller, Error, HomePath, VisibleEntries};
use plimsoll_proto::http::Answer;
use plimsoll_wire::http::form_urlencoded::{encode, value_of};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::{decode_path, encoded_path};

use super::frame::{Frame, Section};
use super::shares::{end_form, permission_text, share_until};
use super::texts::Language;
use super::{display_text, links, notice};
use crate::api::trash::DAY_SECONDS;
use crate::files::FileTarget;
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials};

/// Returns the path of the page about an entry. `href` is the entry's path, percent-encoded.
pub(super) fn path_of(href: &str) -> String {
    let mut path = "/app/entry?at=".to_owned();
    encode(href.as_bytes(), &mut path);
    path
}

/// Resolves a percent-encoded path below `/files` or `/shared`.
pub(super) fn target_of(href: &[u8]) -> Result<FileTarget, Refusal> {
    let mut path = Vec::new();
    decode_path(href, &mut path).map_err(|bad| Refusal::bad(bad.detail()))?;
    FileTarget::of(path)
}

/// An entry, and the caller's permissions there.
struct Entry {
    target: FileTarget,
    href: String,
    stat: Stat,
    may: Permissions,
    /// The shares that the caller has given of exactly this path.
    shares: Vec<Share>,
    /// Its public links; `None` if there are none on this server.
    links: Option<Vec<Link>>,
    /// For how many days it stays in the trash after it is deleted; 0 if there is no trash.
    trash_days: u64,
}

pub(super) async fn show(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let at = value_of(ask.called.query.unwrap_or_default(), "at").unwrap_or_default();
    let target = target_of(&at)?;
    let access = ask.web.operations.look(&caller, &target.place).await?;
    if access.shown != VisibleEntries::All || target.place.path.is_root() {
        return Err(Error::NOT_FOUND.into());
    }
    let stat = access.location.stat(caller.io()).await.map_err(Error::from)?;
    let is_own = is_own(&target.place, &caller);
    let mut shares = Vec::new();
    if is_own && access.may.share {
        shares = ask.web.operations.shares(&caller).await?;
        shares.retain(|share| share.path == target.place.path.as_bytes());
    }
    let mut links = None;
    if is_own && access.may.share && ask.web.operations.auth().has_links() {
        links = ask.web.operations.links(&caller).await.ok();
    }
    if let Some(links) = &mut links {
        links.retain(|link| link.path == target.place.path.as_bytes());
    }
    let trash_days = match access.may.delete {
        true => ask.web.operations.trash_info(&caller).await?.time.as_secs() / DAY_SECONDS,
        false => 0,
    };
    let href = encoded_path(&target.path);
    let entry = Entry { href, target, stat, may: access.may, shares, links, trash_days };
    let section = if is_own { Section::Files } else { Section::Shares };
    let frame = Frame::new(ask.request, section, Some(&caller.identity.account));
    let content = page(&frame, &entry, ask.called.query);
    Ok(frame.answer(Status::OK, &name_of(&entry.target), &content))
}

fn is_own(place: &HomePath, caller: &Caller) -> bool {
    place.is_own(&caller.identity.account.name)
}

/// Splits a path into its folder, which ends with a slash, and its name.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    path.split_at(start)
}

fn name_of(target: &FileTarget) -> String {
    display_text(split(&target.path).1)
}

fn page(frame: &Frame, entry: &Entry, query: Option<&[u8]>) -> Markup {
    let (language, may) = (frame.language, entry.may);
    let folder = encoded_path(split(&entry.target.path).0);
    let is_folder = entry.stat.kind == FileKind::Folder;
    html! {
        p.back { a href=(folder) { (language.text("entry.back")) } }
        h1 { bdi { (name_of(&entry.target)) } }
        p {
            @if is_folder { (language.text("entry.folder")) } @else { (rounded_size(entry.stat.size)) }
            ", " (language.text("entry.modified")) " " (time(entry.stat.modified))
        }
        (notice(frame, query))
        p.tools {
            @if is_folder {
                a.button.primary href=(entry.href) { (language.text("entry.open")) }
            } @else {
                a.button.primary href=(entry.href) download { (language.text("entry.download")) }
                a.button href=(entry.href) { (language.text("entry.open")) }
            }
        }
        @if may.share { (sharing(language, entry)) }
        @if let Some(links) = &entry.links { (linking(language, entry, links)) }
        @if may.write && may.delete { (renaming(language, entry, &folder)) }
        @if may.delete { (deleting(frame, entry, &folder, is_folder)) }
    }
}

fn sharing(language: &'static Language, entry: &Entry) -> Markup {
    let next = path_of(&entry.href);
    html! {
        section {
            h2 { (language.text("share")) }
            @if !entry.shares.is_empty() {
                ul.rows {
                    @for share in &entry.shares {
                        li {
                            span { bdi { (share.with) } " " span.quiet {
                                (permission_text(language, share.permission)) (share_until(language, share))
                            } }
                            (end_form(language, share, &next, None))
                        }
                    }
                }
            }
            form.card method="post" action="/app/do" {
                input type="hidden" name="at" value=(entry.href);
                input type="hidden" name="next" value=(next);
                label { (language.text("share.with"))
                    input name="with" autocapitalize="none" autocomplete="off" spellcheck="false" required;
                }
                label { (language.text("share.permission"))
                    select name="permission" {
                        @for permission in [Permission::Read, Permission::Write] {
                            option value=(name_of_permission(permission)) {
                                (permission_text(language, permission))
                            }
                        }
                    }
                }
                label { (language.text("share.expires")) input type="date" name="expires"; }
                button.primary name="action" value="share" { (language.text("share")) }
            }
        }
    }
}

fn linking(language: &Language, entry: &Entry, of_entry: &[Link]) -> Markup {
    let next = path_of(&entry.href);
    html! {
        section {
            h2 { (language.text("link")) }
            @if !of_entry.is_empty() { (links::rows(language, of_entry, &next, None)) }
            @let takes_uploads = entry.may.write && entry.stat.kind == FileKind::Folder;
            (links::form(language, &entry.href, &next, takes_uploads))
        }
    }
}

/// Returns the value of a permission in a form.
pub(super) fn name_of_permission(permission: Permission) -> &'static str {
    match permission {
        Permission::Read => "read",
        Permission::Write => "write",
    }
}

fn renaming(language: &Language, entry: &Entry, folder: &str) -> Markup {
    let path = entry.target.place.path.as_bytes();
    html! {
        section {
            h2 { (language.text("rename")) }
            form.card method="post" action="/app/do" {
                input type="hidden" name="at" value=(entry.href);
                input type="hidden" name="next" value=(folder);
                label { (language.text("name"))
                    input name="name" autocomplete="off" required
                        value=(String::from_utf8_lossy(split(path).1));
                }
                label { (language.text("rename.folder"))
                    input name="folder" autocomplete="off"
                        value={ "/" (String::from_utf8_lossy(split(path).0)) };
                }
                @let has_links = entry.links.as_ref().is_some_and(|links| !links.is_empty());
                @if !entry.shares.is_empty() || has_links { p { (language.text("rename.ends-shares")) } }
                button name="action" value="rename" { (language.text("rename")) }
            }
        }
    }
}

fn deleting(frame: &Frame, entry: &Entry, folder: &str, is_folder: bool) -> Markup {
    let language = frame.language;
    let days = entry.trash_days.to_string();
    let warning = match (entry.trash_days, is_folder) {
        (0, true) => language.text("delete.folder").to_owned(),
        (0, false) => language.text("delete.file").to_owned(),
        _ if frame.section == Section::Files => language.fill("delete.trash", &[("days", days.as_str())]),
        _ => language.fill("delete.trash-of-owner", &[("days", days.as_str())]),
    };
    html! {
        section {
            h2 { (language.text("delete")) }
            form.card method="post" action="/app/do" {
                input type="hidden" name="at" value=(entry.href);
                input type="hidden" name="next" value=(folder);
                // The server deletes the version that the page shows, and no other.
                input type="hidden" name="etag" value=(plimsoll_content::etag(&entry.stat));
                p { (warning) }
                label.choice {
                    input type="checkbox" name="sure" value="yes" required; (language.text("delete.sure"))
                }
                button.danger name="action" value="delete" { (language.text("delete")) }
            }
        }
    }
}
