//! Vector instructions chosen at run time, and the functions every kernel needs on them.
//!
//! A kernel is a [`WithSimd`] value; [`Level::run`] compiles its body once per instruction set and picks one when called, so no
//! `target-cpu` flag is needed. Choose the level once per kernel call ([`Level::current`]), not once per row.
//!
//! Accuracy of the functions below, against f64: at most 2 units in the last place for [`exp`] on [−87, 88], 3 for [`sigmoid`], and an
//! absolute 2e-7 for [`tanh`]. Below −87 [`exp`] is 0. NaN stays NaN.

#![allow(clippy::excessive_precision, reason = "the digits are those of the polynomials' source")]

mod named;

use crate::out::Out;
use core::mem::MaybeUninit;
#[cfg(any(feature = "std", not(all(target_arch = "wasm32", target_feature = "simd128"))))]
use pulp::Scalar128b;
pub use pulp::{Simd, WithSimd};

/// A set of vector instructions.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Level {
    /// No instruction beyond the target's baseline. A module of WebAssembly with vectors and without `std` has no room for it: there it could
    /// not be chosen.
    #[cfg(any(feature = "std", not(all(target_arch = "wasm32", target_feature = "simd128"))))]
    Plain,
    /// x86-64 AVX2 and FMA.
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    Avx2(pulp::x86::V3),
    /// x86-64 AVX-512 (F, BW, CD, DQ, VL).
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    Avx512(pulp::x86::V4),
    /// 64-bit Arm NEON.
    #[cfg(all(target_arch = "aarch64", feature = "std"))]
    Neon(pulp::aarch64::Neon),
    /// WebAssembly's vectors of 128 bits, in a module that is compiled with them: a module cannot ask what its host has.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128(pulp::wasm::Simd128),
}

impl Level {
    /// Every level this machine can run, plain first, fastest last.
    #[allow(clippy::vec_init_then_push, reason = "what is pushed depends on the target")]
    pub fn available() -> alloc::vec::Vec<Level> {
        #[allow(unused_mut, reason = "only some targets add to it")]
        let mut levels = alloc::vec::Vec::new();
        #[cfg(any(feature = "std", not(all(target_arch = "wasm32", target_feature = "simd128"))))]
        levels.push(Level::Plain);
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        {
            levels.extend(pulp::x86::V3::try_new().map(Level::Avx2));
            levels.extend(pulp::x86::V4::try_new().map(Level::Avx512));
        }
        #[cfg(all(target_arch = "aarch64", feature = "std"))]
        levels.extend(pulp::aarch64::Neon::try_new().map(Level::Neon));
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        levels.extend(pulp::wasm::Simd128::try_new().map(Level::Simd128));
        levels
    }

    /// Name as understood by the environment variable `MINRNN_SIMD`, by which a level is also shown and parsed.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(any(feature = "std", not(all(target_arch = "wasm32", target_feature = "simd128"))))]
            Level::Plain => "plain",
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Level::Avx2(_) => "avx2",
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Level::Avx512(_) => "avx512",
            #[cfg(all(target_arch = "aarch64", feature = "std"))]
            Level::Neon(_) => "neon",
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Level::Simd128(_) => "simd128",
        }
    }

    /// Whether kernels on this level multiply bf16: it is AVX-512, and the CPU has AVX512-BF16 too.
    pub fn multiplies_bf16(self) -> bool {
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        return matches!(self, Level::Avx512(_)) && std::is_x86_feature_detected!("avx512bf16");
        #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
        false
    }

    /// Whether kernels on this level multiply 8-bit integers and add four products at once: it is AVX-512, and the CPU has AVX512-VNNI too.
    pub fn multiplies_int8(self) -> bool {
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        return matches!(self, Level::Avx512(_)) && std::is_x86_feature_detected!("avx512vnni");
        #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
        false
    }

    /// The level kernels use on this thread: the one set by [`Level::scope`], else the one named by `MINRNN_SIMD` if this machine
    /// has it, else the fastest available. A name that says nothing here is passed over; [`Level::from_env`] tells of it.
    #[cfg(feature = "std")]
    pub fn current() -> Level {
        chosen::current()
    }

    /// The level kernels use: without `std` nothing can be detected, so plain, but in WebAssembly what the module was compiled with.
    #[cfg(not(feature = "std"))]
    pub fn current() -> Level {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        return Level::Simd128(pulp::wasm::Simd128::try_new().expect("the module is compiled with these instructions"));
        #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
        Level::Plain
    }

    /// Runs `work` with kernels called from this thread held to this level.
    #[cfg(feature = "std")]
    pub fn scope<R>(self, work: impl FnOnce() -> R) -> R {
        chosen::scope(self, work)
    }

    /// Runs a kernel's body with this level's instructions.
    #[inline(always)]
    pub fn run<K: WithSimd>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(any(feature = "std", not(all(target_arch = "wasm32", target_feature = "simd128"))))]
            Level::Plain => Simd::vectorize(Scalar128b, kernel),
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Level::Avx2(simd) => Simd::vectorize(simd, kernel),
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Level::Avx512(simd) => Simd::vectorize(simd, kernel),
            #[cfg(all(target_arch = "aarch64", feature = "std"))]
            Level::Neon(simd) => Simd::vectorize(simd, kernel),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Level::Simd128(simd) => Simd::vectorize(simd, kernel),
        }
    }
}

#[cfg(feature = "std")]
mod chosen {
    use super::Level;
    use std::cell::Cell;
    use std::sync::OnceLock;

    thread_local!(static SCOPED: Cell<Option<Level>> = const { Cell::new(None) });

    pub fn current() -> Level {
        static DETECTED: OnceLock<Level> = OnceLock::new();
        SCOPED.get().unwrap_or_else(|| {
            *DETECTED.get_or_init(|| {
                let wanted = Level::from_env().ok().flatten();
                wanted.or_else(|| Level::available().pop()).unwrap_or(Level::Plain)
            })
        })
    }

    pub fn scope<R>(level: Level, work: impl FnOnce() -> R) -> R {
        struct Restore(Option<Level>);
        impl Drop for Restore {
            fn drop(&mut self) {
                SCOPED.set(self.0);
            }
        }
        let _restore = Restore(SCOPED.replace(Some(level)));
        work()
    }
}

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

/// Loads a vector of `some` numbers, not more than it has lanes; the others are 0.
#[inline(always)]
pub(crate) fn load_some<S: Simd>(simd: S, some: &[f32]) -> S::f32s {
    #[cfg(target_arch = "wasm32")]
    if size_of::<S::f32s>() == size_of::<[f32; 4]>() {
        // SAFETY: the sizes are equal, and both are plain data.
        return unsafe { core::mem::transmute_copy(&few::load(some)) };
    }
    simd.partial_load_f32s(some)
}

/// Stores as many lanes of a vector as `some` holds, not more than there are.
#[inline(always)]
pub(crate) fn store_some<S: Simd>(simd: S, some: &mut [f32], value: S::f32s) {
    #[cfg(target_arch = "wasm32")]
    if size_of::<S::f32s>() == size_of::<[f32; 4]>() {
        // SAFETY: the sizes are equal, and both are plain data.
        return few::store(some, &unsafe { core::mem::transmute_copy(&value) });
    }
    simd.partial_store_f32s(some, value);
}

/// Parts of vectors lane by lane, as WebAssembly has no instruction for them: in one place each, for a module is downloaded before it runs.
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

/// Stores one vector to `target[at..]`, which holds numbers already; lanes past the end of the slice are dropped.
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

/// `value + more[at..]`, or `value` where there is no more.
#[inline(always)]
pub(crate) fn plus<S: Simd>(simd: S, value: S::f32s, more: Option<&[f32]>, at: usize) -> S::f32s {
    match more {
        Some(more) => simd.add_f32s(value, load(simd, more, at)),
        None => value,
    }
}

/// Below this a gradient that is carried through time has vanished. It then is 0: on its way to nothing it would become a subnormal number, which many
/// processors multiply a hundred times as slowly (and the least of them times 0.7 is itself), here and in the products behind.
pub(crate) const TRACE: f32 = 1e-30;

/// `x`, with 0 for what is smaller than `trace`.
#[inline(always)]
pub(crate) fn without_traces<S: Simd>(simd: S, x: S::f32s, trace: f32) -> S::f32s {
    let vanished = simd.less_than_f32s(abs(simd, x), simd.splat_f32s(trace));
    simd.select_f32s(vanished, simd.splat_f32s(0.0), x)
}

/// Stores one whole vector past the caches, for outputs that do not fit them; a plain store on targets without such an instruction.
///
/// # Safety
/// `target` must be valid for writing a whole vector and aligned to its size. [`stream_fence`] must follow before another thread reads.
#[inline(always)]
pub unsafe fn stream<S: Simd>(_simd: S, target: *mut f32, value: S::f32s) {
    debug_assert!(target.addr().is_multiple_of(size_of::<S::f32s>()));
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_stream_ps, _mm256_stream_ps, _mm512_stream_ps};
        use core::mem::transmute_copy;
        // SAFETY: a vector of this size exists only where its instruction set was detected; the pointer is the caller's promise.
        match size_of::<S::f32s>() {
            64 => return unsafe { _mm512_stream_ps(target, transmute_copy(&value)) },
            32 => return unsafe { _mm256_stream_ps(target, transmute_copy(&value)) },
            16 => return unsafe { _mm_stream_ps(target, transmute_copy(&value)) },
            _ => {}
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
pub fn stream_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of every x86-64.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}

/// Products of the signed 16-bit halves of each word, lower with lower and upper with upper, added. They must fit 31 bits and a sign.
#[inline(always)]
pub fn dot_pairs<S: Simd>(_simd: S, a: S::u32s, b: S::u32s) -> S::u32s {
    #[allow(unused_imports, reason = "only some targets have such instructions")]
    use core::mem::transmute_copy;
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_madd_epi16, _mm256_madd_epi16, _mm512_madd_epi16};
        // SAFETY: a vector of this size exists only where its instruction set was detected, with AVX-512 its part for 16-bit integers (BW).
        unsafe {
            match size_of::<S::u32s>() {
                64 => return transmute_copy(&_mm512_madd_epi16(transmute_copy(&a), transmute_copy(&b))),
                32 => return transmute_copy(&_mm256_madd_epi16(transmute_copy(&a), transmute_copy(&b))),
                16 => return transmute_copy(&_mm_madd_epi16(transmute_copy(&a), transmute_copy(&b))),
                _ => {}
            }
        }
    }
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    if size_of::<S::u32s>() == 16 {
        use core::arch::aarch64::{vget_low_s16, vmull_high_s16, vmull_s16, vpaddq_s32};
        // SAFETY: the sizes are equal, and the target has these instructions.
        return unsafe {
            let (a, b) = (transmute_copy(&a), transmute_copy(&b));
            transmute_copy(&vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b)))
        };
    }
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if size_of::<S::u32s>() == 16 {
        // SAFETY: the sizes are equal, and the module was compiled with this instruction.
        return unsafe { transmute_copy(&core::arch::wasm32::i32x4_dot_i16x8(transmute_copy(&a), transmute_copy(&b))) };
    }
    lane_by_lane::<S::u32s, S::u32s>(a, b, dot_of_word)
}

#[inline(always)]
fn dot_of_word(a: u32, b: u32) -> u32 {
    let half = |word: u32, shift: u32| i32::from((word >> shift) as i16);
    (half(a, 0) * half(b, 0)).wrapping_add(half(a, 16) * half(b, 16)) as u32
}

/// Words that are signed integers, as the nearest f32.
#[inline(always)]
pub fn signed_to_f32<S: Simd>(_simd: S, a: S::u32s) -> S::f32s {
    #[allow(unused_imports, reason = "only some targets have such instructions")]
    use core::mem::transmute_copy;
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_cvtepi32_ps, _mm256_cvtepi32_ps, _mm512_cvtepi32_ps};
        // SAFETY: a vector of this size exists only where its instruction set was detected, and these conversions belong to its first part.
        unsafe {
            match size_of::<S::u32s>() {
                64 => return transmute_copy(&_mm512_cvtepi32_ps(transmute_copy(&a))),
                32 => return transmute_copy(&_mm256_cvtepi32_ps(transmute_copy(&a))),
                16 => return transmute_copy(&_mm_cvtepi32_ps(transmute_copy(&a))),
                _ => {}
            }
        }
    }
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    if size_of::<S::u32s>() == 16 {
        // SAFETY: the sizes are equal, and the target has this instruction.
        return unsafe { transmute_copy(&core::arch::aarch64::vcvtq_f32_s32(transmute_copy(&a))) };
    }
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if size_of::<S::u32s>() == 16 {
        // SAFETY: the sizes are equal.
        return unsafe { transmute_copy(&core::arch::wasm32::f32x4_convert_i32x4(transmute_copy(&a))) };
    }
    lane_by_lane::<S::u32s, S::f32s>(a, a, |a, _| (a as i32 as f32).to_bits())
}

/// A function of two vectors of words, word by word.
#[inline(always)]
fn lane_by_lane<V: Copy, O: Copy>(a: V, b: V, function: impl Fn(u32, u32) -> u32) -> O {
    assert!(size_of::<V>() == size_of::<O>());
    let mut out = core::mem::MaybeUninit::<O>::uninit();
    for lane in 0..size_of::<V>() / 4 {
        // SAFETY: vectors are plain words, as many as are counted; all of `out` is written.
        unsafe {
            let word = |v: &V| core::ptr::from_ref(v).cast::<u32>().add(lane).read();
            out.as_mut_ptr().cast::<u32>().add(lane).write(function(word(&a), word(&b)));
        }
    }
    // SAFETY: the loop has written every word of `out`, whose size is that of `V` by the assertion.
    unsafe { out.assume_init() }
}

/// `a b + c`: rounded once where an instruction does that, else twice, as the function that would have to do it is slow. So plain x86-64 and
/// WebAssembly, which lack one, give the same bits.
#[inline(always)]
pub fn mul_add<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
    if S::F32_LANES > 4 || cfg!(target_arch = "aarch64") { simd.mul_add_e_f32s(a, b, c) } else { simd.add_f32s(simd.mul_f32s(a, b), c) }
}

/// √x, with the instructions of whoever calls. libm's are SSE's whoever calls, and where registers are wide Intel's processors wait hundreds of
/// cycles for each of these.
#[cfg_attr(not(feature = "std"), allow(clippy::disallowed_methods, reason = "there are no wide registers without `std`"))]
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    #[cfg(feature = "std")]
    return x.sqrt();
    #[cfg(not(feature = "std"))]
    libm::sqrtf(x)
}

/// The same in f64.
#[cfg_attr(not(feature = "std"), allow(clippy::disallowed_methods, reason = "as above"))]
#[inline(always)]
pub fn sqrt_f64(x: f64) -> f64 {
    #[cfg(feature = "std")]
    return x.sqrt();
    #[cfg(not(feature = "std"))]
    libm::sqrt(x)
}

/// −x: the sign bit alone changes. (pulp's own function, like its |x|, may be left as a call, and a call passes vectors through memory.)
#[inline(always)]
pub fn neg<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    if HAS_BITS || S::F32_LANES > 4 { simd.xor_f32s(x, simd.splat_f32s(-0.0)) } else { lane_by_lane(x, x, |x, _| x ^ SIGN) }
}

/// |x|.
#[inline(always)]
pub fn abs<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    if HAS_BITS || S::F32_LANES > 4 {
        simd.and_f32s(x, simd.splat_f32s(f32::from_bits(!SIGN)))
    } else {
        lane_by_lane(x, x, |x, _| x & !SIGN)
    }
}

/// The bit of an f32's sign.
const SIGN: u32 = 1 << 31;

/// Whether vectors of four lanes are the target's own, so that functions of their bits are instructions.
const HAS_BITS: bool = cfg!(any(target_arch = "aarch64", target_arch = "wasm32"));

/// e^−|x|: at most 1, so that sums and products of a few never overflow. NaN stays NaN.
#[inline(always)]
pub fn exp_neg_abs<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    exp(simd, neg(simd, abs(simd, x)))
}

/// e^−u and 1 − e^−u for u ≥ 0, the second from its series where u is small: the difference would be left with few digits.
#[inline(always)]
pub fn exp_neg<S: Simd>(simd: S, u: S::f32s) -> [S::f32s; 2] {
    const NEAR: f32 = 0.5;
    let one = simd.splat_f32s(1.0);
    let e = exp(simd, neg(simd, u));
    let mut series = one;
    for n in [8.0f32, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0] {
        series = mul_add(simd, simd.mul_f32s(u, simd.splat_f32s(-1.0 / n)), series, one);
    }
    let near = simd.less_than_f32s(abs(simd, u), simd.splat_f32s(NEAR));
    [e, simd.select_f32s(near, simd.mul_f32s(u, series), simd.sub_f32s(one, e))]
}

/// e^x.
#[inline(always)]
pub fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    const LOWEST: f32 = -87.0;
    const HIGHEST: f32 = 88.0;
    // 1.5 · 2²³: adding it rounds to the nearest integer and leaves that integer in the low mantissa bits.
    const ROUND: f32 = 12_582_912.0;
    let s = |value: f32| simd.splat_f32s(value);
    let clamped = simd.min_f32s(simd.max_f32s(x, s(LOWEST)), s(HIGHEST));
    let shifted = mul_add(simd, clamped, s(core::f32::consts::LOG2_E), s(ROUND));
    let n = simd.sub_f32s(shifted, s(ROUND));
    // Reduced from x itself, not from its clamped copy: NaN and +∞ then reach the result.
    let r = mul_add(simd, n, s(-0.693_359_375), x);
    let r = mul_add(simd, n, s(2.121_944_4e-4), r);
    let mut p = s(1.987_569_1e-4);
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = mul_add(simd, p, r, s(c));
    }
    let p = simd.add_f32s(mul_add(simd, p, simd.mul_f32s(r, r), r), s(1.0));
    let exponent = simd.add_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(127u32.wrapping_sub(ROUND.to_bits())));
    let power = simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(exponent, simd.splat_u32s(23)));
    simd.select_f32s(simd.less_than_f32s(x, s(LOWEST)), s(0.0), simd.mul_f32s(p, power))
}

/// 1 / (1 + e^−x).
#[inline(always)]
pub fn sigmoid<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let one = simd.splat_f32s(1.0);
    simd.div_f32s(one, simd.add_f32s(one, exp(simd, neg(simd, x))))
}

/// σ(x) and 1 − σ(x), both with full relative accuracy: a gradient has their product as a factor.
#[inline(always)]
pub fn sigmoid_pair<S: Simd>(simd: S, x: S::f32s) -> [S::f32s; 2] {
    let one = simd.splat_f32s(1.0);
    let small = exp_neg_abs(simd, x);
    let larger = simd.div_f32s(one, simd.add_f32s(one, small));
    let smaller = simd.mul_f32s(small, larger);
    let negative = simd.less_than_f32s(x, simd.splat_f32s(0.0));
    [simd.select_f32s(negative, smaller, larger), simd.select_f32s(negative, larger, smaller)]
}

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let s = |value: f32| simd.splat_f32s(value);
    let far = mul_add(simd, s(2.0), sigmoid(simd, simd.mul_f32s(s(2.0), x)), s(-1.0));
    near_zero_tanh(simd, x, far)
}

/// tanh(x) where x is near 0, and `far` where it is not.
#[inline(always)]
pub(crate) fn near_zero_tanh<S: Simd>(simd: S, x: S::f32s, far: S::f32s) -> S::f32s {
    let s = |value: f32| simd.splat_f32s(value);
    let square = simd.mul_f32s(x, x);
    // Near 0 the difference of two close numbers would lose the relative accuracy.
    let mut p = s(-5.704_988_7e-3);
    for c in [2.063_908_9e-2, -5.373_971_4e-2, 1.333_144_2e-1, -3.333_328_2e-1] {
        p = mul_add(simd, p, square, s(c));
    }
    let near = mul_add(simd, simd.mul_f32s(p, square), x, x);
    simd.select_f32s(simd.less_than_f32s(abs(simd, x), s(0.625)), near, far)
}

/// Natural logarithm of positive, normal numbers; 0 gives −∞.
#[inline(always)]
pub fn ln<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let s = |value: f32| simd.splat_f32s(value);
    let bits = simd.transmute_u32s_f32s(x);
    // Mantissa in [√½, √2): subtract the bits of √½ before the exponent is cut off.
    let offset = simd.splat_u32s(core::f32::consts::FRAC_1_SQRT_2.to_bits());
    let from_half = simd.sub_u32s(bits, offset);
    let biased = simd.wrapping_dyn_shr_u32s(from_half, simd.splat_u32s(23));
    let mantissa_bits = simd.add_u32s(simd.and_u32s(from_half, simd.splat_u32s(0x007f_ffff)), offset);
    let m = simd.sub_f32s(simd.transmute_f32s_u32s(mantissa_bits), s(1.0));
    // The exponent as f32: sign-extended from 9 bits by a trip through the mantissa of 2²³.
    let e_bits = simd.and_u32s(simd.add_u32s(biased, simd.splat_u32s(256)), simd.splat_u32s(511));
    let e = simd.sub_f32s(simd.transmute_f32s_u32s(simd.or_u32s(e_bits, simd.splat_u32s(0x4b00_0000))), s(8_388_608.0 + 256.0));
    let mut p = s(7.037_683_6e-2);
    for c in
        [-1.151_461e-1, 1.167_699_9e-1, -1.242_014_1e-1, 1.424_932_3e-1, -1.666_805_7e-1, 2.000_071_5e-1, -2.499_999_4e-1, 3.333_333_1e-1]
    {
        p = mul_add(simd, p, m, s(c));
    }
    let square = simd.mul_f32s(m, m);
    let mut y = simd.mul_f32s(simd.mul_f32s(p, m), square);
    y = mul_add(simd, e, s(-2.121_944_4e-4), y);
    y = mul_add(simd, s(-0.5), square, y);
    let result = mul_add(simd, e, s(0.693_359_375), simd.add_f32s(m, y));
    let zero = simd.less_than_or_equal_f32s(x, s(0.0));
    let positive = simd.greater_than_f32s(x, s(0.0));
    simd.select_f32s(positive, result, simd.select_f32s(zero, s(f32::NEG_INFINITY), x))
}

/// softplus(x) = ln(1 + e^x) and its slope σ(x).
#[inline(always)]
pub fn softplus<S: Simd>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
    let (zero, one) = (simd.splat_f32s(0.0), simd.splat_f32s(1.0));
    let e = exp_neg_abs(simd, x);
    let sum = simd.add_f32s(one, e);
    // 1 + e has lost the last bits of a small e; the quotient brings them back.
    let rounded = simd.sub_f32s(sum, one);
    let tiny = simd.equal_f32s(rounded, zero);
    let logarithm = simd.mul_f32s(ln(simd, sum), simd.div_f32s(e, simd.select_f32s(tiny, one, rounded)));
    let value = simd.add_f32s(simd.max_f32s(x, zero), simd.select_f32s(tiny, e, logarithm));
    let above = simd.greater_than_f32s(x, zero);
    (value, simd.div_f32s(simd.select_f32s(above, one, e), sum))
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    struct Map<'a, F>(&'a [f32], F);

    trait Function {
        fn apply<S: Simd>(&self, simd: S, x: S::f32s) -> S::f32s;
    }

    impl<F: Function> WithSimd for Map<'_, F> {
        type Output = Vec<f32>;
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
            let mut out = Vec::with_capacity(self.0.len());
            let spare = &mut out.spare_capacity_mut()[..self.0.len()];
            for at in (0..self.0.len()).step_by(S::F32_LANES) {
                store(simd, spare, at, self.1.apply(simd, load(simd, self.0, at)));
            }
            // SAFETY: every element was stored above.
            unsafe { out.set_len(self.0.len()) };
            out
        }
    }

    macro_rules! function {
        ($name:ident) => {{
            struct F;
            impl Function for F {
                #[inline(always)]
                fn apply<S: Simd>(&self, simd: S, x: S::f32s) -> S::f32s {
                    $name(simd, x)
                }
            }
            F
        }};
    }

    /// [`dot_pairs`] and [`signed_to_f32`] of two words, by vectors and lane by lane.
    struct Words(u32, u32);

    impl WithSimd for Words {
        type Output = Vec<(u32, f32)>;
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
            let (a, b) = (simd.splat_u32s(self.0), simd.splat_u32s(self.1));
            let dot = dot_pairs(simd, a, b);
            let number = signed_to_f32(simd, a);
            let same = lane_by_lane::<S::u32s, S::u32s>(a, b, dot_of_word);
            let words = |v: S::u32s| {
                // SAFETY: a vector is as many words as it has lanes.
                (0..S::U32_LANES).map(move |lane| unsafe { core::ptr::from_ref(&v).cast::<u32>().add(lane).read() }).collect::<Vec<_>>()
            };
            let numbers = words(simd.transmute_u32s_f32s(number)).into_iter().map(f32::from_bits);
            assert_eq!(words(dot), words(same));
            words(dot).into_iter().zip(numbers).collect()
        }
    }

    #[test]
    fn products_of_pairs_match_on_every_level() {
        let pair = |low: i16, high: i16| u32::from(low as u16) | u32::from(high as u16) << 16;
        for (a, b) in [([255, 0], [-32767, 5]), ([255, 255], [32767, 32767]), ([1, -128], [-7, 300]), ([-32767, 32767], [-32767, 32767])] {
            let expected = i32::from(a[0]) * i32::from(b[0]) + i32::from(a[1]) * i32::from(b[1]);
            let (word, other) = (pair(a[0], a[1]), pair(b[0], b[1]));
            for level in Level::available() {
                for (dot, number) in level.run(Words(word, other)) {
                    assert_eq!(dot as i32, expected, "{} {a:?} {b:?}", level.name());
                    assert_eq!(number, word as i32 as f32, "{}", level.name());
                }
            }
        }
    }

    #[inline(always)]
    fn softplus_value<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        softplus(simd, x).0
    }

    #[inline(always)]
    fn softplus_slope<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        softplus(simd, x).1
    }

    fn grid(from: f32, to: f32) -> Vec<f32> {
        (0..=20_001).map(|i| from + (to - from) * i as f32 / 20_001.0).collect()
    }

    #[test]
    fn functions_match_f64_on_every_level() {
        macro_rules! check_function {
            ($name:ident, $exact:expr, $inputs:expr, $relative:expr, $absolute:expr) => {{
                for level in Level::available() {
                    let inputs = $inputs;
                    for (x, y) in inputs.iter().zip(level.run(Map(&inputs, function!($name)))) {
                        let expected: f64 = ($exact)(f64::from(*x));
                        let error = (f64::from(y) - expected).abs();
                        assert!(
                            error <= $relative * expected.abs() + $absolute,
                            "{} {}({x}) = {y}, expected {expected}",
                            level.name(),
                            stringify!($name)
                        );
                    }
                }
            }};
        }
        check_function!(exp, f64::exp, grid(-87.0, 88.0), 2.4e-7, 0.0);
        check_function!(sigmoid, |x: f64| 1.0 / (1.0 + (-x).exp()), grid(-80.0, 80.0), 4e-7, 0.0);
        check_function!(tanh, f64::tanh, grid(-12.0, 12.0), 3e-7, 1e-9);
        check_function!(softplus_value, |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p(), grid(-80.0, 80.0), 5e-7, 0.0);
        check_function!(softplus_slope, |x: f64| 1.0 / (1.0 + (-x).exp()), grid(-80.0, 80.0), 4e-7, 0.0);
        check_function!(ln, f64::ln, grid(1e-30, 5.0), 2e-7, 1e-7);
        check_function!(ln, f64::ln, grid(1e-6, 1e30), 2e-7, 1e-7);
    }

    #[test]
    fn special_values_behave() {
        for level in Level::available() {
            let y = level.run(Map(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -200.0, 200.0], function!(exp)));
            assert!(y[0].is_nan() && y[1] == f32::INFINITY && y[2] == 0.0 && y[3] == 0.0 && y[4] > 1e38, "{}: {y:?}", level.name());
            let y = level.run(Map(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -200.0, 200.0], function!(sigmoid)));
            assert!(y[0].is_nan() && y[1] == 1.0 && y[2] == 0.0 && y[3] == 0.0 && y[4] == 1.0, "{}: {y:?}", level.name());
            let y = level.run(Map(&[0.0, 1.0, f32::NAN], function!(ln)));
            assert!(y[0] == f32::NEG_INFINITY && y[1] == 0.0 && y[2].is_nan(), "{}: {y:?}", level.name());
        }
    }
}
