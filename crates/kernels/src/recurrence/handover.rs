//! Passes states from one chunk of time to the next, between threads.

use super::plan::Plan;
use crate::grid;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// One slot per chunk, and the order in which chunks are claimed.
///
/// A chunk waits only for its predecessor, which was claimed earlier by a running thread that itself waits only for earlier ones: so
/// waiting always ends.
pub struct Handover {
    next: AtomicUsize,
    ready: Box<[AtomicBool]>,
    states: Box<[AtomicU32]>,
    width: usize,
}

impl Handover {
    /// Slots for the blocks of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let (slots, width) = (plan.tasks(), plan.channel_block());
        Self {
            next: AtomicUsize::new(0),
            ready: (0..slots).map(|_| AtomicBool::new(false)).collect(),
            states: (0..slots * width).map(|_| AtomicU32::new(0)).collect(),
            width,
        }
    }

    /// Runs every block on the ambient pool. Each thread has its own `room` for what a first pass stores for the second.
    pub fn run<R>(&self, plan: &Plan, room: impl Fn() -> R + Sync + Send, block: impl Fn(&Claim, &mut R) + Sync + Send) {
        grid::for_each(grid::threads().min(plan.tasks()), |_| {
            let mut room = room();
            while let Some(claim) = self.claim() {
                block(&claim, &mut room);
                #[cfg(feature = "std")]
                crate::schedule::task_ends();
            }
        });
    }

    /// Claims the next piece of work, if there is one.
    fn claim(&self) -> Option<Claim<'_>> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.ready.len()).then(|| Claim { handover: self, index })
    }

    fn slot(&self, index: usize) -> &[AtomicU32] {
        &self.states[index * self.width..(index + 1) * self.width]
    }
}

/// A claimed piece of work. Its slot counts as published when this is dropped, so that no thread waits for one that panicked.
pub struct Claim<'a> {
    handover: &'a Handover,
    /// The index of the piece.
    pub index: usize,
}

impl Claim<'_> {
    /// Publishes the state for the next piece.
    pub fn publish(&self, state: &[f32]) {
        self.handover.slot(self.index).iter().zip(state).for_each(|(slot, x)| slot.store(x.to_bits(), Ordering::Relaxed));
        self.handover.ready[self.index].store(true, Ordering::Release);
    }

    /// Waits for the state of the previous piece.
    pub fn wait(&self, state: &mut [f32]) {
        let before = self.index - 1;
        let mut spins = 0u32;
        while !self.handover.ready[before].load(Ordering::Acquire) {
            spins += 1;
            if spins < 200 {
                core::hint::spin_loop();
            } else {
                #[cfg(feature = "std")]
                std::thread::yield_now();
            }
        }
        self.handover.slot(before).iter().zip(state).for_each(|(slot, x)| *x = f32::from_bits(slot.load(Ordering::Relaxed)));
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.handover.ready[self.index].store(true, Ordering::Release);
    }
}
