//! The response fields of a file: its validators, and the fields that accompany its bytes.
//!
//! They are formatted once per lookup, so that a hit of the hot cache only copies them. Invariant: they
//! depend on the request only through the selected file.

use plimsoll_io::Stat;
use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::date::{DATE_BYTES, write_date};

use crate::encoding::Encoding;
use crate::{Visibility, etag};

/// The formatted response fields of a file.
pub struct FileFields {
    etag: String,
    fields: Vec<u8>,
    /// The length of the fields that a 304 has, too.
    validators_end: usize,
}

/// Capacity for the usual fields, to allocate once.
const FIELDS_BYTES_USUAL: usize = 256;

impl FileFields {
    /// Formats the fields of the file with this metadata. `encoding` is that of its bytes, if a precompressed
    /// sibling was selected.
    pub(crate) fn new(stat: &Stat, encoding: Option<Encoding>, visibility: Visibility) -> FileFields {
        let (etag, mut modified) = (etag(stat), [b' '; DATE_BYTES]);
        write_date(stat.modified_at(), &mut modified);
        let mut fields = Vec::with_capacity(FIELDS_BYTES_USUAL);
        let head = AnswerHead::resume(&mut fields).field("ETag", &etag).field("Last-Modified", modified);
        let head = head.field("Vary", visibility.vary());
        let head = head.field_if("Cache-Control", visibility.file_cache_control());
        let _unfinished = head.field_if("Content-Encoding", encoding.map(Encoding::name));
        let validators_end = fields.len();
        let head = AnswerHead::resume(&mut fields).field("Accept-Ranges", "bytes");
        let head = head.field("X-Content-Type-Options", "nosniff");
        let further = visibility.file_fields().iter();
        let _unfinished = further.fold(head, |head, (name, value)| head.field(name, value));
        FileFields { etag, fields, validators_end }
    }

    /// Returns the entity tag.
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// Returns the fields of a 304 response.
    pub fn validators(&self) -> &[u8] {
        self.fields.get(..self.validators_end).unwrap_or_default()
    }

    /// Returns the fields of every response with bytes of the file.
    pub fn all(&self) -> &[u8] {
        &self.fields
    }
}
