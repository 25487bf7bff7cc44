//! The account's public links: the form that makes one, the page that shows it once, and their list.
//!
//! It makes no link itself. Invariant: the URL of a link is on one page only, which no cache stores.

use maud::{Markup, html};
use plimsoll_auth::{Account, Link, LinkPermission};
use plimsoll_content::page::rounded_size;
use plimsoll_proto::http::{Answer, Request};
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use plimsoll_wire::http::status::Status;

use super::display_text;
use super::frame::{Frame, Section};
use super::qr;
use super::texts::Language;

/// Returns the form that makes a link of an entry.
pub(super) fn form(language: &Language, href: &str, next: &str, takes_uploads: bool) -> Markup {
    html! {
        form.card method="post" action="/app/do" {
            input type="hidden" name="at" value=(href);
            input type="hidden" name="next" value=(next);
            p.quiet { (language.text("link.about")) }
            @if takes_uploads {
                label { (language.text("link.permission"))
                    select name="permission" {
                        option value="read" { (language.text("link.read")) }
                        option value="upload" { (language.text("link.upload")) }
                    }
                }
            }
            label { (language.text("share.expires")) input type="date" name="expires"; }
            label { (language.text("link.password"))
                input type="password" name="password" autocomplete="new-password";
            }
            label { (language.text("link.downloads"))
                input type="number" name="downloads" min="1" max="1000000000" inputmode="numeric";
            }
            @if takes_uploads {
                label { (language.text("link.bytes")) input name="bytes" placeholder="10GiB" maxlength="20"; }
            }
            button.primary name="action" value="link" { (language.text("link.make")) }
        }
    }
}

/// Returns the rows of links. `of` is their account, if the reader is an operator.
pub(super) fn rows(language: &Language, links: &[Link], next: &str, of: Option<&str>) -> Markup {
    let action = if of.is_some() { "account-unlink" } else { "unlink" };
    html! {
        ul.rows {
            @for link in links {
                li {
                    span { "/" bdi { (display_text(&link.path)) } " " span.quiet { (terms(language, link)) } }
                    form method="post" action="/app/do" {
                        input type="hidden" name="id" value=(link.id);
                        input type="hidden" name="next" value=(next);
                        @if let Some(of) = of { input type="hidden" name="account" value=(of); }
                        button name="action" value=(action) { (language.text("link.end")) }
                    }
                }
            }
        }
    }
}

/// Describes a link: its permission, its limits and its end.
fn terms(language: &Language, link: &Link) -> String {
    let date = |time| format_rfc3339(since_1970(time)).split('T').next().unwrap_or_default().to_owned();
    let mut terms = vec![language.fill("link.created", &[("date", &date(link.created))])];
    if link.permission == LinkPermission::Upload {
        terms.push(language.text("link.upload").to_owned());
    }
    if let Some(expires) = link.expires {
        terms.push(language.fill("share.until", &[("date", &date(expires))]));
    }
    if link.has_password {
        terms.push(language.text("link.has-password").to_owned());
    }
    if let Some(max) = link.uses_max {
        terms
            .push(language.fill("link.uses", &[("used", &link.uses.to_string()), ("max", &max.to_string())]));
    }
    if let Some(max) = link.bytes_max {
        let (used, max) = (rounded_size(link.bytes), rounded_size(max));
        terms.push(language.fill("link.uses", &[("used", &used), ("max", &max)]));
    }
    terms.join(", ")
}

/// Returns the page that shows the URL of a new link.
pub(super) fn made(request: &Request<'_>, account: &Account, link: &Link, url: &str, next: &str) -> Answer {
    let frame = Frame::new(request, Section::Shares, Some(account));
    let language = frame.language;
    let title = language.text("link.made");
    let content = html! {
        p.back { a href=(next) { (language.text("link.back")) } }
        h1 { (title) }
        p { "/" bdi { (display_text(&link.path)) } }
        p { (language.text("link.once")) }
        p { label { (language.text("link.url")) input value=(url) readonly; } }
        (qr::code(url, language.text("link.qr")))
        p.quiet { (terms(language, link)) }
    };
    frame.answer(Status::OK, title, &content)
}
