//! What a command does to the files below a directory, call by call, and the same command killed before one of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::common::Finished;

/// The exit code of the tracer if it killed the command.
const KILLED: i32 = 77;

/// One call that changes something; paths begin at the directory that is watched.
#[derive(Debug, Clone)]
pub struct Call {
    pub name: String,
    pub path: PathBuf,
    /// The new name of a rename.
    pub to: PathBuf,
    /// Where a write begins; none if it appends.
    pub place: Option<usize>,
    pub bytes: Vec<u8>,
}

/// The tracer, compiled once for each test process. A C compiler is available: the allocator of the command needs it as well.
fn tracer() -> &'static Path {
    static TRACER: OnceLock<PathBuf> = OnceLock::new();
    TRACER.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/traced.c");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let program = folder.join(format!("traced-{}", std::process::id()));
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let compiled = Command::new(compiler).args(["-O1", "-o"]).arg(&program).arg(source).status();
        assert!(compiled.is_ok_and(|status| status.success()), "the tracer of system calls needs a C compiler; name it with CC");
        program
    })
}

fn traced(command: &Command, root: &Path, log: &Path, kill_at: usize) -> Finished {
    let mut traced = Command::new(tracer());
    traced.arg(root).arg(log).arg(kill_at.to_string()).arg(command.get_program()).args(command.get_args());
    let finished = Finished::of(traced.stdin(Stdio::null()));
    assert!(!finished.stderr.contains("traced: "), "system calls cannot be traced here: {finished:?}");
    finished
}

/// Runs the command to its end; returns what it did below `root`.
pub fn calls(command: &Command, root: &Path) -> Vec<Call> {
    let log = tempfile::NamedTempFile::new().unwrap();
    traced(command, root, log.path(), 0).ok();
    let text = fs::read_to_string(log.path()).unwrap();
    text.lines().map(call).collect()
}

/// Runs the command until just before its call number `at`, counted from 1; false if it reached its end.
pub fn killed(command: &Command, root: &Path, at: usize) -> bool {
    let log = tempfile::NamedTempFile::new().unwrap();
    let finished = traced(command, root, log.path(), at);
    assert!([Some(0), Some(KILLED)].contains(&finished.code), "{finished:?}");
    finished.code == Some(KILLED)
}

fn call(line: &str) -> Call {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default();
    let (name, path, to) = (next().to_owned(), next(), next());
    let (path, to) = (PathBuf::from(path.trim_start_matches('/')), PathBuf::from(to.trim_start_matches('/')));
    let place = next().parse().ok();
    let digits = next().as_bytes();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    Call { name, path, to, place, bytes: digits.as_chunks().0.iter().map(byte).collect() }
}
