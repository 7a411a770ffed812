//! Pictures as SVG and PNG, drawn with a font of our own: no system fonts are needed.
//!
//! * [`draw_lines`]: panels of lines side by side, such as a loss over the iterations or a time over the length.
//! * [`draw_dots`]: one row for each value, with its confidence, and a published value and what takes no model beside it.

mod dots;
mod lines;
mod png;
mod ticks;

use std::path::Path;
use std::sync::Once;

use minrnn_model::write_atomic;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::TextStyle;

pub use dots::{Dot, DotGroup, draw_dots};
pub use lines::{Axis, Level, Panel, Series, draw_lines};
pub(crate) use ticks::{label, linear};

use crate::{Error, Result};

const FONT: &str = "DejaVu Sans";
/// The PNG has this many pixels for one of the SVG, each way.
const PNG_SCALE: u32 = 2;
const MAX_TITLE: usize = 90;

pub(crate) const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
pub(crate) const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
/// Blue and orange first; told apart also by those who see no red or no green.
pub(crate) const COLORS: [RGBColor; 10] = [
    RGBColor(0x1f, 0x6f, 0xb4),
    RGBColor(0xd9, 0x48, 0x01),
    RGBColor(0x2a, 0x9d, 0x6f),
    RGBColor(0x8e, 0x44, 0xad),
    RGBColor(0xc9, 0x9a, 0x00),
    RGBColor(0x17, 0xa2, 0xb8),
    RGBColor(0xc2, 0x18, 0x5b),
    RGBColor(0x6d, 0x4c, 0x41),
    RGBColor(0x75, 0x75, 0x75),
    RGBColor(0x55, 0x8b, 0x2f),
];

pub(crate) type DrawResult<B> = std::result::Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

/// What can be drawn at any scale.
pub(crate) trait Picture {
    /// Width and height in pixels at scale 1.
    fn size(&self) -> (u32, u32);

    /// Draws on an area of that size; `scale` multiplies every length.
    fn draw<'a, B: DrawingBackend + 'a>(&self, area: DrawingArea<B, Shift>, scale: i32) -> DrawResult<B>;
}

/// Draws `picture` to `name.svg` and `name.png` in `directory`, replacing older ones.
pub(crate) fn save(picture: &impl Picture, directory: &Path, name: &str) -> Result<()> {
    register_font();
    let (width, height) = picture.size();
    let svg_path = directory.join(format!("{name}.svg"));
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
    picture.draw(area, 1).map_err(|error| cannot_draw(&svg_path, error.to_string()))?;
    // Where the font is missing, one of like widths takes its place.
    let svg = svg.replace(&format!("font-family=\"{FONT}\""), &format!("font-family=\"{FONT}, Verdana, sans-serif\""));
    write_atomic(&svg_path, svg.as_bytes())?;

    let png_path = directory.join(format!("{name}.png"));
    let (width, height) = (width * PNG_SCALE, height * PNG_SCALE);
    let mut pixels = vec![0; 3 * width as usize * height as usize];
    let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
    picture.draw(area, PNG_SCALE as i32).map_err(|error| cannot_draw(&png_path, error.to_string()))?;
    Ok(write_atomic(&png_path, &png::encode(&pixels, width, height))?)
}

/// Text of that many pixels.
pub(crate) fn text(size: i32, color: RGBColor) -> TextStyle<'static> {
    let mut style = TextStyle::from((FONT, size).into_font());
    style.color = color.to_backend_color();
    style
}

/// A title that fits above a picture.
pub(crate) fn shorten(title: &str) -> String {
    let line: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.chars().count() <= MAX_TITLE { line } else { line.chars().take(MAX_TITLE - 1).chain(['…']).collect() }
}

/// `value` with as many decimals as tell apart the labels of an axis over `range`.
pub(crate) fn axis_label(value: f64, range: f64) -> String {
    let decimals = if range > 10.0 { 0 } else { (1.0 - range.log10().floor()).clamp(1.0, 6.0) as usize };
    format!("{value:.decimals$}")
}

/// Lowest and highest of `values`, with a margin so that nothing lies on the frame; from 0 up where none is negative.
pub(crate) fn range_of(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    let margin = (0.05 * (high - low)).max(1e-3 * high.abs()).max(1e-9);
    (if low >= 0.0 { (low - margin).max(0.0) } else { low - margin }, high + margin)
}

fn cannot_draw(path: &Path, problem: String) -> Error {
    Error::io("draw", path, std::io::Error::other(problem))
}

fn register_font() {
    static ONCE: Once = Once::new();
    // A refused font would show as an error of the first text drawn.
    ONCE.call_once(|| {
        let font = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/DejaVuSans-subset.ttf"));
        let _ = plotters::style::register_font(FONT, FontStyle::Normal, font);
    });
}
