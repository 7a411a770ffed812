//! States handed from one chunk of time to the next, between threads.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// One slot per chunk, and the order in which chunks are claimed.
///
/// Whoever claims a chunk claims it after its predecessor was claimed, and a claimed chunk is being worked on: waiting ends.
pub struct Handover {
    next: AtomicUsize,
    ready: Box<[AtomicBool]>,
    states: Box<[AtomicU32]>,
    width: usize,
}

impl Handover {
    /// `slots` states of at most `width` channels.
    pub fn new(slots: usize, width: usize) -> Self {
        Self {
            next: AtomicUsize::new(0),
            ready: (0..slots).map(|_| AtomicBool::new(false)).collect(),
            states: (0..slots * width).map(|_| AtomicU32::new(0)).collect(),
            width,
        }
    }

    /// Claims the next piece of work.
    pub fn claim(&self) -> Claim<'_> {
        Claim { handover: self, index: self.next.fetch_add(1, Ordering::Relaxed) }
    }

    fn slot(&self, index: usize) -> &[AtomicU32] {
        &self.states[index * self.width..(index + 1) * self.width]
    }
}

/// A claimed piece of work. Its slot counts as published when this is dropped, so that nobody waits for a thread that panicked.
pub struct Claim<'a> {
    handover: &'a Handover,
    /// Which one.
    pub index: usize,
}

impl Claim<'_> {
    /// Publishes the state for the next piece.
    pub fn publish(&self, state: &[f32]) {
        self.handover.slot(self.index).iter().zip(state).for_each(|(slot, x)| slot.store(x.to_bits(), Ordering::Relaxed));
        self.handover.ready[self.index].store(true, Ordering::Release);
    }

    /// Waits for the state of the piece before.
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
        if let Some(ready) = self.handover.ready.get(self.index) {
            ready.store(true, Ordering::Release);
        }
    }
}
