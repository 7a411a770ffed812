//! Conversion between tensors of the CPU backend and the slices that kernels work on.

use std::mem::MaybeUninit;

use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::{DType, DispatchTensor, DispatchTensorKind, TensorMetadata};
use burn::tensor::{Bytes, Shape, Tensor};
use minrnn_kernels::Out;

/// The elements of a contiguous f32 tensor.
pub(super) fn slice(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice::<f32>().expect("fused operations take contiguous f32 tensors")
}

/// The elements of an optional tensor.
pub(super) fn optional(tensor: Option<&FlexTensor>) -> Option<&[f32]> {
    tensor.map(slice)
}

/// Reads the values of a tensor below autodiff, without a copy if they are in this process's memory.
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

/// The shape of a tensor.
pub(super) fn shape(tensor: &FlexTensor) -> Shape {
    tensor.shape()
}

/// Tensors of these shapes, which `write` passes to kernels as their outputs.
///
/// Every kernel writes its outputs completely, whatever it reads: that is their contract, enforced by their tests, which poison all outputs
/// first. So nothing returned from here is uninitialised, and operations need no comment on it. With debug assertions the outputs are
/// poisoned here as well, and checked afterwards.
pub(super) fn outputs<const N: usize>(shapes: [Shape; N], write: impl FnOnce([Out<'_>; N])) -> Vec<FlexTensor> {
    outputs_with(shapes, [], |outputs, []| write(outputs)).0.into()
}

/// [`outputs`], with further ones that exist only if they are wanted.
pub(super) fn outputs_with<const N: usize, const M: usize>(
    shapes: [Shape; N],
    wanted: [Option<Shape>; M],
    write: impl FnOnce([Out<'_>; N], [Option<Out<'_>>; M]),
) -> ([FlexTensor; N], [Option<FlexTensor>; M]) {
    let (mut outputs, mut more) = (shapes.map(Output::with_shape), wanted.map(|shape| shape.map(Output::with_shape)));
    write(outputs.each_mut().map(Output::out), more.each_mut().map(|output| output.as_mut().map(Output::out)));
    // SAFETY: kernels write their outputs completely, as stated at `outputs`.
    let finish = |output: Output| unsafe { output.finish() };
    (outputs.map(finish), more.map(|output| output.map(finish)))
}

/// An output a kernel is about to write.
pub(super) struct Output {
    data: Vec<MaybeUninit<f32>>,
    shape: Shape,
}

impl Output {
    /// A NaN that no computation produces.
    const POISON: u32 = 0x7fc5_a11e;

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
        if cfg!(debug_assertions) {
            data.fill(MaybeUninit::new(f32::from_bits(Self::POISON)));
        }
        Self { data, shape }
    }

    /// The elements to write.
    pub(super) fn out(&mut self) -> Out<'_> {
        Out::from(&mut self.data)
    }

    /// The tensor.
    ///
    /// # Safety
    /// Every element must have been written.
    pub(super) unsafe fn finish(self) -> FlexTensor {
        let mut data = std::mem::ManuallyDrop::new(self.data);
        // SAFETY: `MaybeUninit<f32>` has the layout of `f32`, the parts come from a live vector, and all elements are initialised.
        let data: Vec<f32> = unsafe { Vec::from_raw_parts(data.as_mut_ptr().cast(), data.len(), data.capacity()) };
        debug_assert!(data.iter().all(|x| x.to_bits() != Self::POISON), "a kernel left a part of its output as it was");
        FlexTensor::new(Bytes::from_elems(data), Layout::contiguous(self.shape), DType::F32)
    }
}

/// A tensor of one element.
pub(super) fn scalar(value: f32) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(vec![value]), Layout::contiguous([1].into()), DType::F32)
}

/// Zeros of the shape of `tensor`.
pub(super) fn zeros(tensor: &FlexTensor) -> FlexTensor {
    let zeros = vec![0.0f32; tensor.shape().num_elements()];
    FlexTensor::new(Bytes::from_elems(zeros), Layout::contiguous(tensor.shape()), DType::F32)
}

/// The inputs of an operation some of whose inputs may be absent.
#[derive(Default)]
pub(super) struct InputList(Vec<DispatchTensor>);

impl InputList {
    /// Appends an input; returns its position.
    pub(super) fn add<const D: usize>(&mut self, tensor: Tensor<D>) -> usize {
        self.0.push(tensor.into_dispatch());
        self.0.len() - 1
    }

    /// Appends an input if it exists; returns its position.
    pub(super) fn add_optional<const D: usize>(&mut self, tensor: Option<Tensor<D>>) -> Option<usize> {
        tensor.map(|tensor| self.add(tensor))
    }

    pub(super) fn into_vec(self) -> Vec<DispatchTensor> {
        self.0
    }
}
