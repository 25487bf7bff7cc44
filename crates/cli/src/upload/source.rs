//! A range of a file as a request body, read ahead and hashed on another thread.
//!
//! It does not handle responses. Invariant: the offset and the digest cover exactly the bytes given to the
//! HTTP client.

use std::fs::File;
use std::io;
use std::sync::Arc;

use plimsoll_client::http::{NextSegment, Source};
use plimsoll_io::oneshot::{Receiver, oneshot};
use plimsoll_io::{Io, Segment, Work};
use sha2::{Digest as _, Sha256};

use super::reading::read_piece;
use crate::progress::FileProgress;

/// A piece of the file, and the digest of everything up to its end.
type Hashed = io::Result<(Vec<u8>, Sha256)>;

/// A range of a file, and the digest of the file up to the last byte read.
pub(super) struct FileSource<'a> {
    io: Io,
    file: Arc<File>,
    /// The offset of the next byte.
    pub(super) at: u64,
    to: u64,
    progress: &'a FileProgress<'a>,
    /// `None` while another thread owns it.
    hash: Option<Sha256>,
    next: Option<Receiver<Hashed>>,
}

impl<'a> FileSource<'a> {
    /// Returns the source of the bytes from `at` to `to`; `hash` covers those before.
    pub(super) fn new(
        io: &Io,
        file: &Arc<File>,
        (at, to): (u64, u64),
        hash: Sha256,
        progress: &'a FileProgress<'a>,
    ) -> FileSource<'a> {
        let (io, file, hash) = (io.clone(), Arc::clone(file), Some(hash));
        FileSource { io, file, at, to, progress, hash, next: None }
    }

    /// Returns the digest of everything up to `to`, if all of it was read.
    pub(super) fn into_hash(self) -> Option<Sha256> {
        self.hash.filter(|_| self.at == self.to)
    }

    /// Has another thread read and hash the piece at `at`.
    fn read_ahead(&mut self, at: u64) -> io::Result<()> {
        let Some(mut hash) = self.hash.take() else { return Ok(()) };
        let (sender, receiver) = oneshot();
        let (file, left) = (Arc::clone(&self.file), self.to - at);
        let handed = self.io.hand_off(Work::Files, move |_| {
            sender.send(read_piece(&file, at, left).map(|piece| {
                hash.update(&piece);
                (piece, hash)
            }));
        });
        self.next = Some(receiver);
        handed.map_err(io::Error::from)
    }

    async fn piece(&mut self) -> io::Result<Option<Segment>> {
        if self.at == self.to {
            return Ok(None);
        }
        if self.next.is_none() {
            self.read_ahead(self.at)?;
        }
        let lost = || io::Error::other("the thread that read the file has ended");
        let receiver = self.next.as_mut().ok_or_else(lost)?;
        let read = receiver.await.ok_or_else(lost)?;
        self.next = None;
        let (piece, hash) = read?;
        self.hash = Some(hash);
        self.at += piece.len() as u64;
        if self.at < self.to {
            self.read_ahead(self.at)?;
        }
        self.progress.at(self.at);
        Ok(Some(Segment::Owned(piece)))
    }
}

impl Source for FileSource<'_> {
    fn next(&mut self) -> NextSegment<'_> {
        Box::pin(self.piece())
    }
}
