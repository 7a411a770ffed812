//! Training distributed among several processes, here threads: the same bits with any number of them, and all end when one cannot continue.

#[path = "common/scratch.rs"]
mod scratch;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use minrnn::data::EvaluationSet;
use minrnn::rng::Purpose;
use minrnn::train::{Ending, Evaluation, Event, Experiment, FinalReport, Group, Pointer, Ranks, RunDir, Trainer, expect_same_scores};
use minrnn::{Error, Result};
use scratch::Scratch;

const TINY: &str = r#"
    [model]
    d_model = 16
    n_layers = 2
    dropout = 0.2
    [train]
    seq_len = 12
    batch_size = 4
    accumulation = 4
    max_iterations = 9
    warmup = 3
    eval_every = 4
    eval_iterations = 5
    checkpoint_every = 3
    threads = 1
"#;

/// Where threads leave what the others take.
#[derive(Default)]
struct Board {
    state: Mutex<Turn>,
    turned: Condvar,
}

#[derive(Default)]
struct Turn {
    /// Turns before this one.
    number: u64,
    laid_down: Vec<Option<Vec<u8>>>,
    /// What was left in the previous turn.
    taken: Vec<Vec<u8>>,
}

impl Board {
    /// What all ranks have left, once all have.
    fn gather(&self, rank: usize, size: usize, own: &[u8]) -> Vec<Vec<u8>> {
        let mut state = self.state.lock().unwrap();
        let turn = state.number;
        state.laid_down.resize(size, None);
        assert!(state.laid_down[rank].replace(own.to_vec()).is_none(), "rank {rank} called twice in a turn");
        if state.laid_down.iter().all(Option::is_some) {
            state.taken = std::mem::take(&mut state.laid_down).into_iter().flatten().collect();
            state.number += 1;
            self.turned.notify_all();
        } else {
            let patience = Duration::from_secs(120);
            let (found, waited) = self.turned.wait_timeout_while(state, patience, |state| state.number == turn).unwrap();
            assert!(!waited.timed_out(), "rank {rank} waits for others that do not come");
            state = found;
        }
        // The next turn cannot end before this rank has left its next contribution.
        state.taken.clone()
    }
}

struct Thread {
    rank: usize,
    size: usize,
    board: Arc<Board>,
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn put(target: &mut [f32], bytes: &[u8]) {
    target.iter_mut().zip(bytes.as_chunks().0).for_each(|(value, bytes)| *value = f32::from_le_bytes(*bytes));
}

impl Ranks for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, given: &[f32], taken: &mut [f32]) {
        let len = given.len() / self.size;
        let all = self.gather(&bytes(given));
        for (piece, from) in taken.chunks_exact_mut(len).zip(all) {
            put(piece, &from[self.rank * len * 4..(self.rank + 1) * len * 4]);
        }
    }

    fn collect(&self, own: &[f32], all: &mut [f32]) {
        for (piece, from) in all.chunks_exact_mut(own.len()).zip(self.gather(&bytes(own))) {
            put(piece, &from);
        }
    }

    fn collect_first(&self, own: &[f32], all: &mut [f32]) {
        assert_eq!(all.is_empty(), self.rank > 0, "the first alone gets them");
        self.collect(own, all);
    }

    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.board.gather(self.rank, self.size, own)
    }

    fn abort(&self, code: u8) -> ! {
        panic!("rank {} ends all with {code}", self.rank)
    }
}

/// The results of `work` on each of `size` ranks.
fn on_ranks<T: Send>(size: usize, work: impl Fn(Group) -> T + Sync) -> Vec<T> {
    let board = Arc::new(Board::default());
    let work = &work;
    std::thread::scope(|scope| {
        let start = |rank| {
            let board = board.clone();
            let run = move || {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                pool.install(|| work(Group::new(Arc::new(Thread { rank, size, board }))))
            };
            scope.spawn(run)
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

impl Scratch {
    fn experiment(&self, settings: &[&str]) -> Experiment {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let mut experiment = Experiment::parse(TINY, &settings).unwrap();
        if experiment.data.task == minrnn::train::Task::Text {
            experiment.data.path = Some(self.path("text.txt"));
        }
        experiment
    }

    fn trainer(&self, group: &Group, run: &str, settings: &[&str]) -> Result<Trainer> {
        let path = self.path(run);
        let run = match (group.is_first(), path.exists()) {
            (true, false) => RunDir::create(&path)?,
            (true, true) => RunDir::open(&path)?,
            (false, _) => RunDir::beside(&path),
        };
        Trainer::among(self.experiment(settings), run, group.clone())
    }

    /// Trains on `size` ranks until after the update `stop_after`, or to the end; returns what each was told.
    fn train(&self, size: usize, run: &str, settings: &[&str], stop_after: Option<u64>) -> Vec<Result<(Ending, Vec<String>)>> {
        on_ranks(size, |group| {
            let mut trainer = self.trainer(&group, run, settings)?;
            let (stop, mut tale) = (AtomicBool::new(false), Vec::new());
            let ending = trainer.run(&stop, |event| {
                match &event {
                    Event::Updated(update) => {
                        tale.push(format!("{} {} {} {}", update.iteration, update.loss, update.lr, update.grad_norm));
                        // Only one rank is asked to stop.
                        if Some(update.iteration) == stop_after && group.rank() == size - 1 {
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                    Event::Evaluated { .. } => tale.push(format!("{event:?}")),
                    _ => {}
                }
                Ok(())
            })?;
            Ok((ending, tale))
        })
    }

    /// The bytes of weights and moments of a run's last checkpoint.
    fn last(&self, run: &str) -> [Vec<u8>; 2] {
        let last = minrnn::train::checkpoint(self.path(run), Pointer::Last).unwrap().unwrap();
        ["model.safetensors", "training.safetensors"].map(|name| std::fs::read(last.join(name)).unwrap())
    }
}

fn ended(outcomes: Vec<Result<(Ending, Vec<String>)>>) -> (Ending, Vec<String>) {
    let mut outcomes = outcomes.into_iter().map(Result::unwrap);
    let first = outcomes.next().unwrap();
    outcomes.for_each(|other| assert!(other == first, "ranks were told different things"));
    first
}

#[test]
fn one_two_and_four_ranks_write_the_same_bytes_and_tell_the_same() {
    let lanes = &["sampling=lanes", "conv=true", "accumulation=8"];
    for settings in
        [&[][..], &["checkpoint_blocks=true", "mixer=min-lstm", "conv=true"], &["task=selective-copying", "accumulation=8"], lanes]
    {
        let scratch = Scratch::with_text();
        let alone = ended(scratch.train(1, "1", settings, None));
        assert_eq!(alone.0, Ending::Finished);
        for size in [2, 4] {
            let found = ended(scratch.train(size, &size.to_string(), settings, None));
            assert_eq!(found, alone, "{size} ranks, {settings:?}");
            assert!(scratch.last(&size.to_string()) == scratch.last("1"), "{size} ranks, {settings:?}");
        }
    }
}

#[test]
fn ranks_that_are_no_power_of_two_give_the_same_bits_every_time_and_nearly_those_of_one() {
    let scratch = Scratch::with_text();
    let settings = ["accumulation=6"];
    let found = ["a", "b"].map(|run| (ended(scratch.train(3, run, &settings, None)), scratch.last(run)));
    assert!(found[0] == found[1]);
    ended(scratch.train(1, "1", &settings, None));
    let weights = |bytes: &[u8]| -> Vec<f32> {
        let tensors = safetensors::SafeTensors::deserialize(bytes).unwrap();
        let mut tensors = tensors.tensors();
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        tensors.iter().flat_map(|(_, tensor)| tensor.data().as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes))).collect()
    };
    let (three, one) = (weights(&found[0].1[0]), weights(&scratch.last("1")[0]));
    assert_eq!(three.len(), one.len());
    assert!(three.iter().zip(&one).all(|(a, b)| (a - b).abs() < 1e-3), "not even near");
}

#[test]
fn a_run_goes_on_bit_for_bit_with_another_number_of_ranks() {
    for settings in [&[][..], &["sampling=lanes"]] {
        let scratch = Scratch::with_text();
        ended(scratch.train(1, "whole", settings, None));
        for (before, after) in [(1, 4), (4, 2), (2, 1)] {
            let run = format!("{before}-{after}");
            assert_eq!(ended(scratch.train(before, &run, settings, Some(4))).0, Ending::Stopped);
            assert_eq!(ended(scratch.train(after, &run, settings, None)).0, Ending::Finished);
            assert!(scratch.last(&run) == scratch.last("whole"), "{run} {settings:?}");
        }
    }
}

#[test]
fn lanes_side_by_side_are_one_larger_batch_that_reads_in_order() {
    let scratch = Scratch::with_text();
    let losses = |run: &str, settings: &[&str]| -> Vec<f64> {
        let settings = [&["dropout=0", "max_iterations=30", "eval_every=100"], settings].concat();
        let (_, tale) = ended(scratch.train(1, run, &settings, None));
        let updates = tale.iter().filter(|told| !told.starts_with("Evaluated"));
        updates.map(|told| told.split(' ').nth(1).unwrap().parse().unwrap()).collect()
    };
    let larger = losses("larger", &["sampling=stream", "batch_size=16", "accumulation=1"]);
    let lanes = losses("lanes", &["sampling=lanes", "batch_size=4", "accumulation=4"]);
    let anew = losses("anew", &["sampling=stream", "batch_size=4", "accumulation=4"]);
    assert_eq!([&larger, &lanes, &anew].map(Vec::len), [30; 3]);
    assert!(larger.iter().zip(&lanes).all(|(a, b)| (a - b).abs() < 2e-4), "{larger:?} {lanes:?}");
    assert!(larger.iter().zip(&anew).any(|(a, b)| (a - b).abs() > 1e-2), "windows one after the other are others");
}

#[test]
fn numbers_of_all_ranks_come_to_the_first_bit_by_bit() {
    // More than are sent at once, and every kind of number: the multiplier is odd.
    let bits = |rank: usize| (0..3_000_000u32).map(move |i| i.wrapping_mul(2_654_435_761).wrapping_add(rank as u32));
    let found = on_ranks(3, |group| group.collect_first(&bits(group.rank()).map(f32::from_bits).collect::<Vec<_>>()));
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [3, 0, 0]);
    for (rank, values) in found[0].iter().enumerate() {
        assert!(values.iter().copied().map(f32::to_bits).eq(bits(rank)), "of rank {rank}");
    }
    assert_eq!(Group::alone().collect_first(&[1.0, 2.0]), [[1.0, 2.0]]);
}

#[test]
fn an_error_on_one_rank_ends_all_with_its_sentence_and_leaves_the_last_checkpoint() {
    let scratch = Scratch::with_text();
    for failing in [0, 1, 3] {
        let run = format!("of-{failing}");
        let outcomes = on_ranks(4, |group| {
            let mut trainer = scratch.trainer(&group, &run, &[]).unwrap();
            let outcome = trainer.run(&AtomicBool::new(false), |event| {
                let is_here = group.rank() == failing && matches!(&event, Event::Updated(update) if update.iteration == 5);
                if is_here { Err(Error::io("write", "the disk", std::io::ErrorKind::StorageFull.into())) } else { Ok(()) }
            });
            assert!(group.has_failed());
            outcome.unwrap_err()
        });
        for (rank, error) in outcomes.iter().enumerate() {
            let told = error.to_string();
            assert!(!error.is_wrong_input());
            assert!(told.ends_with("could not write 'the disk': no storage space"), "{told}");
            assert_eq!(told.starts_with(&format!("on process {failing} of 4")), rank != failing, "{told}");
        }
        let last = minrnn::train::checkpoint(scratch.path(&run), Pointer::Last).unwrap().unwrap();
        assert!(last.ends_with("iter-4"), "{}", last.display());
        ended(scratch.train(2, &run, &[], None));
    }
}

#[test]
fn a_loss_that_is_not_finite_ends_all_ranks() {
    let scratch = Scratch::with_text();
    let outcomes = scratch.train(2, "run", &["lr=100", "weight_decay=10", "warmup=0", "max_iterations=400"], None);
    for outcome in outcomes {
        let told = outcome.unwrap_err().to_string();
        assert!(told.contains("is not finite"), "{told}");
    }
}

#[test]
fn what_cannot_be_shared_out_is_refused_and_leaves_no_directory() {
    let scratch = Scratch::with_text();
    let refused = [
        (3, &[][..], "accumulation must be a multiple of the number of processes, which share it out: found 4 for 3"),
        (2, &["sampling=stream"], "sampling = stream carries a state from one micro-step"),
        (2, &["norm=batch"], "norm = batch keeps means"),
        (2, &["train_fraction=0.999"], "text.txt"),
    ];
    for (size, settings, problem) in refused {
        for (rank, outcome) in scratch.train(size, "run", settings, None).into_iter().enumerate() {
            let error = outcome.unwrap_err();
            assert!(error.is_wrong_input() && error.to_string().contains(problem), "{error}");
            assert!(rank != 0 || !error.to_string().starts_with("on process"), "{error}");
        }
        assert!(!scratch.path("run").exists());
    }
}

#[test]
fn processes_that_would_not_compute_the_same_are_refused() {
    let scratch = Scratch::with_text();
    let outcomes = on_ranks(2, |group| {
        let settings: &[&str] = if group.is_first() { &[] } else { &["lr=0.002"] };
        scratch.trainer(&group, "run", settings).map(drop).unwrap_err().to_string()
    });
    for told in outcomes {
        assert!(told.starts_with("process 1 has an experiment with the digest "), "{told}");
    }
    let outcomes = on_ranks(2, |group| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1 + group.rank()).build().unwrap();
        pool.install(|| scratch.trainer(&group, "run", &[]).map(drop).unwrap_err().to_string())
    });
    assert_eq!(outcomes[0], "process 1 has threads 2, process 0 has 1; set train.threads, so that all have the same number");
}

type OfRank = dyn Fn(usize) -> (u64, Vec<(u64, u64)>) + Sync;

#[test]
fn processes_that_would_not_score_the_same_are_refused_and_others_are_not() {
    let scratch = Scratch::new();
    let n_runs = AtomicUsize::new(0);
    // What each rank has: the seed of its weights, and seeds and sizes of its sets.
    let told = |of_rank: &OfRank| {
        on_ranks(2, |group| {
            let (weights, sets) = of_rank(group.rank());
            let settings = ["task=selective-copying", "copy_length=8", "copy_tokens=2", &format!("seed={weights}")];
            let run = RunDir::create(scratch.path(&format!("run-{}", n_runs.fetch_add(1, Ordering::Relaxed)))).unwrap();
            let trainer = Trainer::new(scratch.experiment(&settings), run).unwrap();
            let set = |(seed, n_batches): (u64, u64)| {
                let mut experiment = trainer.experiment().clone();
                experiment.train.eval_seed = Some(seed);
                trainer.data().fixed_batches(&experiment, n_batches, Purpose::TestData)
            };
            let mut sets: Vec<Box<dyn EvaluationSet>> = sets.into_iter().map(|given| set(given).unwrap()).collect();
            expect_same_scores(&group, trainer.model(), &mut sets).map_err(|error| {
                assert!(error.is_wrong_input());
                error.to_string()
            })
        })
    };
    let alike = told(&|_| (1, vec![(5, 2), (6, 3)]));
    assert_eq!(alike, [Ok(()), Ok(())]);
    let cases: [(&str, &OfRank); 4] = [
        ("weights with the checksum", &|rank| (1 + rank as u64, vec![(5, 2)])),
        ("a number of sets to score of 2, process 0 has 1", &|rank| (1, vec![(5, 2); 1 + rank])),
        ("a set to score of 3 batches", &|rank| (1, vec![(5, 2 + rank as u64)])),
        ("a set to score of 2 batches, the first with the digest", &|rank| (1, vec![(5 + rank as u64, 2)])),
    ];
    for (problem, of_rank) in cases {
        for outcome in told(of_rank) {
            let sentence = outcome.unwrap_err();
            assert!(sentence.starts_with(&format!("process 1 has {problem}")), "{sentence}");
        }
    }
}

#[test]
fn the_final_report_is_the_same_with_any_number_of_ranks() {
    let scratch = Scratch::with_text();
    let report = |size: usize, settings: &[&str]| -> FinalReport {
        let run = format!("{size}-{}", settings.len());
        ended(scratch.train(size, &run, settings, None));
        let reports = on_ranks(size, |group| {
            let trainer = scratch.trainer(&group, &run, settings).unwrap();
            trainer.final_report(&AtomicBool::new(false)).unwrap().unwrap()
        });
        reports.iter().for_each(|report| assert!(*report == reports[0]));
        reports.into_iter().next().unwrap()
    };
    let measures = |report: &FinalReport| -> (Evaluation, Vec<(u64, Evaluation)>, Option<Evaluation>) {
        (report.fixed, report.kept.clone(), report.full_pass)
    };
    let alone = report(1, &[]);
    assert!(alone.full_pass.is_some());
    assert_eq!(measures(&report(2, &[])), measures(&alone));
    assert_eq!(measures(&report(4, &[])), measures(&alone));
}

#[test]
fn a_run_directory_beside_another_process_is_neither_locked_nor_taken_away() {
    let scratch = Scratch::with_text();
    let run = RunDir::create(scratch.path("run")).unwrap();
    drop(RunDir::beside(Path::new(run.path())));
    assert!(run.path().exists());
    assert!(RunDir::open(run.path()).is_err(), "the first still has its lock");
}
