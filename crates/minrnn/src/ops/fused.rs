//! How a fused operation with a hand-written backward pass is added to Burn.
//!
//! An operation is one value that implements [`FusedOp`]: what it computes on the CPU backend's tensors, what it keeps for the backward
//! pass, and its gradients, and the same on the GPU's tensors if it has GPU kernels. Everything else is implemented once here: the backend
//! extension, the autodiff nodes, and operations with several outputs.
//!
//! **Several outputs.** A node of Burn's autodiff graph has one output. An operation with more gets a carrier node (a one-element output
//! whose parents are the inputs) and one child node per output. Each child's backward pass puts its gradient into a slot shared with the
//! carrier; the carrier, which runs after all its children because nodes run by descending depth, reads the slots and treats an empty one
//! as zero.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, DispatchDevice, DispatchTensor, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Device, Tensor};
#[cfg(feature = "gpu")]
use burn_cubecl::{CubeBackend, kernel::into_contiguous, tensor::CubeTensor};

#[cfg(feature = "gpu")]
use super::gpu::{op::GpuOp, tensors::Like};

/// An operation on the CPU backend, forward and backward. Inputs are in the order fixed by the operation's own file; all are contiguous f32
/// tensors.
pub(crate) trait FusedOp: Debug + Send + Sync + 'static {
    /// Which inputs and which outputs the backward pass reads.
    fn keeps(&self) -> Keeps;

    /// The outputs.
    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor>;

    /// Gradients of all inputs, from the kept tensors (`None` where not kept) and the gradients of the outputs (`None` where no
    /// gradient arrived).
    fn backward(&self, inputs: &[Option<FlexTensor>], outputs: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor>;

    /// The same on a GPU, for operations with kernels there.
    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        None
    }

    /// The same for an operation that runs on a GPU.
    #[cfg(feature = "gpu")]
    fn on_gpu(&self) -> &dyn GpuOp {
        self.gpu().expect("only operations with kernels are sent here")
    }
}

/// Positions of the inputs and outputs that are kept for the backward pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keeps {
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
}

/// A shared operation, as passed through Burn.
pub(crate) type SharedOp = Arc<dyn FusedOp>;

/// What the backward pass of an operation reads.
#[derive(Debug, Clone)]
pub(crate) struct Tape<B: Backend> {
    pub op: SharedOp,
    pub inputs: Vec<Option<FloatTensor<B>>>,
    pub outputs: Vec<Option<FloatTensor<B>>>,
    /// The shapes of all inputs, kept or not.
    #[cfg(feature = "fusion")]
    pub inputs_like: Vec<Like>,
}

#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait FusedBackend: Backend {
    /// The first `count` of eight inputs are real, the others copies of the first: the macro that routes to backends takes neither a
    /// list nor an option.
    #[allow(clippy::too_many_arguments, reason = "one argument per input")]
    fn fused(
        op: SharedOp,
        count: usize,
        i0: FloatTensor<Self>,
        i1: FloatTensor<Self>,
        i2: FloatTensor<Self>,
        i3: FloatTensor<Self>,
        i4: FloatTensor<Self>,
        i5: FloatTensor<Self>,
        i6: FloatTensor<Self>,
        i7: FloatTensor<Self>,
    ) -> Vec<FloatTensor<Self>>;
}

/// The backward half; only ever called on the backend below autodiff.
pub(crate) trait FusedBackward: FusedBackend {
    fn fused_backward(tape: &Tape<Self>, d_outputs: Vec<Option<FloatTensor<Self>>>) -> Vec<FloatTensor<Self>>;
}

impl FusedBackend for Flex {
    fn fused(
        op: SharedOp,
        count: usize,
        i0: FlexTensor,
        i1: FlexTensor,
        i2: FlexTensor,
        i3: FlexTensor,
        i4: FlexTensor,
        i5: FlexTensor,
        i6: FlexTensor,
        i7: FlexTensor,
    ) -> Vec<FlexTensor> {
        let inputs: Vec<FlexTensor> = [i0, i1, i2, i3, i4, i5, i6, i7].iter().take(count).map(FlexTensor::to_contiguous).collect();
        op.forward(&inputs)
    }
}

impl FusedBackward for Flex {
    fn fused_backward(tape: &Tape<Self>, d_outputs: Vec<Option<FlexTensor>>) -> Vec<FlexTensor> {
        let contiguous = |tensors: &[Option<FlexTensor>]| -> Vec<Option<FlexTensor>> {
            tensors.iter().map(|t| t.as_ref().map(FlexTensor::to_contiguous)).collect()
        };
        tape.op.backward(&contiguous(&tape.inputs), &contiguous(&tape.outputs), &contiguous(&d_outputs))
    }
}

#[cfg(feature = "gpu")]
impl FusedBackend for CubeBackend {
    fn fused(
        op: SharedOp,
        count: usize,
        i0: CubeTensor,
        i1: CubeTensor,
        i2: CubeTensor,
        i3: CubeTensor,
        i4: CubeTensor,
        i5: CubeTensor,
        i6: CubeTensor,
        i7: CubeTensor,
    ) -> Vec<CubeTensor> {
        let inputs: Vec<CubeTensor> = [i0, i1, i2, i3, i4, i5, i6, i7].into_iter().take(count).map(into_contiguous).collect();
        let outputs = op.on_gpu().forward(&inputs);
        let like = |tensors: &[CubeTensor]| tensors.iter().map(Like::of).collect::<Vec<_>>();
        debug_assert_eq!(like(&outputs), op.on_gpu().outputs_like(&like(&inputs)), "{op:?}");
        outputs
    }
}

#[cfg(feature = "gpu")]
impl FusedBackward for CubeBackend {
    fn fused_backward(tape: &Tape<Self>, d_outputs: Vec<Option<CubeTensor>>) -> Vec<CubeTensor> {
        let contiguous = |tensors: &[Option<CubeTensor>]| -> Vec<Option<CubeTensor>> {
            tensors.iter().map(|t| t.clone().map(into_contiguous)).collect()
        };
        tape.op.on_gpu().backward(&contiguous(&tape.inputs), &contiguous(&tape.outputs), &contiguous(&d_outputs))
    }
}

impl<B: FusedBackward, S: CheckpointStrategy> FusedBackend for Autodiff<B, S> {
    fn fused(
        op: SharedOp,
        count: usize,
        i0: FloatTensor<Self>,
        i1: FloatTensor<Self>,
        i2: FloatTensor<Self>,
        i3: FloatTensor<Self>,
        i4: FloatTensor<Self>,
        i5: FloatTensor<Self>,
        i6: FloatTensor<Self>,
        i7: FloatTensor<Self>,
    ) -> Vec<FloatTensor<Self>> {
        let inputs: Vec<_> = [i0, i1, i2, i3, i4, i5, i6, i7].into_iter().take(count).collect();
        match inputs.len() {
            1 => record::<B, S, 1>(op, inputs),
            2 => record::<B, S, 2>(op, inputs),
            3 => record::<B, S, 3>(op, inputs),
            4 => record::<B, S, 4>(op, inputs),
            5 => record::<B, S, 5>(op, inputs),
            6 => record::<B, S, 6>(op, inputs),
            7 => record::<B, S, 7>(op, inputs),
            8 => record::<B, S, 8>(op, inputs),
            n => unreachable!("fused operations have 1 to 8 inputs, not {n}"),
        }
    }
}

/// Gradients of the outputs of an operation with several, as its children deliver them.
type Slots<B> = Arc<Mutex<Vec<Option<FloatTensor<B>>>>>;

/// The node of an operation with one output.
#[derive(Debug)]
struct Single;

impl<B: FusedBackward, const N: usize> Backward<B, N> for Single {
    type State = Tape<B>;

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let d_output = grads.consume::<B>(&ops.node);
        register_inputs::<B, N>(&ops.state, vec![Some(d_output)], ops.parents.map(|p| p.map(|p| p.id)), grads);
    }
}

/// The node between the inputs of an operation with several outputs and the nodes of those outputs.
#[derive(Debug)]
struct Carrier;

impl<B: FusedBackward, const N: usize> Backward<B, N> for Carrier {
    type State = (Tape<B>, Slots<B>);

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (tape, slots) = ops.state;
        let d_outputs = std::mem::take(&mut *slots.lock().expect("no panic while the slots are held"));
        register_inputs::<B, N>(&tape, d_outputs, ops.parents.map(|p| p.map(|p| p.id)), grads);
    }
}

/// The node of one output of an operation with several.
#[derive(Debug)]
struct Child;

impl<B: FusedBackward> Backward<B, 1> for Child {
    type State = (usize, Slots<B>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (index, slots) = ops.state;
        slots.lock().expect("no panic while the slots are held")[index] = Some(grads.consume::<B>(&ops.node));
    }
}

fn register_inputs<B: FusedBackward, const N: usize>(
    tape: &Tape<B>,
    d_outputs: Vec<Option<FloatTensor<B>>>,
    parents: [Option<burn::backend::autodiff::NodeId>; N],
    grads: &mut Gradients,
) {
    let d_inputs = B::fused_backward(tape, d_outputs);
    debug_assert_eq!(d_inputs.len(), N, "{:?} must give a gradient for each input", tape.op);
    for (parent, d_input) in parents.into_iter().zip(d_inputs) {
        if let Some(id) = parent {
            grads.register::<B>(id, d_input);
        }
    }
}

fn record<B: FusedBackward, S: CheckpointStrategy, const N: usize>(
    op: SharedOp,
    inputs: Vec<FloatTensor<Autodiff<B, S>>>,
) -> Vec<FloatTensor<Autodiff<B, S>>> {
    let guards: [NodeGuard; N] = std::array::from_fn(|i| inputs[i].node());
    let primitives: Vec<FloatTensor<B>> = inputs.into_iter().map(|t| t.into_primitive()).collect();
    let keeps = op.keeps();
    let kept_inputs = (0..N).map(|i| keeps.inputs.contains(&i).then(|| primitives[i].clone())).collect();
    #[cfg(feature = "fusion")]
    let inputs_like = primitives.iter().map(Like::of).collect();
    let device_of = primitives[0].clone();
    let [i0, i1, i2, i3, i4, i5, i6, i7] = padded(primitives);
    let outputs = B::fused(op.clone(), N, i0, i1, i2, i3, i4, i5, i6, i7);
    let kept_outputs = outputs.iter().enumerate().map(|(i, t)| keeps.outputs.contains(&i).then(|| t.clone())).collect();
    let tape = Tape {
        op,
        inputs: kept_inputs,
        outputs: kept_outputs,
        #[cfg(feature = "fusion")]
        inputs_like,
    };

    if outputs.len() == 1 {
        let output = outputs.into_iter().next().expect("one output");
        return vec![match Backward::<B, N>::prepare::<S>(Single, guards).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(tape, output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }];
    }
    let slots: Slots<B> = Arc::new(Mutex::new(vec![None; outputs.len()]));
    let token = B::float_zeros([1].into(), &device_of.device(), burn::tensor::FloatDType::F32);
    let carrier = match Backward::<B, N>::prepare::<S>(Carrier, guards).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((tape, slots.clone()), token),
        OpsKind::UnTracked(prep) => prep.finish(token),
    };
    let child = |(index, output)| match Backward::<B, 1>::prepare::<S>(Child, [carrier.node()]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((index, slots.clone()), output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    };
    outputs.into_iter().enumerate().map(child).collect()
}

/// Pads one to eight inputs to eight, with copies of the first.
fn padded<T: Clone>(mut inputs: Vec<T>) -> [T; 8] {
    assert!((1..=8).contains(&inputs.len()), "fused operations have 1 to 8 inputs, not {}", inputs.len());
    inputs.resize(8, inputs[0].clone());
    inputs.try_into().unwrap_or_else(|_| unreachable!("resized to eight"))
}

/// Runs `op` on the device of its inputs.
pub(crate) fn run(op: impl FusedOp, inputs: Vec<DispatchTensor>) -> Vec<DispatchTensor> {
    let count = inputs.len();
    let [i0, i1, i2, i3, i4, i5, i6, i7] = padded(inputs);
    <Dispatch as FusedBackend>::fused(Arc::new(op), count, i0, i1, i2, i3, i4, i5, i6, i7)
}

/// True on the CPU, where every fused operation has kernels. Elsewhere the composed form may be used.
pub(crate) fn is_on_cpu(device: &Device) -> bool {
    matches!(device.clone().inner().as_dispatch(), DispatchDevice::Flex(_))
}

/// Whether an operation with CPU and GPU kernels has one for `tensor`: on the CPU, and on a GPU unless `tensor` is empty.
pub(crate) fn has_kernels<const D: usize>(tensor: &Tensor<D>) -> bool {
    is_on_cpu(&tensor.device()) || is_on_gpu(&tensor.device()) && tensor.shape().num_elements() > 0
}

#[cfg(feature = "gpu")]
pub(super) fn is_on_gpu(device: &Device) -> bool {
    matches!(device.clone().inner().as_dispatch(), DispatchDevice::Cube(_))
}

#[cfg(not(feature = "gpu"))]
pub(super) fn is_on_gpu(_: &Device) -> bool {
    false
}

/// Prepares `tensor` for [`run`].
pub(crate) fn input<const D: usize>(tensor: Tensor<D>) -> DispatchTensor {
    tensor.into_dispatch()
}

/// Takes an output of [`run`].
pub(crate) fn output<const D: usize>(tensor: Option<DispatchTensor>) -> Tensor<D> {
    Tensor::from_dispatch(tensor.expect("the operation has this output"))
}
