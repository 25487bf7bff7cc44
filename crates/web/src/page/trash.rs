//! The account's trash, the newest entries first: each is restored or deleted for good.
//!
//! It removes nothing by itself. Invariant: a form is shown only if the account may do what it does.

use maud::{Markup, html};
use plimsoll_auth::Permissions;
use plimsoll_content::page::{rounded_size, time};
use plimsoll_io::FileKind;
use plimsoll_operations::{Caller, Error};
use plimsoll_proto::http::Answer;
use plimsoll_store::{Error as StoreError, TrashId, TrashPage, TrashedEntry};
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use plimsoll_wire::http::form_urlencoded::value_of;
use plimsoll_wire::http::status::Status;

use super::form::Form;
use super::frame::{Frame, Section};
use super::texts::Language;
use super::{display_text, notice};
use crate::api::trash::DAY_SECONDS;
use crate::limits::FOLDER_PAGE_ENTRIES;
use crate::refusal::Refusal;
use crate::{RoutedRequest, Web, credentials};

pub(super) async fn show(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let query = ask.called.query.unwrap_or_default();
    let after = value_of(query, "after").and_then(|id| TrashId::parse(&id));
    let page = TrashPage { after, limit: FOLDER_PAGE_ENTRIES + 1 };
    let mut entries = ask.web.operations.trash(&caller, page).await?;
    let days = ask.web.operations.trash_info(&caller).await?.time.as_secs() / DAY_SECONDS;
    let is_last = entries.len() <= FOLDER_PAGE_ENTRIES;
    entries.truncate(FOLDER_PAGE_ENTRIES);
    let more = entries.last().filter(|_| !is_last).map(|last| format!("/app/trash?after={}", last.id));
    let frame = Frame::new(ask.request, Section::Trash, Some(&caller.identity.account));
    let (language, may) = (frame.language, caller.identity.account.permissions);
    let content = html! {
        h1 { (language.text("trash")) }
        (notice(&frame, ask.called.query))
        p {
            @if days == 0 { (language.text("trash.off")) }
            @else { (language.fill("trash.kept", &[("days", &days.to_string())])) }
        }
        @if entries.is_empty() { p { (language.text("trash.none")) } }
        @else {
            ul.rows { @for entry in &entries { (row(language, may, entry)) } }
            p.tools {
                @if let Some(more) = more { a.button href=(more) { (language.text("trash.more")) } }
            }
            @if may.delete {
                form method="post" action="/app/do" {
                    input type="hidden" name="next" value="/app/trash";
                    label.choice {
                        input type="checkbox" name="sure" value="yes" required;
                        (language.text("trash.sure"))
                    }
                    button.danger name="action" value="empty-trash" { (language.text("trash.empty")) }
                }
            }
        }
    };
    Ok(frame.answer(Status::OK, language.text("trash"), &content))
}

fn row(language: &Language, may: Permissions, entry: &TrashedEntry) -> Markup {
    let end = format_rfc3339(entry.expires);
    let date = end.split('T').next().unwrap_or_default();
    let slash = if entry.kind == FileKind::Folder { "/" } else { "" };
    html! {
        li {
            span {
                bdi { "/" (display_text(entry.path.as_bytes())) (slash) } " "
                span.quiet {
                    (rounded_size(entry.usage.bytes)) ", " (language.text("trash.deleted")) " "
                    (time(since_1970(entry.id.removed()))) ", "
                    (language.fill("trash.until", &[("date", date)]))
                }
            }
            form method="post" action="/app/do" {
                input type="hidden" name="id" value=(entry.id.to_string());
                input type="hidden" name="next" value="/app/trash";
                @if may.write {
                    button name="action" value="restore" { (language.text("trash.restore")) } " "
                }
                @if may.delete {
                    button.danger name="action" value="delete-trashed" { (language.text("trash.delete")) }
                }
            }
        }
    }
}

/// Returns the form that restores the entry that was just deleted, if the query names it.
pub(super) fn undo_form(frame: &Frame, query: &[u8]) -> Option<Markup> {
    let id = TrashId::parse(&value_of(query, "trashed")?)?;
    Some(html! {
        form method="post" action="/app/do" {
            input type="hidden" name="id" value=(id.to_string());
            input type="hidden" name="next" value=(frame.target);
            button name="action" value="restore" { (frame.language.text("undo")) }
        }
    })
}

pub(super) async fn restore(web: &Web, caller: &Caller, form: &Form) -> Result<&'static str, Refusal> {
    match web.operations.restore(caller, id_of(form)?, None).await {
        Ok(_) => Ok("restored"),
        Err(Error::Store(StoreError::AlreadyExists | StoreError::NoFolder)) => Err(Refusal::new(
            Status::CONFLICT,
            "Something else has this path now. Rename or move that first, then restore.",
        )),
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn delete(web: &Web, caller: &Caller, form: &Form) -> Result<&'static str, Refusal> {
    match web.operations.drop_trashed(caller, Some(id_of(form)?)).await {
        // It was deleted already.
        Ok(_) | Err(Error::Store(StoreError::NotFound)) => Ok("dropped"),
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn empty(web: &Web, caller: &Caller, form: &Form) -> Result<&'static str, Refusal> {
    if form.bytes("sure").is_empty() {
        return Err(Refusal::bad(
            "The deletion is not confirmed. Go back, and tick the box above the button.",
        ));
    }
    web.operations.drop_trashed(caller, None).await?;
    Ok("emptied")
}

fn id_of(form: &Form) -> Result<TrashId, Refusal> {
    TrashId::parse(&form.bytes("id"))
        .ok_or_else(|| Refusal::bad("The form names no entry of the trash. Open the page again."))
}
