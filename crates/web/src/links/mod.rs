//! Public links: `/s/TOKEN`, and the files below a linked folder.
//!
//! The rights of a link are not checked here (`operations` does it). Invariants: of a link that has ended,
//! and of one that never was, a visitor learns the same. No response may be stored by a cache, listed by a
//! search engine, or named in the Referer of a request.

mod cookies;
pub(crate) mod drop;
mod read;

use plimsoll_auth::{Error as AuthError, LinkPermission, Secret, link_of_token};
use plimsoll_operations::{Caller, Error, LinkVisitor, Operations};
use plimsoll_proto::http::{Answer, Request, site, split_link};
use plimsoll_store::Error as StoreError;
use plimsoll_wire::http::credentials::{Credentials, parse_authorization};
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::media_type::is_media_type;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encoded_path;

use crate::page::{self, form::Form};
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials};

/// The path of a link, or of a file or folder below it.
#[derive(Clone)]
pub(crate) struct LinkTarget {
    /// The id of the link, which its token gives.
    id: String,
    /// The whole decoded path.
    path: Vec<u8>,
    /// Length in bytes of the path of the link itself.
    prefix_bytes: usize,
}

impl LinkTarget {
    /// Resolves a decoded path; `None` if it is not of a link.
    pub(crate) fn of(path: &[u8]) -> Option<LinkTarget> {
        let (token, rest) = split_link(path)?;
        let prefix_bytes = path.len() - rest.len();
        Some(LinkTarget { id: link_of_token(token)?, path: path.to_vec(), prefix_bytes })
    }

    /// Returns the path below the link: empty, or with a slash at its start.
    fn rest(&self) -> &[u8] {
        self.path.get(self.prefix_bytes..).unwrap_or_default()
    }

    /// Returns the path of the link itself, which is ASCII.
    fn top(&self) -> String {
        String::from_utf8_lossy(self.path.get(..self.prefix_bytes).unwrap_or_default()).into_owned()
    }
}

/// Returns whether a decoded path is of a link.
pub(crate) fn is_below(path: &[u8]) -> bool {
    split_link(path).is_some()
}

/// Adds the fields that keep the token from search engines and from other servers.
pub(crate) fn unlisted(answer: Answer) -> Answer {
    answer.field("Referrer-Policy", "no-referrer").field("X-Robots-Tag", "noindex, nofollow")
}

/// Returns a refusal, for a person as a page of the link.
pub(crate) fn refused(request: &Request<'_>, refusal: Refusal) -> Answer {
    if !site::wants_page(request) {
        return refusal.answer(request);
    }
    let answer = page::link::refusal(request, &refusal);
    refusal.add_fields(request, answer)
}

/// Returns the response to a visitor of a link.
pub(crate) async fn answer(
    mut ask: RoutedRequest<'_, '_>,
    method: Method,
    target: LinkTarget,
) -> Result<Answer, Refusal> {
    match visit(&mut ask, &target).await? {
        LinkVisitor::Locked(_) if method == Method::Post && !is_multipart(ask.request) => {
            unlock(ask, &target).await
        }
        LinkVisitor::Locked(_) => locked(&ask, None),
        LinkVisitor::Open(caller) if link_of(&caller)?.permission == LinkPermission::Upload => {
            drop::answer(ask, method, &caller, &target).await
        }
        // A link for reading takes no files.
        LinkVisitor::Open(_) if method == Method::Put => {
            Err(Refusal::method(method, "GET, HEAD, POST, OPTIONS".to_owned()))
        }
        // The form of a link that another tab has unlocked.
        LinkVisitor::Open(_) if method == Method::Post => Ok(page::go_to(target.top())),
        LinkVisitor::Open(caller) => read::get(ask, &caller, &target).await,
    }
}

fn is_multipart(request: &Request<'_>) -> bool {
    is_media_type(request.field(Field::ContentType).unwrap_or_default(), "multipart/form-data")
}

/// Returns the visitor, with the proof of its password from a cookie or, for curl, with its password.
async fn visit(ask: &mut RoutedRequest<'_, '_>, target: &LinkTarget) -> Result<LinkVisitor, Refusal> {
    let (operations, visitor) = (&ask.web.operations, credentials::visitor(ask.request));
    let grant = cookies::unlocked(ask.request);
    let visit =
        async |grant: Option<&str>| operations.visit_link(&visitor, &target.id, grant).await.map_err(ended);
    let visited = visit(grant).await?;
    let (LinkVisitor::Locked(_), Some(password)) = (&visited, password_of(ask.request)) else {
        return Ok(visited);
    };
    let grant = operations.unlock_link(&visitor, &target.id, &password).await.map_err(wrong)?;
    visit(Some(&grant)).await
}

/// Reports that there is no such link.
fn ended(error: Error) -> Refusal {
    match error {
        Error::Auth(AuthError::NotFound | AuthError::NoSession) => Refusal::new(
            Status::NOT_FOUND,
            "There is no such link, or it has ended. Ask the person who sent it for another one.",
        ),
        error => error.into(),
    }
}

/// Hides the rights and the name of the owner's account from a visitor.
fn hidden(error: Error) -> Refusal {
    match error {
        Error::NotPermitted(_) | Error::ShareEnded => Refusal::new(
            Status::FORBIDDEN,
            "The link does not permit that any more. Ask the person who sent it.",
        ),
        Error::Auth(AuthError::Locked { .. }) => Refusal::new(
            Status::LOCKED,
            "The folder is in use just now. Send the file again later, or ask the person who sent the link.",
        ),
        Error::Store(StoreError::NotFound | StoreError::NotFolder) => Refusal::new(
            Status::NOT_FOUND,
            "There is nothing at this path of the link. It may have been renamed or removed.",
        ),
        error => ended(error),
    }
}

/// Reports that a password is wrong.
fn wrong(error: Error) -> Refusal {
    match error {
        Error::Auth(AuthError::WrongCredentials | AuthError::WrongCredentialsAfter { .. }) => {
            Refusal::link_locked("The password is wrong. Ask the person who sent the link for it.")
        }
        error => ended(error),
    }
}

/// Returns the password of the Authorization field, whatever name is with it.
fn password_of(request: &Request<'_>) -> Option<Secret> {
    match parse_authorization(request.field(Field::Authorization)?) {
        Ok(Credentials::Basic { password, .. }) => Some(Secret::new(password)),
        _ => None,
    }
}

/// Returns the response to a visitor without the password.
fn locked(ask: &RoutedRequest<'_, '_>, refusal: Option<Refusal>) -> Result<Answer, Refusal> {
    let refusal = refusal.unwrap_or_else(|| {
        Refusal::link_locked("This link has a password. Send it with any name: curl --user link:PASSWORD URL")
    });
    if !site::wants_page(ask.request) {
        return Err(refusal);
    }
    let may_show_password = may_show_password(&ask.web.operations, ask.request);
    let is_wrong = ask.request.method() == Method::Post;
    let answer = page::link::locked(ask.request, &refusal, may_show_password, is_wrong);
    Ok(refusal.add_fields(ask.request, answer))
}

fn may_show_password(operations: &Operations, request: &Request<'_>) -> bool {
    operations.check_password_channel(&credentials::visitor(request)).is_ok()
}

/// Receives the form with the password.
async fn unlock(ask: RoutedRequest<'_, '_>, target: &LinkTarget) -> Result<Answer, Refusal> {
    let password = Form::read(ask.request).await?.secret("password");
    let visitor = credentials::visitor(ask.request);
    match ask.web.operations.unlock_link(&visitor, &target.id, &password).await {
        Ok(grant) => {
            let cookie = cookies::unlock(ask.request, &target.top(), &grant);
            Ok(page::go_to(encoded_path(&target.path)).field("Set-Cookie", cookie))
        }
        Err(error) => locked(&ask, Some(wrong(error))),
    }
}

/// Returns the link of a caller that presented one.
fn link_of(caller: &Caller) -> Result<&plimsoll_auth::Link, Refusal> {
    caller.identity.link().ok_or_else(|| Error::NOT_FOUND.into())
}
