//! Loading and storing vectors: whole ones and parts, bypassing the caches, and prefetching.

use crate::out::Out;
use core::mem::MaybeUninit;
use pulp::Simd;

/// Loads one vector from `source[at..]`; lanes past the end of the slice are 0.
#[inline(always)]
pub fn load<S: Simd>(simd: S, source: &[f32], at: usize) -> S::f32s {
    let rest = &source[at..];
    if rest.len() >= S::F32_LANES {
        // SAFETY: `rest` holds a whole vector, and `f32s` is plain data of that size.
        unsafe { rest.as_ptr().cast::<S::f32s>().read_unaligned() }
    } else {
        load_some(simd, rest)
    }
}

/// Stores one vector to `target[at..]`; lanes past the end of the slice are dropped.
#[inline(always)]
pub fn store<S: Simd>(simd: S, target: &mut [MaybeUninit<f32>], at: usize, value: S::f32s) {
    let rest = &mut target[at..];
    if rest.len() >= S::F32_LANES {
        // SAFETY: `rest` has room for a whole vector.
        unsafe { rest.as_mut_ptr().cast::<S::f32s>().write_unaligned(value) }
    } else {
        // SAFETY: `partial_store_f32s` only writes, so the slice need not be initialised.
        let rest = unsafe { core::slice::from_raw_parts_mut(rest.as_mut_ptr().cast::<f32>(), rest.len()) };
        store_some(simd, rest, value);
    }
}

/// Loads a vector from `some`, which has at most as many numbers as there are lanes; the other lanes are 0.
#[inline(always)]
pub(crate) fn load_some<S: Simd>(simd: S, some: &[f32]) -> S::f32s {
    #[cfg(target_arch = "wasm32")]
    if size_of::<S::f32s>() == size_of::<[f32; 4]>() {
        // SAFETY: the sizes are equal, and both are plain data.
        return unsafe { core::mem::transmute_copy(&few::load(some)) };
    }
    simd.partial_load_f32s(some)
}

/// Stores as many lanes of a vector as `some` has numbers, at most all of them.
#[inline(always)]
pub(crate) fn store_some<S: Simd>(simd: S, some: &mut [f32], value: S::f32s) {
    #[cfg(target_arch = "wasm32")]
    if size_of::<S::f32s>() == size_of::<[f32; 4]>() {
        // SAFETY: the sizes are equal, and both are plain data.
        return few::store(some, &unsafe { core::mem::transmute_copy(&value) });
    }
    simd.partial_store_f32s(some, value);
}

/// Parts of vectors lane by lane, as WebAssembly has no instruction for them; not inlined, since a module is downloaded before it runs.
#[cfg(target_arch = "wasm32")]
mod few {
    #[cold]
    #[inline(never)]
    pub fn load(some: &[f32]) -> [f32; 4] {
        let mut lanes = [0.0; 4];
        lanes.iter_mut().zip(some).for_each(|(lane, &value)| *lane = value);
        lanes
    }

    #[cold]
    #[inline(never)]
    pub fn store(some: &mut [f32], lanes: &[f32; 4]) {
        some.iter_mut().zip(lanes).for_each(|(value, &lane)| *value = lane);
    }
}

/// Stores one vector to `target[at..]`, which is already initialised; lanes past the end of the slice are dropped.
#[inline(always)]
pub fn put<S: Simd>(simd: S, target: &mut [f32], at: usize, value: S::f32s) {
    store(simd, Out::new(target).slots(), at, value);
}

/// `target[at..] += value`; lanes past the end of the slice are dropped.
#[inline(always)]
pub(crate) fn add_to<S: Simd>(simd: S, target: &mut [f32], at: usize, value: S::f32s) {
    let sum = simd.add_f32s(load(simd, target, at), value);
    put(simd, target, at, sum);
}

/// `value + more[at..]`, or `value` if there is no `more`.
#[inline(always)]
pub(crate) fn plus<S: Simd>(simd: S, value: S::f32s, more: Option<&[f32]>, at: usize) -> S::f32s {
    match more {
        Some(more) => simd.add_f32s(value, load(simd, more, at)),
        None => value,
    }
}

/// Stores one whole vector, bypassing the caches, for outputs that do not fit into them; a plain store on targets without such an instruction.
///
/// # Safety
/// `target` must be valid for writing a whole vector and aligned to its size. [`stream_fence`] must follow before another thread reads.
#[inline(always)]
pub(crate) unsafe fn stream<S: Simd>(_simd: S, target: *mut f32, value: S::f32s) {
    debug_assert!(target.addr().is_multiple_of(size_of::<S::f32s>()));
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_stream_ps, _mm256_stream_ps, _mm512_stream_ps};
        use core::mem::transmute_copy;
        // SAFETY: this crate's vectors come from `Level::run`, which detected their instruction set; the pointer is the caller's promise.
        unsafe {
            match size_of::<S::f32s>() {
                64 => return _mm512_stream_ps(target, transmute_copy(&value)),
                32 => return _mm256_stream_ps(target, transmute_copy(&value)),
                16 => return _mm_stream_ps(target, transmute_copy(&value)),
                _ => {}
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { target.cast::<S::f32s>().write_unaligned(value) }
}

/// Prefetches the cache line at `source`, which need not be a valid address.
#[inline(always)]
pub fn prefetch(source: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(source.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = source;
}

/// [`prefetch`] into the second-level cache, for what is needed later.
#[inline(always)]
pub fn prefetch_far(source: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(source.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = source;
}

/// Makes the stores of [`stream`] visible to whoever synchronises with this thread afterwards.
#[inline(always)]
pub(crate) fn stream_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of every x86-64.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}
