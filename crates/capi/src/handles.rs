//! Handles: a caller holds names, not addresses, so that a handle that was freed, is of another kind, or never was one is told from valid
//! ones, and nothing is read through it.
//!
//! The name of an object is a slot and the slot's generation, which increases whenever the slot is emptied. On 64-bit targets a generation
//! recurs after 2³¹ objects in one slot, on 32-bit ones after 2¹²; the slot that has been empty longest is filled first.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use crate::failure::{Failure, Result};
use crate::status::Status;

/// Bits of a name that hold the slot; those above hold the kind, the others the generation.
const SLOT_BITS: u32 = if usize::BITS == 64 { 31 } else { 18 };
const KIND_BITS: u32 = 2;
const GENERATIONS: usize = 1 << (usize::BITS - SLOT_BITS - KIND_BITS);
/// Slots of the first segment; each that follows has twice as many.
const FIRST: usize = 64;
const SEGMENTS: usize = if usize::BITS == 64 { 26 } else { 14 };

/// A type with handles.
pub trait Named {
    /// Its name in messages.
    const NAME: &'static str;
    /// A unique number below 4.
    const KIND: usize;
}

/// The generation and the kind of a name, and its slot.
fn parts(name: usize) -> (usize, usize) {
    (name >> SLOT_BITS, name & ((1 << SLOT_BITS) - 1))
}

fn mark<T: Named>(generation: usize) -> usize {
    generation << KIND_BITS | T::KIND
}

/// Slots that stay where they are.
type Segment<T> = Box<[Slot<T>]>;

/// The objects of one kind.
pub(crate) struct Table<T> {
    segments: [OnceLock<Segment<T>>; SEGMENTS],
    free: Mutex<Free>,
}

/// The generation is outside the lock, so that a stale name is recognised without it and blocks nobody.
struct Slot<T> {
    generation: AtomicUsize,
    object: RwLock<Option<T>>,
}

impl<T: Named> Slot<T> {
    /// Whether names that hold `wanted` are of this slot's generation. Only a generation read while the lock is held is that of the object in it.
    fn is(&self, wanted: usize) -> bool {
        mark::<T>(self.generation.load(Ordering::Acquire)) == wanted
    }
}

/// Slots without an object, and how many were ever filled.
struct Free {
    slots: VecDeque<usize>,
    used: usize,
}

impl<T: Named> Table<T> {
    pub const fn new() -> Self {
        Self { segments: [const { OnceLock::new() }; SEGMENTS], free: Mutex::new(Free { slots: VecDeque::new(), used: 0 }) }
    }

    /// The slot at `at`, if there ever was one.
    fn slot(&self, at: usize) -> Option<&Slot<T>> {
        let segment = (at / FIRST + 1).ilog2();
        let first = FIRST * ((1 << segment) - 1);
        self.segments.get(segment as usize)?.get()?.get(at - first)
    }

    /// The slot of a name, while the name's generation lasts.
    fn named(&self, name: usize) -> Result<(usize, &Slot<T>)> {
        let (wanted, at) = parts(name);
        self.slot(at).filter(|slot| slot.is(wanted)).map(|slot| (wanted, slot)).ok_or_else(|| unknown::<T>(name))
    }

    /// Stores `object` and returns its name.
    pub fn insert(&self, object: T) -> Result<usize> {
        let full = || Failure::new(Status::Memory, format!("there are too many of a kind ({}); free some", T::NAME));
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        // Slots are reused late: only when enough of them are free.
        let at = match free.slots.len() > FIRST / 2 {
            true => free.slots.pop_front(),
            false => None,
        };
        let at = match at {
            Some(at) => at,
            None => {
                let at = free.used;
                let segment = (at / FIRST + 1).ilog2() as usize;
                let slots = self.segments.get(segment).ok_or_else(full)?;
                if at >> SLOT_BITS != 0 {
                    return Err(full());
                }
                let empty = || (0..FIRST << segment).map(|_| Slot { generation: AtomicUsize::new(1), object: RwLock::new(None) }).collect();
                slots.get_or_init(empty);
                free.used += 1;
                at
            }
        };
        let slot = self.slot(at).ok_or_else(full)?;
        let mut held = slot.object.write().unwrap_or_else(PoisonError::into_inner);
        *held = Some(object);
        Ok(mark::<T>(slot.generation.load(Ordering::Acquire)) << SLOT_BITS | at)
    }

    /// Removes the object with this name.
    pub fn remove(&self, name: usize) -> Result<T> {
        let (_, slot) = self.named(name)?;
        let held = match slot.object.try_write() {
            Ok(held) => held,
            // An object that a panic left half done can still be freed.
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(busy::<T>()),
        };
        self.take(name, slot, held)
    }

    /// The same for an object that is never in use for long: waits until it is free.
    pub fn remove_after_use(&self, name: usize) -> Result<T> {
        let (_, slot) = self.named(name)?;
        self.take(name, slot, slot.object.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn take(&self, name: usize, slot: &Slot<T>, mut held: RwLockWriteGuard<'_, Option<T>>) -> Result<T> {
        let (wanted, at) = parts(name);
        if !slot.is(wanted) {
            return Err(unknown::<T>(name));
        }
        let object = held.take().ok_or_else(|| unknown::<T>(name))?;
        // 0, which is null, is never a name.
        let next = ((slot.generation.load(Ordering::Acquire) + 1) % GENERATIONS).max(1);
        slot.generation.store(next, Ordering::Release);
        drop(held);
        slot.object.clear_poison();
        self.free.lock().unwrap_or_else(PoisonError::into_inner).slots.push_back(at);
        Ok(object)
    }

    /// The object with this name, which others may use at the same time.
    pub fn shared(&self, name: usize) -> Result<Shared<'_, T>> {
        let (wanted, slot) = self.named(name)?;
        let held = slot.object.try_read().map_err(|error| refused::<T, _>(&error))?;
        if !slot.is(wanted) || held.is_none() {
            return Err(unknown::<T>(name));
        }
        Ok(Shared(held))
    }

    /// The object with this name, which nobody else is using.
    pub fn exclusive(&self, name: usize) -> Result<Exclusive<'_, T>> {
        let (wanted, slot) = self.named(name)?;
        let held = slot.object.try_write().map_err(|error| refused::<T, _>(&error))?;
        if !slot.is(wanted) || held.is_none() {
            return Err(unknown::<T>(name));
        }
        Ok(Exclusive(held))
    }
}

pub(crate) struct Shared<'a, T>(RwLockReadGuard<'a, Option<T>>);

impl<T> std::ops::Deref for Shared<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it was there when it was locked")
    }
}

pub(crate) struct Exclusive<'a, T>(RwLockWriteGuard<'a, Option<T>>);

impl<T> std::ops::Deref for Exclusive<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it was there when it was locked")
    }
}

impl<T> std::ops::DerefMut for Exclusive<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it was there when it was locked")
    }
}

fn unknown<T: Named>(name: usize) -> Failure {
    let name_of = T::NAME;
    match name {
        0 => Failure::new(Status::Pointer, format!("the {name_of} is a null pointer, expected one that this library gave")),
        _ => Failure::new(Status::Handle, format!("the {name_of} is none: it was freed, or is another kind of handle")),
    }
}

fn busy<T: Named>() -> Failure {
    Failure::new(Status::Busy, format!("the {} is in use by another call; give each thread one of its own", T::NAME))
}

fn refused<T: Named, G>(error: &TryLockError<G>) -> Failure {
    match error {
        TryLockError::WouldBlock => busy::<T>(),
        TryLockError::Poisoned(_) => {
            Failure::new(Status::Internal, format!("an earlier call failed inside and left the {} half done; free it", T::NAME))
        }
    }
}

/// A handle as seen by C: an opaque pointer.
#[repr(C)]
pub struct Opaque<T> {
    nothing: [u8; 0],
    kind: PhantomData<T>,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing;

    impl Named for Thing {
        const NAME: &'static str = "thing";
        const KIND: usize = 1;
    }

    #[test]
    fn a_name_of_another_generation_is_none_while_its_slot_is_in_use() {
        let things = Table::new();
        let name = things.insert(Thing).unwrap();
        let held = things.exclusive(name).unwrap();
        assert_eq!(things.shared(name).err().unwrap().status, Status::Busy);
        for other in [name + (mark::<Thing>(1) << SLOT_BITS), name & ((1 << SLOT_BITS) - 1), name ^ 1 << SLOT_BITS] {
            let refused = [things.remove(other).err(), things.shared(other).map(|_| ()).err(), things.exclusive(other).map(|_| ()).err()];
            assert!(refused.iter().all(|failure| failure.as_ref().is_some_and(|failure| failure.status != Status::Busy)), "{other:#x}");
        }
        drop(held);
        assert!(things.remove(name).is_ok());
        assert_eq!(things.shared(name).err().unwrap().status, Status::Handle);
    }
}
