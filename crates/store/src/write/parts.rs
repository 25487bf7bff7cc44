//! Joins partial uploads: complete resumable uploads without a path, copied one after the other into a
//! file.
//!
//! It serves the concatenation extension of tus, by which a client sends parts over several connections at
//! once. Invariants: the file appears by an ordinary commit. The parts must stay until the client discards
//! them.

use plimsoll_io::{File, Fs, Io, Work};

use super::commit::Terms;
use super::digest::Expected;
use super::id::UploadId;
use super::staging::StagingFile;
use super::upload::Upload;
use crate::error::{Error, Result};
use crate::home::Home;
use crate::limits::{JOIN_BLOCK_BYTES, JOINED_AT_ONCE_BYTES};

impl Home {
    /// Begins an upload with all bytes of `parts`, in this order.
    ///
    /// # Errors
    /// As [`Home::upload`]. [`Error::NotFound`] if one is not a partial upload. [`Error::Length`] if one is
    /// incomplete. [`Error::Busy`] while many long copies to the home are in progress.
    pub(crate) async fn upload_of_parts(
        &self,
        io: &Io,
        terms: Terms,
        parts: Vec<UploadId>,
    ) -> Result<Upload> {
        let mut sources = Vec::with_capacity(parts.len());
        for id in parts {
            let kept = self.resumable_upload(io, id).await?;
            if !kept.is_part() {
                return Err(Error::NotFound);
            }
            let bytes = kept.bytes.filter(|_| kept.is_complete()).ok_or(Error::Length)?;
            let home = self.clone();
            let opened = io.offload(Work::Writes, move |fs| fs.open_beneath(home.pending(), &id.data_name()));
            sources.push((opened.await??, bytes));
        }
        let bytes = sources.iter().map(|(_, bytes)| *bytes).sum();
        let mut upload =
            self.upload(io, terms, Expected { bytes: Some(bytes), ..Expected::default() }).await?;
        let _until_done = self.begin_copy()?;
        for (source, bytes) in sources {
            upload.append_file(&source, bytes).await?;
        }
        Ok(upload)
    }
}

impl StagingFile {
    /// Appends `bytes` from `offset` of another file.
    pub(super) fn append_part(&mut self, fs: &dyn Fs, source: &File, offset: u64, bytes: u64) -> Result<()> {
        let mut block = vec![0; JOIN_BLOCK_BYTES];
        let (mut from, end) = (offset, offset + bytes);
        while from < end {
            let most = usize::try_from(end - from).map_or(block.len(), |left| left.min(block.len()));
            match fs.read_at(source, &mut block[..most], from)? {
                // Another program has truncated the file.
                0 => return Err(Error::Precondition),
                read => {
                    self.append(fs, &block[..read])?;
                    from += read as u64;
                }
            }
        }
        Ok(())
    }
}

impl Upload {
    /// Appends the first `bytes` of a file. Other work of the home's store gets its turn in between.
    async fn append_file(&mut self, source: &File, bytes: u64) -> Result<()> {
        self.end_by(Work::Chores);
        let mut offset = 0;
        while offset < bytes {
            let (source, count) = (source.clone(), JOINED_AT_ONCE_BYTES.min(bytes - offset));
            let appended = self.work(Work::Chores, move |fs, state, _| {
                state.append(fs, |staging| staging.append_part(fs, &source, offset, count))
            });
            appended.await?;
            offset += count;
            self.has_appended(count);
        }
        self.end_by(Work::Writes);
        Ok(())
    }
}
