//! MKCOL: make a folder (RFC 4918, section 9.3).
//!
//! Invariant: the folders above it must exist already; none is created implicitly.

use plimsoll_operations::{Error, Parents};
use plimsoll_proto::http::Answer;
use plimsoll_store::Error as StoreError;
use plimsoll_wire::http::head::{Field, Framing};
use plimsoll_wire::http::status::Status;

use super::{FileTarget, if_field};
use crate::RoutedRequest;
use crate::refusal::Refusal;

pub(super) async fn make(mut ask: RoutedRequest<'_, '_>, target: FileTarget) -> Result<Answer, Refusal> {
    let caller = if_field::caller(&mut ask, &target).await?;
    let has_body = !matches!(ask.request.head.framing(), Framing::None | Framing::Length(0));
    if has_body || ask.request.field(Field::ContentEncoding).is_some() {
        // "if it receives a MKCOL request entity type it does not support or understand, it MUST respond
        // with a 415 (Unsupported Media Type) status code".
        return Err(Refusal::new(
            Status::UNSUPPORTED_MEDIA_TYPE,
            "A folder is made without a body. Send none.",
        ));
    }
    match ask.web.operations.make_folder(&caller, &target.place, Parents::Needed).await {
        Ok(()) => Ok(target.stored(true)),
        // "MKCOL can only be executed on an unmapped URL".
        Err(Error::Store(StoreError::AlreadyExists)) => Err(Refusal::new(
            Status::METHOD_NOT_ALLOWED,
            "The name is taken. Choose another, or use what is there.",
        )
        .with("Allow", "GET, HEAD, PUT, DELETE, MOVE, COPY, PROPFIND, PROPPATCH, LOCK, UNLOCK, OPTIONS")),
        Err(error) => Err(error.into()),
    }
}
