//! Files and folders: `/files/PATH` in the caller's home, `/shared/OWNER/PATH` in what OWNER shares with the
//! caller.
//!
//! There is one file per operation. Invariant: both prefixes must behave alike, except for the home.

pub(crate) mod archive;
pub(crate) mod digests;
mod folder;
pub(crate) mod form;
mod if_field;
mod lock;
pub(crate) mod propfind;
mod proppatch;
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

/// Returns the response of a file or folder to a method that changes it, or its properties.
pub(crate) async fn change(
    ask: RoutedRequest<'_, '_>,
    method: Method,
    target: FileTarget,
) -> Result<Answer, Refusal> {
    let (place, is_of_webdav) = (target.place.clone(), matches!(method, Method::Lock | Method::Proppatch));
    let wants_xml = is_of_webdav || ask.request.head.named(ask.request.block, "If").is_some();
    let answered = change_by(ask, method, target).await;
    answered.map_err(|refusal| {
        refusal.located(|path| lock::root(&place, path), wants_xml, method == Method::Lock)
    })
}

async fn change_by(
    ask: RoutedRequest<'_, '_>,
    method: Method,
    target: FileTarget,
) -> Result<Answer, Refusal> {
    match method {
        Method::Put => upload::put(ask, target).await,
        Method::Delete => remove::delete(ask, target).await,
        Method::Lock => lock::lock(ask, target).await,
        Method::Unlock => lock::unlock(ask, target).await,
        Method::Post if archive::is_wanted(ask.called.query)? => archive::post(ask, target).await,
        Method::Post => form::post(ask, target).await,
        Method::Mkcol => folder::make(ask, target).await,
        Method::Proppatch => proppatch::change(ask, target).await,
        _ => rename::give_name(ask, method, target).await,
    }
}
