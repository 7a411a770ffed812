//! Tables as JSON Lines: read, cut into sequences, and made into batches.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn_fuzz::library::use_table;
use minrnn_fuzz::{file, seeds};

fuzz_target!(
    init: seeds("ndjson", || {
        let row = |i: i32| format!("{{\"id\":\"s{}\",\"label\":{},\"x\":{}.5,\"y\":[1,{{}}],\"ds\":\"2024-01-{:02}\"}}\n", i / 4, i / 4 % 2, i, 1 + i % 4);
        let plain: String = (0..24).map(row).collect();
        vec![plain.replace(".5", "").into_bytes(), plain.replace("\"x\":3", "\"x\":null,\"\\u00e9\":3").into_bytes(), plain.into_bytes()]
    }),
    |data: &[u8]| {
        if data.trim_ascii_start().starts_with(b"{\"") {
            use_table(&file("table", data));
        }
    }
);
