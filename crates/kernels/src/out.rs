//! Outputs of kernels.

use crate::shape::expect_len;
use alloc::vec::Vec;
use core::mem::MaybeUninit;

/// An output of a kernel: numbers, or uninitialised memory. Kernels write every element, and read none that they have not written.
///
/// It is made with `into()` from a mutable slice, array or vector of `f32` or of `MaybeUninit<f32>`, or with [`Out::new`]. Only kernels
/// have access to its content, so initialised numbers stay initialised:
///
/// ```compile_fail,E0624
/// let mut numbers = [1.0f32; 3];
/// let out = minrnn_kernels::Out::new(&mut numbers);
/// out.slots()[0] = core::mem::MaybeUninit::uninit();
/// ```
#[derive(Debug)]
pub struct Out<'a>(Slots<'a>);

/// The memory behind an [`Out`]. It may hold numbers, which must stay numbers: nothing uninitialised is written there.
pub(crate) type Slots<'a> = &'a mut [MaybeUninit<f32>];

impl<'a> Out<'a> {
    /// An output to numbers, which the kernel overwrites.
    #[inline(always)]
    pub const fn new(numbers: &'a mut [f32]) -> Self {
        // SAFETY: the same layout and length. Only kernels write there, and they write numbers.
        Self(unsafe { core::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), numbers.len()) })
    }

    /// Its number of elements.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no elements.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a kernel writes to.
    #[inline(always)]
    pub(crate) fn slots(self) -> Slots<'a> {
        self.0
    }

    /// The same output for a shorter lifetime.
    #[inline(always)]
    pub(crate) fn reborrow(&mut self) -> Out<'_> {
        Out(self.0)
    }

    /// The first `at` elements and the others.
    #[inline(always)]
    pub(crate) fn split_at(self, at: usize) -> [Self; 2] {
        let (first, second) = self.0.split_at_mut(at);
        [Self(first), Self(second)]
    }

    /// [`expect_len`].
    #[track_caller]
    pub(crate) fn expect_len(&self, name: &str, expected: usize) {
        expect_len(name, self.0, expected);
    }
}

/// No elements.
impl Default for Out<'_> {
    #[inline(always)]
    fn default() -> Self {
        Self(&mut [])
    }
}

impl<'a> From<&'a mut [f32]> for Out<'a> {
    #[inline(always)]
    fn from(numbers: &'a mut [f32]) -> Self {
        Self::new(numbers)
    }
}

impl<'a, const N: usize> From<&'a mut [f32; N]> for Out<'a> {
    #[inline(always)]
    fn from(numbers: &'a mut [f32; N]) -> Self {
        Self::new(numbers)
    }
}

impl<'a> From<&'a mut Vec<f32>> for Out<'a> {
    #[inline(always)]
    fn from(numbers: &'a mut Vec<f32>) -> Self {
        Self::new(numbers)
    }
}

impl<'a> From<&'a mut [MaybeUninit<f32>]> for Out<'a> {
    #[inline(always)]
    fn from(room: &'a mut [MaybeUninit<f32>]) -> Self {
        Self(room)
    }
}

impl<'a, const N: usize> From<&'a mut [MaybeUninit<f32>; N]> for Out<'a> {
    #[inline(always)]
    fn from(room: &'a mut [MaybeUninit<f32>; N]) -> Self {
        Self(room)
    }
}

impl<'a> From<&'a mut Vec<MaybeUninit<f32>>> for Out<'a> {
    #[inline(always)]
    fn from(room: &'a mut Vec<MaybeUninit<f32>>) -> Self {
        Self(room)
    }
}
