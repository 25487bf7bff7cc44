//! A file as a response: all of it, ranges of it, or the reason why it is not sent.
//!
//! It opens nothing. Invariant: the body has exactly the bytes that the fields describe.

use std::ops::Range;

use plimsoll_content::{Representation, Selected, Source, select};
use plimsoll_io::FileRange;
use plimsoll_wire::http::multipart;
use plimsoll_wire::http::range::{ContentRange, Ranges};
use plimsoll_wire::http::status::Status;

use super::refused;
use crate::http::answer::{Answer, Body};
use crate::http::limits::COPIED_BODY_BYTES_MAX;
use crate::http::request::Request;

/// Returns the part of the file that the request selects.
pub fn send(request: &Request<'_>, found: Representation) -> Answer {
    match select(request.head, request.block, &found, request.io.wall()) {
        Selected::Whole => whole(found),
        Selected::Ranges(ranges) => parts(request, found, &ranges),
        Selected::Unsatisfiable => unsatisfiable(request, &found),
        Selected::NotModified => Answer::new(Status::NOT_MODIFIED).written(found.fields.validators()),
        Selected::PreconditionFailed => {
            refused(request, Status::PRECONDITION_FAILED, "The file is not the one that the conditions name.")
        }
    }
}

fn whole(found: Representation) -> Answer {
    let fields = found.fields.all();
    // The memory for a head and a small body is allocated once.
    let copied = match &found.source {
        Source::Bytes { contents, .. } if contents.len() <= COPIED_BODY_BYTES_MAX => contents.len(),
        _ => 0,
    };
    let answer = Answer::with_room(Status::OK, fields.len() + copied).written(fields);
    let answer = answer.field("Content-Type", found.media);
    match found.source {
        Source::Bytes { contents, .. } => answer.body(Body::Shared(contents)),
        Source::File(file) => answer.body(Body::File(FileRange { file, range: 0..found.stat.size })),
    }
}

fn parts(request: &Request<'_>, found: Representation, ranges: &Ranges) -> Answer {
    let answer = Answer::new(Status::PARTIAL_CONTENT).written(found.fields.all());
    let length = found.stat.size;
    if let Some(range) = ranges.single() {
        let range = range.clone();
        let content_range = ContentRange::Part { range: range.clone(), length };
        let answer = answer.field("Content-Type", found.media).field_display("Content-Range", content_range);
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

/// Returns a range of bytes in memory; nothing if it is out of bounds.
fn part_of<'a>(contents: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    contents.get(index(range.start)..index(range.end)).unwrap_or_default()
}

/// Returns a multipart body of bytes in memory.
fn joined(parts: Vec<(Vec<u8>, Range<u64>)>, contents: &[u8], close: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for (head, range) in parts {
        body.extend_from_slice(&head);
        body.extend_from_slice(part_of(contents, &range));
    }
    body.extend_from_slice(close);
    body
}

/// Returns a delimiter of 16 random letters, which the author of a file cannot predict.
fn boundary(request: &Request<'_>) -> [u8; 16] {
    let mut boundary = [0; 16];
    request.io.entropy(&mut boundary);
    boundary.map(|byte| b'a' + (byte & 15))
}

fn unsatisfiable(request: &Request<'_>, found: &Representation) -> Answer {
    let detail = "The file has no bytes in these ranges; Content-Range says how many it has.";
    refused(request, Status::RANGE_NOT_SATISFIABLE, detail)
        .field_display("Content-Range", ContentRange::Unsatisfied { length: found.stat.size })
}
