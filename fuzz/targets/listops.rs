//! ListOps: the file of the training part.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn::data::{ListOps, ListOpsTask};
use minrnn_fuzz::library::use_task;
use minrnn_fuzz::{file, folder, seeds};

const OTHERS: &[u8] = b"Source\tTarget\n[MAX 2 9 ]\t9\n";

fuzz_target!(
    init: seeds("listops", || {
        let nested = "Source\tTarget\n( ( ( [MED 0 ) ( ( [MAX ( [SM 4 9 ] ) ) ( [MIN 8 6 ] ) ] ) ) 5 ) ]\t5\r\n\n7\t7\n";
        vec![OTHERS.to_vec(), nested.as_bytes().to_vec(), format!("Source\tTarget\n{}1{}\t1\n", "[SM ".repeat(50), " ]".repeat(50)).into_bytes()]
    }),
    |data: &[u8]| {
        file("basic_train.tsv", data);
        if !folder().join("basic_val.tsv").exists() {
            file("basic_val.tsv", OTHERS);
            file("basic_test.tsv", OTHERS);
        }
        if let Ok(task) = ListOps::open(&ListOpsTask::default(), folder()) {
            use_task(&task);
        }
    }
);
