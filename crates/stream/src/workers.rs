//! Several threads working together on the phases of one pass.
//!
//! A step of a small model is about twenty products of 10 µs each: too short to start a thread-pool job for each. So threads join once per
//! pass and then wait for work in a spin loop. The caller runs the pass; at each [`Workers::split`] it publishes a task cut into pieces,
//! and any thread that has joined claims pieces. No one waits for a thread that has claimed nothing: a thread that comes late, or never,
//! only costs speed, so two passes in one pool cannot block each other. Results do not depend on which thread does a piece.

use core::ops::Range;

/// Fewest multiplications of a pass worth a second thread.
#[cfg(feature = "std")]
const PASS: usize = 1 << 18;
/// Fewest multiplications of a phase worth a second thread.
#[cfg(feature = "std")]
const PHASE: usize = 1 << 13;
/// Fewest multiplications of a phase that is cut into more pieces than threads, so that an interrupted thread holds up less.
#[cfg(feature = "std")]
const LONG_PHASE: usize = 1 << 23;
/// Pieces of a long phase for each thread.
#[cfg(feature = "std")]
const PIECES: usize = 4;

/// Who does a pass.
pub(crate) enum Workers<'a> {
    /// The calling thread.
    Alone,
    /// The calling thread and helpers.
    #[cfg(feature = "std")]
    Team(&'a team::Team),
    #[cfg(not(feature = "std"))]
    #[expect(dead_code, reason = "gives the lifetime a use")]
    Nobody(core::convert::Infallible, &'a ()),
}

impl Workers<'_> {
    /// Most pieces that a phase is cut into.
    pub(crate) fn most_pieces(&self) -> usize {
        match self {
            #[cfg(feature = "std")]
            Self::Team(team) => PIECES * team.members(),
            _ => 1,
        }
    }

    /// Threads that do the pass.
    pub(crate) fn members(&self) -> usize {
        match self {
            #[cfg(feature = "std")]
            Self::Team(team) => team.members(),
            _ => 1,
        }
    }

    /// Runs `work(piece, range)` on ranges that cover `0..n` once, cut at multiples of `granule`, and returns when all is done. `cost`
    /// is the number of multiplications of the whole.
    pub(crate) fn split(&self, n: usize, granule: usize, cost: usize, work: impl Fn(usize, Range<usize>) + Sync) {
        match self {
            #[cfg(feature = "std")]
            Self::Team(team) if cost >= PHASE && n > granule => {
                let units = n.div_ceil(granule);
                let pieces = if cost < LONG_PHASE { team.members() } else { PIECES * team.members() }.min(units);
                let cut = |i: usize| (units * i / pieces * granule).min(n);
                team.run(pieces, &|i| work(i, cut(i)..cut(i + 1)));
            }
            _ => {
                let _ = (granule, cost);
                work(0, 0..n);
            }
        }
    }
}

/// Runs `pass`, which costs about `cost` multiplications, with as many threads of the ambient pool as are worth it, and at most `most` where that
/// is not 0.
pub(crate) fn fork_join<R: Send>(cost: usize, most: usize, pass: impl FnOnce(&Workers<'_>) -> R + Send) -> R {
    #[cfg(feature = "std")]
    if cost >= PASS && most != 1 {
        let members = team::ambient_threads().min(if most == 0 { usize::MAX } else { most });
        if members > 1 {
            return team::fork_join(members, pass);
        }
    }
    let _ = (cost, most);
    pass(&Workers::Alone)
}

#[cfg(feature = "std")]
pub(crate) mod team {
    use super::Workers;
    use std::any::Any;
    use std::cell::UnsafeCell;
    use std::error::Error;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, OnceLock, PoisonError};

    /// Turns of a spin loop before a thread yields the processor: some tens of microseconds.
    const SPINS: u32 = 1 << 11;
    /// The pass is over.
    const LEAVE: u64 = u64::MAX;

    /// Most threads of a team.
    const MOST_MEMBERS: usize = 0x0fff;
    /// Most pieces of a phase: [`Team::word`] has 16 bits each for their number and for those claimed, and all of the latter set end the phase.
    const MOST_PIECES: usize = 0xffff;
    /// Most helpers that may be outstanding: beyond it, passes outside the pool ask for no more, so that jobs do not pile up in a busy pool.
    const MOST_WAITING: usize = 1 << 10;
    /// Helpers that were asked for and have not come yet.
    static WAITING: AtomicUsize = AtomicUsize::new(0);
    // Whatever a pass splits can be run.
    const _: () = assert!(super::PIECES * MOST_MEMBERS <= MOST_PIECES);

    type Task = dyn Fn(usize) + Sync;

    /// Number of threads in the ambient rayon pool, or 1 without one: the system may refuse to start threads, and a forked child process
    /// has none of its parent's, so a pass would wait for them for ever.
    pub fn ambient_threads() -> usize {
        /// The number of threads in the global pool, and the process that they belong to.
        static GLOBAL: OnceLock<Option<(usize, u32)>> = OnceLock::new();
        if rayon::current_thread_index().is_some() {
            return rayon::current_num_threads();
        }
        let global = GLOBAL.get_or_init(|| match rayon::ThreadPoolBuilder::new().build_global() {
            // Only an error of the system has a source; to ask for the pool's threads after one would panic.
            Err(error) if error.source().is_some() => None,
            // The pool exists now, by this call or an earlier one.
            _ => Some((rayon::current_num_threads(), std::process::id())),
        });
        match *global {
            Some((threads, process)) if process == std::process::id() => threads,
            _ => 1,
        }
    }

    pub(crate) struct Team {
        members: usize,
        /// Number of the phase (32 bits), its pieces (16), those claimed (16); one word, so that a claim is of the phase it was meant for.
        word: AtomicU64,
        done: AtomicUsize,
        /// Whether a phase has begun and is not over: its task must not be replaced.
        is_running: AtomicBool,
        task: UnsafeCell<Option<*const Task>>,
        /// Whether a piece of the phase has panicked, and with what: the caller resumes the panic, whichever thread did the piece.
        has_panicked: AtomicBool,
        panic: Mutex<Option<Box<dyn Any + Send>>>,
    }

    // SAFETY: `task` is written by the caller's thread while no piece is claimed, and read by those who hold a claim.
    unsafe impl Sync for Team {}
    // SAFETY: the pointer is of a `Sync` closure, used only while it is alive.
    unsafe impl Send for Team {}

    fn pieces(word: u64) -> usize {
        (word >> 16 & 0xffff) as usize
    }

    fn claimed(word: u64) -> usize {
        (word & 0xffff) as usize
    }

    /// One more turn of a loop that waits.
    fn wait(turns: &mut u32) {
        *turns += 1;
        if *turns < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
    }

    impl Team {
        fn new(members: usize) -> Self {
            Self {
                members: members.min(MOST_MEMBERS),
                word: AtomicU64::new(0),
                done: AtomicUsize::new(0),
                is_running: AtomicBool::new(false),
                task: UnsafeCell::new(None),
                has_panicked: AtomicBool::new(false),
                panic: Mutex::new(None),
            }
        }

        pub(crate) fn members(&self) -> usize {
            self.members
        }

        /// Runs `task(0)`, …, `task(count − 1)`, each once.
        ///
        /// # Panics
        /// When it is called while the team runs another task, from within a piece of it or from another thread.
        ///
        /// When a piece panics: with the same payload, once no other piece is being done.
        ///
        /// When there are more than [`MOST_PIECES`], which [`Workers::split`] never asks for: one more would overflow into the number of the phase, and a
        /// piece could be done while nobody waits for it.
        pub(crate) fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
            assert!(count <= MOST_PIECES, "a phase has at most {MOST_PIECES} pieces, found {count}");
            assert!(!self.is_running.swap(true, Ordering::Acquire), "a team does one task at a time: a piece of a phase cannot be split");
            // Ends the phase: no helper may hold the task when this function is left.
            struct End<'a>(&'a Team);
            impl Drop for End<'_> {
                fn drop(&mut self) {
                    let word = self.0.word.fetch_or(0xffff, Ordering::AcqRel);
                    let begun = claimed(word).min(pieces(word));
                    let mut turns = 0;
                    while self.0.done.load(Ordering::Acquire) < begun {
                        wait(&mut turns);
                    }
                    self.0.is_running.store(false, Ordering::Release);
                }
            }
            // SAFETY: only the lifetime changes; `End` sees to it that nobody uses the task after this function.
            let task = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const Task>(task) };
            // SAFETY: no phase is running, which `is_running` sees to, so no piece is claimed.
            unsafe { *self.task.get() = Some(task) };
            self.done.store(0, Ordering::Relaxed);
            let phase = (self.word.load(Ordering::Relaxed) >> 32).wrapping_add(1) & 0x7fff_ffff;
            self.word.store(phase << 32 | (count as u64) << 16, Ordering::Release);
            let end = End(self);
            let mut is_left = true;
            while is_left && !self.has_panicked.load(Ordering::Relaxed) {
                is_left = self.work_on_one(self.word.load(Ordering::Acquire));
            }
            // All pieces are counted, and what they left behind is seen.
            drop(end);
            if self.has_panicked.swap(false, Ordering::Relaxed) {
                let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
                resume_unwind(panic.expect("a piece has panicked"));
            }
        }

        /// Claims a piece of the phase that `word` shows and does it; false when there is none to claim.
        fn work_on_one(&self, word: u64) -> bool {
            struct Done<'a>(&'a Team);
            impl Drop for Done<'_> {
                fn drop(&mut self) {
                    self.0.done.fetch_add(1, Ordering::Release);
                }
            }
            if claimed(word) >= pieces(word) {
                return false;
            }
            if self.word.compare_exchange(word, word + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                let _done = Done(self);
                // SAFETY: the piece is claimed, so the phase stays until `done` counts it, and its task was written before.
                let piece = || unsafe {
                    let task = (*self.task.get()).expect("a phase has a task");
                    (*task)(claimed(word));
                };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(piece)) {
                    self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
                    self.has_panicked.store(true, Ordering::Relaxed);
                }
            }
            true
        }

        /// What a helper does.
        fn help(&self) {
            let mut turns = 0;
            loop {
                let word = self.word.load(Ordering::Acquire);
                if word == LEAVE {
                    return;
                }
                if self.work_on_one(word) {
                    turns = 0;
                } else {
                    wait(&mut turns);
                }
            }
        }
    }

    /// Runs `pass` with `members − 1` helpers, as far as the pool has threads to spare.
    pub(crate) fn fork_join<R: Send>(members: usize, pass: impl FnOnce(&Workers<'_>) -> R + Send) -> R {
        if rayon::current_thread_index().is_some() {
            let team = Team::new(members);
            return rayon::join(|| lead(&team, pass), || helpers(&team, members - 1)).0;
        }
        // A thread outside the pool leads the pass itself: handing it over would cost more than boxing the spawned jobs. The jobs own the team, so
        // that nobody waits for a job which the pool has no thread for yet: it will find the pass over.
        let team = Arc::new(Team::new(members));
        for _ in 1..members {
            if WAITING.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
                WAITING.fetch_sub(1, Ordering::Relaxed);
                break;
            }
            let team = Arc::clone(&team);
            rayon::spawn(move || {
                WAITING.fetch_sub(1, Ordering::Relaxed);
                team.help();
            });
        }
        lead(&team, pass)
    }

    /// Runs `pass` with whichever helpers come, then dismisses them.
    fn lead<R>(team: &Team, pass: impl FnOnce(&Workers<'_>) -> R) -> R {
        struct Leave<'a>(&'a Team);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.word.store(LEAVE, Ordering::Release);
            }
        }
        let _leave = Leave(team);
        pass(&Workers::Team(team))
    }

    /// `n` helpers, by joins, whose jobs live on the stack.
    fn helpers(team: &Team, n: usize) {
        match n {
            0 => {}
            1 => team.help(),
            _ => _ = rayon::join(|| helpers(team, n / 2), || helpers(team, n - n / 2)),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::sync::Barrier;
        use std::sync::mpsc::channel;
        use std::time::{Duration, Instant};

        fn pool() -> rayon::ThreadPool {
            rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap()
        }

        fn count(workers: &Workers<'_>) {
            for n in [1, 2, 7, 64, 1000] {
                let seen: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                workers.split(n, 4, usize::MAX, |_, range| range.for_each(|i| _ = seen[i].fetch_add(1, Ordering::Relaxed)));
                assert!(seen.iter().all(|seen| seen.load(Ordering::Relaxed) == 1));
            }
        }

        #[test]
        fn every_element_is_done_once_from_inside_and_outside_a_pool() {
            for _ in 0..200 {
                pool().install(|| fork_join(3, count));
            }
            for _ in 0..200 {
                fork_join(rayon::current_num_threads().max(2), count);
            }
        }

        #[test]
        fn many_passes_in_one_pool_do_not_block_each_other() {
            let pool = pool();
            std::thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| (0..50).for_each(|_| pool.install(|| fork_join(3, count))));
                }
            });
        }

        #[test]
        fn a_pass_outside_a_pool_waits_for_no_thread_of_it() {
            let threads = rayon::current_num_threads();
            let gates = Arc::new([Barrier::new(threads + 1), Barrier::new(threads + 1)]);
            for _ in 0..threads {
                let gates = Arc::clone(&gates);
                rayon::spawn(move || _ = gates.each_ref().map(Barrier::wait));
            }
            // Every thread of the pool waits for this one now.
            gates[0].wait();
            let (sender, done) = channel();
            std::thread::spawn(move || {
                // More than are ever asked for at once.
                (0..2 * MOST_WAITING).for_each(|_| fork_join(3, count));
                sender.send(()).unwrap();
            });
            let done = done.recv_timeout(Duration::from_secs(100));
            let waiting = WAITING.load(Ordering::Relaxed);
            gates[1].wait();
            assert_eq!(done, Ok(()));
            // Helpers of tests running beside this one may be waiting, too.
            assert!((1..=MOST_WAITING + 16).contains(&waiting), "{waiting}");
            let ends = Instant::now() + Duration::from_secs(100);
            while WAITING.load(Ordering::Relaxed) > 16 {
                assert!(Instant::now() < ends, "nobody came");
                std::thread::yield_now();
            }
        }

        #[test]
        fn a_panic_of_a_helper_reaches_a_caller_outside_the_pool() {
            let caught = (0..1000).any(|_| {
                let pass = || {
                    fork_join(2, |workers| {
                        workers.split(2, 1, usize::MAX, |_, _| {
                            assert!(rayon::current_thread_index().is_none(), "the helper's own words");
                            std::thread::sleep(Duration::from_millis(1));
                        });
                    });
                };
                let Err(panic) = catch_unwind(pass) else { return false };
                assert_eq!(panic.downcast_ref::<&str>(), Some(&"the helper's own words"));
                true
            });
            assert!(caught, "no helper came");
        }

        #[test]
        fn a_phase_has_as_many_pieces_as_can_be_counted_and_no_more() {
            pool().install(|| {
                fork_join(3, |workers| {
                    let Workers::Team(team) = workers else { panic!("three threads are a team") };
                    let done = AtomicUsize::new(0);
                    let piece = |_| _ = done.fetch_add(1, Ordering::Relaxed);
                    team.run(MOST_PIECES, &piece);
                    assert_eq!(done.load(Ordering::Relaxed), MOST_PIECES);
                    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| team.run(MOST_PIECES + 1, &piece)));
                    assert!(refused.is_err());
                    assert_eq!(done.load(Ordering::Relaxed), MOST_PIECES);
                });
            });
        }

        #[test]
        fn a_piece_cannot_be_split_and_the_team_is_whole_afterwards() {
            pool().install(|| {
                fork_join(3, |workers| {
                    let nested = || workers.split(8, 1, usize::MAX, |_, _| workers.split(8, 1, usize::MAX, |_, _| {}));
                    let panic = catch_unwind(AssertUnwindSafe(nested)).expect_err("a piece is split");
                    let words = panic.downcast_ref::<&str>().expect("a sentence");
                    assert!(words.starts_with("a team does one task at a time"), "{words}");
                    count(workers);
                });
            });
        }

        #[test]
        fn a_panic_in_a_piece_reaches_the_caller() {
            for piece in 0..3 {
                let caught = std::panic::catch_unwind(|| {
                    pool().install(|| {
                        fork_join(3, |workers| {
                            workers.split(3, 1, usize::MAX, |_, range| assert!(!range.contains(&piece), "the piece's own words"));
                        });
                    });
                });
                assert!(caught.is_err());
            }
        }
    }
}
