//! Reading a log: its format, its mistakes, and its end.

use plimsoll_lab::transfer_log::{LogFormat, tables};

use super::*;

fn two_formats() -> [(LogFormat, String); 2] {
    let json = [
        json("1MB.same.1.2.0", MB, 0, 1000),
        json("1MB.same.1.2.0", MB, 5, 2000),
        json("a/1MB.different.1.1.0", MB, 3000, 4000),
    ];
    let xferlog = [
        xferlog("1MB.same.1.2.0", MB, "00:01", 1),
        xferlog("1MB.same.1.2.0", MB, "00:02", 2),
        xferlog("a/1MB.different.1.1.0", MB, "00:04", 1),
    ];
    [(LogFormat::Plimsoll, json.concat()), (LogFormat::Xferlog, xferlog.concat())]
}

#[test]
fn the_first_line_decides_about_the_format() {
    let [(_, json), (_, xferlog)] = two_formats();
    for (format, log) in two_formats() {
        let parsed = parsed(&log);
        assert_eq!((parsed.format, parsed.lines, parsed.is_cut), (Some(format), 3, false));
        assert_eq!(tables(&parsed, 0).cells.len(), 2);
    }
    let (expected, mixed) = ("line 4: expected the 18 fields of xferlog(5)", [&*xferlog, &*json].concat());
    assert!(refused(mixed.as_bytes()).to_string().starts_with(expected));
    let mixed = [&*json, &*xferlog].concat();
    assert!(refused(mixed.as_bytes()).to_string().starts_with("line 4: expected a JSON object"));
    let crlf = json.replace('\n', "\r\n");
    assert_eq!(parsed(&crlf), parsed(&json));
}

#[test]
fn a_log_may_be_cut_at_every_byte_and_the_cut_line_is_ignored() {
    for (_, log) in two_formats() {
        for cut in 0..=log.len() {
            let parsed = read(&log.as_bytes()[..cut]).unwrap();
            let lines = log[..cut].matches('\n').count() as u64;
            let is_cut = cut > 0 && !log[..cut].ends_with('\n');
            assert_eq!((parsed.lines, parsed.is_cut), (lines, is_cut), "cut at {cut}");
            let tables = tables(&parsed, 5);
            assert_eq!(tables.text().contains("last line has no end"), is_cut, "cut at {cut}");
            assert_eq!(tables.markdown().contains("last line has no end"), is_cut, "cut at {cut}");
        }
    }
}

#[test]
fn a_malformed_line_is_an_error_with_its_number() {
    for (_, log) in two_formats() {
        for (at, _) in log.match_indices('\n') {
            // The first line decides about the format, so the mistake comes after it.
            let line = log[..=at].matches('\n').count() as u64 + 1;
            for bad in ["\n", "nonsense\n", "{}\n", "\0\n"] {
                let error = refused(&[&log.as_bytes()[..=at], bad.as_bytes()].concat());
                assert_eq!(error.line, line, "{error}");
                assert!(error.expected.starts_with("expected"), "{error}");
            }
        }
    }
    for bad in ["\n", "nonsense\n", "\u{feff}{}\n"] {
        let error = refused(bad.as_bytes());
        assert!(error.line == 1 && error.expected.contains("or a line of xferlog(5)"), "{error}");
    }
}

#[test]
fn a_byte_that_changes_anywhere_does_not_panic() {
    for (_, log) in two_formats() {
        for at in 0..log.len() {
            for byte in [0, b' ', b'\n', b'.', b'9', 0x80, 0xff] {
                let mut changed = log.clone().into_bytes();
                changed[at] = byte;
                if let Ok(parsed) = read(changed.as_slice()) {
                    let _ = (tables(&parsed, 5).text(), tables(&parsed, 0).markdown());
                }
            }
        }
    }
}

#[test]
fn a_line_longer_than_the_limit_is_refused_before_it_is_read_whole() {
    let [(_, log), _] = two_formats();
    let mut endless = log.into_bytes();
    endless.resize(endless.len() + 64 * 1024, b'x');
    assert!(read(endless.as_slice()).unwrap().is_cut, "a line of the limit is cut");
    endless.push(b'x');
    let error = refused(&endless);
    assert_eq!(error.to_string(), "line 4: expected at most 65536 bytes");
}

#[test]
fn more_repetitions_than_the_limit_are_refused() {
    let log: String =
        (0..=100_000).map(|number| json(&format!("1KB.same.{number}.1.0"), 1024, 0, 1)).collect();
    let error = refused(log.as_bytes());
    assert_eq!(error.line, 100_001);
    assert!(error.expected.contains("at most 100000 repetitions"), "{error}");
}

#[test]
fn lines_that_do_not_count_are_counted_and_reported() {
    let named = "1MB.same.1.2.0";
    let log = [
        json("index.html", 7, 0, 1),
        json(named, MB, 0, 1000).replace("\"download\"", "\"upload\""),
        json(named, 5, 0, 1000).replace("\"ok\"", "\"broken_off\""),
        json(named, MB, 1000, 0),
        json(named, MB, 0, 2000),
        json(named, MB - 1024, 0, 1000),
        json("/", 7, 0, 1),
    ];
    let log = parsed(&log.concat());
    assert_eq!((log.lines, log.other_operations, log.unnamed), (7, 1, 2));
    assert_eq!((log.failed, log.reversed, log.other_sizes), (1, 1, 1));
    let tables = tables(&log, 0);
    let [cell] = &tables.cells[..] else { panic!("{tables:?}") };
    // Two complete downloads of two connections: 2047 KB in 2 s.
    assert_eq!(cell.overall_rate, Some(1023.5));
    let text = tables.text();
    for note in [
        "1 lines are of other operations",
        "2 downloads have a name that carries no experiment",
        "1 downloads failed",
        "1 downloads end before they start",
        "1 downloads have another length",
    ] {
        assert!(text.contains(note), "{note}: {text}");
    }
}
