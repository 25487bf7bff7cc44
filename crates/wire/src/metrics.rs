//! Metrics in the text format of Prometheus, version 0.0.4.
//!
//! It counts nothing. Invariants: a metric has its help and its kind once, before its values. The value of a
//! label may have any character.

use std::fmt::{self, Display, Formatter, Write as _};

/// A metric that is written to a text.
#[derive(Debug)]
pub struct Metric<'a> {
    text: &'a mut String,
    name: String,
}

impl<'a> Metric<'a> {
    /// Writes the help and the kind of a metric, such as `counter`. Its values follow.
    #[must_use]
    pub fn new(text: &'a mut String, name: impl Into<String>, kind: &str, help: &str) -> Metric<'a> {
        let name = name.into();
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Metric { text, name }
    }

    /// Writes its only value.
    pub fn value(mut self, value: impl Display) {
        self.line("", &[], value);
    }

    /// Writes the value that has these labels.
    pub fn series(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.line("", labels, value);
    }

    /// Writes the number of measured times, and their sum.
    pub fn summary(&mut self, labels: &[(&str, &str)], count: u64, micros: u64) {
        self.line("_sum", labels, Seconds(micros));
        self.line("_count", labels, count);
    }

    /// Writes a histogram of times, and their sum. `counts` are those of the buckets up to each bound,
    /// without the buckets before it; the last one has no bound. Bounds and sum are in microseconds.
    pub fn histogram(
        &mut self,
        labels: &[(&str, &str)],
        bounds: &[u64],
        counts: impl Iterator<Item = u64>,
        micros: u64,
    ) {
        let mut below = 0;
        for (bucket, count) in counts.enumerate() {
            below += count;
            let bound = bounds.get(bucket).map_or("+Inf".to_owned(), |bound| Seconds(*bound).to_string());
            self.line("_bucket", &[labels, &[("le", bound.as_str())]].concat(), below);
        }
        self.summary(labels, below, micros);
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (number, (label, value)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{before}{label}=\"{value}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

/// Microseconds, displayed as seconds without trailing zeros.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_their_help_and_kind_with_escaped_labels() {
        let mut text = String::new();
        Metric::new(&mut text, "a", "gauge", "A value.").value(0.5);
        let mut metric = Metric::new(&mut text, "b_total", "counter", "Values.");
        metric.series(&[("c", "\"\\\n"), ("d", "e")], 7);
        assert_eq!(
            text,
            "# HELP a A value.\n# TYPE a gauge\na 0.5\n# HELP b_total Values.\n# TYPE b_total counter\n\
             b_total{c=\"\\\"\\\\\\n\",d=\"e\"} 7\n"
        );
    }

    #[test]
    fn buckets_add_up_and_times_are_in_seconds() {
        let mut text = String::new();
        let mut metric = Metric::new(&mut text, "t", "histogram", "Times.");
        metric.histogram(&[("a", "b")], &[50, 2_000_000], [1, 2, 3].into_iter(), 90_000_101);
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "t_bucket{a=\"b\",le=\"0.00005\"} 1",
                "t_bucket{a=\"b\",le=\"2\"} 3",
                "t_bucket{a=\"b\",le=\"+Inf\"} 6",
                "t_sum{a=\"b\"} 90.000101",
                "t_count{a=\"b\"} 6",
            ]
        );
    }
}
