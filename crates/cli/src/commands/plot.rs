//! `minrnn plot`: the evaluations of several runs in one picture.

use std::path::{Path, PathBuf};

use minrnn::output::expect_harmless;
use minrnn::plot::{Panel, Series, draw_lines};
use minrnn::train::{METRICS_FILE, Record, read_metrics};

use crate::exit::ExitCode;
use crate::failure::WrongInput;
use crate::output::print;
use crate::say::say;

/// More lines would share colours.
const MOST_RUNS: usize = 10;

#[derive(clap::Args)]
pub struct Args {
    /// Run directories or metrics.jsonl files; NAME=RUN gives a line another name than the folder's
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
    /// The picture: an SVG file, and a PNG file beside it
    #[arg(short, long, value_name = "FILE", default_value = "runs.svg")]
    output: PathBuf,
}

/// A measure of a run over the iterations.
struct Run {
    name: String,
    points: Vec<(f64, f64)>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.runs.len() > MOST_RUNS {
        let sentence = format!("{} runs are too many for one picture; give at most {MOST_RUNS}", args.runs.len());
        return Err(WrongInput(sentence).into());
    }
    let (directory, name) = place(&args.output)?;
    let runs = args.runs.iter().map(|text| read(text, args.accuracy)).collect::<anyhow::Result<Vec<Run>>>()?;
    for (at, run) in runs.iter().enumerate() {
        if runs[..at].iter().any(|other| other.name == run.name) {
            let sentence = format!("two lines would be called '{}'; give their names: NAME=RUN", run.name);
            return Err(WrongInput(sentence).into());
        }
    }
    let published = args.published.iter().map(|text| published(text, &runs)).collect::<Result<Vec<_>, _>>()?;
    let series = |(at, run): (usize, &Run)| Series {
        label: run.name.clone(),
        points: run.points.clone(),
        published: published.iter().filter(|(line, _)| *line == at).map(|&(_, point)| point).collect(),
        ..Series::default()
    };
    let mut panel = Panel {
        x_label: "iteration".to_owned(),
        y_label: if args.accuracy { "test accuracy" } else { "test loss (nats)" }.to_owned(),
        series: runs.iter().enumerate().map(series).collect(),
        ..Panel::default()
    };
    if !args.accuracy {
        panel.leave_out_the_fall();
    }
    let inputs: Vec<PathBuf> = args.runs.iter().map(|text| metrics_of(path_of(text).1)).collect();
    for ending in ["svg", "png"] {
        expect_harmless(&directory.join(format!("{name}.{ending}")), inputs.iter().map(PathBuf::as_path))?;
    }
    draw_lines(&args.title, &[panel], directory, &name)?;
    for run in &runs {
        print(format_args!("{}\n", best_line(run, args.accuracy)))?;
    }
    say(format_args!("picture: {}, {}.png", args.output.display(), directory.join(name).display()));
    Ok(ExitCode::SUCCESS)
}

/// The place among `runs` of the line that a published number belongs to, and the number with its iteration.
fn published(text: &str, runs: &[Run]) -> Result<(usize, (f64, f64)), WrongInput> {
    let sentence = || WrongInput(format!("--published '{text}': expected NAME=ITERATION:VALUE, such as minGRU=575:1.548, both finite"));
    let (name, numbers) = text.rsplit_once('=').ok_or_else(sentence)?;
    let (iteration, value) = numbers.split_once(':').ok_or_else(sentence)?;
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(sentence);
    let point = (number(iteration)?, number(value)?);
    let line = runs.iter().position(|run| run.name == name).ok_or_else(|| {
        let names = runs.iter().map(|run| run.name.as_str());
        WrongInput(format!("--published '{text}': there is no line '{name}'{}", minrnn::train::suggestion(name, names)))
    })?;
    Ok((line, point))
}

/// The folder and the name, without its end, of the picture.
fn place(output: &Path) -> Result<(&Path, String), WrongInput> {
    let is_svg = output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    let name = output.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_svg);
    let sentence = || WrongInput(format!("'{}' is not the name of a picture; give one that ends in .svg with -o", output.display()));
    let directory = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((directory, name.ok_or_else(sentence)?.to_owned()))
}

/// What an argument says: a path, or a name, `=` and a path. A path that is there is one, whatever characters it has.
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

fn read(text: &str, accuracy: bool) -> anyhow::Result<Run> {
    let (name, path) = path_of(text);
    let metrics = metrics_of(path);
    if !metrics.is_file() {
        let sentence = format!("there is no '{}'; give directories of runs, or their metrics.jsonl", metrics.display());
        return Err(WrongInput(sentence).into());
    }
    let value = |record: Record| match record {
        Record::Eval { iteration, test_loss, test_accuracy, .. } => {
            Some((iteration as f64, if accuracy { test_accuracy? } else { test_loss }))
        }
        Record::Train { .. } => None,
    };
    let points: Vec<(f64, f64)> = read_metrics(&metrics)?.into_iter().filter_map(value).filter(|point| point.1.is_finite()).collect();
    if points.is_empty() {
        let what = if accuracy { "accuracy" } else { "loss" };
        let sentence = format!(
            "'{}' has no evaluation with a finite {what}: none was made yet, or the run keeps its last weights (train.keep) and makes none; leave it out",
            metrics.display()
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
    Ok(Run { name: name.map_or_else(|| own_name(path), str::to_owned), points })
}

/// The name of a run's folder.
fn own_name(path: &Path) -> String {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    let full = folder.and_then(|folder| folder.canonicalize().ok());
    full.as_deref().and_then(Path::file_name).map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn best_line(run: &Run, accuracy: bool) -> String {
    let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let best = if accuracy { run.points.iter().max_by(by_value) } else { run.points.iter().min_by(by_value) };
    let (iteration, value) = best.expect("runs without points are refused");
    let last = run.points.last().expect("runs without points are refused").0;
    let value = if accuracy { format!("accuracy {:.2} %", 100.0 * value) } else { format!("loss {value:.4}") };
    format!("{}: best {value} at iteration {iteration} of {last}", run.name)
}
