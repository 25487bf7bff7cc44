//! Classic's lines, requests and responses.
//!
//! Invariants: the lines do not depend on how the bytes are split; a parsed request is written as the line
//! that it was parsed from; a written response parses again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::classic::{Answer, LineBuffer, Request, TooLong};
use plimsoll_wire::limits::CLASSIC_LINE_BYTES_MAX;

fuzz_target!(|bytes: &[u8]| {
    let whole = feed(bytes, [bytes.len()]);
    assert_eq!(whole, feed(bytes, 1..=bytes.len()), "byte by byte");
    let middle = usize::from(bytes.first().copied().unwrap_or_default()) % (bytes.len() + 1);
    assert_eq!(whole, feed(bytes, [middle, bytes.len()]), "in two pieces");
    for line in whole.0 {
        assert!(line.len() <= CLASSIC_LINE_BYTES_MAX && !line.contains(&b'\n'));
        let as_a_line = [&line[..], b"\n"].concat();
        if let Ok(request) = Request::parse(&line) {
            let mut written = Vec::new();
            assert_eq!(request.write(&mut written), Ok(()));
            assert_eq!(written, as_a_line);
        }
        if let Ok(answer) = Answer::parse(&line) {
            let mut written = Vec::new();
            answer.write(&mut written);
            assert!(Answer::parse(&written[..written.len() - 1]).is_ok());
        }
    }
});

fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> (Vec<Vec<u8>>, Result<(), TooLong>) {
    let (mut line, mut found, mut at) = (LineBuffer::default(), Vec::new(), 0);
    for cut in cuts {
        while at < cut {
            match line.take(&bytes[at..cut]) {
                Ok((taken, whole)) => {
                    assert!(taken > 0 && (whole.is_some() || at + taken == cut));
                    at += taken;
                    found.extend(whole.map(|line| line.to_vec()));
                }
                Err(TooLong) => return (found, Err(TooLong)),
            }
        }
    }
    (found, Ok(()))
}
