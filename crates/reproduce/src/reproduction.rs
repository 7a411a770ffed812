//! The work: what is open is done, and every result written as it comes.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

use minrnn_bench::Line;

use crate::count::count_parameters;
use crate::estimate::Cost;
use crate::folder::{self, Folder};
use crate::plan::Bench;
use crate::training::{self, Options};
use crate::{Cell, Error, Filled, Grid, Host, Job, Notice, Result, Run, Scale, Target, Training, write};

/// Targets being made in a folder.
#[derive(Debug)]
pub struct Reproduction {
    /// Where results are.
    pub folder: Folder,
    /// How much of the targets.
    pub scale: Scale,
    /// Trainings of each kind, with seeds 1 to this; none for the target's own number.
    pub seeds: Option<u64>,
    /// What is asked of every training.
    pub options: Options,
}

/// A training with runs to be made.
#[derive(Debug, Clone)]
pub struct Open<'a> {
    /// Its target, row and column.
    pub label: String,
    /// What is trained.
    pub training: &'a Training,
    /// Runs that are neither done nor failed.
    pub runs: usize,
}

impl Reproduction {
    /// Does what is not done yet of `cells`, the plan of `target`, and writes the tables after every run; until `stop` is raised.
    ///
    /// # Errors
    /// When the disk refuses or the machine fails; what is wrong with a single run is in the grid.
    pub fn carry_out<'a>(&self, target: &'a Target, cells: &[Cell], host: &mut dyn Host, stop: &AtomicBool) -> Result<Grid<'a>> {
        let mut grid = self.look_up(target, cells, host)?;
        let (_, of) = grid.progress();
        for cell in cells {
            let label = grid.label(cell.row, cell.column);
            let starting = |host: &mut dyn Host, grid: &Grid, label: &str| {
                host.notice(Notice::Starting { target: &target.name, number: grid.progress().0 + 1, of, label });
            };
            match &cell.job {
                Job::Train(training) => {
                    for seed in self.seeds(target) {
                        let at = seed as usize - 1;
                        // Another cell may have made this run meanwhile.
                        let run = training::look_up(&self.folder, training, seed, &self.options, host)?;
                        let is_open = matches!(run, Run::Open) && !stop.load(Ordering::Relaxed);
                        set(&mut grid, cell, at, run);
                        if is_open {
                            starting(host, &grid, &format!("{label}, seed {seed}"));
                            let run = training::carry_out(&self.folder, training, seed, &self.options, host, stop)?;
                            if let Run::Failed(sentence) | Run::Refused(sentence) = &run {
                                host.notice(Notice::NotDone(sentence));
                            }
                            set(&mut grid, cell, at, run);
                            write::write(&grid, &self.folder, false)?;
                        }
                    }
                }
                Job::Bench(bench) => {
                    let is_open = matches!(grid.cells[cell.row][cell.column], Filled::Timed(None));
                    if is_open && !stop.load(Ordering::Relaxed) {
                        starting(host, &grid, &label);
                        grid.cells[cell.row][cell.column] = match self.measure(bench, host, stop) {
                            Ok(line) => Filled::Timed(line.map(Box::new)),
                            Err(error) if error.is_wrong_input() => Filled::Untimed(host.sentence(&error)),
                            Err(error) => return Err(error),
                        };
                        write::write(&grid, &self.folder, false)?;
                    }
                }
                Job::CountParameters(_) | Job::Quote(_) => {}
            }
        }
        self.look_again(target, cells, &mut grid, host)?;
        Ok(grid)
    }

    /// The trainings in `plans` that have runs to be made, each once.
    ///
    /// # Errors
    /// When a result cannot be read.
    pub fn open_trainings<'a>(&self, targets: &[Target], plans: &'a [Vec<Cell>], host: &dyn Host) -> Result<Vec<Open<'a>>> {
        let (mut open, mut known) = (Vec::new(), BTreeSet::new());
        for (target, cells) in targets.iter().zip(plans) {
            let grid = self.look_up(target, cells, host)?;
            for cell in cells {
                let Job::Train(training) = &cell.job else { continue };
                let Filled::Trained(runs) = &grid.cells[cell.row][cell.column] else { continue };
                let runs = runs.iter().filter(|(_, run)| matches!(run, Run::Open)).count();
                // A run that another target has asked for already costs nothing more.
                if runs > 0 && known.insert(training.id.as_str()) {
                    let label = format!("{}: {}", target.name, grid.label(cell.row, cell.column));
                    open.push(Open { label, training, runs });
                }
            }
        }
        Ok(open)
    }

    /// Measures a few updates and test batches of `training`: the seconds of a run, or why it cannot be made.
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

    fn seeds(&self, target: &Target) -> RangeInclusive<u64> {
        1..=self.seeds.unwrap_or(target.effort(self.scale).seeds)
    }

    /// Measures and keeps the result; none where `stop` was raised meanwhile.
    fn measure(&self, bench: &Bench, host: &mut dyn Host, stop: &AtomicBool) -> Result<Option<Line>> {
        let found = host.measure(bench);
        if stop.load(Ordering::Relaxed) {
            // Ctrl-C reaches a process of its own too.
            return Ok(None);
        }
        let line = found?;
        folder::write(&self.folder.measurement(&bench.id), &line)?;
        Ok(Some(line))
    }

    /// Takes in what could not be run because another process was at it, and that process has finished since.
    fn look_again(&self, target: &Target, cells: &[Cell], grid: &mut Grid, host: &dyn Host) -> Result<()> {
        for cell in cells {
            let Job::Train(training) = &cell.job else { continue };
            for seed in self.seeds(target) {
                let run = training::look_up(&self.folder, training, seed, &self.options, host)?;
                if matches!(run, Run::Done(_)) {
                    set(grid, cell, seed as usize - 1, run);
                }
            }
        }
        Ok(())
    }

    /// What is known of a target before anything is done.
    fn look_up<'a>(&self, target: &'a Target, cells: &[Cell], host: &dyn Host) -> Result<Grid<'a>> {
        let mut filled: Vec<Vec<Filled>> = target.rows.iter().map(|_| Vec::new()).collect();
        for cell in cells {
            filled[cell.row].push(match &cell.job {
                Job::Train(training) => {
                    let run = |seed| Ok((seed, training::look_up(&self.folder, training, seed, &self.options, host)?));
                    Filled::Trained(self.seeds(target).map(run).collect::<Result<_>>()?)
                }
                Job::Bench(bench) => Filled::Timed(folder::read(&self.folder.measurement(&bench.id))?.map(Box::new)),
                Job::CountParameters(experiment) => Filled::Counted(count_parameters(experiment).map_err(Error::from)?),
                Job::Quote(why) => Filled::Quoted(why.clone()),
            });
        }
        Ok(Grid { target, scale: self.scale, command: host.command(target), cells: filled })
    }
}

fn set(grid: &mut Grid, cell: &Cell, at: usize, run: Run) {
    if let Filled::Trained(runs) = &mut grid.cells[cell.row][cell.column] {
        runs[at].1 = run;
    }
}
