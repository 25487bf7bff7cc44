//! Files and folders: `/files/PATH` in the caller's home, `/shared/OWNER/PATH` in what OWNER shares with the
//! caller.
//!
//! There is one file per operation. Invariant: both prefixes must behave alike, except for the home.

mod archive;
pub(crate) mod digests;
mod folder;
pub(crate) mod form;
mod read;
mod remove;
mod rename;
mod resume;
mod target;
mod upload;

use plimsoll_proto::http::Answer;
use plimsoll_wire::http::head::Method;

use crate::RoutedRequest;
use crate::refusal::Refusal;

pub(crate) use self::digests::{of_content, of_representation};
pub(crate) use self::read::{audited, get, gone, owners, try_get};
pub(crate) use self::target::FileTarget;
pub(crate) use self::upload::{expected, refuse_coding, tagged};

/// Returns the response of a file or folder to a method that changes it.
pub(crate) async fn change(
    ask: RoutedRequest<'_, '_>,
    method: Method,
    target: FileTarget,
) -> Result<Answer, Refusal> {
    match method {
        Method::Put => upload::put(ask, target).await,
        Method::Delete => remove::delete(ask, target).await,
        Method::Post if archive::is_wanted(ask.called.query)? => archive::post(ask, target).await,
        Method::Post => form::post(ask, target).await,
        Method::Mkcol => folder::make(ask, target).await,
        _ => rename::give_name(ask, method, target).await,
    }
}
