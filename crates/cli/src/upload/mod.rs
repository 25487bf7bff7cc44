//! Uploads to the server: in one request, in parts, or as a stream.
//!
//! It walks through no folders. Invariant: a file counts as sent only if the server has checked its digest,
//! and if it did not change meanwhile.

mod parts;
mod reading;
mod single_request;
mod source;
mod stream;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::api_client::ApiClient;
use super::failure::Failure;
use super::limits::WHOLE_BYTES_MAX;
use super::progress::FileProgress;
use super::remote_path::RemotePath;
use reading::Version;
pub(crate) use stream::put_stream;

/// A local file, open for reading.
struct LocalFile<'a> {
    path: &'a Path,
    file: Arc<File>,
    version: Version,
}

/// Uploads a file; returns how many bytes this command sent.
pub(crate) async fn put_file(
    server: &mut ApiClient,
    path: &Path,
    to: &RemotePath,
    progress: &FileProgress<'_>,
) -> Result<u64, Failure> {
    let open = || File::open(path).and_then(|file| Ok((Version::of(&file)?, file)));
    let (version, file) = open().map_err(|error| Failure::local("cannot be read", &error))?;
    let opened = LocalFile { path, file: Arc::new(file), version };
    match opened.version.bytes {
        0..=WHOLE_BYTES_MAX => single_request::put_from_memory(server, &opened, to, progress).await,
        // Uploads in parts can only go to the own home.
        _ if to.owner.is_some() => single_request::put_streamed(server, &opened, to, progress).await,
        _ => parts::put(server, &opened, to, progress).await,
    }
}
