//! Causal softmax attention with a window and a cache.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Bool, Device, Int, Tensor, TensorData, activation};
use minrnn_kernels::attention::{self as kernel, Sizes};
use minrnn_kernels::segments::{PADDING, RESET};

use super::flex::{dims, optional, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, input, is_on_cpu, output, run};
use super::shapes::{expect_count, expect_parts, expect_shape};
use super::steps::StepCodes;

/// The parameters of attention besides its tensors.
#[derive(Debug, Clone)]
pub struct AttentionPlan {
    /// Number of heads; it divides D.
    pub heads: usize,
    /// How many of the last steps a step sees, including itself.
    pub window: usize,
    /// The number of valid steps of each row in the cache, which are the last ones, `[B]`.
    pub lengths: Vec<usize>,
    /// Number of steps N in the updated cache.
    pub next: usize,
}

impl AttentionPlan {
    /// Refuses a plan that does not fit the queries, keys, values and cache.
    ///
    /// # Panics
    /// When it does not.
    fn expect_fits(&self, qkv: &Tensor<3>, past: &Tensor<3>) {
        let ([batch, _, triple], [_, cached, _]) = (qkv.dims(), past.dims());
        let d = expect_parts("attention", "qkv", triple, 3);
        expect_parts("attention", "each of queries, keys and values", d, self.heads);
        expect_shape("attention", "past", past, [batch, cached, 2 * d]);
        expect_count("attention", "lengths in the plan", self.lengths.len(), batch);
        if let Some(length) = self.lengths.iter().find(|&&length| length > cached) {
            panic!("attention: expected lengths of at most the {cached} steps of the cache, found {length}");
        }
    }
}

/// softmax(q kᵀ / √dₕ) v for every head over the steps each step sees, and the updated cache (Vaswani et al. 2017, arXiv:1706.03762,
/// §3.2).
///
/// # Shapes
/// * `qkv` `[B, T, 3D]` queries, keys, values; `past` `[B, P, 2D]` keys and values, the latest step last → y `[B, T, D]`, the cache
///   `[B, N, 2D]` of each row's last N steps, zeros before its last reset
///
/// # Panics
/// When shapes do not fit, the heads do not divide D, or a length is more than P.
pub fn attention(qkv: Tensor<3>, past: Tensor<3>, plan: AttentionPlan, steps: &StepCodes) -> (Tensor<3>, Tensor<3>) {
    plan.expect_fits(&qkv, &past);
    if !is_on_cpu(&qkv.device()) {
        return composed(qkv, past, &plan, steps);
    }
    let mut outputs = run(Op { plan, steps: steps.clone() }, vec![input(qkv), input(past)]).into_iter();
    let y = output(outputs.next());
    // The second output, the log-sums, is only for the backward pass.
    outputs.next();
    (y, output(outputs.next()))
}

/// The same by tensor operations, with all scores at once.
pub(super) fn composed(qkv: Tensor<3>, past: Tensor<3>, plan: &AttentionPlan, steps: &StepCodes) -> (Tensor<3>, Tensor<3>) {
    let [batch, seq_len, triple] = qkv.dims();
    let (p, d, device) = (past.dims()[1], triple / 3, qkv.device());
    let total = p + seq_len;
    let parts: Vec<Tensor<3>> =
        [past, qkv.clone().narrow(2, d, 2 * d)].into_iter().filter(|part| part.shape().num_elements() > 0).collect();
    if parts.is_empty() {
        return (Tensor::zeros([batch, seq_len, d], &device), Tensor::zeros([batch, plan.next, 2 * d], &device));
    }
    let all = Tensor::cat(parts, 1);
    let layout = Layout::new(plan, steps, [batch, seq_len, p]);
    let next = match batch * plan.next {
        0 => Tensor::zeros([batch, plan.next, 2 * d], &device),
        _ => layout.next(all.clone(), &device),
    };
    if batch * seq_len == 0 {
        return (Tensor::zeros([batch, seq_len, d], &device), next);
    }
    let width = d / plan.heads;
    let heads = |x: Tensor<3>| {
        let [_, steps, _] = x.dims();
        x.reshape([batch, steps, plan.heads, width]).swap_dims(1, 2)
    };
    let (q, k, v) = (heads(qkv.narrow(2, 0, d)), heads(all.clone().narrow(2, 0, d)), heads(all.narrow(2, d, d)));
    let scores = q.matmul(k.swap_dims(2, 3)) / (width as f32).sqrt();
    let hidden = Tensor::<4, Bool>::from_data(TensorData::new(layout.hidden, [batch, 1, seq_len, total]), &device);
    let scores = scores.mask_fill(hidden.expand([batch, plan.heads, seq_len, total]), f32::NEG_INFINITY);
    let y = activation::softmax(scores, 3).matmul(v).swap_dims(1, 2).reshape([batch, seq_len, d]);
    let y = match steps.padding_mask(&device) {
        None => y,
        Some(padding) => y * (-padding + 1.0),
    };
    (y, next)
}

/// Which steps are seen and which stay in the cache, the P steps of the cache counted first.
struct Layout {
    /// `[B, T, P + T]`.
    hidden: Vec<bool>,
    /// For each entry of the next cache the step that fills it, as a row of `[B · (P + T)]`; `None` for zeros.
    kept: Vec<Option<usize>>,
    next: usize,
}

impl Layout {
    fn new(plan: &AttentionPlan, steps: &StepCodes, [batch, seq_len, past]: [usize; 3]) -> Self {
        let total = past + seq_len;
        let (mut hidden, mut kept) = (Vec::with_capacity(batch * seq_len * total), Vec::with_capacity(batch * plan.next));
        for b in 0..batch {
            let (mut first, mut end, mut first_kept) = (past - plan.lengths[b], past, 0);
            for t in 0..seq_len {
                let code = steps.code(b, t);
                let here = past + t;
                if code == RESET {
                    (first, first_kept) = (here, here);
                }
                if code != PADDING {
                    end = here + 1;
                }
                // Padding sees itself, so that its softmax is not NaN.
                let from = if code == PADDING { here } else { first };
                hidden.extend((0..total).map(|s| s < from || s > here || here - s >= plan.window));
            }
            kept.extend((0..plan.next).map(|i| (end + i).checked_sub(plan.next).filter(|&s| s >= first_kept).map(|s| b * total + s)));
        }
        Self { hidden, kept, next: plan.next }
    }

    fn next(&self, all: Tensor<3>, device: &Device) -> Tensor<3> {
        let [batch, total, double] = all.dims();
        let rows: Vec<i64> = self.kept.iter().map(|row| row.unwrap_or(0) as i64).collect();
        let there: Vec<f32> = self.kept.iter().map(|row| if row.is_some() { 1.0 } else { 0.0 }).collect();
        let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [self.kept.len()]), device);
        let there = Tensor::<3>::from_data(TensorData::new(there, [batch, self.next, 1]), device);
        all.reshape([batch * total, double]).select(0, rows).reshape([batch, self.next, double]) * there
    }
}

#[derive(Debug)]
struct Op {
    plan: AttentionPlan,
    steps: StepCodes,
}

impl Op {
    fn sizes(&self, qkv: &FlexTensor, past: &FlexTensor) -> Sizes {
        let [batch, seq_len, triple] = dims(qkv);
        let [_, past, _] = dims(past);
        let AttentionPlan { heads, window, next, .. } = self.plan;
        Sizes { batch, seq_len, past, next, heads, head_width: triple / 3 / heads, window }
    }

    fn start<'a>(&'a self, past: &'a FlexTensor) -> kernel::Start<'a> {
        kernel::Start { past: slice(past), lengths: &self.plan.lengths, segments: self.steps.kernel() }
    }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1], outputs: vec![0, 1] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let sizes = self.sizes(&inputs[0], &inputs[1]);
        let Sizes { batch, seq_len, next, heads, .. } = sizes;
        let shapes = [[batch, seq_len, sizes.width()], [batch, heads, seq_len], [batch, next, 2 * sizes.width()]];
        outputs(shapes.map(Into::into), |[y, log_sums, cache]| {
            kernel::forward(sizes, slice(&inputs[0]), self.start(&inputs[1]), y, log_sums, cache);
        })
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], results: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [qkv, past] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let [y, log_sums] = [0, 1].map(|i| slice(results[i].as_ref().expect("kept")));
        let [d_y, d_next] = [0, 2].map(|i: usize| optional(d_outputs[i].as_ref()));
        let upstream = kernel::Upstream { y, log_sums, d_y, d_next };
        outputs([qkv, past].map(shape), |[d_qkv, d_past]| {
            kernel::backward(self.sizes(qkv, past), slice(qkv), self.start(past), upstream, d_qkv, d_past);
        })
    }
}
