//! Forms: no bytes may be read as two forms.
//!
//! Not here: the storage of the files. Invariants: whole, byte by byte and in two pieces, a form has the
//! same parts, the same bytes and the same error. The output is not longer than the input.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http::form::{BadForm, Event, FormDecoder};

const TYPE: &[u8] = b"multipart/form-data; boundary=b";

fuzz_target!(|bytes: &[u8]| {
    // The input is tried as a Content-Type, too.
    let _ = FormDecoder::of(bytes);
    let whole = feed(bytes, [bytes.len()]);
    assert_eq!(whole, feed(bytes, 1..=bytes.len()), "byte by byte");
    let middle = usize::from(bytes.first().copied().unwrap_or_default()) % (bytes.len() + 1);
    assert_eq!(whole, feed(bytes, [middle, bytes.len()]), "in two pieces");
    assert!(whole.0.len() <= bytes.len());
});

/// Returns all data, the other events in order, and the result.
fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> (Vec<u8>, Vec<Event>, Result<(), BadForm>) {
    let mut decoder = FormDecoder::of(TYPE).expect("a form").expect("a boundary");
    let (mut data, mut others, mut from) = (Vec::new(), Vec::new(), 0);
    for cut in cuts {
        let mut events = Vec::new();
        let pushed = decoder.push(&bytes[from..cut], &mut events);
        from = cut;
        for event in events {
            match event {
                Event::Data(bytes) => data.extend_from_slice(&bytes),
                other => others.push(other),
            }
        }
        if let Err(bad) = pushed {
            return (data, others, Err(bad));
        }
    }
    (data, others, Ok(()))
}
