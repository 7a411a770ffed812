//! Tables in Parquet files. The library catches panics of the decoder, so they are not findings here; one that escapes it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn_fuzz::library::{parquet_table, use_table};
use minrnn_fuzz::{file, repository_files, seeds};

fuzz_target!(
    init: {
        seeds("parquet", || {
            let mut files = repository_files("crates/minrnn/tests/fixtures/tables", "parquet", 1 << 13);
            files.extend(parquet_table());
            files
        });
        std::panic::set_hook(Box::new(|_| {}));
    },
    |data: &[u8]| {
        if data.starts_with(b"PAR1") {
            use_table(&file("table", data));
        }
    }
);
