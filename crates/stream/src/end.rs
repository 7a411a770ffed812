//! From the residual stream to the prediction: final norm, mean over the past, comparison with the previous sequence, head.
//!
//! ```text
//! mean:   s ← s + x      n ← n + 1      x ← s / n                               with pooling = mean
//! pair:   x ← GELU(W [a, x, a − x, a ⊙ x] + b), where a is x at the last step before the sequence was restarted
//! head:   W x (+ b); of a policy tanh(W x + b)
//! ```
//!
//! A session keeps s, the rounding error of s, and n, then a and the last x.

use minrnn_kernels::weight_matrix::WeightMatrix;
use minrnn_kernels::{Out, count, gelu};

use crate::gates;
use crate::linear::{Linear, matmul, product};
use crate::norm::Norm;
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::Source;
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Pooling, Result};

/// The last layers of a model.
#[derive(Debug)]
pub(crate) struct End {
    norm: Norm,
    pools: bool,
    /// 4D → D.
    pair: Option<Linear>,
    head: Head,
}

#[derive(Debug)]
enum Head {
    /// The embedding's matrix.
    Tied,
    /// D → outputs.
    Own(Linear),
    /// D → numbers of an action, in (−1, 1).
    Action(Linear),
}

impl End {
    pub(crate) fn read(config: &CheckedConfig, source: &mut dyn Source) -> Result<Self> {
        let (d, outputs) = (config.d_model, config.outputs());
        let norm = Norm::read(config, source, "backbone.final_norm")?;
        if config.decision {
            return Ok(Self { norm, pools: false, pair: None, head: Head::Action(source.linear("head", outputs, d)?) });
        }
        let pair = if config.pair_head { Some(source.linear("pair_head.linear", d, 4 * d)?) } else { None };
        let head = match (config.tie_embeddings, config.n_outputs) {
            (true, _) => Head::Tied,
            (false, 0) => Head::Own(source.linear_without_bias("head", outputs, d)?),
            (false, _) => Head::Own(source.linear("head", outputs, d)?),
        };
        Ok(Self { norm, pools: config.pooling == Pooling::Mean, pair, head })
    }

    /// Whether every row matters, not only those whose outputs are wanted.
    fn carries(&self) -> bool {
        self.pools || self.pair.is_some()
    }

    /// Copies what a restarted session keeps of the previous sequence from its memory `before` to its new `memory`.
    pub(crate) fn begin_anew(&self, width: usize, before: &[f32], memory: &mut [f32]) {
        if self.pair.is_some() {
            let at = before.len() - 2 * width;
            memory[at..at + width].copy_from_slice(&before[at + width..]);
            memory[at + width..].copy_from_slice(&before[at + width..]);
        }
    }

    /// Writes row `to` of `outputs` from row `from` of the residual stream `x` `[N, D]`, for every wanted `(from, to)`; these ascend. The
    /// head's inputs for them, `[wanted, D]`, are then at the beginning of the hidden values.
    #[allow(clippy::too_many_arguments, reason = "where numbers come from and where they go")]
    pub(crate) fn forward(
        &self,
        pass: &Pass<'_>,
        memory: Memory<'_>,
        embedding: Option<&WeightMatrix>,
        x: &[f32],
        wanted: &[(usize, usize)],
        outputs: &mut [f32],
        buffers: &mut Buffers,
    ) {
        let (d, n) = (x.len() / pass.rows, wanted.len());
        let Buffers { normed, product, hidden, recurrent: [both, compared, ..], .. } = buffers;
        if self.carries() {
            let features = room(normed, pass.rows * d);
            self.norm.forward(pass, pass.rows, x, features);
            if self.pools {
                means(pass, memory, features);
            }
            gather(features, wanted, room(hidden, n * d));
            if let Some(pair) = &self.pair {
                let (both, compared) = (room(both, n * 4 * d), room(compared, n * d));
                let first = if self.pools { means_len(d) } else { 0 };
                beside(pass, (memory, first), features, wanted, both);
                compare(pass, pair, both, room(product, n * d), compared);
                hidden[..n * d].copy_from_slice(compared);
            }
        } else if n > 0 {
            let rows = room(normed, n * d);
            gather(x, wanted, rows);
            self.norm.forward(pass, n, rows, room(hidden, n * d));
        }
        if n > 0 {
            self.predict(pass, embedding, &hidden[..n * d], wanted, outputs, product);
        }
    }

    /// Writes row `to` of `outputs` from the features `x` `[wanted, D]`, for every wanted `(from, to)`.
    fn predict(
        &self,
        pass: &Pass<'_>,
        embedding: Option<&WeightMatrix>,
        x: &[f32],
        wanted: &[(usize, usize)],
        outputs: &mut [f32],
        product: &mut alloc::vec::Vec<f32>,
    ) {
        let (weight, bias) = match (&self.head, embedding) {
            (Head::Own(head) | Head::Action(head), _) => (&head.weight, head.bias.as_slice()),
            (Head::Tied, Some(embedding)) => (embedding, &[][..]),
            (Head::Tied, None) => unreachable!("the configuration is checked: a model that shares the embedding's matrix reads tokens"),
        };
        let width = weight.outputs();
        let outputs = Shared::new(outputs, width);
        matmul(pass, weight, 1, 0..1, wanted.len(), x, room(product, wanted.len() * width), |range, values| {
            for (&(_, to), values) in wanted.iter().zip(values.chunks_exact_mut(range.len())) {
                if let Some(bias) = bias.get(range.clone()) {
                    values.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
                }
                if matches!(self.head, Head::Action(_)) {
                    values.iter_mut().for_each(|value| *value = libm::tanhf(*value));
                }
                // SAFETY: pieces have outputs of their own, and no row is wanted twice.
                unsafe { outputs.part(to, range.clone()) }.copy_from_slice(values);
            }
        });
    }
}

/// The wanted rows of `x` `[N, D]`, one after the other.
pub(crate) fn gather(x: &[f32], wanted: &[(usize, usize)], rows: &mut [f32]) {
    let d = rows.len() / wanted.len().max(1);
    for (&(from, _), row) in wanted.iter().zip(rows.chunks_exact_mut(d.max(1))) {
        row.copy_from_slice(&x[from * d..][..d]);
    }
}

/// Numbers that a mean of `d` features keeps: sums, what rounding has added to them, and their count.
fn means_len(d: usize) -> usize {
    2 * d + 1
}

/// Replaces every row of `x` `[N, D]` by the mean of all rows of its session so far, whose sums are at the beginning of the memory.
fn means(pass: &Pass<'_>, memory: Memory<'_>, x: &mut [f32]) {
    let d = x.len() / pass.rows;
    for span in pass.spans {
        // SAFETY: called between two phases, when nothing else uses the memory.
        let (sum, behind) = unsafe { memory.part(span.session, 0, means_len(d)) }.split_at_mut(d);
        let (surplus, kept) = behind.split_at_mut(d);
        let mut n = count::of(kept[0]);
        for x in x[span.first * d..][..span.len * d].chunks_exact_mut(d) {
            let before = n;
            n = count::next(n);
            if n < before {
                // The count was reduced: the sums shrink with it, so that the mean stays the same.
                let share = (n - 1) as f32 / before as f32;
                sum.iter_mut().chain(&mut *surplus).for_each(|sum| *sum *= share);
            }
            gates::add_exactly(pass.level, x, surplus, sum);
            let share = 1.0 / n as f32;
            x.iter_mut().zip(&*sum).for_each(|(x, sum)| *x = sum * share);
        }
        kept[0] = count::kept(n);
    }
}

/// [a, x, a − x, a ⊙ x] of every wanted row of `x` `[N, D]`, `[wanted, 4D]`; the memory, in which a begins at `first`, keeps each session's
/// last x.
fn beside(pass: &Pass<'_>, (memory, first): (Memory<'_>, usize), x: &[f32], wanted: &[(usize, usize)], both: &mut [f32]) {
    let d = x.len() / pass.rows;
    let mut rows = wanted.iter().zip(both.chunks_exact_mut(4 * d)).peekable();
    for span in pass.spans {
        let end = span.first + span.len;
        // SAFETY: called between two phases, when nothing else uses the memory.
        let (before, last) = unsafe { memory.part(span.session, first, first + 2 * d) }.split_at_mut(d);
        while let Some((&(from, _), row)) = rows.next_if(|((from, _), _)| *from < end) {
            let x = &x[from * d..][..d];
            let (linear, products) = row.split_at_mut(2 * d);
            linear[..d].copy_from_slice(before);
            linear[d..].copy_from_slice(x);
            for (i, (a, x)) in before.iter().zip(x).enumerate() {
                (products[i], products[d + i]) = (a - x, a * x);
            }
        }
        if span.len > 0 {
            last.copy_from_slice(&x[(end - 1) * d..][..d]);
        }
    }
}

/// `y` `[rows, D]` = GELU(W `both` + b).
fn compare(pass: &Pass<'_>, pair: &Linear, both: &[f32], scratch: &mut [f32], y: &mut [f32]) {
    let rows = y.len() / pair.weight.outputs();
    product(pass, &pair.weight, rows, both, scratch, y, |_, range, values, y| {
        gelu::forward(1, range.len(), values, Some(&pair.bias[range]), Out::new(y));
    });
}
