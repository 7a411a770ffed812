//! Linear state spaces of one input and one output for each channel (S4: Gu et al. 2022, arXiv:2111.00396; S4D: Gu et al. 2022,
//! arXiv:2206.11893), as a fused recurrence.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::Shape;
use minrnn_kernels::state_space::{self as kernel, Form, RANK_ONE};

use super::flex::{InputList, dims, optional, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, is_on_cpu, output, run};
use super::shapes::expect_shape;
use super::steps::StepCodes;

/// x_t = a ⊙ x_{t−1} − g (f · x_{t−1}) + b u_t and y_t = c · x_t + skip u_t, where v · x = 2 Re Σ_n v_n x_n: x is half of a state whose
/// other half is its conjugate. A reset sets x to 0.
///
/// # Shapes
/// * `u` `[B, T, D]`; `parameters` `[P, N, D]`, real and imaginary parts of a, b, c (P = 6) and, with a rank-one part, of g, f (P = 10);
///   `skip` `[D]`; `x0` `[B, 2N, D]`, real parts then imaginary parts → y `[B, T, D]` and the last state `[B, 2N, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn state_space(u: Tensor<3>, parameters: Tensor<3>, skip: Tensor<1>, x0: Tensor<3>, steps: &StepCodes) -> (Tensor<3>, Tensor<3>) {
    let ([batch, _, width], [planes, n, _]) = (u.dims(), parameters.dims());
    expect_shape("state_space", "parameters", &parameters, [planes, n, width]);
    expect_shape("state_space", "skip", &skip, [width]);
    expect_shape("state_space", "x0", &x0, [batch, 2 * n, width]);
    if !is_on_cpu(&u.device()) {
        return composed(u, parameters, skip, x0, steps);
    }
    let mut inputs = InputList::default();
    inputs.add(u);
    inputs.add(parameters);
    inputs.add(skip);
    inputs.add(x0);
    let mut outputs = run(Op { steps: steps.clone() }, inputs.into_vec()).into_iter();
    (output(outputs.next()), output(outputs.next()))
}

/// The same by tensor operations, one step after the other.
pub(super) fn composed(u: Tensor<3>, parameters: Tensor<3>, skip: Tensor<1>, x0: Tensor<3>, steps: &StepCodes) -> (Tensor<3>, Tensor<3>) {
    let [batch, seq_len, width] = u.dims();
    let [planes, n, _] = parameters.dims();
    if batch == 0 || seq_len == 0 {
        return (u, x0);
    }
    let device = u.device();
    let plane = |i: usize| parameters.clone().narrow(0, i, 1);
    let [a_re, a_im, b_re, b_im, c_re, c_im]: [Tensor<3>; 6] = std::array::from_fn(plane);
    let dot = |v_re: Tensor<3>, v_im: Tensor<3>, re: &Tensor<3>, im: &Tensor<3>| (v_re * re.clone() - v_im * im.clone()).sum_dim(1) * 2.0;
    let (reset, padding) = (steps.reset_mask(&device), steps.padding_mask(&device));
    let at = |mask: &Option<Tensor<3>>, t: usize| mask.clone().map(|mask| mask.narrow(1, t, 1));
    let (mut re, mut im) = (x0.clone().narrow(1, 0, n), x0.narrow(1, n, n));
    let mut outputs = Vec::with_capacity(seq_len);
    for t in 0..seq_len {
        let u = u.clone().narrow(1, t, 1);
        if let Some(reset) = at(&reset, t) {
            let keep = -reset + 1.0;
            (re, im) = (re * keep.clone(), im * keep);
        }
        let mut next_re = a_re.clone() * re.clone() - a_im.clone() * im.clone() + b_re.clone() * u.clone();
        let mut next_im = a_re.clone() * im.clone() + a_im.clone() * re.clone() + b_im.clone() * u.clone();
        if planes == RANK_ONE {
            let feedback = dot(plane(8), plane(9), &re, &im);
            next_re = next_re - plane(6) * feedback.clone();
            next_im = next_im - plane(7) * feedback;
        }
        let mut y = dot(c_re.clone(), c_im.clone(), &next_re, &next_im) + skip.clone().reshape([1, 1, width]) * u;
        if let Some(padding) = at(&padding, t) {
            y = y * (-padding.clone() + 1.0);
            next_re = next_re.clone() + padding.clone() * (re - next_re);
            next_im = next_im.clone() + padding * (im - next_im);
        }
        (re, im) = (next_re, next_im);
        outputs.push(y);
    }
    (Tensor::cat(outputs, 1), Tensor::cat(vec![re, im], 1))
}

#[derive(Debug)]
struct Op {
    steps: StepCodes,
}

impl Op {
    fn inputs<'a>(&'a self, inputs: [&'a FlexTensor; 4]) -> kernel::Inputs<'a> {
        let ([batch, seq_len, width], [planes, states, _]) = (dims(inputs[0]), dims(inputs[1]));
        let [u, parameters, skip, x0] = inputs.map(slice);
        kernel::Inputs {
            shape: Shape { batch, seq_len, width },
            form: Form { states, planes },
            u,
            parameters,
            skip,
            x0: Some(x0),
            segments: self.steps.kernel(),
        }
    }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1, 2, 3], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let inputs = std::array::from_fn(|i| &inputs[i]);
        outputs([inputs[0], inputs[3]].map(shape), |[y, x_last]| kernel::forward(self.inputs(inputs), y, x_last))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let inputs: [&FlexTensor; 4] = std::array::from_fn(|i| inputs[i].as_ref().expect("kept"));
        let [d_y, d_x_last] = [0, 1].map(|i: usize| optional(d_outputs[i].as_ref()));
        outputs(inputs.map(shape), |[d_u, d_parameters, d_skip, d_x0]| {
            kernel::backward(self.inputs(inputs), d_y, d_x_last, d_u, d_parameters, d_skip, d_x0);
        })
    }
}
