//! The field If: conditions on locks and entity tags, which also submit the tokens of locks (RFC 4918,
//! section 10.4).
//!
//! Invariants: a request whose conditions are false changes nothing. A token is submitted wherever it is in
//! the field; only the account that holds its lock can use it. PUT and DELETE compare the entity tag of their
//! own resource again with the change.

use std::rc::Rc;

use plimsoll_operations::{Caller, Error, HomePath, LockState};
use plimsoll_proto::http::Request;
use plimsoll_store::{Condition, Error as StoreError};
use plimsoll_wire::http::dav::if_field::{IfCondition, IfList, IfState, parse_if};
use plimsoll_wire::http::status::Status;

use super::{FileTarget, rename};
use crate::refusal::Refusal;
use crate::{RoutedRequest, conditions, credentials};

/// The scheme of a token, before the id of its lock.
const SCHEME: &str = "urn:uuid:";

/// Returns the token of a lock.
pub(super) fn token_of(id: &str) -> String {
    format!("{SCHEME}{id}")
}

/// Returns the id of the lock with this token, if it has the form of one of this server.
pub(super) fn id_of(token: &[u8]) -> Option<String> {
    let token = std::str::from_utf8(token).ok()?;
    token.strip_prefix(SCHEME).map(str::to_owned)
}

/// The caller of a change whose If is true.
pub(super) struct Checked {
    pub(super) caller: Rc<Caller>,
    /// The condition that the resource is still as If has found it, if an entity tag was compared. It is
    /// checked with the change: another client may have stored a file since.
    pub(super) unchanged: Option<Condition>,
}

impl Checked {
    /// Returns the conditions of the request. For a folder's name, an existing entry must also be a folder.
    pub(super) fn condition(&self, request: &Request<'_>, is_folder: bool) -> Result<Condition, Refusal> {
        let Some(unchanged) = self.unchanged.clone() else { return Ok(conditions::of(request, is_folder)) };
        if conditions::has_any(request) {
            return Err(Refusal::bad(
                "Send entity tags in If, or in If-Match and If-None-Match, but not in both.",
            ));
        }
        Ok(if is_folder { unchanged.and_folder() } else { unchanged })
    }

    /// As [`conditions::explain`].
    pub(super) fn explain(&self, request: &Request<'_>, is_folder: bool, error: Error) -> Refusal {
        match error {
            Error::Store(StoreError::Precondition) if self.unchanged.is_some() => error.into(),
            error => conditions::explain(request, is_folder, error),
        }
    }
}

/// Authenticates the caller of a change, and checks If when the request begins.
pub(super) async fn caller(
    ask: &mut RoutedRequest<'_, '_>,
    target: &FileTarget,
) -> Result<Rc<Caller>, Refusal> {
    Ok(check(ask, target).await?.caller)
}

/// As [`caller`], for a change that takes a condition.
pub(super) async fn check(ask: &mut RoutedRequest<'_, '_>, target: &FileTarget) -> Result<Checked, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let Some(value) = ask.request.head.named(ask.request.block, "If") else {
        return Ok(Checked { caller, unchanged: None });
    };
    let value = value.to_vec();
    // Boxed, because it is rare.
    Box::pin(checked(ask, target, caller, &value)).await
}

async fn checked(
    ask: &RoutedRequest<'_, '_>,
    target: &FileTarget,
    caller: Rc<Caller>,
    value: &[u8],
) -> Result<Checked, Refusal> {
    let lists = parse_if(value).ok_or_else(|| {
        Refusal::bad(
            "If is malformed, or has more than 100 conditions. Send it as RFC 4918, section 10.4, says.",
        )
    })?;
    // A true list without entity tags holds whatever happens to the file.
    let (mut holds, mut holds_for_any, mut unchanged) = (false, false, None);
    for list in &lists {
        let place = place(ask, target, list);
        let state = match &place {
            Some(place) => ask.web.operations.lock_state(&caller, place).await?,
            // A resource that is none of this server has no state.
            None => LockState { locks: Vec::new(), stat: None },
        };
        if is_true(list, &state) {
            holds = true;
            let is_own = place.as_ref() == Some(&target.place);
            holds_for_any |= !compares_tag(list);
            unchanged = unchanged.or_else(|| as_found(list, &state).filter(|_| is_own));
        }
    }
    if !holds {
        return Err(Refusal::new(
            Status::PRECONDITION_FAILED,
            "The locks and entity tags are not those that If names. Look again, then decide.",
        ));
    }
    let tokens =
        lists.iter().flat_map(|list| &list.conditions).filter_map(|condition| match condition.state {
            IfState::Token(token) => id_of(token),
            IfState::EntityTag(_) => None,
        });
    let caller = Rc::new((*caller).clone().with_locks(tokens.collect()));
    Ok(Checked { caller, unchanged: unchanged.filter(|_| !holds_for_any) })
}

fn compares_tag(list: &IfList<'_>) -> bool {
    list.conditions.iter().any(|item| matches!(item.state, IfState::EntityTag(_)))
}

/// Returns the condition that a resource is still in this state, if a list compares its entity tag.
fn as_found(list: &IfList<'_>, state: &LockState) -> Option<Condition> {
    let line = || match &state.stat {
        Some(stat) => format!("If-Match: {}\r\n", plimsoll_content::etag(stat)),
        None => "If-None-Match: *\r\n".to_owned(),
    };
    compares_tag(list).then(|| conditions::parse_stored(&line()))
}

/// Returns the place of the resource that a list is about, if it is on this server.
fn place(ask: &RoutedRequest<'_, '_>, target: &FileTarget, list: &IfList<'_>) -> Option<HomePath> {
    let Some(resource) = list.resource else { return Some(target.place.clone()) };
    rename::resolve(ask.request, resource).ok().map(|tagged| tagged.place)
}

fn is_true(list: &IfList<'_>, state: &LockState) -> bool {
    let tag = state.stat.as_ref().map(plimsoll_content::etag);
    list.conditions.iter().all(|IfCondition { is_not, state: wanted }| {
        let is_so = match wanted {
            IfState::Token(token) => id_of(token).is_some_and(|id| state.locks.contains(&id)),
            IfState::EntityTag(wanted) => tag.as_ref().is_some_and(|tag| tag.as_bytes() == *wanted),
        };
        is_so != *is_not
    })
}
