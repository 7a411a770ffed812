//! Tables as Arrow, files and streams. The library catches panics of the decoder, so they are not findings here; one that escapes it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn_fuzz::library::use_table;
use minrnn_fuzz::{file, repository_files, seeds};

fuzz_target!(
    init: {
        seeds("arrow", || {
            let mut files = repository_files("crates/minrnn/tests/fixtures/tables", "feather", 1 << 14);
            files.extend(repository_files("crates/minrnn/tests/fixtures/tables", "arrows", 1 << 14));
            files
        });
        std::panic::set_hook(Box::new(|_| {}));
    },
    |data: &[u8]| {
        if data.starts_with(b"ARROW1") || data.starts_with(&[0xff; 4]) {
            use_table(&file("table", data));
        }
    }
);
