//! The fields of a page's form: application/x-www-form-urlencoded.
//!
//! Forms with files are not here. Invariants: a form is bounded; its bytes, which may contain a password, are
//! wiped.

use plimsoll_auth::Secret;
use plimsoll_proto::http::{BodyError, Request};
use plimsoll_wire::http::form_urlencoded::value_of;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::media_type::is_media_type;
use plimsoll_wire::http::status::Status;
use zeroize::Zeroizing;

use super::local_target::LocalTarget;
use crate::limits::FORM_BYTES_MAX;
use crate::refusal::Refusal;

/// A received form.
pub(crate) struct Form(Zeroizing<Vec<u8>>);

impl Form {
    /// Receives the body of a request.
    pub(crate) async fn read(request: &mut Request<'_>) -> Result<Form, Refusal> {
        const MEDIA: &str = "application/x-www-form-urlencoded";
        if !is_media_type(request.field(Field::ContentType).unwrap_or_default(), MEDIA) {
            return Err(Refusal::new(
                Status::UNSUPPORTED_MEDIA_TYPE,
                "This takes the page's own form. Programs use the API: GET /api/openapi.json describes it.",
            ));
        }
        let bytes = request.body.bytes(FORM_BYTES_MAX).await.map_err(|error| match error {
            BodyError::TooLong => {
                Refusal::new(Status::CONTENT_TOO_LARGE, "The form is longer than 32 KiB. Send less.")
            }
            error => error.into(),
        })?;
        Ok(Form(bytes))
    }

    /// Returns the bytes of a field; none if it is missing.
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        value_of(&self.0, name).unwrap_or_default()
    }

    /// Returns a field as text: bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.bytes(name)).into_owned()
    }

    /// Returns a field that is a password.
    pub(crate) fn secret(&self, name: &str) -> Secret {
        Secret::new(self.bytes(name))
    }

    /// Returns the field that says where to continue.
    pub(crate) fn next(&self) -> LocalTarget {
        LocalTarget::of(&self.bytes("next"))
    }
}
