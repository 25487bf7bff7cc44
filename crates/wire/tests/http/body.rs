//! Bodies of messages: they do not depend on how the input is split, and each ends where its framing says.

use plimsoll_wire::http::body::BodyDecoder;
use plimsoll_wire::http::refusal::Refusal;
use plimsoll_wire::http::response::Framing;

const CHUNKED: &[u8] = b"5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nDigest: a, b\r\nX-Empty:\r\n\r\n";

/// Decodes two pieces as two receives. Returns the body, and the bytes behind it.
fn decode(decoder: &mut BodyDecoder, pieces: [&[u8]; 2]) -> (Vec<u8>, Vec<u8>) {
    let (mut body, mut rest) = (Vec::new(), Vec::new());
    for piece in pieces {
        rest.extend_from_slice(piece);
        let decoded = decoder.decode(&mut rest).unwrap();
        body.extend_from_slice(&rest[..decoded.len]);
        rest.drain(..decoded.consumed);
    }
    (body, rest)
}

/// Decodes `text` in two pieces, cut at every byte, and asserts the body and the bytes behind it.
fn assert_decoded(framing: Framing, text: &[u8], body: &[u8], rest: &[u8]) {
    for cut in 0..=text.len() {
        let mut decoder = BodyDecoder::new(framing);
        let found = decode(&mut decoder, text.split_at(cut).into());
        assert_eq!(found, (body.to_vec(), rest.to_vec()), "{framing:?}, cut at {cut}");
    }
}

#[test]
fn a_body_ends_where_its_framing_says_however_it_is_split() {
    assert_decoded(Framing::None, b"next", b"", b"next");
    assert_decoded(Framing::Length(0), b"next", b"", b"next");
    assert_decoded(Framing::Length(6), b"hello!next", b"hello!", b"next");
    assert_decoded(Framing::Chunked, &[CHUNKED, b"next"].concat(), b"hello!", b"next");
    assert_decoded(Framing::UntilClose, b"hello!next", b"hello!next", b"");
}

#[test]
fn a_body_that_is_cut_short_has_no_end() {
    for (framing, text) in [(Framing::Length(7), &b"hello!"[..]), (Framing::Chunked, &CHUNKED[..30])] {
        let mut decoder = BodyDecoder::new(framing);
        decode(&mut decoder, [text, b""]);
        assert!(!decoder.has_ended() && !decoder.close(), "{framing:?}");
    }
    let mut decoder = BodyDecoder::new(Framing::UntilClose);
    decode(&mut decoder, [b"hello!", b""]);
    assert!(!decoder.has_ended() && decoder.close() && decoder.has_ended());
    assert_eq!(decode(&mut decoder, [b"next", b""]).1, b"next");
}

#[test]
fn the_missing_and_the_plain_bytes_are_known_unless_the_body_is_chunked() {
    let mut decoder = BodyDecoder::new(Framing::Length(8));
    decode(&mut decoder, [b"abc", b""]);
    assert_eq!((decoder.left(), decoder.plain()), (Some(5), 5));
    decoder.skip(5);
    assert!(decoder.has_ended());
    assert_eq!((decoder.left(), decoder.plain()), (Some(0), 0));
    let chunked = BodyDecoder::new(Framing::Chunked);
    assert_eq!((chunked.left(), chunked.plain()), (None, 0));
    let mut open = BodyDecoder::new(Framing::UntilClose);
    open.skip(5);
    assert_eq!((open.left(), open.plain()), (None, u64::MAX));
    assert!(open.close());
    assert_eq!((open.left(), open.plain()), (Some(0), 0));
}

#[test]
fn malformed_chunks_are_refused_for_good() {
    let mut decoder = BodyDecoder::new(Framing::Chunked);
    assert_eq!(decoder.refusal(), None);
    assert_eq!(decoder.decode(&mut b"1\r\nab".to_vec()), Err(Refusal::ChunkLineEnd));
    assert_eq!(decoder.decode(&mut b"0\r\n\r\n".to_vec()), Err(Refusal::ChunkLineEnd));
    assert_eq!(decoder.refusal(), Some(Refusal::ChunkLineEnd));
    assert!(!decoder.has_ended() && !decoder.close());
}

#[test]
fn trailers_are_kept_on_request_however_the_body_is_split() {
    for cut in 0..=CHUNKED.len() {
        let mut decoder = BodyDecoder::keeping_trailers(Framing::Chunked);
        decode(&mut decoder, CHUNKED.split_at(cut).into());
        let trailers: Vec<_> = decoder.trailers().collect();
        assert_eq!(trailers, [(&b"Digest"[..], &b"a, b"[..]), (b"X-Empty", b"")], "cut at {cut}");
    }
    let mut decoder = BodyDecoder::new(Framing::Chunked);
    decode(&mut decoder, [CHUNKED, b""]);
    assert_eq!(decoder.trailers().count(), 0, "they are discarded by default");
}
