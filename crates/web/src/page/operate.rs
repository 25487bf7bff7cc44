//! The operator's page: all accounts, and of each its usage, limits, permissions, shares and public links.
//!
//! It calls the operations that `/api/operate` calls. Invariants: a page and a form have no effect without
//! the right `administer`, which the auth tier verifies; a page is bounded.

use maud::{Markup, html};
use plimsoll_auth::limits::ACCOUNTS_PER_PAGE_MAX;
use plimsoll_auth::{Account, Change, Error as AuthError, Link, Permissions, Quota, Share};
use plimsoll_content::page::{rounded_size, time};
use plimsoll_operations::{Caller, Error};
use plimsoll_proto::http::Answer;
use plimsoll_store::Usage;
use plimsoll_wire::calendar::since_1970;
use plimsoll_wire::http::form_urlencoded::{encode, value_of};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::units::Size;

use super::account::usage;
use super::form::Form;
use super::frame::{Frame, Section};
use super::shares::{end_form, permission_text, share_until};
use super::texts::Language;
use super::{display_text, links, notice};
use crate::api::operate::{after_of, check_session};
use crate::limits::{LINKS_PER_PAGE_MAX, SHARES_PER_PAGE_MAX};
use crate::refusal::Refusal;
use crate::{RoutedRequest, Web, credentials};

/// A permission: the field of the form, the key of its text, and the field of [`Permissions`].
type Right = (&'static str, &'static str, fn(&mut Permissions) -> &mut bool);

const RIGHTS: [Right; 7] = [
    ("read", "right.read", |may| &mut may.read),
    ("write", "right.write", |may| &mut may.write),
    ("delete", "right.delete", |may| &mut may.delete),
    ("share", "right.share", |may| &mut may.share),
    ("operate", "right.operate", |may| &mut may.operate),
    ("parents", "right.parents", |may| &mut may.parents),
    ("administer", "right.administer", |may| &mut may.administer),
];

/// The contents of the page of one account.
struct AccountView {
    account: Account,
    usage: Usage,
    shares: Vec<Share>,
    links: Vec<Link>,
    /// Whether it is the account of the reader.
    is_own: bool,
    /// The page itself, to which its forms lead.
    next: String,
}

/// Returns the operator's page to which the navigation leads, if an account has any.
pub(super) fn start_page(may: Permissions) -> Option<&'static str> {
    match may {
        Permissions { administer: true, .. } => Some("/app/operate"),
        Permissions { operate: true, .. } => Some("/app/status"),
        _ => None,
    }
}

/// Returns the page of all accounts, or of the one that the query names.
pub(super) async fn show(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    check_session(&caller)?;
    let named = ask.called.query.and_then(|query| value_of(query, "account")).unwrap_or_default();
    match String::from_utf8_lossy(&named).trim() {
        "" => list(ask, &caller).await,
        name => show_account(ask, &caller, name).await,
    }
}

async fn list(ask: RoutedRequest<'_, '_>, caller: &Caller) -> Result<Answer, Refusal> {
    let mut accounts = ask.web.operations.list_accounts(caller, after_of(ask.called.query)).await?;
    let is_last = accounts.len() <= ACCOUNTS_PER_PAGE_MAX;
    accounts.truncate(ACCOUNTS_PER_PAGE_MAX);
    let more = accounts.last().filter(|_| !is_last).map(|last| href_of("after", &last.name));
    let frame = Frame::new(ask.request, Section::Operate, Some(&caller.identity.account));
    let language = frame.language;
    let content = html! {
        h1 { (language.text("operate.accounts")) }
        p { a href="/app/status" { (language.text("status")) } }
        form.card action="/app/operate" {
            label { (language.text("operate.name"))
                input name="account" required maxlength="64" autocapitalize="none" spellcheck="false";
            }
            button { (language.text("entry.open")) }
        }
        ul.rows { @for account in &accounts { (row(language, account)) } }
        @if let Some(more) = more { p.tools { a.button href=(more) { (language.text("operate.more")) } } }
    };
    Ok(frame.answer(Status::OK, language.text("operate.accounts"), &content))
}

fn row(language: &Language, account: &Account) -> Markup {
    html! {
        li {
            span {
                a href=(href_of("account", &account.name)) { bdi { (account.name) } } " "
                span.quiet { (summary(language, account)) }
            }
        }
    }
}

/// Describes an account in a list: whether it is disabled, its limits and its permissions.
fn summary(language: &Language, account: &Account) -> String {
    let Quota { bytes, files } = account.quota;
    let mut parts = Vec::new();
    if !account.enabled {
        parts.push(language.text("operate.disabled").to_owned());
    }
    parts.push(match bytes {
        Some(bytes) => language.fill("operate.quota-of", &[("quota", &rounded_size(bytes))]),
        None => language.text("operate.no-quota").to_owned(),
    });
    if let Some(files) = files {
        parts.push(language.fill("operate.files-max", &[("files", &files.to_string())]));
    }
    let mut may = account.permissions;
    let rights = RIGHTS.iter().filter(|(.., field)| *field(&mut may));
    parts.extend(rights.map(|(_, key, _)| language.text(key).to_owned()));
    parts.join(", ")
}

/// Returns the target of a page of operators, with one field of its query.
fn href_of(field: &str, name: &str) -> String {
    let mut href = format!("/app/operate?{field}=");
    encode(name.as_bytes(), &mut href);
    href
}

async fn show_account(ask: RoutedRequest<'_, '_>, caller: &Caller, name: &str) -> Result<Answer, Refusal> {
    let operations = &ask.web.operations;
    let missing = |error| absent(error, name);
    let (account, usage) = operations.look_at_account_of(caller, name).await.map_err(missing)?;
    let mut shares = operations.shares_of(caller, name).await.map_err(missing)?;
    let mut links = match operations.auth().has_links() {
        true => operations.links_of(caller, name).await.map_err(missing)?,
        false => Vec::new(),
    };
    let is_whole = shares.len() <= SHARES_PER_PAGE_MAX && links.len() <= LINKS_PER_PAGE_MAX;
    shares.truncate(SHARES_PER_PAGE_MAX);
    links.truncate(LINKS_PER_PAGE_MAX);
    let (next, is_own) = (href_of("account", &account.name), account.id == caller.identity.account.id);
    let view = AccountView { account, usage, shares, links, is_own, next };
    let frame = Frame::new(ask.request, Section::Operate, Some(&caller.identity.account));
    let content = html! {
        (head(&frame, &view))
        (notice(&frame, ask.called.query))
        (limits(frame.language, &view))
        (permissions(frame.language, &view))
        (access(frame.language, &view))
        (given(frame.language, &view))
        @if !is_whole {
            p.quiet {
                (frame.language.fill("operate.first", &[("count", &SHARES_PER_PAGE_MAX.to_string())]))
            }
        }
    };
    Ok(frame.answer(Status::OK, &view.account.name, &content))
}

fn head(frame: &Frame, view: &AccountView) -> Markup {
    let (language, AccountView { account, usage: used, .. }) = (frame.language, view);
    let files = if used.files == 1 { "files.one" } else { "files.other" };
    html! {
        p.back { a href="/app/operate" { (language.text("operate.back")) } }
        h1 { bdi { (account.name) } }
        p {
            (usage(language, used.bytes, account.quota)) ", "
            (language.fill(files, &[("count", &used.files.to_string())])) ", "
            (language.text("operate.created")) " " (time(since_1970(account.created)))
        }
        @if !account.enabled { p.notice.error { (language.text("operate.is-disabled")) } }
    }
}

/// Returns the fields that each form about an account has.
fn hidden(view: &AccountView) -> Markup {
    html! {
        input type="hidden" name="account" value=(view.account.name);
        input type="hidden" name="next" value=(view.next);
    }
}

fn limits(language: &Language, view: &AccountView) -> Markup {
    let Quota { bytes, files } = view.account.quota;
    html! {
        section {
            h2 { (language.text("operate.quota")) }
            form.card method="post" action="/app/do" {
                (hidden(view))
                label { (language.text("operate.bytes"))
                    input name="bytes" value=[bytes.map(|bytes| Size(bytes).to_string())] placeholder="10GiB"
                        maxlength="24";
                }
                label { (language.text("operate.files"))
                    input type="number" name="files" value=[files] min="0" inputmode="numeric";
                }
                button.primary name="action" value="account-quota" { (language.text("save")) }
            }
        }
    }
}

fn permissions(language: &Language, view: &AccountView) -> Markup {
    let mut may = view.account.permissions;
    html! {
        section {
            h2 { (language.text("operate.permissions")) }
            form.card method="post" action="/app/do" {
                (hidden(view))
                @for (name, key, field) in RIGHTS {
                    @let is_kept = view.is_own && name == "administer";
                    @if is_kept { input type="hidden" name=(name) value="yes"; }
                    @else {
                        label.choice {
                            input type="checkbox" name=(name) value="yes" checked[*field(&mut may)];
                            (language.text(key))
                        }
                    }
                }
                button.primary name="action" value="account-permissions" { (language.text("save")) }
            }
        }
    }
}

fn access(language: &Language, view: &AccountView) -> Markup {
    html! {
        section {
            h2 { (language.text("operate.access")) }
            p { (language.text("operate.sessions-end")) }
            @if view.is_own { p { (language.text("operate.own")) } }
            @else { p { (language.text("operate.disable-ends")) } }
            form.buttons method="post" action="/app/do" {
                (hidden(view))
                button name="action" value="account-sessions" { (language.text("operate.end-sessions")) }
                @if !view.account.enabled {
                    button name="action" value="account-enable" { (language.text("operate.enable")) }
                } @else if !view.is_own {
                    button.danger name="action" value="account-disable" {
                        (language.text("operate.disable"))
                    }
                }
            }
        }
    }
}

/// Returns the lists of what an account shares, and of its public links.
fn given(language: &Language, view: &AccountView) -> Markup {
    let of = Some(&*view.account.name);
    html! {
        section {
            h2 { (language.text("shares")) }
            @if view.shares.is_empty() { p { (language.text("operate.none-given")) } }
            @else { ul.rows { @for share in &view.shares { (share_row(language, share, view)) } } }
        }
        section {
            h2 { (language.text("links")) }
            @if view.links.is_empty() { p { (language.text("operate.no-links")) } }
            @else { (links::rows(language, &view.links, &view.next, of)) }
        }
    }
}

fn share_row(language: &Language, share: &Share, view: &AccountView) -> Markup {
    html! {
        li {
            span {
                "/" bdi { (display_text(&share.path)) } " "
                span.quiet {
                    (language.text("shares.to")) " " bdi { (share.with) } ", "
                    (permission_text(language, share.permission)) (share_until(language, share))
                }
            }
            (end_form(language, share, &view.next, Some(&view.account.name)))
        }
    }
}

/// Makes the change that a form about an account requests. Returns the word of the notice.
pub(super) async fn change(
    web: &Web,
    caller: &Caller,
    form: &Form,
    action: &[u8],
) -> Result<&'static str, Refusal> {
    check_session(caller)?;
    let (operations, name) = (&web.operations, form.text("account"));
    let change = match action {
        b"account-quota" => Some(Change::Quota(quota_of(form)?)),
        b"account-permissions" => Some(Change::Permissions(permissions_of(form))),
        b"account-enable" => Some(Change::Enabled(true)),
        b"account-disable" => Some(Change::Enabled(false)),
        _ => None,
    };
    if let Some(change) = change {
        let changed = operations.change_account(caller, &name, vec![change]).await;
        return changed.map(|_| "changed").map_err(|error| absent(error, &name));
    }
    let (word, ended) = match action {
        b"account-sessions" => ("sessions-ended", operations.end_sessions_of(caller, &name).await),
        b"account-unshare" => ("unshared", operations.end_share_of(caller, &name, &form.text("id")).await),
        b"account-unlink" => ("unlinked", operations.end_link_of(caller, &name, &form.text("id")).await),
        _ => return Err(Refusal::bad("The form names no action. Open the page again.")),
    };
    match ended {
        // A share or link that has ended already.
        Err(Error::Auth(AuthError::NotFound)) if action != b"account-sessions" => Ok(word),
        ended => ended.map(|()| word).map_err(|error| absent(error, &name)),
    }
}

fn quota_of(form: &Form) -> Result<Quota, Refusal> {
    let (bytes, files) = (form.text("bytes"), form.text("files"));
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let bytes = given(&bytes).map(|text| text.parse::<Size>()).transpose().map_err(Refusal::bad)?;
    let files = given(&files).map(|text| text.parse::<u64>()).transpose();
    let files = files.map_err(|_| Refusal::bad("The number of files is not a number."))?;
    Ok(Quota { bytes: bytes.map(|Size(bytes)| bytes), files })
}

fn permissions_of(form: &Form) -> Permissions {
    let mut may = Permissions::NONE;
    for (name, _, field) in RIGHTS {
        *field(&mut may) = !form.bytes(name).is_empty();
    }
    may
}

fn absent(error: Error, name: &str) -> Refusal {
    match error {
        Error::Auth(AuthError::NotFound) => {
            Refusal::new(Status::NOT_FOUND, format!("There is no account {name:?}. Check the name."))
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::texts::LANGUAGES;
    use super::*;

    #[test]
    fn each_permission_has_a_field_of_its_own_and_a_text() {
        let mut all = Permissions::NONE;
        for (name, key, field) in RIGHTS {
            assert!(!std::mem::replace(field(&mut all), true), "{name}");
            assert!(LANGUAGES[0].known(key).is_some(), "{key}");
        }
        let is_given = serde_json::to_value(all).unwrap();
        let fields = is_given.as_object().unwrap();
        assert!(fields.len() == RIGHTS.len() && fields.values().all(|value| value == true), "{is_given}");
        assert!(RIGHTS.iter().all(|(name, ..)| fields.contains_key(*name)), "{is_given}");
    }
}
