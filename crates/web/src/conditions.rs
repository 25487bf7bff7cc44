//! If-Match, If-None-Match and If-Unmodified-Since, as a condition that the store checks together with
//! the change.
//!
//! It does not parse them (`wire` does). Invariant: the tags equal the ETags of a GET.

use plimsoll_io::Stat;
use plimsoll_operations::Error;
use plimsoll_proto::http::Request;
use plimsoll_store::{Condition, Error as StoreError};
use plimsoll_wire::http::conditional::{Precondition, Validators, evaluate};
use plimsoll_wire::http::head::{Field, Head, HeadLimits, parse_head};

use crate::refusal::Refusal;

const FIELDS: [Field; 3] = [Field::IfMatch, Field::IfNoneMatch, Field::IfUnmodifiedSince];
const NAMES: [&str; 3] = ["If-Match", "If-None-Match", "If-Unmodified-Since"];

/// Whether the request has conditions.
pub(crate) fn has_any(request: &Request<'_>) -> bool {
    FIELDS.iter().any(|field| request.field(*field).is_some())
}

/// Returns the conditions of a request. For a folder's name, an existing entry must also be a folder.
pub(crate) fn of(request: &Request<'_>, is_folder: bool) -> Condition {
    let condition = if has_any(request) {
        let (head, block) = (*request.head, request.block[..request.head.len()].to_vec());
        Condition::new(lines(request), move |now| holds(&head, &block, now))
    } else {
        Condition::none()
    };
    if is_folder { condition.and_folder() } else { condition }
}

/// Returns the fields of the conditions as header lines.
fn lines(request: &Request<'_>) -> String {
    let mut lines = String::new();
    for (field, name) in FIELDS.into_iter().zip(NAMES) {
        for value in request.head.all(request.block, field) {
            lines += &format!("{name}: {}\r\n", String::from_utf8_lossy(value));
        }
    }
    lines
}

fn holds(head: &Head, block: &[u8], now: Option<&Stat>) -> bool {
    let tag = now.map(plimsoll_content::etag).unwrap_or_default();
    let current = now.map(|stat| Validators { etag: tag.as_bytes(), modified: Some(stat.modified_at()) });
    evaluate(head, block, current.as_ref(), false) == Precondition::Proceed
}

/// Parses the header lines of conditions, as they are stored with an upload or sent to a storage server.
pub(crate) fn parse_stored(words: &str) -> Condition {
    if words.is_empty() {
        return Condition::none();
    }
    let block = format!("PATCH / HTTP/1.1\r\nHost: kept\r\n{words}\r\n").into_bytes();
    match parse_head(&block, &HeadLimits::default()) {
        Ok(Some(head)) => Condition::new(words, move |now| holds(&head, &block, now)),
        // The lines come from a parsed head. If they do not parse again, nothing is replaced.
        _ => Condition::never(words),
    }
}

/// Maps an error. If the request has no conditions, a failed precondition is one that the server has
/// added: the entry must be a folder, or the account may not replace files.
pub(crate) fn explain(request: &Request<'_>, is_folder: bool, error: Error) -> Refusal {
    match error {
        Error::Store(StoreError::Precondition) if !has_any(request) && is_folder => Error::NOT_FOUND.into(),
        Error::Store(StoreError::Precondition) if !has_any(request) => {
            Error::NotPermitted("replace files").into()
        }
        other => other.into(),
    }
}
