//! Files and folders: `/files/PATH` in the caller's home, `/shared/OWNER/PATH` in what OWNER shares with the
//! caller.
//!
//! There is one file per operation. Invariant: both prefixes must behave alike, except for the home.

pub(crate) mod digests;
mod folder;
mod form;
mod read;
mod remove;
mod rename;
mod spot;
mod upload;

use plimsoll_proto::http::Answer;
use plimsoll_wire::http::head::Method;

use crate::Ask;
use crate::refusal::Refusal;

pub(crate) use self::digests::{of_content, of_representation};
pub(crate) use self::read::{at_hand, get, owners};
pub(crate) use self::spot::Spot;
pub(crate) use self::upload::tagged;

/// Returns the response of a file or folder to a method that changes it.
pub(crate) async fn change(ask: Ask<'_, '_>, method: Method, spot: Spot) -> Result<Answer, Refusal> {
    match method {
        Method::Put => upload::put(ask, spot).await,
        Method::Delete => remove::delete(ask, spot).await,
        Method::Post => form::post(ask, spot).await,
        Method::Mkcol => folder::make(ask, spot).await,
        _ => rename::give_name(ask, method, spot).await,
    }
}
