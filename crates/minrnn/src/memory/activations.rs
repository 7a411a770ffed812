//! Lists what each part of a model keeps for the backward pass and holds temporarily, from its configuration alone.
//!
//! Letters: n = B · T steps of a batch; D `d_model`, E `d_inner`, H heads, N `d_state`, M the feed-forward width, V the outputs. What an
//! operation keeps is defined by its `FusedOp::keeps` (`ops/`), what a layer keeps in its file (`activations` in `nn/` and `model/`);
//! Burn's operations are counted where they are used.

use super::tape::{Operation, Tape};

/// The size of a batch passing through a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Number of sequences, B.
    pub batch_size: usize,
    /// Number of steps of each, T.
    pub seq_len: usize,
    /// Number of scored steps among all B · T.
    pub scored: u128,
    /// Threads of the pool.
    pub threads: usize,
}

impl Sizes {
    /// B · T.
    pub fn steps(&self) -> u128 {
        self.batch_size as u128 * self.seq_len as u128
    }
}

/// An operation, in numbers per step.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Op<'a> {
    /// The sizes of the tensors it keeps.
    pub keeps: &'a [u128],
    /// Size of its inputs.
    pub reads: u128,
    /// Size of its outputs.
    pub gives: u128,
    /// Size of the tensors waiting for another operation.
    pub aside: u128,
    /// Total size of its workspaces.
    pub works: u128,
}

/// The operations of a part, in numbers per step.
pub(crate) struct Activations {
    sizes: Sizes,
    tape: Tape,
    /// Numbers per step that wait beside the coming operations.
    pub aside: u128,
    /// For each layer x W + b so far, its input and output widths, and whether there is a bias b.
    #[cfg(test)]
    pub layers: Vec<(u128, u128, bool)>,
}

impl Activations {
    pub fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            tape: Tape::default(),
            aside: 0,
            #[cfg(test)]
            layers: Vec::new(),
        }
    }

    /// The operations so far, for a part without states.
    pub fn tape(self) -> Tape {
        self.tape
    }

    /// The operations so far, for a part that carries `before` numbers for each sequence before the first step and `after` after the last,
    /// some of them in tensors of `long` numbers. A backward pass has the gradient of one of the two.
    pub fn with_states(self, before: u128, after: u128, long: &[u128]) -> Tape {
        let batch = self.batch();
        let mut tape = self.tape;
        tape.held = batch * (before + after);
        long.iter().for_each(|numbers| tape.long.add(batch * numbers));
        tape.backward += batch * before;
        tape
    }

    /// B.
    pub fn batch(&self) -> u128 {
        self.sizes.batch_size as u128
    }

    /// T.
    pub fn length(&self) -> u128 {
        self.sizes.seq_len as u128
    }

    /// n = B · T.
    pub fn steps(&self) -> u128 {
        self.sizes.steps()
    }

    /// Threads of the pool.
    pub fn threads(&self) -> u128 {
        self.sizes.threads as u128
    }

    /// Number of scored steps among all n.
    pub fn scored(&self) -> u128 {
        self.sizes.scored
    }

    /// A tensor of `numbers` in total that the next operation keeps in addition to those per step.
    pub fn keep(&mut self, numbers: u128) {
        self.tape.keep(numbers);
    }

    pub fn op(&mut self, Op { keeps, reads, gives, aside, works }: Op<'_>) {
        let n = self.sizes.steps();
        for numbers in keeps {
            self.tape.keep(n * numbers);
        }
        self.tape.push(Operation { reads: n * reads, gives: n * gives, aside: n * (aside + self.aside), works });
    }

    /// An operation on whole tensors, regardless of their steps.
    pub fn whole(&mut self, reads: u128, gives: u128) {
        self.tape.push(Operation { reads, gives, ..Operation::default() });
    }

    /// Dropout and the sum with a residual stream of `width` that waits beside it.
    pub fn residual(&mut self, width: u128) {
        self.op(Op { reads: width, gives: width, aside: width, ..Op::default() });
    }

    /// x W + b for an x that is kept.
    pub fn biased(&mut self, from: u128, to: u128, bias: bool) {
        #[cfg(test)]
        self.layers.push((from, to, bias));
        self.op(Op { keeps: &[from], reads: from, gives: to, ..Op::default() });
        if bias {
            self.op(Op { reads: to, gives: to, ..Op::default() });
        }
    }

    /// x W + b for an x that the previous operation keeps.
    pub fn out(&mut self, from: u128, to: u128, bias: bool) {
        #[cfg(test)]
        self.layers.push((from, to, bias));
        self.op(Op { reads: from, gives: to, ..Op::default() });
        if bias {
            self.op(Op { reads: to, gives: to, ..Op::default() });
        }
    }

    /// A recurrence of E channels from the `inputs` given by x W.
    pub fn recurrence(&mut self, d: u128, e: u128, inputs: u128, keeps: &[u128]) {
        self.op(Op { keeps: &[d], reads: d, gives: inputs, ..Op::default() });
        self.op(Op { keeps, reads: inputs, gives: e, ..Op::default() });
    }
}
