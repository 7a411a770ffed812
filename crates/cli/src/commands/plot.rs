//! `minrnn plot`: the evaluations of several runs in one picture.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use minrnn::checkpoint::TOKENIZER_FILE;
use minrnn::data::Tokenizer;
use minrnn::output::expect_harmless;
use minrnn::plot::{Panel, Series, line_picture};
use minrnn::train::{EXPERIMENT_FILE, Experiment, Loss, METRICS_FILE, Record, Task, read_metrics};
use minrnn_model::{TokenizerKind, other_than_file, read_text};

use crate::exit::ExitCode;
use crate::failure::WrongInput;
use crate::output::print;
use crate::printable::printable;
use crate::say::say;

/// More lines would share colours.
const MOST_RUNS: usize = 10;
/// Limits of published numbers, beyond which an axis that includes them shows nothing else.
const MOST_ITERATIONS: f64 = 1e12;
const LARGEST_LOSS: f64 = 1e6;
/// What can be plotted.
const RUNS: &str = "give directories of runs, or their metrics.jsonl";

#[derive(clap::Args)]
pub struct Args {
    /// Run directories or metrics.jsonl files; NAME=RUN gives a line a name other than its folder's
    #[arg(value_name = "[NAME=]RUN", required = true)]
    runs: Vec<String>,
    /// Plot accuracy instead of loss
    #[arg(long)]
    accuracy: bool,
    /// A published number to compare the line NAME with, drawn as a diamond in its colour
    #[arg(long, value_name = "NAME=ITERATION:VALUE")]
    published: Vec<String>,
    /// The picture's title
    #[arg(long, default_value = "")]
    title: String,
    /// The picture to write: an SVG file, with a PNG file beside it
    #[arg(short, long, value_name = "FILE", default_value = "runs.svg")]
    output: PathBuf,
}

/// A measure of a run over the iterations.
struct Run {
    name: String,
    /// What its loss is, with the unit; none for a log without its run.
    loss: Option<Loss>,
    /// What its text is cut into, if it reads one.
    tokens: Option<Tokens>,
    points: Vec<(f64, f64)>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.runs.len() > MOST_RUNS {
        let sentence = format!("{} runs are too many for one picture; give at most {MOST_RUNS}", args.runs.len());
        return Err(WrongInput(sentence).into());
    }
    let png = png_beside(&args.output)?;
    let measure = if args.accuracy { Measure::Accuracy } else { Measure::Loss };
    let runs = args.runs.iter().map(|text| read(text, measure)).collect::<anyhow::Result<Vec<Run>>>()?;
    for (at, run) in runs.iter().enumerate() {
        if runs[..at].iter().any(|other| other.name == run.name) {
            let sentence = format!("two lines would be called '{}'; give their names: NAME=RUN", run.name);
            return Err(WrongInput(sentence).into());
        }
    }
    let y_label = match measure {
        Measure::Accuracy => "test accuracy".to_owned(),
        Measure::Loss => format!("test {}", loss_of_all(&runs)?.map_or("loss", Loss::label)),
    };
    let published = args.published.iter().map(|text| published(text, &runs, measure)).collect::<Result<Vec<_>, _>>()?;
    let series = |(at, run): (usize, &Run)| Series {
        label: run.name.clone(),
        points: run.points.clone(),
        published: published.iter().filter(|(line, _)| *line == at).map(|&(_, point)| point).collect(),
        ..Series::default()
    };
    let mut panel =
        Panel { x_label: "iteration".to_owned(), y_label, series: runs.iter().enumerate().map(series).collect(), ..Panel::default() };
    if measure == Measure::Loss {
        panel.leave_out_the_fall();
    }
    let runs_given = || args.runs.iter().map(|text| path_of(text).1);
    let inputs: Vec<PathBuf> = runs_given().map(metrics_of).chain(runs_given().map(Path::to_owned)).collect();
    for output in [&args.output, &png] {
        expect_harmless(output, inputs.iter().map(PathBuf::as_path))?;
    }
    let drawn = line_picture(&args.title, &[panel])?.expect("runs without points are refused");
    drawn.write(&args.output, &png)?;
    for run in &runs {
        print(format_args!("{}\n", best_line(run, measure)))?;
    }
    tell_of_different_tokens(&runs);
    say(format_args!("picture: {}, {}", args.output.display(), png.display()));
    Ok(ExitCode::SUCCESS)
}

/// The loss that all `runs` are measured by, as far as they say; different measures cannot share an axis.
fn loss_of_all(runs: &[Run]) -> Result<Option<Loss>, WrongInput> {
    let mut known = runs.iter().filter_map(|run| Some((run.name.as_str(), run.loss?)));
    let Some((first, loss)) = known.next() else { return Ok(None) };
    match known.find(|(_, other)| *other != loss) {
        None => Ok(Some(loss)),
        Some((second, other)) => Err(WrongInput(format!(
            "'{first}' is measured by its {} and '{second}' by its {}, which have no axis in common; plot them apart, or what both have \
             with --accuracy",
            loss.label(),
            other.label()
        ))),
    }
}

/// What a text is cut into: the kind of its tokens, and the vocabulary if that decides how long they are.
#[derive(PartialEq)]
struct Tokens(TokenizerKind, Option<String>);

/// Warns if the measures of `runs` are means over different tokens, so that one may be above another and no worse.
fn tell_of_different_tokens(runs: &[Run]) {
    let mut known = runs.iter().filter_map(|run| Some((run.name.as_str(), run.tokens.as_ref()?)));
    let Some((first, tokens)) = known.next() else { return };
    if let Some((second, _)) = known.find(|(_, other)| *other != tokens) {
        let [first, second] = [first, second].map(printable);
        say(format_args!(
            "'{first}' and '{second}' cut text into different tokens, and loss and accuracy are means over these: the picture does not tell which is better; \
             compare the bits per byte that train and eval print"
        ));
    }
}

/// What is plotted over the iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Loss,
    Accuracy,
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Accuracy => "accuracy",
        }
    }

    /// The largest value that a published number may have.
    fn largest(self) -> f64 {
        match self {
            Self::Loss => LARGEST_LOSS,
            Self::Accuracy => 1.0,
        }
    }

    /// The first of `points` with the best value.
    fn best(self, points: &[(f64, f64)]) -> Option<(f64, f64)> {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        match self {
            Self::Loss => points.iter().min_by(by_value),
            Self::Accuracy => points.iter().rev().max_by(by_value),
        }
        .copied()
    }
}

/// The place among `runs` of the line that a published number belongs to, and the number with its iteration.
fn published(text: &str, runs: &[Run], measure: Measure) -> Result<(usize, (f64, f64)), WrongInput> {
    let sentence = || WrongInput(format!("--published '{text}': expected NAME=ITERATION:VALUE, such as minGRU=575:1.548, both finite"));
    let (name, numbers) = text.rsplit_once('=').ok_or_else(sentence)?;
    let (iteration, value) = numbers.split_once(':').ok_or_else(sentence)?;
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(sentence);
    let (iteration, value) = (number(iteration)?, number(value)?);
    let line = runs.iter().position(|run| run.name == name).ok_or_else(|| {
        let names = runs.iter().map(|run| run.name.as_str());
        WrongInput(format!("--published '{text}': there is no line '{name}'{}", minrnn::words::suggestion(name, names)))
    })?;
    for (what, found, most) in [("iteration", iteration, MOST_ITERATIONS), (measure.name(), value, measure.largest())] {
        if !(0.0..=most).contains(&found) {
            return Err(WrongInput(format!("--published '{text}': the {what} must be between 0 and {most}")));
        }
    }
    Ok((line, (iteration, value)))
}

/// The PNG file beside the picture.
fn png_beside(output: &Path) -> Result<PathBuf, WrongInput> {
    if output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
        return Ok(output.with_extension("png"));
    }
    Err(WrongInput(format!("'{}' is not the name of a picture; give one that ends in .svg with -o", output.display())))
}

/// Parses an argument: a path, or a name, `=` and a path. An existing path is taken as one, whatever characters it has.
fn path_of(text: &str) -> (Option<&str>, &Path) {
    match text.split_once('=') {
        Some((name, path)) if !Path::new(text).exists() => (Some(name), Path::new(path)),
        _ => (None, Path::new(text)),
    }
}

/// The log of the run at `path`, which may be the log itself.
fn metrics_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(METRICS_FILE) } else { path.to_owned() }
}

/// Refuses what is not a file.
fn expect_file(metrics: &Path) -> anyhow::Result<()> {
    let shown = metrics.display();
    let sentence = match metrics.metadata() {
        Ok(found) => match other_than_file(&found) {
            Some(other) => format!("'{shown}' is {other}; {RUNS}"),
            None => return Ok(()),
        },
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => format!("there is no '{shown}'; {RUNS}"),
        Err(error) => return Err(minrnn::Error::io("read", metrics, error).into()),
    };
    Err(WrongInput(sentence).into())
}

/// The experiment of the run whose log this is.
fn experiment_of(metrics: &Path) -> Option<Experiment> {
    let is_of_run = metrics.file_name().is_some_and(|name| name == METRICS_FILE);
    is_of_run.then(|| Experiment::load_file(metrics.with_file_name(EXPERIMENT_FILE), &[]))?.ok()
}

/// What the text of that run is cut into; none if it reads none.
fn tokens_of(experiment: &Experiment, metrics: &Path) -> Option<Tokens> {
    let kind = experiment.data.text.tokenizer;
    let vocabulary = || read_text(metrics.with_file_name(TOKENIZER_FILE), Tokenizer::MAX_FILE_LEN).ok();
    (experiment.data.task == Task::Text).then(|| Tokens(kind, if kind == TokenizerKind::Bpe { vocabulary() } else { None }))
}

fn read(text: &str, measure: Measure) -> anyhow::Result<Run> {
    let (name, path) = path_of(text);
    if name.is_some_and(|name| name.trim().is_empty()) {
        return Err(WrongInput(format!("'{text}' has no name before the =; write NAME=RUN, or the run alone")).into());
    }
    let metrics = metrics_of(path);
    expect_file(&metrics)?;
    let records = read_metrics(&metrics)?;
    if records.is_empty() && metrics.metadata().is_ok_and(|found| found.len() > 0) {
        return Err(WrongInput(format!("'{}' is not the log of a run: it has no whole line; {RUNS}", metrics.display())).into());
    }
    let value = |record: Record| match record {
        Record::Eval { iteration, test_loss, test_accuracy, .. } => {
            Some((iteration as f64, if measure == Measure::Accuracy { test_accuracy? } else { test_loss }))
        }
        Record::Train { .. } => None,
    };
    let points: Vec<(f64, f64)> = records.into_iter().filter_map(value).filter(|point| point.1.is_finite()).collect();
    if points.is_empty() {
        let sentence = format!(
            "'{}' has no evaluation with a finite {}: none was made yet, or the run keeps its last weights (train.keep) and makes none; leave it out",
            metrics.display(),
            measure.name()
        );
        return Err(WrongInput(sentence).into());
    }
    if let Some(pair) = points.windows(2).find(|pair| pair[1].0 < pair[0].0) {
        let (later, earlier) = (pair[0].0, pair[1].0);
        let file = metrics.display();
        let sentence = format!(
            "'{file}' has the evaluation of iteration {earlier} after that of {later}; put its lines in the order of the iterations"
        );
        return Err(WrongInput(sentence).into());
    }
    let experiment = experiment_of(&metrics);
    let tokens = experiment.as_ref().and_then(|experiment| tokens_of(experiment, &metrics));
    let loss = experiment.map(|experiment| experiment.loss());
    Ok(Run { name: name.map_or_else(|| own_name(path), str::to_owned), loss, tokens, points })
}

/// The name of a run's folder.
fn own_name(path: &Path) -> String {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    let full = folder.and_then(|folder| folder.canonicalize().ok());
    full.as_deref().and_then(Path::file_name).map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn best_line(run: &Run, measure: Measure) -> String {
    let (iteration, value) = measure.best(&run.points).expect("runs without points are refused");
    let last = run.points.last().expect("runs without points are refused").0;
    let value = match measure {
        Measure::Accuracy => format!("accuracy {:.2} %", 100.0 * value),
        Measure::Loss => run.loss.map_or_else(|| format!("loss {value:.4}"), |loss| loss.shown(value)),
    };
    format!("{}: best {value} at iteration {iteration} of {last}", printable(&run.name))
}
