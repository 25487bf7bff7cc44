//! `POST /api/sessions` and `DELETE /api/sessions/current`: log in and log out.
//!
//! Invariant: a request can end only the session of its own token.

use plimsoll_proto::http::Answer;
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use plimsoll_wire::http::status::Status;
use serde::Serialize;

use super::accounts::NameAndPassword;
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials, json};

#[derive(Serialize)]
struct Begun {
    token: String,
    expires: String,
    account: String,
}

pub(super) async fn log_in(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let visitor = credentials::visitor(ask.request);
    let (name, password) = json::read_of_stranger::<NameAndPassword>(ask.request).await?.parts();
    let begun = ask.web.operations.log_in(&visitor, &name, &password).await?;
    let expires = format_rfc3339(since_1970(begun.expires));
    let begun = Begun { token: begun.token, expires, account: begun.account.name };
    Ok(json::answer(Status::CREATED, &begun))
}

pub(super) async fn log_out(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    if caller.identity.session().is_none() {
        return Err(Refusal::bad(
            "A password shows no session. Send the token of the session that is to end.",
        ));
    }
    ask.web.operations.log_out(&caller).await?;
    Ok(Answer::new(Status::NO_CONTENT))
}
