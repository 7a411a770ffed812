//! Products of floats and of integers, rounded and summed the same way at every level.

use pulp::Simd;

/// Products of the signed 16-bit halves of each word, lower with lower and upper with upper, added. The sum must fit 31 bits and a sign.
#[inline(always)]
pub(crate) fn dot_pairs<S: Simd>(_simd: S, a: S::u32s, b: S::u32s) -> S::u32s {
    #[allow(unused_imports, reason = "only some targets have such instructions")]
    use core::mem::transmute_copy;
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_madd_epi16, _mm256_madd_epi16, _mm512_madd_epi16};
        // SAFETY: this crate's vectors come from `Level::run`, which detected their instruction set, with AVX-512 its part for 16-bit integers (BW).
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

/// Words, which are signed integers, converted to the nearest f32.
#[inline(always)]
pub(crate) fn signed_to_f32<S: Simd>(_simd: S, a: S::u32s) -> S::f32s {
    #[allow(unused_imports, reason = "only some targets have such instructions")]
    use core::mem::transmute_copy;
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_cvtepi32_ps, _mm256_cvtepi32_ps, _mm512_cvtepi32_ps};
        // SAFETY: this crate's vectors come from `Level::run`, which detected their instruction set, and these conversions belong to its first part.
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
pub(super) fn lane_by_lane<V: Copy, O: Copy>(a: V, b: V, function: impl Fn(u32, u32) -> u32) -> O {
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

/// `a b + c`: rounded once if there is an instruction for it, else twice, as emulating it would be slow. So plain x86-64 and WebAssembly,
/// which lack one, give the same bits.
#[inline(always)]
pub fn mul_add<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
    if S::F32_LANES > 4 || cfg!(target_arch = "aarch64") { simd.mul_add_e_f32s(a, b, c) } else { simd.add_f32s(simd.mul_f32s(a, b), c) }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::simd::{Level, WithSimd};

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
}
