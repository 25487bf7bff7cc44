//! The zip format, at the borders of its numbers. Readers of zip archives read whole ones in the tests of the
//! server.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use core::time::Duration;

use plimsoll_wire::zip::{ZipError, ZipWriter};

const NOON: Duration = Duration::from_secs(1_700_000_001);

/// Writes the rest of an archive, a few bytes at a time.
fn ended(zip: ZipWriter) -> Vec<u8> {
    let mut directory = zip.finish().unwrap();
    let mut out = Vec::new();
    while !directory.write(out.len() + 1, &mut out) {}
    out
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn a_file_with_a_known_checksum_is_written_byte_for_byte() {
    let (mut zip, mut out) = (ZipWriter::new(), Vec::new());
    zip.begin_file(b"a", 9, NOON, &mut out).unwrap();
    zip.contents(b"1234");
    zip.contents(b"56789");
    out.extend_from_slice(b"123456789");
    zip.end_file(&mut out).unwrap();
    let local = b"PK\x03\x04\x14\0\x08\x08\0\0\xaa\xb1\x6e\x57\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x09\0a\
        UT\x05\0\x01\x01\xf1\x53\x65123456789PK\x07\x08\x26\x39\xf4\xcb\x09\0\0\0\x09\0\0\0";
    assert_eq!(out, local);
    let central = b"PK\x01\x02\x2d\x03\x14\0\x08\x08\0\0\xaa\xb1\x6e\x57\x26\x39\xf4\xcb\x09\0\0\0\x09\0\0\0\
        \x01\0\x09\0\0\0\0\0\0\0\0\0\xa4\x81\0\0\0\0aUT\x05\0\x01\x01\xf1\x53\x65";
    let end = b"PK\x05\x06\0\0\0\0\x01\0\x01\0\x38\0\0\0\x41\0\0\0\0\0";
    assert_eq!(ended(zip), [&central[..], end].concat());
}

#[test]
fn a_file_of_4_gib_and_an_offset_above_have_zip64_forms_and_others_have_not() {
    let zeros = vec![0; 1 << 24];
    for (size, is_zip64) in [(u64::from(u32::MAX) - 1, false), (u64::from(u32::MAX), true), (5 << 30, true)] {
        let (mut zip, mut out) = (ZipWriter::new(), Vec::new());
        zip.begin_file(b"large", size, NOON, &mut out).unwrap();
        assert_eq!(u16_at(&out, 4), if is_zip64 { 45 } else { 20 });
        let mut left = size;
        while left > 0 {
            let part = usize::try_from(left.min(1 << 24)).unwrap();
            zip.contents(&zeros[..part]);
            left -= part as u64;
        }
        zip.end_file(&mut out).unwrap();
        let small_at = out.len() as u64 + size;
        zip.begin_file(b"small", 0, NOON, &mut out).unwrap();
        zip.end_file(&mut out).unwrap();
        let start = out.len() as u64 + size;
        let end = ended(zip);
        let first_extra = usize::from(u16_at(&end, 30));
        assert_eq!(u32_at(&end, 24), if is_zip64 { u32::MAX } else { u32::MAX - 1 });
        assert_eq!(first_extra, if is_zip64 { 9 + 20 } else { 9 });
        if is_zip64 {
            assert_eq!([64, 72].map(|at| u64_at(&end, at)), [size, size]);
        }
        // The offset of the second is above four bytes, whichever the first is.
        let second = 46 + 5 + first_extra;
        assert_eq!((u16_at(&end, second + 30), u32_at(&end, second + 42)), (9 + 12, u32::MAX));
        assert_eq!(u64_at(&end, second + 46 + 5 + 9 + 4), small_at);
        let of_end = second + 46 + 5 + 9 + 12;
        assert_eq!((u32_at(&end, of_end), u64_at(&end, of_end + 48)), (0x0606_4b50, start));
        assert_eq!(u64_at(&end, of_end + 56 + 8), start + of_end as u64);
    }
}

#[test]
fn more_entries_than_two_bytes_count_have_the_zip64_form() {
    for count in [65_534, 65_535, 70_000_u64] {
        let (mut zip, mut out) = (ZipWriter::new(), Vec::new());
        (0..count)
            .for_each(|number| zip.add_folder(format!("d{number}").as_bytes(), NOON, &mut out).unwrap());
        let end = ended(zip);
        let last = end.len() - 22;
        assert_eq!(u64::from(u16_at(&end, last + 10)), count.min(65_535));
        let is_zip64 = u32_at(&end, last - 20) == 0x0706_4b50;
        assert_eq!(is_zip64, count >= 65_535);
        if is_zip64 {
            assert_eq!(u64_at(&end, last - 20 - 56 + 32), count);
        }
    }
}

#[test]
fn the_directory_takes_little_memory_for_long_paths() {
    let (mut zip, mut out) = (ZipWriter::new(), Vec::new());
    let folder = "a folder with a long name/".repeat(20);
    for number in 0..10_000 {
        zip.begin_file(format!("{folder}{number:05}.jpg").as_bytes(), 0, NOON, &mut out).unwrap();
        zip.end_file(&mut out).unwrap();
    }
    assert!(zip.directory_bytes() < 10_000 * 40, "{}", zip.directory_bytes());
    assert_eq!(ended(zip).len(), 10_000 * (46 + folder.len() + 9 + 9) + 22);
}

#[test]
fn a_file_of_another_size_than_announced_is_an_error() {
    for bytes in [&b"ab"[..], b"abcd"] {
        let (mut zip, mut out) = (ZipWriter::new(), Vec::new());
        zip.begin_file(b"a", 3, NOON, &mut out).unwrap();
        zip.contents(bytes);
        assert_eq!(zip.end_file(&mut out), Err(ZipError::Size));
    }
    let (mut zip, mut out) = (ZipWriter::new(), Vec::new());
    zip.begin_file(b"a", 3, NOON, &mut out).unwrap();
    assert_eq!(zip.add_folder(b"b", NOON, &mut out), Err(ZipError::Size));
    assert_eq!(zip.finish().err(), Some(ZipError::Size));
    let long = vec![b'a'; 65_536];
    assert_eq!(ZipWriter::new().begin_file(&long, 0, NOON, &mut out), Err(ZipError::NameTooLong));
}

#[test]
fn a_time_that_the_format_lacks_is_the_nearest_and_a_name_that_is_not_utf_8_is_not_marked() {
    for (seconds, date, has_timestamp) in
        [(0, 0x0021, true), (i32::MAX as u64, 0x7433, true), (1 << 33, 0xff9f, false)]
    {
        let (mut zip, mut out) = (ZipWriter::new(), Vec::new());
        zip.add_folder(b"\xff", Duration::from_secs(seconds), &mut out).unwrap();
        assert_eq!(u16_at(&out, 12), date, "{seconds}");
        assert_eq!(u16_at(&out, 28), if has_timestamp { 9 } else { 0 });
        assert_eq!(u16_at(&out, 6), 0, "neither UTF-8 nor a descriptor");
    }
}
