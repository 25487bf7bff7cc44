//! Charts as SVG inside of an HTML page.
//!
//! It chooses no contents. Invariants: all text is escaped, and stays within the drawing. Colours are the
//! page's variables, so that a chart follows its theme. Every mark has a `<title>` with its numbers.

use maud::{Markup, html};

use super::chart::{Chart, ChartPoint, Scale, Series, Shape, Stroke, linear_ticks, log_ticks};

/// The drawing is as wide as a phone, so that its text is not made smaller there.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 390.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 208.0;
/// The number of colours; with more series, they repeat with another mark.
const COLOURS: usize = 8;
/// A range of levels beyond this factor has a logarithmic axis.
const WIDE: f64 = 12.0;
/// The height of a bar with its name.
const BAR: f64 = 38.0;
/// The horizontal distance of the intervals of two series at one level.
const SHIFT: f64 = 4.0;
/// The narrowest gap between two labels of the horizontal axis.
const GAP: f64 = 34.0;

/// Draws a chart with its title and legend.
pub(super) fn figure(chart: &Chart) -> Markup {
    let drawing = match chart.shape {
        Shape::Lines | Shape::LogLines => lines(chart),
        Shape::Columns => columns(chart),
        Shape::Bars => bars(chart),
    };
    html! {
        figure {
            figcaption { (chart.title) span.unit { (chart.figure) } }
            (drawing)
            @if needs_legend(chart) { (legend(chart)) }
        }
    }
}

/// A single line has the name of its chart; a single part of a column or bar has a name of its own.
fn needs_legend(chart: &Chart) -> bool {
    let is_line = matches!(chart.shape, Shape::Lines | Shape::LogLines);
    chart.series.len() > 1 || (!is_line && chart.series.iter().any(|series| !series.name.is_empty()))
}

fn colour(series: &Series) -> String {
    format!("c{}", series.colour % COLOURS)
}

fn legend(chart: &Chart) -> Markup {
    let is_line = matches!(chart.shape, Shape::Lines | Shape::LogLines);
    html! {
        ul.legend {
            @for series in &chart.series {
                li {
                    svg viewBox="0 0 26 12" width="26" height="12" aria-hidden="true" {
                        g class=(colour(series)) {
                            @if is_line {
                                path class=(stroke(series.stroke)) d="M1 6H25" {}
                                @if series.stroke == Stroke::Measured { (mark(series, 13.0, 6.0, None)) }
                            } @else {
                                rect.area x="3" y="1" width="18" height="10" {}
                            }
                        }
                    }
                    (series.name)
                }
            }
        }
    }
}

fn stroke(stroke: Stroke) -> &'static str {
    match stroke {
        Stroke::Measured => "line",
        Stroke::Dashed => "line dashed",
        Stroke::Dotted => "line dotted",
    }
}

/// Draws a mark whose shape depends on the series, so that colours are not all that tells it.
fn mark(series: &Series, x: f64, y: f64, point: Option<&ChartPoint>) -> Markup {
    let path = match series.colour % 4 {
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", x - 4.0),
        1 => format!("M{:.1} {:.1}h7v7h-7Z", x - 3.5, y - 3.5),
        2 => format!("M{x:.1} {:.1}l4.5 8h-9Z", y - 5.0),
        _ => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5Z", y - 5.0),
    };
    html! {
        path.mark.open[point.is_some_and(|point| point.is_marked)] d=(path) {
            @if let Some(point) = point { title { (point.label) } }
        }
    }
}

fn svg(chart: &Chart, height: f64, contents: &Markup) -> Markup {
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(chart.title) { (contents) }
    }
}

/// Draws the horizontal lines and labels of the vertical axis, and the names of both axes.
fn frame(chart: &Chart, ticks: &[f64], scale: &Scale) -> Markup {
    html! {
        @for tick in ticks {
            path.grid d=(format!("M{LEFT} {y:.1}H{RIGHT}", y = scale.position(*tick))) {}
            text.tick x=(LEFT - 6.0) y=(format!("{:.1}", scale.position(*tick) + 4.0)) text-anchor="end" {
                (tick_text(chart, *tick))
            }
        }
        text.axis x=((LEFT + RIGHT) / 2.0) y=(HEIGHT - 6.0) text-anchor="middle" { (chart.level) }
    }
}

/// Formats a round figure of an axis without digits that say nothing.
fn tick_text(chart: &Chart, value: f64) -> String {
    crate::format::figures::round(&(chart.format)(value))
}

fn level_label(level: f64, x: f64) -> Markup {
    html! {
        text.tick x=(format!("{x:.1}")) y=(BOTTOM + 17.0) text-anchor="middle" { (level_text(level)) }
    }
}

fn level_text(level: f64) -> String {
    let text = crate::format::figures::rate(level);
    if level < 10_000.0 { format!("{level:.0}") } else { crate::format::figures::round(&text) }
}

/// Returns the levels whose labels have room, of all that are measured.
fn labelled(levels: &[f64], position: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut chosen: Vec<f64> = Vec::new();
    // The last level is the most telling: labels are chosen from it backwards.
    for level in levels.iter().rev() {
        if chosen.last().is_none_or(|last| position(*last) - position(*level) >= GAP) {
            chosen.push(*level);
        }
    }
    chosen
}

fn levels(chart: &Chart) -> Vec<f64> {
    let measured = chart.series.iter().filter(|series| series.stroke == Stroke::Measured);
    let mut levels: Vec<f64> =
        measured.flat_map(|series| series.points.iter().map(|point| point.level)).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels
}

fn level_scale(levels: &[f64]) -> Scale {
    let (first, last) = (levels.first().copied().unwrap_or(1.0), levels.last().copied().unwrap_or(1.0));
    let is_log = first > 0.0 && last / first > WIDE;
    let low = if is_log { first } else { 0.0 };
    Scale::new(low, last, is_log, LEFT + 8.0, RIGHT - 10.0)
}

fn lines(chart: &Chart) -> Markup {
    let is_log = chart.shape == Shape::LogLines;
    let of_measured = |series: &&Series| series.stroke == Stroke::Measured;
    let measured = chart.series.iter().filter(of_measured).flat_map(|series| &series.points);
    let values: Vec<f64> = measured.map(|point| point.value).filter(|value| *value > 0.0).collect();
    let ends = chart.series.iter().flat_map(|series| &series.points);
    let ends = ends.map(|point| point.interval.map_or(point.value, |[_, high]| high));
    let measured_high = values.iter().copied().fold(0.0, f64::max);
    // Bounds and models far above the measured points would flatten these.
    let high = ends.filter(|end| *end <= measured_high * 1.6).fold(measured_high, f64::max);
    let low = values.iter().copied().fold(high, f64::min);
    let ticks = if is_log && low > 0.0 { log_ticks(low, high) } else { linear_ticks(high, 5.0) };
    let (first, last) = (ticks.first().copied().unwrap_or(0.0), ticks.last().copied().unwrap_or(1.0));
    let vertical = Scale::new(first, last, is_log && low > 0.0, BOTTOM, TOP);
    let levels = levels(chart);
    let horizontal = level_scale(&levels);
    let shifts = shifts(chart);
    let at = |shift: f64, point: &ChartPoint| {
        (horizontal.position(point.level) + shift, vertical.position(point.value))
    };
    let contents = html! {
        (frame(chart, &ticks, &vertical))
        @for level in labelled(&levels, |level| horizontal.position(level)) {
            (level_label(level, horizontal.position(level)))
        }
        @for (series, shift) in chart.series.iter().zip(shifts).rev() {
            g class=(colour(series)) {
                path class=(stroke(series.stroke)) d=(path(series, &vertical, |point| at(shift, point))) {}
                @if series.stroke == Stroke::Measured {
                    @for point in &series.points {
                        @let (x, y) = at(shift, point);
                        @if let Some([low, high]) = point.interval {
                            path.whisker d=(whisker(x, vertical.position(low), vertical.position(high))) {}
                        }
                        (mark(series, x, y, Some(point)))
                    }
                }
            }
        }
    };
    svg(chart, HEIGHT, &contents)
}

/// Returns the horizontal offset of each series, so that intervals at one level do not hide each other.
/// Models stay in place.
fn shifts(chart: &Chart) -> Vec<f64> {
    let is_measured = |series: &&Series| series.stroke == Stroke::Measured;
    let count = chart.series.iter().filter(is_measured).count();
    let first = -SHIFT * (f64::from(u32::try_from(count).unwrap_or(1)) - 1.0) / 2.0;
    let mut next = first;
    let shift = |series: &Series| {
        if series.stroke != Stroke::Measured {
            return 0.0;
        }
        let shift = next;
        next += SHIFT;
        shift
    };
    chart.series.iter().map(shift).collect()
}

fn whisker(x: f64, low: f64, high: f64) -> String {
    format!("M{:.1} {low:.1}h6m-3 0V{high:.1}m-3 0h6", x - 3.0)
}

/// Returns the path of a line. It ends where it leaves the drawing.
fn path(series: &Series, vertical: &Scale, at: impl Fn(&ChartPoint) -> (f64, f64)) -> String {
    let mut path = String::new();
    for point in &series.points {
        let is_inside = point.value <= vertical.high * 1.0001;
        let (x, y) = at(point);
        if is_inside || !path.is_empty() {
            let command = if path.is_empty() { 'M' } else { 'L' };
            path += &format!("{command}{x:.1} {y:.1}");
        }
        if !is_inside && !path.is_empty() {
            break;
        }
    }
    path
}

fn columns(chart: &Chart) -> Markup {
    let levels = levels(chart);
    let value = |series: &Series, level: f64| {
        series.points.iter().find(|point| point.level.total_cmp(&level).is_eq()).cloned()
    };
    let sum = |level: &f64| {
        let values = chart.series.iter().filter_map(|series| value(series, *level));
        values.map(|point| point.value).sum::<f64>()
    };
    let ticks = linear_ticks(levels.iter().map(sum).fold(0.0, f64::max), 5.0);
    let vertical = Scale::new(0.0, ticks.last().copied().unwrap_or(1.0), false, BOTTOM, TOP);
    let column = (RIGHT - LEFT) / f64::from(u32::try_from(levels.len().max(1)).unwrap_or(1));
    let starts: Vec<(f64, f64)> =
        (0..).map(|number: u32| LEFT + column * f64::from(number)).zip(levels.iter().copied()).collect();
    let start = |level: f64| {
        starts.iter().find(|(_, known)| known.total_cmp(&level).is_eq()).map_or(LEFT, |(start, _)| *start)
    };
    let labels = labelled(&levels, start);
    let contents = html! {
        (frame(chart, &ticks, &vertical))
        @for (x, level) in &starts {
            @if labels.contains(level) {
                (level_label(*level, x + column / 2.0))
            }
            @for (below, series, point) in stacked(chart, |series| value(series, *level)) {
                @let (low, high) = (vertical.position(below), vertical.position(below + point.value));
                g class=(colour(series)) {
                    rect.area x=(format!("{:.1}", x + column * 0.14)) y=(format!("{high:.1}"))
                        width=(format!("{:.1}", column * 0.72))
                        height=(format!("{:.1}", (low - high).max(0.0))) {
                        title { (point.label) }
                    }
                }
            }
        }
    };
    svg(chart, HEIGHT, &contents)
}

/// Returns the points of a stack with the sum of those below each.
fn stacked(chart: &Chart, point: impl Fn(&Series) -> Option<ChartPoint>) -> Vec<(f64, &Series, ChartPoint)> {
    let mut below = 0.0;
    let mut all = Vec::new();
    for series in &chart.series {
        let Some(point) = point(series) else { continue };
        let value = point.value;
        all.push((below, series, point));
        below += value;
    }
    all
}

fn bars(chart: &Chart) -> Markup {
    let mut rows: Vec<&ChartPoint> = chart.series.iter().flat_map(|series| &series.points).collect();
    rows.sort_by(|one, other| one.level.total_cmp(&other.level));
    let mut names: Vec<&str> = rows.iter().map(|point| point.name.as_str()).collect();
    names.dedup();
    let value = |series: &Series, name: &str| series.points.iter().find(|point| point.name == name).cloned();
    let end = |name: &&str| {
        let points = chart.series.iter().filter_map(|series| value(series, name));
        points.map(|point| point.interval.map_or(point.value, |[_, high]| high.min(point.value * 1.5))).sum()
    };
    let high = names.iter().map(end).fold(0.0, f64::max);
    let ticks = linear_ticks(high, 4.0);
    let scale = Scale::new(0.0, ticks.last().copied().unwrap_or(1.0), false, 10.0, RIGHT - 8.0);
    let height = BAR * f64::from(u32::try_from(names.len()).unwrap_or(1));
    let contents = html! {
        @for tick in &ticks {
            path.grid d=(format!("M{:.1} 0V{height}", scale.position(*tick))) {}
            text.tick x=(format!("{:.1}", scale.position(*tick))) y=(height + 16.0)
                text-anchor=(if *tick == 0.0 { "start" } else { "middle" }) { (tick_text(chart, *tick)) }
        }
        text.axis x=((10.0 + RIGHT) / 2.0) y=(height + 34.0) text-anchor="middle" { (chart.figure) }
        @for (y, name) in (0..).map(|number: u32| BAR * f64::from(number)).zip(&names) {
            text.name x="12" y=(y + 14.0) { (name) }
            @for (below, series, point) in stacked(chart, |series| value(series, name)) {
                @let (from, to) = (scale.position(below), scale.position(below + point.value));
                g class=(colour(series)) {
                    rect.area x=(format!("{from:.1}")) y=(y + 19.0)
                        width=(format!("{:.1}", (to - from).max(0.5))) height="13" { title { (point.label) } }
                    @if let Some([low, high]) = point.interval {
                        path.whisker d=(format!("M{:.1} {:.1}H{:.1}", scale.position(low), y + 25.5,
                            scale.position(high))) {}
                    }
                }
            }
        }
    };
    svg(chart, height + 40.0, &contents)
}
