//! What lies in the four bytes of one packed unit, and how two vectors of them are multiplied.

use core::arch::x86_64::*;

/// A kind of packed operand: a unit of four bytes holds [`Unit::DEPTH`] neighbours along the depth of one row or column.
///
/// # Safety
/// The methods use the instructions that [`Unit::run`]'s contract names: call them only below it.
pub(in super::super) trait Unit: Copy {
    /// Elements of depth in a unit.
    const DEPTH: usize;

    /// sum + Σ over the unit of left · right, lane by lane.
    unsafe fn multiply_add(sum: __m512, left: __m512i, right: __m512i) -> __m512;

    /// Lane i holds `first[i]` and, where a unit has two elements, `second[i]` of the next depth.
    unsafe fn pair(first: __m512, second: __m512) -> __m512i;

    /// Lane i holds the elements i·DEPTH.. of `first` followed by `second`.
    unsafe fn consecutive(first: __m512, second: __m512) -> __m512i;

    /// Does a piece of work with this kind's instructions.
    ///
    /// # Safety
    /// The machine has AVX-512 F, BW and VL, and AVX512-BF16 for [`Bf16`]; the piece's pointers are as [`super::Piece`] says.
    unsafe fn run(piece: super::Piece<'_>);
}

/// Two bf16, rounded to nearest even; sums stay f32.
#[derive(Clone, Copy)]
pub(in super::super) struct Bf16;

impl Unit for Bf16 {
    const DEPTH: usize = 2;

    #[inline(always)]
    unsafe fn multiply_add(sum: __m512, left: __m512i, right: __m512i) -> __m512 {
        // SAFETY: the trait's promise; both types are 64 bytes of plain data.
        unsafe { _mm512_dpbf16_ps(sum, core::mem::transmute::<__m512i, __m512bh>(left), core::mem::transmute::<__m512i, __m512bh>(right)) }
    }

    #[inline(always)]
    unsafe fn pair(first: __m512, second: __m512) -> __m512i {
        // Lane 2i of the result is element i, lane 2i + 1 element 16 + i.
        // SAFETY: the trait's promise.
        unsafe {
            let low = _mm512_cvtepu8_epi32(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
            let order = _mm512_add_epi32(_mm512_or_epi32(low, _mm512_slli_epi32::<16>(low)), _mm512_set1_epi32(16 << 16));
            _mm512_permutexvar_epi16(order, Self::consecutive(first, second))
        }
    }

    #[inline(always)]
    unsafe fn consecutive(first: __m512, second: __m512) -> __m512i {
        // SAFETY: the trait's promise; both types are 64 bytes of plain data.
        unsafe { core::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(second, first)) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn run(piece: super::Piece<'_>) {
        // SAFETY: the caller's promise.
        unsafe { piece.run::<Self>() }
    }
}
