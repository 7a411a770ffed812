//! When memory is short a call is refused, and what it was to change stays as it was.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::allocator::Asking;
use common::{attention_model, ok, prefill, refused, saved, session, step_tokens};
use minrnn_capi::*;

/// Bytes of the largest allocation that is granted.
static MOST: AtomicUsize = AtomicUsize::new(usize::MAX);

#[global_allocator]
static ALLOCATOR: Asking = Asking(|bytes| bytes <= MOST.load(Ordering::Relaxed));

/// One test, so that no other is short of memory meanwhile.
#[test]
fn what_memory_cannot_hold_is_refused_and_changes_nothing() {
    let model = attention_model(1).in_c();
    let (long, short) = (session(model, 1), session(model, 1));
    let prompt: Vec<u32> = (0..300).map(|i| i % 10).collect();
    ok(prefill(long, 0, &prompt, &mut []));
    ok(prefill(short, 0, &[1, 2, 3], &mut []));
    let (kept, all) = (saved(short), saved(long));
    let (mut buffer, mut len, mut other) = (vec![0u8; all.len()], 0, std::ptr::null_mut());
    assert!(all.len() > 1 << 14, "{}", all.len());

    MOST.store(1 << 13, Ordering::Relaxed);
    let copied = minrnn_session_copy_row(short, 0, long, 0);
    refused(copied, Status::Memory, "memory cannot hold the past tokens");
    refused(prefill(short, 0, &prompt, &mut []), Status::Memory, "memory cannot hold the past tokens");
    // SAFETY: there is room for a pointer.
    refused(unsafe { minrnn_session_fork(long, &mut other) }, Status::Memory, "memory cannot hold the past tokens");
    // Saving writes straight to the caller's buffer.
    // SAFETY: a buffer and its length.
    ok(unsafe { minrnn_session_save(long, buffer.as_mut_ptr(), buffer.len(), &mut len) });
    MOST.store(usize::MAX, Ordering::Relaxed);

    assert!(len == all.len() && buffer == all);
    assert_eq!(saved(short), kept);
    ok(minrnn_session_copy_row(short, 0, long, 0));
    let mut outputs = [0, 1].map(|_| vec![0.0; minrnn_model_size(model, 2)]);
    for (session, outputs) in [short, long].into_iter().zip(&mut outputs) {
        ok(step_tokens(session, &[], &[4], outputs));
        ok(minrnn_session_free(session));
    }
    assert_eq!(outputs[0], outputs[1]);
    ok(minrnn_model_free(model));
}
