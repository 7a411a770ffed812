//! Several concurrent trainings in one process.
//!
//! Each job is a thread that takes the first training in the queue for which there is room beside those running, and has its own thread
//! pool, so that a training gives the same results as alone with that many threads. They share the host and the grids, and call the host
//! one at a time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use minrnn::memory::Room;
use minrnn::train::{Corpus, training_memory};
use minrnn_bench::Line;

use super::set;
use crate::plan::Bench;
use crate::{Error, Grid, Host, Notice, Reproduction, Result, Run, Target, Training, training, write};

/// A run to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'a> {
    /// The index of its target.
    pub target: usize,
    pub row: usize,
    pub column: usize,
    pub seed: u64,
    pub training: &'a Training,
}

impl Task<'_> {
    /// Puts what is known of the run into its cell.
    pub fn set(&self, grid: &mut Grid, run: Run) {
        set(grid, self.row, self.column, self.seed, run);
    }

    /// Announces that it starts.
    pub fn announce(&self, grid: &Grid, job: usize, host: &mut dyn Host) {
        let (done, of) = grid.progress();
        let label = format!("{}, seed {}", grid.label(self.row, self.column), self.seed);
        host.notice_of(job, Notice::Starting { target: &grid.target.name, number: done + 1, of, label: &label });
    }
}

/// What all jobs share.
struct Shared<'t, 'a> {
    state: Mutex<State<'t, 'a>>,
    /// Notified when a training ends, which leaves room for another.
    changed: Condvar,
}

struct State<'t, 'a> {
    /// Tasks, each with the bytes it needs.
    queue: Vec<(Task<'t>, u128)>,
    grids: Vec<Grid<'a>>,
    /// Bytes of the running trainings, and their number.
    used: u128,
    running: usize,
    /// The error that ended the work.
    error: Option<Error>,
}

/// Locks even after another job has panicked: the state is still consistent, and the panic is resumed at the end.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes `tasks` with as many jobs as `reproduction` asks for, and fills `grids`.
pub(crate) fn side_by_side<'a>(
    reproduction: &Reproduction,
    tasks: Vec<Task>,
    grids: Vec<Grid<'a>>,
    host: &mut (dyn Host + Send),
    stop: &AtomicBool,
) -> Result<Vec<Grid<'a>>> {
    let room = Room::left(reproduction.options.memory_limit).map_or(u128::MAX, |room| room.bytes.into());
    let mut queue = Vec::new();
    for task in tasks {
        // A training whose memory cannot be estimated is refused when its turn comes.
        let bytes = training_memory(&training::scored(task.training, &reproduction.options)).map_or(0, |estimate| estimate.total());
        queue.push((task, bytes));
    }
    let shared = Shared { state: Mutex::new(State { queue, grids, used: 0, running: 0, error: None }), changed: Condvar::new() };
    let host = Mutex::new(host);
    let work = |job: usize| {
        let _raise = StopOnPanic(stop);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(reproduction.threads).build();
        let outcome = match pool {
            Ok(pool) => pool.install(|| work_off(reproduction, job, room, &shared, &host, stop)),
            Err(error) => Err(Error::Host { sentence: format!("could not start the threads: {error}"), is_wrong_input: false }),
        };
        if let Err(error) = outcome {
            // The others save what they have and end.
            stop.store(true, Ordering::Relaxed);
            lock(&shared.state).error.get_or_insert(error);
            shared.changed.notify_all();
        }
    };
    let work = &work;
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..reproduction.jobs).map(|job| scope.spawn(move || work(job))).collect();
        for job in jobs {
            if let Err(panic) = job.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.error.map_or(Ok(state.grids), Err)
}

/// Stops the other jobs when this one panics.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Takes one task after the other until none is left.
fn work_off(
    reproduction: &Reproduction,
    job: usize,
    room: u128,
    shared: &Shared,
    host: &Mutex<&mut (dyn Host + Send)>,
    stop: &AtomicBool,
) -> Result<()> {
    let Reproduction { folder, options, .. } = reproduction;
    while let Some((task, bytes)) = next(room, shared, stop) {
        let mut worker = Worker { job, host };
        let outcome = (|| {
            let run = training::look_up(folder, task.training, task.seed, options, &worker)?;
            training::tidy(folder, task.training, task.seed, &run)?;
            if !reproduction.is_wanted(&run) {
                return Ok(Some(run).filter(|run| !matches!(run, Run::Open)));
            }
            task.announce(&lock(&shared.state).grids[task.target], job, &mut worker);
            let run = training::carry_out(folder, task.training, task.seed, options, &mut worker, stop)?;
            if let Some(why) = run.not_made() {
                worker.notice(Notice::NotDone(why));
            }
            Ok(Some(run))
        })();
        let mut state = lock(&shared.state);
        state.used -= bytes;
        state.running -= 1;
        let grid = &mut state.grids[task.target];
        let written = outcome.and_then(|run| {
            if let Some(run) = run {
                task.set(grid, run);
            }
            write::write_tables(grid, folder)
        });
        drop(state);
        shared.changed.notify_all();
        written?;
    }
    Ok(())
}

/// The first task in the queue that there is room for; waits while there is none beside those running. One that needs more than there is
/// gets its turn alone, and is refused with the reason.
fn next<'t>(room: u128, shared: &Shared<'t, '_>, stop: &AtomicBool) -> Option<(Task<'t>, u128)> {
    let mut state = lock(&shared.state);
    loop {
        if stop.load(Ordering::Relaxed) || state.queue.is_empty() {
            return None;
        }
        let (used, running) = (state.used, state.running);
        if let Some(at) = state.queue.iter().position(|(_, bytes)| running == 0 || used.saturating_add(*bytes) <= room) {
            let (task, bytes) = state.queue.remove(at);
            state.used += bytes;
            state.running += 1;
            return Some((task, bytes));
        }
        // Wakes up now and then, since nothing signals a raised stop.
        let waited = shared.changed.wait_timeout(state, Duration::from_millis(200));
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// The host as a job sees it.
struct Worker<'w, 'h> {
    job: usize,
    host: &'w Mutex<&'h mut (dyn Host + Send)>,
}

impl Host for Worker<'_, '_> {
    fn notice_of(&mut self, _: usize, notice: Notice<'_>) {
        lock(self.host).notice_of(self.job, notice);
    }

    fn fetch(&mut self, corpus: Corpus) -> Result<PathBuf> {
        lock(self.host).fetch(corpus)
    }

    fn measure(&mut self, bench: &Bench) -> Result<Line> {
        lock(self.host).measure(bench)
    }

    fn command(&self, target: &Target) -> String {
        lock(self.host).command(target)
    }

    fn commit(&self) -> String {
        lock(self.host).commit()
    }

    fn sentence(&self, error: &Error) -> String {
        lock(self.host).sentence(error)
    }
}
