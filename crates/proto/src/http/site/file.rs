//! A file as an answer: conditions, ranges, or all of it.
//!
//! It opens nothing. What must hold: the conditions are weighed before the ranges (RFC 9110, section 13.2.2),
//! and a range is only of the representation whose validators the answer shows.

use std::ops::Range;
use std::time::Duration;

use plimsoll_io::FileRange;
use plimsoll_wire::http::conditional::{Precondition, Validators, evaluate, range_applies};
use plimsoll_wire::http::date::parse_date;
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::multipart;
use plimsoll_wire::http::range::{ContentRange, Ranges, Resolved, parse_range};
use plimsoll_wire::http::status::Status;

use super::lookup::{FoundFile, Source};
use super::refused;
use crate::http::answer::{Answer, Body};
use crate::http::limits::COPIED_BODY_BYTES_MAX;
use crate::http::request::Request;

/// The file, or what of it the request wants.
pub fn send(request: &Request<'_>, found: FoundFile) -> Answer {
    let validators = Validators { etag: found.said.etag().as_bytes(), modified: found.stat.modified_at() };
    match evaluate(request.head, request.block, Some(&validators), true) {
        Precondition::Proceed => match ranges(request, &validators, found.stat.size) {
            Resolved::Whole => whole(found),
            Resolved::Ranges(ranges) => parts(request, found, &ranges),
            Resolved::Unsatisfiable => unsatisfiable(request, &found),
        },
        Precondition::NotModified => Answer::new(Status::NOT_MODIFIED).written(found.said.validated()),
        Precondition::Failed => {
            refused(request, Status::PRECONDITION_FAILED, "The file is not the one that the conditions name.")
        }
    }
}

/// What the request's Range selects.
fn ranges(request: &Request<'_>, validators: &Validators<'_>, length: u64) -> Resolved {
    // "A server MUST ignore a Range header field received with a request method that is unrecognized or for
    // which range handling is not defined" (RFC 9110, section 14.2); it is for GET alone.
    if request.method() != Method::Get || request.head.repeated(Field::Range) {
        return Resolved::Whole;
    }
    let Some(value) = request.field(Field::Range) else { return Resolved::Whole };
    if !range_applies(request.head, request.block, validators) || is_by_fresh_date(request, validators) {
        return Resolved::Whole;
    }
    // A range that cannot be read, or too many of them: "A server MAY ignore the Range header field".
    parse_range(value).map_or(Resolved::Whole, |ranges| ranges.resolve(length))
}

/// Whether a range is asked for by the date of a file that may have changed again within that second: the
/// date is then a weak validator, and parts of two files could be put together (RFC 9110, section 8.8.2.2).
fn is_by_fresh_date(request: &Request<'_>, validators: &Validators<'_>) -> bool {
    let by_date = request.field(Field::IfRange).is_some_and(|value| parse_date(value).is_some());
    by_date && request.io.wall() < validators.modified + Duration::from_secs(1)
}

fn whole(found: FoundFile) -> Answer {
    let said = found.said.described();
    // What is sent in one piece is put together in memory that is taken once.
    let copied = match &found.source {
        Source::Bytes { contents, .. } if contents.len() <= COPIED_BODY_BYTES_MAX => contents.len(),
        _ => 0,
    };
    let answer = Answer::with_room(Status::OK, said.len() + copied).written(said);
    let answer = answer.field("Content-Type", found.media);
    match found.source {
        Source::Bytes { contents, .. } => answer.body(Body::Shared(contents)),
        Source::File(file) => answer.body(Body::File(FileRange { file, range: 0..found.stat.size })),
    }
}

fn parts(request: &Request<'_>, found: FoundFile, ranges: &Ranges) -> Answer {
    let answer = Answer::new(Status::PARTIAL_CONTENT).written(found.said.described());
    let length = found.stat.size;
    if let Some(range) = ranges.single() {
        let range = range.clone();
        let told = ContentRange::Part { range: range.clone(), length };
        let answer = answer.field("Content-Type", found.media).field_display("Content-Range", told);
        return answer.body(match found.source {
            Source::Bytes { contents, .. } => Body::Bytes(part_of(&contents, &range).to_vec()),
            Source::File(file) => Body::File(FileRange { file, range }),
        });
    }
    let boundary = boundary(request);
    let mut media = Vec::new();
    multipart::media_type(&boundary, &mut media);
    let part = |range: &Range<u64>| {
        let mut head = Vec::new();
        multipart::part_head(&boundary, found.media, range, length, &mut head);
        (head, range.clone())
    };
    let parts: Vec<_> = ranges.as_slice().iter().map(part).collect();
    let mut close = Vec::new();
    multipart::close(&boundary, &mut close);
    answer.field("Content-Type", media).body(match found.source {
        Source::Bytes { contents, .. } => Body::Bytes(joined(parts, &contents, &close)),
        Source::File(file) => Body::Parts(parts, file, close),
    })
}

/// A range of what is in memory; empty if it is not of it.
fn part_of<'a>(contents: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    contents.get(index(range.start)..index(range.end)).unwrap_or_default()
}

/// A multipart body of what is in memory.
fn joined(parts: Vec<(Vec<u8>, Range<u64>)>, contents: &[u8], close: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for (head, range) in parts {
        body.extend_from_slice(&head);
        body.extend_from_slice(part_of(contents, &range));
    }
    body.extend_from_slice(close);
    body
}

/// A delimiter that nobody who wrote the file could foresee: 16 letters of chance.
fn boundary(request: &Request<'_>) -> [u8; 16] {
    let mut boundary = [0; 16];
    request.io.entropy(&mut boundary);
    boundary.map(|byte| b'a' + (byte & 15))
}

fn unsatisfiable(request: &Request<'_>, found: &FoundFile) -> Answer {
    let detail = "The file has no bytes in these ranges; Content-Range says how many it has.";
    refused(request, Status::RANGE_NOT_SATISFIABLE, detail)
        .field_display("Content-Range", ContentRange::Unsatisfied { length: found.stat.size })
}
