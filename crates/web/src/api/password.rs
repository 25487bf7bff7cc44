//! `PUT /api/password`: change the caller's password.
//!
//! Invariant: a wrong old password never looks like a session that has ended.

use plimsoll_auth::{Error as AuthError, Secret};
use plimsoll_operations::Error;
use plimsoll_proto::http::Answer;
use plimsoll_wire::http::status::Status;
use serde::Deserialize;

use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldAndNew {
    old: String,
    new: String,
}

pub(super) async fn change(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let OldAndNew { old, new } = json::read(ask.request).await?;
    let (old, new) = (Secret::new(old.into_bytes()), Secret::new(new.into_bytes()));
    match ask.web.operations.change_password(&caller, &old, &new).await {
        Ok(()) => Ok(Answer::new(Status::NO_CONTENT)),
        // Not 401: the caller is authenticated, and the session continues.
        Err(Error::Auth(AuthError::WrongCredentials)) => {
            Err(Refusal::new(Status::FORBIDDEN, "The old password is wrong. Check it and try again."))
        }
        Err(error) => Err(error.into()),
    }
}
