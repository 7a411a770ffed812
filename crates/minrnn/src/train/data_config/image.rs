//! Long Range Arena: what a picture shows, read pixel by pixel.

use super::{Source, TaskSpec};
use crate::data::Image;

const FILES: &str = "CIFAR-10's binary version (data_batch_1.bin to data_batch_5.bin and test_batch.bin)";

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Folder,
    length: |_, _| Ok(("32 · 32 pixels", 32 * 32)),
    scored: |_, _| 1,
    io: Some(|data| Image::signals(data.pixels)),
    open: Some(|data, _, _| Ok(Box::new(Image::open(data.pixels, data.folder(FILES)?)?))),
    ..TaskSpec::MADE
};
