//! Compares the speed of a packed model run from C with the runtime in Rust, in short alternating rounds: `examples/speed.c`, linked with the shared
//! library, and the same steps here. Needs a C compiler.
//!
//! ```sh
//! cargo build --release -p minrnn-capi
//! cargo run --release -p minrnn-capi --example beside_c -- MODEL [ROUNDS]
//! ```

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use minrnn_stream::{PackedModel, TableSessions, Workspace};

/// Seconds of a round: so short that most pass without interruption by another program.
const ROUND: f64 = 0.002;

fn main() {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    let path = PathBuf::from(arguments.next().unwrap_or_else(|| panic!("usage: {program} MODEL [ROUNDS]")));
    let rounds: usize = arguments.next().map_or(1001, |rounds| rounds.parse().expect("a number of rounds"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut child = Command::new(compiled(folder.path()))
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program in C runs");
    let mut pipes = (child.stdin.take().expect("a pipe"), BufReader::new(child.stdout.take().expect("a pipe")));
    let mut steps = steps_of(PackedModel::read(&path).unwrap_or_else(|error| panic!("{error}")));
    let mut n = 1;
    while in_rust(&mut steps, n) < ROUND {
        n *= 2;
    }
    in_c(&mut pipes, n);
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        here.push(f64::from(n) / in_rust(&mut steps, n));
        there.push(f64::from(n) / in_c(&mut pipes, n));
    }
    drop(pipes);
    assert!(child.wait().expect("it ends").success());
    println!("machine: {}, 1 thread; commit {}", machine(), said(Command::new("git").args(["rev-parse", "--short", "HEAD"])));
    println!("{}: steps in a second, {rounds} rounds of {n} steps in turn", path.display());
    for (name, found) in [("Rust", &mut here), ("C", &mut there)] {
        found.sort_by(f64::total_cmp);
        println!("{name:5} median {:10.0}  slowest {:10.0}  fastest {:10.0}", found[rounds / 2], found[0], found[rounds - 1]);
    }
    println!("C / Rust: {:.3} of medians, {:.3} of fastest", there[rounds / 2] / here[rounds / 2], there[rounds - 1] / here[rounds - 1]);
}

/// Seconds of `n` steps of the program in C.
fn in_c((input, output): &mut (ChildStdin, BufReader<ChildStdout>), n: u32) -> f64 {
    writeln!(input, "{n}").and_then(|()| input.flush()).expect("it reads");
    let mut line = String::new();
    output.read_line(&mut line).expect("it answers");
    line.trim().parse().expect("it answers by a number")
}

/// Seconds of `n` steps here.
fn in_rust(steps: &mut Steps, n: u32) -> f64 {
    let start = Instant::now();
    steps(n);
    start.elapsed().as_secs_f64()
}

/// The program in C, linked with the shared library beside this one.
fn compiled(folder: &Path) -> PathBuf {
    let examples = std::env::current_exe().expect("a program has a path");
    let library = examples.parent().and_then(Path::parent).expect("it lies in target/release/examples").join("libminrnn_capi.so");
    let named = folder.join(format!("libminrnn.so.{}", env!("CARGO_PKG_VERSION").rsplit_once('.').expect("three numbers").0));
    std::fs::copy(&library, &named).unwrap_or_else(|error| panic!("{}: {error}; cargo build --release -p minrnn-capi", library.display()));
    let (source, out) = (Path::new(env!("CARGO_MANIFEST_DIR")), folder.join("speed"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O2"]).arg(source.join("examples/speed.c")).arg("-I").arg(source.join("include"));
    cc.arg(&named).arg(format!("-Wl,-rpath,{}", folder.display())).arg("-o").arg(&out);
    assert!(cc.status().expect("there is a C compiler").success());
    out
}

/// Does as many steps as it is told.
type Steps = Box<dyn FnMut(u32)>;

fn steps_of(PackedModel { model, table, .. }: PackedModel) -> Steps {
    if let Some(task) = table {
        let mut sessions = TableSessions::new(&model, &task, 1).expect("there is room");
        sessions.set_threads(1);
        let mut values = vec![0.0; task.columns().len()];
        return Box::new(move |n| {
            for i in 0..n {
                values[0] = 0.1 * f64::from(i % 64);
                sessions.step(&model, &task, &[0], &values).expect("the row can be read");
            }
        });
    }
    let (mut state, mut workspace, mut token) = (model.init_state(1).expect("there is room"), Workspace::new(), 0);
    workspace.set_threads(1);
    let mut outputs = vec![0.0; model.outputs()];
    Box::new(move |n| {
        for _ in 0..n {
            token = (token * 31 + 7) % model.vocab_size() as u32;
            model.step(&[token], &mut state, &mut outputs, &mut workspace).expect("the token is known");
        }
    })
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")).and_then(|line| line.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", name.map_or("of an unknown kind", |(_, name)| name))
}

fn said(command: &mut Command) -> String {
    command.output().map_or_else(|_| "unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
