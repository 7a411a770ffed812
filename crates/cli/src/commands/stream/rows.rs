//! Rows of a table.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minrnn::csv::quoted;
use minrnn::data::table::{Row, Rows, TableTask, output_names};
use minrnn::deployed::{Deployed, Groups};
use minrnn::numbers::Shortest;
use minrnn::{Error, expect_output};
use minrnn_model::likeliest;

use super::arriving::{Arriving, Out};
use super::order::Order;
use super::scoring::{Judged, Scoring};
use super::{Args, finish, goes_on};
use crate::failure::WrongInput;
use crate::free_name::free_name;
use crate::interrupt;
use crate::say::say;

/// Predicts after every row that `input` gives.
pub fn answer(
    args: &Args,
    deployed: &Deployed,
    task: &TableTask,
    input: Arriving,
    out: &Out,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let identity = deployed.identity()?;
    let scoring = Scoring::new(args, deployed, task)?;
    let mut groups = match &args.load_state {
        Some(path) => Groups::load(path, &deployed.model, task, &identity, args.max_groups())?,
        None if args.max_groups() == 0 => return Err(WrongInput("--max-groups must be at least 1, found 0".to_owned()).into()),
        None => Groups::new(&deployed.model, task, args.max_groups())?,
    };
    let group = match args.one_sequence {
        true => None,
        false => args.group.as_deref().or(task.group()),
    };
    if let (Some(path), None) = (&args.load_state, group) {
        expect_alone(path, &groups)?;
    }
    interrupt::raise_at_signal(stop)?;
    let answered = Answers { args, task, scoring: scoring.as_ref(), group, out, stop }.write(&mut groups, input);
    // What was read until now is saved, however it ended.
    let saved = args.save_state.as_ref().map_or(Ok(()), |path| groups.save(path, &identity));
    finish(answered, saved, out)
}

/// Checks that what was saved has the sequence without a name, which all rows belong to.
fn expect_alone(path: &Path, groups: &Groups<'_>) -> anyhow::Result<()> {
    match groups.names().min() {
        Some(first) if !groups.knows("") => Err(WrongInput(format!(
            "'{}': none of its {} sequences, such as '{first}', is the one without a name that all rows belong to; name the column of the \
             sequences with --group, or start without --load-state",
            path.display(),
            groups.len()
        ))
        .into()),
        _ => Ok(()),
    }
}

/// What is answered, and where.
struct Answers<'a> {
    args: &'a Args,
    task: &'a TableTask,
    scoring: Option<&'a Scoring>,
    group: Option<&'a str>,
    out: &'a Out,
    stop: &'a AtomicBool,
}

impl Answers<'_> {
    fn write(&self, groups: &mut Groups<'_>, input: Arriving) -> anyhow::Result<()> {
        let Self { args, task, scoring, group, out, stop } = *self;
        let mut rows = Rows::new(input, task, group)?;
        let mut writer = Writer::new(task, group, args.json, scoring.is_some());
        let (mut numbers, mut told, mut order) = (Vec::new(), false, Order::default());
        if !args.json && !goes_on(out.borrow_mut().write_all(writer.header().as_bytes()))? {
            return Ok(());
        }
        loop {
            let next = rows.advance();
            // A stop may have cut the row short.
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let Some((line, row)) = next? else { break };
            let row = match row.and_then(|row| near(task, row)).and_then(|row| order.expect_later(row)) {
                Ok(row) => row,
                Err(flaw) => {
                    args.pass_over(flaw)?;
                    continue;
                }
            };
            // Before the row is read, which then counts among those that decide what comes next.
            let judged = scoring.map(|scoring| scoring.judge(groups, &row)).transpose()?;
            let forgotten = groups.step(row.group, row.values, &mut numbers)?;
            order.keep(&row);
            if let Some(name) = &forgotten {
                order.forget(name);
            }
            if let (Some(name), false) = (forgotten, told) {
                say(format_args!(
                    "more than {} sequences: forgot '{name}', which was silent longest; more will be forgotten in the same way",
                    args.max_groups()
                ));
                told = true;
            }
            let surprise = judged.and_then(|judged| judged.surprise);
            expect_output(|| format!("line {line}"), surprise.iter().chain(&numbers).copied())?;
            if !goes_on(out.borrow_mut().write_all(writer.line(line, row.group, judged, &numbers).as_bytes()))? {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The row, unless one of its numbers is farther from what the model was trained on than it can read.
fn near<'a>(task: &TableTask, row: Row<'a>) -> minrnn::Result<Row<'a>> {
    match task.expect_readable(row.values) {
        Ok(()) => Ok(row),
        Err(flaw) => Err(Error::Data(format!("line {}, {flaw}", row.line))),
    }
}

/// Predictions as lines.
struct Writer<'a> {
    task: &'a TableTask,
    group: Option<&'a str>,
    json: bool,
    /// Whether rows are judged.
    judges: bool,
    /// Names as they stand in a line: of classes, or of the numbers of a step ahead.
    names: Vec<String>,
    /// Where the numbers stand among those of a step ahead.
    places: Vec<usize>,
    line: String,
}

impl<'a> Writer<'a> {
    fn new(task: &'a TableTask, group: Option<&'a str>, json: bool, judges: bool) -> Self {
        let (names, places): (Vec<String>, Vec<usize>) = match task {
            TableTask::Classify(classifier) => (classifier.classes.clone(), Vec::new()),
            TableTask::Regress(regressor) => (vec![regressor.target.clone()], vec![0]),
            TableTask::Forecast(forecaster) => forecaster.value_names().into_iter().unzip(),
        };
        let shown = |name: &String| if json { in_json(name) } else { quoted(name).into_owned() };
        Self { task, group, json, judges, names: names.iter().map(shown).collect(), places, line: String::new() }
    }

    /// The names of the columns. Says which of ours are called otherwise because a column of the table has their name.
    fn header(&self) -> String {
        let group: Vec<String> = self.group.into_iter().map(str::to_owned).collect();
        let predicted: Vec<String> = predicted_columns(self.task).into_iter().map(|name| apart(name, "_predicted", &group)).collect();
        let line = apart("line".to_owned(), "_number", &[&group[..], &predicted[..]].concat());
        let judged = if self.judges { Vec::from(Judged::columns(self.group)) } else { Vec::new() };
        let names = [vec![line], group, judged, predicted].concat();
        names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",") + "\n"
    }

    /// How the row of `line` was judged, and what is predicted after it.
    fn line(&mut self, line: u64, group: &str, judged: Option<Judged>, numbers: &[f64]) -> &str {
        self.line.clear();
        match self.json {
            true => self.object(line, group, judged, numbers),
            false => self.cells(line, group, judged, numbers),
        }
        self.line.push('\n');
        &self.line
    }

    fn cells(&mut self, line: u64, group: &str, judged: Option<Judged>, numbers: &[f64]) {
        let text = &mut self.line;
        let _ = write!(text, "{line}");
        if self.group.is_some() {
            text.push(',');
            text.push_str(&quoted(group));
        }
        if let Some(judged) = judged {
            text.push(',');
            judged.write_cells(text);
        }
        if let TableTask::Classify(_) = self.task {
            text.push(',');
            text.push_str(&self.names[likeliest(numbers)]);
            numbers.iter().for_each(|share| _ = write!(text, ",{share:.6}"));
        } else {
            for step in numbers.chunks_exact(self.task.numbers_per_step()) {
                self.places.iter().for_each(|&place| _ = write!(text, ",{}", Shortest(step[place])));
            }
        }
    }

    fn object(&mut self, line: u64, group: &str, judged: Option<Judged>, numbers: &[f64]) {
        let (text, names) = (&mut self.line, &self.names);
        let _ = write!(text, "{{\"line\":{line}");
        if self.group.is_some() {
            let _ = write!(text, ",\"group\":{}", in_json(group));
        }
        if let Some(judged) = judged {
            text.push(',');
            judged.write_fields(text);
        }
        if let TableTask::Classify(_) = self.task {
            let _ = write!(text, ",\"class\":{},\"probabilities\":{{", names[likeliest(numbers)]);
            let each = names.iter().zip(numbers).enumerate();
            each.for_each(|(at, (name, share))| _ = write!(text, "{}{name}:{share:.6}", if at > 0 { "," } else { "" }));
        } else if let TableTask::Regress(_) = self.task {
            let _ = write!(text, ",\"predicted\":{{{}:{}", names[0], Shortest(numbers[0]));
        } else {
            text.push_str(",\"forecast\":{");
            for (column, name) in names.iter().enumerate() {
                let _ = write!(text, "{}{name}:[", if column > 0 { "," } else { "" });
                let ahead = numbers.iter().skip(self.places[column]).step_by(self.task.numbers_per_step()).enumerate();
                ahead.for_each(|(at, &number)| _ = write!(text, "{}{}", if at > 0 { "," } else { "" }, Shortest(number)));
                text.push(']');
            }
        }
        text.push_str("}}");
    }
}

/// The names of the columns with what is predicted after a row.
fn predicted_columns(task: &TableTask) -> Vec<String> {
    let names: Vec<String> = output_names(task).into_iter().map(|(name, _)| name).collect();
    match task {
        TableTask::Classify(classifier) => [classifier.target.clone()].into_iter().chain(names).collect(),
        TableTask::Regress(_) => names,
        TableTask::Forecast(forecaster) => {
            let ahead = 1..=forecaster.horizon;
            ahead.flat_map(|ahead| names.iter().map(move |name| format!("{name} +{ahead}"))).collect()
        }
    }
}

/// `name`, with `more` appended if one of the columns `taken` has this name, which is then said.
fn apart(name: String, more: &str, taken: &[String]) -> String {
    let free = free_name(name.clone(), more, taken);
    if free != name {
        say(format_args!("the table has a column '{name}': what is written under this name is called '{free}'"));
    }
    free
}

/// `text` as a string of JSON.
pub fn in_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
