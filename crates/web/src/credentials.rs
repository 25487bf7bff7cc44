//! Authentication: from a token, or a name and a password, to the caller. A token is in Authorization, or in
//! the cookie of the page.
//!
//! Authorisation is not done here. Invariant: the caller must be authenticated before any body is read,
//! or any path is looked up.

use std::rc::Rc;

use plimsoll_auth::{Error as AuthError, Fingerprint, Identity, Secret};
use plimsoll_io::Peer;
use plimsoll_operations::{Caller, Error, Protocol, Visitor};
use plimsoll_proto::http::Request;
use plimsoll_wire::http::credentials::{Credentials, parse_authorization};
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::problem_code::ProblemCode;

use crate::Web;
use crate::page::cookie;
use crate::refusal::Refusal;

/// Returns the client of a request, unauthenticated.
pub(crate) fn visitor(request: &Request<'_>) -> Visitor {
    let (io, peer, is_protected) = (request.io.clone(), request.peer.clone(), request.is_protected());
    Visitor { io, peer, protocol: Protocol::Http, is_protected }
}

/// The credentials of a request, as they were sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presented<'a> {
    /// The value of Authorization. It prevails over a cookie, which browsers add to every request.
    Authorization(&'a [u8]),
    /// The token in the page's cookie.
    Cookie(&'a [u8]),
}

impl<'a> Presented<'a> {
    fn of(request: &Request<'a>) -> Option<Presented<'a>> {
        let authorization = request.field(Field::Authorization).map(Presented::Authorization);
        authorization.or_else(|| cookie::token(request).map(Presented::Cookie))
    }

    /// Returns the bytes, and whether they are a cookie's.
    fn parts(self) -> (&'a [u8], bool) {
        match self {
            Presented::Authorization(value) => (value, false),
            Presented::Cookie(token) => (token, true),
        }
    }
}

/// Whether a request presents any credentials.
pub(crate) fn are_presented(request: &Request<'_>) -> bool {
    Presented::of(request).is_some()
}

/// The credentials of a connection's last request, and the account that they authenticated. Most clients
/// send the same with each request. The next request may run on another thread, so nothing that belongs
/// to a thread is stored.
struct CachedCredentials {
    fingerprint: Fingerprint,
    is_cookie: bool,
    /// A proxy may forward requests of several clients over one connection.
    peer: Peer,
    /// The same client may connect to the proxy with and without encryption, or past it.
    is_protected: bool,
    identity: Identity,
}

impl CachedCredentials {
    /// Returns the caller, if a request presents these credentials and comes from the same client.
    fn caller(&self, request: &Request<'_>, presented: &(Fingerprint, bool)) -> Option<Rc<Caller>> {
        let (fingerprint, is_cookie) = presented;
        let is_same = self.fingerprint == *fingerprint
            && self.is_cookie == *is_cookie
            && self.peer == *request.peer
            && self.is_protected == request.is_protected();
        is_same.then(|| Rc::new(Caller::new(visitor(request), self.identity.clone())))
    }
}

/// Returns the caller without blocking, if the connection has cached these credentials and they are
/// still valid.
pub(crate) fn try_caller(web: &Web, request: &Request<'_>) -> Option<Rc<Caller>> {
    let (value, is_cookie) = Presented::of(request)?.parts();
    let shown = request.connection.get::<CachedCredentials>()?;
    if request.head.repeated(Field::Authorization) {
        return None;
    }
    let fingerprint = web.operations.auth().fingerprint(request.io, value);
    shown.caller(request, &(fingerprint, is_cookie)).filter(|caller| web.operations.holds(caller))
}

/// Authenticates the caller.
pub(crate) async fn caller(web: &Web, request: &mut Request<'_>) -> Result<Rc<Caller>, Refusal> {
    if request.head.repeated(Field::Authorization) {
        return Err(Refusal::bad("Authorization was sent more than once. Send it once."));
    }
    let Some(presented) = Presented::of(request) else {
        let may_show_password = web.operations.check_password_channel(&visitor(request)).is_ok();
        return Err(Refusal::without_credentials(may_show_password).coded(ProblemCode::LoginRequired));
    };
    let (value, is_cookie) = presented.parts();
    let fingerprint = (web.operations.auth().fingerprint(request.io, value), is_cookie);
    let shown =
        request.connection.get::<CachedCredentials>().and_then(|shown| shown.caller(request, &fingerprint));
    match shown {
        Some(caller) if web.operations.holds(&caller) => Ok(caller),
        // Boxed, because it is rare.
        shown => Box::pin(authenticate_and_cache(web, request, fingerprint, shown, presented)).await,
    }
}

/// Authenticates the caller and caches it on the connection for the next request. If the request is
/// refused, the cache is empty.
async fn authenticate_and_cache(
    web: &Web,
    request: &mut Request<'_>,
    (fingerprint, is_cookie): (Fingerprint, bool),
    shown: Option<Rc<Caller>>,
    presented: Presented<'_>,
) -> Result<Rc<Caller>, Refusal> {
    request.connection.forget();
    let renewed = match &shown {
        Some(caller) => web.operations.renew(caller).await,
        None => Err(AuthError::NoSession.into()),
    };
    let caller = match renewed {
        // The cached session or login has ended, but the same credentials may be valid again.
        Err(Error::Auth(AuthError::NoSession)) => authenticate(web, request, presented).await?,
        renewed => renewed?,
    };
    request.authenticated();
    let caller = Rc::new(caller);
    let (peer, is_protected) = (request.peer.clone(), request.is_protected());
    let identity = caller.identity.clone();
    request.connection.keep(CachedCredentials { fingerprint, is_cookie, peer, is_protected, identity });
    Ok(caller)
}

/// Authenticates credentials that are not cached on this connection.
async fn authenticate(web: &Web, request: &Request<'_>, presented: Presented<'_>) -> Result<Caller, Refusal> {
    let credentials = match presented {
        Presented::Authorization(value) => {
            parse_authorization(value).map_err(|bad| Refusal::unauthenticated(bad.detail()))?
        }
        Presented::Cookie(token) => Credentials::Bearer(token),
    };
    let visitor = visitor(request);
    Ok(match credentials {
        Credentials::Bearer(token) => web.operations.by_token(&visitor, token).await?,
        Credentials::Basic { name, password } => {
            let password = Secret::new(password);
            web.operations.by_password(&visitor, name.as_bytes(), &password).await?
        }
    })
}
