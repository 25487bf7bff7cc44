//! A chart without its drawing: series of points with intervals, columns or bars.
//!
//! It draws nothing. Invariant: every mark has a label with its numbers.

/// A chart.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    /// The label of the vertical axis: the figure and its unit.
    pub(super) figure: String,
    /// The label of the horizontal axis.
    pub(super) level: String,
    /// Formats a figure of the vertical axis.
    pub(super) format: fn(f64) -> String,
    pub(super) shape: Shape,
    pub(super) series: Vec<Series>,
}

/// The shape of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Lines over a horizontal axis of numbers; the vertical axis begins at 0.
    Lines,
    /// The same with a logarithmic vertical axis.
    LogLines,
    /// Columns over the levels, series stacked.
    Columns,
    /// A horizontal bar for each point, with its name; series stacked.
    Bars,
}

/// A series of points.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) name: String,
    /// The number of its colour.
    pub(super) colour: usize,
    pub(super) stroke: Stroke,
    pub(super) points: Vec<ChartPoint>,
}

/// The line of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    /// Measured points, joined by a line.
    Measured,
    /// A model, without marks.
    Dashed,
    /// A bound, without marks.
    Dotted,
}

/// A point.
#[derive(Clone, Debug)]
pub(super) struct ChartPoint {
    /// The position on the horizontal axis, or the number of its bar.
    pub(super) level: f64,
    /// The name of its bar.
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) interval: Option<[f64; 2]>,
    /// The numbers, shown on hover.
    pub(super) label: String,
    /// Whether there are signs of a distorted measurement: its mark is hollow.
    pub(super) is_marked: bool,
}

impl Chart {
    pub(super) fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }
}

/// A linear or logarithmic scale from values to a range of the drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    is_log: bool,
    start: f64,
    end: f64,
}

impl Scale {
    /// Creates a scale that has `low` at `start` and `high` at `end`.
    pub(super) fn new(low: f64, high: f64, is_log: bool, start: f64, end: f64) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        Scale { low, high, is_log, start, end }
    }

    /// Returns the position of a value, within the range.
    pub(super) fn position(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.start + (self.end - self.start) * share.clamp(0.0, 1.0)
    }
}

/// Returns a round maximum of at least `value`, and round ticks from 0 to it.
pub(super) fn linear_ticks(value: f64, wanted: f64) -> Vec<f64> {
    if value <= 0.0 || !value.is_finite() {
        return vec![0.0, 1.0];
    }
    let rough = value / wanted;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(power * 10.0);
    let mut ticks = vec![0.0];
    while ticks.last().is_some_and(|last| *last < value * 0.999) {
        ticks.push(step * f64::from(u32::try_from(ticks.len()).unwrap_or(1)));
    }
    ticks
}

/// Returns ticks of 1, 2 and 5 times powers of ten (only of 1, for a wide range) that enclose the values.
pub(super) fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let digits: &[f64] = if high / low > 300.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let mut power = 10_f64.powf(low.log10().floor());
    let mut all = Vec::new();
    while power <= high * 10.0 {
        all.extend(digits.iter().map(|digit| digit * power));
        power *= 10.0;
    }
    let first = all.iter().rposition(|tick| *tick <= low * 1.001).unwrap_or(0);
    let last = all.iter().position(|tick| *tick >= high * 0.999).unwrap_or(all.len() - 1);
    all[first..=last.max(first + 1).min(all.len() - 1)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        assert_eq!(linear_ticks(9.3, 5.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(linear_ticks(1000.0, 4.0), [0.0, 250.0, 500.0, 750.0, 1000.0]);
        assert_eq!(linear_ticks(0.0, 4.0), [0.0, 1.0]);
        assert_eq!(log_ticks(1.5, 30.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(log_ticks(0.001, 2.0).len(), 5);
        assert_eq!(log_ticks(3.0, 3.0), [2.0, 5.0]);
    }

    #[test]
    fn a_scale_maps_its_ends() {
        let linear = Scale::new(0.0, 10.0, false, 100.0, 0.0);
        assert_eq!([linear.position(0.0), linear.position(5.0), linear.position(99.0)], [100.0, 50.0, 0.0]);
        let log = Scale::new(1.0, 100.0, true, 0.0, 100.0);
        assert!((log.position(10.0) - 50.0).abs() < 1e-9 && log.position(0.0) == 0.0);
    }
}
