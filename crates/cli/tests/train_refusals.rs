//! Wrong input is answered with exit code 2 and one sentence, and leaves no trace on the disk.

mod common;

use std::fs;
use std::path::Path;

use common::{Finished, Scratch, Training, assert_untouched, minrnn, shown, snapshot, words};

#[cfg(target_os = "linux")]
#[test]
fn data_whose_name_is_not_utf_8_are_refused_by_it() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new();
    let path = scratch.path("text.txt").with_file_name(std::ffi::OsStr::from_bytes(b"te\xffxt.txt"));
    fs::copy(scratch.text("text.txt"), &path).unwrap();
    let out = scratch.path("run");
    let refused = Finished::of(minrnn(&["train", "--out", &shown(&out), "--data"]).arg(&path));
    refused.refused(&["te\u{fffd}xt.txt': its name or that of a folder it is in is not UTF-8", "rename that"]);
    assert!(!out.exists());
}

#[test]
fn settings_that_do_not_fit_are_named() {
    let scratch = Scratch::new();
    let cases: [(&str, &[&str]); 31] = [
        ("d_modle=3", &["unknown key 'd_modle'", "did you mean 'd_model'?"]),
        ("model.lr=3", &["unknown key 'lr' in section [model]"]),
        ("modle.d_model=3", &["unknown section [modle]", "'model'"]),
        ("d_model", &["expected a setting of the form key=value", "'d_model'"]),
        ("mixer=min-gur", &["model.mixer", "'min-gur'", "'min-gru'"]),
        ("vocab_size=7", &["vocab_size follows from the data, whatever is set; leave it out"]),
        ("bpe_vocab_size=300", &["bpe_vocab_size is read by the tokenizer bpe alone, and this one is char", "leave it out"]),
        ("path=other", &["the data are given twice", "leave one of them out"]),
        ("refit=true", &["train.refit = true learns a table anew, and task = text reads none"]),
        ("mixer=mambo", &["model.mixer: there is no 'mambo'; did you mean 'mamba'?"]),
        ("preset=offical", &["unknown preset 'offical'", "'official'"]),
        ("conv=3", &["model.conv must be true or false", "found 3"]),
        ("seed=18446744073709551615", &["train.seed must be between 0 and 9223372036854775807", "found 18446744073709551615"]),
        ("lr=fast", &["train.lr must be a number", "fast"]),
        ("d_model=1.5", &["model.d_model must be a whole number"]),
        ("n_layers=-1", &["model.n_layers must be 0 or above", "-1"]),
        ("betas=0.9", &["betas"]),
        ("device=abacus", &["there is no device 'abacus'", "vulkan"]),
        ("d_model=0", &["d_model must be"]),
        ("n_layers=0", &["n_layers must be"]),
        ("expansion=0.3", &["expansion · d_model must be a whole number", "0.3 · 16"]),
        ("dropout=1", &["dropout", "found 1"]),
        ("dropout=0.99999999", &["dropout must be at least 0 and below 1, also rounded to 32 bits, found 0.99999999"]),
        ("betas=0.9,0.99999999", &["betas must be two numbers of at least 0 and below 1, also rounded to 32 bits"]),
        ("lr=1e-60", &["lr must be above 0, also rounded to 32 bits"]),
        ("solved_at=0.12", &["solved_at is an accuracy", "selective-copying", "alone, and this one is text, scored by its loss"]),
        ("seq_len=0", &["seq_len must be between 1"]),
        ("batch_size=1000000 seq_len=1000", &["batch_size · seq_len must be at most", "1000000 · 1000"]),
        ("d_model=1000000000", &["d_model"]),
        ("scan=log-space candidate=identity", &["scan", "candidate"]),
        ("threads=100000", &["threads must be at most 1024"]),
    ];
    for (settings, parts) in cases {
        let training = scratch.training("run", &settings.split(' ').collect::<Vec<_>>());
        training.run().refused(parts);
        assert!(!training.out.exists(), "{settings}");
    }
}

#[test]
fn experiments_that_cannot_be_read_are_named() {
    let scratch = Scratch::new();
    let damaged = scratch.write("damaged.toml", "description = 'x'\n[model\n");
    let unknown = scratch.write("unknown.toml", "[model]\nwidth = 3\n");
    let binary = scratch.write("binary.toml", [0xff, 0xfe]);
    let directory = shown(&scratch.path(""));
    let cases: [(&str, &[&str]); 6] = [
        ("shakespear-min-gru", &["no file and no experiment 'shakespear-min-gru'", "did you mean 'shakespeare-min-gru'?"]),
        ("", &["no file and no experiment ''", "selective-copying"]),
        (&shown(&damaged), &["damaged.toml", "line 2"]),
        (&shown(&unknown), &["unknown.toml", "unknown key 'width' in section [model]"]),
        (&shown(&binary), &["binary.toml", "UTF-8"]),
        (&directory, &[&directory, "Is a directory"]),
    ];
    let out = scratch.path("run");
    for (experiment, parts) in cases {
        Finished::of(&mut minrnn(&["train", experiment, "--out", &shown(&out)])).refused(parts);
        assert!(!out.exists(), "{experiment}");
    }
    let usage = Finished::of(&mut minrnn(&["train", "--dta", "x"]));
    assert!(usage.code == Some(2) && usage.stderr.contains("'--dta'") && usage.stderr.contains("'--data'"), "{usage:?}");
}

#[test]
fn a_text_in_the_place_of_the_experiment_is_told_where_it_belongs() {
    let scratch = Scratch::new();
    let out = shown(&scratch.path("run"));
    let train = |args: &[&str]| Finished::of(minrnn(&["train", "--out", &out]).args(args));
    for (name, content) in [("my text.txt", &b"some words\nand more\n"[..]), ("table.csv", b"a,b\n1,2\n"), ("binary", &[0xff; 300])] {
        let file = shown(&scratch.write(name, content));
        let word = if name.contains(' ') { format!("'{file}'") } else { file.clone() };
        train(&[&file]).refused(&[name, &format!("; a text or a table is given with --data {word}")]);
    }
    // What is meant to be an experiment is not taken for something else.
    let damaged = shown(&scratch.write("damaged.toml", "[model\n"));
    let told = train(&[&damaged]);
    told.refused(&["damaged.toml", "line 1"]);
    assert!(!told.stderr.contains("--data"), "{told:?}");
    let misspelt = shown(&scratch.write("my.experiment", "[model]\nd_modle = 3\n"));
    let told = train(&[&misspelt]);
    told.refused(&["my.experiment", "did you mean 'd_model'?"]);
    assert!(!told.stderr.contains("--data"), "{told:?}");
    assert!(!scratch.path("run").exists());
}

#[test]
fn a_table_without_a_task_is_not_learned_letter_by_letter() {
    let scratch = Scratch::new();
    let (table, out) = (shown(&scratch.write("my.csv", "day,sales\n1,2\n")), shown(&scratch.path("run")));
    let refused = Finished::of(&mut minrnn(&["train", "--data", &table, "--out", &out]));
    refused.refused(&["my.csv' is a table by its name", "; give --task classify, regress or forecast, or the experiment text"]);
    let named = Finished::of(&mut minrnn(&["train", "text", "--data", &table, "--out", &out]));
    named.refused(&["my.csv'", "the train part of the text"]);
    let columns = Finished::of(&mut minrnn(&["train", "--task", "forecast", "--data", &table, "--out", &out]));
    columns.refused(&["name the columns that are to be predicted", "; give --target COLUMN, or --layout wide-columns"]);
    assert!(!scratch.path("run").exists());
}

fn with_data(training: &Training, data: &Path) -> Training {
    Training { args: vec!["--data".to_owned(), shown(data)], ..training.clone() }
}

#[test]
fn texts_that_cannot_be_trained_on_are_named_and_leave_nothing_behind() {
    let scratch = Scratch::new();
    let mut not_text = words(100).into_bytes();
    not_text.insert(42, 0xff);
    let files = [
        ("missing.txt", None, vec!["could not read", "missing.txt", "No such file"]),
        ("empty.txt", Some(Vec::new()), vec!["empty.txt' is empty"]),
        (
            "short.txt",
            Some(words(18).into_bytes()),
            vec!["short.txt'", "the train part of the text has 16 tokens", "seq_len 16", "at least 17"],
        ),
        ("test.txt", Some(words(100).into_bytes()), vec!["test.txt'", "the test part of the text has 10 tokens", "at least 17"]),
        ("latin.txt", Some(not_text), vec!["latin.txt' is not UTF-8 text", "byte 42", "0xff", "tokenizer = \"byte\""]),
    ];
    let training = scratch.training("deep/run", &[]);
    fs::create_dir(scratch.path("empty")).unwrap();
    for (name, content, parts) in files {
        if let Some(content) = content {
            scratch.write(name, content);
        }
        let training = with_data(&training, &scratch.path(name));
        training.run().refused(&parts);
        assert!(!training.out.exists(), "{name}");
        // An empty directory that was there stays, and stays empty.
        let there = Training { out: scratch.path("empty"), ..training };
        there.run().refused(&parts);
        assert!(snapshot(&there.out).is_empty(), "{name}");
    }
    with_data(&training, &scratch.path("")).run().refused(&["Is a directory"]);
    with_data(&training, &scratch.path("latin.txt/x")).run().refused(&["Not a directory"]);
    assert!(!training.out.exists());
    // What failed can be repeated with a better text.
    let there = Training { out: scratch.path("empty"), ..training };
    there.run().ok();
}

#[test]
fn text_and_experiment_must_fit_each_other() {
    let scratch = Scratch::new();
    let (text, out) = (shown(&scratch.text("text.txt")), shown(&scratch.path("run")));
    let refused = |args: &[&str], parts: &[&str]| {
        Finished::of(minrnn(&["train", "--out", &out]).args(args)).refused(parts);
        assert!(!scratch.path("run").exists());
    };
    refused(&["selective-copying", "--data", &text], &["do not fit this experiment", "--data"]);
    refused(&["text"], &["'text' needs a text", "--data FILE"]);
    let task = scratch.task("task", &["copy_length=12", "copy_tokens=2", "max_iterations=1"]);
    task.run().ok();
    let before = snapshot(&task.out);
    with_data(&task, &scratch.path("text.txt")).resume().refused(&["do not fit this experiment", "--data"]);
    assert_untouched(&task.out, &before);
}

#[test]
fn a_directory_that_is_taken_is_refused_and_left_as_it_is() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    training.run().ok();
    let before = snapshot(&training.out);
    training.run().refused(&["run'", "already holds a run", "--resume", "--out"]);
    assert_untouched(&training.out, &before);

    // Files of other kinds are not ours to mix with.
    let other = Training { out: scratch.path("thesis"), ..training.clone() };
    fs::create_dir(&other.out).unwrap();
    fs::write(other.out.join("chapter.tex"), "x").unwrap();
    other.run().refused(&["found 'chapter.tex'", "--out"]);
    other.resume().refused(&["found other files such as 'chapter.tex'", "--out"]);
    assert_eq!(snapshot(&other.out).len(), 1);

    let file = Training { out: scratch.write("file", "x"), ..training.clone() };
    file.run().refused(&["could not create the run directory"]);
    let inside = Training { out: scratch.path("file/run"), ..training.clone() };
    inside.run().refused(&["could not create the run directory", "Not a directory"]);
    let missing = Training { out: scratch.path("missing"), ..training };
    missing.resume().refused(&["there is no run directory to resume", "leave out --resume"]);
    assert!(!missing.out.exists());
}

#[test]
fn folders_of_others_stay_as_they_are_also_where_they_look_like_a_start_that_was_killed() {
    let scratch = Scratch::new();
    let project = scratch.path("project");
    fs::create_dir_all(project.join("data/raw")).unwrap();
    fs::create_dir(project.join("checkpoints")).unwrap();
    fs::write(project.join("data/raw/precious.csv"), "1,2").unwrap();
    fs::write(project.join("data/short.txt"), "too short").unwrap();
    fs::write(project.join("data/iter-1.tmp"), "mine").unwrap();
    fs::write(project.join("tokenizer.json"), "{}").unwrap();
    let text = Training { out: project.clone(), ..scratch.training("", &[]) };
    let starts = [text.clone(), text.with(&["from=/nonexistent"]), with_data(&text, &project.join("data/short.txt"))];
    let bare = Training { args: Vec::new(), settings: Vec::new(), ..text.clone() };
    // Also with a lock that an earlier version, or any other program, left.
    for lock in [None, Some(""), Some("4711")] {
        lock.iter().for_each(|text| fs::write(project.join("run.lock"), text).unwrap());
        let before = snapshot(&project);
        for training in &starts {
            training.run().refused(&["expected a new or an empty directory for the run", "choose another one with --out"]);
            training.resume().refused(&["project'"]);
            assert_untouched(&project, &before);
        }
        bare.resume().refused(&["expected a run to resume, found other files such as '", "--out"]);
        assert_untouched(&project, &before);
    }
}

#[test]
fn a_run_is_not_resumed_with_another_model_or_text() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["sampling=stream", "max_iterations=7"]);
    training.run().ok();
    let before = snapshot(&training.out);
    let refused = |training: &Training, parts: &[&str]| {
        training.resume().refused(parts);
        assert_untouched(&training.out, &before);
    };
    refused(&training.with(&["d_model=32"]), &["model.d_model must stay 16", "found 32", "--out"]);
    refused(&training.with(&["mixer=gru"]), &["model.mixer must stay \"min-gru\"", "found \"gru\"", "--out"]);
    refused(&training.with(&["batch_size=8"]), &["train.batch_size must stay 4", "found 8", "--out"]);
    refused(&training.with(&["tokenizer=byte"]), &["another tokenizer"]);
    refused(&training.with(&["d_modle=32"]), &["'d_model'"]);
    refused(&with_data(&training, &scratch.path("missing.txt")), &["missing.txt"]);
    let text = scratch.path("text.txt");
    let content = fs::read(&text).unwrap();
    fs::write(&text, [&content[..], b"more"].concat()).unwrap();
    refused(&training, &["text.txt'", "has changed since this run began"]);
    // The run keeps the tokens, so it can do without the text.
    fs::remove_file(&text).unwrap();
    let alone = Training { args: Vec::new(), ..training.with(&["max_iterations=9"]) };
    alone.resume().ok();
}

#[test]
fn damaged_files_of_a_run_are_named_and_left_as_they_are() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["sampling=stream", "max_iterations=9"]);
    training.run().ok();
    let half = |bytes: &[u8]| Some(bytes[..bytes.len() / 2].to_vec());
    // Cut between two lines, it would be an experiment with fewer settings.
    let within_a_line = |bytes: &[u8]| {
        let at = bytes.len() / 2;
        let sign = bytes[at..].iter().position(|&byte| byte == b'=').unwrap();
        Some(bytes[..=at + sign].to_vec())
    };
    let flipped = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let at = bytes.len() - 10;
        bytes[at] ^= 1;
        Some(bytes)
    };
    let longer = |bytes: &[u8]| Some([bytes, b"\x01{}\n"].concat());
    let empty = |_: &[u8]| Some(Vec::new());
    let gone = |_: &[u8]| None;
    let huge = |bytes: &[u8]| Some([&(1u64 << 60).to_le_bytes(), &bytes[8..]].concat());
    // A header that promises more than any machine has.
    let claims = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(&bytes[8..]);
        let header = r#"{"a":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]}}"#;
        Some([&(header.len() as u64).to_le_bytes(), header.as_bytes(), &text.as_bytes()[text.len() - 8..]].concat())
    };
    let first_line = |bytes: &[u8]| Some([b"{}\n", bytes].concat());
    type Damage<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;
    let last = training.checkpoint("last").strip_prefix(&training.out).unwrap().to_owned();
    let cases: [(&Path, &[Damage]); 9] = [
        (&last.join("config.json"), &[&half, &empty, &gone, &longer]),
        (&last.join("model.safetensors"), &[&half, &empty, &gone, &longer, &huge, &claims]),
        (&last.join("training.safetensors"), &[&half, &empty, &gone, &longer, &huge, &claims]),
        (&last.join("progress.json"), &[&half, &empty, &gone, &longer]),
        (Path::new("experiment.toml"), &[&within_a_line, &gone, &longer]),
        (Path::new("tokenizer.json"), &[&half, &empty, &gone, &longer]),
        (Path::new("data/text.tokens"), &[&half, &empty, &gone, &longer, &flipped]),
        (Path::new("checkpoints/last"), &[&half, &empty, &longer]),
        (Path::new("metrics.jsonl"), &[&first_line]),
    ];
    for (name, damages) in cases {
        let path = training.out.join(name);
        let whole = fs::read(&path).unwrap();
        for damage in damages {
            match damage(&whole) {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let before = snapshot(&training.out);
            let parts = [name.file_name().unwrap().to_str().unwrap()];
            match parts {
                // It is opened once the run can continue, which is reported before.
                ["metrics.jsonl"] => training.resume().failed(2, &parts),
                _ => training.resume().refused(&parts),
            }
            assert_untouched(&training.out, &before);
        }
        fs::write(&path, whole).unwrap();
    }
    training.resume().ok();
}
