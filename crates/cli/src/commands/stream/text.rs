//! Text: how likely the model considered each of its tokens.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minrnn::Error;
use minrnn::data::{Tokenizer, TokenizerKind};
use minrnn::deployed::{Deployed, Listener, Surprise};

use super::arriving::{Arriving, Out};
use super::rows::in_json;
use super::{Args, finish, goes_on};
use crate::csv::in_a_line;
use crate::failure::WrongInput;
use crate::interrupt;
use crate::say::say;

/// Bytes between two checks for a stop.
const PART: usize = 1 << 10;

/// Answers every token of `input`.
pub fn answer(
    args: &Args,
    deployed: &Deployed,
    tokenizer: &Tokenizer,
    input: Arriving,
    out: &Out,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<()> {
    if args.group.is_some() || args.one_sequence || args.max_groups.is_some() {
        let sentence = "the model reads text, which is one sequence without columns; leave --group, --one-sequence and --max-groups out";
        return Err(WrongInput(sentence.to_owned()).into());
    }
    if args.surprise {
        let sentence =
            "the model reads text and gives the log-probability of every token; leave --surprise out, or see minrnn score for lines";
        return Err(WrongInput(sentence.to_owned()).into());
    }
    let identity = deployed.identity()?;
    let mut text = match &args.load_state {
        Some(path) => Surprise::load(path, &deployed.model, tokenizer, &identity)?,
        None => Surprise::new(&deployed.model, tokenizer)?,
    };
    interrupt::raise_at_signal(stop)?;
    let answered = read(args, tokenizer, &mut text, input, out, stop);
    let saved = args.save_state.as_ref().map_or(Ok(()), |path| text.save(path, &identity));
    finish(answered, saved, out)
}

fn read(
    args: &Args,
    tokenizer: &Tokenizer,
    text: &mut Surprise<'_>,
    mut input: Arriving,
    out: &Out,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let mut printer = Printer { args, out, line: String::new() };
    if !args.json && !goes_on(out.borrow_mut().write_all(b"text,log_probability\n"))? {
        return Ok(());
    }
    while let Some(piece) = input.next_piece()? {
        for part in piece.chunks(PART) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            text.push(part, &mut printer)?;
        }
    }
    let what = if tokenizer.kind() == TokenizerKind::Bpe { "a line" } else { "a character" };
    let is_cut = args.save_state.is_some() && !text.waiting().is_empty();
    if stop.load(Ordering::Relaxed) {
        // What is waiting is the beginning of something whose end was not read.
        if is_cut {
            say(format_args!("{what} has begun but not ended; the saved state is the one before it: continue from there"));
        }
        return Ok(());
    }
    if is_cut {
        say(format_args!(
            "the input ends within {what}, which nothing read after the saved state completes; cut a text after the end of a line"
        ));
    }
    text.finish(&mut printer)?;
    Ok(())
}

struct Printer<'a> {
    args: &'a Args,
    out: &'a Out,
    line: String,
}

impl Listener for Printer<'_> {
    fn token(&mut self, _: u64, text: &[u8], log_probability: Option<f64>) -> minrnn::Result<()> {
        let text = String::from_utf8_lossy(text);
        self.line.clear();
        match (self.args.json, log_probability) {
            (true, Some(known)) => _ = writeln!(self.line, "{{\"text\":{},\"log_probability\":{known:.6}}}", in_json(&text)),
            (true, None) => _ = writeln!(self.line, "{{\"text\":{},\"log_probability\":null}}", in_json(&text)),
            (false, Some(known)) => _ = writeln!(self.line, "{},{known:.6}", in_a_line(&text)),
            (false, None) => _ = writeln!(self.line, "{},", in_a_line(&text)),
        }
        self.out.borrow_mut().write_all(self.line.as_bytes()).map_err(|error| Error::io("write", "stdout", error))
    }

    fn flaw(&mut self, _: u64, flaw: Error) -> minrnn::Result<()> {
        self.args.pass_over(flaw)
    }
}
