//! Retrieval: the first byte chooses the unit and the length of documents, the rest is the file of the training part.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn::data::{Retrieval, RetrievalTask, TextUnit};
use minrnn_fuzz::library::use_task;
use minrnn_fuzz::{file, folder, seeds};

const OTHERS: &[u8] = b"0\t1\t2\tba\tc\n1\t1\t2\ta\tabab\n";

fuzz_target!(
    init: seeds("retrieval", || {
        let lines = "1\tp1\tp2\tab\tabba\n0.0\tp2\tp3\tabba \"x\"\té日\n";
        vec![[&[0], OTHERS].concat(), [&[9], lines.as_bytes()].concat(), [&[128], lines.as_bytes()].concat()]
    }),
    |data: &[u8]| {
        let Some((&first, data)) = data.split_first() else { return };
        file("new_aan_pairs.train.tsv", data);
        if !folder().join("new_aan_pairs.eval.tsv").exists() {
            file("new_aan_pairs.eval.tsv", OTHERS);
            file("new_aan_pairs.test.tsv", OTHERS);
        }
        let unit = if first < 128 { TextUnit::Char } else { TextUnit::Byte };
        if let Ok(task) = Retrieval::open(&RetrievalTask { unit, max_length: 2 + usize::from(first % 128) }, folder()) {
            use_task(&task);
        }
    }
);
