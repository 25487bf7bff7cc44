//! A file as an answer: conditions, ranges, or all of it.
//!
//! It opens nothing. What must hold: the conditions are weighed before the ranges (RFC 9110, section 13.2.2),
//! and a range is only of the representation whose validators the answer shows.

use std::ops::Range;
use std::time::Duration;

use plimsoll_io::FileRange;
use plimsoll_wire::http::conditional::{Precondition, Validators, evaluate, range_applies};
use plimsoll_wire::http::date::{DATE_BYTES, parse_date, write_date};
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::multipart;
use plimsoll_wire::http::range::{ContentRange, Ranges, Resolved, parse_range};
use plimsoll_wire::http::status::Status;

use super::lookup::FoundFile;
use super::{etag, refused};
use crate::http::answer::{Answer, Body};
use crate::http::request::Request;

/// The file, or what of it the request wants.
pub fn send(request: &Request<'_>, found: FoundFile) -> Answer {
    let etag = etag(&found.stat);
    let validators = Validators { etag: etag.as_bytes(), modified: found.stat.modified_at() };
    match evaluate(request.head, request.block, Some(&validators), true) {
        Precondition::Proceed => match ranges(request, &validators, found.stat.size) {
            Resolved::Whole => whole(found, &etag),
            Resolved::Ranges(ranges) => parts(request, found, &etag, &ranges),
            Resolved::Unsatisfiable => unsatisfiable(request, &found),
        },
        Precondition::NotModified => validated(Answer::new(Status::NOT_MODIFIED), &found, &etag),
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

fn whole(found: FoundFile, etag: &str) -> Answer {
    let answer = described(Answer::new(Status::OK), &found, etag);
    let answer = answer.field("Content-Type", found.media);
    match found.contents {
        Some(contents) => answer.body(Body::Bytes(contents)),
        None => answer.body(Body::File(FileRange { file: found.file, range: 0..found.stat.size })),
    }
}

fn parts(request: &Request<'_>, found: FoundFile, etag: &str, ranges: &Ranges) -> Answer {
    let answer = described(Answer::new(Status::PARTIAL_CONTENT), &found, etag);
    let length = found.stat.size;
    if let Some(range) = ranges.single() {
        let range = range.clone();
        let told = ContentRange::Part { range: range.clone(), length };
        let answer = answer.field("Content-Type", found.media).field_display("Content-Range", told);
        return answer.body(Body::File(FileRange { file: found.file, range }));
    }
    let boundary = boundary(request);
    let mut media = Vec::new();
    multipart::media_type(&boundary, &mut media);
    let part = |range: &Range<u64>| {
        let mut head = Vec::new();
        multipart::part_head(&boundary, found.media, range, length, &mut head);
        (head, range.clone())
    };
    let parts = ranges.as_slice().iter().map(part).collect();
    let mut close = Vec::new();
    multipart::close(&boundary, &mut close);
    answer.field("Content-Type", media).body(Body::Parts(parts, found.file, close))
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

/// What every answer that sends the file says of it.
fn described(answer: Answer, found: &FoundFile, etag: &str) -> Answer {
    let answer = validated(answer, found, etag).field("Accept-Ranges", "bytes");
    let answer = answer.field("X-Content-Type-Options", "nosniff");
    found.manner.of_files().iter().fold(answer, |answer, (name, value)| answer.field(name, value))
}

/// What 304 says too.
fn validated(answer: Answer, found: &FoundFile, etag: &str) -> Answer {
    let mut modified = [b' '; DATE_BYTES];
    write_date(found.stat.modified_at(), &mut modified);
    let answer = answer.field("ETag", etag).field("Last-Modified", modified);
    let answer = answer.field("Vary", found.manner.vary());
    match found.encoding {
        Some(encoding) => answer.field("Content-Encoding", encoding.name()),
        None => answer,
    }
}
