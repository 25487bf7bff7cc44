//! A forest plot of ours against the best peer of each cell: a row for each, with its interval, beside 1.
//!
//! Invariant: more responses are always to the right and less CPU time to the left, and the picture states
//! which is better.

use anyhow::Result;
use plotters::prelude::RGBColor;

use super::scale::Scale;
use super::sheet::{Align, BLUE, GREEN, HEADING, INK, ORANGE, PALE, SKY, Sheet, TITLE, WORDS, picture};
use crate::bench::Results;
use crate::bench::report::cells::{Cell, Ratio};
use crate::bench::report::rounds;
use crate::stats::Estimate;

const NAMES_WIDTH: i32 = 130;
const PANEL_WIDTH: i32 = 400;
const GAP: i32 = 30;
const ROW_HEIGHT: i32 = 14;
const ROW_GAP: i32 = 10;
const HEAD_HEIGHT: i32 = 104;
const FOOT_HEIGHT: i32 = 34;
const MARGIN: i32 = 16;
/// The colours of ours, in the order of the entrants.
const COLOURS: [RGBColor; 4] = [BLUE, ORANGE, GREEN, SKY];

/// One of the two panels.
struct Panel {
    title: &'static str,
    is_best: fn(&Ratio) -> bool,
    value: fn(&Ratio) -> Option<Estimate>,
}

const PANELS: [Panel; 2] = [
    Panel {
        title: "answers per second: right of 1 is better",
        is_best: |ratio| ratio.best_rate,
        value: |ratio| ratio.rate,
    },
    Panel {
        title: "CPU time for each: left of 1 is better",
        is_best: |ratio| ratio.best_cpu,
        value: |ratio| ratio.cpu,
    },
];

pub(super) fn draw(results: &Results, cells: &[Cell]) -> Result<String> {
    let ours: Vec<&str> =
        results.entrants.iter().filter(|one| one.ours).map(|one| one.name.as_str()).collect();
    let row = i32::try_from(ours.len().max(1))? * ROW_HEIGHT + ROW_GAP;
    let height = HEAD_HEIGHT + i32::try_from(cells.len())? * row + FOOT_HEIGHT;
    picture(2 * MARGIN + NAMES_WIDTH + 2 * PANEL_WIDTH + GAP, height, |sheet| {
        head(sheet, results, &ours)?;
        for (at, cell) in cells.iter().enumerate() {
            let y = HEAD_HEIGHT + i32::try_from(at)? * row + row / 2;
            let name = format!("{}, {}", cell.case, cell.congestion);
            sheet.words(&name, (MARGIN + NAMES_WIDTH - 10, y), WORDS, Align::Right)?;
        }
        for (at, panel) in PANELS.iter().enumerate() {
            let left = MARGIN + NAMES_WIDTH + i32::try_from(at)? * (PANEL_WIDTH + GAP);
            draw_panel(sheet, panel, cells, &ours, (left, row))?;
        }
        Ok(())
    })
}

fn head(sheet: &Sheet<'_>, results: &Results, ours: &[&str]) -> Result<()> {
    sheet.words("Against the best peer of each case", (MARGIN, 24), TITLE, Align::Left)?;
    let how = format!(
        "medians of ratios of the same round, with intervals of 95 %; {} users, {}",
        results.settings.users,
        rounds(results)
    );
    sheet.words(&how, (MARGIN, 46), WORDS, Align::Left)?;
    for (at, name) in ours.iter().enumerate() {
        let left = MARGIN + 4 + i32::try_from(at)? * 150;
        sheet.dot((left, 66), COLOURS[at % COLOURS.len()])?;
        sheet.words(name, (left + 12, 66), WORDS, Align::Left)?;
    }
    Ok(())
}

fn draw_panel(
    sheet: &Sheet<'_>,
    panel: &Panel,
    cells: &[Cell],
    ours: &[&str],
    (left, row): (i32, i32),
) -> Result<()> {
    let best = |cell: &'_ Cell, name: &str| {
        let mut found = cell.ratios.iter().filter(|ratio| ratio.ours == name && (panel.is_best)(ratio));
        found.next().and_then(panel.value)
    };
    let all = cells.iter().flat_map(|cell| ours.iter().filter_map(|name| best(cell, name)));
    let scale = Scale::of_ratios(all.flat_map(|value| [value.low, value.high]), left, PANEL_WIDTH);
    let bottom = HEAD_HEIGHT + i32::try_from(cells.len())? * row;
    sheet.words(panel.title, (left, HEAD_HEIGHT - 14), HEADING, Align::Left)?;
    for value in scale.lines() {
        let x = scale.at(value);
        sheet.line((x, HEAD_HEIGHT), (x, bottom), if value == 1.0 { INK } else { PALE }, 1)?;
        sheet.words(&format!("{value}"), (x, bottom + 14), WORDS, Align::Middle)?;
    }
    for (at, cell) in cells.iter().enumerate() {
        for (line, name) in ours.iter().enumerate() {
            let Some(value) = best(cell, name) else { continue };
            let line_at = i32::try_from(line)?;
            let y =
                HEAD_HEIGHT + i32::try_from(at)? * row + ROW_GAP / 2 + line_at * ROW_HEIGHT + ROW_HEIGHT / 2;
            let colour = COLOURS[line % COLOURS.len()];
            sheet.whisker(y, scale.at(value.low), scale.at(value.high), colour)?;
            sheet.dot((scale.at(value.median), y), colour)?;
        }
    }
    Ok(())
}
