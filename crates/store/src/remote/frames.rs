//! The body of an upload to a remote store: bytes in frames, and a last frame that says how it ends.
//!
//! A frame is a letter, its length as a 32-bit big-endian number, and that many bytes. `D` has bytes of the
//! file. `P`, always empty, means "write and sync the received bytes". `E` has an [`Ending`] in JSON.
//!
//! Invariants: bytes of the file come out in their order, however the body is split. A truncated body has
//! no ending.

use plimsoll_io::Lease;

use crate::backend::Ending;
use crate::limits::ENDING_BYTES_MAX;

/// Bytes of a frame's head.
const HEAD_BYTES: usize = 5;

/// A decoded part of a body.
#[derive(Debug)]
pub enum Frame {
    /// Bytes of the file.
    Bytes(Lease),
    /// The received bytes are to be written and synced.
    Prepare,
    /// The body is complete.
    End(Ending),
}

/// Decodes frames.
#[derive(Debug, Default)]
pub struct Frames {
    /// The head of a frame, as far as it is received, or the received bytes of an ending.
    held: Vec<u8>,
    /// Bytes of the file that the present frame still has.
    left: usize,
    /// The length of the ending in bytes, once its head is received.
    ending: Option<usize>,
    has_ended: bool,
}

/// The body is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFrame;

impl Frames {
    /// Decodes received bytes. Bytes of the file are copied, so that a small piece does not keep a whole
    /// block.
    ///
    /// # Errors
    /// The bytes are not valid frames.
    pub fn read(&mut self, mut come: Lease) -> Result<Vec<Frame>, BadFrame> {
        let mut frames = Vec::new();
        while !come.is_empty() {
            if self.has_ended {
                return Err(BadFrame);
            } else if let Some(length) = self.ending {
                self.hold(&mut come, length - self.held.len());
                frames.extend(self.take_ending(length)?);
            } else if self.left == 0 {
                self.hold(&mut come, HEAD_BYTES - self.held.len());
                frames.extend(self.take_head()?);
            } else {
                frames.push(Frame::Bytes(self.take_bytes(&mut come)));
            }
        }
        Ok(frames)
    }

    fn hold(&mut self, come: &mut Lease, most: usize) {
        let taken = come.len().min(most);
        self.held.extend_from_slice(&come[..taken]);
        come.consume(taken);
    }

    fn take_bytes(&mut self, come: &mut Lease) -> Lease {
        let taken = come.len().min(self.left);
        self.left -= taken;
        let bytes = Lease::owned(come[..taken].to_vec());
        come.consume(taken);
        bytes
    }

    /// Takes the head of a frame once it is complete. Returns the frame if that is all of it.
    fn take_head(&mut self) -> Result<Option<Frame>, BadFrame> {
        let Some(&[kind, a, b, c, d]) = self.held.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        self.held.clear();
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).map_err(|_| BadFrame)?;
        match kind {
            b'D' => self.left = length,
            b'P' if length == 0 => return Ok(Some(Frame::Prepare)),
            b'E' if (1..=ENDING_BYTES_MAX).contains(&length) => self.ending = Some(length),
            _ => return Err(BadFrame),
        }
        Ok(None)
    }

    /// Takes the ending once it is complete.
    fn take_ending(&mut self, length: usize) -> Result<Option<Frame>, BadFrame> {
        if self.held.len() < length {
            return Ok(None);
        }
        self.has_ended = true;
        serde_json::from_slice(&self.held).map(|ending| Some(Frame::End(ending))).map_err(|_| BadFrame)
    }
}

/// The head of a frame with bytes of the file.
pub(super) fn data_head(bytes: u32) -> Vec<u8> {
    [&b"D"[..], &bytes.to_be_bytes()].concat()
}

/// Encodes the frame that has the received bytes written and synced.
pub(super) fn prepare() -> Vec<u8> {
    b"P\0\0\0\0".to_vec()
}

/// The last frame.
pub(super) fn ending(ending: &Ending) -> Vec<u8> {
    // Serialising strings and numbers into memory cannot fail.
    let json = serde_json::to_vec(ending).unwrap_or_default();
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
    [&b"E"[..], &length.to_be_bytes(), &json].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;

    fn body() -> Vec<u8> {
        let end =
            Ending::Commit { digests: vec![(Algorithm::Md5, vec![1; 16])], modified: None, spare_name: None };
        [data_head(3), b"abc".to_vec(), prepare(), data_head(0), data_head(2), b"de".to_vec(), ending(&end)]
            .concat()
    }

    /// Decodes a body that is received in these pieces.
    fn read(pieces: &[&[u8]]) -> Result<(Vec<u8>, Vec<String>), BadFrame> {
        let (mut frames, mut bytes, mut others) = (Frames::default(), Vec::new(), Vec::new());
        for piece in pieces {
            for frame in frames.read(Lease::owned(piece.to_vec()))? {
                match frame {
                    Frame::Bytes(more) => bytes.extend_from_slice(&more),
                    Frame::Prepare => others.push(format!("prepare at {}", bytes.len())),
                    Frame::End(ending) => others.push(format!("{ending:?}")),
                }
            }
        }
        Ok((bytes, others))
    }

    #[test]
    fn a_body_is_the_same_wherever_it_is_split() {
        let body = body();
        let whole = read(&[&body]).unwrap();
        assert_eq!((whole.0.as_slice(), whole.1.len()), (&b"abcde"[..], 2), "{whole:?}");
        assert_eq!(whole.1[0], "prepare at 3");
        for at in 0..=body.len() {
            assert_eq!(read(&[&body[..at], &body[at..]]).unwrap(), whole, "split at {at}");
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(read(&bytes).unwrap(), whole);
    }

    #[test]
    fn a_body_that_was_cut_off_has_no_ending() {
        let body = body();
        for at in 0..body.len() {
            let (_, others) = read(&[&body[..at]]).unwrap();
            assert!(!others.iter().any(|other| other.starts_with("Commit")), "cut at {at}");
        }
    }

    #[test]
    fn a_malformed_frame_is_refused() {
        let after = [body(), b"D".to_vec()].concat();
        for bad in [&b"X\0\0\0\0"[..], b"P\0\0\0\x01", b"E\xff\0\0\0", b"E\0\0\0\0", b"E\0\0\0\x01x", &after]
        {
            assert_eq!(read(&[bad]).unwrap_err(), BadFrame, "{bad:?}");
        }
    }
}
