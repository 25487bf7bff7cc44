//! Bodies, above all in the chunked coding: no bytes may be read as two bodies.
//!
//! Not here: heads. Invariants: whole, byte by byte and in two pieces, a body has the same data, the same
//! end and the same refusal, decoded in place too. It equals the result of a simple reference parser.
//! Framing is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http::body::BodyDecoder;
use plimsoll_wire::http::chunked::{CHUNK_END, ChunkedDecoder, LAST_CHUNK, Step, write_chunk_header};
use plimsoll_wire::http::refusal::Refusal;
use plimsoll_wire::http::response::Framing;
use plimsoll_wire::limits::{CHUNK_EXT_TOTAL_BYTES_MAX, TRAILER_BYTES_MAX, TRAILER_FIELDS_MAX};

#[derive(Debug, Default, PartialEq, Eq)]
struct Body {
    data: Vec<u8>,
    consumed: usize,
    ended: bool,
    refusal: Option<Refusal>,
}

fuzz_target!(|bytes: &[u8]| {
    let whole = feed(bytes, [bytes.len()]);
    assert_eq!(whole, feed(bytes, 1..=bytes.len()), "byte by byte");
    let middle = usize::from(bytes.first().copied().unwrap_or_default()) % (bytes.len() + 1);
    assert_eq!(whole, feed(bytes, [middle, bytes.len()]), "in two pieces");
    for framing in [Framing::Chunked, Framing::Length(middle as u64), Framing::UntilClose] {
        decoded_in_place_alike(framing, bytes, middle, &whole);
    }
    framing_is_bounded(&whole);
    if whole.ended {
        assert_eq!(read_plainly(&bytes[..whole.consumed]).as_ref(), Some(&whole.data));
    }
    written_is_read(bytes);
});

fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Body {
    let mut decoder = ChunkedDecoder::new();
    let mut body = Body::default();
    for cut in cuts {
        while body.consumed < cut && !body.ended && body.refusal.is_none() {
            let piece = &bytes[body.consumed..cut];
            match decoder.decode(piece) {
                Ok(Step::Data { skip, len }) => {
                    assert!(len > 0);
                    body.data.extend_from_slice(&piece[skip..skip + len]);
                    body.consumed += skip + len;
                }
                Ok(Step::More { consumed }) => {
                    assert_eq!(consumed, piece.len());
                    body.consumed += consumed;
                }
                Ok(Step::End { consumed }) => {
                    body.consumed += consumed;
                    body.ended = true;
                }
                Err(refusal) => {
                    assert_eq!(decoder.decode(b"0\r\n\r\n"), Err(refusal), "stays refused");
                    body.refusal = Some(refusal);
                }
            }
        }
    }
    assert_eq!(decoder.is_ended(), body.ended);
    // The position of a refusal depends on the piece that it is in.
    body.consumed *= usize::from(body.refusal.is_none());
    body
}

/// Checks the body that [`BodyDecoder`] finds in two pieces.
fn decoded_in_place_alike(framing: Framing, bytes: &[u8], middle: usize, chunked: &Body) {
    let (mut decoder, mut data, mut consumed) = (BodyDecoder::new(framing), Vec::new(), 0);
    for end in [middle, bytes.len()] {
        let mut piece = bytes[consumed..end].to_vec();
        match decoder.decode(&mut piece) {
            Ok(decoded) => {
                data.extend_from_slice(&piece[..decoded.len]);
                consumed += decoded.consumed;
            }
            Err(refusal) => return assert_eq!((framing, Some(refusal)), (Framing::Chunked, chunked.refusal)),
        }
    }
    match framing {
        Framing::Length(_) => assert_eq!(data, bytes[..middle]),
        Framing::UntilClose | Framing::None => assert_eq!(data, bytes),
        Framing::Chunked => {
            assert_eq!((&data, consumed), (&chunked.data, chunked.consumed));
            assert_eq!(decoder.has_ended(), chunked.ended);
        }
    }
}

/// Checks that framing is at most 20 bytes per byte of data, beyond the named limits.
fn framing_is_bounded(body: &Body) {
    let limits = usize::from(CHUNK_EXT_TOTAL_BYTES_MAX)
        + usize::from(TRAILER_BYTES_MAX)
        + 2 * usize::from(TRAILER_FIELDS_MAX);
    assert!(body.consumed <= body.data.len() * 21 + limits + 40);
}

/// Parses the grammar in one piece and without limits, as the reference.
fn read_plainly(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let line = std::str::from_utf8(bytes[..end].split(|&byte| byte == b';').next()?).ok()?;
        assert!(!line.is_empty() && line.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let len = usize::try_from(u64::from_str_radix(line, 16).ok()?).ok()?;
        bytes = &bytes[end + 2..];
        if len == 0 {
            assert!(bytes == b"\r\n" || bytes.ends_with(b"\r\n\r\n"));
            return Some(data);
        }
        data.extend_from_slice(bytes.get(..len)?);
        bytes = bytes.get(len..)?.strip_prefix(b"\r\n")?;
    }
}

fn written_is_read(bytes: &[u8]) {
    let mut out = Vec::new();
    for chunk in bytes.chunks(7) {
        write_chunk_header(chunk.len() as u64, &mut out);
        out.extend_from_slice(chunk);
        out.extend_from_slice(CHUNK_END);
    }
    out.extend_from_slice(LAST_CHUNK);
    let body = feed(&out, [out.len() / 2, out.len()]);
    assert!(body.ended && body.data == bytes && body.consumed == out.len());
}
