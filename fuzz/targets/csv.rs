//! Tables as CSV: read, cut into sequences, and made into batches.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn_fuzz::library::use_table;
use minrnn_fuzz::{file, seeds};

fuzz_target!(
    init: seeds("csv", || {
        let rows: String = (0..48).map(|i| format!("s{},{},{},{:.3}\n", i / 4, i / 4 % 2, i, (f64::from(i)).sin())).collect();
        let plain = format!("id,label,x,y\n{rows}");
        let quoted = "\u{feff}\"id\";label;\"x\"\r\n\"a;\"\"b\";one;1e3\r\n\"a;\"\"b\";one;-2\r\n\r\nc;two;3\r\nc;two;4\r\n";
        vec![plain.clone().into_bytes(), quoted.as_bytes().to_vec(), plain.replace(',', "\t").into_bytes(), b"x\n1\n2\n3\n4\n5\n6\n7\n8".to_vec()]
    }),
    |data: &[u8]| use_table(&file("table", data))
);
