//! Our operations in Burn's fusion: they are queued with the rest, with the shapes of their outputs known in advance.

use burn::backend::fusion::custom::{CustomOpIr, HandleContainer, OperationFn, OperationIr, StreamId, TensorIr};
use burn::backend::fusion::{Fusion, FusionBackend, FusionRuntime, FusionTensor};
use burn_cubecl::{CubeBackend, kernel::into_contiguous, tensor::CubeTensor};

use super::super::fused::{FusedBackend, FusedBackward, SharedOp, Tape};
use super::tensors::Like;

type Runtime = <CubeBackend as FusionBackend>::FusionRuntime;
type Handles = HandleContainer<<Runtime as FusionRuntime>::FusionHandle>;
type Lazy = FusionTensor<Runtime>;

/// Queues `work`, which makes tensors like `made` of those of `inputs`.
fn queue(
    name: &str,
    inputs: Vec<Lazy>,
    made: Vec<Like>,
    work: impl Fn(Vec<CubeTensor>) -> Vec<CubeTensor> + Send + Sync + 'static,
) -> Vec<Lazy> {
    let client = inputs[0].client.clone();
    let inputs: Vec<TensorIr> = inputs.into_iter().map(FusionTensor::into_ir).collect();
    let output = |like: Like| TensorIr::uninit(client.create_empty_handle(), like.shape, like.dtype);
    let outputs: Vec<TensorIr> = made.into_iter().map(output).collect();
    let ids: Vec<_> = outputs.iter().map(|output| output.id).collect();
    let description = CustomOpIr { id: name.into(), inputs: inputs.clone(), outputs, scalars: Vec::new() };
    let operation = OperationFn(move |handles: &mut Handles| {
        let tensors = inputs.iter().map(|input| into_contiguous(handles.get_float_tensor::<CubeBackend>(input))).collect();
        let made = work(tensors);
        debug_assert_eq!(made.len(), ids.len());
        ids.iter().zip(made).for_each(|(id, tensor)| handles.register_float_tensor::<CubeBackend>(id, tensor));
        Ok(())
    });
    client.register(StreamId::current(), OperationIr::Custom(description), operation)
}

impl FusedBackend for Fusion<CubeBackend> {
    fn fused(op: SharedOp, count: usize, i0: Lazy, i1: Lazy, i2: Lazy, i3: Lazy, i4: Lazy, i5: Lazy, i6: Lazy, i7: Lazy) -> Vec<Lazy> {
        let inputs: Vec<Lazy> = [i0, i1, i2, i3, i4, i5, i6, i7].into_iter().take(count).collect();
        let like: Vec<Like> = inputs.iter().map(Like::of).collect();
        let made = op.on_gpu().outputs_like(&like);
        queue("minrnn", inputs, made, move |inputs| op.on_gpu().forward(&inputs))
    }
}

impl FusedBackward for Fusion<CubeBackend> {
    fn fused_backward(tape: &Tape<Self>, d_outputs: Vec<Option<Lazy>>) -> Vec<Lazy> {
        let is_there = |tensors: &[Option<Lazy>]| tensors.iter().map(Option::is_some).collect::<Vec<bool>>();
        let there = [is_there(&tape.inputs), is_there(&tape.outputs), is_there(&d_outputs)];
        let op = tape.op.clone();
        let given = tape.inputs.iter().chain(&tape.outputs).cloned().chain(d_outputs).flatten().collect();
        queue("minrnn backward", given, tape.inputs_like.clone(), move |given| {
            let mut given = given.into_iter();
            let [inputs, outputs, d_outputs] =
                [0, 1, 2].map(|of: usize| there[of].iter().map(|&is| is.then(|| given.next().expect("counted"))).collect::<Vec<_>>());
            op.on_gpu().backward(&inputs, &outputs, &d_outputs)
        })
    }
}
