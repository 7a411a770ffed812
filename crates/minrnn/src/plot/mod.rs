//! Pictures as SVG and PNG, drawn with a built-in font: no system fonts are needed.
//!
//! * [`draw_lines`]: panels of lines side by side, such as a loss over iterations or a time over length; [`line_picture`] draws the same
//!   without writing it.
//! * [`draw_dots`]: one row for each value, with its confidence interval, beside a published value and a baseline without a model.

mod dots;
mod lines;
mod png;
mod ticks;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Once;

use minrnn_model::{names_of, write_atomic};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::TextStyle;

pub use dots::{Dot, DotGroup, draw_dots};
pub use lines::{Axis, Level, Panel, Series, draw_lines, line_picture};
pub(crate) use ticks::{label, linear};

use crate::{Error, Result};

const FONT: &str = "DejaVu Sans";
/// The PNG has this many pixels per SVG pixel, in each direction.
const PNG_SCALE: u32 = 2;
const MAX_TITLE: usize = 90;

pub(crate) const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
pub(crate) const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
/// Blue and orange first; distinguishable also with red-green colour blindness.
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

/// A picture that has been drawn but not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// As SVG.
    pub svg: String,
    /// The same as the bytes of a PNG file.
    pub png: Vec<u8>,
}

impl Drawn {
    fn of(picture: &impl Picture) -> Result<Self> {
        register_font();
        let (width, height) = picture.size();
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        picture.draw(area, 1).map_err(|error| cannot_draw(error.to_string()))?;
        // If the font is missing, one of similar widths replaces it.
        let svg = svg.replace(&format!("font-family=\"{FONT}\""), &format!("font-family=\"{FONT}, Verdana, sans-serif\""));

        let (width, height) = (width * PNG_SCALE, height * PNG_SCALE);
        let mut pixels = vec![0; 3 * width as usize * height as usize];
        let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        picture.draw(area, PNG_SCALE as i32).map_err(|error| cannot_draw(error.to_string()))?;
        Ok(Self { svg, png: png::encode(&pixels, width, height) })
    }

    /// Writes both files, replacing older ones.
    ///
    /// # Errors
    /// When one of them cannot be written; the other is then unchanged, as far as the disk allows.
    pub fn write(&self, svg: impl AsRef<Path>, png: impl AsRef<Path>) -> Result<()> {
        let svg = svg.as_ref();
        let before = std::fs::read(svg);
        write_atomic(svg, self.svg.as_bytes())?;
        let Err(error) = write_atomic(png, &self.png) else { return Ok(()) };
        // The error about the second file is the one reported.
        match before {
            Ok(bytes) => _ = write_atomic(svg, &bytes),
            Err(missing) if missing.kind() == ErrorKind::NotFound => {
                let _ = std::fs::remove_file(names_of(svg).last().unwrap_or_default());
            }
            Err(_) => {}
        }
        Err(error.into())
    }
}

/// Draws `picture` to `name.svg` and `name.png` in `directory`, replacing older ones.
pub(crate) fn save(picture: &impl Picture, directory: &Path, name: &str) -> Result<()> {
    let [svg, png] = ["svg", "png"].map(|ending| directory.join(format!("{name}.{ending}")));
    Drawn::of(picture)?.write(svg, png)
}

/// Text of `size` pixels.
pub(crate) fn text(size: i32, color: RGBColor) -> TextStyle<'static> {
    let mut style = TextStyle::from((FONT, size).into_font());
    style.color = color.to_backend_color();
    style
}

/// `text` on one line, without characters that are not allowed in an SVG.
fn legible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { ' ' } else { c }).collect()
}

/// A title that fits above a picture.
pub(crate) fn shorten(title: &str) -> String {
    let line = legible(title);
    if line.chars().count() <= MAX_TITLE { line } else { line.chars().take(MAX_TITLE - 1).chain(['…']).collect() }
}

/// `value` with as many decimals as distinguish the labels of an axis over `range`.
pub(crate) fn axis_label(value: f64, range: f64) -> String {
    let decimals = if range > 10.0 { 0 } else { (1.0 - range.log10().floor()).clamp(1.0, 6.0) as usize };
    format!("{value:.decimals$}")
}

/// Lowest and highest of `values`, with a margin so that nothing touches the frame; not below 0 if none is negative.
pub(crate) fn range_of(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    let margin = (0.05 * (high - low)).max(1e-3 * high.abs()).max(1e-9);
    (if low >= 0.0 { (low - margin).max(0.0) } else { low - margin }, high + margin)
}

fn cannot_draw(problem: String) -> Error {
    Error::io("draw", "the picture", std::io::Error::other(problem))
}

fn register_font() {
    static ONCE: Once = Once::new();
    // A refused font would cause an error when the first text is drawn.
    ONCE.call_once(|| {
        let font = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/DejaVuSans-subset.ttf"));
        let _ = plotters::style::register_font(FONT, FontStyle::Normal, font);
    });
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn both_files_are_written_or_neither_is() {
        let directory = tempfile::tempdir().unwrap();
        let [svg, png] = ["p.svg", "p.png"].map(|name| directory.path().join(name));
        let drawn = Drawn { svg: "<svg/>".to_owned(), png: vec![1, 2] };
        // A folder is in the place of the second file.
        fs::create_dir(&png).unwrap();
        assert!(drawn.write(&svg, &png).unwrap_err().to_string().contains("p.png"));
        assert!(!svg.exists());
        fs::write(&svg, "older").unwrap();
        drawn.write(&svg, &png).unwrap_err();
        assert_eq!(fs::read_to_string(&svg).unwrap(), "older");
        fs::remove_dir(&png).unwrap();
        drawn.write(&svg, &png).unwrap();
        assert_eq!((fs::read_to_string(&svg).unwrap(), fs::read(&png).unwrap()), (drawn.svg, drawn.png));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
