//! Files and folders: `/files/PATH` in the caller's home, `/shared/OWNER/PATH` in what OWNER shares with the
//! caller.
//!
//! There is one file per operation. Invariant: both prefixes must behave alike, except for the home.

pub(crate) mod archive;
pub(crate) mod digests;
mod folder;
pub(crate) mod form;
pub(crate) mod propfind;
mod proppatch;
mod read;
mod remove;
mod rename;
mod resume;
mod target;
mod upload;

use plimsoll_proto::http::{Answer, Request};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use crate::RoutedRequest;
use crate::refusal::Refusal;

pub(crate) use self::digests::{of_content, of_representation};
pub(crate) use self::read::{audited, get, gone, owners, try_get};
pub(crate) use self::target::FileTarget;
pub(crate) use self::upload::{expected, refuse_coding, tagged};

/// Returns the response of a file or folder to a method that changes it, or its properties.
pub(crate) async fn change(
    ask: RoutedRequest<'_, '_>,
    method: Method,
    target: FileTarget,
) -> Result<Answer, Refusal> {
    refuse_lock_tokens(ask.request)?;
    match method {
        Method::Put => upload::put(ask, target).await,
        Method::Delete => remove::delete(ask, target).await,
        Method::Post if archive::is_wanted(ask.called.query)? => archive::post(ask, target).await,
        Method::Post => form::post(ask, target).await,
        Method::Mkcol => folder::make(ask, target).await,
        Method::Proppatch => proppatch::change(ask, target).await,
        _ => rename::give_name(ask, method, target).await,
    }
}

/// Refuses a change under the condition of If (RFC 4918, section 10.4): the server gives no lock tokens, so
/// none is that of a lock.
fn refuse_lock_tokens(request: &Request<'_>) -> Result<(), Refusal> {
    if request.head.named(request.block, "If").is_none() {
        return Ok(());
    }
    Err(Refusal::new(
        Status::PRECONDITION_FAILED,
        "This server has no locks. Send the request without If; If-Match compares entity tags.",
    ))
}
