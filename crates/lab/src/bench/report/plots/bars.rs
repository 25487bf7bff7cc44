//! Bar charts: a panel for each case, a bar for each contender.
//!
//! Each panel has its own scale. Invariants: ours and the best peer must stand out; every bar has its name
//! and its figure.

use anyhow::Result;
use plotters::prelude::RGBColor;

use super::scale::Scale;
use super::sheet::{Align, BLUE, GREY, HEADING, INK, ORANGE, PALE, Sheet, TITLE, WORDS, picture};
use crate::bench::Results;
use crate::bench::report::cells::{Cell, Summary};
use crate::bench::report::{figures, rounds};
use crate::stats::Estimate;

/// The quantity that a chart shows.
pub(super) struct BarQuantity {
    title: &'static str,
    unit: &'static str,
    value: fn(&Summary) -> Option<Estimate>,
    told: fn(f64) -> String,
    is_best: fn(&Cell, &Summary) -> bool,
}

pub(super) const THROUGHPUT: BarQuantity = BarQuantity {
    title: "Throughput",
    unit: "answers per second, more is better",
    value: |one| one.rate,
    told: figures::rate,
    is_best: |cell, one| cell.ratios.iter().any(|ratio| ratio.best_rate && ratio.theirs == one.contender),
};

pub(super) const CPU: BarQuantity = BarQuantity {
    title: "CPU time of the server",
    unit: "microseconds for each answer, less is better",
    value: |one| one.cpu_us,
    told: figures::microseconds,
    is_best: |cell, one| cell.ratios.iter().any(|ratio| ratio.best_cpu && ratio.theirs == one.contender),
};

const COLUMNS: usize = 2;
const PANEL_WIDTH: i32 = 520;
const NAMES_WIDTH: i32 = 120;
const FIGURES_WIDTH: i32 = 70;
const BAR_HEIGHT: i32 = 20;
const ABOVE_BARS: i32 = 40;
const BELOW_BARS: i32 = 34;
const HEAD_HEIGHT: i32 = 84;
const MARGIN: i32 = 16;

pub(super) fn draw(kind: &BarQuantity, under: &str, results: &Results, cells: &[&Cell]) -> Result<String> {
    let bars = i32::try_from(results.entrants.len())?;
    let panel_height = ABOVE_BARS + bars * BAR_HEIGHT + BELOW_BARS;
    let rows = i32::try_from(cells.len().div_ceil(COLUMNS))?;
    let columns = i32::try_from(cells.len().clamp(1, COLUMNS))?;
    // The header needs the width of two columns, even above a single one.
    let width = (columns * PANEL_WIDTH).max(860) + MARGIN;
    picture(width, HEAD_HEIGHT + rows * panel_height + MARGIN, |sheet| {
        head(sheet, kind, under, results)?;
        for (at, cell) in cells.iter().enumerate() {
            let (row, column) = (i32::try_from(at / COLUMNS)?, i32::try_from(at % COLUMNS)?);
            let corner = (MARGIN + column * PANEL_WIDTH, HEAD_HEIGHT + row * panel_height);
            panel(sheet, kind, cell, corner)?;
        }
        Ok(())
    })
}

fn head(sheet: &Sheet<'_>, kind: &BarQuantity, under: &str, results: &Results) -> Result<()> {
    sheet.words(&format!("{}: {under}", kind.title), (MARGIN, 24), TITLE, Align::Left)?;
    let how = format!(
        "{} users, {}; medians, intervals of 95 %; g: generator was the limit; e: errors",
        results.settings.users,
        rounds(results)
    );
    sheet.words(&how, (MARGIN, 46), WORDS, Align::Left)?;
    let keys = [(BLUE, "plimsoll"), (ORANGE, "the best peer of the case"), (GREY, "other peers")];
    for ((colour, name), left) in keys.into_iter().zip([MARGIN, MARGIN + 100, MARGIN + 290]) {
        sheet.rectangle((left, 60), (left + 12, 72), colour)?;
        sheet.words(name, (left + 18, 66), WORDS, Align::Left)?;
    }
    Ok(())
}

fn panel(sheet: &Sheet<'_>, kind: &BarQuantity, cell: &Cell, (left, top): (i32, i32)) -> Result<()> {
    let values = cell.summaries.iter().filter_map(|one| (kind.value)(one));
    let max = values.map(|value| value.high.max(value.median)).fold(0.0, f64::max);
    let from = left + NAMES_WIDTH;
    let scale = Scale::of_amounts(max, from, PANEL_WIDTH - NAMES_WIDTH - FIGURES_WIDTH);
    sheet.words(&format!("{}, {}", cell.case, kind.unit), (left, top + 18), HEADING, Align::Left)?;
    let bottom = top + ABOVE_BARS + i32::try_from(cell.summaries.len())? * BAR_HEIGHT;
    lines(sheet, kind, &scale, (top + ABOVE_BARS - 6, bottom + 4))?;
    for (at, one) in cell.summaries.iter().enumerate() {
        let y = top + ABOVE_BARS + i32::try_from(at)? * BAR_HEIGHT + BAR_HEIGHT / 2;
        sheet.words(&one.contender, (from - 8, y), WORDS, Align::Right)?;
        bar(sheet, kind, cell, one, &scale, y)?;
    }
    sheet.line((from, top + ABOVE_BARS - 6), (from, bottom + 4), INK, 1)
}

fn lines(sheet: &Sheet<'_>, kind: &BarQuantity, scale: &Scale, (top, bottom): (i32, i32)) -> Result<()> {
    let all = scale.lines();
    // Labels every second line, because long figures must fit.
    for (at, value) in all.iter().enumerate() {
        let x = scale.at(*value);
        sheet.line((x, top), (x, bottom), PALE, 1)?;
        if at % 2 == 0 || all.len() < 5 {
            let told = figures::round(&(kind.told)(*value));
            sheet.words(&told, (x, bottom + 12), WORDS, Align::Middle)?;
        }
    }
    Ok(())
}

fn bar(
    sheet: &Sheet<'_>,
    kind: &BarQuantity,
    cell: &Cell,
    one: &Summary,
    scale: &Scale,
    y: i32,
) -> Result<()> {
    const HALF: i32 = 7;
    let Some(value) = (kind.value)(one) else {
        return sheet.words(figures::NONE, (scale.at(0.0) + 6, y), WORDS, Align::Left);
    };
    let end = scale.at(value.median);
    sheet.rectangle((scale.at(0.0), y - HALF), (end, y + HALF), colour(kind, cell, one))?;
    sheet.whisker(y, scale.at(value.low), scale.at(value.high), INK)?;
    let marks = [(one.generator_is_the_limit, " g"), (one.errors > 0, " e")];
    let marks: String = marks.iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| *mark).collect();
    let told = format!("{}{marks}", (kind.told)(value.median));
    sheet.words(&told, (end.max(scale.at(value.high)) + 6, y), WORDS, Align::Left)
}

fn colour(kind: &BarQuantity, cell: &Cell, one: &Summary) -> RGBColor {
    if one.ours {
        BLUE
    } else if (kind.is_best)(cell, one) {
        ORANGE
    } else {
        GREY
    }
}
