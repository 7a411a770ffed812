//! `minrnn verify` as its users run it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use safetensors::tensor::{Dtype, SafeTensors, View};

/// Where `tools/write_verify_cases.py --long DIR` wrote its cases.
const LONG_CASES: &str = "MINRNN_LONG_CASES";

fn verify(arguments: &[&str], files: &[PathBuf]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_minrnn")).arg("verify").args(arguments).args(files).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("not killed by a signal")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn cases_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = entries.filter(|path| path.extension().is_some_and(|extension| extension == "safetensors")).collect();
    cases.sort();
    cases
}

fn shipped() -> Vec<PathBuf> {
    cases_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/verify"))
}

/// A case that tests change and write again.
#[derive(Clone)]
struct Draft {
    metadata: HashMap<String, String>,
    tensors: BTreeMap<String, Raw>,
}

#[derive(Clone)]
struct Raw {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for Raw {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.bytes.as_slice().into()
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

impl Draft {
    fn of(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/verify").join(name).with_extension("safetensors");
        let bytes = std::fs::read(path).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let raw = |view: safetensors::tensor::TensorView<'_>| Raw {
            dtype: view.dtype(),
            shape: view.shape().to_vec(),
            bytes: view.data().to_vec(),
        };
        let tensors = SafeTensors::deserialize(&bytes).unwrap().tensors().into_iter().map(|(name, view)| (name, raw(view)));
        Self { metadata: header.metadata().clone().unwrap(), tensors: tensors.collect() }
    }

    fn bytes(&self) -> Vec<u8> {
        safetensors::serialize(self.tensors.clone(), Some(self.metadata.clone())).unwrap()
    }

    /// Sets the first value of a tensor.
    fn set(&mut self, name: &str, value: f32) {
        self.tensors.get_mut(name).unwrap().bytes[..4].copy_from_slice(&value.to_le_bytes());
    }

    fn zeros(&mut self, name: &str, shape: &[usize]) {
        let bytes = vec![0; 4 * shape.iter().product::<usize>()];
        self.tensors.insert(name.to_owned(), Raw { dtype: Dtype::F32, shape: shape.to_vec(), bytes });
    }
}

fn with(name: &str, change: impl FnOnce(&mut Draft)) -> Vec<u8> {
    let mut draft = Draft::of(name);
    change(&mut draft);
    draft.bytes()
}

fn setting(name: &str, key: &str, value: &str) -> Vec<u8> {
    with(name, |draft| drop(draft.metadata.insert(key.to_owned(), value.to_owned())))
}

/// Verifies a file of these bytes.
fn verify_bytes(bytes: &[u8]) -> Output {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    verify(&[], &[file.path().to_owned()])
}

#[test]
fn every_shipped_case_passes() {
    let output = verify(&[], &shipped());
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{}", stdout(&output));
    let text = stdout(&output);
    for line in [
        "  h (step by step) ",
        "  grad.h0 ",
        "  c_last ",
        "  grad.linear_i.bias ",
        "  y (step by step) ",
        "  grad.delta_bias ",
        "  grad.beta ",
        "  grad.log_a_real ",
        "  grad.bonus ",
        "tensors in 42 cases checked: all pass",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("FAIL"), "{text}");
}

#[test]
#[ignore = "needs PyTorch: python tools/write_verify_cases.py --long DIR, then MINRNN_LONG_CASES=DIR"]
fn cases_of_20_000_steps_pass() {
    let directory = std::env::var(LONG_CASES).unwrap_or_else(|_| panic!("set {LONG_CASES} to the directory of the long cases"));
    let (extreme, others): (Vec<_>, Vec<_>) =
        cases_in(Path::new(&directory)).into_iter().partition(|path| path.ends_with("min_lstm_long_extreme.safetensors"));
    assert!(extreme.len() == 1 && others.len() == 8, "expected the nine long cases in {directory}");
    let output = verify(&[], &others);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    // Gates of ±40 from weights of 40: a rounding error of the pre-activation returns in grad.x forty times larger.
    let output = verify(&["--atol", "1e-3"], &extreme);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
}

#[test]
fn json_has_one_object_per_tensor_and_nothing_else() {
    let output = verify(&["--json"], &shipped());
    assert_eq!(code(&output), 0);
    let lines: Vec<serde_json::Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 325);
    for line in &lines {
        assert!(line["file"].is_string() && line["cell"].is_string() && line["tensor"].is_string(), "{line}");
        // If only zeros are expected, there is no relative error.
        let (max, rms) = (line["max_abs_error"].as_f64().unwrap(), line["relative_rms_error"].as_f64());
        assert!(rms.map_or(max < 1e-12, |rms| max < 1e-4 && rms < 1e-5), "{line}");
        assert_eq!(line["pass"], true);
    }
    for direction in ["forward", "steps", "backward"] {
        assert!(lines.iter().any(|line| line["direction"] == direction), "{direction}");
    }
}

#[test]
fn any_changed_expectation_fails_and_is_the_only_one_that_does() {
    for name in ["expect.h", "expect.c_last", "expect.grad.x", "expect.grad.c0", "expect.grad.weight_hh_l0", "expect.grad.bias_ih_l0"] {
        let output = verify_bytes(&with("lstm", |draft| draft.set(name, 77.0)));
        assert_eq!((code(&output), stderr(&output).as_str()), (1, ""), "{name}");
        let text = stdout(&output);
        let failed: Vec<_> = text.lines().filter(|line| line.ends_with("FAIL")).collect();
        let changed = name.strip_prefix("expect.").unwrap();
        assert!(!failed.is_empty() && failed.iter().all(|line| line.trim_start().starts_with(changed)), "{name}: {text}");
        assert_eq!(failed.len(), if changed.starts_with("grad.") { 1 } else { 2 }, "{name}: {text}");
        assert!(text.contains("in 1 case FAILED"), "{text}");
    }
}

#[test]
fn a_changed_parameter_or_setting_fails() {
    for bytes in [
        with("gru", |draft| draft.set("bias_hh_l0", 1.0)),
        with("min_lstm_positive", |draft| draft.set("linear_i.weight", 1.0)),
        setting("min_gru_positive", "candidate", "identity"),
        setting("min_lstm_positive", "normalize_gates", "false"),
    ] {
        let output = verify_bytes(&bytes);
        assert_eq!(code(&output), 1, "{}", stdout(&output));
    }
}

#[test]
fn values_that_are_not_finite_fail() {
    for name in ["expect.h", "x"] {
        for value in [f32::NAN, f32::INFINITY] {
            let output = verify_bytes(&with("min_gru_positive", |draft| draft.set(name, value)));
            assert_eq!(code(&output), 1, "{name} {value}");
            assert!(stdout(&output).contains("not finite"), "{}", stdout(&output));
        }
    }
}

#[test]
fn the_tolerance_decides() {
    let bytes = with("gru", |draft| {
        let first = draft.tensors["expect.h"].bytes.first_chunk().copied().map(f32::from_le_bytes).unwrap();
        draft.set("expect.h", first + 1e-3);
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let run = |arguments: &[&str]| code(&verify(arguments, &[file.path().to_owned()]));
    assert_eq!(run(&[]), 1);
    assert_eq!(run(&["--atol", "2e-3"]), 0);
    assert_eq!(run(&["--rtol", "1", "--atol", "1"]), 0);
    assert_eq!(run(&["--rtol", "0", "--atol", "0"]), 1);
    for wrong in ["-1", "nan", "inf", "much"] {
        assert_eq!(run(&[&format!("--atol={wrong}")]), 2, "{wrong}");
    }
}

#[test]
fn what_is_not_expected_is_not_compared() {
    let only_h = with("min_gru_positive", |draft| {
        draft.tensors.retain(|name, _| !name.starts_with("expect.grad.") && name != "loss_weight");
    });
    let output = verify_bytes(&only_h);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("2 tensors in 1 case checked"), "{}", stdout(&output));
    let only_a_gradient = with("lstm", |draft| {
        draft.tensors.retain(|name, _| !name.starts_with("expect.") || name == "expect.grad.c0");
    });
    let output = verify_bytes(&only_a_gradient);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("1 tensor in 1 case checked"), "{}", stdout(&output));
}

#[test]
fn every_malformed_case_is_a_sentence_and_exit_code_2() {
    let good = Draft::of("min_gru_positive").bytes();
    let without = |name: &str| with("min_gru_positive", |draft| drop(draft.tensors.remove(name)));
    let zeros = |name: &str, shape: &[usize]| with("min_gru_positive", |draft| draft.zeros(name, shape));
    let unset = |key: &str| with("min_gru_positive", |draft| drop(draft.metadata.remove(key)));
    let huge = r#"{"x":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}"#;
    let claims_huge = [&(huge.len() as u64).to_le_bytes()[..], huge.as_bytes(), &[0; 4]].concat();
    let halves = with("min_gru_positive", |draft| {
        let x = draft.tensors.get_mut("x").unwrap();
        (x.dtype, x.bytes) = (Dtype::F16, vec![0; x.bytes.len() / 2]);
    });
    let nothing_expected = with("min_gru_positive", |draft| draft.tensors.retain(|name, _| !name.starts_with("expect.")));
    let only_c_last = with("lstm", |draft| {
        draft.tensors.retain(|name, _| !name.starts_with("expect.") && name != "loss_weight" || name == "expect.c_last");
    });
    let supported = "supported are min_gru, min_lstm, gru, lstm, mamba, slstm, mlstm";
    let mamba = |change: &dyn Fn(&mut Draft)| with("mamba_one_step", |draft| change(draft));
    let cases: &[(Vec<u8>, &str)] = &[
        (without("x"), "tensor 'x' is missing"),
        (without("h0"), "tensor 'h0' is missing"),
        (without("linear_z.bias"), "tensor 'linear_z.bias' is missing; a case of min_gru has x, h0, linear_z.weight"),
        (without("loss_weight"), "tensor 'loss_weight' is missing"),
        (nothing_expected, "nothing to compare"),
        (only_c_last, "expected a tensor 'expect.h' or 'loss_weight', found neither"),
        (zeros("linear_h.weight", &[5, 6]), "tensor 'linear_h.weight' has shape [5, 6], expected [6, 5]"),
        (zeros("expect.h", &[2, 33, 7]), "tensor 'expect.h' has shape [2, 33, 7], expected [2, 33, 6]"),
        (zeros("loss_weight", &[2]), "tensor 'loss_weight' has shape [2]"),
        (zeros("x", &[66, 5]), "expected [B, T, d]"),
        (zeros("h0", &[12]), "expected [B, e]"),
        (zeros("h0", &[3, 6]), "'h0' has 3 rows, but 'x' has 2"),
        (zeros("x", &[2, 0, 5]), "every size must be at least 1"),
        (zeros("h0", &[0, usize::MAX / 2]), "every size must be at least 1"),
        (zeros("linear_q.weight", &[6, 5]), r#"tensor "linear_q.weight" is unknown"#),
        (zeros("expect.y", &[1]), r#"tensor "expect.y" is unknown in a case of min_gru; known are expect.h, expect.grad.x"#),
        (zeros("expect.c_last", &[2, 6]), r#"tensor "expect.c_last" is unknown"#),
        (zeros("expect.grad.loss_weight", &[1]), "is unknown"),
        (halves, "tensor 'x' has type F16, expected F32"),
        (unset("case"), "it is not a verify case"),
        (unset("cell"), "the metadata name no 'cell'"),
        (unset("candidate"), "to be positive or identity, found none"),
        (setting("gru", "case", "2"), r#"format "2", expected "1""#),
        (setting("gru", "cell", "rwkv"), supported),
        (setting("gru", "cell", "mamba"), "tensor 'u' is missing; a case of mamba has u, delta, z, B, C, A, D, delta_bias"),
        (mamba(&|draft| drop(draft.tensors.remove("z"))), "tensor 'z' is missing"),
        (mamba(&|draft| draft.zeros("A", &[4, 1])), "tensor 'A' has 4 rows, but 'u' has 5 channels"),
        (mamba(&|draft| draft.zeros("A", &[5])), "tensor 'A' has shape [5], expected [d, e]"),
        (mamba(&|draft| draft.zeros("C", &[3, 1, 2])), "tensor 'C' has shape [3, 1, 2], expected [3, 1, 1] for a mamba whose u and A"),
        (mamba(&|draft| draft.zeros("expect.h", &[1])), "known are expect.y, expect.grad.u"),
        (setting("gru", "cell", "slstm"), "tensor 'R' is missing; a case of slstm has x, R, b"),
        (setting("gru", "cell", "mlstm"), "tensor 'q' is missing; a case of mlstm has q, k, v, igate, fgate"),
        (with("slstm", |draft| draft.zeros("x", &[2, 33, 23])), "tensor 'x' is 23 wide, expected 24 for 2 heads of 3"),
        (with("slstm", |draft| draft.zeros("R", &[2, 3])), "expected [heads, 4 hd, hd]"),
        (with("slstm", |draft| draft.zeros("R", &[0, 12, 3])), "every size must be at least 1"),
        (with("slstm", |draft| draft.zeros("b", &[23])), "tensor 'b' has shape [23], expected [24] for a slstm whose x and R"),
        (with("mlstm", |draft| draft.zeros("q", &[2, 70, 6])), "expected [B, NH, T, DH]"),
        (with("mlstm", |draft| draft.zeros("k", &[2, 2, 70, 4])), "tensor 'k' has shape [2, 2, 70, 4], expected [2, 2, 70, 3]"),
        (setting("mlstm", "candidate", "positive"), "mlstm has no settings"),
        (setting("retention", "decay", "0.9"), r#"unknown setting "decay" in the metadata; retention has no settings"#),
        (with("retention", |draft| drop(draft.tensors.remove("v"))), "tensor 'v' is missing; a case of retention has q, k, v"),
        (with("retention", |draft| draft.zeros("k", &[1, 2, 70, 2])), "tensor 'k' has shape [1, 2, 70, 2], expected [1, 2, 70, 4]"),
        (with("retention", |draft| draft.zeros("q", &[1, 2, 70, 3])), "tensor 'q' has heads of 3, expected an even number"),
        (with("retention", |draft| draft.zeros("v", &[1, 2, 69, 3])), "tensor 'v' has shape [1, 2, 69, 3], expected [1, 2, 70, DV]"),
        (with("aaren", |draft| draft.zeros("query", &[6])), "tensor 'query' has shape [6], expected [2, 3] for a aaren whose keys"),
        (with("delta", |draft| drop(draft.tensors.remove("beta"))), "tensor 'beta' is missing; a case of delta has q, k, v, beta"),
        (with("wkv", |draft| draft.zeros("decay", &[4])), "tensor 'decay' has shape [4], expected [5] for a wkv whose keys"),
        (with("s4d", |draft| draft.zeros("a_imag", &[2, 4])), "tensor 'a_imag' has 2 rows, but 'u' has 3 channels"),
        (with("s4d", |draft| draft.zeros("a_imag", &[3])), "tensor 'a_imag' has shape [3], expected [d, N]"),
        (with("gilr", |draft| draft.zeros("linear_g.bias", &[5])), "tensor 'linear_g.bias' has shape [5], expected [6]"),
        (setting("min_gru_positive", "candidate", "relu"), r#"to be positive or identity, found "relu""#),
        (setting("min_lstm_positive", "normalize_gates", "1"), r#"to be true or false, found "1""#),
        (setting("min_gru_positive", "normalize_gates", "true"), r#"unknown setting "normalize_gates""#),
        (setting("gru", "candidate", "positive"), "gru has no settings"),
        (claims_huge, "should have 4398046511"),
        (good[..good.len() / 2].to_vec(), "it was cut short or damaged"),
        (good[..5].to_vec(), "fewer than a header"),
        (Vec::new(), "fewer than a header"),
        (b"epoch,loss\n1,2.5\n2,2.25\n".to_vec(), "it is no safetensors file, expected a verify case"),
        (safetensors::serialize(Draft::of("gru").tensors, None).unwrap(), "it is not a verify case"),
    ];
    for (bytes, sentence) in cases {
        let output = verify_bytes(bytes);
        let message = stderr(&output);
        assert_eq!(code(&output), 2, "{sentence}: {message}");
        assert!(message.starts_with("error: ") && message.contains(sentence), "expected {sentence}, found {message}");
        assert!(message.lines().count() == 1 && !message.contains("panicked"), "{message}");
    }
}

#[test]
fn a_case_whose_sizes_would_multiply_beyond_the_file_is_refused() {
    // A long x and a wide state: nothing in the file is as large as their product would be.
    let bytes = with("min_gru_positive", |draft| {
        draft.tensors.retain(|name, _| name == "none");
        for (name, shape) in [("x", &[1, 1 << 18, 1][..]), ("h0", &[1, 1 << 18]), ("expect.h", &[1])] {
            draft.zeros(name, shape);
        }
        for gate in ["z", "h"] {
            draft.zeros(&format!("linear_{gate}.weight"), &[1 << 18, 1]);
            draft.zeros(&format!("linear_{gate}.bias"), &[1 << 18]);
        }
    });
    let output = verify_bytes(&bytes);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("'expect.h' has shape [1], expected [1, 262144, 262144]"), "{}", stderr(&output));
}

#[test]
fn a_directory_and_a_missing_file_are_refused_and_the_other_files_still_checked() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = vec![directory.path().to_owned(), directory.path().join("none.safetensors")];
    files.push(shipped().remove(0));
    let output = verify(&[], &files);
    assert_eq!(code(&output), 2);
    let message = stderr(&output);
    assert!(message.contains("found a directory") && message.contains("could not read") && message.lines().count() == 2, "{message}");
    assert!(stdout(&output).contains("in 1 case checked: all pass") && stdout(&output).contains("2 files could not be used"));
    assert_eq!(code(&verify(&[], &[])), 2);
}
