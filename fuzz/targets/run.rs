//! A run's small files: the pointers `last` and `best` and the log `metrics.jsonl`, with a zero byte between them.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use minrnn::train::{MetricsLog, Pointer, Progress, checkpoint, find_checkpoint, read_metrics};
use minrnn_fuzz::{file, folder, joined, parts, seeds};

fuzz_target!(
    init: {
        seeds("run", || {
            let log = concat!(
                r#"{"kind":"train","iteration":1,"loss":1.5,"lr":1e-3,"grad_norm":null,"tokens_per_s":3e5}"#, "\n",
                r#"{"kind":"eval","iteration":1,"train_loss":1.25,"test_loss":1.5,"test_accuracy":0.5}"#, "\n", r#"{"kind":"#,
            );
            vec![joined(&[b"iter-7\n", b"iter-7-2", log.as_bytes()]), joined(&[b"iter-8", b"../..", b""])]
        });
        for name in ["iter-7", "iter-7-2"] {
            fs::create_dir_all(folder().join("checkpoints").join(name)).expect("it can be made");
        }
    },
    |data: &[u8]| {
        let Some([last, best, log]) = parts(data) else { return };
        file("checkpoints/last", last);
        file("checkpoints/best", best);
        for pointer in [Pointer::Last, Pointer::Best] {
            if let Ok(found) = checkpoint(folder(), pointer) {
                let found = found.expect("the pointer is there");
                assert!(found.is_dir() && found.parent() == Some(&folder().join("checkpoints")), "{}", found.display());
            }
        }
        let _ = find_checkpoint(folder());
        let path = file("metrics.jsonl", log);
        let Ok(records) = read_metrics(&path) else { return };
        let progress = Progress { iteration: 5, evaluated_at: Some(5), ..Progress::default() };
        let mut opened = MetricsLog::open(&path, &progress).expect("every line is a record");
        if let Some(record) = records.first() {
            opened.append(record).expect("it can be written");
        }
        let kept = read_metrics(&path).expect("what was written is read");
        assert!(kept.len() <= records.len() + 1);
    }
);
