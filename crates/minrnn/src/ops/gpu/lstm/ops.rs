//! The operations that use the kernels.

use burn_cubecl::ops::reshape;
use burn_cubecl::tensor::CubeTensor;

use super::super::super::{lstm, s_lstm};
use super::super::op::GpuOp;
use super::super::tensors::{Like, dims, zeros_like};
use super::{Cell, Problem};
use crate::ops::ForgetGate;

/// Of so many states of every step, and of the last ones.
fn outputs_like(preact: &Like, parts: usize) -> Vec<Like> {
    let [batch, seq_len, columns] = preact.shape.dims();
    let width = columns / 4;
    let every = [preact.reshaped([batch, seq_len, width])].into_iter().chain(vec![Like::f32([batch, seq_len, width]); parts - 1]);
    every.chain(vec![Like::f32([batch, width]); parts]).collect()
}

impl lstm::Op {
    fn problem<'a>(&self, input: impl Fn(usize) -> Option<&'a CubeTensor>) -> Problem<'a> {
        let [preact, weight] = [0, 1].map(|i| input(i).expect("kept"));
        let [rows, width] = dims(weight);
        let at = |i: Option<usize>| i.and_then(&input);
        Problem {
            cell: Cell::Lstm,
            preact,
            weight: reshape(weight.clone(), [1, rows, width].into()),
            bias: at(self.bias),
            recurrent_bias: at(self.recurrent_bias),
            carried: [at(self.h0), at(self.c0), None, None],
            init: [at(self.init_h), at(self.init_c)],
            codes: self.steps.on_device(preact),
        }
    }
}

impl GpuOp for lstm::Op {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        outputs_like(&inputs[0], Cell::Lstm.parts())
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        self.problem(|i| Some(&inputs[i])).forward()
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], outputs: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let [h, c] = [0, 1].map(|i: usize| outputs[i].as_ref().expect("kept"));
        let [d_h, d_h_last, d_c_last] = [0, 2, 3].map(|i: usize| d_outputs[i].as_ref());
        let d = self.problem(|i| inputs[i].as_ref()).backward(&[h, c], d_h, [d_h_last, d_c_last, None]);
        let [_, rows, width] = dims(&d.weight);
        let ([d_h0, d_c0, _], [d_init_h, d_init_c]) = (d.carried, d.init);
        let optional = [
            self.bias.map(|_| d.bias.clone()),
            self.recurrent_bias.map(|_| d.bias),
            self.h0.map(|_| d_h0),
            self.c0.map(|_| d_c0),
            self.init_h.map(|_| d_init_h),
            self.init_c.map(|_| d_init_c),
        ];
        [d.preact, reshape(d.weight, [rows, width].into())].into_iter().chain(optional.into_iter().flatten()).collect()
    }
}

impl s_lstm::Op {
    fn cell(&self) -> Cell {
        match self.forget {
            ForgetGate::Sigmoid => Cell::SLstmSigmoid,
            ForgetGate::Exponential => Cell::SLstmExponential,
        }
    }

    fn problem<'a>(&self, input: impl Fn(usize) -> Option<&'a CubeTensor>) -> Problem<'a> {
        let [preact, weight] = [0, 1].map(|i| input(i).expect("kept"));
        Problem {
            cell: self.cell(),
            preact,
            weight: weight.clone(),
            bias: self.bias.and_then(&input),
            recurrent_bias: None,
            carried: [2, 3, 4, 5].map(&input),
            init: [None, None],
            codes: self.steps.on_device(preact),
        }
    }
}

impl GpuOp for s_lstm::Op {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        outputs_like(&inputs[0], self.cell().parts())
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        self.problem(|i| Some(&inputs[i])).forward()
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], outputs: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let states = [0, 1, 2, 3].map(|i: usize| outputs[i].as_ref().expect("kept"));
        let d_last = [4, 5, 6].map(|i: usize| d_outputs[i].as_ref());
        let d = self.problem(|i| inputs[i].as_ref()).backward(&states, d_outputs[0].as_ref(), d_last);
        let d_m = zeros_like(inputs[5].as_ref().expect("kept"));
        [d.preact, d.weight].into_iter().chain(d.carried).chain([d_m]).chain(self.bias.map(|_| d.bias)).collect()
    }
}
