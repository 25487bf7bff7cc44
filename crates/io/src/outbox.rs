//! The queue of segments that were pushed and are not sent yet, with the progress of its first segment.
//!
//! It is not a socket: an engine reads the front, sends as much as it can, and reports how much that
//! was. Invariant: bytes leave in the order in which they were pushed, each once.

use std::collections::VecDeque;
use std::ops::Range;

use crate::file::File;
use crate::piped::Pipe;
use crate::segment::Segment;

/// The send queue of a connection.
#[derive(Debug, Default)]
pub struct Outbox {
    segments: VecDeque<Segment>,
    /// Bytes of the first segment that were sent, if it is in memory. Files and pipes keep their own
    /// progress.
    sent: usize,
    unsent: u64,
    /// Bytes that will never be sent.
    lost: u64,
}

/// The front of an outbox.
#[derive(Debug)]
pub enum Front<'a> {
    /// Bytes in memory; [`Outbox::gather`] returns them and the memory segments behind them.
    Bytes,
    /// A range of a file.
    File(&'a File, Range<u64>),
    /// Bytes in a pipe.
    Piped(&'a Pipe),
}

impl Outbox {
    /// Appends a segment. An empty one is dropped.
    pub fn push(&mut self, segment: Segment) {
        let len = segment.len();
        if len > 0 {
            self.unsent += len;
            self.segments.push_back(segment);
        }
    }

    /// Returns the number of bytes that are not sent, including those of files.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Returns the number of bytes that will never be sent: unsent when the connection broke, or pushed
    /// after that.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the front of the queue, if it is not empty.
    pub fn front(&self) -> Option<Front<'_>> {
        self.segments.front().map(|segment| match segment {
            Segment::File(part) => Front::File(&part.file, part.range.clone()),
            Segment::Piped(pipe) => Front::Piped(pipe),
            _ => Front::Bytes,
        })
    }

    /// Writes the slices at the front into `into`, up to the first segment that is not in memory, as
    /// many as fit. Returns their number.
    pub fn gather<'a>(&'a self, into: &mut [&'a [u8]]) -> usize {
        let memory = self.segments.iter().take_while(|segment| segment.is_in_memory());
        let mut count = 0;
        for (target, segment) in into.iter_mut().zip(memory) {
            *target = segment.bytes();
            count += 1;
        }
        if count > 0 {
            into[0] = &into[0][self.sent..];
        }
        count
    }

    /// Whether more follows the `count` gathered slices (a file, or more memory than one call takes). If
    /// so, the sender may delay the bytes to send them together (MSG_MORE).
    pub fn more_after(&self, count: usize) -> bool {
        self.segments.len() > count
    }

    /// Records that `bytes` more of the front were sent.
    pub fn advance(&mut self, bytes: u64) {
        self.unsent = self.unsent.saturating_sub(bytes);
        let mut left = bytes;
        while let Some(front) = self.segments.front_mut() {
            if front.is_in_memory() {
                let rest = (front.bytes().len() - self.sent) as u64;
                if left < rest {
                    self.sent += usize::try_from(left).unwrap_or(usize::MAX);
                    return;
                }
                left -= rest;
                self.sent = 0;
            } else {
                let step = left.min(front.len());
                match front {
                    Segment::File(part) => part.range.start += step,
                    Segment::Piped(pipe) => pipe.drained(step),
                    _ => {}
                }
                left -= step;
                if !front.is_empty() {
                    return;
                }
            }
            self.segments.pop_front();
        }
    }

    /// Drops all segments because the connection broke, and counts their bytes as lost.
    pub fn clear(&mut self) {
        *self = Outbox { lost: self.lost + self.unsent, ..Outbox::default() };
    }

    /// Returns the number of lost bytes, and counts none of them any more: they are replaced by others.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Counts a segment that was pushed after the connection broke as lost.
    pub fn lose(&mut self, segment: &Segment) {
        self.lost += segment.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{File, Handle};
    use crate::segment::FileRange;

    fn drained(outbox: &mut Outbox, step: u64) -> (Vec<u8>, Vec<Range<u64>>) {
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        while let Some(front) = outbox.front() {
            match front {
                Front::Piped(_) => unreachable!("none is pushed"),
                Front::File(_, range) => ranges.push(range.start..(range.start + step).min(range.end)),
                Front::Bytes => {
                    let mut slices = [&[][..]; 4];
                    let count = outbox.gather(&mut slices);
                    bytes.extend(slices[..count].concat().iter().take(usize::try_from(step).unwrap()));
                }
            }
            let before = outbox.unsent();
            let sent = match outbox.front() {
                Some(Front::File(_, range)) => step.min(range.end - range.start),
                _ => {
                    let mut slices = [&[][..]; 4];
                    let count = outbox.gather(&mut slices);
                    step.min(slices[..count].iter().map(|s| s.len() as u64).sum())
                }
            };
            outbox.advance(sent);
            assert_eq!(outbox.unsent(), before - sent);
        }
        (bytes, ranges)
    }

    #[test]
    fn bytes_leave_in_order_each_once_however_few_go_at_a_time() {
        for step in 1..20 {
            let mut outbox = Outbox::default();
            outbox.push(Segment::Static(b"one "));
            outbox.push(Segment::Owned(Vec::new()));
            outbox.push(Segment::Owned(b"two ".to_vec()));
            outbox.push(Segment::Shared(b"three".to_vec().into()));
            let file = File::new(Handle::Simulated { inode: 7, cuts: 0, writes: false });
            outbox.push(Segment::File(FileRange { file, range: 5..9 }));
            outbox.push(Segment::Lease(Lease::owned(b" four".to_vec())));
            assert_eq!(outbox.unsent(), 22);
            let (bytes, ranges) = drained(&mut outbox, step);
            assert_eq!(String::from_utf8(bytes).unwrap(), "one two three four");
            assert_eq!((ranges[0].start, ranges.last().unwrap().end), (5, 9));
            assert_eq!(outbox.unsent(), 0);
        }
    }
    use crate::lease::Lease;
}
