//! Pictures: the first file of the training part.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn::data::{Image, PixelInput};
use minrnn_fuzz::library::use_task;
use minrnn_fuzz::{file, folder, seeds};

const RECORD: usize = 3073;

fuzz_target!(
    init: seeds("image", || vec![vec![7; RECORD], (0..2 * RECORD).map(|i| (i % RECORD % 10) as u8).collect()]),
    |data: &[u8]| {
        file("data_batch_1.bin", data);
        if !folder().join("test_batch.bin").exists() {
            for name in ["data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"] {
                file(name, &[1; RECORD]);
            }
        }
        let input = if data.len() < 2 * RECORD { PixelInput::Value } else { PixelInput::Token };
        if let Ok(task) = Image::open(input, folder()) {
            use_task(&task);
        }
    }
);
