//! The account: its usage, its password, the end of its session, and the language of the page.
//!
//! Log-in is not here. Invariant: a session ends on the server before the browser forgets it.

use maud::html;
use plimsoll_auth::{Error as AuthError, Quota};
use plimsoll_content::page::rounded_size;
use plimsoll_operations::{Caller, Error};
use plimsoll_proto::http::Answer;
use plimsoll_wire::http::set_cookie::SetCookie;
use plimsoll_wire::http::status::Status;

use super::form::Form;
use super::frame::{Frame, Section};
use super::texts::{LANGUAGE_COOKIE, Language};
use super::{LocalTarget, cookie, go_to, notice, operate};
use crate::limits::LANGUAGE_KEPT_TIME;
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials};

pub(super) async fn show(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    page(ask, &caller, Status::OK, None).await
}

pub(super) async fn change_password(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let form = Form::read(ask.request).await?;
    let (old, new) = (form.secret("old"), form.secret("new"));
    match ask.web.operations.change_password(&caller, &old, &new).await {
        Ok(()) => Ok(go_to(LocalTarget::of(b"/app/account").with_notice("password"))),
        Err(Error::Auth(AuthError::WrongCredentials)) => {
            let text = Language::of(ask.request).text("password.wrong").to_owned();
            page(ask, &caller, Status::FORBIDDEN, Some(text)).await
        }
        Err(error) => {
            let refusal = Refusal::from(error);
            let text = refusal.detail().to_owned();
            page(ask, &caller, refusal.status, Some(text)).await
        }
    }
}

async fn page(
    ask: RoutedRequest<'_, '_>,
    caller: &Caller,
    status: Status,
    error: Option<String>,
) -> Result<Answer, Refusal> {
    let known = ask.web.operations.who_am_i(caller).await?;
    let frame = Frame::new(ask.request, Section::Account, Some(&known.account));
    let language = frame.language;
    let content = html! {
        h1 { bdi { (known.account.name) } }
        p { (usage(language, known.usage.bytes, known.account.quota)) }
        (notice(&frame, ask.called.query))
        @if let Some(error) = error { p.notice.error role="alert" { (error) } }
        section {
            h2 { (language.text("password.change")) }
            form.card method="post" action="/app/password" {
                input type="hidden" name="name" value=(known.account.name) autocomplete="username";
                label { (language.text("password.old"))
                    input type="password" name="old" autocomplete="current-password" required;
                }
                label { (language.text("password.new"))
                    input type="password" name="new" autocomplete="new-password" required;
                }
                p.quiet { (language.text("password.ends")) }
                button.primary { (language.text("password.change")) }
            }
        }
        @if let Some(href) = operate::start_page(known.account.permissions) {
            section {
                h2 { (language.text("operate")) }
                p { a.button href=(href) { (language.text("entry.open")) } }
            }
        }
        section {
            h2 { (language.text("log-out")) }
            @if cookie::token(ask.request).is_some() {
                form method="post" action="/app/logout" { button { (language.text("log-out")) } }
            } @else {
                // The browser sends a password that it stores, and no page can have it forgotten.
                p { (language.text("log-out.browser")) }
            }
        }
    };
    Ok(frame.answer(status, &known.account.name, &content))
}

/// Returns the text about used bytes.
pub(super) fn usage(language: &Language, bytes: u64, quota: Quota) -> String {
    let used = rounded_size(bytes);
    match quota.bytes {
        Some(quota) => language.fill("usage.of", &[("used", &used), ("quota", &rounded_size(quota))]),
        None => language.fill("usage", &[("used", &used)]),
    }
}

/// Ends the session of the cookie, also if the browser sends a password of its own beside it. A browser
/// without a session only forgets its cookie.
pub(super) async fn log_out(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    if let Some(token) = cookie::token(ask.request) {
        let operations = &ask.web.operations;
        match operations.by_token(&credentials::visitor(ask.request), token).await.map_err(Refusal::from) {
            Ok(caller) => operations.log_out(&caller).await?,
            Err(refusal) if refusal.status != Status::UNAUTHORIZED => return Err(refusal),
            Err(_) => {}
        }
    }
    Ok(go_to("/app/".to_owned()).field("Set-Cookie", cookie::remove(ask.request)))
}

pub(super) async fn choose_language(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let form = Form::read(ask.request).await?;
    let chosen = Language::by_code(&form.text("language"));
    let chosen =
        chosen.ok_or_else(|| Refusal::bad("The page has no such language. Choose one that it offers."))?;
    let cookie = SetCookie {
        name: LANGUAGE_COOKIE,
        value: chosen.code,
        path: "/",
        max_age: Some(LANGUAGE_KEPT_TIME),
        is_secure: cookie::is_over_https(ask.request),
    };
    Ok(go_to(form.next().into_text()).field("Set-Cookie", cookie.to_string()))
}
