//! Records a fetched body: publishes it to the followers, and stores the object at its end.
//!
//! It receives nothing. Invariants: bytes are published only after they are in memory or in the file, so
//! that a follower never reads beyond them; an object is stored only after [`Recorder::finish`], that is,
//! after the whole body.

use std::io;
use std::sync::Arc;

use plimsoll_io::{Io, Work};

use super::fetch::{Follower, Lead};
use super::limits::{DISK_RETRY_TIME, HIT_FOR_MISS_TIME, MEMORY_OBJECT_BYTES_MAX};
use super::policy::StoredHead;
use super::response_cache::{Reservation, ResponseCache};
use super::store::{Content, ObjectWriter};

/// The recording of one body.
pub struct Recorder {
    cache: Arc<ResponseCache>,
    lead: Lead,
    head: StoredHead,
    /// The file, unless the body is in memory.
    writer: Option<ObjectWriter>,
    room: Reservation,
    received: u64,
    length: Option<u64>,
}

impl Recorder {
    /// Publishes the head of a response, and begins to record its body.
    #[must_use]
    pub fn begin(
        cache: &Arc<ResponseCache>,
        lead: Lead,
        head: StoredHead,
        length: Option<u64>,
        room: Reservation,
    ) -> Recorder {
        lead.open(head.clone(), length);
        Recorder { cache: Arc::clone(cache), lead, head, writer: None, room, received: 0, length }
    }

    /// Returns a follower of the recording.
    #[must_use]
    pub fn follower(&self) -> Follower {
        self.lead.follower()
    }

    /// Returns the number of bytes recorded.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Records bytes.
    ///
    /// # Errors
    /// The error, and the bytes, which were not published. The recording has then failed.
    pub async fn push(&mut self, io: &Io, bytes: Vec<u8>) -> Result<(), (io::Error, Vec<u8>)> {
        let received = self.received + bytes.len() as u64;
        if received > self.cache.object_bytes_max().max(MEMORY_OBJECT_BYTES_MAX as u64) {
            return Err((io::ErrorKind::FileTooLarge.into(), bytes));
        }
        let is_large = self.length.is_some_and(|length| length > MEMORY_OBJECT_BYTES_MAX as u64);
        if self.writer.is_none() && !is_large && received <= MEMORY_OBJECT_BYTES_MAX as u64 {
            self.lead.publish(bytes.into());
            self.received = received;
            return Ok(());
        }
        if !self.room.grow(received) {
            return Err((io::ErrorKind::QuotaExceeded.into(), bytes));
        }
        match self.write(io, &bytes).await {
            Ok(()) => {
                self.received = received;
                Ok(())
            }
            Err(error) => Err((error, bytes)),
        }
    }

    async fn write(&mut self, io: &Io, bytes: &[u8]) -> io::Result<()> {
        let (writer, bytes) = match self.writer.take() {
            Some(writer) => (writer, bytes.to_vec()),
            None => {
                // The body has grown out of memory: the file begins with what was published.
                let earlier = self.lead.in_memory().unwrap_or_default();
                (self.cache.create_file(io).await?, [&earlier, bytes].concat())
            }
        };
        let writer = self.cache.append(io, writer, bytes).await?;
        self.lead.publish_file(writer.file(), writer.written());
        self.writer = Some(writer);
        Ok(())
    }

    /// Ends the recording after an error of [`Recorder::push`]: followers, and later requests for some time,
    /// proceed without it.
    pub fn abandon(self, io: &Io, error: &io::Error) {
        let is_too_large = error.kind() == io::ErrorKind::FileTooLarge;
        self.lead.abandon(io.now(), if is_too_large { HIT_FOR_MISS_TIME } else { DISK_RETRY_TIME });
    }

    /// Publishes the end of the body, and stores the object without waiting for the disk.
    pub fn finish(self, io: &Io) {
        self.lead.complete();
        let Recorder { cache, lead, head, writer, room, .. } = self;
        let Some(writer) = writer else {
            if let Some(bytes) = lead.in_memory() {
                cache.insert(head, Content::Memory(bytes.into()), lead.storing());
                // It may have replaced an object with a file, which a start would find again.
                cache.remove_later(io);
            }
            return lead.finish();
        };
        let now = io.now();
        let handed_off = io.hand_off(Work::Writes, move |fs| {
            // An error is counted and logged there.
            let _: io::Result<bool> = cache.commit_on(fs, now, writer, &head, lead.storing());
            drop(room);
            lead.finish();
        });
        if handed_off.is_err() {
            // Dropping the lead and the writer has ended the fetch, and discarded the file.
            tracing::debug!("too much waits for the disk: an object is not stored");
        }
    }
}

#[cfg(test)]
mod tests;
