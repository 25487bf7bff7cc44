//! Formats an outcome as aligned text for people, and as CSV for tables.
//!
//! Nothing is computed here. Invariants: warnings about a figure stand below it; the columns of the CSV
//! keep their names and order, and new ones are appended.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::limits::START_SPREAD_SHARE;
use crate::outcome::{Outcome, Spread};

/// The columns of the CSV.
pub const CSV_HEAD: &str = "url,users,loop,connections,seconds,requests,bytes,errors,unanswered,verified,\
requests_per_second,bytes_per_second,mean_us,p50_us,p90_us,p99_us,p999_us,max_us,littles_law,\
generator_cpu_seconds,generator_share,failed_checks,missed_starts,warm_up_requests,requests_after_end,sent";

impl Outcome {
    /// Formats the figures for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.rows() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<15}{value}");
        }
        for note in self.notes() {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            (
                "",
                format!(
                    "{} users, {} loop, {} connections, {:.2} s",
                    self.users,
                    self.pace,
                    self.connections,
                    self.time.as_secs_f64()
                ),
            ),
            ("requests", format!("{:>12}   {:.1}/s", self.requests, self.requests_per_second())),
            ("bytes", format!("{:>12}   {}/s", size(self.bytes as f64), size(self.bytes_per_second()))),
            ("verified", format!("{:>12}", self.verified)),
            ("errors", format!("{:>12}", self.errors.values().sum::<u64>())),
        ];
        rows.extend(self.message_rows("", &self.errors));
        rows.extend(self.message_rows("failed checks", &self.failed_checks));
        rows.push((
            "not measured",
            format!("{:>12}   in the warm-up, {} after the end", self.in_warm_up, self.after_end),
        ));
        rows.push((
            "latency",
            format!("{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}", "mean", "p50", "p90", "p99", "p99.9", "max"),
        ));
        rows.push(("", spread(&self.latency)));
        for (name, (count, time)) in [("full", &self.full_handshakes), ("resumed", &self.resumed_handshakes)]
        {
            if *count > 0 {
                rows.push(("", format!("{}   {name} TLS handshakes ({count})", spread(time))));
            }
        }
        for (name, count, latency) in &self.kinds {
            rows.push(("", format!("{}   {name} ({count})", spread(latency))));
        }
        rows.push((
            "Little's law",
            format!("{:>12.3}   of {:.2} users, X(R+Z)/N", self.littles_law.ratio, self.littles_law.users),
        ));
        rows.push((
            "generator",
            format!(
                "{:>11.1}%   of a core, {:.2} s of processor time",
                self.generator.share * 100.0,
                self.generator.cpu.as_secs_f64()
            ),
        ));
        if self.pace == "open" {
            rows.push(("late starts", spread(&self.generator.late)));
        }
        rows
    }

    /// Returns a row for each kind of failure, with the message of the first.
    fn message_rows(
        &self,
        name: &'static str,
        counts: &BTreeMap<String, u64>,
    ) -> Vec<(&'static str, String)> {
        let row = |(kind, count): (&String, &u64)| {
            let words = self.messages.get(kind).map_or("", String::as_str);
            (name, format!("{count:>12}   {kind}: {words}"))
        };
        counts.iter().map(row).collect()
    }

    /// Returns warnings about the figures.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.generator.is_the_limit() {
            notes.push(
                "the generator may be the limit; give it more cores (--threads), or ask for less".to_owned(),
            );
        }
        if self.start_share() > START_SPREAD_SHARE {
            notes.push(format!(
                "the first requests of the users were spread over {}, {:.1} % of the measured time",
                time(self.start_spread),
                self.start_share() * 100.0
            ));
        }
        if self.errors.contains_key("status_429") {
            notes.push(
                "the server refused requests because they are too many (429): plimsoll limits sign-ups and \
                 log-ins unless its configuration has no_attempt_limits = true under [lab]"
                    .to_owned(),
            );
        }
        if self.generator.without_user > 0 {
            notes.push(format!(
                "for {} planned starts no user was free; each counts from when it was planned (-u)",
                self.generator.without_user
            ));
        }
        if self.missed > 0 {
            notes.push(format!(
                "of {} planned starts {} found no free user by the end, and are in no latency (-u)",
                self.missed + self.sent(),
                self.missed
            ));
        }
        if self.unanswered > 0 {
            notes.push(format!("{} requests were never answered, and are in no latency", self.unanswered));
        }
        if self.requests > 0 && (self.littles_law.ratio - 1.0).abs() > 0.05 {
            notes.push(
                "Little's law is not kept: errors, or answers that took about as long as the trial"
                    .to_owned(),
            );
        }
        notes
    }

    /// Returns the spread of the starts as a fraction of the measured time. The starts of an open
    /// loop are planned at intervals, so that it has none.
    fn start_share(&self) -> f64 {
        match self.pace {
            "closed" if !self.time.is_zero() => self.start_spread.as_secs_f64() / self.time.as_secs_f64(),
            _ => 0.0,
        }
    }

    /// Formats the figures as a line of CSV with the columns of [`CSV_HEAD`].
    #[must_use]
    pub fn csv(&self) -> String {
        let microseconds = |time: Duration| format!("{:.1}", time.as_nanos() as f64 / 1e3);
        let latency = &self.latency;
        let cells = [
            quoted(&self.url),
            self.users.to_string(),
            self.pace.to_owned(),
            self.connections.to_owned(),
            format!("{:.6}", self.time.as_secs_f64()),
            self.requests.to_string(),
            self.bytes.to_string(),
            self.errors.values().sum::<u64>().to_string(),
            self.unanswered.to_string(),
            self.verified.to_string(),
            format!("{:.1}", self.requests_per_second()),
            format!("{:.1}", self.bytes_per_second()),
            microseconds(latency.mean),
            microseconds(latency.p50),
            microseconds(latency.p90),
            microseconds(latency.p99),
            microseconds(latency.p999),
            microseconds(latency.max),
            format!("{:.4}", self.littles_law.ratio),
            format!("{:.6}", self.generator.cpu.as_secs_f64()),
            format!("{:.4}", self.generator.share),
            self.failed_checks.values().sum::<u64>().to_string(),
            self.missed.to_string(),
            self.in_warm_up.to_string(),
            self.after_end.to_string(),
            self.sent().to_string(),
        ];
        cells.join(",")
    }
}

/// Quotes a cell that contains commas, quotes or line feeds.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn spread(spread: &Spread) -> String {
    [spread.mean, spread.p50, spread.p90, spread.p99, spread.p999, spread.max]
        .map(|at| format!("{:>12}", time(at)))
        .concat()
}

/// Formats a time with three digits or more: `153 us`, `1.53 ms`.
#[must_use]
pub fn time(time: Duration) -> String {
    let microseconds = time.as_nanos() as f64 / 1e3;
    match microseconds {
        below if below < 1e3 => format!("{below:.0} us"),
        below if below < 1e6 => format!("{:.2} ms", below / 1e3),
        _ => format!("{:.2} s", microseconds / 1e6),
    }
}

/// Formats a number of bytes in a binary unit, as on the command line and in the configuration: `1.50 GiB`.
#[must_use]
pub fn size(bytes: f64) -> String {
    let units =
        [("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1)].map(|(unit, power)| (unit, 1024f64.powi(power)));
    match units.iter().find(|(_, ones)| bytes >= *ones) {
        Some((unit, ones)) => format!("{:.2} {unit}", bytes / ones),
        None => format!("{bytes:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_a_unit_that_suits_them() {
        let times = [(0, "0 us"), (999, "999 us"), (1_500, "1.50 ms"), (2_000_000, "2.00 s")];
        for (microseconds, text) in times {
            assert_eq!(time(Duration::from_micros(microseconds)), text);
        }
        for (bytes, text) in [(0.0, "0 B"), (1023.0, "1023 B"), (1024.0, "1.00 KiB"), (2.5e9, "2.33 GiB")] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn a_cell_with_a_comma_stays_one_cell() {
        assert_eq!(quoted("http://a/b,c\"d"), "\"http://a/b,c\"\"d\"");
        assert_eq!(quoted("http://a/b"), "http://a/b");
    }
}
