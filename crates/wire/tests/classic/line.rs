//! Lines: independent of how the input is split, and bounded.

use plimsoll_wire::classic::{LINE_BYTES_MAX, Line, TooLong};

/// Returns the lines of `bytes`, fed in pieces that end at the given positions.
fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Result<Vec<Vec<u8>>, TooLong> {
    let (mut line, mut found, mut at) = (Line::default(), Vec::new(), 0);
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
fn lines_are_the_same_in_one_piece_in_two_and_byte_by_byte() {
    let bytes = b"get:alice:horse\nfile\r\n\nrest";
    let lines: Vec<Vec<u8>> = [&b"get:alice:horse"[..], b"file\r", b""].map(<[u8]>::to_vec).into();
    assert_eq!(feed(bytes, [bytes.len()]), Ok(lines.clone()));
    assert_eq!(feed(bytes, 1..=bytes.len()), Ok(lines.clone()));
    for cut in 0..bytes.len() {
        assert_eq!(feed(bytes, [cut, bytes.len()]), Ok(lines.clone()), "at {cut}");
    }
}

#[test]
fn the_longest_line_has_4096_bytes_however_they_come() {
    let longest = [&[b'x'; LINE_BYTES_MAX][..], b"\n"].concat();
    assert_eq!(feed(&longest, [longest.len()]).unwrap()[0].len(), 4096);
    assert_eq!(feed(&longest, 1..=longest.len()).unwrap()[0].len(), 4096);
    let longer = [b"x", &longest[..]].concat();
    assert_eq!(feed(&longer, [longer.len()]), Err(TooLong));
    assert_eq!(feed(&longer, 1..=longer.len()), Err(TooLong));
    assert_eq!(
        feed(&longer[..LINE_BYTES_MAX + 1], [LINE_BYTES_MAX + 1]),
        Err(TooLong),
        "its end is not awaited"
    );
}
