//! From a target to its work at a scale.

use minrnn::train::Experiment;

use crate::{Error, Line, Result, Scale, Target, Work};

/// A row and a column of a target.
#[derive(Debug)]
pub struct Cell {
    /// The row's index.
    pub row: usize,
    /// The column's.
    pub column: usize,
    /// Number of trainings, with seeds from 1.
    pub seeds: u64,
    /// The work that fills it.
    pub job: Job,
}

/// The work that fills a cell.
#[derive(Debug)]
pub enum Job {
    /// A training.
    Train(Box<Training>),
    /// A measurement of speed.
    Bench(Bench),
    /// Counting the parameters of a mixer.
    CountParameters(Box<Experiment>),
    /// Why we have no result of our own.
    Quote(String),
}

/// A training, to be repeated with several seeds.
#[derive(Debug, Clone)]
pub struct Training {
    /// Folder of its runs below `runs/`.
    pub id: String,
    /// Name of the experiment it is a variant of.
    pub base: String,
    /// The experiment, without seed and data.
    pub experiment: Experiment,
    /// Further lengths at which a solved model of selective copying is scored.
    pub longer: Vec<usize>,
}

/// A measurement of speed.
#[derive(Debug, Clone)]
pub struct Bench {
    /// Its file below `runs/`.
    pub id: String,
    /// Name of the bench.
    pub bench: String,
    /// Names and values of its settings.
    pub settings: Vec<(String, String)>,
}

/// Every cell of `target`, row by row.
///
/// # Errors
/// When settings do not fit their experiment, or there is no such experiment.
pub fn plan(target: &Target, scale: Scale) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for (row_at, row) in target.rows.iter().enumerate() {
        for (column_at, column) in target.columns.iter().enumerate() {
            let problem = |problem| Error::Target { target: format!("{}: {}, {}", target.name, row.label, column.label), problem };
            let description = format!("{}; {}", target.title, target.label(row_at, column_at));
            let job = job(target, scale, row, column, description).map_err(problem)?;
            let seeds = row.seeds_at(scale).or(column.seeds_at(scale)).unwrap_or(target.effort(scale).seeds);
            cells.push(Cell { row: row_at, column: column_at, seeds, job });
        }
    }
    Ok(cells)
}

fn job(target: &Target, scale: Scale, row: &Line, column: &Line, description: String) -> Result<Job, String> {
    if target.work == Work::Quote {
        return Ok(Job::Quote(String::new()));
    }
    if let Some(why) = row.reason_at(scale).or(column.reason_at(scale)) {
        return Ok(Job::Quote(why.clone()));
    }
    if let Some(why) = row.reason_beside(scale, &column.label) {
        return Ok(Job::Quote(why));
    }
    let base = [&row.base, &column.base, &target.base].into_iter().flatten().next();
    let base = base.ok_or("no base is given")?;
    let own = target.settings.iter().chain(&target.effort(scale).settings);
    let settings: Vec<String> = own.chain(column.settings_at(scale)).chain(row.settings_at(scale)).cloned().collect();
    let id = run_id(target, row, column);
    let experiment = || Experiment::load(base, &settings).map_err(|error| error.to_string());
    Ok(match target.work {
        Work::Train => Job::Train(Box::new(Training {
            id,
            base: base.clone(),
            // The description of the base is about its own sizes.
            experiment: Experiment { description, ..experiment()? },
            longer: target.effort(scale).longer.clone(),
        })),
        Work::CountParameters => Job::CountParameters(Box::new(experiment()?)),
        Work::Bench => Job::Bench(Bench { id, bench: base.clone(), settings: pairs(&settings)? }),
        Work::Quote => unreachable!("returned above"),
    })
}

/// Splits each `key=value`; of a key given twice the last counts.
fn pairs(settings: &[String]) -> Result<Vec<(String, String)>, String> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for setting in settings {
        let (key, value) = setting.split_once('=').ok_or_else(|| format!("expected key=value, found '{setting}'"))?;
        pairs.retain(|(known, _)| *known != key);
        pairs.push((key, value));
    }
    Ok(pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

/// `folder/row-column`; without the column if there is only one, or if the row names its run.
fn run_id(target: &Target, row: &Line, column: &Line) -> String {
    let folder = target.runs.as_deref().unwrap_or(&target.name);
    let own = row.run.clone().unwrap_or_else(|| slug(&row.label));
    let column_differs = target.columns.len() > 1 && row.run.is_none();
    if column_differs { format!("{folder}/{own}-{}", slug(&column.label)) } else { format!("{folder}/{own}") }
}

/// A label as the name of a folder.
pub(crate) fn slug(label: &str) -> String {
    let words: String = label.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' }).collect();
    words.split_whitespace().collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_names_of_folders() {
        assert_eq!(slug("xLSTM[1:0], 3 layers"), "xlstm-1-0-3-layers");
        assert_eq!(slug("../ä"), "");
    }

    #[test]
    fn later_settings_win_in_a_measurement() {
        let settings = ["seq-len=4", "mixer=gru", "seq-len=8"].map(str::to_owned);
        let expected = [("mixer", "gru"), ("seq-len", "8")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(pairs(&settings).unwrap(), expected);
        assert!(pairs(&["x".to_owned()]).unwrap_err().contains("key=value"));
    }

    #[test]
    fn settings_of_a_row_lie_over_those_of_its_column_and_the_target() {
        let text = r#"
            name = "t"
            title = "T"
            source = "S"
            base = "selective-copying"
            metrics = ["accuracy"]
            settings = ["d_model=8", "n_layers=1"]
            [smoke]
            seeds = 1
            settings = ["n_layers=2", "lr=0.5"]
            [[columns]]
            label = "A"
            settings = ["lr=0.25"]
            [[columns]]
            label = "B"
            left-out.smoke = "no time"
            [[rows]]
            label = "R"
            smoke = ["lr=0.125"]
        "#;
        let target: Target = toml::from_str(text).unwrap();
        let cells = plan(&target, Scale::Smoke).unwrap();
        let [Cell { job: Job::Train(training), .. }, Cell { job: Job::Quote(why), .. }] = &cells[..] else { panic!("{cells:?}") };
        let Experiment { model, train, description, .. } = &training.experiment;
        assert_eq!((model.d_model, model.n_layers, train.lr, training.id.as_str()), (8, 2, 0.125, "t/r-a"));
        assert_eq!(description, "T; R, A");
        assert_eq!(why, "no time");
        let [Cell { job: Job::Train(training), .. }, Cell { job: Job::Train(_), .. }] = &plan(&target, Scale::Cpu).unwrap()[..] else {
            panic!()
        };
        assert_eq!((training.experiment.model.n_layers, training.experiment.train.lr), (1, 0.25));
        let wrong: Target = toml::from_str(&text.replace("lr=0.25", "rl=0.25")).unwrap();
        assert!(plan(&wrong, Scale::Smoke).unwrap_err().to_string().contains("t: R, A: unknown key 'rl'"));
    }

    #[test]
    fn rows_may_have_seeds_of_their_own_and_keep_to_some_columns() {
        let text = r#"
            name = "t"
            title = "T"
            source = "S"
            base = "selective-copying"
            metrics = ["accuracy"]
            [cpu]
            seeds = 2
            longer = [128]
            [[columns]]
            label = "A"
            seeds.cpu = 3
            [[columns]]
            label = "B"
            [[rows]]
            label = "R"
            [[rows]]
            label = "V"
            seeds.cpu = 1
            only.cpu = ["A"]
        "#;
        let target: Target = toml::from_str(text).unwrap();
        let cells = plan(&target, Scale::Cpu).unwrap();
        assert_eq!(cells.iter().map(|cell| cell.seeds).collect::<Vec<_>>(), [3, 2, 1, 1]);
        let Job::Quote(why) = &cells[3].job else { panic!("{cells:?}") };
        assert_eq!(why, "run only in A");
        let Job::Train(training) = &cells[0].job else { panic!("{cells:?}") };
        assert_eq!(training.longer, [128]);
        assert!(plan(&target, Scale::Paper).unwrap().iter().all(|cell| matches!(cell.job, Job::Train(_))));
    }
}
