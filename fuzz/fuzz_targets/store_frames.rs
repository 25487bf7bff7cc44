//! Frames of an upload to a storage server.
//!
//! Invariants: frames do not depend on how the bytes are split; the bytes of the file come out in their
//! order; nothing follows the ending.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_io::Lease;
use plimsoll_store::remote::{Frame, Frames};

fuzz_target!(|bytes: &[u8]| {
    let whole = decode(bytes, [bytes.len()]);
    assert_eq!(whole, decode(bytes, 1..=bytes.len()), "byte by byte");
    let middle = usize::from(bytes.first().copied().unwrap_or_default()) % (bytes.len() + 1);
    assert_eq!(whole, decode(bytes, [middle, bytes.len()]), "in two pieces");
    assert!(whole.is_none_or(|(file, _)| file.len() <= bytes.len()));
});

/// Returns the bytes of the file, and the other frames with their offsets; `None` if a frame is invalid.
fn decode(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Option<(Vec<u8>, Vec<String>)> {
    let (mut frames, mut file, mut others, mut at) = (Frames::default(), Vec::new(), Vec::new(), 0);
    for cut in cuts {
        for frame in frames.read(Lease::owned(bytes[at..cut].to_vec())).ok()? {
            match frame {
                Frame::Bytes(more) => file.extend_from_slice(&more),
                other => others.push(format!("{other:?} at {}", file.len())),
            }
        }
        at = cut;
    }
    Some((file, others))
}
