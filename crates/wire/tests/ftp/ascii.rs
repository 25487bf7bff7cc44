//! Text on the data connection: independent of how it is split, and nothing lost but the form of line ends.

use plimsoll_wire::ftp::ascii::{FromNetwork, ToNetwork};
use proptest::prelude::*;

/// Splits bytes into pieces that end at the given positions.
fn pieces(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Vec<&[u8]> {
    let mut at = 0;
    cuts.into_iter().map(|cut| &bytes[std::mem::replace(&mut at, cut)..cut]).collect()
}

fn sent(pieces: &[&[u8]]) -> Vec<u8> {
    let (mut to, mut measuring) = (ToNetwork::default(), ToNetwork::default());
    let mut out = Vec::new();
    for piece in pieces {
        let before = out.len();
        to.convert(piece, &mut out);
        assert_eq!((out.len() - before) as u64, measuring.measure(piece), "{}", piece.escape_ascii());
    }
    out
}

fn stored(pieces: &[&[u8]]) -> Vec<u8> {
    let mut from = FromNetwork::default();
    let mut out = Vec::new();
    for piece in pieces {
        from.convert(piece, &mut out);
    }
    from.finish(&mut out);
    out
}

fn every_cut(bytes: &[u8], convert: fn(&[&[u8]]) -> Vec<u8>, expected: &[u8]) {
    let shown = bytes.escape_ascii();
    assert_eq!(convert(&[bytes]), expected, "{shown}");
    assert_eq!(convert(&pieces(bytes, 1..=bytes.len())), expected, "{shown}");
    for cut in 0..=bytes.len() {
        assert_eq!(convert(&pieces(bytes, [cut, cut, bytes.len()])), expected, "{shown} at {cut}");
    }
}

#[test]
fn line_feeds_of_a_file_are_sent_as_cr_lf() {
    for (file, network) in [
        (&b""[..], &b""[..]),
        (b"a", b"a"),
        (b"\n", b"\r\n"),
        (b"a\nb\n\nc", b"a\r\nb\r\n\r\nc"),
        (b"a\r\nb\r\n", b"a\r\nb\r\n"),
        (b"a\n\r\n\n", b"a\r\n\r\n\r\n"),
        (b"a\rb\r", b"a\rb\r"),
        (b"\r\r\n\n\r", b"\r\r\n\r\n\r"),
        (b"\r\0\xff\n", b"\r\0\xff\r\n"),
    ] {
        every_cut(file, sent, network);
    }
}

#[test]
fn received_cr_lf_is_stored_as_a_line_feed() {
    for (network, file) in [
        (&b""[..], &b""[..]),
        (b"a", b"a"),
        (b"\r\n", b"\n"),
        (b"a\r\nb\r\n\r\nc", b"a\nb\n\nc"),
        (b"a\nb\n", b"a\nb\n"),
        (b"a\rb\r", b"a\rb\r"),
        (b"\r\r\n\r\r", b"\r\n\r\r"),
        (b"\r\0\r\n", b"\r\0\n"),
    ] {
        every_cut(network, stored, file);
    }
}

proptest! {
    #[test]
    fn text_survives_conversion_to_the_network_and_back(
        file in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let network = sent(&[&file]);
        prop_assert_eq!(&sent(&[&network]), &network, "once is as good as twice");
        let cut = cut.index(network.len() + 1);
        let back = stored(&pieces(&network, [cut, network.len()]));
        if !file.windows(2).any(|pair| pair == b"\r\n") {
            prop_assert_eq!(&back, &file);
        }
        let lines = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
        prop_assert_eq!(lines(&back), lines(&file));
    }

    #[test]
    fn any_bytes_convert_alike_whole_and_byte_by_byte(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..60),
    ) {
        for convert in [sent, stored] {
            prop_assert_eq!(convert(&[&bytes]), convert(&pieces(&bytes, 1..=bytes.len())));
        }
    }
}
