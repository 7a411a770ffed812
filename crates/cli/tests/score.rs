//! How surprising rows are, and which are marked, through the command.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::process::Stdio;
use std::time::Duration;

use common::{Finished, Random, Scratch, Training, minrnn, shown, wait_until, words};
use serde_json::Value;

/// Sequences of a wave of 12 steps with noise; a row of `planted` is 15 higher.
fn waves(n: usize, length: usize, seed: u64, planted: &[(usize, usize)]) -> String {
    let mut random = Random(seed);
    let mut table = "x,ds,id\n".to_owned();
    for t in 0..length {
        for at in 0..n {
            let wave = 30.0 + 5.0 * (std::f64::consts::TAU * t as f64 / 12.0 + at as f64).sin() + random.below(1000) as f64 / 1000.0;
            let x = wave + if planted.contains(&(at, t)) { 15.0 } else { 0.0 };
            writeln!(table, "{x},{},s{at}", t + 1).unwrap();
        }
    }
    table
}

fn trained(scratch: &Scratch, table: &str, args: &[&str], settings: &[&str]) -> String {
    shown(&training(scratch, table, args, settings).out)
}

/// A training that has ended.
fn training(scratch: &Scratch, table: &str, args: &[&str], settings: &[&str]) -> Training {
    let data = shown(&scratch.write("table.csv", table));
    let args = [&["--task", "forecast", "--data", &data, "--group", "id", "--target", "x", "--season", "12"], args].concat();
    let settings = [&["max_iterations=150", "lr=0.01", "seq_len=32", "batch_size=8"][..], settings].concat();
    let training = Training { args: args.iter().map(ToString::to_string).collect(), ..scratch.task("run", &settings) };
    training.run().ok();
    training
}

fn score(model: &str, data: &str, more: &[&str]) -> Finished {
    Finished::of(minrnn(&["score", model, "--data", data]).args(more))
}

/// The cells of each row below the header.
fn rows(table: &str) -> Vec<Vec<String>> {
    table.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn planted_anomalies_are_found_and_few_others() {
    let scratch = Scratch::new();
    let run = trained(&scratch, &waves(6, 600, 1, &[]), &[], &[]);
    let planted = [(0, 40), (2, 77), (3, 100), (5, 150)];
    let data = shown(&scratch.write("new.csv", waves(6, 200, 2, &planted)));
    let finished = score(&run, &data, &[]).ok();
    assert_eq!(finished.stdout.lines().next().unwrap(), "id,ds,x,x forecast,surprise,anomaly");
    let found = rows(&finished.stdout);
    assert_eq!(found.len(), 1200);
    let marked: BTreeSet<(String, usize)> =
        found.iter().filter(|row| row[5] == "1").map(|row| (row[0].clone(), row[1].parse::<usize>().unwrap() - 1)).collect();
    for (at, t) in planted {
        assert!(marked.contains(&(format!("s{at}"), t)), "{at} {t}: {marked:?}");
    }
    // The rows that follow an anomaly may be surprising too, since it is what the model has seen last.
    let elsewhere =
        marked.iter().filter(|(name, t)| !planted.iter().any(|(at, from)| format!("s{at}") == *name && (*from..from + 13).contains(t)));
    assert!(elsewhere.count() < 24, "{marked:?}");
    // Nothing is expected of the first row of a sequence, and those of the first season are not judged.
    for row in &found {
        let step: usize = row[1].parse().unwrap();
        assert_eq!((row[3].is_empty(), row[4].is_empty(), row[5].is_empty()), (step == 1, step <= 13, step <= 13), "{row:?}");
    }
    assert!(finished.stderr.contains(&format!("{} of 1200 rows are marked", marked.len())), "{finished:?}");
    score(&run, &data, &["--by", "token"]).refused(&["it reads tables, whose rows are scored, and --by token is for texts"]);

    // A packed file and the earlier checkpoint carry the threshold with them.
    let packed = shown(&scratch.path("model.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "--weights", "f32", "-o", &packed])).ok();
    let out = scratch.path("out.csv");
    let of_packed = score(&packed, &data, &["--out", &shown(&out)]).ok();
    assert_eq!(of_packed.stdout, "");
    let told = |finished: &Finished| finished.stderr.lines().next().unwrap().to_owned();
    assert_eq!(told(&of_packed), told(&finished));
    assert_eq!(fs::read_to_string(&out).unwrap(), finished.stdout);
    // The intervals of the model in use were widened to fit the held-out part, and those of the earlier one were not.
    for (checkpoint, is_used) in [("scored", false), ("best", true)] {
        let name = fs::read_to_string(format!("{run}/checkpoints/{checkpoint}")).unwrap();
        let of_checkpoint = told(&score(&format!("{run}/checkpoints/{}", name.trim()), &data, &[]).ok());
        assert!(of_checkpoint.contains("of 360 reference rows") && (of_checkpoint == told(&finished)) == is_used, "{of_checkpoint}");
    }
    Finished::of(&mut minrnn(&["predict", &packed, "--data", &data])).ok();

    // Another share, and another table to calibrate with.
    let few = rows(&score(&run, &data, &["--threshold", "0.9"]).ok().stdout).iter().filter(|row| row[5] == "1").count();
    assert!(few > marked.len(), "{few}");
    let usual = shown(&scratch.write("usual.csv", waves(6, 100, 3, &[(1, 50)])));
    let calibrated = score(&run, &data, &["--calibrate", &usual]).ok();
    assert!(calibrated.stderr.contains("the highest of 522 reference rows"), "{calibrated:?}");
    // One of its rows is as unusual as what was planted, so little is above it.
    assert!(rows(&calibrated.stdout).iter().filter(|row| row[5] == "1").count() < marked.len());
}

#[test]
fn columns_of_the_table_and_those_of_scoring_have_names_of_their_own() {
    let scratch = Scratch::new();
    let table = (0..80).fold("step,surprise,surprise forecast\n".to_owned(), |table, t| table + &format!("a,{},{}\n", t % 5, t % 7));
    let data = shown(&scratch.write("table.csv", table));
    let args = ["--task", "forecast", "--data", &data, "--group", "step", "--target", "surprise,surprise forecast"].map(str::to_owned);
    let training = Training { args: args.to_vec(), ..scratch.task("run", &["max_iterations=4"]) };
    training.run().ok();
    let scored = score(&shown(&training.out), &data, &[]).ok();
    assert_eq!(
        scored.stdout.lines().next().unwrap(),
        "step,step_scored,surprise,surprise forecast_scored,surprise forecast,surprise forecast forecast,surprise_scored,anomaly"
    );
    assert!(rows(&scored.stdout).iter().all(|row| row.len() == 8 && row[0] == "a"), "{scored:?}");
    for name in ["step", "surprise forecast", "surprise"] {
        let told = format!("the table has a column '{name}': what scoring writes under this name is called '{name}_scored'\n");
        assert!(scored.stderr.contains(&told), "{scored:?}");
    }
}

#[test]
fn a_checkpoint_without_a_threshold_scores_and_marks_nothing() {
    let scratch = Scratch::new();
    let trained = training(&scratch, &waves(2, 60, 1, &[]), &["--missing", "mask"], &["max_iterations=10"]);
    let best = shown(&trained.without_threshold());
    let gaps = waves(1, 20, 2, &[])
        .lines()
        .map(|line| if line.contains(",17,") { ",17,s0\n".to_owned() } else { format!("{line}\n") })
        .collect::<String>();
    let finished = score(&best, &shown(&scratch.write("gaps.csv", gaps)), &[]).ok();
    assert!(finished.stderr.contains("none is marked") && finished.stderr.contains("--calibrate FILE"), "{finished:?}");
    let found = rows(&finished.stdout);
    assert!(found.iter().all(|row| row[5].is_empty()));
    // A missing value is no surprise.
    let unknown: Vec<&str> = found[13..].iter().filter(|row| row[4].is_empty()).map(|row| row[1].as_str()).collect();
    assert_eq!(unknown, ["17"]);
}

#[test]
fn unusual_lines_of_a_text_are_found() {
    let scratch = Scratch::new();
    let training = scratch.training("text", &["max_iterations=150", "lr=0.01", "d_model=32"]);
    training.run().ok();
    let run = shown(&training.out);
    let mut lines: Vec<String> = words(3000).lines().map(str::to_owned).collect();
    lines[20] = "nworb kciuq eht .spmuj".to_owned();
    lines[40] = "the \u{1f980} fox".to_owned();
    let data = shown(&scratch.write("log.txt", lines.join("\n") + "\n"));
    let finished = score(&run, &data, &[]).ok();
    assert_eq!(finished.stdout.lines().next().unwrap(), "line,tokens,surprise,anomaly,text");
    let found = rows(&finished.stdout);
    assert_eq!(found.len(), lines.len());
    let marked: Vec<&str> = found.iter().filter(|row| row[3] == "1").map(|row| row[0].as_str()).collect();
    assert!(marked.contains(&"21") && marked.contains(&"41") && marked.len() < 8, "{marked:?} {}", finished.stderr);
    assert!(finished.stderr.contains("1 of them contain something that is not in the vocabulary"), "{}", finished.stderr);
    assert_eq!(found[40][4], lines[40]);
    assert!(finished.stderr.contains("the vocabulary does not have '\u{1f980}' (1 time)\n"), "{}", finished.stderr);
    // A log with line ends of Windows is understood at once.
    let windows = score(&run, &shown(&scratch.write("windows.txt", "the fox\r\nthe brown\r\n")), &[]).ok();
    let texts: Vec<&str> = windows.stdout.lines().skip(1).map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(texts, ["the fox\\r", "the brown\\r"]);
    let told = "the vocabulary does not have '\\r' (2 times)\n'\\r': it is a carriage return, mostly of line ends in CR LF, as on Windows; save the text";
    assert!(windows.stderr.contains(told), "{windows:?}");

    // It agrees with what `stream` says about each token.
    let plain = words(300);
    let small = shown(&scratch.write("small.txt", &plain));
    let tokens = rows(&score(&run, &small, &["--by", "token"]).ok().stdout);
    let streamed = Finished::of(minrnn(&["stream", &run]).stdin(fs::File::open(&small).unwrap())).ok().stdout;
    let probabilities: Vec<&str> = streamed.lines().skip(1).map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!([tokens.len(), probabilities.len()], [plain.len(); 2]);
    for (token, probability) in tokens.iter().zip(&probabilities) {
        assert_eq!(token[1].trim_start_matches('-'), probability.trim_start_matches('-'), "{token:?}");
    }
    // A packed file does not know what is usual unless told.
    let packed = shown(&scratch.path("text.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "--weights", "f32", "-o", &packed])).ok();
    assert!(score(&packed, &small, &[]).ok().stderr.contains("none is marked"));
    let usual = shown(&scratch.write("usual.txt", words(2000)));
    assert!(score(&packed, &data, &["--calibrate", &usual]).ok().stderr.contains("lines are marked; the most surprising is line"));
    let calm = shown(&scratch.write("calm.txt", "the \n"));
    assert!(score(&packed, &calm, &[]).ok().stderr.contains("0 of 1 line is marked"));
    let odd = shown(&scratch.write("odd.txt", "§\n"));
    assert!(score(&packed, &odd, &["--calibrate", &usual]).ok().stderr.contains("1 of 1 line is marked"));
}

#[test]
fn a_line_that_arrives_is_scored_at_once_and_nobody_has_to_end_the_input() {
    let scratch = Scratch::new();
    let training = scratch.training("text", &["max_iterations=2"]);
    training.run().ok();
    let run = shown(&training.out);
    let expected = score(&run, &shown(&scratch.write("two.txt", "the fox\nthe dog\n")), &[]).ok().stdout;
    let mut child =
        minrnn(&["score", &run, "--data", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut found = String::new();
    let (sender, rows) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        for _ in 0..3 {
            let mut row = String::new();
            stdout.read_line(&mut row).unwrap();
            sender.send(row).unwrap();
        }
    });
    for (line, n) in [("the fox\n", 2), ("the dog\n", 1)] {
        stdin.write_all(line.as_bytes()).unwrap();
        for _ in 0..n {
            found += &rows.recv_timeout(Duration::from_secs(60)).inspect_err(|_| child.kill().unwrap()).unwrap();
        }
    }
    assert_eq!(found, expected);
    // Whoever has read enough goes away.
    reader.join().unwrap();
    stdin.write_all(b"the end\n").unwrap();
    wait_until(&mut child, || false);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_vocabulary_of_bytes_scores_every_byte_and_eval_agrees() {
    let scratch = Scratch::new();
    let training = scratch.training("bytes", &["tokenizer=byte", "max_iterations=4"]);
    training.run().ok();
    let run = shown(&training.out);
    let packed = shown(&scratch.path("bytes.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "--weights", "f32", "-o", &packed])).ok();
    let bytes: &[u8] = b"the \xff fox\nbrown \xc3 dog caf\xc3\xa9\n\x80\xe2";
    let data = shown(&scratch.write("bytes.bin", bytes));
    let finished = score(&run, &data, &["--by", "token"]).ok();
    assert!(!finished.stderr.contains("the vocabulary does not have"), "{finished:?}");
    let tokens = rows(&finished.stdout);
    assert_eq!(tokens.len(), bytes.len());
    let surprises: Vec<f64> = tokens[1..].iter().map(|row| row[1].parse().unwrap()).collect();
    let mean = surprises.iter().sum::<f64>() / surprises.len() as f64;
    let logits = shown(&scratch.path("logits.npy"));
    for model in [&run, &packed] {
        let scored = Finished::of(&mut minrnn(&["eval", model, "--data", &data, "--batches", "1", "--json", "--logits", &logits])).ok();
        let mut measures = scored.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let carried = measures.find(|line| line["measure"] == "full pass, state carried").unwrap();
        assert_eq!(carried["predictions"], surprises.len());
        assert!((carried["loss"].as_f64().unwrap() - mean).abs() < 1e-4, "{model}: {carried}, expected {mean}");
        assert!(fs::metadata(&logits).unwrap().len() > 4 * 256 * bytes.len() as u64);
        fs::remove_file(&logits).unwrap();
    }
    let lines = rows(&score(&packed, &data, &[]).ok().stdout);
    let lengths: Vec<usize> = bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::len).collect();
    assert_eq!(lines.iter().map(|row| row[1].parse::<usize>().unwrap()).collect::<Vec<_>>(), lengths);
}

#[test]
fn another_encoding_is_refused_and_bytes_that_are_no_text_are_marked_and_counted() {
    let scratch = Scratch::new();
    let training = scratch.training("text", &["max_iterations=2"]);
    training.run().ok();
    let run = shown(&training.out);
    let usual = shown(&scratch.path("text.txt"));
    let absent = score(&run, &shown(&scratch.path("none.txt")), &[]);
    absent.failed(2, &["none.txt", "No such file"]);
    assert_eq!(absent.stdout, "");
    let utf16 = shown(&scratch.write("utf16.txt", b"\xff\xfet\0h\0e\0 \0f\0o\0x\0"));
    let sentence = "utf16.txt': it is UTF-16; save it as UTF-8";
    score(&run, &utf16, &[]).failed(2, &[sentence]);
    let out = scratch.path("out.csv");
    score(&run, &utf16, &["--out", &shown(&out)]).failed(2, &[sentence]);
    assert!(!out.exists());
    score(&run, &usual, &["--calibrate", &utf16]).refused(&[sentence]);
    let packed = shown(&scratch.write("log.gz", b"\x1f\x8b\x08\x00the fox\n"));
    score(&run, &packed, &[]).failed(2, &["log.gz': it is compressed with gzip; decompress it"]);
    let latin = shown(&scratch.write("greeting.txt", b"\xe9the fox\nthe fox\n"));
    score(&run, &latin, &[]).failed(2, &["greeting.txt': line 1: a byte is not UTF-8; save the text as UTF-8"]);
    let stray = shown(&scratch.write("stray.txt", b"the fox\nthe \xff fox\n"));
    let calibrated = score(&run, &usual, &["--calibrate", &stray]).ok();
    assert!(calibrated.stderr.contains("stray.txt: 1 line with bytes that are not UTF-8"), "{calibrated:?}");
    // A log with a stray byte, and one that was copied while it was written.
    let cases: [(&str, &[u8], usize, &str); 2] = [
        ("latin.txt", b"the fox\nthe \xff fox\nthe fox\n", 2, "the \u{fffd} fox"),
        ("cut.txt", b"the fox\nthe fox\nthe f\xc3", 3, "the f\u{fffd}"),
    ];
    for (name, bytes, line, text) in cases {
        let scored = score(&run, &shown(&scratch.write(name, bytes)), &[]).ok();
        let lines: Vec<&str> = scored.stdout.lines().collect();
        assert_eq!(lines.len(), 4, "{scored:?}");
        assert!(lines[line].starts_with(&format!("{line},")) && lines[line].ends_with(&format!(",1,{text}")), "{scored:?}");
        assert!(
            scored.stderr.contains("1 line with bytes that are not UTF-8; if the text is in another encoding, save it as UTF-8\n"),
            "{scored:?}"
        );
    }
    let empty = score(&run, &shown(&scratch.write("empty.txt", "")), &[]).ok();
    assert_eq!(empty.stdout, "line,tokens,surprise,anomaly,text\n");
}

#[test]
fn only_whole_lines_of_the_held_out_text_are_compared_with() {
    let scratch = Scratch::new();
    let training = scratch.training("text", &["max_iterations=2"]);
    training.run().ok();
    let text = fs::read_to_string(scratch.path("text.txt")).unwrap();
    // The last tenth, which begins and ends within lines.
    let held_out = &text[text.len() * 9 / 10..];
    assert!(!text[..text.len() * 9 / 10].ends_with('\n') && !held_out.ends_with('\n'));
    let told = score(&shown(&training.out), &shown(&scratch.path("text.txt")), &[]).ok().stderr;
    let whole = held_out.lines().count() - 2;
    assert!(told.contains(&format!(" nats, the highest of {whole} reference rows (too few for 0.999)")), "{whole}: {told}");
    let tokens = score(&shown(&training.out), &shown(&scratch.path("text.txt")), &["--by", "token"]).ok().stderr;
    assert!(tokens.contains(&format!("the highest of {} reference rows", held_out.len() - 1)), "{tokens}");
}

#[test]
fn a_held_out_text_that_is_damaged_is_refused_and_one_that_is_gone_is_named() {
    let scratch = Scratch::new();
    let training = scratch.training("text", &["max_iterations=2"]);
    training.run().ok();
    let (run, data) = (shown(&training.out), shown(&scratch.path("text.txt")));
    let [tokens, vocabulary] = ["data/text.tokens", "tokenizer.json"].map(|name| training.out.join(name));
    for path in [&tokens, &vocabulary] {
        let whole = fs::read(path).unwrap();
        let mut damaged = whole.clone();
        // The last number of the tokens, or the brace that ends the vocabulary.
        let at = damaged.iter().rposition(|byte| !byte.is_ascii_whitespace()).unwrap();
        damaged[at] ^= 1;
        fs::write(path, damaged).unwrap();
        score(&run, &data, &[]).refused(&[&shown(path)]);
        score(&run, &data, &["--calibrate", &data]).ok();
        fs::remove_file(path).unwrap();
        let scored = score(&run, &data, &[]).ok();
        let told = format!("{}', which is not there, so none is marked by its surprise; put it back", shown(path));
        assert!(scored.stderr.contains(&told) && scored.stderr.contains("--calibrate FILE"), "{scored:?}");
        assert!(rows(&scored.stdout).iter().all(|row| row[3].is_empty()));
        fs::write(path, whole).unwrap();
    }
    assert!(score(&run, &data, &[]).ok().stderr.contains("reference rows"));
    // A log that has grown.
    let mut grown = fs::read(scratch.path("text.txt")).unwrap();
    grown.extend_from_slice(b"to be\n");
    fs::write(scratch.path("text.txt"), grown).unwrap();
    assert!(score(&run, &data, &[]).ok().stderr.contains("reference rows"));
}

#[test]
fn standard_input_is_not_read_twice() {
    let scratch = Scratch::new();
    let training = scratch.training("text", &["max_iterations=2"]);
    training.run().ok();
    let run = shown(&training.out);
    score(&run, "-", &["--calibrate", "-"])
        .refused(&["'-': --data and --calibrate would both be read from it", "save one of them to a file"]);
    let text = shown(&scratch.path("text.txt"));
    let from_file = minrnn(&["score", &run, "--data", &text, "--calibrate", "-"]).stdin(fs::File::open(&text).unwrap()).output().unwrap();
    Finished::from(from_file).ok();
}

#[test]
fn a_share_of_many_digits_is_told_in_few() {
    let scratch = Scratch::new();
    let training = scratch.training("text", &["max_iterations=2"]);
    training.run().ok();
    let (run, data) = (shown(&training.out), shown(&scratch.path("text.txt")));
    let told = score(&run, &data, &["--threshold=1e-300"]).ok().stderr;
    assert!(told.contains("which a share of 1e-300 of the ") && told.contains(" reference rows does not exceed\n"), "{told}");
    score(&run, &data, &["--threshold=1e300"]).refused(&["--threshold: expected a share of rows", "found 1e300"]);
}

#[test]
fn what_cannot_be_scored_is_a_sentence() {
    let scratch = Scratch::new();
    let table = waves(2, 60, 1, &[]);
    let run = trained(&scratch, &table, &["--set", "quantiles=[]"], &["max_iterations=2"]);
    let data = shown(&scratch.path("table.csv"));
    score(&run, &data, &[]).refused(&["the model forecasts a single number", "train it with several quantiles"]);
    fs::remove_dir_all(&run).unwrap();
    let run = trained(&scratch, &table, &[], &["max_iterations=2"]);
    for share in ["0", "1", "-1", "nan", "2"] {
        assert_eq!(score(&run, &data, &[&format!("--threshold={share}")]).code, Some(2), "{share}");
    }
    score(&run, &data, &["--out", &data]).refused(&["is the input"]);
    score(&run, &shown(&scratch.path("none.csv")), &[]).refused(&["none.csv"]);
    score(&run, &shown(&scratch.write("bad.csv", "x,ds,id\n1,1,a\nb,2,a\n")), &[]).refused(&["bad.csv", "line 3, column 'x'"]);
    let untouched = scratch.write("out.csv", "before");
    score(&run, &shown(&scratch.path("bad.csv")), &["--out", &shown(&untouched)]).refused(&["bad.csv"]);
    assert_eq!(fs::read_to_string(untouched).unwrap(), "before");
    // A damaged threshold is reported with its file.
    let best = format!("{run}/checkpoints/{}", fs::read_to_string(format!("{run}/checkpoints/best")).unwrap().trim());
    fs::write(format!("{best}/surprise.json"), "{").unwrap();
    score(&run, &data, &[]).refused(&["surprise.json", "SHA-256"]);
}
