//! `minrnn reproduce` on the real binary at scale smoke: every kind of work lands in its table, what is finished is never run again,
//! and whatever interrupts it leaves finished work behind.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Finished, Scratch, assert_untouched, leftovers, minrnn, shown, signal, snapshot, wait_until, with_file_limit};
use serde_json::Value;

/// `minrnn reproduce` of `targets` at scale smoke on one thread, into `out`.
fn reproduce(out: &Path, targets: &[&str]) -> Command {
    let mut command = minrnn(&["reproduce", "--scale", "smoke", "--threads", "1", "--out", &shown(out)]);
    command.args(targets).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Table 1 with so many seeds that it takes a while.
fn thirty_six_runs(out: &Path) -> Command {
    let mut command = reproduce(out, &["table1"]);
    command.args(["--seeds", "6"]);
    command
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(path: PathBuf) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

/// Every result of a training below `out`, also while others come and go.
fn results(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![out.join("runs")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            match fs::read(&path) {
                Ok(content) if path.ends_with("result.json") => _ = found.insert(path, content),
                _ => folders.push(path),
            }
        }
    }
    found
}

#[test]
fn every_kind_of_work_lands_in_its_table() {
    let scratch = Scratch::new();
    let (out, text) = (scratch.path("out"), scratch.text("text.txt"));
    let targets = ["table1", "table2", "table3", "figure2", "figure4", "parameters", "xlstm-parity"];
    let finished = Finished::of(reproduce(&out, &targets).args(["--data", &shown(&text)])).ok();
    let index = read(out.join("README.md"));
    for name in targets {
        let page = read(out.join(format!("{name}.md")));
        assert!(page.starts_with("# ") && page.contains("Published: "), "{page}");
        assert!(finished.stdout.contains(page.lines().next().unwrap()));
        assert!(index.contains(&format!("[{name}]({name}.md)")), "{index}");
        assert!(read(out.join(format!("{name}.csv"))).starts_with("target,scale,row,column,metric,published,"));
        for cell in json(out.join(format!("{name}.json")))["cells"].as_array().unwrap() {
            let runs = cell["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
            assert!(runs.iter().all(|run| run["result"]["loss"].is_number()), "{cell}");
        }
    }
    for name in ["table1", "figure2", "figure4", "parameters", "xlstm-parity", "xlstm-parity-lengths"] {
        assert!(read(out.join(format!("{name}.svg"))).contains("</svg>"), "{name}");
        assert_eq!(fs::read(out.join(format!("{name}.png"))).unwrap()[1..4], *b"PNG", "{name}");
    }
    let table = read(out.join("table1.md"));
    for part in
        ["**Scale smoke: the numbers mean nothing", "37.6 ± 2.0", "; device cpu; commit ", "`minrnn reproduce table1 --scale smoke`"]
    {
        assert!(table.contains(part), "{part} in {table}");
    }
    // No format says anything about numbers that mean nothing.
    let of_cells = json(out.join("table1.json"));
    let is_silent = |cell: &Value| cell["metrics"].as_object().unwrap().values().all(|metric| metric["verdict"].is_null());
    assert!(
        of_cells["orders"].as_object().unwrap().is_empty() && of_cells["cells"].as_array().unwrap().iter().all(is_silent),
        "{of_cells}"
    );
    let csv = read(out.join("table1.csv"));
    assert!(["agrees", "differs", "undecided"].iter().all(|verdict| !csv.contains(verdict)), "{csv}");
    assert!(read(out.join("table3.md")).contains("MuJoCo"));
    assert!(read(out.join("parameters.csv")).contains("minGRU,α = 2,parameter-percent,22,22,,22.2222"));
    let curve = &json(out.join("figure2.json"))["cells"][0]["runs"][0]["result"]["curve"];
    assert_eq!(curve.as_array().unwrap().len(), 3);
    // Strings of up to 8 are scored, and examined up to twice that.
    let lengths = &json(out.join("xlstm-parity.json"))["cells"][0]["runs"][0]["result"]["lengths"];
    assert_eq!(lengths.as_array().unwrap().last().unwrap()["length"], 16, "{lengths}");
    assert!(read(out.join("xlstm-parity.md")).contains("(xlstm-parity-lengths.svg)"));
    // Checkpoints of what is finished are gone; the log and the resolved experiment stay. Table 2 has the runs of table 1.
    let run = out.join("runs/selective-copying/mingru-3-layers/seed-1");
    assert!(!run.join("checkpoints").exists() && run.join("metrics.jsonl").exists() && run.join("experiment.toml").exists());
    // What is kept does not say where this machine had its text.
    let kept = snapshot(&out.join("runs"));
    let names_the_text = |content: &Vec<u8>| String::from_utf8_lossy(content).contains(&shown(&text));
    assert!(kept.keys().any(|path| path.ends_with("experiment.toml")) && !kept.values().flatten().any(names_the_text));
    assert!(
        finished.stderr.contains("table1: minGRU, 3 layers, seed 1") && !finished.stderr.contains("table2: minGRU"),
        "{}",
        finished.stderr
    );
    assert!(leftovers(&out).is_empty());
}

#[test]
fn what_is_finished_is_never_run_again() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let first = Finished::of(&mut reproduce(&out, &["table1"])).ok();
    assert_eq!(first.stderr.matches("seed 1").count(), 6, "{first:?}");
    let before = snapshot(&out.join("runs"));
    let again = Finished::of(&mut reproduce(&out, &["table1"])).ok();
    assert!(!again.stderr.contains("seed 1") && again.stdout == first.stdout, "{again:?}");
    assert_untouched(&out.join("runs"), &before);

    // Asking for more seeds runs only those; a result that is gone is made again, identically.
    let removed = out.join("runs/selective-copying/mingru-1-layer/seed-1/result.json");
    let result = json(removed.clone());
    fs::remove_file(&removed).unwrap();
    let more = Finished::of(reproduce(&out, &["table1"]).args(["--seeds", "2"])).ok();
    assert_eq!((more.stderr.matches("seed 1").count(), more.stderr.matches("seed 2").count()), (1, 6), "{more:?}");
    assert_eq!(json(removed)["loss"], result["loss"]);
    assert!(more.stdout.contains("--seeds 2"));
}

/// What only the data decide, such as the number of classes, is not a different setting.
#[test]
fn a_finished_classification_is_known_again() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let first = Finished::of(&mut reproduce(&out, &["table6"])).ok();
    assert!(!first.stdout.contains("other settings"), "{first:?}");
    let before = snapshot(&out.join("runs"));
    let again = Finished::of(&mut reproduce(&out, &["table6"])).ok();
    assert!(!again.stderr.contains("seed 1") && again.stdout == first.stdout, "{again:?}");
    assert_untouched(&out.join("runs"), &before);
}

#[test]
fn ctrl_c_keeps_everything_and_the_same_command_goes_on() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let mut child = thirty_six_runs(&out).spawn().unwrap();
    wait_until(&mut child, || results(&out).len() >= 3);
    signal(&child, "INT");
    let stopped = Finished::from(child.wait_with_output().unwrap()).stopped();
    let kept = results(&out);
    assert!((3..36).contains(&kept.len()), "{} of 36 were made", kept.len());
    assert!(
        stopped.stderr.ends_with(&format!("everything is saved in {}\ncontinue with the same command\n", out.display())),
        "{stopped:?}"
    );
    assert!(read(out.join("table1.md")).contains(&format!("{} of 36 runs are done.", kept.len())));

    let finished = Finished::of(&mut thirty_six_runs(&out)).ok();
    assert!(!finished.stdout.contains("runs are done"));
    let all = results(&out);
    assert_eq!(all.len(), 36);
    assert!(kept.iter().all(|(path, content)| all[path] == *content));
}

#[test]
fn two_processes_share_the_work() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let mut first = thirty_six_runs(&out).spawn().unwrap();
    wait_until(&mut first, || !results(&out).is_empty());
    let second = thirty_six_runs(&out).spawn().unwrap();
    let both = [first, second].map(|child| Finished::from(child.wait_with_output().unwrap()).ok());
    assert_eq!(results(&out).len(), 36);
    // Each was trained by one of them; one that met the other in a run went on to the next.
    let ends = |finished: &Finished| finished.stderr.matches("iterations done: ").count();
    assert_eq!(both.iter().map(ends).sum::<usize>(), 36, "{both:?}");
    assert!(both.iter().all(|finished| ends(finished) > 0), "{both:?}");
    let page = read(out.join("table1.md"));
    assert!(!page.contains("Could not be run") && !page.contains("runs are done"), "{page}");
}

#[test]
fn a_run_that_another_process_is_at_is_no_failure() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let run = out.join("runs/selective-copying/mingru-1-layer/seed-1");
    // The first results make it a results folder.
    Finished::of(reproduce(&out, &["table1"]).args(["--row", "minLSTM"])).ok();
    let held = minrnn::train::RunDir::create(&run).unwrap();
    for jobs in ["1", "2"] {
        let finished = Finished::of(reproduce(&out, &["table1"]).args(["--jobs", jobs])).ok();
        assert!(finished.stderr.contains("not done: another process is working on it"), "{finished:?}");
        assert!(finished.stderr.contains("other processes are working on: minGRU, 1 layer (seed 1)\n"), "{finished:?}");
        assert_eq!(results(&out).len(), 5);
        let page = read(out.join("table1.md"));
        assert!(page.contains("## In progress in other processes") && page.contains("| in progress |"), "{page}");
        assert!(page.contains("5 of 6 runs are done.") && !page.contains("Could not be run"), "{page}");
        assert!(read(out.join("table1.csv")).contains("another process is working on it"));
    }
    drop(held);
    let finished = Finished::of(&mut reproduce(&out, &["table1"])).ok();
    assert!(!finished.stderr.contains("another process") && results(&out).len() == 6, "{finished:?}");
}

#[test]
fn what_cannot_be_asked_for_is_a_sentence() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    Finished::of(&mut reproduce(&out, &["tabel1"])).refused(&["there is no table or figure 'tabel1'", "did you mean 'table1'?"]);
    Finished::of(reproduce(&out, &["table1"]).args(["--row", "minGRUs"])).refused(&["there is no row 'minGRUs'", "did you mean 'minGRU'?"]);
    Finished::of(reproduce(&out, &["table1"]).args(["--column", "4 layers"])).refused(&["there is no column '4 layers'"]);
    let without_columns = "there is no column 'x': what was requested has no columns to choose from; leave --column out";
    Finished::of(reproduce(&out, &["figure5"]).args(["--column", "x"])).refused(&[without_columns]);
    assert!(!out.exists());
    let other = scratch.path("other");
    fs::create_dir(&other).unwrap();
    scratch.write("other/thesis.txt", "");
    Finished::of(&mut reproduce(&other, &["table3"])).refused(&["found 'thesis.txt'", "--out"]);
    Finished::of(&mut reproduce(&scratch.path("other/thesis.txt"), &["table3"]))
        .refused(&["could not create the results folder", "thesis.txt"]);
    Finished::of(&mut reproduce(&out, &["table3"])).ok();
    Finished::of(reproduce(&out, &["table3"]).args(["--data", "none.txt"])).refused(&["could not read 'none.txt'"]);
    let mut other_scale = minrnn(&["reproduce", "table3", "--scale", "cpu", "--out", &shown(&out)]);
    Finished::of(&mut other_scale).refused(&["results of scale smoke, but scale cpu was requested", "--out"]);
    scratch.write("out/reproduce.json", r#"{"format": 99}"#);
    Finished::of(&mut reproduce(&out, &["table3"])).refused(&["written by another version of minrnn (format 99"]);
}

#[test]
fn the_full_settings_are_estimated_and_not_started_unasked() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let finished = Finished::of(reproduce(&out, &["table1"]).arg("--estimate")).ok();
    assert!(
        finished.stdout.contains("table1: minGRU, 2 layers: ") && finished.stdout.contains("all trainings on cpu, 1 thread: about "),
        "{finished:?}"
    );
    assert!(results(&out).is_empty());
    let paper = scratch.path("paper");
    let unasked = Finished::of(&mut minrnn(&["reproduce", "table3", "--scale", "paper", "--out", &shown(&paper)]));
    unasked.failed(2, &["--scale paper may take a long time; start it with --yes"]);
    let asked = Finished::of(&mut minrnn(&["reproduce", "table3", "--scale", "paper", "--yes", "--out", &shown(&paper)])).ok();
    assert!(asked.stdout.contains("109.7 ± 2.7"));
}

#[test]
fn runs_of_other_settings_and_missing_texts_are_named_and_the_rest_is_made() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    Finished::of(&mut reproduce(&out, &["table1"])).ok();
    let changed = out.join("runs/selective-copying/minlstm-1-layer/seed-1/experiment.toml");
    fs::write(&changed, read(changed.clone()).replace("max_iterations = 6", "max_iterations = 7")).unwrap();
    let mut command = reproduce(&out, &["figure2", "table1"]);
    for name in ["ALL_PROXY", "HTTPS_PROXY", "https_proxy", "all_proxy"] {
        command.env(name, "http://127.0.0.1:1");
    }
    let finished = Finished::of(command.env("MINRNN_CACHE", scratch.path("cache")));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("could not download Tiny Shakespeare") && finished.stderr.contains("--data FILE"), "{finished:?}");
    assert!(finished.stderr.contains("made with max_iterations = 7; requested: max_iterations = 6"), "{finished:?}");
    assert!(finished.stderr.ends_with("some runs could not be made; the results of the others are complete\n"), "{finished:?}");
    let page = read(out.join("table1.md"));
    assert!(page.contains("5 of 6 runs are done.") && page.contains("## To be redone") && page.contains("| to be redone |"), "{page}");
}

#[test]
#[cfg(unix)]
fn a_disk_that_refuses_is_named_and_finished_work_is_kept() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    // Room for the small models of one layer, not for more.
    let command = reproduce(&out, &["table1"]);
    let refused = with_file_limit(&command, 16);
    refused.failed(1, &["could not ", "File too large"]);
    let kept = results(&out);
    assert!(!refused.stderr.contains("panicked"), "{refused:?}");
    Finished::of(&mut reproduce(&out, &["table1"])).ok();
    let all = results(&out);
    assert!(all.len() == 6 && kept.iter().all(|(path, content)| all[path] == *content));
    assert!(leftovers(&out).is_empty());
}

#[test]
fn experiments_and_the_list_name_every_target_with_its_time() {
    for flags in [["reproduce", "--list"].as_slice(), &["experiments"]] {
        let listed = Finished::of(&mut minrnn(flags)).ok().stdout;
        assert!(["table1", "figure5", "xlstm-parity", "smoke: 6 runs", "quoted only"].iter().all(|part| listed.contains(part)), "{listed}");
    }
}

/// The result of every training below `out`, without where and how fast it was made.
fn scores(out: &Path) -> BTreeMap<PathBuf, Value> {
    let score = |(path, content): (PathBuf, Vec<u8>)| {
        let mut value: Value = serde_json::from_slice(&content).unwrap();
        value.as_object_mut().unwrap().retain(|name, _| !["seconds", "origin"].contains(&name.as_str()));
        (path.strip_prefix(out).unwrap().to_owned(), value)
    };
    results(out).into_iter().map(score).collect()
}

#[test]
fn trainings_side_by_side_come_out_as_one_after_the_other() {
    let scratch = Scratch::new();
    let (alone, together) = (scratch.path("alone"), scratch.path("together"));
    let targets = ["table1", "xlstm-parity"];
    Finished::of(&mut reproduce(&alone, &targets)).ok();
    let finished = Finished::of(reproduce(&together, &targets).args(["--jobs", "3"])).ok();
    assert_eq!(scores(&together), scores(&alone));
    assert_eq!(results(&together).len(), 16);
    assert!(finished.stderr.contains("table1: minGRU, 1 layer, seed 1: all iterations done: 6 iterations"), "{finished:?}");
    assert!(!read(together.join("table1.md")).contains("runs are done") && together.join("table1.svg").exists());
    assert!(finished.stdout.contains("# Table 1") && finished.stdout.contains("# State tracking"));
    assert!(leftovers(&together).is_empty() && !together.join("unfinished").exists());
}

/// Checks that some runs could not be made, and that all of `parts` are told.
fn tells_of(finished: &Finished, parts: &[&str]) {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.ends_with("some runs could not be made; the results of the others are complete\n"), "{finished:?}");
    parts.iter().for_each(|part| assert!(finished.stderr.contains(part), "expected '{part}' in: {}", finished.stderr));
}

#[test]
fn jobs_wait_for_memory_and_one_that_cannot_be_made_does_not_hold_the_others_up() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let finished = Finished::of(reproduce(&out, &["table1"]).args(["--jobs", "4", "--memory-limit", "100MiB"])).ok();
    assert_eq!(results(&out).len(), 6, "{finished:?}");
    let other = scratch.path("other");
    let refused = Finished::of(reproduce(&other, &["table1"]).args(["--jobs", "4", "--memory-limit", "20MiB"]));
    tells_of(&refused, &["not done: training needs about", "the memory limit is 20"]);
    assert!(results(&other).is_empty());
}

#[test]
fn several_jobs_end_with_ctrl_c_and_the_same_command_goes_on() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let jobs = || {
        let mut command = thirty_six_runs(&out);
        command.args(["--jobs", "2"]);
        command
    };
    let mut child = jobs().spawn().unwrap();
    wait_until(&mut child, || results(&out).len() >= 3);
    signal(&child, "INT");
    let stopped = Finished::from(child.wait_with_output().unwrap()).stopped();
    let kept = results(&out);
    assert!((3..36).contains(&kept.len()) && stopped.stderr.contains("continue with the same command"), "{stopped:?}");
    Finished::of(&mut jobs()).ok();
    let all = results(&out);
    assert!(all.len() == 36 && kept.iter().all(|(path, content)| all[path] == *content));
}

/// Parity at scale cpu, whose trainings take a while.
fn parity(out: &Path) -> Command {
    let mut command = minrnn(&["reproduce", "xlstm-parity", "--scale", "cpu", "--seeds", "1", "--threads", "1", "--out", &shown(out)]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn an_interrupted_training_goes_on_from_its_copy_alone() {
    let scratch = Scratch::new();
    let (here, there) = (scratch.path("here"), scratch.path("there"));
    let run = "xlstm-parity/mingru/seed-1";
    let updates = |out: &Path| fs::read_to_string(out.join("runs").join(run).join("metrics.jsonl")).unwrap_or_default().lines().count();
    let interrupt = |out: &Path, command: &mut Command, at_least: usize| {
        let mut child = command.spawn().unwrap();
        wait_until(&mut child, || updates(out) > at_least);
        signal(&child, "INT");
        Finished::from(child.wait_with_output().unwrap()).stopped()
    };
    interrupt(&here, &mut parity(&here), 20);
    let state = json(here.join("unfinished").join(run).join("run.json"));
    let begun = state["iterations"].as_u64().unwrap();
    assert!(begun >= 20 && state["of"] == 2000 && state["stretches"].as_array().unwrap().len() == 1, "{state}");
    assert!(read(here.join("xlstm-parity.md")).contains(&format!("- minGRU, seed 1: {begun} of 2000 updates")));

    // Move it to a machine of another name, with nothing but the copy.
    let copy = there.join("unfinished").join(run);
    for (path, content) in snapshot(&here.join("unfinished").join(run)) {
        let target = copy.join(path.strip_prefix(here.join("unfinished").join(run)).unwrap());
        match content {
            Some(content) => {
                fs::create_dir_all(target.parent().unwrap()).unwrap();
                fs::write(target, content).unwrap();
            }
            None => fs::create_dir_all(target).unwrap(),
        }
    }
    fs::copy(here.join("reproduce.json"), there.join("reproduce.json")).unwrap();
    let machine = state["stretches"][0]["origin"]["machine"].as_str().unwrap();
    let renamed = read(copy.join("run.json")).replace(machine, "another box, 64 cores");
    fs::write(copy.join("run.json"), renamed).unwrap();
    let stopped = interrupt(&there, parity(&there).arg("--resume"), 20);
    assert!(stopped.stderr.contains(&format!("continues after {begun} updates made on another box, 64 cores")), "{stopped:?}");
    let log = read(there.join("runs").join(run).join("metrics.jsonl"));
    let first_update = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).find(|line| line["kind"] == "train").unwrap();
    assert_eq!(first_update["iteration"], begun + 1);
    let state = json(copy.join("run.json"));
    assert_eq!(state["stretches"][1]["from"], begun);
    assert!(state["iterations"].as_u64().unwrap() > begun && state["curve"][0]["iteration"] == 0, "{state}");
    let page = read(there.join("xlstm-parity.md"));
    assert!(
        page.contains("## Runs made on several machines") && page.contains(&format!("updates 0 to {begun} on another box, 64 cores")),
        "{page}"
    );

    // Both computed the same for the same updates, since it is really one machine.
    interrupt(&here, parity(&here).arg("--resume"), begun as usize + 20);
    let losses = |out: &Path| {
        let text = read(out.join("runs").join(run).join("metrics.jsonl"));
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).filter(|line| line["kind"] == "train");
        lines.map(|line| (line["iteration"].as_u64().unwrap(), line["loss"].as_f64().unwrap())).collect::<BTreeMap<_, _>>()
    };
    let (own, others) = (losses(&here), losses(&there));
    let common: Vec<_> = others.iter().filter(|(iteration, _)| own.contains_key(iteration)).collect();
    assert!(common.len() > 5 && common.iter().all(|(iteration, loss)| own[iteration] == **loss), "{common:?}");
}

#[test]
fn a_run_that_was_killed_before_its_first_copy_goes_on_with_its_checkpoint() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let run = "xlstm-parity/mingru/seed-1";
    let updates = || fs::read_to_string(out.join("runs").join(run).join("metrics.jsonl")).unwrap_or_default().lines().count();
    let interrupt = |command: &mut Command, at_least: usize| {
        let mut child = command.spawn().unwrap();
        wait_until(&mut child, || updates() > at_least);
        signal(&child, "INT");
        Finished::from(child.wait_with_output().unwrap()).stopped()
    };
    interrupt(&mut parity(&out), 20);
    let made = json(out.join("unfinished").join(run).join("run.json"))["iterations"].as_u64().unwrap();
    // A kill leaves the run as it is now, without its copy.
    fs::remove_dir_all(out.join("unfinished")).unwrap();
    Finished::of(parity(&out).arg("--pages")).ok();
    assert!(read(out.join("xlstm-parity.md")).contains(&format!("- minGRU, seed 1: {made} of 2000 updates")));
    let resumed = interrupt(parity(&out).arg("--resume"), made as usize + 20);
    assert!(resumed.stderr.contains(&format!("resumed after {made} iterations")), "{resumed:?}");
}

#[test]
fn damaged_results_are_named_and_the_rest_is_made() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    Finished::of(&mut reproduce(&out, &["table1"])).ok();
    let runs = out.join("runs/selective-copying");
    let records = ["mingru-1-layer", "mingru-2-layers", "minlstm-1-layer"].map(|run| runs.join(run).join("seed-1/result.json"));
    for (record, damaged) in records.iter().zip(["", "{\"seed\": 1,", "{\"seed\": \"one\"}"]) {
        fs::write(record, damaged).unwrap();
    }
    // The page of a target that is not requested.
    scratch.write("out/figure5.json", "{");
    let removed = runs.join("minlstm-2-layers/seed-1/result.json");
    fs::remove_file(&removed).unwrap();
    let finished = Finished::of(&mut reproduce(&out, &["table1", "table2"]));
    tells_of(&finished, &["expected a result of a reproduction", "remove the file to make it anew"]);
    assert!(removed.exists() && out.join("table2.md").exists(), "{finished:?}");
    let page = read(out.join("table1.md"));
    assert!(page.contains("3 of 6 runs are done.") && page.contains("## Could not be run"), "{page}");
    let index = read(out.join("README.md"));
    assert!(index.contains("figure5.json is damaged; writing the pages of figure5 anew replaces it"), "{index}");
    let pages = Finished::of(reproduce(&out, &["table1", "figure5"]).arg("--pages")).ok();
    assert!(pages.stdout.contains("# Table 1") && !read(out.join("README.md")).contains("is damaged"), "{pages:?}");
}

#[test]
#[cfg(unix)]
fn a_pipe_in_place_of_a_result_is_refused_and_not_waited_for() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    Finished::of(&mut reproduce(&out, &["table1"])).ok();
    let record = out.join("runs/selective-copying/mingru-1-layer/seed-1/result.json");
    fs::remove_file(&record).unwrap();
    assert!(Command::new("mkfifo").arg(&record).status().unwrap().success());
    tells_of(&Finished::of(&mut reproduce(&out, &["table1"])), &["result.json", "expected a file, found a pipe or a device"]);
}

#[test]
fn rows_and_columns_can_be_made_alone() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    Finished::of(reproduce(&out, &["table1"]).args(["--row", "minGRU", "--column", "1 layer", "--column", "3 layers"])).ok();
    let made: Vec<PathBuf> = scores(&out).into_keys().collect();
    assert!(made.len() == 2 && made.iter().all(|run| run.to_string_lossy().contains("mingru-")), "{made:?}");
    assert!(read(out.join("table1.md")).contains("2 of 6 runs are done."));
}

#[test]
fn resuming_begins_nothing_and_pages_are_made_from_what_is_there() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    Finished::of(reproduce(&out, &["table1"]).arg("--resume")).ok();
    Finished::of(reproduce(&out, &["table1"]).arg("--pages")).ok();
    assert!(results(&out).is_empty() && read(out.join("table1.md")).contains("0 of 6 runs are done."));
    Finished::of(&mut reproduce(&out, &["table1"])).ok();
    let (page, before) = (read(out.join("table1.md")), snapshot(&out.join("runs")));
    fs::remove_file(out.join("table1.md")).unwrap();
    let finished = Finished::of(reproduce(&out, &["table1"]).arg("--pages")).ok();
    assert_eq!(read(out.join("table1.md")), page);
    assert!(finished.stdout.contains("# Table 1"));
    assert_untouched(&out.join("runs"), &before);
}

#[test]
fn what_older_settings_or_rules_made_is_named_and_replaced_when_that_is_asked_for() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    Finished::of(&mut reproduce(&out, &["table1"])).ok();
    let expected = scores(&out);
    let runs = out.join("runs/selective-copying");
    let changed = runs.join("minlstm-1-layer/seed-1/experiment.toml");
    fs::write(&changed, read(changed.clone()).replace("max_iterations = 6", "max_iterations = 7")).unwrap();
    let untrained = runs.join("mingru-1-layer/seed-1/result.json");
    let mut result = json(untrained.clone());
    result["best_iteration"] = 0.into();
    fs::write(&untrained, result.to_string()).unwrap();
    let left = Finished::of(&mut reproduce(&out, &["table1"]));
    tells_of(&left, &["--replace", "its best checkpoint is the untrained model"]);
    let page = read(out.join("table1.md"));
    assert!(page.contains("## To be redone") && page.contains("4 of 6 runs are done."), "{page}");
    // Only the requested rows are redone; the page still names the others.
    for jobs in ["1", "2"] {
        let other = Finished::of(reproduce(&out, &["table1"]).args(["--replace", "--row", "minGRU", "--jobs", jobs])).ok();
        assert_eq!(other.stderr.matches(", seed 1").count(), usize::from(jobs == "1"), "{other:?}");
        let page = read(out.join("table1.md"));
        assert!(page.contains("5 of 6 runs are done.") && page.contains("made with max_iterations = 7"), "{page}");
    }
    let replaced = Finished::of(reproduce(&out, &["table1"]).arg("--replace")).ok();
    assert_eq!(replaced.stderr.matches(", seed 1").count(), 1, "{replaced:?}");
    assert_eq!(scores(&out), expected);
    assert!(!read(out.join("table1.md")).contains("To be redone") && leftovers(&out).is_empty());
}

#[test]
fn settings_that_cannot_be_read_are_named_and_replaced_when_that_is_asked_for() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    Finished::of(&mut reproduce(&out, &["table1"])).ok();
    let expected = scores(&out);
    let runs = ["minlstm-1-layer", "mingru-1-layer"].map(|run| out.join("runs/selective-copying").join(run).join("seed-1"));
    for (run, damaged) in runs.iter().zip(["[train\n", "[train]\nof_another_version = 1\n"]) {
        fs::write(run.join("experiment.toml"), damaged).unwrap();
    }
    // One has a result, the other none.
    fs::remove_file(runs[1].join("result.json")).unwrap();
    let left = Finished::of(&mut reproduce(&out, &["table1"]));
    tells_of(
        &left,
        &["its settings cannot be read (experiment.toml: ", "remove it, redo it with --replace", "to be redone (--replace does it)"],
    );
    assert_eq!(read(runs[0].join("experiment.toml")), "[train\n");
    let replaced = Finished::of(reproduce(&out, &["table1"]).arg("--replace")).ok();
    assert_eq!(replaced.stderr.matches(", seed 1").count(), 2, "{replaced:?}");
    assert_eq!(scores(&out), expected);
    assert!(!read(out.join("table1.md")).contains("To be redone") && leftovers(&out).is_empty());
}

#[test]
fn what_learned_another_text_is_no_result_of_this_one() {
    let scratch = Scratch::new();
    let (out, one) = (scratch.path("out"), scratch.text("one.txt"));
    let other = scratch.write("other.txt", read(one.clone()).replace("fox", "the"));
    let of = |text: &Path, flags: &[&str]| Finished::of(reproduce(&out, &["figure2"]).args(["--data", &shown(text)]).args(flags));
    let losses = || {
        let cells = json(out.join("figure2.json"));
        cells["cells"].as_array().unwrap().iter().filter_map(|cell| cell["runs"][0]["result"]["loss"].as_f64()).collect::<Vec<_>>()
    };
    let baselines = || json(out.join("figure2.json"))["baselines"].clone();
    of(&one, &[]).ok();
    let (first, first_baselines) = (losses(), baselines());
    assert!(first.len() > 4 && first_baselines[0][0]["loss"].is_number(), "{first:?}, {first_baselines}");
    let before = snapshot(&out.join("runs"));
    let told = of(&other, &[]);
    tells_of(&told, &["made with the text with SHA-256 ", "requested: the text with SHA-256 ", "--replace"]);
    assert_untouched(&out.join("runs"), &before);
    assert!(losses().is_empty() && baselines() != first_baselines, "{:?}, {}", losses(), baselines());
    of(&other, &["--replace"]).ok();
    let replaced = losses();
    assert!(replaced.len() == first.len() && replaced.iter().zip(&first).all(|(other, one)| other != one), "{replaced:?}, {first:?}");
    // The content of the text counts, not its name.
    let moved = scratch.write("moved.txt", read(other));
    assert!(!of(&moved, &[]).ok().stderr.contains("seed 1"));
}

#[test]
fn a_copy_that_outlived_its_run_is_cleared_away() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    Finished::of(&mut reproduce(&out, &["table1"])).ok();
    let [done, failed] = ["mingru-1-layer", "minlstm-1-layer"].map(|run| Path::new("selective-copying").join(run).join("seed-1"));
    let failure = json(out.join("runs").join(&failed).join("result.json"))["origin"].clone();
    fs::remove_file(out.join("runs").join(&failed).join("result.json")).unwrap();
    let failure = serde_json::json!({ "sentence": "the loss is not finite", "origin": failure });
    fs::write(out.join("runs").join(&failed).join("failed.json"), failure.to_string()).unwrap();
    for jobs in ["1", "2"] {
        for run in [&done, &failed] {
            let copy = out.join("unfinished").join(run);
            fs::create_dir_all(&copy).unwrap();
            fs::write(copy.join("run.json"), "{}").unwrap();
        }
        let finished = Finished::of(reproduce(&out, &["table1"]).args(["--jobs", jobs]));
        assert!(finished.stdout.contains("| failed |") && !out.join("unfinished").exists(), "{finished:?}");
    }
}

#[test]
fn answers_without_a_model_stand_below_the_rows() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    Finished::of(&mut reproduce(&out, &["table1", "xlstm-parity"])).ok();
    let page = read(out.join("table1.md"));
    assert!(page.contains("| *always the same answer* |  | *") && page.contains("| *the sequence's commonest token* |"), "{page}");
    let kept = json(out.join("baselines/selective-copying/1-layer.json"));
    assert!((kept["baselines"][0]["accuracy"].as_f64().unwrap() - 1.0 / 14.0).abs() < 0.08, "{kept}");
    assert!(read(out.join("table1.csv")).contains("table1,smoke,always the same answer,1 layer,accuracy-percent,"));
    assert!(read(out.join("xlstm-parity-lengths.svg")).contains("trained on"));
}
