//! What answers say of a file: its validators, and the fields that go with its bytes.
//!
//! It is made once for each time that a file is looked up, so that a hot file costs a copy. What must hold:
//! it has nothing that depends on the request, but for what the file was chosen by.

use plimsoll_io::Stat;
use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::date::{DATE_BYTES, write_date};

use super::encoding::Encoding;
use super::{Manner, etag};

/// Fields of a file, written.
pub(super) struct Said {
    etag: String,
    fields: Vec<u8>,
    /// Where those end that 304 says too.
    validated: usize,
}

/// Room for all of them, so that it is allocated once.
const FIELDS_BYTES_USUAL: usize = 256;

impl Said {
    /// What is said of the file that `stat` is of. `encoding` is how its bytes are encoded, if a
    /// precompressed sibling was taken.
    pub(super) fn new(stat: &Stat, encoding: Option<Encoding>, manner: Manner) -> Said {
        let (etag, mut modified) = (etag(stat), [b' '; DATE_BYTES]);
        write_date(stat.modified_at(), &mut modified);
        let mut fields = Vec::with_capacity(FIELDS_BYTES_USUAL);
        let head = AnswerHead::resume(&mut fields).field("ETag", &etag).field("Last-Modified", modified);
        let head = head.field("Vary", manner.vary());
        let _unfinished = head.field_if("Content-Encoding", encoding.map(Encoding::name));
        let validated = fields.len();
        let head = AnswerHead::resume(&mut fields).field("Accept-Ranges", "bytes");
        let head = head.field("X-Content-Type-Options", "nosniff");
        let of_files = manner.of_files().iter();
        let _unfinished = of_files.fold(head, |head, (name, value)| head.field(name, value));
        Said { etag, fields, validated }
    }

    /// Its entity tag.
    pub(super) fn etag(&self) -> &str {
        &self.etag
    }

    /// What 304 says too.
    pub(super) fn validated(&self) -> &[u8] {
        self.fields.get(..self.validated).unwrap_or_default()
    }

    /// What every answer says that sends the file.
    pub(super) fn described(&self) -> &[u8] {
        &self.fields
    }
}
