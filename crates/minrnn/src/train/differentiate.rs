//! Loss and gradients of a micro-batch, in one pass or block by block.
//!
//! Block by block (`checkpoint_blocks`), the forward pass keeps only the input of every block; in the backward pass, each block is run
//! again with its graph just before it is differentiated. Only one block's activations are alive at a time, at the cost of a second forward
//! pass of the blocks. Loss and gradients are the same: dropout masks depend on a key, not on the order of calls.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::Tensor;

use super::optimizer::GradientMap;
use crate::model::{Backbone, BackboneState, Decision, Inputs, Scored, SequenceModel, Targets};
use crate::nn::{BlockState, Mixer, Mode, State, StateZip, linear};
use crate::ops::{StepCodes, backward_from};

/// One micro-batch of sequences.
#[derive(Debug, Clone)]
pub struct MicroBatch {
    /// B sequences of T steps.
    pub inputs: Inputs,
    /// The targets at every step.
    pub targets: Targets,
    /// B·T weights; if absent, all are 1.
    pub mask: Option<Arc<[f32]>>,
    /// Padding and resets.
    pub steps: StepCodes,
}

/// The result for one micro-batch.
#[derive(Debug)]
pub struct Differentiated<S> {
    /// Mean loss over the scored positions; if it is not finite, the gradients are meaningless.
    pub loss: f64,
    /// The gradient of every parameter.
    pub gradients: GradientMap,
    /// The state after the last token, detached from its graph.
    pub state: BackboneState<S>,
}

/// Loss and gradients of `model` (on an autodiff device) from the carried `state`, or from the initial one.
///
/// # Panics
/// When the shapes do not fit or a scored target is V or more.
pub fn differentiate<M: Mixer>(
    model: &SequenceModel<M>,
    batch: MicroBatch,
    state: Option<BackboneState<M::State>>,
    mode: Mode,
    checkpoint_blocks: bool,
) -> Differentiated<M::State> {
    if checkpoint_blocks { of_sequences(model, batch, state, mode) } else { at_once(model, batch, state, mode) }
}

fn at_once<M: Mixer>(
    model: &SequenceModel<M>,
    batch: MicroBatch,
    state: Option<BackboneState<M::State>>,
    mode: Mode,
) -> Differentiated<M::State> {
    let state = state.unwrap_or_else(|| model.init_state(batch.inputs.dims()[0]));
    let (loss, state) = model.loss(batch.inputs, batch.targets, batch.mask, state, &batch.steps, mode);
    // The value is read last: reading it waits for the GPU, which should have the backward pass queued by then.
    let gradients = GradientMap::new(model, &loss.clone().backward());
    Differentiated { loss: f64::from(loss.into_scalar::<f32>()), gradients, state: state.detach() }
}

/// Loss and gradients of a `policy` (on an autodiff device) on windows that start from the initial state.
///
/// # Panics
/// When the shapes do not fit.
pub fn differentiate_policy<M: Mixer>(policy: &Decision<M>, batch: MicroBatch, mode: Mode, checkpoint_blocks: bool) -> (f64, GradientMap) {
    let MicroBatch { inputs, targets, mask, steps } = batch;
    if !checkpoint_blocks {
        let loss = policy.loss(inputs, targets, mask, &steps, mode);
        let gradients = GradientMap::new(policy, &loss.clone().backward());
        return (f64::from(loss.into_scalar::<f32>()), gradients);
    }
    let (embedded, steps) = policy.enter(inputs, false, &steps, mode);
    let loss = |x| (Scored { predicted: linear::rows(policy.act(x)), targets, mask }.loss(), ());
    let Rerun { loss, gradients, .. } = block_by_block(policy, &policy.backbone, embedded, None, &steps, mode, loss);
    (loss, gradients)
}

fn of_sequences<M: Mixer>(
    model: &SequenceModel<M>,
    batch: MicroBatch,
    state: Option<BackboneState<M::State>>,
    mode: Mode,
) -> Differentiated<M::State> {
    let MicroBatch { inputs, targets, mask, steps } = batch;
    let BackboneState { position, pooling, pair, .. } = state.clone().unwrap_or_else(|| model.init_state(inputs.dims()[0]));
    let (embedded, position) = model.embed(inputs, position, &steps, mode);
    let loss = |x| {
        let (features, pooling) = model.pool(x, pooling, &steps);
        let (features, pair) = model.compare(features, pair, &steps);
        (model.score(features, targets, mask).loss(), (pooling, pair))
    };
    let rerun = block_by_block(model, &model.backbone, embedded, state.map(|state| inner(state).blocks), &steps, mode, loss);
    let (pooling, pair) = rerun.ends;
    Differentiated {
        loss: rerun.loss,
        gradients: rerun.gradients,
        state: BackboneState {
            blocks: rerun.states.into_iter().map(outer).collect(),
            position: position.map(Tensor::detach),
            pooling: pooling.map(State::detach),
            pair: pair.map(State::detach),
        },
    }
}

/// The result of differentiating block by block.
struct Rerun<S, E> {
    loss: f64,
    gradients: GradientMap,
    /// The states of the blocks after the last step, below autodiff.
    states: Vec<BlockState<S>>,
    /// The states of the layers after the backbone.
    ends: E,
}

/// Differentiates `model` with this backbone from the output of its first layers (`embedded`), through the blocks (from the `carried`
/// states or their initial ones), to the loss that `end` computes from the normalised features.
fn block_by_block<M: Mixer, E>(
    model: &impl Module,
    backbone: &Backbone<M>,
    embedded: Tensor<3>,
    carried: Option<Vec<BlockState<M::State>>>,
    steps: &StepCodes,
    mode: Mode,
    end: impl FnOnce(Tensor<3>) -> (Tensor<1>, E),
) -> Rerun<M::State, E> {
    let batch_size = embedded.dims()[0];
    let plain = backbone.valid();
    let states = carried.clone().unwrap_or_else(|| plain.init_state(batch_size).blocks);

    let mut x = embedded.clone().inner();
    let (mut block_inputs, mut last_states) = (Vec::new(), Vec::new());
    for (i, (block, state)) in plain.blocks.iter().zip(states).enumerate() {
        let (y, state) = block.forward(x.clone(), state, steps, mode, 2 * i as u64);
        block_inputs.push(std::mem::replace(&mut x, y));
        last_states.push(state);
    }

    let top = leaf(x);
    let (loss, ends) = end(backbone.final_norm.forward(top.clone(), steps, mode));
    let value = f64::from(loss.clone().into_scalar::<f32>());
    let grads = loss.backward();
    let mut gradients = GradientMap::new(model, &grads);
    let mut d_x = top.grad(&grads).expect("the loss depends on the last block");
    drop((grads, top));

    for (i, (block, x)) in backbone.blocks.iter().zip(block_inputs).enumerate().rev() {
        let state = match &carried {
            Some(carried) => outer(carried[i].clone()),
            // Made within the graph, so that a learned initial state gets its gradient.
            None => block.init_state(batch_size),
        };
        let x = leaf(x);
        let (y, _) = block.forward(x.clone(), state, steps, mode, 2 * i as u64);
        let grads = backward_from(y, Tensor::from_inner(d_x)).backward();
        gradients.add(GradientMap::new(model, &grads));
        d_x = x.grad(&grads).expect("a block's output depends on its input");
    }
    let grads = backward_from(embedded, Tensor::from_inner(d_x)).backward();
    gradients.add(GradientMap::new(model, &grads));
    Rerun { loss: value, gradients, states: last_states, ends }
}

fn leaf(x: Tensor<3>) -> Tensor<3> {
    Tensor::from_inner(x).require_grad()
}

/// The state below autodiff.
fn inner<S: State>(state: BackboneState<S>) -> BackboneState<S> {
    struct Inner;
    impl StateZip for Inner {
        fn tensor<const D: usize>(&mut self, _: &str, a: Tensor<D>, _: Tensor<D>) -> Tensor<D> {
            a.inner()
        }
    }
    state.clone().zip(state, &mut Inner)
}

/// The state as a constant for autodiff.
fn outer<S: State>(state: BlockState<S>) -> BlockState<S> {
    struct Outer;
    impl StateZip for Outer {
        fn tensor<const D: usize>(&mut self, _: &str, a: Tensor<D>, _: Tensor<D>) -> Tensor<D> {
            Tensor::from_inner(a)
        }
    }
    state.clone().zip(state, &mut Outer)
}
