//! What the four bytes of a packed unit contain, and how vectors of units are made and multiplied.

use core::arch::x86_64::*;

/// A kind of packed operand: a unit holds [`Operand::DEPTH`] neighbours along the depth of one row or column.
pub(in super::super) trait Operand {
    /// Elements of depth in a unit.
    const DEPTH: usize;

    /// sum + the unit products of `left` and `right`, lane by lane.
    ///
    /// # Safety
    /// Must be inlined below [`Operand::run`], where the instructions are enabled; the same holds for the other functions.
    unsafe fn multiply_add(sum: __m512, left: __m512i, right: __m512i) -> __m512;

    /// Lane i holds element i of `first` and, if a unit has two, of `second`, the next depth.
    ///
    /// # Safety
    /// See [`Operand::multiply_add`].
    unsafe fn pair(first: __m512, second: __m512) -> __m512i;

    /// Lane i holds the elements i · DEPTH.. of `first` followed by `second`.
    ///
    /// # Safety
    /// See [`Operand::multiply_add`].
    unsafe fn consecutive(first: __m512, second: __m512) -> __m512i;

    /// Does a piece of work: everything below is inlined here, where the instructions are enabled.
    ///
    /// # Safety
    /// The machine has AVX-512 F, BW and VL, and AVX512-BF16 for [`Bf16`]; the piece's pointers are as [`super::super::Piece`] says, and nothing
    /// else uses the memory it writes.
    unsafe fn run(piece: super::super::Piece<'_>);
}

/// Two bf16, rounded to nearest even. Their sums are f32.
pub(in super::super) struct Bf16;

impl Operand for Bf16 {
    const DEPTH: usize = 2;

    #[inline(always)]
    unsafe fn multiply_add(sum: __m512, left: __m512i, right: __m512i) -> __m512 {
        use core::mem::transmute;
        // SAFETY: the trait's promise; both types are 64 bytes of plain data.
        unsafe { _mm512_dpbf16_ps(sum, transmute::<__m512i, __m512bh>(left), transmute::<__m512i, __m512bh>(right)) }
    }

    #[inline(always)]
    unsafe fn pair(first: __m512, second: __m512) -> __m512i {
        // SAFETY: the trait's promise.
        unsafe {
            // Half-words in the order 0, 16, 1, 17, …
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
    unsafe fn run(piece: super::super::Piece<'_>) {
        // SAFETY: the caller's promise.
        unsafe { piece.run::<Self>() }
    }
}

/// One f32.
pub(in super::super) struct F32;

impl Operand for F32 {
    const DEPTH: usize = 1;

    #[inline(always)]
    unsafe fn multiply_add(sum: __m512, left: __m512i, right: __m512i) -> __m512 {
        // SAFETY: the trait's promise.
        unsafe { _mm512_fmadd_ps(_mm512_castsi512_ps(left), _mm512_castsi512_ps(right), sum) }
    }

    #[inline(always)]
    unsafe fn pair(first: __m512, _: __m512) -> __m512i {
        // SAFETY: the trait's promise.
        unsafe { without_subnormal(first) }
    }

    #[inline(always)]
    unsafe fn consecutive(first: __m512, _: __m512) -> __m512i {
        // SAFETY: the trait's promise.
        unsafe { without_subnormal(first) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn run(piece: super::super::Piece<'_>) {
        // SAFETY: the caller's promise.
        unsafe { piece.run::<Self>() }
    }
}

/// The values with subnormal ones replaced by 0, as the instructions of [`Bf16`] do: many processors multiply them a hundred times more slowly.
///
/// # Safety
/// See [`Operand::multiply_add`].
#[inline(always)]
unsafe fn without_subnormal(values: __m512) -> __m512i {
    // SAFETY: the trait's promise.
    unsafe {
        let bits = _mm512_castps_si512(values);
        _mm512_maskz_mov_epi32(_mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x7f80_0000)), bits)
    }
}
