//! Plots of a run: an SVG file for each question.
//!
//! It computes nothing that the tables lack. Invariants: every picture has a title, units and intervals; no
//! information is in colour alone, and the colours suit readers with any colour vision.

mod bars;
mod forest;
mod scale;
mod sheet;

use anyhow::Result;

use super::cells::Cell;
use crate::bench::{Connections, Results};

/// Draws all pictures, each with its file name.
pub(super) fn all(results: &Results, cells: &[Cell]) -> Result<Vec<(String, String)>> {
    let mut pictures = Vec::new();
    for (connections, congestion) in sheets(results, cells) {
        let of_sheet = |cell: &&Cell| cell.congestion == congestion && is_of(results, cell, connections);
        let chosen: Vec<&Cell> = cells.iter().filter(of_sheet).collect();
        let under = format!("{} connections, {congestion}", connections.name());
        let end = format!("{}-{congestion}.svg", connections.name());
        pictures
            .push((format!("throughput-{end}"), bars::draw(&bars::THROUGHPUT, &under, results, &chosen)?));
        pictures.push((format!("cpu-{end}"), bars::draw(&bars::CPU, &under, results, &chosen)?));
    }
    pictures.push(("ratios.svg".to_owned(), forest::draw(results, cells)?));
    Ok(pictures)
}

/// Returns the combinations of connections and congestion control that have cells.
fn sheets<'a>(results: &Results, cells: &'a [Cell]) -> Vec<(Connections, &'a str)> {
    let mut sheets = Vec::new();
    for connections in [Connections::Kept, Connections::New] {
        for cell in cells.iter().filter(|cell| is_of(results, cell, connections)) {
            if !sheets.contains(&(connections, cell.congestion.as_str())) {
                sheets.push((connections, cell.congestion.as_str()));
            }
        }
    }
    sheets
}

fn is_of(results: &Results, cell: &Cell, connections: Connections) -> bool {
    results.cases.iter().any(|case| case.name == cell.case && case.connections == connections)
}
