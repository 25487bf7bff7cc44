//! Uploads standard input. Its length and digest are unknown before its end.
//!
//! It cannot be retried. Invariant: the upload succeeds only if the server's digest matches that of the
//! bytes read.

use std::cell::RefCell;
use std::io::{self, Read as _};
use std::rc::Rc;

use plimsoll_client::http::{Body, NextSegment, Request, Source};
use plimsoll_io::{Io, Segment, Work};
use sha2::{Digest as _, Sha256};

use crate::api_client::ApiClient;
use crate::download::digest_of;
use crate::failure::Failure;
use crate::limits::{JSON_BYTES_MAX, READ_BYTES};
use crate::progress::FileProgress;
use crate::remote_path::RemotePath;

/// Uploads standard input; returns the number of bytes.
pub(crate) async fn put_stream(
    server: &mut ApiClient,
    to: &RemotePath,
    progress: &FileProgress<'_>,
) -> Result<u64, Failure> {
    let read = Rc::new(RefCell::new((Sha256::new(), 0)));
    let mut source = StandardInput { io: server.io.clone(), read: Rc::clone(&read), progress };
    let target = to.target();
    let body = Body::Stream { length: None, source: &mut source };
    // The server hashes while it receives, so that it need not read the file again for the digest.
    let request = Request::new("PUT", &target).field("Want-Repr-Digest", "sha-256=1");
    let mut response = server.send_ok(request.body(body)).await?;
    let etag = response.field("ETag").map(str::to_owned);
    response.bytes(JSON_BYTES_MAX).await?;
    drop(response);
    let (hash, bytes) = read.take();
    let ours: [u8; 32] = hash.finalize().into();
    match digest_of(server, to, etag.as_deref()).await? {
        Some(theirs) if theirs == ours => Ok(bytes),
        Some(_) => {
            Err(Failure::Local("The bytes did not arrive as they were sent. Send them again.".to_owned()))
        }
        None => Err(Failure::Local(
            "Another client replaced the file before it could be checked. Look at it.".to_owned(),
        )),
    }
}

struct StandardInput<'a> {
    io: Io,
    /// The digest of the bytes read, and their number.
    read: Rc<RefCell<(Sha256, u64)>>,
    progress: &'a FileProgress<'a>,
}

impl Source for StandardInput<'_> {
    fn next(&mut self) -> NextSegment<'_> {
        Box::pin(async move {
            // Offloaded and without a deadline, because the read may wait for a person's input.
            let piece = self.io.offload(Work::Files, |_| read_some()).await.map_err(io::Error::from)??;
            if piece.is_empty() {
                return Ok(None);
            }
            let (hash, bytes) = &mut *self.read.borrow_mut();
            hash.update(&piece);
            *bytes += piece.len() as u64;
            self.progress.at(*bytes);
            Ok(Some(Segment::Owned(piece)))
        })
    }
}

fn read_some() -> io::Result<Vec<u8>> {
    let mut piece = vec![0; READ_BYTES];
    let mut stdin = io::stdin().lock();
    loop {
        match stdin.read(&mut piece) {
            Ok(bytes) => {
                piece.truncate(bytes);
                return Ok(piece);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
