//! Log-in and sign-up.
//!
//! Invariants: where the server refuses passwords, no page asks for one; a page never shows a password.

use maud::{Markup, html};
use plimsoll_auth::{Error as AuthError, LogIn};
use plimsoll_operations::Error;
use plimsoll_proto::http::{Answer, Request};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use super::form::Form;
use super::frame::{Frame, Section};
use super::texts::Language;
use super::{LocalTarget, cookie, go_to};
use crate::refusal::Refusal;
use crate::{RoutedRequest, Web, credentials};

/// The contents of the log-in form when it is shown.
#[derive(Default)]
struct Entered {
    next: LocalTarget,
    name: String,
    /// The error of the last attempt.
    error: Option<String>,
}

/// `GET /app/`: leads on if the browser has a session.
pub(super) async fn start(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    match credentials::caller(ask.web, ask.request).await {
        Ok(_) => Ok(go_to(LocalTarget::default().into_text())),
        Err(refusal) if refusal.status == Status::UNAUTHORIZED => {
            Ok(page(ask.web, ask.request, Status::OK, &Entered::default()))
        }
        Err(refusal) => Err(refusal),
    }
}

/// Returns the log-in page for a request that needs an account. It leads back to the requested page.
pub(super) fn asked_for(web: &Web, request: &Request<'_>) -> Answer {
    let next = match request.method() {
        Method::Get | Method::Head => LocalTarget::of(request.target()),
        _ => LocalTarget::default(),
    };
    page(web, request, Status::UNAUTHORIZED, &Entered { next, ..Entered::default() })
}

pub(super) async fn log_in(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let form = Form::read(ask.request).await?;
    let visitor = credentials::visitor(ask.request);
    let (name, next) = (form.text("name"), form.next());
    match ask.web.operations.log_in(&visitor, &name, &form.secret("password")).await {
        Ok(begun) => Ok(begin(ask.request, &begun, !form.bytes("stay").is_empty(), next.into_text())),
        // The accounts are in another system, which has passwords and no sessions.
        Err(Error::Auth(AuthError::NotAllowed)) => {
            Ok(go_to(next.into_text()).field("Set-Cookie", cookie::ask_by_dialog(ask.request)))
        }
        Err(error) => {
            let (refusal, text) = explained(ask.request, error);
            let entered = Entered { next, name, error: Some(text) };
            let answer = page(ask.web, ask.request, refusal.status, &entered);
            Ok(refusal.add_fields(ask.request, answer))
        }
    }
}

/// Stores the session in the browser.
fn begin(request: &Request<'_>, begun: &LogIn, stays: bool, next: String) -> Answer {
    let stays_until = stays.then_some(begun.expires);
    go_to(next).field("Set-Cookie", cookie::store(request, &begun.token, stays_until))
}

/// Returns the refusal, and the sentence for a person.
fn explained(request: &Request<'_>, error: Error) -> (Refusal, String) {
    let language = Language::of(request);
    let text = match error {
        Error::Auth(AuthError::WrongCredentials | AuthError::WrongCredentialsAfter { .. }) => {
            Some(language.text("log-in.wrong"))
        }
        Error::Auth(AuthError::NameTaken) => Some(language.text("sign-up.taken")),
        Error::PlainPassword => Some(language.text("log-in.plain")),
        _ => None,
    };
    let refusal = Refusal::from(error);
    let text = text.unwrap_or(refusal.detail()).to_owned();
    (refusal, text)
}

pub(super) fn sign_up_page(ask: &RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    check_sign_up(ask.web)?;
    Ok(sign_up_form(ask.web, ask.request, Status::OK, &Entered::default()))
}

pub(super) async fn sign_up(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    check_sign_up(ask.web)?;
    let form = Form::read(ask.request).await?;
    let visitor = credentials::visitor(ask.request);
    let (name, password) = (form.text("name"), form.secret("password"));
    let operations = &ask.web.operations;
    let signed_up = match operations.sign_up(&visitor, &name, &password).await {
        Ok(_) => operations.log_in(&visitor, &name, &password).await,
        Err(error) => Err(error),
    };
    match signed_up {
        Ok(begun) => Ok(begin(ask.request, &begun, false, LocalTarget::default().into_text())),
        Err(error) => {
            let (refusal, text) = explained(ask.request, error);
            let entered = Entered { name, error: Some(text), ..Entered::default() };
            let answer = sign_up_form(ask.web, ask.request, refusal.status, &entered);
            Ok(refusal.add_fields(ask.request, answer))
        }
    }
}

fn check_sign_up(web: &Web) -> Result<(), Refusal> {
    if web.operations.auth().is_sign_up_open() {
        Ok(())
    } else {
        Err(Error::Auth(AuthError::SignUpClosed).into())
    }
}

fn page(web: &Web, request: &Request<'_>, status: Status, entered: &Entered) -> Answer {
    let frame = Frame::new(request, Section::Other, None);
    let language = frame.language;
    let form = html! {
        input type="hidden" name="next" value=(entered.next.clone().into_text());
        (name_field(language, entered))
        label { (language.text("password"))
            input type="password" name="password" autocomplete="current-password" required;
        }
        label.choice { input type="checkbox" name="stay" value="yes"; (language.text("log-in.stay")) }
        button.primary { (language.text("log-in")) }
    };
    let content = html! {
        h1 { (language.text("log-in")) }
        (asking(web, request, language, "/app/login", entered, &form))
        @if web.operations.auth().is_sign_up_open() {
            p { a href="/app/signup" { (language.text("sign-up.link")) } }
        }
        details.terminal {
            summary { (language.text("log-in.terminal")) }
            pre { "plimsoll login NAME --server URL\nplimsoll ls" }
            pre { "curl --user NAME URL/files/" }
            p {
                (language.text("log-in.url")) " "
                a href="/api/openapi.json" { (language.text("log-in.api")) }
            }
        }
    };
    frame.answer(status, language.text("log-in"), &content)
}

fn sign_up_form(web: &Web, request: &Request<'_>, status: Status, entered: &Entered) -> Answer {
    let frame = Frame::new(request, Section::Other, None);
    let language = frame.language;
    let form = html! {
        (name_field(language, entered))
        label { (language.text("password"))
            input type="password" name="password" autocomplete="new-password" required;
        }
        button.primary { (language.text("sign-up")) }
    };
    let content = html! {
        h1 { (language.text("sign-up")) }
        (asking(web, request, language, "/app/signup", entered, &form))
        p { a href="/app/" { (language.text("sign-up.back")) } }
    };
    frame.answer(status, language.text("sign-up"), &content)
}

/// Returns the form, or the reason why a password cannot be entered here.
fn asking(
    web: &Web,
    request: &Request<'_>,
    language: &Language,
    action: &str,
    entered: &Entered,
    form: &Markup,
) -> Markup {
    if web.operations.check_password_channel(&credentials::visitor(request)).is_err() {
        return html! { p.notice.error role="alert" { (language.text("log-in.plain")) } };
    }
    html! {
        @if let Some(error) = &entered.error { p.notice.error role="alert" { (error) } }
        form.card method="post" action=(action) { (form) }
    }
}

fn name_field(language: &Language, entered: &Entered) -> Markup {
    html! {
        label { (language.text("name"))
            input name="name" value=(entered.name) autocomplete="username" autocapitalize="none"
                spellcheck="false" required autofocus;
        }
    }
}
