//! The times of the tasks of a piece of work when run sequentially, to predict the effect of more threads.

use core::cell::RefCell;
use core::mem::replace;
use std::time::{Duration, Instant};
use std::vec::Vec;

/// Tasks shared among threads, including those that were claimed, and what came before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Time since the end of the previous region, on one thread.
    pub before: Duration,
    /// In their order.
    pub tasks: Vec<Duration>,
}

/// All regions of a piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// In their order.
    pub regions: Vec<Region>,
    /// From the end of the last region.
    pub after: Duration,
}

struct Recording {
    /// When the last region, or the last task of the current one, ended.
    end: Instant,
    regions: Vec<Region>,
    /// Times of the tasks that have ended in the current region.
    tasks: Option<Vec<Duration>>,
}

impl Recording {
    fn task_ends(&mut self) {
        if let Some(tasks) = &mut self.tasks {
            let now = Instant::now();
            tasks.push(now - replace(&mut self.end, now));
        }
    }
}

std::thread_local!(static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) });

/// Runs `work`, split as for the ambient pool, but with every task of the regions started by this thread run on this thread, and returns
/// the time of each.
///
/// # Panics
/// When `work` itself records.
pub fn record(work: impl FnOnce()) -> Record {
    struct Stop;
    impl Drop for Stop {
        fn drop(&mut self) {
            RECORDING.take();
        }
    }
    assert!(RECORDING.with_borrow(Option::is_none), "a record inside a record; record one of the two");
    RECORDING.set(Some(Recording { end: Instant::now(), regions: Vec::new(), tasks: None }));
    let _stop = Stop;
    work();
    let Recording { end, regions, .. } = RECORDING.take().expect("set above");
    Record { after: end.elapsed(), regions }
}

/// Whether this thread records and is not inside a task.
#[inline]
pub(crate) fn is_recording() -> bool {
    RECORDING.with_borrow(|recording| recording.as_ref().is_some_and(|recording| recording.tasks.is_none()))
}

/// Notes, if this thread records, that the current task ends here and another begins: for work whose threads claim tasks themselves.
#[inline]
pub(crate) fn task_ends() {
    RECORDING.with_borrow_mut(|recording| recording.as_mut().map_or((), Recording::task_ends));
}

/// Runs and records the tasks of a region.
pub(crate) fn run(n: usize, task: impl Fn(usize)) {
    let begin = Instant::now();
    let before = RECORDING.with_borrow_mut(|recording| {
        let Recording { end, tasks, .. } = recording.as_mut().expect("asked for by `is_recording`");
        *tasks = Some(Vec::new());
        begin - replace(end, begin)
    });
    for i in 0..n {
        task(i);
        task_ends();
    }
    RECORDING.with_borrow_mut(|recording| {
        let Recording { end, regions, tasks } = recording.as_mut().expect("nobody ends a record inside it");
        regions.push(Region { before, tasks: tasks.take().unwrap_or_default() });
        *end = Instant::now();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_task_is_run_once_and_its_time_told_in_the_cut_of_seven_threads() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(7).build().unwrap();
        let ran = AtomicUsize::new(0);
        let caller = AtomicUsize::new(0);
        let record = pool.install(|| {
            record(|| {
                let own = std::thread::current().id();
                std::thread::sleep(Duration::from_millis(2));
                grid::for_each(grid::threads(), |i| {
                    ran.fetch_add(1, Ordering::SeqCst);
                    caller.fetch_add(usize::from(std::thread::current().id() == own), Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(if i == 3 { 5 } else { 0 }));
                    // A region inside a task is part of it.
                    grid::for_each(2, |_| {});
                });
                grid::for_each(1, |_| std::thread::sleep(Duration::from_millis(2)));
            })
        });
        assert_eq!((ran.into_inner(), caller.into_inner()), (7, 7));
        let region = record.regions.iter().find(|region| region.tasks.len() == 7).unwrap();
        assert!(region.tasks[3] >= Duration::from_millis(5) && region.before >= Duration::from_millis(2), "{region:?}");
        assert!(record.after >= Duration::from_millis(2), "one task is no region: {record:?}");
    }
}
