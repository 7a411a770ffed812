//! Scores of a packed model, by the inference runtime.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use minrnn::data::expect_lasting;
use minrnn::data::table::{TableTask, read_series};
use minrnn::deployed::{self, Deployed, Score};
use minrnn::rng::Purpose;
use minrnn::train::{Data, TextSize};

use super::inside::{Inside, wanted_inside};
use super::sets::{Scored, notes_on};
use super::{Args, BATCH_SIZE, expect_finite, stopped, tokens};
use crate::exit::ExitCode;
use crate::failure::{NO_STDOUT, WrongInput};
use crate::say::say;
use crate::{input, interrupt};

/// One pass over a text or a table by the inference runtime.
pub fn score(args: &Args, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    let deployed = Deployed::load(&args.run)?;
    let inside = wanted_inside(args, deployed.model.config())?;
    let Some(path) = &args.data else {
        return Err(WrongInput("a packed model has no data beside it; give a text or a table with --data FILE".to_owned()).into());
    };
    if let Some(task) = &deployed.table {
        return score_table(args, &deployed, task, path, inside, stop);
    }
    if deployed.policy.is_some() {
        let sentence = "a packed policy is scored by what it earns: minrnn rollout; or score the run that it was packed from";
        return Err(WrongInput(sentence.to_owned()).into());
    }
    let Some(tokenizer) = &deployed.tokenizer else {
        return Err(WrongInput("--data does not fit this model, which was trained on a task and reads no text".to_owned()).into());
    };
    let Some(tokens) = tokens::read(path, tokenizer, stop)? else { return Ok(stopped()) };
    tokens::expect_two(tokens.len() as u64).with_context(|| format!("'{}'", path.display()))?;
    let against = args.against.as_deref().map(Deployed::load).transpose()?;
    if let Some(against) = &against {
        tokens::expect_comparable(tokenizer, against.tokenizer.as_ref())?;
    }
    let (model, other) = (&deployed.model, against.as_ref().map(|other| &other.model));
    for model in std::iter::once(model).chain(other) {
        deployed::score_memory(model.config(), tokens.len())?.expect_room(args.memory.given())?;
    }
    if other.is_some_and(|other| other.vocab_size() != model.vocab_size()) {
        return Err(WrongInput("the models have vocabularies of different sizes, so their tokens cannot be compared".to_owned()).into());
    }
    let Some(Score { evaluation, agreement }) = deployed::score(model, other, &tokens, stop)? else { return Ok(stopped()) };
    expect_finite("the text", &evaluation)?;
    let Some(size) = TextSize::of_tokens(&tokens, tokenizer, stop)? else { return Ok(stopped()) };
    let output = args.output();
    output.print_model(&args.run)?;
    output.print(Scored::FullPassCarried, &evaluation, Some(size)).context(NO_STDOUT)?;
    if let (Some(share), Some(other)) = (agreement, &args.against) {
        output.print_agreement(share, other).context(NO_STDOUT)?;
    }
    inside.map_or(Ok(ExitCode::SUCCESS), |inside| inside.write(&deployed, Some(&tokens), stop))
}

/// One pass over a whole table by the inference runtime.
fn score_table(
    args: &Args,
    deployed: &Deployed,
    task: &TableTask,
    path: &Path,
    inside: Option<Inside>,
    stop: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    if args.against.is_some() {
        return Err(WrongInput("--against compares models of text, and this one reads tables; leave it out".to_owned()).into());
    }
    args.expect_no_batches()?;
    let (table, reads) = (input::path(path), task.clone());
    let read = move || Data::unseen_table(&table, &reads);
    let Some(Data::Task(data)) = interrupt::unless_stopped(stop, read).transpose()? else { return Ok(stopped()) };
    let mut set = data.evaluation(BATCH_SIZE, 0, Purpose::TestData, 1)?;
    let sequences = set.batch(0)?.batch_size;
    deployed::evaluate_memory(deployed.model.config(), sequences, data.longest())?.expect_room(args.memory.given())?;
    let mut comparison = data.comparison(Purpose::TestData);
    let Some(evaluation) = deployed::evaluate(&deployed.model, &mut *set, comparison.as_deref_mut(), stop)? else { return Ok(stopped()) };
    if !evaluation.loss.is_finite() && expect_lasting(path).is_ok() {
        // Predicting names the first sequence at fault.
        deployed::predict(&deployed.model, task, &read_series(task, path)?, stop)?;
    }
    expect_finite(Scored::WholeTable.name(), &evaluation)?;
    let output = args.output();
    output.print_model(&args.run)?;
    notes_on(&*data).iter().for_each(say);
    output.print(Scored::WholeTable, &evaluation, None).context(NO_STDOUT)?;
    if let Some(comparison) = &comparison {
        output.print_comparison(&**comparison).context(NO_STDOUT)?;
    }
    inside.map_or(Ok(ExitCode::SUCCESS), |inside| inside.write(deployed, None, stop))
}
