//! Lines: independent of how the input is split, and bounded.

use plimsoll_wire::classic::{LineBuffer, TooLong};
use plimsoll_wire::limits::CLASSIC_LINE_BYTES_MAX;

/// Returns the lines of `bytes`, fed in pieces that end at the given positions.
fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Result<Vec<Vec<u8>>, TooLong> {
    let (mut line, mut found, mut at) = (LineBuffer::default(), Vec::new(), 0);
    for cut in cuts {
        while at < cut {
            let (taken, whole) = line.take(&bytes[at..cut])?;
            assert!(taken > 0 && (whole.is_some() || at + taken == cut));
            at += taken;
            found.extend(whole.map(|line| line.to_vec()));
        }
    }
    Ok(found)
}

#[test]
fn lines_parse_alike_whole_split_and_byte_by_byte() {
    let bytes = b"get:alice:horse\nfile\r\n\nrest";
    let lines: Vec<Vec<u8>> = [&b"get:alice:horse"[..], b"file\r", b""].map(<[u8]>::to_vec).into();
    assert_eq!(feed(bytes, [bytes.len()]), Ok(lines.clone()));
    assert_eq!(feed(bytes, 1..=bytes.len()), Ok(lines.clone()));
    for cut in 0..bytes.len() {
        assert_eq!(feed(bytes, [cut, bytes.len()]), Ok(lines.clone()), "at {cut}");
    }
}

#[test]
fn a_line_above_4096_bytes_is_rejected_however_it_is_split() {
    let longest = [&[b'x'; CLASSIC_LINE_BYTES_MAX][..], b"\n"].concat();
    assert_eq!(feed(&longest, [longest.len()]).unwrap()[0].len(), 4096);
    assert_eq!(feed(&longest, 1..=longest.len()).unwrap()[0].len(), 4096);
    let longer = [b"x", &longest[..]].concat();
    assert_eq!(feed(&longer, [longer.len()]), Err(TooLong));
    assert_eq!(feed(&longer, 1..=longer.len()), Err(TooLong));
    assert_eq!(
        feed(&longer[..CLASSIC_LINE_BYTES_MAX + 1], [CLASSIC_LINE_BYTES_MAX + 1]),
        Err(TooLong),
        "its end is not awaited"
    );
}
