//! `minrnn eval`: what it measures, and what it refuses.

mod common;

use std::fs;

use common::{Finished, Scratch, Training, assert_untouched, minrnn, shown, snapshot, words};
use serde_json::Value;

fn eval(args: &[&str]) -> Finished {
    Finished::of(minrnn(&["eval"]).args(args))
}

/// The lines of `--json` by the name of the measure.
fn measures(args: &[&str]) -> Vec<(String, Value)> {
    let finished = eval(&[args, &["--json"]].concat()).ok();
    assert_eq!(finished.stderr, "");
    let lines = finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| (line["measure"].as_str().unwrap().to_owned(), line)).collect()
}

#[test]
fn a_number_below_0_is_told_as_the_value_that_it_is() {
    for (option, name) in [("--batches", "N"), ("--threads", "N"), ("--backtest", "K"), ("--by-length", "WIDTH")] {
        let found = eval(&["run", "--data", "text", option, "-1"]);
        let told = format!("invalid value '-1' for '{option} ");
        assert!(found.code == Some(2) && found.stderr.contains(&told) && found.stderr.contains(name), "{found:?}");
        assert!(!found.stderr.contains("-- -1"), "{found:?}");
    }
}

/// Batches on which a training of 40 updates scores each of three checkpoints.
const BATCHES: &str = "13";

#[test]
fn it_agrees_with_the_report_of_the_training() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=40", "dropout=0.1", "norm=batch"]);
    let report = training.run().ok().stdout;
    let run = shown(&training.out);
    let found = measures(&[&run, "--batches", BATCHES]);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["fixed batches", "full pass", "full pass, state carried"]);
    let loss = |at: usize| format!("{:.4}", found[at].1["loss"].as_f64().unwrap());
    assert!(report.contains(&format!("best: iteration 40, test loss {} nats\n", loss(0))), "{report}");
    assert!(report.contains(&format!("one pass over the whole test text: loss {} nats (499 predictions)", loss(1))), "{report}");
    assert_eq!((&found[0].1["predictions"], &found[2].1["predictions"]), (&(13 * 64).into(), &499.into()));
    // Each character of this text is a byte.
    let bits = |at: usize| found[at].1["bits_per_byte"].as_f64().unwrap();
    (0..3).for_each(|at| assert!((bits(at) * std::f64::consts::LN_2 - found[at].1["loss"].as_f64().unwrap()).abs() < 1e-9));
    assert!(report.contains(&format!(" nats\ntest bits per byte {:.4}\n", bits(0))), "{report}");
    // The carried state sees the whole text before each prediction.
    assert_ne!(loss(1), loss(2));

    let plain = eval(&[&run, "--batches", BATCHES]).ok();
    assert!(plain.stdout.starts_with(&format!("model: {}\nfixed batches: loss {} nats (", training.checkpoint("best").display(), loss(0))));
    (0..3).for_each(|at| assert!(plain.stdout.contains(&format!(" predictions\n  bits per byte {:.4}\n", bits(at))), "{}", plain.stdout));
    // A checkpoint of the run, and the best one of the report even if fewer batches chose another.
    let earlier = measures(&[&shown(&training.out.join("checkpoints/iter-30")), "--batches", BATCHES]);
    let line = format!("iteration 30: test loss {:.4} nats", earlier[0].1["loss"].as_f64().unwrap());
    assert!(report.contains(&line), "{line} in {report}");
}

#[test]
fn the_best_of_the_report_becomes_the_best_of_the_run() {
    let scratch = Scratch::new();
    // With so few predictions a worse checkpoint sometimes comes first.
    let settings = ["eval_iterations=1", "batch_size=1", "eval_every=1", "max_iterations=12", "lr=0.0001"];
    let training = scratch.training("run", &settings);
    let report = training.run().ok().stdout;
    let model = format!("model: {}\n", training.checkpoint("best").display());
    assert!(report.contains(&model), "{model} in {report}");
    assert!(eval(&[&shown(&training.out)]).ok().stdout.starts_with(&model));
}

#[test]
fn another_text_can_be_scored() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    training.run().ok();
    let run = shown(&training.out);
    let (same, other) = (scratch.write("same.txt", words(300)), scratch.write("other.txt", "brown fox ".repeat(30)));
    let same = measures(&[&run, "--data", &shown(&same), "--batches", "3"]);
    assert_eq!((&same[0].1["predictions"], &same[1].1["predictions"]), (&(3 * 64).into(), &299.into()));
    assert_ne!(measures(&[&run, "--data", &shown(&other)])[1].1["loss"], same[1].1["loss"]);
    // What became of the text that was trained on does not matter.
    let own = measures(&[&run]);
    fs::remove_file(scratch.path("text.txt")).unwrap();
    assert_eq!(measures(&[&run]), own);

    // A checkpoint alone has no test text.
    let alone = scratch.path("alone");
    fs::rename(training.checkpoint("last"), &alone).unwrap();
    eval(&[&shown(&alone)]).refused(&["alone'", "lies outside its run", "--data FILE"]);
    measures(&[&shown(&alone), "--data", &shown(&other)]);
}

#[test]
fn bits_per_byte_count_bytes_whatever_the_tokens_are() {
    let scratch = Scratch::new();
    // Some characters have two bytes.
    scratch.write("text.txt", "aéb éa\n".repeat(200));
    let other = scratch.write("other.txt", "éa\n".repeat(100));
    for tokenizer in ["char", "byte", "bpe"] {
        let set = format!("tokenizer={tokenizer}");
        let settings = if tokenizer == "bpe" { vec![set.as_str(), "bpe_vocab_size=260"] } else { vec![set.as_str()] };
        let training = scratch.training(tokenizer, &settings);
        training.run().ok();
        let packed = shown(&scratch.path(&format!("{tokenizer}.minrnn")));
        Finished::of(&mut minrnn(&["pack", &shown(&training.out), "-o", &packed])).ok();
        for model in [shown(&training.out), packed] {
            let found = measures(&[&model, "--data", &shown(&other)]);
            let (_, line) = found.last().unwrap();
            let number = |key: &str| line[key].as_f64().unwrap();
            // All tokens but the first are predicted.
            let expected = number("loss") / std::f64::consts::LN_2 * (number("predictions") + 1.0) / 400.0;
            assert!((number("bits_per_byte") - expected).abs() < 1e-9, "{tokenizer}: {line}");
        }
    }
    // Numbers have no bytes.
    let copying = scratch.task("copying", &["copy_length=12", "copy_tokens=2"]);
    copying.run().ok();
    assert!(measures(&[&shown(&copying.out), "--batches", "2"])[0].1.get("bits_per_byte").is_none());
}

#[test]
fn what_the_model_has_learned_from_is_told_of_under_any_name() {
    let scratch = Scratch::new();
    let rows = (0..40).flat_map(|id| (0..6).map(move |t| format!("m{id},{},{}\n", ["up", "down"][id % 2], t * (id % 2))));
    let rows = std::iter::once("id,way,x\n".to_owned()).chain(rows).collect::<String>();
    let table = shown(&scratch.write("slopes.csv", &rows));
    let args = ["--task", "classify", "--data", &table, "--group", "id", "--target", "way"].map(str::to_owned).into();
    let classes = Training { args, ..scratch.task("classes", &["max_iterations=4"]) };
    let texts = scratch.training("texts", &["max_iterations=4"]);
    let text = fs::read_to_string(scratch.path("text.txt")).unwrap();
    // A checkpoint does not record where its text was.
    for (training, own, content, of_own) in [(classes, "slopes.csv", rows, "the file"), (texts, "text.txt", text, "the same as the file")] {
        training.run().ok();
        let told = |name: &str| eval(&[&shown(&training.out), "--data", &shown(&scratch.path(name))]).ok().stderr;
        scratch.write("copy", &content);
        // Without a row or some letters it is another file.
        scratch.write("other", &content[..content.trim_end().rfind(['\n', 'j']).unwrap() + 1]);
        let why = "that the model has learned from: it says nothing of how well others are predicted\n";
        assert_eq!(told(own), format!("this is {of_own} {why}"));
        assert_eq!(told("copy"), format!("this is the same as the file {why}"));
        assert_eq!(told("other"), "");
        let packed = shown(&scratch.path("packed.minrnn"));
        Finished::of(&mut minrnn(&["pack", &shown(&training.out), "-o", &packed])).ok();
        for model in [packed, shown(&training.out)] {
            let few = eval(&[&model, "--data", &shown(&scratch.path("other")), "--batches", "1"]);
            if own == "slopes.csv" {
                few.refused(&["--batches is about random batches, and a table is scored as a whole; leave it out"]);
            } else {
                few.ok();
            }
        }
    }
}

#[test]
fn texts_that_cannot_be_scored_are_named() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=1"]);
    training.run().ok();
    let run = shown(&training.out);
    let packed = shown(&scratch.path("model.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "-o", &packed])).ok();
    let cases: [(&str, &[u8], &[&str]); 4] = [
        ("empty.txt", b"", &["empty.txt' is empty"]),
        ("latin.txt", b"the \xff fox the brown fox", &["latin.txt' is not UTF-8", "byte 4", "convert the file to UTF-8\n"]),
        ("one.txt", b"t", &["one.txt'", "at least 2 tokens", "found 1\n"]),
        ("zebra.txt", b"the brown zebra jumps. the fox", &["zebra.txt'", "character 11 of the text is 'z'"]),
    ];
    for (name, content, parts) in cases {
        let path = scratch.write(name, content);
        for model in [&run, &packed] {
            let finished = eval(&[model, "--data", &shown(&path)]);
            finished.refused(&[]);
            parts.iter().for_each(|part| assert!(finished.stderr.contains(part), "expected '{part}' in {finished:?}"));
            for advice in ["to learn from", "tokenizer =", "seq_len", "train_fraction"] {
                assert!(name == "zebra.txt" || !finished.stderr.contains(advice), "advice for training: {finished:?}");
            }
        }
    }
    eval(&[&run, "--data", &shown(&scratch.path("missing.txt"))]).refused(&["missing.txt", "No such file"]);
    let none = eval(&[&run, "--batches", "0"]);
    assert!(none.code == Some(2) && none.stderr.contains("--batches"), "{none:?}");
    eval(&[&run, "--threads", "100000"]).refused(&["threads must be at most 1024"]);
}

#[test]
fn a_text_shorter_than_a_window_is_scored_in_one_pass_that_carries_the_state() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=2"]);
    training.run().ok();
    let (run, packed) = (shown(&training.out), shown(&scratch.path("model.minrnn")));
    Finished::of(&mut minrnn(&["pack", &run, "--weights", "f32", "-o", &packed])).ok();
    for length in [2, 7, 16] {
        let data = shown(&scratch.write("short.txt", words(length)));
        let finished = eval(&[&run, "--data", &data, "--json"]).ok();
        let told = format!("the text has {length} tokens, fewer than the 17 of a window (seq_len = 16)");
        assert!(finished.stderr.starts_with(&told) && finished.stderr.lines().count() == 1, "{finished:?}");
        let found: Value = serde_json::from_str(finished.stdout.trim_end()).unwrap();
        let (_, of_packed) = &measures(&[&packed, "--data", &data])[0];
        assert_eq!(found["measure"], "full pass, state carried");
        assert_eq!((&found["predictions"], &of_packed["predictions"]), (&(length - 1).into(), &(length - 1).into()));
        assert!((found["loss"].as_f64().unwrap() - of_packed["loss"].as_f64().unwrap()).abs() < 1e-4, "{found} {of_packed}");
    }
    assert_eq!(measures(&[&run, "--data", &shown(&scratch.write("window.txt", words(17)))]).len(), 3);
}

#[test]
fn models_whose_numbers_stand_for_other_tokens_are_not_compared() {
    let (scratch, others) = (Scratch::new(), Scratch::new());
    // The same number of characters, of which one differs.
    others.write("text.txt", words(5000).replace('q', "Q"));
    let [own, other] = [(&scratch, "own"), (&others, "other")].map(|(folder, name)| {
        let training = folder.training(name, &["max_iterations=2"]);
        training.run().ok();
        shown(&training.out)
    });
    let (packed, data) = (shown(&scratch.path("model.minrnn")), shown(&scratch.path("text.txt")));
    Finished::of(&mut minrnn(&["pack", &own, "-o", &packed])).ok();
    let other_packed = shown(&others.path("model.minrnn"));
    Finished::of(&mut minrnn(&["pack", &other, "-o", &other_packed])).ok();
    for against in [&other, &other_packed] {
        eval(&[&packed, "--data", &data, "--against", against]).refused(&["different vocabularies", "cannot be compared", "\"Q\""]);
    }
    let agreement = eval(&[&packed, "--data", &data, "--against", &own]).ok().stdout;
    assert!(agreement.contains("top-1 agreement with "), "{agreement}");
}

#[test]
fn what_is_refused_has_replaced_no_file() {
    let scratch = Scratch::new();
    let rows = (0..40).flat_map(|id| (0..6).map(move |t| format!("m{id},{},{}\n", ["up", "down"][id % 2], t * (id % 2))));
    let table = shown(&scratch.write("slopes.csv", std::iter::once("id,way,x\n".to_owned()).chain(rows).collect::<String>()));
    let args = ["--task", "classify", "--data", &table, "--group", "id", "--target", "way"].map(str::to_owned).into();
    let classes = Training { args, ..scratch.task("classes", &["max_iterations=4", "train_fraction=0.5"]) };
    let texts = scratch.training("texts", &["max_iterations=4"]);
    let bytes = scratch.training("bytes", &["tokenizer=byte", "max_iterations=4"]);
    for training in [&classes, &texts, &bytes] {
        training.run().ok();
    }
    let [classes, texts, bytes] = [&classes, &texts, &bytes].map(|training| shown(&training.out));
    let [packed, quantized] = ["model.minrnn", "quantized.npy"].map(|name| shown(&scratch.path(name)));
    Finished::of(&mut minrnn(&["pack", &texts, "--weights", "f32", "-o", &packed])).ok();
    fs::copy(&packed, &quantized).unwrap();
    let (text, one) = (shown(&scratch.path("text.txt")), shown(&scratch.write("one.txt", "t")));
    let keep = shown(&scratch.write("keep.npy", "before"));
    let before = snapshot(&scratch.path(""));
    let nowhere = shown(&scratch.path("nowhere/logits.npy"));
    let cases: [(&[&str], &[&str]); 7] = [
        (&[&packed, "--data", &text, "--logits", &nowhere], &["there is no directory", "nowhere", "make it first"]),
        (&[&classes, "--data", &table, "--logits", &keep, "--backtest", "2"], &["it does not forecast"]),
        (&[&texts, "--data", &text, "--hidden", &keep, "--against", &packed], &["--against compares a packed model"]),
        (&[&texts, "--data", &one, "--embeddings", &keep], &["one.txt", "at least 2"]),
        (&[&packed, "--data", &one, "--logits", &keep], &["one.txt", "at least 2"]),
        (&[&packed, "--data", &text, "--logits", &keep, "--against", &bytes], &["vocabularies of different sizes"]),
        (&[&packed, "--data", &text, "--logits", &quantized, "--against", &quantized], &["quantized.npy", "is the input"]),
    ];
    for (args, parts) in cases {
        eval(args).refused(parts);
    }
    assert_untouched(&scratch.path(""), &before);
    eval(&[&packed, "--data", &text, "--logits", &keep]).ok();
    assert_ne!(fs::read(&keep).unwrap(), b"before");
}

#[test]
fn a_task_reads_no_text() {
    let scratch = Scratch::new();
    let training = scratch.task("run", &["copy_length=12", "copy_tokens=2", "max_iterations=2"]);
    training.run().ok();
    let (run, text) = (shown(&training.out), shown(&scratch.text("text.txt")));
    let found = measures(&[&run, "--batches", "5"]);
    assert_eq!((found.len(), &found[0].1["predictions"]), (1, &(5 * 4 * 2).into()));
    eval(&[&run, "--data", &text]).refused(&["--data does not fit this model", "reads no text"]);
}

#[test]
fn recall_and_search_are_trained_and_scored() {
    let scratch = Scratch::new();
    let recall = scratch.task("recall", &["task=mqar", "mqar_vocab_size=32", "mqar_length=16", "mqar_pairs=3", "train_examples=50"]);
    recall.run().ok();
    let found = measures(&[&shown(&recall.out), "--batches", "5"]);
    assert_eq!((found.len(), &found[0].1["predictions"]), (1, &(5 * 4 * 3).into()));
    assert!(found[0].1["accuracy"].is_f64());

    let search = scratch.task("search", &["task=nearest-neighbour", "neighbour_length=2"]);
    let report = search.run().ok().stdout;
    assert!(report.contains("best: iteration ") && report.contains("test mean squared error 0."), "{report}");
    let found = measures(&[&shown(&search.out), "--batches", "5"]);
    // One of every two steps is scored.
    assert_eq!((&found[0].1["predictions"], &found[0].1["accuracy"]), (&(5 * 4).into(), &Value::Null));
    assert!(scratch.task("odd", &["task=mqar", "mqar_length=15"]).run().stderr.contains("mqar_length = 15"));
}

#[test]
fn the_bins_of_frequency_make_up_the_full_pass() {
    let scratch = Scratch::new();
    // The sign is only in the test part.
    scratch.write("text.txt", words(4999) + "#");
    let training = scratch.training("run", &[]);
    training.run().ok();
    let run = shown(&training.out);
    let whole = &measures(&[&run])[1].1;
    for bins in [None, Some("1"), Some("3")] {
        let args: Vec<&str> = [run.as_str(), "--by-frequency"].into_iter().chain(bins).collect();
        let found = measures(&args);
        let number = |line: &Value, key: &str| line[key].as_f64().unwrap();
        let sum = |value: &dyn Fn(&Value) -> f64| found.iter().map(|(_, line)| value(line)).sum::<f64>();
        assert!(found.iter().all(|(name, _)| name == "frequency"));
        assert_eq!(sum(&|line| number(line, "predictions")), 499.0);
        assert!((sum(&|line| number(line, "share")) - 1.0).abs() < 1e-9);
        for key in ["loss", "accuracy"] {
            let mean = sum(&|line| number(line, key) * number(line, "predictions")) / 499.0;
            assert!((mean - number(whole, key)).abs() < 1e-5, "{key}: {mean}, expected {whole}");
        }
        let (_, never) = &found[0];
        assert_eq!((&never["to"], &never["tokens"], &never["predictions"]), (&0.into(), &1.into(), &1.into()));
        assert!(found.windows(2).all(|pair| number(&pair[0].1, "to") < number(&pair[1].1, "from")));
        assert!(found.len() <= bins.map_or(7, |bins| 1 + bins.parse::<usize>().unwrap()));
    }
    let plain = eval(&[&run, "--by-frequency", "2"]).ok().stdout;
    let lines: Vec<&str> = plain.lines().collect();
    assert!(
        lines[0].starts_with("model: ") && lines[1].starts_with("never in the training text: tokens 1, 0.20 % of the predictions, loss ")
    );
    assert!(lines[2].contains(" times in the training text: tokens "), "{plain}");
}

#[test]
fn a_language_is_scored_at_every_length() {
    let scratch = Scratch::new();
    let settings = ["task=formal-language", "language=cycle-navigation", "max_length=4", "eval_min_length=4", "eval_max_length=6"];
    let training = scratch.task("run", &settings);
    training.run().ok();
    let run = shown(&training.out);
    let by_length = |more: &[&str]| measures(&[&[&run, "--strings", "70"], more].concat());
    let found = by_length(&["--by-length", "--max-length", "9"]);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [&["length"; 9][..], &["trained on", "longer"]].concat());
    let number = |line: &Value, key: &str| line[key].as_f64().unwrap();
    for (i, (_, line)) in found[..9].iter().enumerate() {
        assert_eq!((&line["from"], &line["to"], &line["predictions"]), (&(i + 1).into(), &(i + 1).into(), &70.into()));
        // Guessing is right for one of five places.
        assert!((number(line, "scaled_accuracy") - (number(line, "accuracy") - 0.2) / 0.8).abs() < 1e-12);
    }
    let mean = |lines: &[(String, Value)]| lines.iter().map(|(_, line)| number(line, "accuracy")).sum::<f64>() / lines.len() as f64;
    assert!((number(&found[9].1, "accuracy") - mean(&found[..4])).abs() < 1e-12 && found[9].1["to"] == 4);
    assert!((number(&found[10].1, "accuracy") - mean(&found[4..9])).abs() < 1e-12 && found[10].1["to"] == 9);

    let ranges = by_length(&["--by-length", "4"]);
    let shown: Vec<String> = ranges.iter().map(|(name, line)| format!("{name} {} {}", line["from"], line["to"])).collect();
    assert_eq!(shown, ["length 1 4", "length 5 6", "trained on 1 4", "longer 5 6"]);
    assert_eq!((&ranges[0].1["accuracy"], &ranges[0].1["predictions"]), (&ranges[2].1["accuracy"], &280.into()));
    let plain = eval(&[&run, "--by-length", "4", "--strings", "70"]).ok().stdout;
    let lines: Vec<&str> = plain.lines().collect();
    assert_eq!(lines[1], "cycle-navigation: 70 strings of each length; scaled so that guessing (20.0 %) is 0");
    assert!(lines[2].starts_with("length 1–4: accuracy ") && lines[5].starts_with("longer, lengths 5–6: accuracy "), "{plain}");

    eval(&[&run, "--by-length", "--max-length", "5000"])
        .refused(&["--max-length 5000 cannot be scored: ", "max_length ≤ 4096, found 1 and 5000"]);
    eval(&[&run, "--by-frequency"]).refused(&["--by-frequency needs a model trained on a text"]);
}

#[test]
fn other_models_have_no_lengths() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=1"]);
    training.run().ok();
    let run = shown(&training.out);
    eval(&[&run, "--by-length"]).refused(&["--by-length needs a model trained on a formal language"]);
    eval(&[&shown(&scratch.path("text.txt")), "--by-length"]).refused(&["give a run directory instead of a packed model"]);
    for args in [["--by-length", "--by-frequency"], ["--by-frequency", "--batches=3"], ["--max-length=3", "--json"]] {
        let both = eval(&[&run, args[0], args[1]]);
        assert_eq!(both.code, Some(2), "{both:?}");
    }
}

#[test]
fn a_flag_of_another_flag_is_refused_without_it_whatever_else_is_given() {
    let refused = |args: &[&str], part: &str| {
        let Finished { code, stderr, .. } = eval(args);
        assert!(code == Some(2) && stderr.contains(part), "{args:?}: {stderr}");
    };
    let both = "cannot be used with";
    for flag in ["--max-length=5", "--strings=5"] {
        refused(&["run", flag], "--by-length");
        for other in [&["--batches=2"][..], &["--data=x"], &["--by-frequency"], &["--data=x", "--backtest=2"]] {
            refused(&[&["run", flag][..], other].concat(), both);
        }
    }
    // Options that a score by length or by frequency cannot serve.
    for by in ["--by-length", "--by-frequency"] {
        for of_data in ["--against=x", "--logits=x", "--hidden=x", "--embeddings=x", "--layer=1", "--stride=2"] {
            refused(&["run", by, of_data], both);
        }
    }
    refused(&["run", "--batches=2", "--stride=3"], both);
}

#[test]
fn places_without_a_usable_model_are_named() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=2"]);
    training.run().ok();
    let run = shown(&training.out);
    eval(&[&shown(&scratch.path("missing"))]).refused(&["missing'", "No such file"]);
    eval(&[&shown(&scratch.path(""))]).refused(&["expected a run directory or a checkpoint"]);
    eval(&[&shown(&scratch.path("text.txt"))]).refused(&["text.txt'", "expected a run directory or a checkpoint"]);
    let best = training.checkpoint("best");
    let (pointer, out) = (shown(&training.out.join("checkpoints/best")), shown(&scratch.path("out.minrnn")));
    let (pointer, named) = (pointer.as_str(), format!("no model; give the checkpoint, '{}', or its run", best.display()));
    for command in [&["eval", pointer][..], &["pack", pointer, "-o", &out], &["predict", pointer, "--data", pointer]] {
        Finished::of(&mut minrnn(command)).refused(&["checkpoints/best': it holds the name of a checkpoint", &named]);
    }
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        let path = best.join(name);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        eval(&[&run]).refused(&[name]);
        fs::write(&path, whole).unwrap();
    }
    fs::write(training.out.join("data/text.tokens"), "x").unwrap();
    eval(&[&run]).refused(&["text.tokens'", "is not a token file"]);
    fs::write(training.out.join("checkpoints/best"), "../../etc\n").unwrap();
    eval(&[&run]).refused(&["checkpoints/best", "expected the name of a checkpoint"]);
}
