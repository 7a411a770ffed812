//! `minrnn bench` on the real binary, at sizes that take no time: every bench runs and prints what `benchmarks/compare.py` reads.

use std::process::{Command, Output};

use minrnn_model::MixerKind;
use serde_json::Value;

fn bench(flags: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minrnn"));
    command.arg("bench").args(flags.split_whitespace()).output().expect("the program starts")
}

/// The JSON lines of a run with one iteration on one thread.
fn lines(flags: &str) -> Vec<Value> {
    let done = bench(&format!("{flags} --iterations 1 --warmup 0 --threads 1 --json"));
    assert!(done.status.success(), "{flags}: {}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).expect("output is text");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{flags}: {error}: {line}"))).collect()
}

fn number(line: &Value, key: &str) -> f64 {
    line[key].as_f64().unwrap_or_else(|| panic!("no number '{key}' in {line}"))
}

fn expect_common_keys(line: &Value, bench: &str) {
    assert_eq!(line["bench"], bench);
    assert_eq!(line["impl"], "minrnn");
    assert_eq!(line["precision"], "f32");
    for key in ["mixer", "machine", "commit", "compiler", "simd"] {
        assert!(line[key].is_string(), "no text '{key}' in {line}");
    }
    assert!(line["machine"].as_str().is_some_and(|machine| machine.ends_with(" cores")), "{line}");
    for key in ["median_ms", "min_ms", "tokens_per_s", "batch_size", "seq_len", "threads", "iterations"] {
        assert!(number(line, key) > 0.0, "'{key}' of {line}");
    }
    for key in ["peak_mib", "d_model", "d_hidden"] {
        assert!(number(line, key) >= 0.0, "'{key}' of {line}");
    }
}

#[test]
fn scan_prints_both_passes_beside_the_copy_bandwidth() {
    let found = lines("scan --batch-size 2 --seq-len 40 --d-hidden 16");
    let passes: Vec<&str> = found.iter().map(|line| line["pass"].as_str().expect("a pass")).collect();
    assert_eq!(passes, ["forward", "forward+backward"]);
    for line in &found {
        expect_common_keys(line, "scan");
        assert!(number(line, "gb_per_s") > 0.0 && number(line, "copy_gb_per_s") > 0.0, "{line}");
        assert_eq!(line["d_hidden"], 16);
    }
}

#[test]
fn tasks_are_those_of_a_step_cut_for_the_threads_asked_for() {
    let tasks = |threads: usize| {
        let flags = format!("tasks --d-model 64 --d-hidden 64 --batch-size 8 --seq-len 64 --iterations 2 --warmup 0 --threads {threads}");
        let done = bench(&flags);
        assert!(done.status.success(), "{flags}: {}", String::from_utf8_lossy(&done.stderr));
        let line: Value = serde_json::from_slice(&done.stdout).expect("one JSON object");
        assert_eq!(line["threads"], threads);
        assert!(number(&line, "least_bytes") > 0.0 && number(&line, "after_ms") >= 0.0, "{line}");
        let regions = line["regions"].as_array().expect("regions");
        regions.iter().map(|region| region[1].as_array().expect("times of tasks").len()).max().expect("a region")
    };
    let [few, many] = [2, 32].map(tasks);
    assert!(many >= 32 && many > few, "{few} tasks for 2 threads, {many} for 32");
}

#[test]
fn layer_measures_every_mixer_at_every_length() {
    let found = lines("layer --mixer all --d-model 8 --d-hidden 12 --batch-size 2 --seq-len 3,5");
    let cases: Vec<(&str, u64)> = found.iter().map(|line| (line["mixer"].as_str().unwrap(), line["seq_len"].as_u64().unwrap())).collect();
    let expected: Vec<(&str, u64)> = MixerKind::ALL.iter().flat_map(|mixer| [(mixer.name(), 3), (mixer.name(), 5)]).collect();
    assert_eq!(cases, expected);
    for line in &found {
        expect_common_keys(line, "layer");
        assert!(number(line, "gflop_per_s") > 0.0, "{line}");
        assert_eq!((&line["d_model"], &line["d_hidden"], &line["batch_size"]), (&8.into(), &12.into(), &2.into()));
    }
}

#[test]
fn layer_keeps_the_number_of_tokens() {
    let found = lines("layer --d-model 4 --d-hidden 4 --tokens 64 --seq-len 4,32");
    let batches: Vec<u64> = found.iter().map(|line| line["batch_size"].as_u64().unwrap()).collect();
    assert_eq!(batches, [16, 2]);
}

#[test]
fn language_model_benches_run() {
    for bench in ["lm", "decode", "prefill"] {
        for mixer in ["min-gru", "min-lstm,gru,lstm"] {
            let found = lines(&format!("{bench} --mixer {mixer} --d-model 16 --d-hidden 32 --batch-size 2 --seq-len 6"));
            assert_eq!(found.len(), mixer.split(',').count());
            for line in &found {
                expect_common_keys(line, bench);
                assert!(number(line, "gflop_per_s") > 0.0 && number(line, "parameters") > 0.0, "{line}");
            }
        }
    }
}

#[test]
fn the_language_model_has_the_published_number_of_parameters() {
    assert_eq!(lines("prefill --seq-len 2")[0]["parameters"], 6_711_552);
    assert_eq!(lines("prefill --seq-len 2 --mixer min-lstm")[0]["parameters"], 7_598_592);
}

#[test]
fn without_json_there_is_a_table() {
    let done = bench("layer --d-model 4 --d-hidden 4 --batch-size 1 --seq-len 2,3 --iterations 1 --warmup 0");
    let text = String::from_utf8(done.stdout).expect("output is text");
    let table: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(table.len(), 3, "{text}");
    assert!(table[0].contains("median ms") && table[1].starts_with("min-gru"), "{text}");
}

#[test]
fn wrong_flags_end_with_2_and_say_why() {
    for (flags, reason) in [
        ("", "Usage"),
        ("flops", "flops"),
        ("layer --mixer transformer", "transformer"),
        ("layer --seq-len 0", "0"),
        ("layer --seq-len many", "many"),
        ("layer --tokens 100 --seq-len 64", "not a whole number of sequences"),
        ("layer --tokens 64 --batch-size 2", "--batch-size"),
        ("layer --batch-size 1000000000 --seq-len 1000000000", "memory"),
        ("scan --batch-size 1000000000 --seq-len 1000000000", "memory"),
        ("layer --mixer all --batch-size 1000000000 --seq-len 1000000000", "memory"),
        ("layer --checkpoint-blocks", "bench lm"),
        ("decode --checkpoint-blocks", "bench lm"),
        ("scan --iterations 0", "0"),
        ("scan --threads 0", "0"),
        ("scan --warmup 18446744073709551615", "warmup"),
        ("lm --batch-size 1000000000", "memory"),
        ("lm --d-model 7 --d-hidden 1000000000", "or --d-hidden 448 or less"),
        ("decode --d-model 8", "more than 64 times as wide as a model of width 8; give --d-model 12 or more, or --d-hidden 512 or less"),
        ("layer --mixer mamba --d-model 2 --d-hidden 300 --seq-len 4", "give --d-model 5 or more, or --d-hidden 128 or less"),
    ] {
        let done = bench(flags);
        let message = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{flags}: {message}");
        assert!(message.contains(reason) && !message.contains("panicked"), "{flags}: {message}");
        assert!(done.stdout.is_empty(), "{flags}");
    }
}
