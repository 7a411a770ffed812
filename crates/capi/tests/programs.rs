//! Programs in C and C++ against the libraries as they are linked elsewhere. Needs a C compiler, as the build of the workspace does.
#![cfg(target_os = "linux")]

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{Packed, classifier, text_model};
use minrnn_model::MixerKind;
use minrnn_stream::{TableSessions, Workspace};

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];

fn crate_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Where cargo has put the libraries: beside the tests.
fn built(name: &str) -> PathBuf {
    let path = std::env::current_exe().unwrap().parent().unwrap().join(name);
    assert!(path.exists(), "{} was built with the tests", path.display());
    path
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn compile(compiler: &str, arguments: &[&str], out: &Path) {
    let include = crate_file("include");
    run(Command::new(compiler).args(WARNINGS).args(arguments).arg("-I").arg(include).arg("-o").arg(out));
}

/// The example, linked with the shared and with the static library.
fn examples(folder: &Path) -> [PathBuf; 2] {
    let library = folder.join("libminrnn.so");
    let named = folder.join(format!("libminrnn.so.{}", env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap().0));
    for link in [&library, &named] {
        std::os::unix::fs::symlink(built("libminrnn_capi.so"), link).unwrap();
    }
    let (source, search) = (crate_file("examples/stream.c"), format!("-L{}", folder.display()));
    let (source, programs) = (source.to_str().unwrap(), ["shared", "static"].map(|name| folder.join(name)));
    let path = format!("-Wl,-rpath,{}", folder.display());
    compile("cc", &["-std=c11", source, &search, "-lminrnn", &path], &programs[0]);
    let archive = built("libminrnn_capi.a");
    compile("cc", &["-std=c11", source, archive.to_str().unwrap(), "-lpthread", "-ldl", "-lm"], &programs[1]);
    programs
}

fn told(program: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child =
        Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that refuses its arguments reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// What the example prints, computed by the runtime.
fn continued(packed: &Packed, prompt: &str) -> String {
    let packed = packed.in_rust();
    let tokenizer = minrnn_model::Tokenizer::from_json(&packed.tokenizer.unwrap()).unwrap();
    let (model, mut workspace) = (packed.model, Workspace::new());
    let sampling = minrnn_stream::Sampling { temperature: 0.8, top_k: 40, seed: 1, ..Default::default() };
    let (mut state, mut sampler) = (model.init_state(1).unwrap(), minrnn_stream::Sampler::new(sampling).unwrap());
    let (mut logits, mut tokens) = (vec![0.0; model.outputs()], tokenizer.encode(prompt).unwrap());
    model.prefill(&[&tokens], &mut state, &mut logits, &mut workspace).unwrap();
    for _ in 0..200 {
        let token = sampler.sample(&mut logits, &[]).unwrap();
        tokens.push(token);
        model.step(&[token], &mut state, &mut logits, &mut workspace).unwrap();
    }
    tokenizer.decode(&tokens).unwrap() + "\n"
}

#[test]
fn the_example_continues_a_text_and_answers_rows() {
    let folder = tempfile::tempdir().unwrap();
    let programs = examples(folder.path());
    let (text, table) = (text_model(MixerKind::MinGru, 6), classifier(6));
    let shown = |packed: &Packed| packed.path().to_str().unwrap().to_owned();
    let PackedRows { rows, answers } = PackedRows::of(&table);
    for program in &programs {
        let output = told(program, &[&shown(&text), "abé"], "");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), continued(&text, "abé"));
        let output = told(program, &[&shown(&table)], &rows);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), answers);
        for (arguments, input, words) in [
            (&["no-such-file"][..], "", "error 7: could not read 'no-such-file'"),
            (&[&shown(&text), "xyz"], "", "error 5: character 1 of the text is 'x'"),
            (&[&shown(&table)], "1\n", "expected a line of 2 numbers: heat noise"),
            (&[&shown(&table)], "1,nan\n", "error 5: column 'noise': found NaN"),
        ] {
            let output = told(program, arguments, input);
            assert_eq!(output.status.code(), Some(1));
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.starts_with(words), "{said}");
        }
    }
}

/// Lines for the example, and what it should print.
struct PackedRows {
    rows: String,
    answers: String,
}

impl PackedRows {
    fn of(packed: &Packed) -> Self {
        let rust = packed.in_rust();
        let task = rust.table.unwrap();
        let mut sessions = TableSessions::new(&rust.model, &task, 1).unwrap();
        let (mut rows, mut answers) = (String::new(), String::new());
        for row in [[20.0, 0.5], [31.5, 0.25], [-4.0, 0.75]] {
            rows += &format!("{},{}\n", row[0], row[1]);
            let shares = sessions.step(&rust.model, &task, &[0], &row).unwrap();
            let cells: Vec<String> =
                task.classes().iter().zip(shares).map(|(class, share)| format!("{class}={}", in_six(*share))).collect();
            answers += &(cells.join(" ") + "\n");
        }
        Self { rows, answers }
    }
}

/// A number as `%.6g` prints it.
fn in_six(x: f64) -> String {
    let mut text = vec![0u8; 64];
    unsafe extern "C" {
        fn snprintf(buffer: *mut u8, size: usize, format: *const u8, ...) -> i32;
    }
    // SAFETY: the buffer has that size, and the format wants one double.
    let len = unsafe { snprintf(text.as_mut_ptr(), text.len(), c"%.6g".as_ptr().cast(), x) };
    text.truncate(len as usize);
    String::from_utf8(text).unwrap()
}

/// Compares a session that may use threads with one that may not, where no threads can be had: `PROGRAM MODEL refused` once the system gives no memory
/// for their stacks, `PROGRAM MODEL forked` in a child of a process that has some.
const ALONE: &str = r#"
#include <minrnn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 512, MOST = 64 };
static uint32_t tokens[ROWS];
static float expected[ROWS * MOST], found[ROWS * MOST];

static int is_refused(minrnn_status status) {
    if (status != MINRNN_OK) fprintf(stderr, "error %d: %s\n", (int)status, minrnn_last_error());
    return status != MINRNN_OK;
}

static int differ(minrnn_session *alone, minrnn_session *together, size_t n) {
    return is_refused(minrnn_step_tokens(alone, NULL, 0, tokens, ROWS, expected, n))
        || is_refused(minrnn_step_tokens(together, NULL, 0, tokens, ROWS, found, n))
        || memcmp(expected, found, n * sizeof *found) != 0;
}

int main(int argc, char **argv) {
    minrnn_model *model;
    minrnn_session *alone, *together;
    if (argc != 3 || is_refused(minrnn_model_open(argv[1], &model)) || is_refused(minrnn_session_new(model, ROWS, &alone))
        || is_refused(minrnn_session_new(model, ROWS, &together)) || is_refused(minrnn_session_threads(together, 0)))
        return 1;
    size_t n = ROWS * minrnn_model_size(model, MINRNN_SIZE_OUTPUTS);
    if (strcmp(argv[2], "refused") == 0) {
        struct rlimit limit = {768u << 20, 768u << 20};
        if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    } else {
        int status;
        if (differ(alone, together, n)) return 3;
        pid_t child = fork();
        if (child < 0) return 4;
        if (child > 0) return waitpid(child, &status, 0) != child || !WIFEXITED(status) ? 5 : WEXITSTATUS(status);
        alarm(60);
    }
    return differ(alone, together, n) || differ(alone, together, n);
}
"#;

#[test]
fn where_there_are_no_threads_a_session_goes_on_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("alone.c"), folder.path().join("alone"));
    std::fs::write(&source, ALONE).unwrap();
    let archive = built("libminrnn_capi.a");
    compile("cc", &["-std=gnu11", source.to_str().unwrap(), archive.to_str().unwrap(), "-lpthread", "-ldl", "-lm"], &program);
    let model = text_model(MixerKind::MinGru, 6);
    let gone_on = |how: &str, stack: &str| {
        let mut command = Command::new(&program);
        run(command.arg(model.path()).arg(how).env("RAYON_NUM_THREADS", "3").env("RUST_MIN_STACK", stack))
    };
    // A stack of 1 GiB exceeds the limit that the program sets for itself.
    assert_eq!(gone_on("refused", "1073741824").stderr, b"");
    assert_eq!(gone_on("forked", "2097152").stderr, b"");
}

#[test]
fn the_header_is_good_c_and_good_cpp() {
    let folder = tempfile::tempdir().unwrap();
    let program = "#include <minrnn.h>\nint main(void) { return minrnn_version() == 0; }\n";
    let archive = built("libminrnn_capi.a");
    for (compiler, name, standards) in
        [("cc", "a.c", &["-std=c99", "-std=c11", "-std=c17"][..]), ("c++", "a.cpp", &["-std=c++11", "-std=c++17"])]
    {
        let source = folder.path().join(name);
        std::fs::write(&source, program).unwrap();
        if Command::new(compiler).arg("--version").output().is_err() && compiler == "c++" {
            eprintln!("there is no c++: passed over");
            continue;
        }
        for standard in standards {
            let out = folder.path().join("a");
            let arguments = [standard, source.to_str().unwrap(), archive.to_str().unwrap(), "-lpthread", "-ldl", "-lm"];
            compile(compiler, &arguments, &out);
            run(&mut Command::new(&out));
        }
    }
}

/// The shared library exports exactly the names that the header declares.
#[test]
fn the_shared_library_exports_the_functions_of_the_header_alone() {
    let header = std::fs::read_to_string(crate_file("include/minrnn.h")).unwrap();
    let declared = header.split("MINRNN_API ").skip(1).filter_map(|text| text.split_once('(')).map(|(front, _)| front);
    let declared: std::collections::BTreeSet<&str> =
        declared.filter_map(|front| front.rsplit([' ', '*']).next()).filter(|name| name.starts_with("minrnn_")).collect();
    let output = run(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(built("libminrnn_capi.so")));
    let text = String::from_utf8(output.stdout).unwrap();
    let exported: std::collections::BTreeSet<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(exported, declared);
}
