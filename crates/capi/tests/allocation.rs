//! Steps, rows of a table and draws allocate nothing once they have been done.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::allocator::Asking;
use common::{classifier, forecaster, ok, prefill, session, step_tokens, table_step, text_model};
use minrnn_capi::*;
use minrnn_model::MixerKind;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Asking = Asking(|_| {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    true
});

/// Allocations of fifty runs of `work`, once the histories of rows have reached their full size. There is only one test, so that no other
/// allocates meanwhile.
fn counted(mut work: impl FnMut()) -> usize {
    (0..150).for_each(|_| work());
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    (0..50).for_each(|_| work());
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn what_is_done_often_allocates_nothing() {
    let model = text_model(MixerKind::MinGru, 1).in_c();
    let here = session(model, 3);
    let v = minrnn_model_size(model, 2);
    let (mut logits, mut token, mut sampler) = (vec![0.0; 3 * v], 1, std::ptr::null_mut());
    // SAFETY: there is room for a pointer.
    ok(unsafe { minrnn_sampler_new(1, &mut sampler) });
    ok(minrnn_sampler_set(sampler, 4, 1.2));
    let text = counted(|| {
        ok(step_tokens(here, &[], &[token, 1, 2], &mut logits));
        ok(step_tokens(here, &[1], &[token], &mut logits[..v]));
        // SAFETY: buffers and their lengths.
        ok(unsafe { minrnn_sampler_sample(sampler, logits.as_mut_ptr(), v, [1, 2].as_ptr(), 2, &mut token) });
    });
    ok(prefill(here, 0, &[1, 2, 3], &mut []));
    let rows = [classifier(1), forecaster(1)].map(|packed| {
        let model = packed.in_c();
        let (here, columns) = (session(model, 2), minrnn_model_size(model, 4));
        let (values, mut predictions) = (vec![1.0; 2 * columns], vec![0.0; 2 * minrnn_model_size(model, 9)]);
        counted(|| ok(table_step(here, &[], &values, &mut predictions)))
    });
    assert_eq!((text, rows), (0, [0, 0]));
}
