//! A file as a response: all of it, ranges of it, or the reason why it is not sent.
//!
//! It opens nothing. Invariant: the body has exactly the bytes that the fields describe.

use std::ops::Range;

use plimsoll_content::{FileFields, LocalSource, Representation, Selected, Source, part_of, select};
use plimsoll_io::FileRange;
use plimsoll_store::backend::{RemoteFile, SentPart};
use plimsoll_wire::http::multipart;
use plimsoll_wire::http::range::{ContentRange, Ranges};
use plimsoll_wire::http::status::Status;

use super::refused;
use crate::http::answer::{Answer, Body};
use crate::http::limits::COPIED_BODY_BYTES_MAX;
use crate::http::request::Request;

/// Returns the part of the file that the request selects.
pub fn send(request: &Request<'_>, found: Representation) -> Answer {
    let Representation { stat, media, source, fields } = found;
    match source {
        Source::Local(source) => local(request, Representation { stat, media, source, fields }),
        Source::Remote(source) => remote(request, Representation { stat, media, source, fields }),
    }
}

fn local(request: &Request<'_>, found: Representation<LocalSource>) -> Answer {
    match select(request.head, request.block, &found, request.io.wall()) {
        Selected::Whole => whole(request, found),
        Selected::Ranges(ranges) => parts(request, found, &ranges),
        Selected::Unsatisfiable => unsatisfiable(request, found.stat.size),
        Selected::NotModified => not_modified(request, &found.fields),
        Selected::PreconditionFailed => precondition_failed(request),
    }
}

/// Returns the part that a remote store has selected, by the same rules.
fn remote(request: &Request<'_>, found: Representation<Box<RemoteFile>>) -> Answer {
    let Representation { stat, media, source, fields } = found;
    let written = fields.all(request.io.wall());
    let head = |status, media: &str| Answer::new(status).written(written).field("Content-Type", media);
    let answer = match source.part() {
        SentPart::Whole => head(Status::OK, media),
        SentPart::Range(range) => {
            let range = ContentRange::Part { range: range.clone(), length: stat.size };
            head(Status::PARTIAL_CONTENT, media).field_display("Content-Range", range)
        }
        SentPart::Multipart(media) => head(Status::PARTIAL_CONTENT, media),
        SentPart::Unsatisfiable => return unsatisfiable(request, stat.size),
        SentPart::NotModified => return not_modified(request, &fields),
        SentPart::PreconditionFailed => return precondition_failed(request),
    };
    answer.body(Body::Remote(source))
}

fn not_modified(request: &Request<'_>, fields: &FileFields) -> Answer {
    Answer::new(Status::NOT_MODIFIED).written(fields.validators(request.io.wall()))
}

fn precondition_failed(request: &Request<'_>) -> Answer {
    refused(request, Status::PRECONDITION_FAILED, "The file is not the one that the conditions name.")
}

fn whole(request: &Request<'_>, found: Representation<LocalSource>) -> Answer {
    let fields = found.fields.all(request.io.wall());
    // The memory for a head and a small body is allocated once.
    let copied = match &found.source {
        LocalSource::Bytes { contents, .. } if contents.len() <= COPIED_BODY_BYTES_MAX => contents.len(),
        _ => 0,
    };
    let answer = Answer::with_room(Status::OK, fields.len() + copied).written(fields);
    let answer = answer.field("Content-Type", found.media);
    match found.source {
        LocalSource::Bytes { contents, .. } => answer.body(Body::Shared(contents)),
        LocalSource::File(file) => answer.body(Body::File(FileRange { file, range: 0..found.stat.size })),
    }
}

fn parts(request: &Request<'_>, found: Representation<LocalSource>, ranges: &Ranges) -> Answer {
    let answer = Answer::new(Status::PARTIAL_CONTENT).written(found.fields.all(request.io.wall()));
    let length = found.stat.size;
    if let Some(range) = ranges.single() {
        let range = range.clone();
        let content_range = ContentRange::Part { range: range.clone(), length };
        let answer = answer.field("Content-Type", found.media).field_display("Content-Range", content_range);
        return answer.body(match found.source {
            LocalSource::Bytes { contents, .. } => Body::Bytes(part_of(&contents, &range).to_vec()),
            LocalSource::File(file) => Body::File(FileRange { file, range }),
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
        LocalSource::Bytes { contents, .. } => Body::Bytes(joined(parts, &contents, &close)),
        LocalSource::File(file) => Body::Parts(parts, file, close),
    })
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

fn unsatisfiable(request: &Request<'_>, length: u64) -> Answer {
    let detail = "The file has no bytes in these ranges; Content-Range says how many it has.";
    refused(request, Status::RANGE_NOT_SATISFIABLE, detail)
        .field_display("Content-Range", ContentRange::Unsatisfied { length })
}
