//! Runs, packed models, a saved session and saved states of an earlier minrnn: they load, and what is said about them is what that program said. The
//! files were made by `tools/compatibility_fixtures.sh`.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use minrnn_stream::{Model, State, Workspace};
use serde::Deserialize;

/// A call, and what was printed then.
#[derive(Deserialize)]
struct Call {
    args: Vec<String>,
    /// `null` if only success counts.
    stdout: Option<String>,
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The words and the numbers of a text, separated.
fn parts(text: &str) -> Vec<Result<f64, &str>> {
    text.split([' ', ',', '\n', '(']).map(|word| word.parse().map_err(|_| word)).collect()
}

/// Whether `found` says what `expected` does, except for the last digits of its numbers: every CPU rounds sums in another order.
fn agree(found: &str, expected: &str) -> bool {
    let (found, expected) = (parts(found), parts(expected));
    let is_share = |i: usize| expected.get(i + 1) == Some(&Err("%"));
    let near = |i: usize| match (&found[i], &expected[i]) {
        // One correct prediction more or less.
        (Ok(a), Ok(b)) if is_share(i) => (a - b).abs() < 0.5,
        (Ok(a), Ok(b)) => (a - b).abs() <= 2e-3 * b.abs().max(1.0),
        (a, b) => a == b,
    };
    found.len() == expected.len() && (0..found.len()).all(near)
}

#[test]
fn files_of_before_load_and_say_what_they_said() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compatibility");
    let directory = tempfile::tempdir().unwrap();
    copy(&fixtures, directory.path());
    let calls: Vec<Call> = serde_json::from_slice(&fs::read(fixtures.join("expected.json")).unwrap()).unwrap();
    assert!(calls.len() > 20);
    for Call { args, stdout } in calls {
        let output = Command::new(env!("CARGO_BIN_EXE_minrnn")).args(&args).current_dir(directory.path()).output().unwrap();
        let (found, sentence) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{args:?}: {sentence}");
        if let Some(expected) = stdout {
            // Since then each loss of a text has an additional line.
            let of_then = found.split_inclusive('\n').filter(|line| !line.starts_with("  bits per byte "));
            let found: String = of_then.collect();
            assert!(agree(&found, &expected), "{args:?} says\n{found}\nand said\n{expected}");
        }
    }
}

#[test]
fn states_of_before_go_on_as_they_did() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compatibility");
    // The second earlier state is shorter: it lacks what rounding its log-weights had lost.
    for name in ["min-gru-int8", "rwkv4-f32"] {
        let read = |end: &str| fs::read(fixtures.join(format!("{name}.{end}"))).unwrap();
        let model = Model::load(fixtures.join(format!("{name}.minrnn"))).unwrap();
        let mut state = State::from_bytes(&read("state"), &model).unwrap();
        let expected: Vec<Vec<f32>> = serde_json::from_slice(&read("logits.json")).unwrap();
        assert_eq!(expected.len(), 8);
        let (mut logits, mut workspace) = (vec![0.0; model.vocab_size()], Workspace::new());
        for (i, expected) in (40..).zip(expected) {
            model.step(&[i * 7 % model.vocab_size() as u32], &mut state, &mut logits, &mut workspace).unwrap();
            assert_eq!(logits.len(), expected.len());
            let near = logits.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3);
            assert!(near, "{name} after token {i}: {logits:?}, expected {expected:?}");
        }
    }
}

#[test]
fn other_words_and_other_numbers_do_not_agree() {
    assert!(agree("loss 0.9615 nats", "loss 0.9616 nats"));
    assert!(agree("accuracy 69.73 %, 5 predictions", "accuracy 69.75 %, 5 predictions"));
    assert!(!agree("loss 0.9615 nats", "loss 0.9715 nats"));
    assert!(!agree("loss 0.9615 nats", "loss 0.9615 bits"));
    assert!(!agree("the old", "the old river"));
}
