//! Does the outstanding work, and writes every result as it arrives.

mod jobs;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

use minrnn_bench::Line;

use self::jobs::Task;
use crate::baseline::{MissingText, baselines};
use crate::catalog::Line as TargetLine;
use crate::count::count_parameters;
use crate::estimate::Cost;
use crate::folder::{self, Folder};
use crate::plan::Bench;
use crate::training::{self, Options};
use crate::{Cell, Error, Filled, Grid, Host, Job, Notice, Result, Run, Scale, Target, Training, write};

/// Targets being reproduced in a folder.
#[derive(Debug)]
pub struct Reproduction {
    /// The results.
    pub folder: Folder,
    /// The scale of the targets.
    pub scale: Scale,
    /// Number of trainings of each kind, with seeds from 1; `None` for the target's own number.
    pub seeds: Option<u64>,
    /// Options of every training.
    pub options: Options,
    /// Which parts of the targets to make.
    pub wanted: Wanted,
    /// Number of concurrent trainings.
    pub jobs: usize,
    /// Threads of each of them, if there are several; a single one uses the pool it is called in.
    pub threads: usize,
}

/// Rows and columns to make; the others are left as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Labels of rows; empty for all.
    pub rows: Vec<String>,
    /// Labels of columns; empty for all.
    pub columns: Vec<String>,
}

impl Wanted {
    /// Whether the cell of `target` in that row and column is included.
    pub fn holds(&self, target: &Target, row: usize, column: usize) -> bool {
        let is_among = |labels: &[String], line: &TargetLine| labels.is_empty() || labels.contains(&line.label);
        is_among(&self.rows, &target.rows[row]) && is_among(&self.columns, &target.columns[column])
    }
}

/// A training with outstanding runs.
#[derive(Debug, Clone)]
pub struct Open<'a> {
    /// Its target, row and column.
    pub label: String,
    /// The training.
    pub training: &'a Training,
    /// Number of runs that are neither done nor failed.
    pub runs: usize,
}

impl Reproduction {
    /// Does the outstanding part of `work`, targets with their plans, and writes the tables after every run, until `stop` is raised. For
    /// each target it makes every run of one seed before those of the next, in the order of their turns.
    ///
    /// With several [`jobs`](Self::jobs) trainings run concurrently, as many as memory has room for, and measurements of speed come after
    /// them, one at a time. A training that cannot be run, or diverges, does not affect the others; if writing fails or the machine does,
    /// `stop` is raised, so that the others save their progress.
    ///
    /// # Errors
    /// When writing fails or the machine does; problems of single runs are in the grids.
    pub fn carry_out<'a>(&self, work: &[(&'a Target, &[Cell])], host: &mut (dyn Host + Send), stop: &AtomicBool) -> Result<Vec<Grid<'a>>> {
        let mut grids = Vec::new();
        for &(target, cells) in work {
            grids.push(self.look_up(target, cells, host, MissingText::Fetched)?);
        }
        let mut known = BTreeSet::new();
        let queues: Vec<Vec<Task>> = (0..work.len()).map(|at| self.queue(at, work[at], &mut known)).collect();
        let mut is_finished = vec![false; work.len()];
        if self.jobs > 1 {
            let tasks: Vec<Task> = queues.into_iter().flatten().collect();
            grids = jobs::side_by_side(self, tasks, grids, host, stop)?;
        } else {
            for (at, tasks) in queues.iter().enumerate() {
                for task in tasks {
                    self.train(task, &mut grids[at], host, stop)?;
                }
                if !stop.load(Ordering::Relaxed) {
                    self.measure_all(work[at].1, &mut grids[at], host, stop)?;
                    self.finish(work[at], &mut grids[at], host)?;
                    is_finished[at] = true;
                }
            }
        }
        for (at, grid) in grids.iter_mut().enumerate().filter(|(at, _)| !is_finished[*at]) {
            if !stop.load(Ordering::Relaxed) {
                self.measure_all(work[at].1, grid, host, stop)?;
            }
            self.finish(work[at], grid, host)?;
        }
        Ok(grids)
    }

    /// The results of `target`, with its pages rewritten from them; nothing is run.
    ///
    /// # Errors
    /// When results cannot be read, or pages cannot be written.
    pub fn write_pages<'a>(&self, target: &'a Target, cells: &[Cell], host: &mut dyn Host) -> Result<Grid<'a>> {
        let grid = self.look_up(target, cells, host, MissingText::LeftOut)?;
        write::write(&grid, &self.folder)?;
        Ok(grid)
    }

    /// The trainings in `plans` with outstanding runs, each once.
    ///
    /// # Errors
    /// When a result cannot be read.
    pub fn open_trainings<'a>(&self, targets: &[Target], plans: &'a [Vec<Cell>], host: &mut dyn Host) -> Result<Vec<Open<'a>>> {
        let (mut open, mut known) = (Vec::new(), BTreeSet::new());
        for (target, cells) in targets.iter().zip(plans) {
            for cell in cells.iter().filter(|cell| self.wanted.holds(target, cell.row, cell.column)) {
                let Job::Train(training) = &cell.job else { continue };
                let mut runs = 0;
                for seed in self.seeds(cell) {
                    runs += usize::from(training::look_up(&self.folder, training, seed, &self.options, host)?.is_open());
                }
                // A run that another target has asked for already costs nothing more.
                if runs > 0 && known.insert(training.id.as_str()) {
                    let grid = Grid::empty(target, self.scale, String::new());
                    let label = format!("{}: {}", target.name, grid.label(cell.row, cell.column));
                    open.push(Open { label, training, runs });
                }
            }
        }
        Ok(open)
    }

    /// Measures a few updates and test batches of `training`: the seconds per run, or why it cannot be run.
    ///
    /// # Errors
    /// When the machine fails.
    pub fn seconds(&self, training: &Training, host: &mut dyn Host) -> Result<Result<f64, String>> {
        match Cost::measure(training, &self.options, host) {
            Ok(cost) => Ok(Ok(cost.of(&training.experiment))),
            Err(error) if error.is_wrong_input() => Ok(Err(host.sentence(&error))),
            Err(error) => Err(error),
        }
    }

    fn seeds(&self, cell: &Cell) -> RangeInclusive<u64> {
        1..=self.seeds.unwrap_or(cell.seeds)
    }

    /// The trainings of a target in the order they are made in: by seed, then by the turns of rows and columns. Those in `known` belong to
    /// another target.
    fn queue<'w>(&self, at: usize, (target, cells): (&Target, &'w [Cell]), known: &mut BTreeSet<(String, u64)>) -> Vec<Task<'w>> {
        let mut tasks = Vec::new();
        let turn = |cell: &Cell| (target.rows[cell.row].turn, cell.row, target.columns[cell.column].turn);
        let mut in_turn: Vec<&Cell> = cells.iter().filter(|cell| self.wanted.holds(target, cell.row, cell.column)).collect();
        in_turn.sort_by_key(|cell| turn(cell));
        let most = in_turn.iter().map(|cell| *self.seeds(cell).end()).max().unwrap_or(0);
        for seed in 1..=most {
            for cell in in_turn.iter().filter(|cell| self.seeds(cell).contains(&seed)) {
                let Job::Train(training) = &cell.job else { continue };
                if known.insert((training.id.clone(), seed)) {
                    tasks.push(Task { target: at, row: cell.row, column: cell.column, seed, training });
                }
            }
        }
        tasks
    }

    /// Makes one run if it is open, and writes the tables.
    fn train(&self, task: &Task, grid: &mut Grid, host: &mut dyn Host, stop: &AtomicBool) -> Result<()> {
        // Another process may have made this run meanwhile.
        let run = training::look_up(&self.folder, task.training, task.seed, &self.options, host)?;
        training::tidy(&self.folder, task.training, task.seed, &run)?;
        let is_open = self.is_wanted(&run) && !stop.load(Ordering::Relaxed);
        // The cell of a run that is to be made or redone stays as it is until the run starts.
        if !matches!(run, Run::Open) {
            task.set(grid, run);
        }
        if is_open {
            task.announce(grid, 0, host);
            let run = training::carry_out(&self.folder, task.training, task.seed, &self.options, host, stop)?;
            if let Some(why) = run.not_made() {
                host.notice(Notice::NotDone(why));
            }
            task.set(grid, run);
            write::write_tables(grid, &self.folder)?;
        }
        Ok(())
    }

    /// Whether a run is to be made now.
    pub(crate) fn is_wanted(&self, run: &Run) -> bool {
        run.is_open() && (!self.options.resume_only || matches!(run, Run::Begun(_)))
    }

    /// Whether any requested result in `grid` is outstanding.
    pub fn is_unfinished(&self, grid: &Grid<'_>) -> bool {
        grid.iter().any(|(row, column, cell)| {
            self.wanted.holds(grid.target, row, column)
                && match cell {
                    Filled::Trained(runs) => runs.iter().any(|(_, run)| self.is_wanted(run)),
                    Filled::Timed(line) => line.is_none() && !self.options.resume_only,
                    Filled::Quoted(_) | Filled::Untimed(_) | Filled::Counted(_) => false,
                }
        })
    }

    /// Makes the measurements of speed that are not made yet.
    fn measure_all(&self, cells: &[Cell], grid: &mut Grid, host: &mut dyn Host, stop: &AtomicBool) -> Result<()> {
        for cell in cells {
            let Job::Bench(bench) = &cell.job else { continue };
            let is_open =
                self.wanted.holds(grid.target, cell.row, cell.column) && matches!(grid.cells[cell.row][cell.column], Filled::Timed(None));
            if is_open && !stop.load(Ordering::Relaxed) && !self.options.resume_only {
                let label = grid.label(cell.row, cell.column);
                let (done, of) = grid.progress();
                host.notice(Notice::Starting { target: &grid.target.name, number: done + 1, of, label: &label });
                grid.cells[cell.row][cell.column] = match self.measure(bench, host, stop) {
                    Ok(line) => Filled::Timed(line.map(Box::new)),
                    Err(error) if error.is_wrong_input() => Filled::Untimed(host.sentence(&error)),
                    Err(error) => return Err(error),
                };
                write::write_tables(grid, &self.folder)?;
            }
        }
        Ok(())
    }

    /// Measures and stores the result; none if `stop` was raised meanwhile.
    fn measure(&self, bench: &Bench, host: &mut dyn Host, stop: &AtomicBool) -> Result<Option<Line>> {
        let found = host.measure(bench);
        if stop.load(Ordering::Relaxed) {
            // Ctrl-C reaches the measuring process too.
            return Ok(None);
        }
        let line = found?;
        folder::write(&self.folder.measurement(&bench.id), &line)?;
        Ok(Some(line))
    }

    /// Takes in what another target or process has made since, and writes the pages with their pictures.
    fn finish(&self, (_, cells): (&Target, &[Cell]), grid: &mut Grid, host: &mut dyn Host) -> Result<()> {
        for cell in cells {
            let Job::Train(training) = &cell.job else { continue };
            for seed in self.seeds(cell) {
                let run = training::look_up(&self.folder, training, seed, &self.options, host)?;
                if matches!(run, Run::Done(_) | Run::Failed(_)) {
                    set(grid, cell.row, cell.column, seed, run);
                }
            }
        }
        write::write(grid, &self.folder)?;
        write::write_index(&self.folder, self.scale)
    }

    /// What is known of a target before anything is done.
    fn look_up<'a>(&self, target: &'a Target, cells: &[Cell], host: &mut dyn Host, missing_text: MissingText) -> Result<Grid<'a>> {
        // Results that are to be redone are shown until then.
        let options = Options { replace: false, retry_failed: false, ..self.options.clone() };
        let mut grid = Grid::empty(target, self.scale, host.command(target));
        grid.cells = target.rows.iter().map(|_| Vec::new()).collect();
        grid.readings = target.rows.iter().map(|_| Vec::new()).collect();
        grid.learned_lengths = vec![None; target.columns.len()];
        grid.loss =
            cells.iter().find_map(|cell| if let Job::Train(training) = &cell.job { Some(training.experiment.loss()) } else { None });
        for cell in cells {
            grid.readings[cell.row].push(match &cell.job {
                Job::Train(training) => training.experiment.reading(),
                _ => None,
            });
            grid.cells[cell.row].push(match &cell.job {
                Job::Train(training) => {
                    let data = &training.experiment.data;
                    if data.task == minrnn::train::Task::FormalLanguage {
                        grid.learned_lengths[cell.column] =
                            Some((data.formal_language.training.min_length, data.formal_language.training.max_length));
                    }
                    let run = |seed| Ok((seed, training::look_up(&self.folder, training, seed, &options, host)?));
                    Filled::Trained(self.seeds(cell).map(run).collect::<Result<_>>()?)
                }
                Job::Bench(bench) => match folder::read(&self.folder.measurement(&bench.id)) {
                    // A damaged measurement affects only its own cell, as with trainings.
                    Err(error) if error.is_wrong_input() => Filled::Untimed(host.sentence(&error)),
                    line => Filled::Timed(line?.map(Box::new)),
                },
                Job::CountParameters(experiment) => Filled::Counted(count_parameters(experiment).map_err(Error::from)?),
                Job::Quote(why) => Filled::Quoted(why.clone()),
            });
        }
        grid.baselines = baselines(&self.folder, target, cells, &self.options, host, missing_text)?;
        Ok(grid)
    }
}

/// Puts the run of that seed into its cell.
pub(crate) fn set(grid: &mut Grid, row: usize, column: usize, seed: u64, run: Run) {
    if let Filled::Trained(runs) = &mut grid.cells[row][column]
        && let Some(place) = runs.iter_mut().find(|(known, _)| *known == seed)
    {
        place.1 = run;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{find, plan};

    fn reproduction(scratch: &tempfile::TempDir) -> Reproduction {
        Reproduction {
            folder: Folder::open(scratch.path(), Scale::Cpu).unwrap(),
            scale: Scale::Cpu,
            seeds: None,
            options: Options::default(),
            wanted: Wanted::default(),
            jobs: 1,
            threads: 1,
        }
    }

    #[test]
    fn only_what_is_asked_for_is_unfinished() {
        let scratch = tempfile::tempdir().unwrap();
        let mut reproduction = reproduction(&scratch);
        let target = find("table1").unwrap().unwrap();
        let mut grid = Grid::empty(&target, Scale::Cpu, String::new());
        grid.cells = target.rows.iter().map(|_| target.columns.iter().map(|_| Filled::Counted(1)).collect()).collect();
        assert!(!reproduction.is_unfinished(&grid));
        for open in [Filled::Trained(vec![(1, Run::Failed(String::new())), (2, Run::Open)]), Filled::Timed(None)] {
            grid.cells[1][0] = open;
            assert!(reproduction.is_unfinished(&grid));
            reproduction.options.resume_only = true;
            assert!(!reproduction.is_unfinished(&grid));
            reproduction.options.resume_only = false;
            reproduction.wanted.rows = vec![target.rows[0].label.clone()];
            assert!(!reproduction.is_unfinished(&grid));
            reproduction.wanted.rows.clear();
        }
        grid.cells[1][0] = Filled::Trained(vec![(1, Run::Elsewhere), (2, Run::Refused(String::new()))]);
        assert!(!reproduction.is_unfinished(&grid));
    }

    #[test]
    fn what_has_the_first_turn_is_made_first_one_seed_after_the_other() {
        let scratch = tempfile::tempdir().unwrap();
        let mut reproduction = reproduction(&scratch);
        let targets = ["table5", "table4"].map(|name| find(name).unwrap().unwrap());
        let plans = targets.each_ref().map(|target| plan(target, Scale::Cpu).unwrap());
        let mut known = BTreeSet::new();
        let tasks = reproduction.queue(0, (&targets[0], &plans[0]), &mut known);
        let named: Vec<String> = tasks.iter().map(|task| format!("{}-{}", task.training.id, task.seed)).collect();
        let first = ["bucket-sort", "cycle-navigation", "majority", "missing-duplicate", "even-pairs", "majority-count"];
        let expected: Vec<String> = first.iter().map(|language| format!("formal-language/minlstm-{language}-1")).collect();
        assert_eq!(named[..6], expected);
        assert_eq!(named[6], "formal-language/mingru-bucket-sort-1");
        assert!(named.last().unwrap().ends_with("-3"), "{named:?}");
        // Table 4 has no other runs of these languages.
        assert!(reproduction.queue(1, (&targets[1], &plans[1]), &mut known).is_empty());

        reproduction.wanted = Wanted { rows: vec!["minGRU".to_owned()], columns: vec!["Majority".to_owned(), "Even pairs".to_owned()] };
        let tasks = reproduction.queue(0, (&targets[0], &plans[0]), &mut BTreeSet::new());
        let named: Vec<String> = tasks.iter().map(|task| format!("{}-{}", task.training.id, task.seed)).collect();
        assert_eq!(
            named,
            ["mingru-majority-1", "mingru-even-pairs-1", "mingru-even-pairs-2", "mingru-even-pairs-3"]
                .map(|run| format!("formal-language/{run}"))
        );
    }
}
