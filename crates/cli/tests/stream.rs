//! `minrnn stream`: rows and text through a pipe, answered one by one.

mod common;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use common::{Finished, Random, Scratch, Training, minrnn, shown, signal, wait_until, words};
use minrnn::generate::ModelIdentity;
use minrnn_stream::{PackedModel, SavedSessions, Sessions};
use serde_json::Value;

/// Steps of machines whose pressure rises or falls, in interleaved rows: machine, pressure, humidity, state.
fn steps(machines: usize, length: usize, seed: u64) -> Vec<(String, f64, f64, &'static str)> {
    let mut random = Random(seed);
    let mut rows = Vec::new();
    for step in 0..length {
        for machine in 0..machines {
            let (state, slope) = if machine % 2 == 0 { ("rising", 2.0) } else { ("falling, fast", -2.0) };
            let noise = random.below(2001) as f64 / 1000.0 - 1.0;
            rows.push((format!("m{machine}"), 500.0 + slope * step as f64 + noise, noise / 10.0, state));
        }
    }
    rows
}

fn with_states(rows: &[(String, f64, f64, &str)]) -> String {
    let mut table = String::from("machine,state,pressure,humidity\n");
    rows.iter().for_each(|(machine, x, y, state)| writeln!(table, "{machine},\"{state}\",{x},{y}").unwrap());
    table
}

fn without_states(rows: &[(String, f64, f64, &str)]) -> String {
    let mut table = String::from("humidity,note,machine,pressure\n");
    rows.iter().for_each(|(machine, x, y, _)| writeln!(table, "{y},\"a, b\",{machine},{x}").unwrap());
    table
}

fn trained(scratch: &Scratch, args: &[&str], settings: &[&str]) -> PathBuf {
    let training = Training { args: args.iter().map(ToString::to_string).collect(), ..scratch.task("run", settings) };
    training.run().ok();
    training.out
}

/// A packed classifier of machines.
fn classifier(scratch: &Scratch) -> String {
    let data = shown(&scratch.write("machines.csv", with_states(&steps(60, 9, 1))));
    let args = ["--task", "classify", "--data", &data, "--group", "machine", "--target", "state"];
    packed(
        scratch,
        &trained(
            scratch,
            &args,
            &[
                "max_iterations=60",
                "eval_every=30",
                "lr=0.01",
                "batch_size=16",
                "train_fraction=0.6",
                "refit=false",
                "mixer=min-gru",
                "pooling=last",
            ],
        ),
    )
}

fn packed(scratch: &Scratch, run: &std::path::Path) -> String {
    let model = shown(&scratch.path("model.minrnn"));
    Finished::of(minrnn(&["pack", "--weights", "f32", "-o", &model]).arg(run)).ok();
    model
}

/// What `minrnn stream ARGS` gives for `input`.
fn stream(args: &[&str], input: &str) -> Finished {
    stream_bytes(args, input.as_bytes())
}

fn stream_bytes(args: &[&str], input: &[u8]) -> Finished {
    Finished::fed(minrnn(&["stream"]).args(args), input)
}

/// A running `minrnn stream`, given a line at a time.
struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Talk {
    fn new(args: &[&str]) -> Self {
        let mut child = minrnn(&["stream"]).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child, stdin, stdout }
    }

    fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }
}

#[test]
fn every_row_is_answered_as_predict_answers_the_sequence_until_there() {
    let scratch = Scratch::new();
    let model = classifier(&scratch);
    let rows = steps(6, 5, 7);
    let answers = stream(&[&model], &without_states(&rows)).ok().stdout;
    let mut lines = answers.lines();
    assert_eq!(lines.next().unwrap(), "line,machine,state,\"probability of falling, fast\",probability of rising");
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), rows.len());
    for (at, line) in lines.iter().enumerate() {
        assert!(line.starts_with(&format!("{},{},", at + 2, rows[at].0)), "{line}");
    }
    // The last answer of each machine is what `predict` says of all its rows.
    let table = shown(&scratch.write("rows.csv", without_states(&rows)));
    let predicted = Finished::of(&mut minrnn(&["predict", &model, "--data", &table])).ok().stdout;
    for (machine, whole) in predicted.lines().skip(1).enumerate() {
        assert!(lines[4 * 6 + machine].ends_with(whole), "{whole} in {}", lines[4 * 6 + machine]);
    }
    // All rows at once, or one at a time: the same bytes.
    let mut talk = Talk::new(&[&model]);
    for (at, line) in without_states(&rows).lines().enumerate() {
        talk.say(&format!("{line}\n"));
        if at == 1 {
            assert_eq!(talk.hear().trim_end(), answers.lines().next().unwrap());
        }
        if at >= 1 {
            assert_eq!(talk.hear().trim_end(), lines[at - 1], "before the next row is there");
        }
    }
    drop(talk.stdin.take());
    assert!(talk.child.wait().unwrap().success());
    // JSON says the same.
    let objects = stream(&[&model, "--json"], &without_states(&rows)).ok().stdout;
    assert_eq!(objects.lines().count(), lines.len(), "{objects}");
    for (object, line) in objects.lines().zip(&lines) {
        let object: Value = serde_json::from_str(object).unwrap();
        let rising = object["probabilities"]["rising"].as_f64().unwrap();
        assert!(line.ends_with(&format!(",{rising:.6}")) && line.contains(object["group"].as_str().unwrap()), "{object} {line}");
        assert!(line.contains(object["class"].as_str().unwrap()), "{object} {line}");
    }
    // A run is accepted like its packed file.
    assert_eq!(stream(&[&shown(&scratch.path("run"))], &without_states(&rows)).ok().stdout, answers);
}

#[test]
fn columns_of_the_table_and_those_of_the_answers_have_names_of_their_own() {
    let scratch = Scratch::new();
    // Machines of a production line, in a column that is called like that of the numbers of lines.
    let data = shown(&scratch.write("lines.csv", with_states(&steps(20, 4, 1)).replacen("machine,", "line,", 1)));
    let args = ["--task", "classify", "--data", &data, "--group", "line", "--target", "state"];
    let model = packed(&scratch, &trained(&scratch, &args, &["max_iterations=2"]));
    let renamed = stream(&[&model], "line,pressure,humidity\nm0,500,0\n").ok();
    let lines: Vec<&str> = renamed.stdout.lines().collect();
    assert!(lines[0].starts_with("line_number,line,state,") && lines[1].starts_with("2,m0,"), "{renamed:?}");
    assert!(
        renamed.stderr.contains("the table has a column 'line': what is written under this name is called 'line_number'"),
        "{renamed:?}"
    );
    let by_state = stream(&[&model, "--group", "state"], "state,pressure,humidity\nold,500,0\n").ok();
    assert!(by_state.stdout.starts_with("line,state,state_predicted,") && by_state.stdout.contains("\n2,old,"), "{by_state:?}");
}

#[test]
fn groups_are_chosen_or_left_out_and_forgotten_in_the_order_of_their_silence() {
    let scratch = Scratch::new();
    let model = classifier(&scratch);
    let rows =
        |names: &[&str]| names.iter().fold("machine,site,pressure,humidity\n".to_owned(), |table, name| table + name + ",s,510,0.01\n");
    let last =
        |finished: &Finished| finished.stdout.lines().last().unwrap().split_once(',').unwrap().1.split_once(',').unwrap().1.to_owned();
    let fresh = last(&stream(&[&model], &rows(&["a"])).ok());
    let twice = last(&stream(&[&model], &rows(&["a", "a"])).ok());
    assert_ne!(fresh, twice);
    assert_eq!(last(&stream(&[&model], &rows(&["a", "b"])).ok()), fresh);
    assert_eq!(last(&stream(&[&model, "--group", "site"], &rows(&["a", "b"])).ok()), twice);
    let single = stream(&[&model, "--one-sequence"], &rows(&["a", "b"])).ok().stdout;
    assert!(single.starts_with("line,state,") && single.lines().last().unwrap().ends_with(&twice), "{single}");
    // A row of a comes before c does, so b is forgotten.
    let bounded = stream(&[&model, "--max-groups", "2"], &rows(&["a", "b", "a", "c", "a"])).ok();
    assert!(bounded.stderr.contains("forgot 'b'"), "{}", bounded.stderr);
    assert_eq!(last(&bounded), last(&stream(&[&model], &rows(&["a", "a", "a"])).ok()));
    let bounded = stream(&[&model, "--max-groups", "2"], &rows(&["a", "b", "a", "c", "b"])).ok();
    assert_eq!(last(&bounded), fresh);
}

#[test]
fn a_saved_state_goes_on_where_it_was() {
    let scratch = Scratch::new();
    let model = classifier(&scratch);
    let rows = steps(5, 6, 3);
    let whole = stream(&[&model], &without_states(&rows)).ok().stdout;
    let state = shown(&scratch.path("state"));
    stream(&[&model, "--save-state", &state], &without_states(&rows[..13])).ok();
    let rest = stream(&[&model, "--load-state", &state, "--save-state", &state], &without_states(&rows[13..])).ok().stdout;
    let answers = |text: &str| text.lines().skip(1).map(|line| line.split_once(',').unwrap().1.to_owned()).collect::<Vec<_>>();
    assert_eq!(answers(&rest), answers(&whole)[13..]);
    // A damaged file, another model's, and none.
    let bytes = fs::read(&state).unwrap();
    for at in [0, 9, 20, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        let damaged = shown(&scratch.write("damaged", damaged));
        assert_eq!(stream(&[&model, "--load-state", &damaged], "").code, Some(2));
    }
    for length in [0, 5, 11, 40, bytes.len() - 1] {
        let short = shown(&scratch.write("short", &bytes[..length]));
        assert_eq!(stream(&[&model, "--load-state", &short], "").code, Some(2));
    }
    let other = shown(&scratch.path("other.minrnn"));
    Finished::of(minrnn(&["pack", "--weights", "int8", "-o", &other]).arg(scratch.path("run"))).ok();
    stream(&[&other, "--load-state", &state], "").refused(&["saved with another model"]);
    stream(&[&model, "--load-state", "nowhere"], "").refused(&["nowhere"]);
    stream(&[&model, "--save-state", &model], "").refused(&["is the input"]);
    // No row is answered whose state could not be saved.
    let nowhere = shown(&scratch.path("nowhere/state"));
    stream(&[&model, "--save-state", &nowhere], &without_states(&rows)).refused(&["there is no directory '", "nowhere'", "make it first"]);
    // A failure to save at the end is reported beside what ended the rows.
    let (input, full) = (scratch.write("bad.csv", without_states(&rows[..3]) + "a,none,none\n"), shown(&scratch.path("full")));
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_minrnn"), "stream", &model, "--save-state", &full]);
    let both = Finished::of(limited.stdin(fs::File::open(input).unwrap()));
    assert!(both.stderr.contains(&full) && both.stderr.contains("line 5"), "{both:?}");
    assert!(!Path::new(&full).exists());
}

#[test]
fn a_bad_row_is_a_sentence_and_can_be_passed_over() {
    let scratch = Scratch::new();
    let model = classifier(&scratch);
    let header = "machine,pressure,humidity\n";
    let table = format!("{header}a,500,0\nb,NaN,0\na,x,0\na,500\na,1e30,0\na,501,0\n");
    let ended = stream(&[&model], &table);
    ended.failed(2, &["line 3, column 'pressure': expected a finite number, found 'NaN'"]);
    assert_eq!(ended.stdout.lines().count(), 2, "{}", ended.stdout);
    let passed = stream(&[&model, "--skip-bad-rows"], &table).ok();
    assert_eq!(passed.stderr.lines().count(), 4, "{}", passed.stderr);
    for part in
        ["line 4, column 'pressure'", "line 5 has 2 cells, expected 3", "line 6, column 'pressure': 1e30 lies", "expected at most 1e6"]
    {
        assert!(passed.stderr.contains(part), "{part}: {}", passed.stderr);
    }
    let clean = stream(&[&model], &format!("{header}a,500,0\na,501,0\n")).ok().stdout;
    let answers = |text: &str| text.lines().map(|line| line.split_once(',').unwrap().1.to_owned()).collect::<Vec<_>>();
    assert_eq!(answers(&passed.stdout), answers(&clean), "what is passed over leaves no trace");
    // A quotation mark that is never closed, and the rows behind it.
    let table = format!("{header}a,500,0\n\"a,1,1\na,501,0\n");
    stream(&[&model], &table).failed(2, &["the record that begins on line 3 ends with the file within quotation marks"]);
    let passed = stream(&[&model, "--skip-bad-rows"], &table).ok();
    assert!(passed.stderr.lines().count() == 1 && passed.stderr.contains("passed over: the record that begins on line 3"), "{passed:?}");
    assert_eq!(answers(&passed.stdout), answers(&clean), "what is passed over leaves no trace");
    stream(&[&model], "").refused(&["it is empty; expected a header"]);
    stream(&[&model], "machine,humidity\n").refused(&["there is no column 'pressure'"]);
    stream(&[&model], "pressure,humidity\n").refused(&["there is no column 'machine'"]);
    stream(&[&model, "--max-groups", "0"], "").refused(&["at least 1"]);
    stream(&["nowhere"], "").refused(&["nowhere"]);
    assert_eq!(stream(&[&model], header).ok().stdout.lines().count(), 1);
}

#[test]
fn a_live_pipe_does_not_wait_for_the_end_of_a_quotation_mark_for_ever() {
    let scratch = Scratch::new();
    let model = classifier(&scratch);
    let mut talk = Talk::new(&[&model, "--skip-bad-rows"]);
    talk.say("machine,pressure,humidity\na,500,0\n");
    assert_eq!(talk.hear().split(',').next(), Some("line"));
    assert!(talk.hear().starts_with("2,a,"));
    talk.say(&("\"a,1,1\n".to_owned() + &"a,501,0\n".repeat(1001)));
    for line in 4..1005 {
        assert!(talk.hear().starts_with(&format!("{line},a,")), "{line}");
    }
    drop(talk.stdin.take());
    let mut told = String::new();
    talk.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(talk.child.wait().unwrap().success());
    assert!(told.starts_with("passed over: line 3: a cell begins with a quotation mark that is not closed within 1000 lines"), "{told}");
}

#[test]
fn rows_of_a_sequence_come_in_the_order_of_time() {
    let scratch = Scratch::new();
    let day = |id: &str, day: usize| format!("{id},2024-01-{day:02},{}\n", day % 7);
    let header = "id,ds,sold\n";
    let table = (1..=28).fold(header.to_owned(), |table, t| table + &day("a", t) + &day("b", t));
    let data = shown(&scratch.write("shops.csv", &table));
    let args = ["--task", "forecast", "--data", &data, "--group", "id", "--target", "sold", "--horizon", "2"];
    let model = packed(&scratch, &trained(&scratch, &args, &["max_iterations=4"]));
    let all = stream(&[&model], &table).ok().stdout;
    assert_eq!(all.lines().count(), 57, "{all}");

    let of = |rows: &[(&str, usize)]| rows.iter().fold(header.to_owned(), |table, &(id, t)| table + &day(id, t));
    let torn = of(&[("a", 5), ("b", 2), ("a", 4), ("b", 3), ("a", 5), ("a", 6)]);
    let ended = stream(&[&model], &torn);
    ended.failed(2, &["line 4: the time of the sequence 'a' is 2024-01-04 after 2024-01-05, expected a later one", "order of time"]);
    assert_eq!(ended.stdout.lines().count(), 3, "{}", ended.stdout);
    let passed = stream(&[&model, "--skip-bad-rows"], &torn).ok();
    assert!(
        passed.stderr.lines().count() == 2 && passed.stderr.contains("line 6: the time of the sequence 'a' is 2024-01-05"),
        "{passed:?}"
    );
    let clean = stream(&[&model], &of(&[("a", 5), ("b", 2), ("b", 3), ("a", 6)])).ok().stdout;
    let answers = |text: &str| text.lines().map(|line| line.split_once(',').unwrap().1.to_owned()).collect::<Vec<_>>();
    assert_eq!(answers(&passed.stdout), answers(&clean), "what is passed over leaves no trace");
    let unread = stream(&[&model], &format!("{header}a,2024-01-01,1\na,soon,1\n"));
    unread.failed(2, &["line 3, column 'ds': expected a time that is written as those before, found 'soon'"]);
    // A forgotten sequence starts anew, and without the column no times are known.
    stream(&[&model, "--max-groups", "1"], &of(&[("a", 5), ("b", 2), ("a", 4)])).ok();
    stream(&[&model], "id,sold\na,1\na,1\n").ok();
    // Sending JSON is answered with what is expected.
    stream(&[&model], "{\"id\": \"a\", \"sold\": 1}\n").refused(&["the rows begin with '{\"id\": \"a\"' as JSON does, expected CSV"]);
}

#[test]
fn a_session_of_the_library_goes_on_in_the_command_and_comes_back() {
    let scratch = Scratch::new();
    let load = |t: usize| 100.0 + (t % 13) as f64;
    let table = |range: std::ops::Range<usize>| range.fold(String::from("t,load\n"), |table, t| format!("{table}{t},{}\n", load(t)));
    let data = shown(&scratch.write("wave.csv", table(0..200)));
    let args = ["--task", "forecast", "--data", &data, "--target", "load", "--horizon", "3"];
    let file = packed(&scratch, &trained(&scratch, &args, &["max_iterations=4"]));
    let PackedModel { model, table: task, .. } = PackedModel::read(&file).unwrap();
    let (task, identity) = (task.unwrap(), ModelIdentity::of_files(&[Path::new(&file)]).unwrap());
    let step = |sessions: &mut Sessions, t: usize| {
        let row: Vec<f64> = task.columns().iter().map(|column| if column == "t" { t as f64 } else { load(t) }).collect();
        let Sessions::Table(sessions) = sessions else { panic!("it reads a table") };
        sessions.step(&model, &task, &[0], &row).unwrap().to_vec()
    };
    let mut sessions = Sessions::new(&model, Some(&task), 1).unwrap();
    (0..20).for_each(|t| _ = step(&mut sessions, t));
    let state = shown(&scratch.write("state", sessions.to_bytes(identity.as_str()).unwrap()));
    let answers = |text: &str| text.lines().skip(1).map(|line| line.split_once(',').unwrap().1.to_owned()).collect::<Vec<_>>();
    let whole = stream(&[&file], &table(0..40)).ok().stdout;
    let rest = stream(&[&file, "--load-state", &state, "--save-state", &state], &table(20..40)).ok().stdout;
    assert_eq!(answers(&rest), answers(&whole)[20..]);
    let mut back = Sessions::from_bytes(&fs::read(&state).unwrap(), &model, Some(&task), identity.as_str()).unwrap();
    (20..40).for_each(|t| _ = step(&mut sessions, t));
    assert_eq!(step(&mut back, 40), step(&mut sessions, 40));

    // Rows with names, as the library used to name its only one.
    let Sessions::Table(inner) = &sessions else { panic!("it reads a table") };
    let histories = inner.histories().map(<[f64]>::to_vec).collect();
    let saved =
        SavedSessions { names: vec!["0".into()], logits: Vec::new(), histories, forecasts: Vec::new(), state: inner.state().clone() };
    let named = saved.to_bytes(&model, identity.as_str()).unwrap();
    let mut back = Sessions::from_bytes(&named, &model, Some(&task), identity.as_str()).unwrap();
    assert_eq!(step(&mut back, 41), step(&mut sessions, 41));
    let named = shown(&scratch.write("named", named));
    stream(&[&file, "--load-state", &named], &table(20..40)).refused(&["none of its 1 sequences, such as '0'", "without a name"]);
}

#[test]
fn forecasts_are_in_the_units_of_the_table() {
    let scratch = Scratch::new();
    let wave = |t: usize| 100.0 + 10.0 * (std::f64::consts::TAU * t as f64 / 13.0).sin();
    let table = |range: std::ops::Range<usize>| range.fold(String::from("t,load\n"), |table, t| format!("{table}{t},{}\n", wave(t)));
    let data = shown(&scratch.write("wave.csv", table(0..400)));
    let args = ["--task", "forecast", "--data", &data, "--target", "load", "--horizon", "3"];
    let run = trained(&scratch, &args, &["max_iterations=100", "eval_every=50", "lr=0.01", "seq_len=32", "batch_size=16"]);
    let model = packed(&scratch, &run);
    let answers = stream(&[&model], &table(0..80)).ok().stdout;
    assert!(answers.starts_with("line,load +1,load q0.1 +1,load q0.9 +1,load +2,"), "{answers}");
    let numbers: Vec<f64> = answers.lines().last().unwrap().split(',').map(|cell| cell.parse().unwrap()).collect();
    let error: f64 = (0..3).map(|ahead| (numbers[1 + 3 * ahead] - wave(80 + ahead)).abs()).sum::<f64>() / 3.0;
    assert!(numbers[0] == 81.0 && error < 5.0, "{numbers:?} {error}");
    let object: Value = serde_json::from_str(stream(&[&model, "--json"], &table(0..80)).ok().stdout.lines().last().unwrap()).unwrap();
    for (at, name) in ["load", "load q0.1", "load q0.9"].into_iter().enumerate() {
        let found = object["forecast"][name].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>();
        assert_eq!(found, [1, 4, 7].map(|first| numbers[first + at]));
    }
    // A saved session continues with the rows that decide how the next ones are read.
    let state = shown(&scratch.path("state"));
    let rest = |from: usize| table(from..80);
    stream(&[&model, "--save-state", &state], &table(0..40)).ok();
    let again = stream(&[&model, "--load-state", &state], &rest(40)).ok().stdout;
    let last = |text: &str| text.lines().last().unwrap().split_once(',').unwrap().1.to_owned();
    assert_eq!(last(&again), last(&answers));
}

#[test]
fn text_is_told_its_surprise_in_pieces_of_any_size() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=60"]);
    training.run().ok();
    let model = packed(&scratch, &training.out);
    let text = &words(400)[..300];
    let told = stream(&[&model], text).ok().stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!((lines[0], lines.len()), ("text,log_probability", 301));
    assert!(lines[1].ends_with(','), "nothing is known of the first: {}", lines[1]);
    let surprise: f64 = lines[2..].iter().map(|line| line.rsplit_once(',').unwrap().1.parse::<f64>().unwrap()).sum();
    // As `eval` scores the same text.
    let file = shown(&scratch.write("held.txt", text));
    let scored = Finished::of(&mut minrnn(&["eval", &model, "--data", &file, "--json"])).ok().stdout;
    let loss = scored.lines().find_map(|line| serde_json::from_str::<Value>(line).unwrap()["loss"].as_f64()).unwrap();
    assert!((loss + surprise / 299.0).abs() < 1e-4, "{loss} {surprise}");
    // Cut anywhere, with the state carried over.
    let state = shown(&scratch.path("state"));
    let first = stream(&[&model, "--save-state", &state], &text[..77]).ok().stdout;
    let second = stream(&[&model, "--load-state", &state], &text[77..]).ok().stdout;
    assert_eq!(first.lines().chain(second.lines().skip(1)).collect::<Vec<_>>(), lines);
    // A character that is unknown.
    stream(&[&model], "the é").failed(2, &["line 1: the model does not know the character 'é'"]);
    let of_windows = [("the\r\n", "'\\r': it is a carriage return"), ("\u{feff}the\n", "'\\u{feff}': it is a byte-order mark")];
    for (text, told) in of_windows {
        stream(&[&model], text).failed(2, &["line 1: the model does not know the character", told]);
    }
    let passed = stream(&[&model, "--skip-bad-rows"], "the é fox").ok();
    assert_eq!((passed.stdout.lines().count(), passed.stderr.lines().count()), (9, 1));
    for of_tables in [&["--group", "x"][..], &["--one-sequence"], &["--max-groups", "3"]] {
        stream(&[&[&*model][..], of_tables].concat(), "").refused(&["the model reads text", of_tables[0]]);
    }
}

#[test]
fn a_vocabulary_of_bytes_goes_on_from_within_a_character() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["tokenizer=byte", "max_iterations=4"]);
    training.run().ok();
    let (model, state) = (packed(&scratch, &training.out), shown(&scratch.path("state")));
    let bytes = b"h\xc3\xa9x\xff\n\xe6\x97";
    let whole = stream_bytes(&[&model], bytes).ok().stdout;
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), 1 + bytes.len(), "{whole}");
    assert!(lines[2..].iter().all(|line| line.rsplit_once(',').unwrap().1.parse::<f64>().is_ok()), "{whole}");
    // A line end is told apart from a backslash before an n.
    let escaped = stream_bytes(&[&model], b"a\n\\n").ok().stdout;
    let cells: Vec<&str> = escaped.lines().skip(1).map(|line| line.rsplit_once(',').unwrap().0).collect();
    assert_eq!(cells, ["a", "\\n", "\\\\", "n"]);
    for cut in 1..bytes.len() {
        let first = stream_bytes(&[&model, "--save-state", &state], &bytes[..cut]).ok();
        assert_eq!(first.stderr, "");
        let second = stream_bytes(&[&model, "--load-state", &state], &bytes[cut..]).ok().stdout;
        assert_eq!(first.stdout.lines().chain(second.lines().skip(1)).collect::<Vec<_>>(), lines, "{cut}");
    }
}

#[test]
fn a_state_that_is_saved_within_a_line_or_a_character_says_so() {
    let scratch = Scratch::new();
    let state = shown(&scratch.path("state"));
    let pieces = scratch.training("pieces", &["tokenizer=bpe", "bpe_vocab_size=280", "max_iterations=2"]);
    pieces.run().ok();
    let pieces = shown(&pieces.out);
    let cut = stream(&[&pieces, "--save-state", &state], "the quick\nbrown f").ok();
    assert!(cut.stderr.starts_with("the input ends within a line") && cut.stderr.lines().count() == 1, "{cut:?}");
    assert_eq!(stream(&[&pieces, "--save-state", &state], "the quick\nbrown\n").ok().stderr, "");
    assert_eq!(stream(&[&pieces], "the quick\nbrown f").ok().stderr, "");
    let characters = scratch.training("characters", &["max_iterations=2"]);
    characters.run().ok();
    let cut = stream_bytes(&[&shown(&characters.out), "--skip-bad-rows", "--save-state", &state], b"the \xc3").ok();
    assert!(cut.stderr.starts_with("the input ends within a character") && cut.stderr.contains("passed over: line 1"), "{cut:?}");
}

#[test]
fn a_closed_pipe_and_a_signal_end_it_cleanly() {
    let scratch = Scratch::new();
    let model = classifier(&scratch);
    let state = shown(&scratch.path("state"));
    let mut talk = Talk::new(&[&model, "--save-state", &state]);
    talk.say("machine,pressure,humidity\na,500,0\n");
    talk.hear();
    talk.hear();
    signal(&talk.child, "INT");
    let status = talk.child.wait().unwrap();
    let mut told = String::new();
    talk.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(status.success() && told.is_empty(), "{status} {told}");
    assert!(scratch.path("state").is_file());
    // The reader has gone away.
    let mut talk = Talk::new(&[&model]);
    drop(talk.stdout.take());
    talk.say("machine,pressure,humidity\na,500,0\n");
    let status = talk.child.wait().unwrap();
    let mut told = String::new();
    talk.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(status.success() && told.is_empty(), "{status} {told}");
}

#[test]
fn a_signal_ends_a_text_that_does_not_end() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=4"]);
    training.run().ok();
    let (model, state) = (packed(&scratch, &training.out), shown(&scratch.path("state")));
    let mut talk = Talk::new(&[&model, "--save-state", &state]);
    let (mut stdin, mut stdout) = (talk.stdin.take().unwrap(), talk.stdout.take().unwrap());
    let text = words(4000);
    let writer = std::thread::spawn(move || while stdin.write_all(text.as_bytes()).is_ok() {});
    let mut line = String::new();
    for _ in 0..100 {
        line.clear();
        stdout.read_line(&mut line).unwrap();
    }
    let reader = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()).unwrap());
    signal(&talk.child, "INT");
    wait_until(&mut talk.child, || false);
    let mut told = String::new();
    talk.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(talk.child.wait().unwrap().success() && told.is_empty(), "{told}");
    writer.join().unwrap();
    assert!(reader.join().unwrap() > 0);
    stream(&[&model, "--load-state", &state], "the").ok();
}

#[test]
fn models_that_are_not_for_streams_are_refused() {
    let scratch = Scratch::new();
    let copying = scratch.task("copying", &[]);
    copying.run().ok();
    stream(&[&shown(&copying.out)], "").refused(&["neither on a table nor on text"]);
}
