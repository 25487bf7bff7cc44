//! Refusals: a status, and a sentence that tells the client how to proceed.
//!
//! The sentence never contains the operating system's error: that goes to the log. Invariant: 404 is the
//! same for a path that does not exist and for one that the caller may not know of.

use std::borrow::Cow;
use std::time::Duration;

use plimsoll_auth::Error as AuthError;
use plimsoll_operations::Error;
use plimsoll_proto::http::{Answer, Body, BodyError, Request, site};
use plimsoll_store::{BadPath, Error as StoreError};
use plimsoll_wire::http::dav::lock::write_locked;
use plimsoll_wire::http::dav::multistatus::MEDIA_TYPE;
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::problem_code::ProblemCode;
use plimsoll_wire::http::status::Status;

use crate::limits::RETRY_AFTER_SECONDS;
use crate::page::cookie;

/// The challenge for a session's token.
const BEARER: &str = "Bearer realm=\"plimsoll\"";

/// The challenge for a name and a password.
const BASIC: &str = "Basic realm=\"plimsoll\", charset=\"UTF-8\"";
/// As [`BASIC`], for a public link. In a realm of its own, so that a browser sends no account's password.
const LINK_BASIC: &str = "Basic realm=\"plimsoll link\", charset=\"UTF-8\"";

/// A response that refuses a request.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    detail: Cow<'static, str>,
    fields: Vec<(&'static str, String)>,
    code: Option<ProblemCode>,
    /// The path of the lock that excludes the request, in its home.
    locked: Option<Vec<u8>>,
    /// The body for WebDAV clients.
    xml: Option<Vec<u8>>,
}

impl Refusal {
    pub(crate) fn new(status: Status, detail: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal { status, detail: detail.into(), fields: Vec::new(), code: None, locked: None, xml: None }
    }

    /// Refuses a malformed request.
    pub(crate) fn bad(detail: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal::new(Status::BAD_REQUEST, detail)
    }

    /// Refuses a method that the resource does not have; `allow` lists those it has.
    pub(crate) fn method(method: Method, allow: String) -> Refusal {
        if method == Method::Other {
            return Refusal::new(Status::NOT_IMPLEMENTED, "This server does not know the method.");
        }
        let detail = format!("{} is not for this path. It takes {allow}.", method.as_str());
        Refusal::new(Status::METHOD_NOT_ALLOWED, detail).with("Allow", allow)
    }

    /// Refuses a request without valid credentials. Offers both authentication schemes.
    pub(crate) fn unauthenticated(detail: impl Into<Cow<'static, str>>) -> Refusal {
        let refusal = Refusal::new(Status::UNAUTHORIZED, detail);
        // Basic first: wget2 reads the first challenge only, and cannot answer Bearer.
        let refusal = refusal.with("WWW-Authenticate", BASIC);
        refusal.with("WWW-Authenticate", BEARER)
    }

    /// Refuses a request without credentials. A client that may not show its password is not asked for it: a
    /// browser would send it.
    pub(crate) fn without_credentials(may_show_password: bool) -> Refusal {
        if may_show_password {
            return Refusal::unauthenticated(
                "This needs an account. Log in: POST /api/sessions, then send Authorization: Bearer TOKEN.",
            );
        }
        let detail = "This needs an account, and passwords are not accepted over an unencrypted connection. \
                      Log in over https://, then send Authorization: Bearer TOKEN.";
        Refusal::new(Status::UNAUTHORIZED, detail).with("WWW-Authenticate", BEARER)
    }

    /// Refuses a visitor of a public link without its password. curl sends it with any name.
    pub(crate) fn link_locked(detail: &'static str) -> Refusal {
        Refusal::new(Status::UNAUTHORIZED, detail).with("WWW-Authenticate", LINK_BASIC)
    }

    /// Adds a code, by which a program chooses a sentence of its own.
    pub(crate) fn coded(self, code: ProblemCode) -> Refusal {
        Refusal { code: Some(code), ..self }
    }

    pub(crate) fn with(mut self, field: &'static str, value: impl Into<String>) -> Refusal {
        self.fields.push((field, value.into()));
        self
    }

    /// Removes the path of the lock that excludes the request: its URL is unknown.
    pub(crate) fn without_lock(self) -> Refusal {
        Refusal { locked: None, ..self }
    }

    /// Adds the path of the lock in URLs, if one excludes the request: to a body for WebDAV clients.
    /// `conflicts` says that another lock was requested.
    pub(crate) fn located(
        self,
        root: impl FnOnce(&[u8]) -> Vec<u8>,
        wants_xml: bool,
        conflicts: bool,
    ) -> Refusal {
        let locked = self.locked.as_deref().filter(|_| wants_xml);
        let xml = locked.map(|path| write_locked(&[&root(path)], conflicts));
        Refusal { xml, ..self }
    }

    /// Returns the sentence that tells the client how to proceed.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Renders the refusal as problem details for programs. It is never cached, because the path may be
    /// created later, or the permission granted.
    pub(crate) fn answer(self, request: &Request<'_>) -> Answer {
        let answer = match &self.xml {
            Some(xml) => {
                let answer = Answer::new(self.status).field("Content-Type", MEDIA_TYPE);
                answer.field("X-Content-Type-Options", "nosniff").body(Body::Bytes(xml.clone()))
            }
            None => site::refused_with(request, self.status, &self.detail, self.code),
        };
        let answer = answer.field("Cache-Control", "no-store");
        self.add_fields(request, answer)
    }

    /// Adds the fields of the refusal to a response.
    pub(crate) fn add_fields(self, request: &Request<'_>, answer: Answer) -> Answer {
        let is_offered = |value: &str| !matches!(value, BASIC | LINK_BASIC) || !is_of_browser(request);
        let fields = self.fields.into_iter().filter(|(_, value)| is_offered(value));
        fields.fold(answer, |answer, (name, value)| answer.field(name, value))
    }

    /// Refuses a request that may succeed later; `after` is the delay, if it is known.
    pub(crate) fn later(
        status: Status,
        detail: impl Into<Cow<'static, str>>,
        after: Option<Duration>,
    ) -> Refusal {
        // Whole seconds, rounded up: a retry after them is admitted.
        let seconds = |time: Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
        let seconds = after.map_or(RETRY_AFTER_SECONDS, seconds).max(1);
        Refusal::new(status, detail).with("Retry-After", seconds.to_string())
    }
}

/// Whether a browser sends the request, and logs in by the page. It would answer a challenge for a password
/// by its own dialog, which hides the log-in page and has no log-out. Browsers report the site of a request
/// over encrypted and local connections only. Over every connection, they wish for HTTPS when a person opens
/// a page.
fn is_of_browser(request: &Request<'_>) -> bool {
    let named = |name| request.head.named(request.block, name).is_some();
    let is_browser = request.field(Field::SecFetchSite).is_some()
        || named("Upgrade-Insecure-Requests")
        || cookie::token(request).is_some();
    is_browser && !cookie::wants_dialog(request)
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        match error {
            Error::Auth(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::PlainPassword => Refusal::new(
                Status::FORBIDDEN,
                "Passwords are accepted over HTTPS, or from the server's own machine at localhost and not \
                 through a proxy. Use https://; the server's operator turns it on with --https ADDR \
                 --certificate FILE --key FILE. A reverse proxy that has HTTPS must be named by \
                 --trusted-proxy ADDR, and send X-Forwarded-Proto: https, or connect to a Unix socket. \
                 --plain-passwords allow accepts passwords over every connection.",
            ),
            Error::NotPermitted(what) => Refusal::new(
                Status::FORBIDDEN,
                format!("This account may not {what}. Ask the server's operator for the permission."),
            ),
            Error::ReadOnlyShare => Refusal::new(
                Status::FORBIDDEN,
                "This is shared for reading only. Ask its owner for a share to write to.",
            ),
            Error::SharedItself => Refusal::new(
                Status::FORBIDDEN,
                "Only its owner can delete, move or replace the shared file or folder itself. Change its \
                 contents instead.",
            ),
            Error::ShareEnded => Refusal::new(
                Status::FORBIDDEN,
                "The share has ended, or lets you do less than before. Nothing was stored; ask its owner.",
            ),
            Error::NotShared => Refusal::new(
                Status::FORBIDDEN,
                "This folder is not shared, only what lies deeper. Use a path inside of what is shared.",
            ),
        }
    }
}

impl From<AuthError> for Refusal {
    fn from(error: AuthError) -> Refusal {
        let (detail, after) = (error.detail(), error.retry_after());
        match error {
            AuthError::NameTaken | AuthError::OwnRight => Refusal::new(Status::CONFLICT, detail),
            AuthError::BadName(_)
            | AuthError::BadPassword(_)
            | AuthError::BadShare(_)
            | AuthError::BadImport(_) => Refusal::bad(detail),
            AuthError::WrongCredentials | AuthError::WrongCredentialsAfter { .. } | AuthError::NoSession => {
                Refusal::unauthenticated(detail)
            }
            AuthError::NotAllowed
            | AuthError::SignUpClosed
            | AuthError::NoLinks
            | AuthError::NoLocks
            | AuthError::LockOfAnother => Refusal::new(Status::FORBIDDEN, detail),
            AuthError::LinkUsedUp => Refusal::new(Status::GONE, detail),
            AuthError::NotFound => Refusal::new(Status::NOT_FOUND, detail),
            AuthError::Locked { path, .. } => {
                Refusal { locked: Some(path), ..Refusal::new(Status::LOCKED, detail) }
            }
            AuthError::Full | AuthError::TooManyLocks => Refusal::new(Status::INSUFFICIENT_STORAGE, detail),
            AuthError::TooManyAttempts { .. } => Refusal::later(Status::TOO_MANY_REQUESTS, detail, after),
            AuthError::Busy { .. } | AuthError::Unavailable => {
                Refusal::later(Status::SERVICE_UNAVAILABLE, detail, after)
            }
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        let (status, detail) = match error {
            StoreError::Path(bad) => return bad.into(),
            StoreError::Offset(offset) => return wrong_offset(offset),
            StoreError::TooManyUploads => {
                let detail =
                    "Too many uploads are in progress. Finish some, or discard some of GET /uploads.";
                let refusal = Refusal::later(Status::TOO_MANY_REQUESTS, detail, None);
                return refusal.coded(ProblemCode::TooManyUploads);
            }
            StoreError::TooManyEntries => {
                return Refusal::later(Status::SERVICE_UNAVAILABLE, site::TOO_MANY_ENTRIES, None);
            }
            StoreError::Away => {
                let detail = "The files cannot be reached just now. Try again shortly; before you repeat a \
                              change, look whether it has happened.";
                return Refusal::later(Status::SERVICE_UNAVAILABLE, detail, None);
            }
            StoreError::Busy => {
                let detail = "The server is busy; try again shortly.";
                return Refusal::later(Status::SERVICE_UNAVAILABLE, detail, None);
            }
            StoreError::ReadOnlyDisk => {
                tracing::error!("the disk is read-only: nothing can be stored or changed");
                let detail =
                    "The server's disk is read-only just now; its operator has to fix it. Try again later.";
                return Refusal::later(Status::SERVICE_UNAVAILABLE, detail, None);
            }
            StoreError::Denied(error) => {
                tracing::error!(%error, "the kernel denies the server access to an account's files");
                (Status::FORBIDDEN, "The server may not do this on its disk; its operator can change that.")
            }
            StoreError::Failed(error) => {
                tracing::error!(%error, "an operation on files failed");
                (
                    Status::INTERNAL_SERVER_ERROR,
                    "The disk failed; the server's log says how. Before you repeat a change, look whether it \
                     has happened.",
                )
            }
            other => {
                let (status, detail) = plain(&other);
                let refusal = Refusal::new(status, detail);
                return match other {
                    StoreError::NoFolder => refusal.coded(ProblemCode::NoParentFolder),
                    StoreError::Quota => refusal.coded(ProblemCode::OverQuota),
                    _ => refusal,
                };
            }
        };
        Refusal::new(status, detail)
    }
}

/// Returns the status and detail of an error without data.
fn plain(error: &StoreError) -> (Status, &'static str) {
    match error {
        StoreError::NoFolder => {
            (Status::CONFLICT, "The parent folder does not exist. Create it first: MKCOL its path.")
        }
        StoreError::AlreadyExists => {
            (Status::CONFLICT, "The name is taken. Choose another, or delete the file or folder that has it.")
        }
        StoreError::IsFolder => {
            (Status::CONFLICT, "A folder has this name. Choose another, or delete the folder.")
        }
        StoreError::NotFolder => {
            (Status::CONFLICT, "A file is where a folder is needed. Choose another path, or delete the file.")
        }
        StoreError::NotEmpty => {
            (Status::CONFLICT, "The folder is not empty. Delete or move its contents first.")
        }
        StoreError::Home => {
            (Status::FORBIDDEN, "The home itself stays as it is. Use the path of something in it.")
        }
        StoreError::IntoItself => (
            Status::FORBIDDEN,
            "Nothing can be moved or copied onto or into itself. Choose another destination.",
        ),
        StoreError::LeadsOut => (
            Status::CONFLICT,
            "A link in it leads to a folder outside it, which the copy would lack. Copy what is in it one by \
             one.",
        ),
        StoreError::OtherDisk => (
            Status::CONFLICT,
            "It cannot move to another file system or be a mount point. Copy it, then delete what is in it.",
        ),
        StoreError::NotResumable(_) => {
            (Status::CONFLICT, "It is not certain which upload this would resume. Send the whole file.")
        }
        StoreError::Precondition => (
            Status::PRECONDITION_FAILED,
            "The file is not the one that the conditions name. Look again, then decide.",
        ),
        StoreError::Digest => (
            Status::UNPROCESSABLE_CONTENT,
            "The bytes are not those of the digest. Nothing was stored; send them again.",
        ),
        StoreError::Length => (
            Status::BAD_REQUEST,
            "The bytes were not as many as announced. Nothing was stored; send them again.",
        ),
        StoreError::Quota => (
            Status::INSUFFICIENT_STORAGE,
            "This would be more than the account's quota. Delete something first. Interrupted \
             uploads count too, until they are finished or discarded (see GET /uploads).",
        ),
        StoreError::Full => (
            Status::INSUFFICIENT_STORAGE,
            "The server's disk is full. Nothing was stored; its operator can make room.",
        ),
        StoreError::InUse => (
            Status::LOCKED,
            "Another request has resumed this upload. Request its offset (HEAD) and resume there.",
        ),
        _ => (
            Status::NOT_FOUND,
            "There is no such thing here. Check the path, and that it is yours or shared with you.",
        ),
    }
}

fn wrong_offset(offset: u64) -> Refusal {
    let detail = format!("The upload is at offset {offset}. Resume there.");
    Refusal::new(Status::CONFLICT, detail).with("Upload-Offset", offset.to_string())
}

impl From<BadPath> for Refusal {
    fn from(bad: BadPath) -> Refusal {
        Refusal::bad(match bad {
            BadPath::DotName => "The path has \".\" or \"..\" in it. Resolve it before sending.",
            BadPath::Control => "A new name cannot have a control character. Choose another.",
            BadPath::Reserved => "The path has the name of the server's own folder. Choose another name.",
            BadPath::TooLong => "A name has at most 255 bytes, and a path 3900. Choose shorter ones.",
            BadPath::TooDeep => "A path has at most 128 folders. Choose one that is less deep.",
        })
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Refusal {
        let (status, detail) = error.refusal();
        Refusal::new(status, detail)
    }
}
