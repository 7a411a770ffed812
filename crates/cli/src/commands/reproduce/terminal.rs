//! The command as the host of a reproduction: it shows progress, downloads texts, and measures in processes of its own.

use std::path::PathBuf;

use minrnn::train::Corpus;
use minrnn_bench::Line;
use minrnn_reproduce::{Bench, Error, Host, Notice, Result, Scale, Target};

use super::side_by_side::{SideBySide, other_machine};
use crate::commands::bench::{BUILD, lines_of_own_process};
use crate::display::{self, Display};
use crate::say::say;
use crate::{corpus, failure};

/// What is shown, and what the flags say.
pub struct Terminal {
    scale: Scale,
    seeds: Option<u64>,
    /// Flags that every measurement of speed gets.
    bench_flags: Vec<String>,
    /// Shows the running training, if there is one at a time.
    display: Option<Display>,
    /// Shows the running trainings, if there are several.
    several: Option<SideBySide>,
}

impl Terminal {
    pub fn new(scale: Scale, seeds: Option<u64>, jobs: usize, bench_flags: Vec<String>) -> Self {
        Self { scale, seeds, bench_flags, display: None, several: (jobs > 1).then(|| SideBySide::new(jobs)) }
    }
}

impl Host for Terminal {
    fn notice_of(&mut self, job: usize, notice: Notice<'_>) {
        if let Some(several) = &mut self.several {
            return several.show(job, &notice);
        }
        match notice {
            Notice::Starting { target, number, of, label } => say(format_args!("\n[{number} of {of}] {target}: {label}")),
            Notice::OtherMachine { iteration, before, now } => say(other_machine(iteration, before, now)),
            Notice::Training(trainer) => self.display = Some(Display::new(trainer)),
            Notice::Event(event) => self.display.iter_mut().for_each(|display| display.show(event)),
            Notice::Paused => self.display.take().iter().for_each(Display::finish),
            Notice::Ended(ending, trainer) => display::announce_ending(ending, trainer),
            Notice::NotDone(sentence) => say(format_args!("not done: {sentence}")),
            _ => {}
        }
    }

    fn fetch(&mut self, corpus: Corpus) -> Result<PathBuf> {
        corpus::fetch(corpus).map_err(of_host)
    }

    fn measure(&mut self, bench: &Bench) -> Result<Line> {
        let flags: Vec<String> = flags(bench).into_iter().chain(self.bench_flags.iter().cloned()).collect();
        let found = lines_of_own_process(&bench.bench, &flags).map_err(of_host)?;
        found.into_iter().next().ok_or_else(|| of_host(anyhow::anyhow!("bench {} printed nothing", bench.bench)))
    }

    fn command(&self, target: &Target) -> String {
        let seeds = self.seeds.map_or_else(String::new, |seeds| format!(" --seeds {seeds}"));
        format!("minrnn reproduce {} --scale {}{seeds}", target.name, self.scale)
    }

    fn commit(&self) -> String {
        BUILD.commit.to_owned()
    }

    fn sentence(&self, error: &Error) -> String {
        crate::hint::with_hint(error)
    }
}

/// The settings of a measurement as flags.
fn flags(bench: &Bench) -> Vec<String> {
    bench.settings.iter().flat_map(|(key, value)| [format!("--{key}"), value.clone()]).collect()
}

fn of_host(error: anyhow::Error) -> Error {
    Error::Host { sentence: failure::sentence(&error), is_wrong_input: failure::is_wrong_input(&error) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use minrnn_reproduce::{Job, all, plan};

    use super::*;

    #[test]
    fn every_measurement_of_a_target_has_flags_that_fit() {
        for (target, &scale) in all().unwrap().iter().flat_map(|target| Scale::ALL.iter().map(move |scale| (target, scale))) {
            for cell in plan(target, scale).unwrap() {
                let Job::Bench(bench) = cell.job else { continue };
                let words = ["minrnn".to_owned(), "bench".to_owned(), bench.bench.clone()].into_iter().chain(flags(&bench));
                assert!(crate::Cli::try_parse_from(words).is_ok(), "{}: {bench:?}", target.name);
            }
        }
    }
}
