//! The account's shares: those that it has given, and those that it has received.
//!
//! It gives no share. Invariant: a share is shown with the path that its rights are for.

use maud::{Markup, html};
use plimsoll_auth::{Permission, Share};
use plimsoll_proto::http::Answer;
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encoded_path;

use super::entry::path_of;
use super::frame::{Frame, Section};
use super::links::rows;
use super::texts::Language;
use super::{display_text, notice};
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials};

pub(super) async fn show(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let given = ask.web.operations.shares(&caller).await?;
    let received = ask.web.operations.shared(&caller).await?;
    let links = match ask.web.operations.auth().has_links() {
        true => ask.web.operations.links(&caller).await.unwrap_or_default(),
        false => Vec::new(),
    };
    let frame = Frame::new(ask.request, Section::Shares, Some(&caller.identity.account));
    let language = frame.language;
    let content = html! {
        h1 { (language.text("shares")) }
        (notice(&frame, ask.called.query))
        section {
            h2 { (language.text("shared")) }
            @if received.is_empty() { p { (language.text("shares.none-received")) } }
            @else { ul.rows { @for share in &received { (received_row(language, share)) } } }
        }
        section {
            h2 { (language.text("shares.given")) }
            @if given.is_empty() { p { (language.text("shares.none-given")) } }
            @else { ul.rows { @for share in &given { (given_row(language, share)) } } }
        }
        @if !links.is_empty() {
            section { h2 { (language.text("links")) } (rows(language, &links, "/app/shares", None)) }
        }
    };
    Ok(frame.answer(Status::OK, language.text("shares"), &content))
}

fn given_row(language: &Language, share: &Share) -> Markup {
    let href = href_below(b"/files/", &share.path);
    html! {
        li {
            span {
                a href=(path_of(&href)) { "/" (display_text(&share.path)) } " "
                span.quiet {
                    (language.text("shares.to")) " " bdi { (share.with) } ", "
                    (permission_text(language, share.permission)) (share_until(language, share))
                }
            }
            (end_form(language, share, "/app/shares", None))
        }
    }
}

fn received_row(language: &Language, share: &Share) -> Markup {
    let owner = [b"/shared/", share.owner.as_bytes(), b"/"].concat();
    html! {
        li {
            span {
                a href=(href_below(&owner, &share.path)) { "/" (display_text(&share.path)) } " "
                span.quiet {
                    (language.text("shares.from")) " " bdi { (share.owner) } ", "
                    (permission_text(language, share.permission)) (share_until(language, share))
                }
            }
        }
    }
}

fn href_below(prefix: &[u8], path: &[u8]) -> String {
    encoded_path(&[prefix, path].concat())
}

/// Returns the text of a permission.
pub(super) fn permission_text(language: &Language, permission: Permission) -> &str {
    match permission {
        Permission::Read => language.text("share.read"),
        Permission::Write => language.text("share.write"),
    }
}

/// Returns when a share ends, if it does.
pub(super) fn share_until(language: &Language, share: &Share) -> String {
    let Some(expires) = share.expires else { return String::new() };
    let end = format_rfc3339(since_1970(expires));
    let date = end.split('T').next().unwrap_or_default();
    format!(", {}", language.fill("share.until", &[("date", date)]))
}

/// Returns the form that ends a share. `of` is its owner, if the reader is an operator.
pub(super) fn end_form(language: &Language, share: &Share, next: &str, of: Option<&str>) -> Markup {
    let action = if of.is_some() { "account-unshare" } else { "unshare" };
    html! {
        form method="post" action="/app/do" {
            input type="hidden" name="id" value=(share.id);
            input type="hidden" name="next" value=(next);
            @if let Some(of) = of { input type="hidden" name="account" value=(of); }
            button name="action" value=(action) { (language.text("unshare")) }
        }
    }
}
