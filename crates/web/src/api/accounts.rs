//! `POST /api/accounts`: sign up.
//!
//! Invariant: a password is never part of a response.

use plimsoll_auth::{Account, Permissions, Quota, Secret};
use plimsoll_proto::http::Answer;
use plimsoll_wire::http::status::Status;
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials, json};

/// A name and a password, to sign up or to log in with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NameAndPassword {
    pub(super) name: String,
    password: String,
}

impl NameAndPassword {
    /// Returns the name, and the password as a secret.
    pub(super) fn parts(self) -> (String, Secret) {
        (self.name, Secret::new(self.password.into_bytes()))
    }
}

/// The JSON of a new account.
#[derive(Serialize)]
struct Made<'a> {
    name: &'a str,
    quota: Quota,
    permissions: Permissions,
}

pub(super) async fn sign_up(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let visitor = credentials::visitor(ask.request);
    let (name, password) = json::read_of_stranger::<NameAndPassword>(ask.request).await?.parts();
    let account = ask.web.operations.sign_up(&visitor, &name, &password).await?;
    let Account { name, quota, permissions, .. } = &account;
    Ok(json::answer(Status::CREATED, &Made { name, quota: *quota, permissions: *permissions }))
}
