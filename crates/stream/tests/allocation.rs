//! A step allocates nothing once its workspace has grown.

mod common;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::allocator::Asking;
use common::tables::{classifier, of_values, several};
use common::{REFERENCED, drawn, drawn_model, model, small, weights};
use minrnn_model::{FeedForwardKind, GruForm, Missing, MixerKind, ModelConfig, NormKind, Pooling, Positions, WeightFormat};
use minrnn_stream::{AlignedBytes, PackedModel, TableSessions, Workspace};

/// Allocations of the threads that count with it. The harness allocates on threads of its own, whenever another test ends.
#[derive(Default)]
struct Asked {
    times: AtomicUsize,
    bytes: AtomicUsize,
}

impl Asked {
    fn times(&self) -> usize {
        self.times.load(Ordering::Relaxed)
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

thread_local! {
    static COUNTED_BY: Cell<Option<&'static Asked>> = const { Cell::new(None) };
}

/// A counter for one test, which lasts as long as the program.
fn counter() -> &'static Asked {
    Box::leak(Box::default())
}

/// A pool whose threads are counted, and the counter.
fn counted_pool(threads: usize) -> (rayon::ThreadPool, &'static Asked) {
    let asked = counter();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).start_handler(move |_| COUNTED_BY.set(Some(asked)));
    let pool = pool.build().unwrap();
    pool.install(|| drop(std::hint::black_box(vec![threads])));
    assert!(asked.times() > 0, "nothing is counted");
    (pool, asked)
}

/// Grants every allocation.
fn count(bytes: usize) -> bool {
    if let Some(asked) = COUNTED_BY.get() {
        asked.times.fetch_add(1, Ordering::Relaxed);
        asked.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
    true
}

#[global_allocator]
static ALLOCATOR: Asking = Asking(count);

#[test]
fn a_row_of_a_table_allocates_nothing_whether_or_not_it_is_the_last_of_its_step() {
    let (pool, asked) = counted_pool(1);
    for (model, task) in [(of_values(3), classifier()), several(MixerKind::MinGru, 3, Missing::Mask)] {
        let mut sessions = TableSessions::new(&model, &task, 3).unwrap();
        let counted = pool.install(|| {
            // The sessions are at different rows of their steps.
            sessions.step(&model, &task, &[1], &[1.0, 2.0]).unwrap();
            let mut steps = |n| (0..n).for_each(|_| _ = sessions.step(&model, &task, &[0, 1, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap());
            steps(500);
            let before = asked.times();
            steps(50);
            asked.times() - before
        });
        assert_eq!(counted, 0);
    }
}

#[test]
fn a_step_inside_a_pool_allocates_nothing() {
    for threads in [1, 2] {
        let (pool, asked) = counted_pool(threads);
        for mixer in REFERENCED {
            let config = ModelConfig { d_model: 192, conv: true, ff: FeedForwardKind::Gated, norm: NormKind::Layer, ..small(mixer) };
            for (config, &format) in
                [config.clone(), ModelConfig { gru_form: GruForm::Torch, ..config }].iter().zip(&WeightFormat::ALL[1..])
            {
                let model = model(config, format);
                let (mut state, mut workspace, mut logits) =
                    (model.init_state(3).unwrap(), Workspace::new(), vec![0.0; 3 * config.vocab_size]);
                let counted = pool.install(|| {
                    let mut steps = |n| (0..n).for_each(|_| model.step(&[1, 2, 3], &mut state, &mut logits, &mut workspace).unwrap());
                    steps(3);
                    let before = asked.times();
                    steps(50);
                    asked.times() - before
                });
                assert_eq!(counted, 0, "{mixer} in {format} on {threads} threads");
            }
        }
    }
}

/// Caches that are full but for room for a few steps are as good as states of a fixed size.
#[test]
fn a_step_of_numbers_allocates_nothing_whatever_the_mixer() {
    let (pool, asked) = counted_pool(1);
    for &mixer in MixerKind::ALL {
        let base = ModelConfig { vocab_size: 0, input_width: 3, n_outputs: 2, max_seq_len: 9, ..small(mixer) };
        for config in [
            ModelConfig { pooling: Pooling::Mean, pair_head: true, positions: Positions::Learned, ..base.clone() },
            if mixer == MixerKind::Attention { ModelConfig { positions: Positions::Rotary, ..base } } else { base },
        ] {
            let model = drawn_model(&config, WeightFormat::Bf16);
            let (mut state, mut workspace, mut outputs) = (model.init_state(2).unwrap(), Workspace::new(), vec![0.0; 4]);
            let counted = pool.install(|| {
                let mut steps = |n| (0..n).for_each(|_| model.step_values(&[0.5; 6], &mut state, &mut outputs, &mut workspace).unwrap());
                steps(30);
                let before = asked.times();
                steps(50);
                asked.times() - before
            });
            assert_eq!(counted, 0, "{mixer}");
        }
    }
}

/// A model that stays in the memory of its file copies everything but the matrices.
#[test]
fn a_model_in_the_memory_of_its_file_makes_no_second_copy() {
    let asked = counter();
    COUNTED_BY.set(Some(asked));
    let config = ModelConfig { d_model: 192, n_layers: 2, ..small(MixerKind::MinGru) };
    let (directory, tensors) = (tempfile::tempdir().unwrap(), drawn(&config, 7));
    let path = directory.path().join("model.minrnn");
    for &format in WeightFormat::ALL {
        let entries = PackedModel::write(&path, &config, &mut weights(&tensors), format, &[]).unwrap();
        let matrices: usize = entries.iter().filter(|entry| entry.shape.len() == 2).map(|entry| entry.bytes).sum();
        let bytes = AlignedBytes::copied(&std::fs::read(&path).unwrap()).unwrap();
        let counted = |load: &dyn Fn() -> PackedModel| {
            let before = asked.bytes();
            let model = load();
            let taken = asked.bytes() - before;
            drop(model);
            taken
        };
        let shared = counted(&|| PackedModel::from_aligned(&bytes).unwrap());
        let copied = counted(&|| PackedModel::from_bytes(&bytes).unwrap());
        assert!(copied - shared >= matrices && shared < matrices / 4, "{format}: {shared} and {copied} bytes, {matrices} of matrices");
    }
}
