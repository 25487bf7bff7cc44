//! Joins partial uploads: complete resumable uploads without a path, copied one after the other into a
//! file.
//!
//! It serves the concatenation extension of tus, by which a client sends parts over several connections at
//! once. Invariants: the file appears by an ordinary commit. The parts stay until it, and end with it, also
//! if the server ends in the middle.

use std::sync::Arc;

use plimsoll_io::{File, Fs, Io, Work, write_all};
use plimsoll_wire::http::target::{decode_path, encode_path};

use super::commit::{StagedFile, Terms};
use super::digest::Expected;
use super::id::UploadId;
use super::record::read_text;
use super::staging::StagingFile;
use super::state::Paused;
use super::upload::LocalUpload;
use crate::error::{Error, Result};
use crate::home::LocalHome;
use crate::limits::{JOIN_BLOCK_BYTES, JOINED_AT_ONCE_BYTES};
use crate::path::Path;

/// The partial uploads that an upload joins. Clones share them.
#[derive(Clone)]
pub(crate) struct JoinedParts(Arc<[UploadId]>);

impl JoinedParts {
    /// Records that the parts end with the commit of a staging file to a path, which is next.
    ///
    /// # Errors
    /// Any error of writing the list. Nothing is committed then.
    pub(super) fn record(
        &self,
        fs: &dyn Fs,
        home: &LocalHome,
        staged: &StagedFile<'_>,
        to: &Path,
    ) -> Result<()> {
        let stat = fs.stat(staged.file)?;
        let list = fs.create(home.pending(), &staged.id.parts_name())?;
        let mut text = format!("{} {} {} /", stat.device, stat.inode, stat.size).into_bytes();
        encode_path(to.as_bytes(), &mut text);
        for part in &*self.0 {
            text.extend_from_slice(format!("\n{part}").as_bytes());
        }
        let recorded = write_all(fs, &list, &text, 0).map_err(Error::from);
        let recorded = recorded.and_then(|()| home.sync(fs, &[&list, home.pending()]));
        recorded.inspect_err(|_| remove_list(fs, home, staged.id))
    }

    /// Ends the parts if the upload `id` was committed, and removes the record.
    pub(super) fn settle(&self, fs: &dyn Fs, home: &LocalHome, id: UploadId, is_committed: bool) {
        if is_committed {
            for part in &*self.0 {
                home.take_over(fs, *part);
                if let Err(error) = Paused::of(home, *part).remove(fs) {
                    // The client has discarded it meanwhile.
                    tracing::debug!(upload = %part, %error, "a part of a complete file was not discarded");
                }
            }
            // Before the list goes: after a power cut, it says which parts have ended.
            if let Err(error) = home.sync(fs, &[home.pending()]) {
                tracing::warn!(%error, "the end of joined parts was not synced");
                return;
            }
        }
        remove_list(fs, home, id);
    }
}

fn remove_list(fs: &dyn Fs, home: &LocalHome, id: UploadId) {
    if let Err(error) = fs.remove_file(home.pending(), &id.parts_name()) {
        tracing::warn!(upload = %id, %error, "a list of joined parts was not removed");
    }
}

/// Returns the parts that have ended with the commit of the upload `id`, by the list of a server that ended.
/// Returns none unless the path leads to the same inode: a missing staging file alone proves no commit.
pub(crate) fn ended_parts(fs: &dyn Fs, home: &LocalHome, id: UploadId) -> Result<Vec<UploadId>> {
    let list = fs.open_beneath(home.pending(), &id.parts_name())?;
    let text = read_text(fs, &list)?;
    // A torn list was not synced, so nothing was committed.
    let mut lines = text.split(|byte| *byte == b'\n');
    let is_committed = match lines.next().and_then(parse_file) {
        Some((file, to)) => {
            home.metadata_at(fs, &to)?.is_some_and(|stat| file == [stat.device, stat.inode, stat.size])
        }
        None => false,
    };
    Ok(lines.filter_map(UploadId::parse).filter(|_| is_committed).collect())
}

/// Parses the first line of a list: device, inode and size of the file, and its path.
fn parse_file(line: &[u8]) -> Option<([u64; 3], Path)> {
    let mut words = std::str::from_utf8(line).ok()?.splitn(4, ' ');
    let mut number = || words.next()?.parse().ok();
    let file = [number()?, number()?, number()?];
    let mut path = Vec::new();
    decode_path(words.next()?.as_bytes(), &mut path).ok()?;
    Some((file, Path::parse(&path).ok()?))
}

impl LocalHome {
    /// As [`crate::Home::upload_of_parts`].
    pub(crate) async fn upload_of_parts(
        &self,
        io: &Io,
        terms: Terms,
        parts: Vec<UploadId>,
    ) -> Result<LocalUpload> {
        let mut sources = Vec::with_capacity(parts.len());
        for &id in &parts {
            let kept = self.resumable_upload(io, id).await?;
            if !kept.is_part() {
                return Err(Error::NotFound);
            }
            let bytes = kept.bytes.filter(|_| kept.is_complete()).ok_or(Error::Length)?;
            let home = self.clone();
            let opened =
                io.offload(Work::Writes, move |fs| fs.open_beneath(&home.staging_of(id), &id.data_name()));
            sources.push((opened.await??, bytes));
        }
        let bytes = sources.iter().map(|(_, bytes)| *bytes).sum();
        let mut upload =
            self.upload(io, terms, Expected { bytes: Some(bytes), ..Expected::default() }).await?;
        let _until_done = self.begin_copy()?;
        for (source, bytes) in sources {
            upload.append_file(&source, bytes).await?;
        }
        upload.joins(JoinedParts(parts.into()));
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

impl LocalUpload {
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
