//! `POST /app/do`: the changes that the page's forms request.
//!
//! It calls the operations that the API calls, and leads to the page that the form names. Invariant: a form
//! replaces no file and no folder.

use std::borrow::Cow;
use std::time::SystemTime;

use plimsoll_auth::{LinkPermission, NewLink, Permission};
use plimsoll_io::{Existing, Io};
use plimsoll_operations::{Caller, Error, HomePath, Parents};
use plimsoll_proto::http::Answer;
use plimsoll_store::{Condition, Disposal, Error as StoreError, Path};
use plimsoll_wire::calendar::parse_rfc3339;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::units::Size;

use super::entry::{name_of_permission, split, target_of};
use super::form::Form;
use super::{go_to, links, operate, trash};
use crate::api::links::{not_made, url_of};
use crate::refusal::Refusal;
use crate::{RoutedRequest, Web, conditions, credentials};

pub(super) async fn receive(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let form = Form::read(ask.request).await?;
    let notice: Cow<'static, str> = match &*form.bytes("action") {
        b"mkdir" => make_folder(ask.web, &caller, &form).await?.into(),
        b"rename" => rename(ask.web, &caller, &form).await?.into(),
        b"delete" => delete(ask.web, &caller, &form).await?,
        b"share" => share(ask.web, &caller, &form).await?.into(),
        b"unshare" => unshare(ask.web, &caller, &form).await?.into(),
        b"link" => return link(&ask, &caller, &form).await,
        b"unlink" => unlink(ask.web, &caller, &form).await?.into(),
        b"restore" => trash::restore(ask.web, &caller, &form).await?.into(),
        b"delete-trashed" => trash::delete(ask.web, &caller, &form).await?.into(),
        b"empty-trash" => trash::empty(ask.web, &caller, &form).await?.into(),
        action => operate::change(ask.web, &caller, &form, action).await?.into(),
    };
    Ok(go_to(form.next().with_notice(&notice)))
}

/// Returns the place of a name in a folder.
fn place_in(folder: &HomePath, name: &[u8]) -> Result<HomePath, Refusal> {
    if name.is_empty() || name.contains(&b'/') {
        return Err(Refusal::bad("A name has at least one character, and no slash. Choose another."));
    }
    let path = Path::parse(&[folder.path.as_bytes(), name].join(&b'/'))?;
    Ok(HomePath { path, ..folder.clone() })
}

async fn make_folder(web: &Web, caller: &Caller, form: &Form) -> Result<&'static str, Refusal> {
    let folder = target_of(&form.bytes("at"))?.place;
    let place = place_in(&folder, &form.bytes("name"))?;
    web.operations.make_folder(caller, &place, Parents::Needed).await?;
    Ok("made")
}

async fn rename(web: &Web, caller: &Caller, form: &Form) -> Result<&'static str, Refusal> {
    let from = target_of(&form.bytes("at"))?.place;
    let (folder, name) = split(from.path.as_bytes());
    // A name that is not UTF-8 is shown with replaced bytes; an unchanged one keeps its own.
    let folder = match unless_changed(form, "folder", &[b"/", folder].concat()) {
        changed if changed.is_empty() => {
            return Err(Refusal::bad("Name the folder: / is the one at the top."));
        }
        folder => folder,
    };
    let folder = HomePath { path: Path::parse(&folder)?, ..from.clone() };
    let new_name = unless_changed(form, "name", name);
    if new_name != name && String::from_utf8_lossy(&new_name).contains(char::REPLACEMENT_CHARACTER) {
        return Err(Refusal::bad(
            "The name has bytes that are no text, and the page shows \u{fffd} for them. Enter a whole name.",
        ));
    }
    let to = place_in(&folder, &new_name)?;
    match web.operations.rename(caller, &from, &to, Existing::Kept).await {
        Ok(_) => Ok("renamed"),
        Err(Error::Store(StoreError::NoFolder)) => Err(Refusal::new(
            Status::CONFLICT,
            "There is no such folder. Create it first, or choose another.",
        )),
        Err(error) => Err(error.into()),
    }
}

/// Returns the field, or `present` if the form has it as it was shown.
fn unless_changed(form: &Form, field: &str, present: &[u8]) -> Vec<u8> {
    let sent = form.bytes(field);
    if sent == String::from_utf8_lossy(present).as_bytes() { present.to_vec() } else { sent }
}

/// Deletes an entry. The notice names the entry of the trash, if the caller can restore it.
async fn delete(web: &Web, caller: &Caller, form: &Form) -> Result<Cow<'static, str>, Refusal> {
    let target = target_of(&form.bytes("at"))?;
    if form.bytes("sure").is_empty() {
        return Err(Refusal::bad(
            "The deletion is not confirmed. Go back, and tick the box above the button.",
        ));
    }
    let etag = form.text("etag");
    let condition = unchanged(&etag)?;
    let condition = if target.is_folder { condition.and_folder() } else { condition };
    match web.operations.remove(caller, &target.place, condition, Disposal::Trash).await {
        Ok(removed) => Ok(match removed.trashed {
            Some(id) if target.place.is_own(&caller.identity.account.name) => {
                format!("trashed&trashed={id}").into()
            }
            _ => "deleted".into(),
        }),
        Err(Error::Store(StoreError::Precondition)) if etag.is_empty() => Err(Error::NOT_FOUND.into()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the condition that an entry is the one that the form showed; none if the form does not say which.
fn unchanged(etag: &str) -> Result<Condition, Refusal> {
    if etag.chars().any(char::is_control) {
        return Err(Refusal::bad("The form names no version. Open the page again."));
    }
    let line = format!("If-Match: {etag}\r\n");
    Ok(conditions::parse_stored(if etag.is_empty() { "" } else { &line }))
}

async fn share(web: &Web, caller: &Caller, form: &Form) -> Result<&'static str, Refusal> {
    let target = target_of(&form.bytes("at"))?;
    if !target.place.is_own(&caller.identity.account.name) {
        return Err(Error::NotPermitted("share files of others").into());
    }
    let permissions = [Permission::Read, Permission::Write];
    let named = form.text("permission");
    let permission = permissions.into_iter().find(|known| name_of_permission(*known) == named);
    let permission = permission.ok_or_else(|| Refusal::bad("The form names no permission. Choose one."))?;
    let (with, expires) = (form.text("with"), expires(caller.io(), &form.text("expires"))?);
    let shared = web.operations.share(caller, target.place.path, with.trim(), permission, expires).await;
    match shared {
        Ok(_) => Ok("shared"),
        Err(Error::Auth(plimsoll_auth::Error::NotFound)) => {
            Err(Refusal::new(Status::NOT_FOUND, format!("There is no account {with:?}. Check the name.")))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the end of a day, which is the last day of a share.
fn expires(io: &Io, day: &str) -> Result<Option<SystemTime>, Refusal> {
    if day.is_empty() {
        return Ok(None);
    }
    let end = parse_rfc3339(&format!("{day}T23:59:59Z"));
    let end = end.filter(|end| *end > io.wall());
    end.map(Some).ok_or_else(|| Refusal::bad("The last day of a share must not be in the past (UTC)."))
}

/// Makes a public link. The response has its URL, which no other page can show.
async fn link(ask: &RoutedRequest<'_, '_>, caller: &Caller, form: &Form) -> Result<Answer, Refusal> {
    let place = target_of(&form.bytes("at"))?.place;
    let account = &caller.identity.account;
    if !place.is_own(&account.name) {
        return Err(Error::NotPermitted("share files of others").into());
    }
    let permission = match &*form.text("permission") {
        "upload" => LinkPermission::Upload,
        _ => LinkPermission::Read,
    };
    let downloads = Some(form.text("downloads")).filter(|text| !text.is_empty());
    let downloads = downloads.map(|text| text.parse()).transpose();
    let bytes = Some(form.text("bytes")).filter(|text| !text.is_empty());
    let bytes = bytes.filter(|_| permission == LinkPermission::Upload).map(|text| text.parse::<Size>());
    let new = NewLink {
        path: place.path.as_bytes().to_vec(),
        permission,
        expires: expires(caller.io(), &form.text("expires"))?,
        password: Some(form.secret("password")).filter(|password| !password.bytes().is_empty()),
        uses_max: downloads.map_err(|_| Refusal::bad("The number of downloads is not a number."))?,
        bytes_max: bytes.transpose().map_err(Refusal::bad)?.map(|Size(bytes)| bytes),
    };
    let made = ask.web.operations.link(caller, new).await;
    let (link, token) = made.map_err(|error| not_made(error, &place.path.to_string()))?;
    let (url, next) = (url_of(ask.request, &token), form.next().into_text());
    Ok(links::made(ask.request, account, &link, &url, &next))
}

async fn unlink(web: &Web, caller: &Caller, form: &Form) -> Result<&'static str, Refusal> {
    match web.operations.unlink(caller, &form.text("id")).await {
        // Or it has ended already.
        Ok(()) | Err(Error::Auth(plimsoll_auth::Error::NotFound)) => Ok("unlinked"),
        Err(error) => Err(error.into()),
    }
}

async fn unshare(web: &Web, caller: &Caller, form: &Form) -> Result<&'static str, Refusal> {
    match web.operations.unshare(caller, &form.text("id")).await {
        Ok(()) => Ok("unshared"),
        // It has ended already.
        Err(Error::Auth(plimsoll_auth::Error::NotFound)) => Ok("unshared"),
        Err(error) => Err(error.into()),
    }
}
