//! Output for people: escaped names, sizes, times and aligned columns.
//!
//! It prints only to standard output. Invariants: no file name sends control sequences to the terminal. A
//! closed standard output ends the program without a message.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_wire::text::is_unsafe_to_show;
use signal_hook::consts::SIGPIPE;
use signal_hook::low_level::emulate_default_handler;

/// Formats bytes for a terminal. Control characters are escaped, and bytes that are not UTF-8 are
/// hexadecimal.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_unsafe_to_show(character) {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Formats a size with three figures: `1.25 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut unit = 0;
    let mut hundredths = u128::from(bytes) * 100 / 1024;
    while hundredths >= 102_400 && unit + 1 < UNITS.len() {
        hundredths /= 1024;
        unit += 1;
    }
    let (whole, part) = (hundredths / 100, hundredths % 100);
    match whole {
        0..=9 => format!("{whole}.{part:02} {}", UNITS[unit]),
        10..=99 => format!("{whole}.{} {}", part / 10, UNITS[unit]),
        _ => format!("{whole} {}", UNITS[unit]),
    }
}

/// Formats a number of files.
pub fn files(count: u64) -> String {
    format!("{count} {}", if count == 1 { "file" } else { "files" })
}

/// Formats a time of the server, such as `2026-11-20T13:40:05Z`, to the minute.
pub fn time(timestamp: &str) -> String {
    match timestamp.get(..16) {
        Some(minute) if timestamp.is_ascii() => text(minute.replace('T', " ").as_bytes()),
        _ => text(timestamp.as_bytes()),
    }
}

/// Formats rows in columns, two spaces between them. The columns in `right` are right-aligned.
pub fn columns(rows: &[Vec<String>], right: &[usize]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
    let widths: Vec<usize> = (0..count).map(|column| width_of(column).unwrap_or(0)).collect();
    let mut lines = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let gap = " ".repeat(widths[column] - width(cell));
            let (before, after) =
                if right.contains(&column) { (gap.as_str(), "") } else { ("", gap.as_str()) };
            line.extend([before, cell, after, "  "]);
        }
        lines.push_str(line.trim_end());
        lines.push('\n');
    }
    lines
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

/// Prints to standard output. If its reader has gone, the program ends by SIGPIPE, as others do.
pub fn print(bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let printed = stdout.write_all(bytes.as_ref()).and_then(|()| stdout.flush());
    Ok(printed.inspect_err(exit_on_broken_pipe)?)
}

/// Ends the program by SIGPIPE if `error` says that standard output has no reader.
pub(crate) fn exit_on_broken_pipe(error: &io::Error) {
    if error.kind() == io::ErrorKind::BrokenPipe {
        // If this returns after all, the caller reports the error.
        let _ = emulate_default_handler(SIGPIPE);
    }
}

/// Whether a JSON document has been printed: standard output gets one, whether or not the command succeeds.
static HAS_PRINTED_JSON: AtomicBool = AtomicBool::new(false);

/// Returns whether a document has been printed.
pub fn has_printed_json() -> bool {
    HAS_PRINTED_JSON.load(Ordering::Relaxed)
}

/// Prints a JSON document that is formatted already.
pub fn print_json_text(text: &str) -> anyhow::Result<()> {
    HAS_PRINTED_JSON.store(true, Ordering::Relaxed);
    print(text)
}

/// Prints a value as JSON, on a line of its own.
pub fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    HAS_PRINTED_JSON.store(true, Ordering::Relaxed);
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    print(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_command_a_terminal() {
        assert_eq!(text(b"a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(text("\u{202e}gpj.exe".as_bytes()), "\\u{202e}gpj.exe");
        assert_eq!(text(b"caf\xe9"), "caf\\xe9");
        assert_eq!(text("für 日本".as_bytes()), "für 日本");
    }

    #[test]
    fn sizes_have_three_figures() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (10 << 10, "10.0 KiB"),
            (1_048_575, "1023 KiB"),
            (1 << 20, "1.00 MiB"),
            (150 << 30, "150 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn columns_stand_below_each_other() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["file", "5 B", "ü"]), row(["folder", "", "long name"])];
        assert_eq!(columns(&rows, &[1]), "file    5 B  ü\nfolder       long name\n");
        assert_eq!(columns(&[], &[]), "");
    }

    #[test]
    fn times_are_printed_to_the_minute() {
        assert_eq!(time("2026-11-20T13:40:05Z"), "2026-11-20 13:40");
        assert_eq!(time("soon\x07"), "soon\\u{7}");
    }
}
