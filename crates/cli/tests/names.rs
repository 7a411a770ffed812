//! Errors call files by the names that were given, with nothing in them that a terminal would obey.

mod common;

use std::path::Path;

use common::{Scratch, leftovers, minrnn, shown, told, with_file_limit};

#[test]
fn control_characters_in_names_are_escaped() {
    for command in ["eval", "generate", "pack", "inspect", "plot"] {
        let finished = told(&[command, "no\x1b[2Jsuch\nrun\u{9b}"]);
        finished.refused(&["no\\u{1b}[2Jsuch\\nrun\\u{9b}"]);
        assert!(finished.stderr.trim_end().chars().all(|c| !c.is_control()), "{finished:?}");
    }
}

#[cfg(unix)]
#[test]
fn what_cannot_be_written_is_named_as_it_was_to_be_named() {
    let scratch = Scratch::new();
    let foreign = Path::new(env!("CARGO_MANIFEST_DIR")).join("../minrnn/tests/fixtures/interchange/min_gru_pytorch.safetensors");
    let weights = scratch.path("foreign.safetensors");
    let mut read = minrnn_model::Weights::read(foreign).unwrap();
    let names: Vec<String> = read.names().filter(|name| !name.starts_with("case.")).map(ToOwned::to_owned).collect();
    let tensors = names.into_iter().map(|name| {
        let (shape, data) = read.take_any(&name).unwrap().into_parts();
        (name, shape, data.into())
    });
    minrnn_model::write_safetensors(&weights, tensors.collect::<Vec<_>>(), None).unwrap();
    let full = |args: &[&str], name: &Path| {
        let finished = with_file_limit(&minrnn(args), 2);
        finished.failed(1, &[&format!("could not write '{}': File too large (os error 27)", name.display())]);
        assert!(finished.stderr.ends_with("(os error 27)\n"), "{finished:?}");
        assert!(leftovers(&scratch.path("")).is_empty());
    };
    let model = scratch.path("model");
    let import = ["import", &shown(&weights), "--format", "min-gru-pytorch", "-o", &shown(&model)];
    full(&import, &model.join("config.json"));
    told(&import).ok();
    let packed = scratch.path("packed");
    full(&["pack", &shown(&model), "-o", &shown(&packed)], &packed);

    let (absent, below) = (scratch.path("absent/model"), weights.join("model"));
    let end = |args: &[&str], answer: &str| {
        let finished = told(args);
        finished.failed(2, &[]);
        assert!(finished.stderr.ends_with(&format!("{answer}\n")), "{finished:?}");
    };
    for (place, answer) in [(&absent, "No such file or directory (os error 2)"), (&below, "Not a directory (os error 20)")] {
        let place = shown(place);
        end(&["import", &shown(&weights), "--format", "min-gru-pytorch", "-o", &place], answer);
        end(&["pack", &shown(&model), "-o", &place], answer);
        end(&["export", &shown(&model), "--format", "min-gru-pytorch", "-o", &place], answer);
    }
}

#[cfg(unix)]
#[test]
fn what_outgrows_the_disk_is_named_as_it_was_to_be_named() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=1"]);
    training.run().ok();
    let (run, text) = (shown(&training.out), shown(&scratch.path("text.txt")));
    let [packed, rows, logits, episodes] =
        ["model.minrnn", "rows.csv", "logits.npy", "a.trajectories"].map(|name| shown(&scratch.path(name)));
    told(&["pack", &run, "-o", &packed]).ok();
    let new = scratch.training("new", &[]);
    for (command, name) in [
        (minrnn(&["score", &run, "--data", &text, "--out", &rows]), "rows.csv"),
        (minrnn(&["eval", &packed, "--data", &text, "--logits", &logits]), "logits.npy"),
        (minrnn(&["rollout", "--behavior", "random", "--episodes", "4", "--record", &episodes]), "a.trajectories"),
        (new.command(&[]), "text.tokens"),
    ] {
        let finished = with_file_limit(&command, 8);
        finished.failed(1, &["could not write ", &format!("{name}': File too large (os error 27)")]);
        assert!(finished.stderr.ends_with("(os error 27)\n"), "{finished:?}");
        assert!(leftovers(&scratch.path("")).is_empty());
    }
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_to_itself_is_wrong_input() {
    let scratch = Scratch::new();
    let path = scratch.path("loop");
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let link = shown(&path);
    let run = scratch.training("run", &["max_iterations=1"]);
    run.run().ok();
    let (run, out) = (shown(&run.out), shown(&scratch.path("out")));
    for args in [
        &["train", "--data", &link, "--out", &out][..],
        &["train", "--task", "classify", "--data", &link, "--group", "a", "--target", "b", "--out", &out],
        &["train", "listops", "--data", &link, "--out", &out],
        &["train", &link, "--out", &out],
        &["train", "--out", &link],
        &["train", "--resume", "--out", &link],
        &["eval", &link],
        &["eval", &run, "--data", &link],
        &["generate", &link],
        &["generate", &run, "--prompt-file", &link],
        &["generate", &run, "--load-session", &link],
        &["predict", &link, "--data", &link],
        &["pack", &link, "-o", &out],
        &["inspect", &link],
        &["import", &link, "--format", "min-gru-pytorch", "-o", &out],
        &["export", &link, "--format", "min-gru-pytorch", "-o", &out],
        &["verify", &link],
        &["plot", &link, "-o", &out],
    ] {
        let finished = told(args);
        assert_eq!(finished.code, Some(2), "{args:?}: {finished:?}");
    }
}
