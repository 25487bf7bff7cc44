//! If-Match, If-None-Match and If-Unmodified-Since, as a condition that the store asks with the change.
//!
//! How they are read is the wire's. What must hold: the tags are those that a GET shows.

use plimsoll_io::Stat;
use plimsoll_operations::{Error, Kept};
use plimsoll_proto::http::{Request, site};
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

/// The conditions of a request; one for a folder's name is not about a file.
pub(crate) fn of(request: &Request<'_>, is_folder: bool) -> Condition {
    let condition = if has_any(request) {
        let (head, block) = (*request.head, request.block[..request.head.len()].to_vec());
        Condition::new(lines(request), move |now| holds(&head, &block, now))
    } else {
        Condition::none()
    };
    if is_folder { condition.and_folder() } else { condition }
}

/// The lines of the conditions' fields.
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
    let tag = now.map(site::etag).unwrap_or_default();
    let current = now.map(|stat| Validators { etag: tag.as_bytes(), modified: stat.modified_at() });
    evaluate(head, block, current.as_ref(), false) == Precondition::Proceed
}

/// The conditions of a request, to be kept for another: the lines of their fields.
pub(crate) fn kept(request: &Request<'_>) -> Kept {
    Kept { condition: of(request, false), words: lines(request) }
}

/// The conditions of [`kept`]'s lines.
pub(crate) fn again(words: &str) -> Condition {
    if words.is_empty() {
        return Condition::none();
    }
    let block = format!("PATCH / HTTP/1.1\r\nHost: kept\r\n{words}\r\n").into_bytes();
    match parse_head(&block, &HeadLimits::default()) {
        Ok(Some(head)) => Condition::new(words, move |now| holds(&head, &block, now)),
        // They came in a head that was read: if they cannot be again, nothing is replaced.
        _ => Condition::new(words, |_| false),
    }
}

/// What an error means to whoever sent no conditions: then it was one of ours that was not met.
pub(crate) fn explain(request: &Request<'_>, is_folder: bool, error: Error) -> Refusal {
    match error {
        Error::Store(StoreError::Precondition) if !has_any(request) && is_folder => Error::NOT_FOUND.into(),
        Error::Store(StoreError::Precondition) if !has_any(request) => {
            Error::NotPermitted("replace files").into()
        }
        other => other.into(),
    }
}
