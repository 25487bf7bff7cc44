//! The arithmetic and the shape of the tables.

use plimsoll_lab::transfer_log::{Share, Tables, tables};

use super::*;

fn about(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 0.005)
}

/// Two repetitions with two connections: the first starts together, the second does not.
fn two_repetitions() -> TransferLog {
    parsed(
        &[
            json("1MB.different.1.2.0", MB, 0, 1000),
            json("1MB.different.1.2.1", MB, 5, 2000),
            json("1MB.different.2.2.0", MB, 10_000, 12_000),
            json("1MB.different.2.2.1", MB, 10_500, 14_000),
        ]
        .concat(),
    )
}

#[test]
fn an_overall_rate_is_all_bytes_over_the_time_from_the_first_start_to_the_last_end() {
    let tables = tables(&two_repetitions(), 0);
    let [cell] = &tables.cells[..] else { panic!("{tables:?}") };
    let [first, second] = &cell.repetitions[..] else { panic!("{cell:?}") };
    // 2048 KB in 2 s, and in 4 s.
    assert_eq!((first.overall_rate, second.overall_rate), (1024.0, 512.0));
    assert_eq!(cell.overall_rate, Some(768.0));
    // 1024 KB in 1 s and in 1.995 s; 1024 KB in 2 s and in 3.5 s.
    assert!(about(Some(first.connection_rate), 768.64), "{first:?}");
    assert!(about(Some(second.connection_rate), 402.29), "{second:?}");
    assert!(about(cell.connection_rate, 585.46), "{cell:?}");
    assert_eq!((first.transfers, first.bytes, first.seconds), (2, 2 * MB, 2.0));
    assert_eq!((first.spread_seconds, second.spread_seconds), (0.005, 0.5));
    assert_eq!((first.is_marked, second.is_marked), (false, true), "0.25 % and 12.5 %");
    assert!(tables.text().contains("starts spread over more than 1 %: repetitions 2\n"), "{}", tables.text());
}

#[test]
fn a_spread_of_exactly_one_percent_is_not_marked() {
    for (second_start, is_marked) in [(10, false), (11, true)] {
        let log = [json("1MB.same.1.2.0", MB, 0, 1000), json("1MB.same.1.2.0", MB, second_start, 1000)];
        let tables = tables(&parsed(&log.concat()), 0);
        assert_eq!(tables.cells[0].repetitions[0].is_marked, is_marked);
        assert_eq!(tables.text().contains("2048.00*"), is_marked, "{}", tables.text());
    }
}

#[test]
fn the_first_repetitions_by_number_are_discarded_but_never_the_last() {
    // In the order of their numbers, the rates are 1024/1, 1024/2, … KB a second.
    let all: Vec<String> =
        (1..=15).rev().map(|number| json(&format!("1MB.same.{number}.1.0"), MB, 0, number * 1000)).collect();
    let log = parsed(&all.concat());
    let kept = |discarded| {
        let tables = tables(&log, discarded);
        let numbers: Vec<u32> = tables.cells[0].kept().map(|repetition| repetition.number).collect();
        (numbers, tables.cells[0].overall_rate)
    };
    let (numbers, rate) = kept(5);
    assert_eq!(numbers, (6..=15).collect::<Vec<_>>());
    let expected = (6..=15).map(|seconds| 1024.0 / f64::from(seconds)).sum::<f64>() / 10.0;
    assert!(about(rate, expected), "{rate:?} {expected}");
    assert_eq!(kept(0).0.len(), 15);
    assert_eq!(kept(14).0, [15]);
    assert_eq!(kept(u32::MAX), (vec![15], Some(1024.0 / 15.0)));
}

#[test]
fn a_repetition_with_a_missing_or_an_extra_transfer_is_in_no_mean() {
    let transfer = |repetition: u32| json(&format!("1MB.same.{repetition}.2.0"), MB, 0, 1000);
    let log = [transfer(1), transfer(2), transfer(2), transfer(3), transfer(3), transfer(3)].concat();
    let tables = tables(&parsed(&log), 0);
    let shares: Vec<Share> = tables.cells[0].repetitions.iter().map(|repetition| repetition.share).collect();
    assert_eq!(shares, [Share::Incomplete, Share::Kept, Share::Incomplete]);
    assert_eq!(tables.cells[0].overall_rate, Some(2048.0));
    assert!(tables.text().contains("so not in the means: repetitions 1, 3\n"), "{}", tables.text());
}

#[test]
fn rates_of_xferlog_are_of_whole_seconds_and_the_text_says_that_they_are_coarse() {
    let log = [
        xferlog("1MB.same.1.2.0", MB, "00:03", 2),
        xferlog("1MB.same.1.2.0", MB, "00:05", 4),
        // A server may write a duration of zero; the log cannot express less than a second.
        xferlog("1MB.same.1.1.0", MB, "00:09", 0),
    ];
    let tables = tables(&parsed(&log.concat()), 5);
    // Both start at 11:00:01, and the last ends 4 s later.
    assert_eq!(tables.cells[1].overall_rate, Some(512.0));
    assert_eq!(tables.cells[1].connection_rate, Some((512.0 + 256.0) / 2.0));
    assert_eq!(tables.cells[0].overall_rate, Some(1024.0));
    assert!(tables.text().contains("rates are coarse"), "{}", tables.text());
    assert!(tables.markdown().contains("rates are coarse"), "{}", tables.markdown());
}

/// A log of experiments with a repetition each: size in KB, type, connections, and the time of each.
fn experiments(all: &[(u64, &str, u64, u64)]) -> Tables {
    let mut log = String::new();
    let mut start = 0;
    for (size, kind, connections, time) in all {
        let label = if size % 1024 == 0 { format!("{}MB", size / 1024) } else { format!("{size}KB") };
        for number in 0..*connections {
            let name = format!("{label}.{kind}.1.{connections}.{number}");
            log += &json(&name, size * 1024, start, start + time);
        }
        start += time + 60_000;
    }
    tables(&parsed(&log), 0)
}

#[test]
fn tables_by_connections_have_the_shape_of_table_1() {
    let tables = experiments(&[
        (1024, "same", 1, 1000),
        (1024, "same", 2, 1000),
        (1024, "different", 2, 4000),
        (1024, "same", 6, 4000),
        (1024, "different", 6, 64_000),
    ]);
    let expected = "\
Type of           Number of connections
transfer                1         2         6
Same file         1024.00   2048.00   1536.00
Different files              512.00     96.00
Overall transfer rates in KBps, 1MB files

files       type  connections    kept  overall     each  starts over
  1MB       same            1  1 of 1  1024.00  1024.00   0.000000 s
";
    assert!(tables.text().starts_with(expected), "{}", tables.text());
    let markdown = "\
Overall transfer rates in KBps, 1MB files, by number of connections

| Type of transfer | 1 | 2 | 6 |
| --- | ---: | ---: | ---: |
| Same file | 1024.00 | 2048.00 | 1536.00 |
| Different files |  | 512.00 | 96.00 |
";
    assert!(tables.markdown().starts_with(markdown), "{}", tables.markdown());
}

#[test]
fn columns_are_in_the_order_of_decreasing_load_if_the_experiments_were_as_in_table_2() {
    let tables = experiments(&[
        (1024, "same", 6, 1000),
        (1024, "different", 6, 1000),
        (1024, "same", 4, 1000),
        (1024, "same", 1, 1000),
    ]);
    assert_eq!(tables.tables[0].columns, ["6", "4", "1"]);
    // Neither rises nor falls: a random order.
    let tables = experiments(&[(1024, "same", 4, 1), (1024, "same", 6, 1), (1024, "same", 1, 1)]);
    assert_eq!(tables.tables[0].columns, ["1", "4", "6"]);
}

#[test]
fn tables_by_size_have_the_shape_of_table_4() {
    let tables = experiments(&[
        (256, "same", 4, 1000),
        (1024, "same", 4, 4000),
        (16 * 1024, "same", 4, 64_000),
        (256, "different", 4, 2000),
        (1024, "different", 4, 16_000),
    ]);
    let expected = "\
Type of           File size
transfer            256KB       1MB      16MB
Same file         1024.00   1024.00   1024.00
Different files    512.00    256.00
Overall transfer rates in KBps, 4 connections

";
    assert_eq!(tables.tables.len(), 1, "{tables:?}");
    assert!(tables.text().starts_with(expected), "{}", tables.text());
}

#[test]
fn a_log_without_experiments_has_no_table_and_says_why() {
    for log in ["", "cut", &json("a", 1, 0, 1)] {
        let tables = tables(&parsed(log), 5);
        assert!(tables.tables.is_empty() && tables.cells.is_empty());
        assert!(tables.text().starts_with("note: ") && !tables.markdown().contains('|'), "{}", tables.text());
    }
}

#[test]
fn tables_are_read_back_as_they_were_written() {
    let tables = tables(&two_repetitions(), 1);
    let json = serde_json::to_string(&tables).unwrap();
    assert_eq!(serde_json::from_str::<Tables>(&json).unwrap(), tables);
}
