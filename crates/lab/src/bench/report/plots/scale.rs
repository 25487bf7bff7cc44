//! Maps figures to pixels, and chooses the lines of a scale.
//!
//! Invariants: all positions must lie on the sheet; a scale of amounts begins at 0.

/// A scale across a sheet.
pub(super) struct Scale {
    from: f64,
    to: f64,
    left: i32,
    width: i32,
    is_logarithmic: bool,
}

impl Scale {
    /// Creates a linear scale from 0 to `max`.
    pub(super) fn of_amounts(max: f64, left: i32, width: i32) -> Scale {
        let max = if max > 0.0 { max } else { 1.0 };
        Scale { from: 0.0, to: max, left, width, is_logarithmic: false }
    }

    /// Creates a logarithmic scale that includes 1: 2 is as far from 1 as 0.5.
    pub(super) fn of_ratios(ratios: impl Iterator<Item = f64>, left: i32, width: i32) -> Scale {
        let told = ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        let (from, to) = told.fold((0.8_f64, 1.25_f64), |(from, to), ratio| (from.min(ratio), to.max(ratio)));
        Scale { from: from / 1.05, to: to * 1.05, left, width, is_logarithmic: true }
    }

    /// Returns the position of a figure in pixels.
    #[allow(clippy::cast_possible_truncation, reason = "it lies between left and left + width")]
    pub(super) fn at(&self, value: f64) -> i32 {
        let part = if self.is_logarithmic {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.left + (part.clamp(0.0, 1.0) * f64::from(self.width)).round() as i32
    }

    /// Returns the figures at which lines are drawn: a few round ones.
    pub(super) fn lines(&self) -> Vec<f64> {
        if self.is_logarithmic {
            const ROUND: [f64; 13] = [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0];
            return ROUND.into_iter().filter(|at| (self.from..=self.to).contains(at)).collect();
        }
        let step = step(self.to);
        (0..).map(|count| f64::from(count) * step).take_while(|at| *at <= self.to).collect()
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten that gives five to ten lines.
fn step(max: f64) -> f64 {
    let power = 10_f64.powf((max / 4.0).log10().floor());
    let rest = max / 4.0 / power;
    power
        * if rest >= 5.0 {
            5.0
        } else if rest >= 2.0 {
            2.0
        } else {
            1.0
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_at_round_figures() {
        assert_eq!(
            Scale::of_amounts(187.0, 0, 100).lines(),
            [0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 140.0, 160.0, 180.0]
        );
        assert_eq!(Scale::of_amounts(100.0, 0, 100).lines(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Scale::of_ratios([0.9, 2.1].into_iter(), 0, 100).lines(), [1.0, 1.5, 2.0]);
    }

    #[test]
    fn twice_is_as_far_from_one_as_half() {
        let scale = Scale::of_ratios([0.5, 2.0].into_iter(), 10, 1000);
        let (half, one, twice) = (scale.at(0.5), scale.at(1.0), scale.at(2.0));
        assert!((twice - one - (one - half)).abs() <= 1, "{half} {one} {twice}");
    }

    #[test]
    fn nothing_is_drawn_beside_the_sheet() {
        let scale = Scale::of_amounts(10.0, 50, 100);
        assert_eq!([-5.0, 0.0, 10.0, 1e9].map(|value| scale.at(value)), [50, 50, 150, 150]);
        assert_eq!(Scale::of_amounts(0.0, 50, 100).at(0.0), 50);
    }
}
