//! Between tensors of the CPU backend and the slices kernels work on.

use std::mem::MaybeUninit;

use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::{DType, DispatchTensor, DispatchTensorKind, TensorMetadata};
use burn::tensor::{Bytes, Shape, Tensor};

/// The elements of a contiguous f32 tensor.
pub(super) fn slice(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice::<f32>().expect("fused operations take contiguous f32 tensors")
}

/// The elements of an optional tensor.
pub(super) fn optional(tensor: Option<&FlexTensor>) -> Option<&[f32]> {
    tensor.map(slice)
}

/// Reads the values of a tensor below autodiff, without a copy where they lie in this process.
pub(super) fn with_values<R>(tensor: &Tensor<1>, read: impl FnOnce(&[f32]) -> R) -> R {
    if let DispatchTensorKind::Flex(inner) = tensor.clone().into_dispatch().kind {
        return read(slice(&inner.float().to_contiguous()));
    }
    read(tensor.to_data().as_slice::<f32>().expect("float tensors are f32"))
}

/// The sizes of a tensor of `D` dimensions.
pub(super) fn dims<const D: usize>(tensor: &FlexTensor) -> [usize; D] {
    tensor.shape().dims()
}

/// An output a kernel is about to write.
pub(super) struct Output {
    data: Vec<MaybeUninit<f32>>,
    shape: Shape,
}

impl Output {
    pub(super) fn new<const D: usize>(shape: [usize; D]) -> Self {
        Self::with_shape(shape.into())
    }

    pub(super) fn like(tensor: &FlexTensor) -> Self {
        Self::with_shape(tensor.shape())
    }

    fn with_shape(shape: Shape) -> Self {
        let len = shape.num_elements();
        let mut data = Vec::with_capacity(len);
        // SAFETY: uninitialised elements are valid for `MaybeUninit`, and the capacity is `len`.
        unsafe { data.set_len(len) };
        Self { data, shape }
    }

    /// The elements to write.
    pub(super) fn out(&mut self) -> &mut [MaybeUninit<f32>] {
        &mut self.data
    }

    /// The tensor.
    ///
    /// # Safety
    /// Every element must have been written.
    pub(super) unsafe fn finish(self) -> FlexTensor {
        let mut data = std::mem::ManuallyDrop::new(self.data);
        // SAFETY: `MaybeUninit<f32>` has the layout of `f32`, the parts come from a live vector, and all elements are initialised.
        let data: Vec<f32> = unsafe { Vec::from_raw_parts(data.as_mut_ptr().cast(), data.len(), data.capacity()) };
        FlexTensor::new(Bytes::from_elems(data), Layout::contiguous(self.shape), DType::F32)
    }
}

/// Zeros of the shape of `tensor`.
pub(super) fn zeros(tensor: &FlexTensor) -> FlexTensor {
    let mut zeros = Output::like(tensor);
    zeros.out().fill(MaybeUninit::new(0.0));
    // SAFETY: filled.
    unsafe { zeros.finish() }
}

/// The inputs of an operation some of whose inputs may be absent.
#[derive(Default)]
pub(super) struct InputList(Vec<DispatchTensor>);

impl InputList {
    /// Appends an input; its position.
    pub(super) fn add<const D: usize>(&mut self, tensor: Tensor<D>) -> usize {
        self.0.push(tensor.into_dispatch());
        self.0.len() - 1
    }

    /// Appends an input if it is there; its position.
    pub(super) fn add_optional<const D: usize>(&mut self, tensor: Option<Tensor<D>>) -> Option<usize> {
        tensor.map(|tensor| self.add(tensor))
    }

    pub(super) fn into_vec(self) -> Vec<DispatchTensor> {
        self.0
    }
}
