//! The response fields of a file: its validators, and the fields that accompany its bytes.
//!
//! They are formatted once per lookup, so that a hit of the hot cache only copies them. Invariant: they
//! depend on the request only through the selected file.

use std::time::SystemTime;

use plimsoll_io::Stat;
use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::date::{DATE_BYTES, usable_modification, write_date};

use crate::encoding::Encoding;
use crate::{Visibility, etag};

/// The formatted response fields of a file.
pub struct FileFields {
    etag: String,
    modified: SystemTime,
    fields: Vec<u8>,
    /// The length of Last-Modified, which is first: without it, the rest is a response's.
    date_end: usize,
    /// The length of the fields that a 304 has, too.
    validators_end: usize,
}

/// Capacity for the usual fields, to allocate once.
const FIELDS_BYTES_USUAL: usize = 512;

impl FileFields {
    /// Formats the fields of the file with this metadata and media type. `encoding` is that of its bytes, if
    /// a precompressed sibling was selected.
    pub(crate) fn new(
        stat: &Stat,
        media: &str,
        encoding: Option<Encoding>,
        visibility: Visibility,
    ) -> FileFields {
        let (etag, mut modified) = (etag(stat), [b' '; DATE_BYTES]);
        write_date(stat.modified_at(), &mut modified);
        let mut fields = Vec::with_capacity(FIELDS_BYTES_USUAL);
        let _unfinished = AnswerHead::resume(&mut fields).field("Last-Modified", modified);
        let date_end = fields.len();
        let head = AnswerHead::resume(&mut fields).field("ETag", &etag);
        let head = head.field("Vary", visibility.vary());
        let head = head.field_if("Cache-Control", visibility.file_cache_control());
        let _unfinished = head.field_if("Content-Encoding", encoding.map(Encoding::name));
        let validators_end = fields.len();
        let head = AnswerHead::resume(&mut fields).field("Accept-Ranges", "bytes");
        let head = head.field("X-Content-Type-Options", "nosniff");
        let further = visibility.file_fields(media).iter();
        let _unfinished = further.fold(head, |head, (name, value)| head.field(name, value));
        FileFields { etag, modified: stat.modified_at(), fields, date_end, validators_end }
    }

    /// Returns the entity tag.
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// Returns the fields of a 304 response at the time `now`.
    pub fn validators(&self, now: SystemTime) -> &[u8] {
        self.fields.get(self.start(now)..self.validators_end).unwrap_or_default()
    }

    /// Returns the fields of every response with bytes of the file at the time `now`.
    pub fn all(&self, now: SystemTime) -> &[u8] {
        self.fields.get(self.start(now)..).unwrap_or_default()
    }

    /// Returns where the fields begin: a date that distinguishes no versions is not sent.
    fn start(&self, now: SystemTime) -> usize {
        if usable_modification(self.modified, now).is_some() { 0 } else { self.date_end }
    }
}
