//! A range of a file as the body of a request.
//!
//! It does not look at answers. What must hold: it counts what it gives, since that is what was sent.

use std::fs::File;
use std::io;
use std::sync::Arc;

use plimsoll_client::http::{Piece, Source};
use plimsoll_io::{Io, Segment, Work};

use super::super::progress::Progress;
use super::reading::read_piece;

/// The bytes of a file from `at` to `to`.
pub(super) struct FileSource<'a> {
    pub(super) io: Io,
    pub(super) file: Arc<File>,
    pub(super) at: u64,
    pub(super) to: u64,
    pub(super) progress: &'a Progress,
}

impl Source for FileSource<'_> {
    fn next(&mut self) -> Piece<'_> {
        Box::pin(async move {
            let left = self.to - self.at;
            if left == 0 {
                return Ok(None);
            }
            let (file, at) = (Arc::clone(&self.file), self.at);
            let read = self.io.offload(Work::Files, move |_| read_piece(&file, at, left));
            let piece = read.await.map_err(io::Error::from)??;
            self.at += piece.len() as u64;
            self.progress.at(self.at);
            Ok(Some(Segment::Owned(piece)))
        })
    }
}
