//! A directory for a test, texts to train on, tiny trainings by the `minrnn` binary, and servers (`server.rs`).

#![allow(dead_code, reason = "every test file uses its own part")]

pub mod server;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use minrnn_model::{WEIGHTS_FILE, Weights, write_safetensors};
use serde_json::Value;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// What every training here starts from; later settings win.
const TINY: [&str; 13] = [
    "d_model=16",
    "n_layers=1",
    "conv=false",
    "dropout=0",
    "seq_len=16",
    "batch_size=4",
    "max_iterations=20",
    "warmup=2",
    "schedule=constant",
    "eval_every=10",
    "eval_iterations=2",
    "checkpoint_every=7",
    "threads=1",
];

/// A directory that is removed at the end of the test.
pub struct Scratch {
    path: PathBuf,
    /// What removes it, unless tests share it.
    _owned: Option<tempfile::TempDir>,
}

impl Scratch {
    pub fn new() -> Self {
        Self::of(tempfile::tempdir().unwrap())
    }

    /// One that the tests of the file `name` share, in a static that is never dropped: it is in the build directory, and a later run of the tests removes
    /// it when it is a day old and no run can still use it.
    pub fn shared(name: &str) -> Self {
        let (place, prefix) = (Path::new(env!("CARGO_TARGET_TMPDIR")), format!("{name}-"));
        for entry in fs::read_dir(place).unwrap().flatten() {
            let age = entry.metadata().ok().and_then(|found| found.modified().ok()?.elapsed().ok());
            let is_old = age.is_some_and(|age| age > Duration::from_secs(24 * 60 * 60));
            if is_old && entry.file_name().to_string_lossy().starts_with(&prefix) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let path = tempfile::Builder::new().prefix(&prefix).tempdir_in(place).unwrap().keep();
        Self { path, _owned: None }
    }

    fn of(directory: tempfile::TempDir) -> Self {
        Self { path: directory.path().to_owned(), _owned: Some(directory) }
    }

    /// One on a disk in memory where the system has one, for tests that start hundreds of processes which sync hundreds of files each.
    pub fn in_memory() -> Self {
        Self::of(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// A text of 5000 characters with something to learn in it.
    pub fn text(&self, name: &str) -> PathBuf {
        self.write(name, words(5000))
    }

    /// A tiny training of `text`, a file made by [`text`](Self::text), in the directory `out`.
    pub fn training(&self, out: &str, settings: &[&str]) -> Training {
        let text = self.path("text.txt");
        let text = if text.exists() { text } else { self.text("text.txt") };
        Training { args: vec!["--data".to_owned(), shown(&text)], ..self.task(out, settings) }
    }

    /// A tiny training of selective copying.
    pub fn task(&self, out: &str, settings: &[&str]) -> Training {
        let settings = TINY.iter().chain(settings).map(ToString::to_string).collect();
        Training { args: Vec::new(), out: self.path(out), settings }
    }
}

/// `n` characters of words in an order that looks random and is always the same.
pub fn words(n: usize) -> String {
    let mut random = Random(1);
    let mut text = String::new();
    while text.len() < n {
        text += ["the ", "quick ", "brown\n", "fox ", "jumps. "][random.below(5) as usize];
    }
    text.truncate(n);
    text
}

/// A small generator of numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % n
    }
}

pub fn shown(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The binary, without input that could change what it does.
pub fn minrnn(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minrnn"));
    command.args(args).stdin(Stdio::null());
    command
}

/// What a finished process left.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    pub fn of(command: &mut Command) -> Self {
        command.output().unwrap().into()
    }

    /// Checks that it ended well.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Checks that it ended with 1 and without an error, as when a signal stops it before its end.
    pub fn stopped(self) -> Self {
        assert!(self.code == Some(1) && !self.stderr.contains("error: "), "{self:?}");
        self
    }

    /// Runs `command` with `input` on stdin.
    pub fn fed(command: &mut Command, input: &[u8]) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_owned());
        // A command that refuses its arguments reads nothing.
        let writer = std::thread::spawn(move || _ = stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Self::from(output)
    }

    /// Checks for exit code 2, nothing on stdout, and one sentence on stderr with all of `parts` in it.
    pub fn refused(&self, parts: &[&str]) {
        self.failed(2, parts);
        assert_eq!((self.stderr.lines().count(), self.stdout.as_str()), (1, ""), "{self:?}");
    }

    /// Checks for the exit code, and a last sentence on stderr with all of `parts` in it.
    pub fn failed(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        let sentence = self.stderr.lines().last().unwrap_or_default();
        assert!(sentence.starts_with("error: ") && !sentence.contains("panicked"), "{self:?}");
        parts.iter().for_each(|part| assert!(sentence.contains(part), "expected '{part}' in: {sentence}"));
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// What the binary does with `args`.
pub fn told(args: &[&str]) -> Finished {
    Finished::of(&mut minrnn(args))
}

/// What `minrnn predict` does with `args`.
pub fn predict(args: &[&str]) -> Finished {
    Finished::of(minrnn(&["predict"]).args(args))
}

/// A tiny training of the table `content` in the file `name`, and its run; an earlier one is removed.
pub fn train_table(scratch: &Scratch, name: &str, content: impl AsRef<[u8]>, args: &[&str], settings: &[&str]) -> (Finished, String) {
    let data = shown(&scratch.write(name, content));
    let args = ["--data", &data].into_iter().chain(args.iter().copied()).map(str::to_owned).collect();
    let _ = fs::remove_dir_all(scratch.path("run"));
    let settings = [&["max_iterations=4", "d_model=8", "n_layers=1"][..], settings].concat();
    let training = Training { args, ..scratch.task("run", &settings) };
    (training.run(), shown(&training.out))
}

/// Arguments of `minrnn train`.
#[derive(Clone)]
pub struct Training {
    pub args: Vec<String>,
    pub out: PathBuf,
    pub settings: Vec<String>,
}

/// What must not depend on how often a run was interrupted.
#[derive(PartialEq)]
pub struct Outcome {
    pub weights: Vec<u8>,
    pub training: Vec<u8>,
    pub progress: Value,
    pub metrics: Vec<Value>,
}

impl Training {
    /// The same with further settings.
    pub fn with(&self, settings: &[&str]) -> Self {
        let mut with = self.clone();
        with.settings.extend(settings.iter().map(ToString::to_string));
        with
    }

    pub fn command(&self, more: &[&str]) -> Command {
        let mut command = minrnn(&["train"]);
        command.args(&self.args).arg("--out").arg(&self.out).args(more);
        self.settings.iter().for_each(|setting| _ = command.args(["--set", setting]));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self) -> Finished {
        Finished::of(&mut self.command(&[]))
    }

    pub fn resume(&self) -> Finished {
        Finished::of(&mut self.command(&["--resume"]))
    }

    /// Starts it, or resumes it if it was begun; before that, the starting command has to be given again.
    pub fn spawn(&self) -> Child {
        self.start_or_resume().spawn().unwrap()
    }

    /// The command of [`spawn`](Self::spawn).
    pub fn start_or_resume(&self) -> Command {
        self.command(if self.out.join("experiment.toml").exists() { &["--resume"] } else { &[] })
    }

    /// The checkpoint that `pointer` names.
    pub fn checkpoint(&self, pointer: &str) -> PathBuf {
        let directory = self.out.join("checkpoints");
        directory.join(fs::read_to_string(directory.join(pointer)).unwrap().trim())
    }

    /// Makes the best checkpoint, which is returned, one from before there were thresholds.
    pub fn without_threshold(&self) -> PathBuf {
        let best = self.checkpoint("best");
        fs::remove_file(best.join("surprise.json")).unwrap();
        let sums = fs::read_to_string(best.join("SHA256SUMS")).unwrap();
        let without: String = sums.lines().filter(|line| !line.ends_with("surprise.json")).map(|line| format!("{line}\n")).collect();
        assert_ne!(sums, without);
        fs::write(best.join("SHA256SUMS"), without).unwrap();
        best
    }

    /// The lines of the log without their speed; a torn last line is left out.
    pub fn metrics(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.out.join("metrics.jsonl")).unwrap_or_default();
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let without_speed = |line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("tokens_per_s");
            line
        };
        whole.lines().map(without_speed).collect()
    }

    /// Updates logged so far.
    pub fn logged(&self) -> u64 {
        self.metrics().iter().filter(|line| line["kind"] == "train").filter_map(|line| line["iteration"].as_u64()).max().unwrap_or(0)
    }

    pub fn outcome(&self) -> Outcome {
        let last = self.checkpoint("last");
        let mut progress: Value = serde_json::from_slice(&fs::read(last.join("progress.json")).unwrap()).unwrap();
        progress.as_object_mut().unwrap().remove("seconds");
        Outcome {
            weights: fs::read(last.join("model.safetensors")).unwrap(),
            training: fs::read(last.join("training.safetensors")).unwrap(),
            progress,
            metrics: self.metrics(),
        }
    }
}

impl Outcome {
    /// Checks for equality without printing megabytes.
    pub fn assert_equals(&self, other: &Self) {
        assert_eq!(self.progress, other.progress);
        assert_eq!(self.metrics, other.metrics);
        assert!(self.weights == other.weights, "model.safetensors differs");
        assert!(self.training == other.training, "training.safetensors differs");
    }
}

/// Waits until `reached`, or the process ends.
pub fn wait_until(child: &mut Child, mut reached: impl FnMut() -> bool) {
    let started = Instant::now();
    while !reached() && child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < PATIENCE, "waited in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the process listens for Ctrl-C, if the system can tell.
pub fn wait_until_interruptible(child: &mut Child) {
    const INT: u64 = 1 << 1;
    let status = format!("/proc/{}/status", child.id());
    wait_until(child, || {
        let Ok(text) = fs::read_to_string(&status) else { return true };
        let caught = text.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
        caught.is_none_or(|caught| caught & INT != 0)
    });
}

/// Sends a signal by its name, such as INT.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status().unwrap();
    assert!(sent.success());
}

/// Every file below `directory` with its content, and every directory.
pub fn snapshot(directory: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(snapshot(&path));
            found.insert(path, None);
        } else {
            found.insert(path.clone(), Some(fs::read(&path).unwrap()));
        }
    }
    found
}

/// Checks that `directory` is as `before`.
pub fn assert_untouched(directory: &Path, before: &BTreeMap<PathBuf, Option<Vec<u8>>>) {
    let after = snapshot(directory);
    let names = |files: &BTreeMap<PathBuf, _>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(before));
    for (path, content) in before {
        assert!(after[path] == *content, "{} has changed", path.display());
    }
}

/// A copy of the checkpoint with weights so large that their sums are not finite, in a folder of its own.
pub fn overflowing(scratch: &Scratch, checkpoint: &Path) -> PathBuf {
    let damaged = scratch.path("damaged");
    fs::create_dir(&damaged).unwrap();
    for name in ["config.json", "task.json", "tokenizer.json"] {
        if checkpoint.join(name).exists() {
            fs::copy(checkpoint.join(name), damaged.join(name)).unwrap();
        }
    }
    let mut weights = Weights::read(checkpoint.join(WEIGHTS_FILE)).unwrap();
    let names: Vec<String> = weights.names().map(ToOwned::to_owned).collect();
    let tensors: Vec<_> = names
        .into_iter()
        .map(|name| {
            let (shape, data) = weights.take_any(&name).unwrap().into_parts();
            // Only the last two layers: a norm after them would undo it.
            let is_last = name.starts_with("head") || name.starts_with("backbone.final_norm");
            let data: Vec<f32> = data.iter().map(|&x| if is_last { 1e30f32.copysign(x) } else { x }).collect();
            (name, shape, data.into())
        })
        .collect();
    write_safetensors(damaged.join(WEIGHTS_FILE), tensors, None).unwrap();
    damaged
}

/// Names of temporary files and directories below `directory`.
pub fn leftovers(directory: &Path) -> Vec<PathBuf> {
    let is_temporary = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(".writing-") || name.ends_with(".tmp")
    };
    snapshot(directory).into_keys().filter(is_temporary).collect()
}

/// The command with no file allowed to grow beyond `blocks` of 512 bytes.
pub fn with_file_limit(command: &Command, blocks: u32) -> Finished {
    let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut limited = Command::new("sh");
    limited.args(["-c", &script]).arg(command.get_program()).args(command.get_args());
    Finished::of(limited.stdin(Stdio::null()))
}
