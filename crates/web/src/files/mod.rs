//! Files and folders: `/files/PATH` in the caller's home, `/shared/OWNER/PATH` in what others share.
//!
//! One file for each thing that is done. What must hold: both are the same but for whose home it is.

pub(crate) mod digests;
mod elsewhere;
mod folder;
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
pub(crate) use self::read::{owners, why_not};
pub(crate) use self::spot::Spot;
pub(crate) use self::upload::tagged;

/// The answer of a file or folder to one of its methods.
pub(crate) async fn answer(ask: Ask<'_, '_>, method: Method, spot: Spot) -> Result<Answer, Refusal> {
    match method {
        // Apart, so that a download, which is most often asked for, has no room for all of them.
        Method::Put => Box::pin(upload::put(ask, spot)).await,
        Method::Delete => Box::pin(remove::delete(ask, spot)).await,
        Method::Mkcol => Box::pin(folder::make(ask, spot)).await,
        Method::Move | Method::Copy => Box::pin(rename::give_name(ask, method, spot)).await,
        _ => read::get(ask, spot).await,
    }
}
