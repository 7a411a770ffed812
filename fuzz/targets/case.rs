//! Verify cases: read, and computed if they are small.
#![no_main]

use burn::tensor::Device;
use libfuzzer_sys::fuzz_target;
use minrnn::verify::{Case, Tolerance};
use minrnn_fuzz::{file, repository_files, seeds};

fuzz_target!(
    init: seeds("case", || repository_files("crates/cli/tests/fixtures/verify", "safetensors", 1 << 13)),
    |data: &[u8]| {
        let Ok(case) = Case::read(file("case.safetensors", data)) else { return };
        let sizes = case.sizes();
        let steps = sizes.batch_size * sizes.seq_len;
        if steps * (sizes.d_model + sizes.d_inner) > 1 << 13 || sizes.d_model * sizes.d_inner > 1 << 13 {
            return;
        }
        let comparisons = case.check(Tolerance::default(), &Device::flex());
        assert!(!comparisons.is_empty(), "there is something to compare");
    }
);
