//! The processes that mpiexec started for one command: they work together, or are refused.

use minrnn::train::Group;

use crate::exit::ExitCode;
use crate::failure::{self, WrongInput};

/// What starters of processes tell each of them: how many there are.
const SIZES: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"];
/// Which one it is, from 0.
const RANKS: [&str; 5] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"];

/// The variable that says after how many seconds without a sign of life a process is taken for dead.
#[cfg(feature = "mpi")]
const SILENCE: &str = "MINRNN_HEARTBEAT";
#[cfg(feature = "mpi")]
const MOST_SECONDS: u32 = 86_400;

/// What this process is of those that were started together.
pub struct Together {
    pub group: Group,
    /// Threads that this process should take, where nobody says; 0 stands for all.
    pub threads: usize,
    #[cfg(feature = "mpi")]
    _job: Option<minrnn_mpi::Job>,
}

/// How many processes were started together.
fn started() -> usize {
    let number = |variable| std::env::var(variable).ok()?.parse().ok();
    SIZES.into_iter().filter_map(number).max().unwrap_or(1)
}

/// Refuses to run as one of several: of those the first says so, and the others end without a word.
pub fn refuse_several(sentence: impl FnOnce(usize) -> String) -> anyhow::Result<Option<ExitCode>> {
    let size = started();
    let rank = RANKS.into_iter().find_map(|variable| std::env::var(variable).ok()?.parse::<usize>().ok()).unwrap_or(0);
    match (size, rank) {
        (0 | 1, _) => Ok(None),
        (_, 0) => Err(WrongInput(sentence(size)).into()),
        // Did it end with another code, the first might be ended before it has spoken.
        _ => Ok(Some(ExitCode::SUCCESS)),
    }
}

/// Runs `work` as one of the processes that were started together. What is wrong is told by the first of them.
#[cfg(feature = "mpi")]
pub fn together(work: impl FnOnce(&Together) -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    let size = started();
    if size < 2 {
        return work(&Together { group: Group::alone(), threads: 0, _job: None });
    }
    let seconds = std::env::var(SILENCE).unwrap_or_default();
    let Some(pace) = pace(&seconds) else {
        let sentence = |_| format!("{SILENCE} must be a number of seconds from 2 to {MOST_SECONDS}, found '{seconds}'");
        return Ok(refuse_several(sentence)?.unwrap_or(ExitCode::SUCCESS));
    };
    let job = minrnn_mpi::Job::new(pace)?;
    let group = job.group();
    if group.is_alone() {
        let sentence = |size| {
            format!(
                "{size} processes were started, but MPI sees one: the program was built with another MPI than that of the mpiexec that started it; \
                 start it with that one, or build it anew with MPICC set to the compiler of this one"
            )
        };
        if let Some(code) = refuse_several(sentence)? {
            return Ok(code);
        }
    }
    let together = Together { threads: own_threads(job.n_local()), group, _job: Some(job) };
    let outcome = work(&together);
    let group = &together.group;
    let Err(error) = outcome else { return outcome };
    let code = failure::code(&error);
    if !group.is_alone() && !group.has_failed() {
        failure::report(&error);
        group.abort(code);
    }
    if group.is_first() {
        failure::report(&error);
    }
    Ok(ExitCode::from(code))
}

/// A sign of life every second, and the usual patience where no number of `seconds` is asked for.
#[cfg(feature = "mpi")]
fn pace(seconds: &str) -> Option<minrnn_mpi::Pace> {
    let usual = minrnn_mpi::Pace::default();
    if seconds.is_empty() {
        return Some(usual);
    }
    let missed = seconds.parse().ok().filter(|seconds| (2..=MOST_SECONDS).contains(seconds))?;
    Some(minrnn_mpi::Pace { missed, ..usual })
}

/// The same of a program that can only be one process.
#[cfg(not(feature = "mpi"))]
pub fn together(work: impl FnOnce(&Together) -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    let sentence = |size| {
        format!(
            "{size} processes were started, and this program was built without mpi: each would do the same; build it with the feature mpi (for \
             example: cargo install --path crates/cli --features mpi), or start it without mpiexec"
        )
    };
    match refuse_several(sentence)? {
        Some(code) => Ok(code),
        None => work(&Together { group: Group::alone(), threads: 0 }),
    }
}

/// The cores that this process is bound to; where it is bound to none, its share of the machine's.
#[cfg(feature = "mpi")]
fn own_threads(n_local: usize) -> usize {
    let bound = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    #[cfg(unix)]
    // SAFETY: it only asks.
    let all = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(bound);
    #[cfg(not(unix))]
    let all = bound;
    if bound < all { bound } else { (all / n_local).max(1) }
}

/// What this process found, where all found something; else what the first of the others says.
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
