//! `GET /api/whoami`: the caller's account, and the usage of its home.
//!
//! It never reports about other accounts.

use plimsoll_auth::{Permissions, Quota};
use plimsoll_proto::http::Answer;
use plimsoll_store::Usage;
use plimsoll_wire::http::status::Status;
use serde::Serialize;

use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials, json};

#[derive(Serialize)]
struct WhoAmIJson<'a> {
    account: &'a str,
    quota: Quota,
    usage: Used,
    /// The part of the usage that is in the trash.
    trash: Used,
    permissions: Permissions,
}

/// The usage of a home.
#[derive(Serialize)]
pub(super) struct Used {
    bytes: u64,
    files: u64,
    folders: u64,
}

impl From<Usage> for Used {
    fn from(usage: Usage) -> Used {
        Used { bytes: usage.bytes, files: usage.files, folders: usage.folders }
    }
}

pub(super) async fn look(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let known = ask.web.operations.who_am_i(&caller).await?;
    let (usage, trash) = (Used::from(known.usage), Used::from(known.trash.usage));
    let (quota, permissions) = (known.account.quota, known.account.permissions);
    let caller = WhoAmIJson { account: &known.account.name, quota, usage, trash, permissions };
    Ok(json::answer(Status::OK, &caller))
}
