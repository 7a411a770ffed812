//! A recurrence by tensor operations, step by step, with resets and padding.

use burn::tensor::Tensor;

use super::steps::StepCodes;

/// Walks over the steps of an input and collects outputs.
pub(super) struct Stepwise<'a> {
    input: Tensor<3>,
    steps: &'a StepCodes,
    outputs: Vec<Tensor<3>>,
    width: usize,
}

impl<'a> Stepwise<'a> {
    /// A walk over `input` `[B, T, ·]`.
    pub(super) fn new(input: Tensor<3>, steps: &'a StepCodes) -> Self {
        Self { input, steps, outputs: Vec::new(), width: 0 }
    }

    /// Runs `cell` from `starts` (carried state `[B, E]` and the state `[E]` a reset restores, for each part of the state) to the
    /// last state; the first part is the output.
    pub(super) fn run<const N: usize>(
        &mut self,
        starts: [(Option<Tensor<2>>, Option<Tensor<1>>); N],
        width: usize,
        cell: impl Fn(Tensor<2>, [Tensor<2>; N]) -> [Tensor<2>; N],
    ) -> [Tensor<2>; N] {
        let [batch, seq_len, _] = self.input.dims();
        let device = self.input.device();
        self.width = width;
        let zero = || Tensor::<2>::zeros([batch, width], &device);
        let init: [Tensor<2>; N] =
            std::array::from_fn(|i| starts[i].1.clone().map_or_else(zero, |init| init.unsqueeze::<2>().expand([batch, width])));
        let mut state = starts.map(|(h0, _)| h0.unwrap_or_else(zero));
        let (reset, padding) = (self.steps.reset_mask(&device), self.steps.padding_mask(&device));
        let at = |mask: &Option<Tensor<3>>, t: usize| mask.clone().map(|mask| mask.narrow(1, t, 1).reshape([batch, 1]));
        for t in 0..seq_len {
            if let Some(reset) = at(&reset, t) {
                state = std::array::from_fn(|i| state[i].clone() + reset.clone() * (init[i].clone() - state[i].clone()));
            }
            let next = cell(self.input.clone().narrow(1, t, 1).squeeze_dim(1), state.clone());
            let mut output = next[0].clone();
            state = match at(&padding, t) {
                None => next,
                Some(padding) => {
                    output = output * (-padding.clone() + 1.0);
                    std::array::from_fn(|i| next[i].clone() + padding.clone() * (state[i].clone() - next[i].clone()))
                }
            };
            self.outputs.push(output.unsqueeze_dim(1));
        }
        state
    }

    /// The outputs of every step `[B, T, E]`.
    pub(super) fn outputs(self) -> Tensor<3> {
        if self.outputs.is_empty() {
            let [batch, _, _] = self.input.dims();
            return Tensor::zeros([batch, 0, self.width], &self.input.device());
        }
        Tensor::cat(self.outputs, 1)
    }
}
