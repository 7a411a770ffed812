//! Gated linear attention with a constant decay for each head, as a fused operation.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, TensorData};
use minrnn_kernels::retention as kernel;

pub use minrnn_kernels::retention::Features;

use super::flex::{InputList, dims, optional, outputs, shape, slice, zeros};
use super::fused::{FusedOp, Keeps, is_on_cpu, output, run};
use super::positions::StepPositions;
use super::shapes::{expect_parts, expect_shape};
use super::steps::StepCodes;

/// The variant of a [`retention`].
#[derive(Debug, Clone, PartialEq)]
pub struct Retention {
    /// The features of queries and keys.
    pub features: Features,
    /// γ of each of the H heads.
    pub decays: Vec<f64>,
    /// A factor applied to the keys.
    pub key_scale: f64,
    /// Whether outputs are divided by those of a value of 1.
    pub normalized: bool,
}

impl Retention {
    /// RetNet's variant, with `heads` heads whose queries and keys have `key` channels.
    pub fn ret_net(heads: usize, key: usize) -> Self {
        let decays = (0..heads).map(kernel::decay).collect();
        Self { features: Features::Rotary, decays, key_scale: (key as f64).powf(-0.5), normalized: false }
    }

    /// Linear attention with the features elu(x) + 1.
    pub fn linear_attention(heads: usize) -> Self {
        Self { features: Features::EluPlusOne, decays: vec![1.0; heads], key_scale: 1.0, normalized: true }
    }

    /// Refuses tensors that do not fit the heads.
    ///
    /// # Panics
    /// When they do not.
    fn expect_fits(&self, [queries, keys, values]: [&Tensor<3>; 3], memory: &RetentionState) {
        let ([batch, seq_len, width], [_, _, value_width], heads) = (queries.dims(), values.dims(), self.decays.len());
        let key = expect_parts("retention", "queries", width, heads);
        let value = expect_parts("retention", "values", value_width, heads);
        expect_shape("retention", "keys", keys, [batch, seq_len, width]);
        expect_shape("retention", "values", values, [batch, seq_len, value_width]);
        expect_shape("retention", "state", &memory.state, [batch, heads, key, value + usize::from(self.normalized)]);
        expect_shape("retention", "position", &memory.position, [batch, 1]);
    }
}

/// The state of a retention.
#[derive(Debug, Clone)]
pub struct RetentionState {
    /// S `[B, H, K, V]`; with normalisation it has an additional column.
    pub state: Tensor<4>,
    /// The position of each row's next step `[B, 1]`, as kept by [`minrnn_kernels::count`].
    pub position: Tensor<2>,
}

/// S_t = γ S_{t−1} + φ(k_t) v_tᵀ, o_t = S_tᵀ φ(q_t) for each head (retention: Sun et al. 2023, arXiv:2307.08621, §2; linear attention:
/// Katharopoulos et al. 2020, arXiv:2006.16236, §3.4). A reset sets the state and the position to 0.
///
/// # Shapes
/// * `queries`, `keys` `[B, T, H·K]`, `values` `[B, T, H·V]` → `[B, T, H·V]` and the last state
///
/// # Panics
/// When shapes do not fit.
pub fn retention(
    form: &Retention,
    queries: Tensor<3>,
    keys: Tensor<3>,
    values: Tensor<3>,
    state: RetentionState,
    steps: &StepCodes,
) -> (Tensor<3>, RetentionState) {
    form.expect_fits([&queries, &keys, &values], &state);
    let RetentionState { state, position } = state;
    let [batch, seq_len, _] = queries.dims();
    let places = StepPositions::count(position.clone(), seq_len, steps);
    let (position, next) = (position.detach(), places.after);
    if !is_on_cpu(&values.device()) {
        let before: Vec<f32> = places.before.iter().map(|&place| place as f32).collect();
        let position = if batch == 0 { position } else { Tensor::from_data(TensorData::new(before, [batch, 1]), &position.device()) };
        let (y, state) = composed(form, [queries, keys, values], state, position, steps);
        return (y, RetentionState { state, position: next });
    }
    let mut inputs = InputList::default();
    for sequence in [queries, keys, values] {
        inputs.add(sequence);
    }
    inputs.add(state);
    inputs.add(position);
    let mut outputs = run(Op { form: form.clone(), steps: steps.clone() }, inputs.into_vec()).into_iter();
    let y = output(outputs.next());
    (y, RetentionState { state: output(outputs.next()), position: next })
}

/// The same by tensor operations, one step after the other; without gradients of positions.
pub(super) fn composed(
    form: &Retention,
    [queries, keys, values]: [Tensor<3>; 3],
    state: Tensor<4>,
    position: Tensor<2>,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<4>) {
    let ([batch, seq_len, width], [_, heads, key, columns]) = (values.dims(), state.dims());
    let device = values.device();
    if batch * seq_len == 0 {
        return (values, state);
    }
    let value = width / heads;
    let decays = form.decays.iter().map(|&decay| decay as f32).collect::<Vec<_>>();
    let decays = Tensor::<1>::from_data(TensorData::new(decays, [heads]), &device).reshape([1, heads, 1, 1]);
    let split = |x: &Tensor<3>, t: usize| {
        let each = x.dims()[2] / heads;
        x.clone().narrow(1, t, 1).reshape([batch, heads, each])
    };
    let (reset, padding) = (steps.reset_mask(&device), steps.padding_mask(&device));
    let at = |mask: &Option<Tensor<3>>, t: usize| mask.clone().map(|mask| mask.narrow(1, t, 1).reshape([batch, 1, 1, 1]));
    let (mut state, mut position) = (state, position.reshape([batch, 1, 1]));
    let mut outputs = Vec::with_capacity(seq_len);
    for t in 0..seq_len {
        if let Some(reset) = at(&reset, t) {
            let kept = -reset + 1.0;
            state = state * kept.clone();
            position = position * kept.reshape([batch, 1, 1]);
        }
        let query = features(form.features, split(&queries, t), position.clone());
        let keyed = features(form.features, split(&keys, t), position.clone()) * form.key_scale;
        let mut valued = split(&values, t);
        if form.normalized {
            valued = Tensor::cat(vec![valued, Tensor::ones([batch, heads, 1], &device)], 2);
        }
        let gained = keyed.reshape([batch, heads, key, 1]) * valued.reshape([batch, heads, 1, columns]);
        let next = state.clone() * decays.clone() + gained;
        let sums = (next.clone() * query.reshape([batch, heads, key, 1])).sum_dim(2).reshape([batch, heads, columns]);
        let mut y = sums.clone().narrow(2, 0, value);
        if form.normalized {
            y = y / (sums.narrow(2, value, 1) + kernel::EPS);
        }
        position = position + 1.0;
        state = match at(&padding, t) {
            None => next,
            Some(padding) => {
                y = y * (-padding.clone() + 1.0).reshape([batch, 1, 1]);
                next.clone() + padding * (state - next)
            }
        };
        outputs.push(y.reshape([batch, 1, width]));
    }
    (Tensor::cat(outputs, 1), state)
}

/// φ of `x` `[B, H, K]` at `position` `[B, 1, 1]`.
fn features(features: Features, x: Tensor<3>, position: Tensor<3>) -> Tensor<3> {
    let [batch, heads, key] = x.dims();
    match features {
        Features::EluPlusOne => x.clone().clamp_max(0.0).exp() + x.clamp_min(0.0),
        Features::Rotary => {
            let pairs = key / 2;
            let angles: Vec<f32> = (0..pairs).map(|j| kernel::angle(j, pairs) as f32).collect();
            let angles = position * Tensor::<1>::from_data(TensorData::new(angles, [pairs]), &x.device()).reshape([1, 1, pairs]);
            let [cos, sin] = [angles.clone().cos(), angles.sin()].map(|x| x.reshape([batch, 1, pairs, 1]));
            let x = x.reshape([batch, heads, pairs, 2]);
            let (first, second) = (x.clone().narrow(3, 0, 1), x.narrow(3, 1, 1));
            let turned = [first.clone() * cos.clone() - second.clone() * sin.clone(), second * cos + first * sin];
            Tensor::cat(turned.to_vec(), 3).reshape([batch, heads, key])
        }
    }
}

#[derive(Debug)]
struct Op {
    form: Retention,
    steps: StepCodes,
}

impl Op {
    fn form(&self) -> kernel::Form<'_> {
        let Retention { features, ref decays, key_scale, normalized } = self.form;
        kernel::Form { features, decays, key_scale, normalized }
    }

    fn sizes(&self, queries: &FlexTensor, values: &FlexTensor) -> kernel::Sizes {
        let ([batch, seq_len, key], [_, _, value]) = (dims(queries), dims::<3>(values));
        let heads = self.form.decays.len();
        kernel::Sizes { batch, seq_len, heads, key: key / heads, value: value / heads }
    }

    fn inputs<'a>(&'a self, inputs: [&'a FlexTensor; 5]) -> kernel::Inputs<'a> {
        let [queries, keys, values, state, position] = inputs.map(slice);
        let start = kernel::Start { state: Some(state), positions: Some(position), segments: self.steps.kernel() };
        kernel::Inputs { queries, keys, values, start }
    }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: (0..5).collect(), outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let inputs: [&FlexTensor; 5] = std::array::from_fn(|i| &inputs[i]);
        let [queries, _, values, state, _] = inputs;
        outputs([values, state].map(shape), |[y, last]| {
            kernel::forward(self.sizes(queries, values), self.form(), self.inputs(inputs), y, last);
        })
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let inputs: [&FlexTensor; 5] = std::array::from_fn(|i| inputs[i].as_ref().expect("kept"));
        let [queries, keys, values, state, position] = inputs;
        let [d_y, d_last] = [0, 1].map(|i: usize| optional(d_outputs[i].as_ref()));
        let mut d_inputs = outputs([queries, keys, values, state].map(shape), |[d_queries, d_keys, d_values, d_state]| {
            let d = kernel::Gradients { d_queries, d_keys, d_values, d_state };
            kernel::backward(self.sizes(queries, values), self.form(), self.inputs(inputs), d_y, d_last, d);
        });
        d_inputs.push(zeros(position));
        d_inputs
    }
}
