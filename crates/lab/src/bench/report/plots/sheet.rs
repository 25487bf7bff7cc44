//! A drawing surface: boxes, lines and text at pixel positions.
//!
//! Only this module uses the drawing crate. Invariant: data colours are of Okabe and Ito's palette, which
//! readers with any colour vision can distinguish.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::{
    Circle, DrawingArea, IntoDrawingArea as _, PathElement, RGBColor, Rectangle, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontDesc, FontFamily, FontStyle, TextStyle};

pub(super) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(super) const SKY: RGBColor = RGBColor(86, 180, 233);
pub(super) const GREEN: RGBColor = RGBColor(0, 158, 115);
pub(super) const ORANGE: RGBColor = RGBColor(230, 159, 0);
pub(super) const GREY: RGBColor = RGBColor(170, 170, 170);
pub(super) const PALE: RGBColor = RGBColor(228, 228, 228);
pub(super) const INK: RGBColor = RGBColor(32, 32, 32);
const WHITE: RGBColor = RGBColor(255, 255, 255);

/// Horizontal alignment of text at a point.
#[derive(Clone, Copy)]
pub(super) enum Align {
    Left,
    Middle,
    Right,
}

/// Font sizes in pixels.
pub(super) const TITLE: i32 = 20;
pub(super) const HEADING: i32 = 15;
pub(super) const WORDS: i32 = 12;

/// A drawing surface.
pub(super) struct Sheet<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// Draws a picture of `width` by `height` pixels and returns it as SVG.
pub(super) fn picture(
    width: i32,
    height: i32,
    draw: impl FnOnce(&Sheet<'_>) -> Result<()>,
) -> Result<String> {
    let mut svg = String::new();
    let size = (u32::try_from(width)?, u32::try_from(height)?);
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE).map_err(|error| anyhow!("{error}"))?;
        let sheet = Sheet { area };
        draw(&sheet)?;
        sheet.area.present().map_err(|error| anyhow!("{error}"))?;
    }
    Ok(svg)
}

impl Sheet<'_> {
    pub(super) fn rectangle(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Result<()> {
        self.area.draw(&Rectangle::new([from, to], colour.filled())).map_err(|error| anyhow!("{error}"))
    }

    pub(super) fn line(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor, width: u32) -> Result<()> {
        let style = colour.stroke_width(width);
        self.area.draw(&PathElement::new([from, to], style)).map_err(|error| anyhow!("{error}"))
    }

    pub(super) fn dot(&self, at: (i32, i32), colour: RGBColor) -> Result<()> {
        self.area.draw(&Circle::new(at, 4, colour.filled())).map_err(|error| anyhow!("{error}"))
    }

    /// Draws an interval: a line with a bar at each end.
    pub(super) fn whisker(&self, y: i32, from: i32, to: i32, colour: RGBColor) -> Result<()> {
        const HALF: i32 = 3;
        self.line((from, y), (to, y), colour, 1)?;
        [from, to].iter().try_for_each(|x| self.line((*x, y - HALF), (*x, y + HALF), colour, 1))
    }

    /// Draws text at a point, vertically centred.
    pub(super) fn words(&self, text: &str, at: (i32, i32), size: i32, from: Align) -> Result<()> {
        let weight = if size > WORDS { FontStyle::Bold } else { FontStyle::Normal };
        let font = FontDesc::new(FontFamily::SansSerif, f64::from(size), weight);
        let side = match from {
            Align::Left => HPos::Left,
            Align::Middle => HPos::Center,
            Align::Right => HPos::Right,
        };
        let style = TextStyle::from(font).color(&INK).pos(Pos::new(side, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), at, style)).map_err(|error| anyhow!("{error}"))
    }
}
