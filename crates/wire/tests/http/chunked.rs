//! The chunked coding: the data is independent of how the input is split, and nothing lenient is accepted.

use plimsoll_wire::http::chunked::{CHUNK_END, ChunkedDecoder, LAST_CHUNK, Step, write_chunk_header};
use plimsoll_wire::http::refusal::Refusal;
use plimsoll_wire::limits::{
    CHUNK_EXT_BYTES_MAX, CHUNK_EXT_TOTAL_BYTES_MAX, TRAILER_BYTES_MAX, TRAILER_FIELDS_MAX,
};
use proptest::prelude::*;

/// The result of decoding a body: its data, the bytes consumed, and whether it ended.
#[derive(Debug, PartialEq, Eq)]
struct Body {
    data: Vec<u8>,
    consumed: usize,
    ended: bool,
}

/// Decodes a body in pieces that end at the given positions.
fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Result<Body, Refusal> {
    let mut decoder = ChunkedDecoder::new();
    let mut body = Body { data: Vec::new(), consumed: 0, ended: false };
    for cut in cuts {
        while body.consumed < cut && !body.ended {
            let piece = &bytes[body.consumed..cut];
            match decoder.decode(piece)? {
                Step::Data { skip, len } => {
                    assert!(len > 0);
                    body.data.extend_from_slice(&piece[skip..skip + len]);
                    body.consumed += skip + len;
                }
                Step::More { consumed } => {
                    assert_eq!(consumed, piece.len());
                    body.consumed += consumed;
                }
                Step::End { consumed } => {
                    body.consumed += consumed;
                    body.ended = true;
                }
            }
        }
    }
    assert_eq!(decoder.is_ended(), body.ended);
    Ok(body)
}

fn whole(bytes: &[u8]) -> Result<Body, Refusal> {
    feed(bytes, [bytes.len()])
}

const GOOD: &[(&str, &str)] = &[
    ("0\r\n\r\n", ""),
    ("000\r\n\r\n", ""),
    ("3\r\nabc\r\n0\r\n\r\n", "abc"),
    (
        "1\r\na\r\n00000002\r\nbc\r\nA\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n",
        "abc01234567890123456789a",
    ),
    ("3;name=value\r\nabc\r\n0;x\r\n\r\n", "abc"),
    ("3;a=\"b;c\";d\r\n\r\n\r\r\n0\r\nTrailer: x\r\nOther:\r\n\r\n", "\r\n\r"),
    ("5\r\n0\r\n\r\n\r\n0\r\n\r\n", "0\r\n\r\n"),
];

#[test]
fn a_chunked_body_decodes_alike_whole_split_and_byte_by_byte() {
    for (text, data) in GOOD {
        let bytes = text.as_bytes();
        let expected = Body { data: data.as_bytes().to_vec(), consumed: bytes.len(), ended: true };
        assert_eq!(whole(bytes).as_ref(), Ok(&expected), "{text:?}");
        assert_eq!(feed(bytes, 1..=bytes.len()).as_ref(), Ok(&expected), "{text:?}");
        for cut in 0..bytes.len() {
            assert_eq!(feed(bytes, [cut, bytes.len()]).as_ref(), Ok(&expected), "{text:?} at {cut}");
            assert!(!whole(&bytes[..cut]).unwrap().ended, "{text:?} cut at {cut}");
        }
    }
}

#[test]
fn bytes_behind_the_last_chunk_belong_to_the_next_message() {
    for (text, data) in GOOD {
        let followed = format!("{text}GET / HTTP/1.1\r\n");
        let expected = Body { data: data.as_bytes().to_vec(), consumed: text.len(), ended: true };
        assert_eq!(whole(followed.as_bytes()), Ok(expected));
    }
    let mut decoder = ChunkedDecoder::new();
    assert_eq!(decoder.decode(LAST_CHUNK), Ok(Step::End { consumed: 5 }));
    assert_eq!(decoder.decode(b"more"), Ok(Step::End { consumed: 0 }));
}

#[test]
fn chunk_data_is_returned_as_it_arrives() {
    let mut decoder = ChunkedDecoder::new();
    assert_eq!(decoder.decode(b""), Ok(Step::More { consumed: 0 }));
    assert_eq!(decoder.decode(b"ff"), Ok(Step::More { consumed: 2 }));
    assert_eq!(decoder.decode(b"ff\r\nabc"), Ok(Step::Data { skip: 4, len: 3 }));
    assert_eq!(decoder.decode(b""), Ok(Step::More { consumed: 0 }));
    assert_eq!(decoder.decode(&[b'x'; 70_000]), Ok(Step::Data { skip: 0, len: 65_532 }));
    assert_eq!(decoder.decode(b"\r\n0\r\n"), Ok(Step::More { consumed: 5 }));
}

#[test]
fn the_largest_chunk_size_does_not_overflow() {
    let mut decoder = ChunkedDecoder::new();
    assert_eq!(decoder.decode(b"FFFFFFFFFFFFFFFF\r\nx"), Ok(Step::Data { skip: 18, len: 1 }));
    assert_eq!(whole(b"10000000000000000\r\n"), Err(Refusal::ChunkSize));
    assert_eq!(whole(b"00000000000000000\r\n"), Err(Refusal::ChunkSize), "nor is it padded without end");
}

#[test]
fn malformed_chunk_framing_is_a_permanent_error() {
    for (text, refusal) in [
        ("\r\n", Refusal::ChunkSize),
        (";x\r\n", Refusal::ChunkSize),
        ("x\r\n", Refusal::ChunkSize),
        ("0x3\r\nabc\r\n", Refusal::ChunkSize),
        ("-3\r\n", Refusal::ChunkSize),
        ("+3\r\n", Refusal::ChunkSize),
        (" 3\r\n", Refusal::ChunkSize),
        ("3 \r\n", Refusal::ChunkSize),
        ("3\t;x\r\n", Refusal::ChunkSize),
        ("3_0\r\n", Refusal::ChunkSize),
        ("3,3\r\n", Refusal::ChunkSize),
        ("3\nabc", Refusal::ChunkSize),
        ("3\rabc", Refusal::ChunkLineEnd),
        ("3\r\r\nabc", Refusal::ChunkLineEnd),
        ("3;x\nabc", Refusal::ChunkLineEnd),
        ("3;x\rabc", Refusal::ChunkLineEnd),
        ("3;x\0\r\nabc", Refusal::ChunkLineEnd),
        ("3\r\nabcd\r\n", Refusal::ChunkLineEnd),
        ("3\r\nabc\n", Refusal::ChunkLineEnd),
        ("3\r\nabc\r0", Refusal::ChunkLineEnd),
        ("3\r\nabc0\r\n", Refusal::ChunkLineEnd),
        ("0\n\n", Refusal::ChunkSize),
        ("0\r\n\n", Refusal::TrailerBad),
        ("0\r\n\rx", Refusal::ChunkLineEnd),
        ("0\r\nno colon\r\n\r\n", Refusal::TrailerBad),
        ("0\r\n: x\r\n\r\n", Refusal::TrailerBad),
        ("0\r\n folded: x\r\n\r\n", Refusal::TrailerBad),
        ("0\r\nA: x\n\r\n", Refusal::TrailerBad),
        ("0\r\nA: x\r\r\n", Refusal::ChunkLineEnd),
        ("0\r\nA: \0\r\n\r\n", Refusal::TrailerBad),
        ("0\r\nA : x\r\n\r\n", Refusal::TrailerBad),
    ] {
        let bytes = text.as_bytes();
        assert_eq!(whole(bytes), Err(refusal), "{text:?}");
        assert_eq!(feed(bytes, 1..=bytes.len()), Err(refusal), "{text:?} byte by byte");
        let mut decoder = ChunkedDecoder::new();
        let mut at = 0;
        while let Ok(step) = decoder.decode(&bytes[at..]) {
            at += match step {
                Step::Data { skip, len } => skip + len,
                Step::More { consumed } | Step::End { consumed } => consumed,
            };
        }
        assert_eq!(decoder.decode(b"3\r\nabc\r\n"), Err(refusal), "{text:?} and after");
        assert_eq!(refusal.status().code(), 400);
    }
}

#[test]
fn chunk_extensions_above_the_limit_are_rejected() {
    let of = |len: usize| format!("1;{}\r\nx\r\n", "e".repeat(len - 1));
    let most = usize::from(CHUNK_EXT_BYTES_MAX);
    assert!(whole(of(most).as_bytes()).is_ok());
    assert_eq!(whole(of(most + 1).as_bytes()), Err(Refusal::ChunkExtension));
    let chunks = usize::from(CHUNK_EXT_TOTAL_BYTES_MAX / CHUNK_EXT_BYTES_MAX);
    let full = of(most).repeat(chunks);
    assert!(whole(format!("{full}1\r\nx\r\n").as_bytes()).is_ok());
    assert_eq!(whole(format!("{full}1;\r\nx\r\n").as_bytes()), Err(Refusal::ChunkExtension));
}

#[test]
fn trailers_above_the_limit_are_rejected() {
    // CRLF is not counted.
    let of = |len: usize| format!("0\r\nT:{}\r\n\r\n", "t".repeat(len - 3));
    let most = usize::from(TRAILER_BYTES_MAX);
    assert!(whole(of(most).as_bytes()).unwrap().ended);
    assert_eq!(whole(of(most + 1).as_bytes()), Err(Refusal::TrailerTooLong));
    let of = |count: usize| format!("0\r\n{}\r\n", "T: x\r\n".repeat(count));
    let most = usize::from(TRAILER_FIELDS_MAX);
    assert!(whole(of(most).as_bytes()).unwrap().ended);
    assert_eq!(whole(of(most + 1).as_bytes()), Err(Refusal::TrailerTooLong));
}

#[test]
fn a_chunk_header_is_the_size_in_hexadecimal() {
    let header = |len: u64| {
        let mut out = Vec::new();
        write_chunk_header(len, &mut out);
        String::from_utf8(out).unwrap()
    };
    for len in [1, 9, 10, 15, 16, 255, 256, 65_536, u64::from(u32::MAX), u64::MAX] {
        assert_eq!(header(len), format!("{len:x}\r\n"));
    }
    assert_eq!(header(0), "", "which would end the body");
}

fn encode(chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
        write_chunk_header(chunk.len() as u64, &mut out);
        out.extend_from_slice(chunk);
        out.extend_from_slice(CHUNK_END);
    }
    out.extend_from_slice(LAST_CHUNK);
    out
}

proptest! {
    #[test]
    fn a_written_chunked_body_decodes_however_it_is_split(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let bytes = encode(&chunks);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.sort_unstable();
        cuts.push(bytes.len());
        let expected = Body { data: chunks.concat(), consumed: bytes.len(), ended: true };
        prop_assert_eq!(feed(&bytes, cuts), Ok(expected));
    }

    #[test]
    fn any_bytes_parse_alike_whole_and_byte_by_byte(
        text in "([0-9a-f]|\r\n|\r|\n|;|x|: ){0,60}",
    ) {
        let bytes = text.as_bytes();
        prop_assert_eq!(whole(bytes), feed(bytes, 1..=bytes.len()));
    }
}
