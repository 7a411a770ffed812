//! Sequences in the archives' .ts format: read, and made into batches.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn_fuzz::library::use_table;
use minrnn_fuzz::{file, seeds};

fuzz_target!(
    init: seeds("ts", || {
        let head = "# about\n@problemName x\n@timeStamps false\n@univariate true\n@equalLength false\n@classLabel true a b\n@data\n";
        let rows: String = (0..12).map(|i| format!("{i},1,2{}:{}\n", ",?".repeat(i % 3), ["a", "b"][i % 2])).collect();
        let several = format!("{head}{rows}").replace("@univariate true", "@dimensions 2").replace(",1,2", ",1,2:3,4,5");
        let timed = "@timestamps true\n@targetlabel true\n@data\n(2024-01-01 00:00:00,1),(2024-01-01 01:00:00,2),(2024-01-01 02:00:00,3):0.5\n";
        vec![format!("{head}{rows}").into_bytes(), several.into_bytes(), timed.as_bytes().to_vec()]
    }),
    |data: &[u8]| {
        if data.starts_with(b"@") || data.starts_with(b"#") {
            use_table(&file("table", data));
        }
    }
);
