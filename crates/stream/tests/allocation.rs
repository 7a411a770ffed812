//! A step allocates nothing once its workspace has grown.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{REFERENCED, model, small};
use minrnn_model::{FeedForwardKind, GruForm, ModelConfig, NormKind, WeightFormat};
use minrnn_stream::Workspace;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_step_inside_a_pool_allocates_nothing() {
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
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
                    let before = ALLOCATIONS.load(Ordering::Relaxed);
                    steps(50);
                    ALLOCATIONS.load(Ordering::Relaxed) - before
                });
                assert_eq!(counted, 0, "{mixer} in {format} on {threads} threads");
            }
        }
    }
}
