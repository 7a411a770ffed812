//! The processes that mpiexec started for one command: they work together, or are refused.

#[cfg(feature = "mpi")]
use std::thread;
#[cfg(feature = "mpi")]
use std::time::Duration;

use clap::error::ErrorKind;
use minrnn::train::Group;

use crate::device_failure;
use crate::exit::ExitCode;
use crate::failure::{self, WrongInput};
#[cfg(feature = "mpi")]
use crate::say::say;

/// The variables in which starters of processes tell each of them how many there are.
const SIZES: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"];
/// And which one it is, from 0.
const RANKS: [&str; 5] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"];

/// The variable that says after how many seconds without a sign of life a process is taken for dead.
#[cfg(feature = "mpi")]
const SILENCE: &str = "MINRNN_HEARTBEAT";
#[cfg(feature = "mpi")]
const MOST_SECONDS: u32 = 86_400;
/// The time that the others leave to the first process to report what it has found too, and to end them.
#[cfg(feature = "mpi")]
const TURN: Duration = Duration::from_secs(1);
/// How long all may take to reach the end after an error that all know of.
#[cfg(feature = "mpi")]
const END: Duration = Duration::from_secs(30);

/// The place of this process among those that were started together.
pub struct Together {
    pub group: Group,
    /// Threads that this process should use if no number is given; 0 stands for all.
    pub threads: usize,
}

impl Together {
    fn alone() -> Self {
        Self { group: Group::alone(), threads: 0 }
    }
}

/// How many processes were started together.
fn started() -> usize {
    let number = |variable| std::env::var(variable).ok()?.parse().ok();
    SIZES.into_iter().filter_map(number).max().unwrap_or(1)
}

/// Which of them this one is, from 0.
fn rank() -> usize {
    RANKS.into_iter().find_map(|variable| std::env::var(variable).ok()?.parse().ok()).unwrap_or(0)
}

/// The variables by which a process knows that it is one of several; processes that it starts itself must not see them.
pub fn variables() -> impl Iterator<Item = &'static str> {
    SIZES.into_iter().chain(RANKS)
}

/// Refuses to run as one of several: the first of them says so, and the others end silently.
pub fn refuse_several(sentence: impl FnOnce(usize) -> String) -> anyhow::Result<Option<ExitCode>> {
    match (started(), rank()) {
        (0 | 1, _) => Ok(None),
        (size, 0) => Err(WrongInput(sentence(size)).into()),
        // With another code, the first process might be ended before it has spoken.
        _ => Ok(Some(ExitCode::SUCCESS)),
    }
}

/// Prints what the parser of the command line reports. Wrong arguments of one of several processes end all of them.
pub fn report_usage(told: &clap::Error) -> ExitCode {
    let is_help = !told.use_stderr() || told.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    let several = if cfg!(feature = "mpi") { started() } else { 1 };
    if is_help || several < 2 {
        return failure::report_usage(told);
    }
    // After the first paragraph come hints.
    let text = told.to_string();
    let words = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error:").split_whitespace();
    let wrong = WrongInput(words.collect::<Vec<_>>().join(" "));
    together_where(Err(wrong.into()), |_| Ok(ExitCode::SUCCESS)).unwrap_or_else(|error| failure::report(&error))
}

/// Runs `work` as one of the processes that were started together. The first of them reports what is wrong.
pub fn together(work: impl FnOnce(&Together) -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    together_where(crate::expect_usable_environment(), work)
}

/// The same if this process, and each of the others, is `usable`.
#[cfg(feature = "mpi")]
fn together_where(usable: anyhow::Result<()>, work: impl FnOnce(&Together) -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    let (size, rank) = (started(), rank());
    if size < 2 {
        usable?;
        return device_failure::explained(|| work(&Together::alone()));
    }
    let pace = pace();
    let late = move |waited: Duration| {
        // From two of them: the first may be the one that is missing.
        if rank < 2 {
            say(format_args!(
                "process {rank} of {size}, counted from 0, waits for the others: after {} seconds not all of them have come; look at what the \
                 missing ones have said",
                waited.as_secs()
            ));
        }
    };
    let job = minrnn_mpi::Job::new(pace.as_ref().copied().unwrap_or_default(), late)?;
    let group = job.group();
    if group.is_alone() {
        // On every process: if the others have come together without this one, the first of them does not know.
        let sentence = format!(
            "{size} processes were started, but MPI sees one: the program was built with another MPI than that of the mpiexec that started it; \
             start it with that one, or rebuild it with MPICC set to the compiler of this one"
        );
        return Err(WrongInput(sentence).into());
    }
    let together = Together { threads: own_threads(job.n_sharing()), group };
    let group = &together.group;
    // Not before: the others would wait for ever for a process that ended before all have come.
    let agreed = agree(group, usable.and(pace.map(|_| ())));
    let outcome = agreed.and_then(|()| device_failure::explained(|| work(&together)));
    let Err(error) = outcome else { return outcome };
    let code = failure::code(&error);
    if !group.has_failed() {
        if !group.is_first() {
            thread::sleep(TURN);
        }
        failure::report(&error);
        group.abort(code);
    }
    if group.is_first() {
        failure::report(&error);
    }
    if !job.all_come(END) {
        // This process differs from the others, which go on and wait for it.
        if !group.is_first() {
            failure::report(&error);
        }
        group.abort(code);
    }
    Ok(ExitCode::from(code))
}

/// A sign of life every second, and the usual patience if no number of seconds is set.
#[cfg(feature = "mpi")]
fn pace() -> anyhow::Result<minrnn_mpi::Pace> {
    let (usual, seconds) = (minrnn_mpi::Pace::default(), std::env::var(SILENCE).unwrap_or_default());
    if seconds.is_empty() {
        return Ok(usual);
    }
    let missed = seconds.parse().ok().filter(|seconds| (2..=MOST_SECONDS).contains(seconds));
    let wrong = || WrongInput(format!("{SILENCE} must be a number of seconds from 2 to {MOST_SECONDS}, found '{seconds}'"));
    Ok(minrnn_mpi::Pace { missed: missed.ok_or_else(wrong)?, ..usual })
}

/// The same in a program that can only run alone. Each of several processes says so: the first may be one that can work with others, and waits for it.
#[cfg(not(feature = "mpi"))]
fn together_where(usable: anyhow::Result<()>, work: impl FnOnce(&Together) -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    let size = started();
    if size > 1 {
        let sentence = format!(
            "{size} processes were started, and this program was built without mpi: each would do the same; build it with the feature mpi (for \
             example: cargo install --locked --path crates/cli --features mpi), or start it without mpiexec"
        );
        return Err(WrongInput(sentence).into());
    }
    usable?;
    device_failure::explained(|| work(&Together::alone()))
}

/// The cores that this process may run on, shared out among those that may run on the same ones.
#[cfg(feature = "mpi")]
fn own_threads(n_sharing: usize) -> usize {
    (thread::available_parallelism().map_or(1, std::num::NonZero::get) / n_sharing).max(1)
}

/// What this process found, if all succeeded; otherwise its own error, or that of the first process that failed.
pub fn agree<T>(group: &Group, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
    if group.is_alone() {
        return outcome;
    }
    let (own, told) = match outcome {
        Ok(own) => (Ok(own), Ok(())),
        Err(error) => {
            let (sentence, is_wrong_input) = (failure::sentence(&error), failure::is_wrong_input(&error));
            let told = minrnn::Error::Elsewhere { rank: group.rank(), size: group.size(), sentence, is_wrong_input };
            (Err(error), Err(told))
        }
    };
    match (group.agree(told), own) {
        (Ok(()), own) => own,
        // In its own words.
        (Err(_), Err(own)) => Err(own),
        (Err(told), Ok(_)) => Err(told.into()),
    }
}
