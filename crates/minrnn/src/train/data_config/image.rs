//! Long Range Arena: classifying a picture, read pixel by pixel.

use serde::{Deserialize, Serialize};

use super::{Source, TaskSpec, has_key};
use crate::data::{Image, PixelInput};

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Folder,
    reads: |data, key| has_key(&data.image, key),
    length: |_, _| Ok(("32 · 32 pixels", 32 * 32)),
    scored: |_, _| 1,
    io: Some(|data| Image::signals(data.image.pixels)),
    open: Some(|data, _, _| {
        let files = format!("CIFAR-10's binary version ({})", Image::FILES);
        Ok(Box::new(Image::open(data.image.pixels, data.folder(&files)?)?))
    }),
    held: |_| 60_000 * 32 * 32 * 4,
    ..TaskSpec::MADE
};

/// How pictures are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageConfig {
    /// How a pixel is read. Default `value`.
    pub pixels: PixelInput,
}

impl Default for ImageConfig {
    fn default() -> Self {
        Self { pixels: PixelInput::Value }
    }
}
