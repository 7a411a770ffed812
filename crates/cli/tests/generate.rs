//! `minrnn generate` on tiny models that the tests make themselves.

mod common;

use std::io::{BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use burn::tensor::Device;
use common::{Finished, minrnn, signal};
use minrnn::checkpoint::{TOKENIZER_FILE, load_model, save_weights};
use minrnn::data::Tokenizer;
use minrnn::generate::{Session, TextGenerator};
use minrnn::model::SequenceModel;
use minrnn::train::RunDir;
use minrnn_model::{CheckpointConfig, ModelConfig, WEIGHTS_FILE};
use minrnn_stream::Sampling;

const ALPHABET: &str = "\n abcdefghijklmnopqrstuvwxyz";

/// A directory with a checkpoint in it, removed at the end.
struct Checkpoint {
    directory: tempfile::TempDir,
}

impl Checkpoint {
    fn new() -> Self {
        Self::with(0, true)
    }

    fn with(seed: u64, text: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let checkpoint = Self { directory };
        std::fs::create_dir(checkpoint.path()).unwrap();
        write_checkpoint(&checkpoint.path(), seed, text);
        checkpoint
    }

    /// One whose vocabulary is that of bytes.
    fn of_bytes() -> Self {
        let checkpoint = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(checkpoint.path()).unwrap();
        write_model(&checkpoint.path(), 0, 256, Some(&Tokenizer::Byte));
        checkpoint
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("checkpoint")
    }

    /// A path outside the checkpoint.
    fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn generate(&self, args: &[&str]) -> Finished {
        generate(&self.path(), args)
    }

    /// What the library generates.
    fn expected(&self, prompts: &[impl AsRef<[u8]>], sampling: Sampling, max_tokens: usize) -> Vec<String> {
        let loaded = load_model(self.path(), &Device::flex()).unwrap();
        let mut generator =
            TextGenerator::new(Session::new(&loaded.model, prompts.len()), loaded.tokenizer.as_ref().unwrap(), prompts, sampling, &[])
                .unwrap();
        let mut texts = vec![String::new(); prompts.len()];
        let each = |piece: minrnn::generate::Piece| {
            texts[piece.row] += &piece.text;
            ControlFlow::Continue(())
        };
        generator.generate(max_tokens, each).unwrap();
        texts
    }
}

fn write_checkpoint(directory: &Path, seed: u64, text: bool) {
    let tokenizer = text.then(|| Tokenizer::characters_of(ALPHABET));
    write_model(directory, seed, ALPHABET.len(), tokenizer.as_ref());
}

fn write_model(directory: &Path, seed: u64, vocab_size: usize, tokenizer: Option<&Tokenizer>) {
    let config = ModelConfig { vocab_size, d_model: 16, ..Default::default() };
    let model = SequenceModel::new(&config, seed, &Device::flex()).unwrap();
    CheckpointConfig::new(config).write(directory).unwrap();
    save_weights(&model, directory.join(WEIGHTS_FILE)).unwrap();
    if let Some(tokenizer) = tokenizer {
        tokenizer.save(directory.join(TOKENIZER_FILE)).unwrap();
    }
}

fn command(run: &Path, args: &[&str]) -> Command {
    let mut command = minrnn(&["generate"]);
    command.arg(run).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn generate(run: &Path, args: &[&str]) -> Finished {
    Finished::of(&mut command(run, args))
}

#[track_caller]
fn text(finished: &Finished) -> &str {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    &finished.stdout
}

/// Checks that nothing was generated, and for exit code 2 and a last sentence with `part` in it.
#[track_caller]
fn generated_nothing(finished: &Finished, part: &str) {
    finished.failed(2, &[part]);
    assert_eq!(finished.stdout, "");
}

#[test]
fn the_text_alone_is_on_stdout_and_is_that_of_the_library() {
    let checkpoint = Checkpoint::new();
    let sampling = Sampling { seed: 3, temperature: 0.8, top_k: 5, ..Default::default() };
    let expected = checkpoint.expected(&["the cat"], sampling, 100).remove(0);
    let args = ["--prompt", "the cat", "--max-tokens", "100", "--seed", "3", "--temperature", "0.8", "--top-k", "5"];
    let output = checkpoint.generate(&args);
    assert_eq!(text(&output), expected);
    assert!(output.stderr.contains("min-gru of ") && output.stderr.contains("generated 100 tokens"), "{output:?}");
    let file = checkpoint.file("prompt.txt");
    std::fs::write(&file, "the cat").unwrap();
    let from_file: Vec<&str> = ["--prompt-file", file.to_str().unwrap()].into_iter().chain(args[2..].iter().copied()).collect();
    assert_eq!(text(&checkpoint.generate(&from_file)), expected);
    let from_stdin = |more: &[&str]| {
        let mut command = command(&checkpoint.path(), &["--prompt-file", "-"]);
        Finished::of(command.args(more).args(&args[2..]).stdin(std::fs::File::open(&file).unwrap()))
    };
    assert_eq!(text(&from_stdin(&[])), expected);
    generated_nothing(&from_stdin(&["--prompt-file", "-"]), "--prompt-file - is given twice");
}

#[test]
fn without_a_prompt_it_starts_from_a_line_break() {
    let checkpoint = Checkpoint::new();
    let expected = checkpoint.expected(&["\n"], Sampling::default(), 500).remove(0);
    assert_eq!(text(&checkpoint.generate(&[])), expected);
}

#[test]
fn prompts_of_unequal_length_are_continued_together_each_under_its_title() {
    let checkpoint = Checkpoint::new();
    let texts = checkpoint.expected(&["ab", "the quick brown fox"], Sampling::greedy(), 30);
    let args = ["--prompt", "ab", "--prompt", "the quick brown fox", "--max-tokens", "30", "--temperature", "0"];
    let title = |name: &str, text: &str| format!("==> {name} <==\n{text}{}", if text.ends_with('\n') { "" } else { "\n" });
    let expected = [title("\"ab\"", &texts[0]), title("\"the quick brown fox\"", &texts[1])].join("\n");
    assert_eq!(text(&checkpoint.generate(&args)), expected);
}

#[test]
fn several_continuations_of_one_prompt_differ() {
    let output = Checkpoint::new().generate(&["--prompt", "ab", "--batch", "2", "--max-tokens", "40"]);
    let (first, second) = text(&output).split_once("\n\n==> \"ab\" (2 of 2) <==\n").or_else(|| text(&output).split_once("\n==> ")).unwrap();
    let first = first.strip_prefix("==> \"ab\" (1 of 2) <==\n").unwrap();
    assert_ne!(first.trim_end(), second.trim_end());
}

#[test]
fn a_run_directory_stands_for_its_best_checkpoint() {
    let (parent, alone) = (tempfile::tempdir().unwrap(), Checkpoint::with(1, true));
    let run = RunDir::create(parent.path().join("run")).unwrap();
    for (iteration, is_best) in [(10, false), (20, true), (30, false)] {
        let seed = u64::from(is_best);
        run.save(iteration, is_best, &[], |directory| {
            write_checkpoint(directory, seed, true);
            Ok(())
        })
        .unwrap();
    }
    let output = generate(run.path(), &["--prompt", "ab"]);
    assert_eq!(text(&output), text(&alone.generate(&["--prompt", "ab"])));
    assert!(output.stderr.contains("iter-20"));
}

#[test]
fn text_ends_before_a_stop_string() {
    let checkpoint = Checkpoint::new();
    let free = checkpoint.expected(&["ab"], Sampling::default(), 200).remove(0);
    let stop = &free[50..53];
    let output = checkpoint.generate(&["--prompt", "ab", "--max-tokens", "200", "--stop", stop, "--stop", "never to be found"]);
    assert_eq!(text(&output), free.split(stop).next().unwrap());
}

#[test]
fn a_saved_session_goes_on_as_if_never_interrupted() {
    let checkpoint = Checkpoint::new();
    let session = checkpoint.beside("session");
    let session = session.to_str().unwrap();
    let free = checkpoint.expected(&["ab"], Sampling { seed: 9, ..Default::default() }, 90).remove(0);
    // Every letter begins a stop string, so the last one of each part is held back.
    let stops: Vec<String> = ALPHABET.chars().map(|c| format!("{c}#")).collect();
    let mut args = vec!["--prompt", "ab", "--seed", "9", "--max-tokens", "30", "--save-session", session];
    stops.iter().for_each(|stop| args.extend(["--stop", stop]));
    let first = checkpoint.generate(&args);
    assert_eq!(text(&first), &free[..29]);
    assert!(first.stderr.contains("--load-session"));
    let second = checkpoint.generate(&["--load-session", session, "--save-session", session, "--max-tokens", "30"]);
    let third = checkpoint.generate(&["--load-session", session, "--max-tokens", "30"]);
    assert_eq!([text(&first), text(&second), text(&third)].concat(), free);
}

#[test]
fn a_damaged_session_is_not_shown_as_a_good_one() {
    let checkpoint = Checkpoint::new();
    let path = checkpoint.beside("session");
    text(&checkpoint.generate(&["--prompt", "ab", "--max-tokens", "3", "--save-session", path.to_str().unwrap()]));
    let inspect = || Finished::of(minrnn(&["inspect"]).arg(&path));
    assert!(text(&inspect()).contains("minrnn_session"));
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    inspect().refused(&["the saved session is damaged: its checksum does not match"]);
}

#[test]
fn a_session_can_be_prompted_forked_and_sampled_otherwise() {
    let checkpoint = Checkpoint::new();
    let session = checkpoint.beside("session");
    let session = session.to_str().unwrap();
    text(&checkpoint.generate(&["--prompt", "the quick", "--max-tokens", "0", "--save-session", session]));
    let expected = checkpoint.expected(&["the quick brown"], Sampling { seed: 4, ..Default::default() }, 20).remove(0);
    let load = |args: &[&str]| checkpoint.generate(&[&["--load-session", session, "--max-tokens", "20"], args].concat());
    assert_eq!(text(&load(&["--prompt", " brown", "--seed", "4"])), expected);
    let forked = load(&["--batch", "3"]);
    assert_eq!(text(&forked).matches("of the session (").count(), 3);
    generated_nothing(&load(&["--prompt", "a", "--prompt", "b"]), "the session has 1 texts");
}

#[test]
fn characters_arrive_while_more_are_generated_and_a_closed_pipe_is_no_error() {
    let checkpoint = Checkpoint::new();
    let mut child = command(&checkpoint.path(), &["--max-tokens", "1000000000"]).spawn().unwrap();
    let mut first = [0; 50];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let finished = Finished::from(child.wait_with_output().unwrap()).ok();
    assert!(!finished.stderr.contains("error"), "{finished:?}");
    assert_eq!(first.as_slice(), &checkpoint.expected(&[""], Sampling::default(), 50)[0].as_bytes()[..50]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_text_and_keeps_the_session() {
    let checkpoint = Checkpoint::new();
    let session = checkpoint.beside("session");
    let session = session.to_str().unwrap();
    let mut child = command(&checkpoint.path(), &["--max-tokens", "1000000000", "--save-session", session]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut shown = vec![0; 20];
    stdout.read_exact(&mut shown).unwrap();
    signal(&child, "INT");
    stdout.read_to_end(&mut shown).unwrap();
    let finished = Finished::from(child.wait_with_output().unwrap()).stopped();
    assert!(finished.stderr.contains("interrupted after"), "{finished:?}");
    let shown = String::from_utf8(shown).unwrap();
    let more = checkpoint.generate(&["--load-session", session, "--max-tokens", "20"]);
    let expected = checkpoint.expected(&[""], Sampling::default(), shown.chars().count() + 20).remove(0);
    assert_eq!(shown + text(&more), expected);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_stdout_is_a_sentence() {
    let checkpoint = Checkpoint::new();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let finished = Finished::of(command(&checkpoint.path(), &[]).stdout(full()));
    finished.failed(1, &["could not write the text to standard output: No space left"]);
}

#[test]
fn a_run_that_is_not_there_or_is_none_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    generated_nothing(&generate(&parent.path().join("none"), &[]), "could not open the run");
    generated_nothing(&generate(parent.path(), &[]), "expected a run directory or a checkpoint");
    let checkpoint = Checkpoint::new();
    generate(&checkpoint.file(WEIGHTS_FILE), &[]).refused(&[]);
}

#[test]
fn a_damaged_checkpoint_is_refused() {
    let checkpoint = Checkpoint::new();
    let whole = std::fs::read(checkpoint.file(WEIGHTS_FILE)).unwrap();
    let with = |name: &str, bytes: &[u8], part: &str| {
        let old = std::fs::read(checkpoint.file(name)).unwrap();
        std::fs::write(checkpoint.file(name), bytes).unwrap();
        generated_nothing(&checkpoint.generate(&[]), part);
        std::fs::write(checkpoint.file(name), old).unwrap();
    };
    with(WEIGHTS_FILE, &whole[..whole.len() - 100], "it was cut short or damaged");
    with(WEIGHTS_FILE, &[&[0x77; 64], &whole[..]].concat(), "claims a header of");
    with(WEIGHTS_FILE, &[&whole[..8], &vec![b'{'; whole.len() - 8]].concat(), "the header is damaged");
    let huge = br#"{"w":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}"#;
    with(WEIGHTS_FILE, &[&(huge.len() as u64).to_le_bytes(), &huge[..]].concat(), "should have 4398046511");
    with(WEIGHTS_FILE, b"", "fewer than a header");
    with("config.json", b"{", "expected a checkpoint configuration");
    let other = br#"{"version": 1, "model": {"vocab_size": 28, "d_model": 8}}"#;
    with("config.json", other, "expected [28, 8]");
    with(TOKENIZER_FILE, b"[]", "is neither a minrnn tokenizer");
    Tokenizer::Byte.save(checkpoint.file("larger.json")).unwrap();
    let larger = std::fs::read(checkpoint.file("larger.json")).unwrap();
    with(TOKENIZER_FILE, &larger, "has 256 tokens");
    std::fs::remove_file(checkpoint.file(WEIGHTS_FILE)).unwrap();
    generated_nothing(&checkpoint.generate(&[]), "could not read");
}

#[test]
fn weights_that_are_not_numbers_are_a_sentence() {
    let checkpoint = Checkpoint::new();
    let mut bytes = std::fs::read(checkpoint.file(WEIGHTS_FILE)).unwrap();
    let len = bytes.len();
    bytes[len - 4000..].fill(0xff);
    std::fs::write(checkpoint.file(WEIGHTS_FILE), bytes).unwrap();
    let finished = checkpoint.generate(&["--prompt", ALPHABET]);
    finished.failed(2, &["holds NaN at position", "expected finite numbers"]);
    assert_eq!(finished.stdout, "");
}

#[test]
fn a_model_of_a_task_has_nothing_to_continue() {
    Checkpoint::with(0, false).generate(&["--prompt", "ab"]).refused(&["has no tokenizer.json", "minrnn eval"]);
}

#[test]
fn a_character_outside_the_vocabulary_is_named() {
    generated_nothing(&Checkpoint::new().generate(&["--prompt", "the Cat"]), "character 5 of the text is 'C' (U+0043)");
}

#[test]
fn numbers_of_many_digits_are_told_in_few() {
    let checkpoint = Checkpoint::new();
    for flag in ["--repetition-penalty", "--top-p", "--min-p"] {
        let finished = checkpoint.generate(&[flag, "1e300"]);
        generated_nothing(&finished, "found 1e300");
        assert!(finished.stderr.ends_with("found 1e300\n"), "{finished:?}");
    }
}

#[test]
fn prompt_files_that_are_no_text_are_refused() {
    let checkpoint = Checkpoint::new();
    let file = checkpoint.file("prompt");
    let args = ["--prompt-file", file.to_str().unwrap()];
    generated_nothing(&checkpoint.generate(&args), "could not read");
    std::fs::write(&file, b"abc\xff").unwrap();
    generated_nothing(&checkpoint.generate(&args), "expected UTF-8 text, found another byte at offset 3");
}

#[test]
fn a_vocabulary_of_bytes_continues_a_file_of_any_bytes() {
    let checkpoint = Checkpoint::of_bytes();
    let prompt: &[u8] = b"caf\xe9 au lait\n\xff";
    let expected = checkpoint.expected(&[prompt], Sampling::greedy(), 40).remove(0);
    let file = checkpoint.beside("latin1.txt");
    std::fs::write(&file, prompt).unwrap();
    let (name, args) = (file.to_str().unwrap(), ["--temperature", "0", "--max-tokens", "40"]);
    let output = checkpoint.generate(&[&["--prompt-file", name][..], &args].concat());
    // The end may be the beginning of a character.
    assert!(text(&output).starts_with(&expected), "{expected:?}: {output:?}");
    let two = checkpoint.generate(&[&["--prompt-file", name, "--prompt", "ab"][..], &args].concat());
    assert!(text(&two).contains("caf\u{fffd} au lait"), "{two:?}");
}

#[test]
fn settings_out_of_range_are_named() {
    let checkpoint = Checkpoint::new();
    let cases: [(&[&str], &str); 16] = [
        (&["--temperature", "-1"], "temperature must be 0"),
        (&["--temperature", "warm"], "invalid value 'warm'"),
        (&["--top-p", "2"], "top_p must be"),
        (&["--min-p", "-0.5"], "min_p must be"),
        (&["--repetition-penalty", "0"], "repetition_penalty must be"),
        (&["--top-k", "x"], "invalid value 'x'"),
        (&["--batch", "0"], "--batch must be between 1 and 4096"),
        (&["--threads", "0"], "--threads must be between 1 and 1024"),
        (&["--stop", ""], "a stop string is empty"),
        (&["--save-session", "none/such/session"], "there is no directory 'none/such'"),
        (&["--seed", "-1"], "invalid value '-1' for '--seed <N>'"),
        (&["--top-k", "-1"], "invalid value '-1' for '--top-k <K>'"),
        (&["--max-tokens", "-5"], "invalid value '-5' for '--max-tokens <N>'"),
        (&["--batch", "-1"], "invalid value '-1' for '--batch <N>'"),
        (&["--threads", "-1"], "invalid value '-1' for '--threads <N>'"),
        (&["--wrong-flag"], "unexpected argument '--wrong-flag'"),
    ];
    for (args, expected) in cases {
        let Finished { code, stdout, stderr } = checkpoint.generate(args);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{args:?}: {stderr}");
        assert!(stderr.contains("error: ") && stderr.contains(expected) && !stderr.contains("panicked"), "{args:?}: {stderr}");
    }
}

#[test]
fn the_number_of_threads_changes_no_text() {
    let checkpoint = Checkpoint::new();
    let on = |threads| checkpoint.generate(&["--prompt", "ab", "--temperature", "0", "--threads", threads]);
    assert_eq!(text(&on("1")), text(&on("2")));
}

/// The files of `tests/fixtures/without_digests` were written by a version that knew neither digests nor checksums: `minrnn train` on
/// lines of "to be or not to be that is the question", then `minrnn generate --prompt "to be" --max-tokens 8 --temperature 0
/// --save-session`.
#[test]
fn a_checkpoint_without_digests_and_a_session_without_a_checksum_are_read() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/without_digests");
    let session = fixture.join("session");
    let args = ["--load-session", session.to_str().unwrap(), "--max-tokens", "24"];
    assert_eq!(text(&generate(&fixture, &args)), "to be that is the questi");
}

#[test]
fn every_flipped_bit_of_a_saved_session_is_refused() {
    let checkpoint = Checkpoint::new();
    let session = checkpoint.beside("session");
    let name = session.to_str().unwrap();
    let args = ["--max-tokens", "5", "--temperature", "0", "--load-session", name];
    text(&checkpoint.generate(&["--max-tokens", "5", "--prompt", "ab", "--save-session", name]));
    let expected = text(&checkpoint.generate(&args)).to_owned();
    let bytes = std::fs::read(&session).unwrap();
    // One bit in each stretch of the file, including the last byte; all bits would take too many processes.
    for at in (0..bytes.len()).step_by(23).chain([bytes.len() - 1]) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&session, bytes).unwrap();
        let finished = checkpoint.generate(&args);
        // Nothing but the text of the whole file is ever generated: a name in the file's frame may have changed.
        match finished.code {
            Some(0) => assert_eq!(finished.stdout, expected, "byte {at}"),
            _ => generated_nothing(&finished, ""),
        }
    }
}

#[test]
fn a_session_that_is_damaged_or_of_another_model_is_refused() {
    let (checkpoint, other) = (Checkpoint::new(), Checkpoint::with(1, true));
    let session = checkpoint.beside("session");
    let name = session.to_str().unwrap();
    text(&checkpoint.generate(&["--max-tokens", "5", "--save-session", name]));
    generated_nothing(&other.generate(&["--load-session", name]), "another model or other weights");
    let bytes = std::fs::read(&session).unwrap();
    std::fs::write(&session, &bytes[..bytes.len() / 2]).unwrap();
    generated_nothing(&checkpoint.generate(&["--load-session", name]), "");
    let others: [(&[u8], &str); 3] = [
        (b"the quick brown fox", "no safetensors file"),
        (b"\x89minrnnG\0\0\0\0\0", "the saved state of a stream"),
        (b"\x89minrnn\n\x02\0\0\0", "a packed model"),
    ];
    for (content, kind) in others {
        std::fs::write(&session, content).unwrap();
        let expected = format!("'{name}': it is {kind}, expected a saved session");
        generated_nothing(&checkpoint.generate(&["--load-session", name]), &expected);
    }
    let weights = checkpoint.file(WEIGHTS_FILE);
    generated_nothing(&checkpoint.generate(&["--load-session", weights.to_str().unwrap()]), "a saved session");
    generated_nothing(&checkpoint.generate(&["--load-session", "none"]), "could not read 'none'");
    let output = checkpoint.generate(&["--max-tokens", "5", "--save-session", checkpoint.path().to_str().unwrap()]);
    generated_nothing(&output, "is a directory");
}
