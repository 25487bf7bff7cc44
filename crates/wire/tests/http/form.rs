//! Forms: the parts are independent of how the input is split, and malformed forms are refused.

use plimsoll_wire::http::form::{BadForm, Event, FormDecoder};
use plimsoll_wire::limits::{FORM_BOUNDARY_BYTES_MAX, FORM_PADDING_BYTES_MAX, FORM_PART_HEAD_BYTES_MAX};
use proptest::prelude::*;

const TYPE: &[u8] = b"multipart/form-data; boundary=b";

/// A form as sent by curl 8 and Firefox, with lines ended by CRLF.
const FORM: &str = "--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n\
    --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a;b \\\"c\\\".txt\"\r\n\
    Content-Type: text/plain\r\n\r\none\r\n--not\r\n--\r\n\r\n--b \t\r\n\
    content-disposition: Form-Data; filename=plain.bin; name=x\r\n\r\n\r\n--b--\r\nafter";

/// A decoded form: the name and the bytes of each part.
type Parts = Vec<(Option<String>, String)>;

fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Result<(Parts, bool), BadForm> {
    let mut decoder = FormDecoder::of(TYPE).unwrap().unwrap();
    let (mut parts, mut open, mut from) = (Parts::new(), false, 0);
    for cut in cuts {
        let mut events = Vec::new();
        decoder.push(&bytes[from..cut], &mut events)?;
        from = cut;
        for event in events {
            match event {
                Event::Part { filename } => {
                    assert!(!std::mem::replace(&mut open, true));
                    let name = filename.map(|name| String::from_utf8(name).unwrap());
                    parts.push((name, String::new()));
                }
                Event::Data(data) => {
                    assert!(open && !data.is_empty());
                    parts.last_mut().unwrap().1 += std::str::from_utf8(&data).unwrap();
                }
                Event::PartEnd => assert!(std::mem::take(&mut open)),
                Event::End => assert!(!open && decoder.is_ended()),
            }
        }
    }
    Ok((parts, decoder.is_ended()))
}

fn expected() -> Parts {
    let part = |name: Option<&str>, bytes: &str| (name.map(str::to_owned), bytes.to_owned());
    vec![
        part(None, "hello"),
        part(Some("a;b \"c\".txt"), "one\r\n--not\r\n--\r\n"),
        part(Some("plain.bin"), ""),
    ]
}

#[test]
fn a_form_has_the_same_parts_wherever_it_is_split() {
    let bytes = FORM.as_bytes();
    assert_eq!(feed(bytes, [bytes.len()]), Ok((expected(), true)), "whole");
    assert_eq!(feed(bytes, 1..=bytes.len()), Ok((expected(), true)), "byte by byte");
    for middle in 0..bytes.len() {
        assert_eq!(feed(bytes, [middle, bytes.len()]), Ok((expected(), true)), "cut at {middle}");
    }
}

#[test]
fn a_truncated_form_has_no_end_and_no_prefix_is_rejected() {
    let end = FORM.find("--b--").unwrap() + 4;
    for length in 0..=end {
        let fed = feed(&FORM.as_bytes()[..length], [length]);
        assert!(matches!(fed, Ok((_, false))), "{length}: {fed:?}");
    }
}

#[test]
fn a_preamble_before_the_first_boundary_is_ignored() {
    let form = format!("ignored\r\n--bu\r\n--{}", &FORM[2..]);
    assert_eq!(feed(form.as_bytes(), [form.len()]), Err(BadForm::Delimiter), "a boundary must end its line");
    let form = format!("ignored --b\r\n{FORM}");
    assert_eq!(feed(form.as_bytes(), [form.len()]), Ok((expected(), true)));
}

#[test]
fn a_malformed_part_is_a_permanent_error() {
    let long = format!("--b\r\nX: {}\r\n\r\n", "x".repeat(FORM_PART_HEAD_BYTES_MAX));
    let padded = format!("--b{}\r\n", " ".repeat(FORM_PADDING_BYTES_MAX + 1));
    for (form, bad) in [
        ("--bx", BadForm::Delimiter),
        ("--b\rx", BadForm::Delimiter),
        ("--b-x", BadForm::Delimiter),
        (padded.as_str(), BadForm::Delimiter),
        ("--b\r\n\r\nno head\r\n--b--", BadForm::Disposition),
        ("--b\r\nContent-Disposition: attachment; filename=a\r\n\r\n", BadForm::Disposition),
        (long.as_str(), BadForm::HeadTooLong),
    ] {
        assert_eq!(feed(form.as_bytes(), [form.len()]), Err(bad), "{form:.20}");
        let mut decoder = FormDecoder::of(TYPE).unwrap().unwrap();
        let mut events = Vec::new();
        assert_eq!(decoder.push(form.as_bytes(), &mut events), Err(bad));
        assert_eq!(decoder.push(FORM.as_bytes(), &mut events), Err(bad), "it stays refused");
    }
}

#[test]
fn only_a_form_with_a_valid_boundary_is_decoded() {
    for other in ["", "text/plain", "multipart/mixed; boundary=b", "application/json; boundary=b"] {
        assert!(FormDecoder::of(other.as_bytes()).is_none(), "{other}");
    }
    let long = format!("multipart/form-data; boundary={}", "b".repeat(FORM_BOUNDARY_BYTES_MAX + 1));
    for bad in
        ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"\"", &long]
    {
        assert!(matches!(FormDecoder::of(bad.as_bytes()), Some(Err(BadForm::Boundary))), "{bad}");
    }
    for good in ["Multipart/Form-Data; charset=x; Boundary=\"a b\"", "multipart/form-data;boundary=--x'()"] {
        let decoded = FormDecoder::of(good.as_bytes());
        assert_eq!(decoded.is_some_and(|decoded| decoded.is_ok()), !good.contains("'()"), "{good}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic_and_splits_change_nothing(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just(b"\r\n--b".to_vec()), Just(b"--".to_vec()), Just(b"\r\n".to_vec()),
                Just(b"Content-Disposition: form-data; filename=f".to_vec()),
                proptest::collection::vec(any::<u8>(), 0..4),
            ],
            0..24,
        ),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes = [b"--b".to_vec(), pieces.concat()].concat();
        let of = |cuts: &[usize]| {
            let mut decoder = FormDecoder::of(TYPE).unwrap().unwrap();
            let (mut events, mut from, mut result) = (Vec::new(), 0, Ok(()));
            for &cut in cuts {
                result = result.and_then(|()| decoder.push(&bytes[from..cut], &mut events));
                from = cut;
            }
            // The pieces of data depend on the split, and before an error there may be fewer.
            let data: Vec<u8> = events.iter().flat_map(|event| match event {
                Event::Data(data) => data.clone(),
                _ => Vec::new(),
            }).collect();
            let others: Vec<Event> =
                events.into_iter().filter(|event| !matches!(event, Event::Data(_))).collect();
            (data, others, result)
        };
        let middle = cut.index(bytes.len() + 1);
        prop_assert_eq!(of(&[bytes.len()]), of(&[middle, bytes.len()]));
    }
}
